//! The images that a symbolicator knows: for names that are near, and for ids that are cut.

use std::any::Any;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use symdex::{ImageId, Metadata};
use symdex_report::KnownImage;

use super::Symbolicator;
use symdex_store::{Error, IndexFolder, SharedStore};

/// The number of indexes that are opened in the search for the name of an image.
pub(crate) const MAX_OPENED: usize = 20_000;

/// How long a list of images is used.
const FRESH: Duration = Duration::from_secs(600);

/// The images of all indexes and debug files.
#[derive(Default)]
pub(crate) struct KnownImages {
    /// Each image once. They are sorted, except for those that were published since.
    images: Arc<Vec<KnownImage>>,
    /// Whether some indexes were not opened because there are too many.
    pub(crate) is_cut: bool,
    /// When the last list was begun.
    listed: Option<Instant>,
    /// What has changed since, and is not in `images` yet: an image that was published, or `None` and the id of an
    /// image that was removed.
    changes: Vec<(ImageId, Option<KnownImage>)>,
}

impl Symbolicator {
    /// The images of all indexes and debug files, each once, sorted, and those that were
    /// [published](Self::publish) since. The first call, and calls more than ten minutes after the last list, list all
    /// folders and open up to 20,000 indexes. Stores that are not folders are left out: they may have any number of
    /// indexes.
    pub fn known(&self) -> Arc<Vec<KnownImage>> {
        // Other calls wait for the list, instead of making it too. What publishes and removes images does not.
        let _turn = self.listing.lock();
        let mut known = self.known_images();
        if known.listed.is_none_or(|listed| listed.elapsed() >= FRESH) {
            (known.listed, known.changes) = (Some(Instant::now()), Vec::new());
            drop(known);
            let folders = self.folders().flat_map(|folder| folder.stored_paths().unwrap_or_default());
            let mut paths = folders.collect::<Vec<_>>().into_iter();
            let indexes = paths.by_ref().take(MAX_OPENED).filter_map(|path| known_index(&path).ok());
            // Indexes of images in debug files are left out. Otherwise the result would depend on which indexes are
            // already built.
            let mut images: Vec<_> = self.debug_files().known().collect();
            let of_debug_files: BTreeSet<_> =
                images.iter().map(|image| (image.id.clone(), image.arch.clone())).collect();
            let is_other =
                |image: &KnownImage| !of_debug_files.contains(&(image.id.clone(), image.arch.clone()));
            images.extend(indexes.filter(is_other));
            images.sort();
            images.dedup();
            known = self.known_images();
            (known.images, known.is_cut) = (images.into(), paths.next().is_some());
        }
        for (id, published) in std::mem::take(&mut known.changes) {
            let images = Arc::make_mut(&mut known.images);
            images.retain(|image| published.as_ref().map_or(image.id != id, |new| image != new));
            images.extend(published);
        }
        Arc::clone(&known.images)
    }

    pub(crate) fn known_images(&self) -> MutexGuard<'_, KnownImages> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// States that an image was published in `store`, or that the image `id` was removed from it, for `None`.
    pub(crate) fn note_known(&self, store: &SharedStore, id: &ImageId, published: Option<KnownImage>) {
        let mut known = self.known_images();
        if folder_of(store).is_some() && known.listed.is_some() {
            known.changes.push((id.clone(), published));
        }
    }

    /// The indexes, folders and stores that are folders of indexes.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &IndexFolder> {
        self.sources().filter_map(|source| folder_of(source))
    }
}

fn folder_of(store: &SharedStore) -> Option<&IndexFolder> {
    (store.store() as &dyn Any).downcast_ref()
}

/// The image of the index at `path`.
pub(crate) fn known_index(path: &Path) -> Result<KnownImage, Error> {
    Ok(known_of(Metadata::read_file(path).map_err(|error| Error::index(path, error))?))
}

pub(crate) fn known_of(metadata: Metadata) -> KnownImage {
    KnownImage { name: metadata.image_name, id: metadata.id, arch: metadata.arch.name }
}
