//! The images that a symbolicator knows: for names that are near, and for ids that are cut.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use symdex::{ImageId, Metadata};
use symdex_report::{Image, KnownImage, Unanswered};

use super::{Candidate, Symbolicator};
use crate::listed_folder::ListedFolder;
use crate::unanswered_by_store;
use symdex_store::Error;
use symdex_store::begins_with;

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
            let in_folders = self.folders.iter().flat_map(ListedFolder::all).map(Cow::Borrowed);
            let mut paths = in_folders.chain(self.paths_in_stores().into_iter().map(Cow::Owned));
            let indexes = paths.by_ref().take(MAX_OPENED).filter_map(|path| known_index(&path).ok());
            let files = self.files.iter().map(|(known, _)| known.clone());
            // Indexes of images in debug files are left out. Otherwise the result would depend on which indexes are
            // already built.
            let mut images: Vec<_> = self.debug_files.known().collect();
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
        let mut paths = Vec::new();
        for store in self.stores.stores().iter().filter(|store| store.url().path().is_some()) {
            _ = store.list(&mut |entry| {
                paths.push(PathBuf::from(entry.location));
                ControlFlow::Continue(())
            });
        }
        paths.sort();
        paths
    }

    /// The one id of all sources that begins with `start`. Returns `start` if there is none.
    pub(crate) fn whole_id(&self, image: &Image, start: &ImageId) -> Result<ImageId, Unanswered> {
        let files = self.files.iter().map(|(known, _)| known.id.clone());
        let in_debug_files = self.debug_files.known().map(|known| known.id);
        let here = files.chain(in_debug_files).filter(|id| begins_with(id, start));
        let mut ids: BTreeSet<_> =
            here.chain(self.folders.iter().flat_map(|folder| folder.ids_from(start))).collect();
        let mut first_error = None;
        for store in 0..self.stores.stores().len() {
            match self.stores.ids_from(store, std::slice::from_ref(start)).pop() {
                Some(Ok(found)) => ids.extend(found.iter().cloned()),
                Some(Err(error)) => _ = first_error.get_or_insert(error),
                None => {}
            }
        }
        match (ids.len(), first_error) {
            (0, Some(error)) => Err(unanswered_by_store(error)),
            (0 | 1, _) => Ok(ids.pop_first().unwrap_or_else(|| start.clone())),
            _ => {
                let known = |id: &ImageId| self.known_image(id, image);
                Err(Unanswered::ambiguous(&ids.iter().map(known).collect::<Vec<_>>()))
            }
        }
    }

    /// What is known of the image `id`, for messages. If its sources cannot be read, it has the name of `image`.
    fn known_image(&self, id: &ImageId, image: &Image) -> KnownImage {
        let known = |candidate| match candidate {
            Candidate::Index(path) => known_index(&path).ok(),
            Candidate::Stored(_, image) => Some(known_of(image.metadata().clone())),
            Candidate::DebugFile(file) => Some(file.known()),
            Candidate::Fetched(fetched) => Some(known_of(fetched.index.metadata().clone())),
        };
        self.candidates(id).flatten().find_map(known).unwrap_or_else(|| {
            let arch = image.arch.as_ref().map(|arch| arch.name.clone()).unwrap_or_default();
            KnownImage { name: image.name.clone(), id: id.clone(), arch }
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
