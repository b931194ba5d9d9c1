//! Debug files whose images are turned into indexes when a report needs them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

use symdex::{ImageId, ImageOffset, Index};
use symdex_build::{Cache, Companions, DirectLookup};
use symdex_report::{Image, KnownImage, Unanswered, image_offsets};
use symdex_store::IndexFolder;

use super::answers::unanswered;

use crate::failure::{Failure, Kind, complain};
use crate::joined::{Joined, identities, index_of};
use crate::progress::Progress;
use crate::text;

/// The images in the files that `--dsym` and `--assume` name.
pub(super) struct DebugFiles {
    images: Vec<DebugImage>,
    store: Option<PathBuf>,
    size: u64,
    /// Whether the user named the store, and so wants indexes there.
    is_store_named: bool,
    /// The warning that indexes cannot be stored.
    unstored: Once,
}

/// How many addresses of an image are answered from its debug file before its index is built.
const FEW_ADDRESSES: usize = 200;

/// One image, in one or several files.
pub(super) struct DebugImage {
    id: ImageId,
    arch: String,
    /// The one to begin with: of several with debug information the first, else the first of all.
    file: PathBuf,
    has_dwarf: bool,
    /// Others of the image, without debug information, which may have more symbols.
    beside: Vec<PathBuf>,
    /// How many addresses reports have asked for.
    asked: AtomicUsize,
    /// The index that was built of it.
    index: OnceLock<Result<Built, Failure>>,
}

/// An index that was built of debug files.
pub(super) enum Built {
    /// In the local store, at this path.
    Stored(PathBuf),
    /// In memory, because it cannot be stored.
    Memory(Box<Index<Vec<u8>>>),
}

impl DebugImage {
    /// Takes in another file of the image.
    fn add(&mut self, file: &Path, has_dwarf: bool) {
        match (self.has_dwarf, has_dwarf) {
            (false, true) => {
                self.beside.push(std::mem::replace(&mut self.file, file.to_owned()));
                self.has_dwarf = true;
            }
            (_, false) => self.beside.push(file.to_owned()),
            (true, true) => {}
        }
    }

    /// The image, joined of its files. Files beside the first that cannot be read only cost what they would have added.
    fn load<'d>(&self, companions: &'d Companions) -> Result<symdex_build::Image<'d>, Failure> {
        let mut joined = Joined::default();
        for file in std::iter::once(&self.file).chain(&self.beside) {
            joined.add_image(file, &self.id, &self.arch, companions);
        }
        let Joined { image, failures, .. } = joined;
        image.ok_or_else(|| {
            let failure = failures.into_iter().next();
            failure.unwrap_or_else(|| Failure::new(Kind::Other, format!("{}: no file of it", self.id)))
        })
    }

    /// The file that it is read from first.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Its name, id and architecture.
    pub(super) fn known(&self) -> KnownImage {
        KnownImage { name: text::file_name(&self.file), id: self.id.clone(), arch: self.arch.clone() }
    }
}

impl DebugFiles {
    /// No debug files yet. Indexes that are built of them go to `store`, or to `default_store` if that is `None`.
    pub(super) fn new(store: Option<PathBuf>, default_store: Option<PathBuf>) -> Self {
        let is_store_named = store.is_some();
        let store = store.or(default_store);
        Self { images: Vec::new(), store, size: 0, is_store_named, unstored: Once::new() }
    }

    /// Reads the headers of all debug files at or below `path`, and reports those that cannot be read. Returns the images in them.
    pub(super) fn add(&mut self, path: &Path, failed: &mut impl FnMut(Failure)) -> Vec<KnownImage> {
        let mut added = Vec::new();
        for file in symdex_build::find(path) {
            let file = file.map_err(|error| Failure::debug_file(path, &error));
            if let Err(failure) = file.and_then(|file| self.add_file(&file, &mut added)) {
                failed(failure);
            }
        }
        added
    }

    fn add_file(&mut self, file: &Path, added: &mut Vec<KnownImage>) -> Result<(), Failure> {
        if Cache::is_one(file) {
            let message = "a dyld shared cache; make indexes of its images with `symdex build`, then give their folder with --index";
            return Err(Failure::new(Kind::Unsupported, format!("{}: {message}", file.display())));
        }
        for identified in identities(file)? {
            let (id, arch, has_dwarf) = identified?;
            added.push(KnownImage { name: text::file_name(file), id: id.clone(), arch: arch.clone() });
            match self.images.iter_mut().find(|image| image.id == id && image.arch == arch) {
                Some(image) => image.add(file, has_dwarf),
                None => {
                    let (file, beside, index) = (file.to_owned(), Vec::new(), OnceLock::new());
                    let asked = AtomicUsize::new(0);
                    self.images.push(DebugImage { id, arch, file, has_dwarf, beside, asked, index });
                }
            }
        }
        self.size += file.metadata().map_or(0, |file| file.len());
        Ok(())
    }

    /// How many bytes the files have together.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// What images there are.
    pub(super) fn known(&self) -> impl Iterator<Item = KnownImage> {
        self.images.iter().map(DebugImage::known)
    }

    /// The image of this id; `None` where no file has it.
    pub(super) fn image(&self, id: &ImageId) -> Option<&DebugImage> {
        self.images.iter().find(|image| image.id == *id)
    }

    /// Whether there is debug information of `id`.
    pub(super) fn has_dwarf(&self, id: &ImageId) -> bool {
        self.images.iter().any(|image| image.id == *id && image.has_dwarf)
    }

    /// Whether the next `addresses` of `image` are few enough to be answered by [`Self::directly`]: its index need not be built for them.
    pub(super) fn are_few(&self, image: &DebugImage, addresses: usize) -> bool {
        let asked = image.asked.fetch_add(addresses, Ordering::Relaxed).saturating_add(addresses);
        !self.is_store_named && asked <= FEW_ADDRESSES && image.index.get().is_none()
    }

    /// What `answer` does with an index that answers `offsets` of `image`, which a report calls `wanted`. Only the units that have code
    /// there are read.
    pub(super) fn directly<T: Send>(
        image: &DebugImage,
        wanted: &Image,
        offsets: &[ImageOffset],
        answer: impl FnOnce(&Index<Vec<u8>>) -> Result<T, Unanswered> + Send,
    ) -> Result<T, Unanswered> {
        let work = || {
            let failed = |error| unanswered(Failure::debug_file(&image.file, &error));
            let companions = Companions::default();
            let loaded = image.load(&companions).map_err(unanswered)?;
            let mut lookup = DirectLookup::new(&loaded).map_err(failed)?;
            let offsets = image_offsets(lookup.index().metadata(), wanted, offsets)?;
            answer(lookup.answer(&offsets).map_err(failed)?)
        };
        // On a thread of its own, which does not take up other reports while it waits.
        let answered = std::thread::scope(|scope| scope.spawn(work).join());
        answered.unwrap_or_else(|_| Err(Unanswered::Failed(format!("{}: reading it failed", image.id))))
    }

    /// The index of `image`, which is built the first time.
    pub(super) fn index<'i>(&self, image: &'i DebugImage, progress: &Progress) -> Result<&'i Built, Failure> {
        let built = image.index.get_or_init(|| {
            // On a thread of its own: one that waits as part of a pool would take up other reports meanwhile, which may wait for
            // this very index.
            let built = std::thread::scope(|scope| scope.spawn(|| self.build(image, progress)).join());
            built.unwrap_or_else(|_| {
                Err(Failure::new(Kind::Other, format!("{}: building its index failed", image.id)))
            })
        });
        built.as_ref().map_err(Failure::clone)
    }

    /// Builds the index of `image`, and publishes it where there is a store that can be written.
    fn build(&self, image: &DebugImage, progress: &Progress) -> Result<Built, Failure> {
        let companions = Companions::default();
        let loaded = image.load(&companions)?;
        let index = index_of(&loaded, &image.file, progress)?;
        let published = match &self.store {
            Some(store) => IndexFolder::new(store).publish(&index).map_err(|error| error.to_string()),
            None => Err("there is no cache folder of the user".to_owned()),
        };
        published.map(|published| Built::Stored(published.path)).or_else(|error| {
            self.unstored.call_once(|| {
                let message =
                    "new indexes are kept in memory, for this run only; choose another folder with --store";
                progress.suspend(|| complain(&format!("warning: {error}; {message}")));
            });
            Ok(Built::Memory(Box::new(index)))
        })
    }
}
