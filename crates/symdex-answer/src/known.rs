//! The images that a symbolicator knows: for names that are near, and for ids that are cut.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use symdex::Metadata;
use symdex_report::KnownImage;

use super::Symbolicator;
use symdex_store::{Error, IndexFolder};

/// The number of indexes that are opened in the search for the name of an image.
pub(crate) const MAX_OPENED: usize = 20_000;

/// The images of all indexes and debug files.
pub(crate) struct KnownImages {
    /// Each image once, sorted.
    pub(crate) images: Vec<KnownImage>,
    /// Whether some indexes were not opened because there are too many.
    pub(crate) is_cut: bool,
}

impl Symbolicator {
    /// The images of all indexes and debug files, each once, sorted. The first call lists all folders and opens up to
    /// 20,000 indexes. Stores that are not folders are left out: they may have any number of indexes.
    pub fn known(&self) -> &[KnownImage] {
        let known = self.known.get_or_init(|| {
            let in_folders = self.folders.iter().flat_map(|folder| folder.all_below()).map(Cow::Borrowed);
            let mut paths = in_folders.chain(self.paths_in_stores().into_iter().map(Cow::Owned));
            let indexes = paths.by_ref().take(MAX_OPENED).filter_map(|path| known_index(&path).ok());
            let files = self.files.iter().map(|(known, _)| known.clone());
            // Indexes of images in debug files are left out. Otherwise the result would depend on which indexes are
            // already built.
            let mut images: Vec<_> = self.debug_files().known().collect();
            let of_debug_files: BTreeSet<_> =
                images.iter().map(|image| (image.id.clone(), image.arch.clone())).collect();
            let is_other =
                |image: &KnownImage| !of_debug_files.contains(&(image.id.clone(), image.arch.clone()));
            images.extend(files.chain(indexes).filter(is_other));
            images.sort();
            images.dedup();
            KnownImages { images, is_cut: paths.next().is_some() }
        });
        &known.images
    }

    /// The paths of all indexes in stores that are folders, sorted. A store that cannot be listed counts as empty.
    fn paths_in_stores(&self) -> Vec<PathBuf> {
        let folders = self.stores().stores().iter().filter_map(|store| {
            let store: &dyn Any = store.store();
            store.downcast_ref::<IndexFolder>()
        });
        let mut paths: Vec<_> =
            folders.flat_map(|folder| folder.stored_paths().unwrap_or_default()).collect();
        paths.sort();
        paths
    }
}

/// The image of the index at `path`.
pub(crate) fn known_index(path: &Path) -> Result<KnownImage, Error> {
    Ok(known_of(Metadata::read_file(path).map_err(|error| Error::index(path, error))?))
}

pub(crate) fn known_of(metadata: Metadata) -> KnownImage {
    KnownImage { name: metadata.image_name, id: metadata.id, arch: metadata.arch.name }
}
