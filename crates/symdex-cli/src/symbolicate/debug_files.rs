//! Debug files whose images are turned into indexes when a report needs them.

use std::path::{Path, PathBuf};
use std::sync::{Once, OnceLock};

use symdex::{ImageId, Index};
use symdex_build::{Cache, Companions, publish};
use symdex_report::KnownImage;

use crate::failure::{Failure, Kind, complain};
use crate::joined::{Joined, identities, index_of};
use crate::progress::Progress;
use crate::text;

/// The images in the files that `--dsym` and `--assume` name.
pub(super) struct DebugFiles {
    images: Vec<DebugImage>,
    store: Option<PathBuf>,
    size: u64,
    /// The warning that indexes cannot be stored.
    unstored: Once,
}

/// One image, in one or several files.
pub(super) struct DebugImage {
    id: ImageId,
    arch: String,
    /// The one to begin with: of several with debug information the first, else the first of all.
    file: PathBuf,
    has_dwarf: bool,
    /// Others of the image, without debug information, which may have more symbols.
    beside: Vec<PathBuf>,
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
    /// No debug files yet. Indexes that are built of them go to `store`.
    pub(super) fn new(store: Option<PathBuf>) -> Self {
        Self { images: Vec::new(), store, size: 0, unstored: Once::new() }
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
                    self.images.push(DebugImage { id, arch, file, has_dwarf, beside, index });
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

    /// Builds the index of `image`, and publishes it where there is a store that can be written. Files beside the first that cannot
    /// be read only cost what they would have added.
    fn build(&self, image: &DebugImage, progress: &Progress) -> Result<Built, Failure> {
        let companions = Companions::default();
        let mut joined = Joined::default();
        for file in std::iter::once(&image.file).chain(&image.beside) {
            joined.add_image(file, &image.id, &image.arch, &companions);
        }
        let Joined { image: Some(loaded), .. } = joined else {
            let failure = joined.failures.into_iter().next();
            return Err(
                failure.unwrap_or_else(|| Failure::new(Kind::Other, format!("{}: no file of it", image.id)))
            );
        };
        let index = index_of(&loaded, &image.file, progress)?;
        let published = match &self.store {
            Some(store) => publish::publish(store, &index).map_err(|error| error.to_string()),
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
