//! The images that a symbolicator knows: for names that are near, and for ids that are cut.

use std::any::Any;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use symdex::{ImageId, Metadata};
use symdex_report::KnownImage;

use super::Symbolicator;
use symdex_store::{Error, IndexFolder};

/// The number of indexes that are opened in the search for the name of an image.
pub(crate) const MAX_OPENED: usize = 20_000;

/// How long a list of images is used.
const FRESH: Duration = Duration::from_secs(600);

/// The images of all indexes and debug files.
pub(crate) struct KnownImages {
    /// Each image once, sorted.
    images: Arc<[KnownImage]>,
    /// Whether some indexes were not opened because there are too many.
    pub(crate) is_cut: bool,
    listed: Instant,
}

impl Symbolicator {
    /// The images of all indexes and debug files, each once, sorted, and those that were
    /// [published](Self::publish) since. The first call, and calls more than ten minutes after the last list, list all
    /// folders and open up to 20,000 indexes. Stores that are not folders are left out: they may have any number of
    /// indexes.
    pub fn known(&self) -> Arc<[KnownImage]> {
        // Other threads wait for the list, instead of making it too.
        let mut known = self.listed_images();
        match &*known {
            Some(known) if known.listed.elapsed() < FRESH => Arc::clone(&known.images),
            _ => Arc::clone(&known.insert(self.list_images()).images),
        }
    }

    pub(crate) fn listed_images(&self) -> MutexGuard<'_, Option<KnownImages>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list_images(&self) -> KnownImages {
        let folders = self.folders().flat_map(|folder| folder.stored_paths().unwrap_or_default());
        let mut paths = folders.collect::<Vec<_>>().into_iter();
        let indexes = paths.by_ref().take(MAX_OPENED).filter_map(|path| known_index(&path).ok());
        // Indexes of images in debug files are left out. Otherwise the result would depend on which indexes are already
        // built.
        let mut images: Vec<_> = self.debug_files().known().collect();
        let of_debug_files: BTreeSet<_> =
            images.iter().map(|image| (image.id.clone(), image.arch.clone())).collect();
        let is_other = |image: &KnownImage| !of_debug_files.contains(&(image.id.clone(), image.arch.clone()));
        images.extend(indexes.filter(is_other));
        images.sort();
        images.dedup();
        KnownImages { images: images.into(), is_cut: paths.next().is_some(), listed: Instant::now() }
    }

    /// Adds an image that was published since the images were listed.
    pub(crate) fn add_known(&self, image: KnownImage) {
        if let Some(KnownImages { images, .. }) = &mut *self.listed_images()
            && !images.contains(&image)
        {
            *images = images.iter().cloned().chain([image]).collect();
        }
    }

    /// Removes an image that was removed from a store.
    pub(crate) fn remove_known(&self, id: &ImageId) {
        if let Some(KnownImages { images, .. }) = &mut *self.listed_images() {
            *images = images.iter().filter(|image| image.id != *id).cloned().collect();
        }
    }

    /// The indexes, folders and stores that are folders of indexes.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &IndexFolder> {
        self.sources().filter_map(|source| {
            let store: &dyn Any = source.store();
            store.downcast_ref()
        })
    }
}

/// The image of the index at `path`.
pub(crate) fn known_index(path: &Path) -> Result<KnownImage, Error> {
    Ok(known_of(Metadata::read_file(path).map_err(|error| Error::index(path, error))?))
}

pub(crate) fn known_of(metadata: Metadata) -> KnownImage {
    KnownImage { name: metadata.image_name, id: metadata.id, arch: metadata.arch.name }
}
