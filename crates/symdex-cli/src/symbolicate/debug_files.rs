//! Debug files whose images are turned into indexes when a report needs them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use symdex::ImageId;
use symdex_build::{Cache, Companions, publish};
use symdex_report::KnownImage;

use crate::failure::{Failure, Kind};
use crate::joined::{Joined, identities, index_of};
use crate::progress::Progress;
use crate::text;

/// The images in the files that `--dsym` names.
pub(super) struct DebugFiles {
    images: Vec<DebugImage>,
    store: Option<PathBuf>,
    size: u64,
}

/// One image, in one or several files.
struct DebugImage {
    id: ImageId,
    arch: String,
    /// The one to begin with: of several with debug information the first, else the first of all.
    file: PathBuf,
    has_dwarf: bool,
    /// Others of the image, without debug information, which may have more symbols.
    beside: Vec<PathBuf>,
    /// The index that was built of it.
    index: OnceLock<Result<PathBuf, Failure>>,
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
}

impl DebugFiles {
    /// Reads the headers of all debug files below `paths`, and tells of those that cannot be read.
    pub(super) fn find(paths: &[PathBuf], store: Option<PathBuf>, failed: &mut impl FnMut(Failure)) -> Self {
        let mut found = Self { images: Vec::new(), store, size: 0 };
        for path in paths {
            for file in symdex_build::find(path) {
                let added =
                    file.map_err(|error| Failure::debug_file(path, &error)).and_then(|file| found.add(&file));
                if let Err(failure) = added {
                    failed(failure);
                }
            }
        }
        found
    }

    fn add(&mut self, file: &Path) -> Result<(), Failure> {
        if Cache::is_one(file) {
            let message = "a dyld shared cache; make indexes of its images with `symdex build`, then give their folder with --index";
            return Err(Failure::new(Kind::Unsupported, format!("{}: {message}", file.display())));
        }
        for identified in identities(file)? {
            let (id, arch, has_dwarf) = identified?;
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
        self.images.iter().map(|DebugImage { id, arch, file, .. }| KnownImage {
            name: text::file_name(file),
            id: id.clone(),
            arch: arch.clone(),
        })
    }

    /// Whether there is debug information of `id`.
    pub(super) fn has_dwarf(&self, id: &ImageId) -> bool {
        self.images.iter().any(|image| image.id == *id && image.has_dwarf)
    }

    /// The index of `id`, which is built if need be; `None` where no file has that image.
    pub(super) fn index(&self, id: &ImageId, progress: &Progress) -> Option<Result<PathBuf, Failure>> {
        let image = self.images.iter().find(|image| image.id == *id)?;
        let built = image.index.get_or_init(|| {
            // On a thread of its own: one that waits as part of a pool would take up other reports meanwhile, which may wait for
            // this very index.
            let built = std::thread::scope(|scope| scope.spawn(|| self.build(image, progress)).join());
            built.unwrap_or_else(|_| {
                Err(Failure::new(Kind::Other, format!("{id}: building its index failed")))
            })
        });
        Some(built.clone())
    }

    /// Builds and publishes the index of `image`. Files beside the first that cannot be read only cost what they would have added.
    fn build(&self, image: &DebugImage, progress: &Progress) -> Result<PathBuf, Failure> {
        let Some(store) = &self.store else {
            return Err(Failure::new(
                Kind::Other,
                "there is no cache folder for new indexes; give one with --store",
            ));
        };
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
        let path = &image.file;
        let index = index_of(&loaded, path, progress)?;
        let published = publish::publish(store, &index).map_err(|error| Failure::debug_file(path, &error))?;
        Ok(published.path)
    }
}
