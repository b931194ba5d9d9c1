//! A folder of indexes, with the folders below it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use symdex::ImageId;
use symdex_store::IndexFolder;

use crate::failure::Failure;

/// A folder that indexes are searched in.
pub(super) struct Folder {
    folder: IndexFolder,
    listed: OnceLock<Listed>,
}

/// All indexes in a folder and below it.
struct Listed {
    /// Sorted by file name. Those of one name are in the order of [`IndexFolder::list`].
    by_name: Vec<(OsString, PathBuf)>,
    is_cut: bool,
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { folder: IndexFolder::new(path), listed: OnceLock::new() }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The indexes of `id`: first those in the folder itself, then those in folders below it, which are listed only if a caller asks
    /// for more than the first.
    pub(super) fn indexes_of(
        &self,
        id: &ImageId,
    ) -> impl Iterator<Item = Result<PathBuf, Failure>> + use<'_> {
        let (here, error) = match self.folder.find_all(id) {
            Ok(here) => (here, None),
            Err(error) => (Vec::new(), Some(Failure::from(error))),
        };
        let name = OsString::from(IndexFolder::file_name(id));
        let known = here.clone();
        let below = std::iter::once_with(move || {
            let listed = &self.listed().by_name;
            let start = listed.partition_point(|(other, _)| *other < name);
            let of_name = listed[start..].iter().take_while(move |(other, _)| *other == name);
            of_name.map(|(_, path)| path.clone()).filter(move |path| !known.contains(path))
        });
        here.into_iter().map(Ok).chain(error.map(Err)).chain(below.flatten().map(Ok))
    }

    /// Every index.
    pub(super) fn all(&self) -> impl Iterator<Item = &Path> {
        self.listed().by_name.iter().map(|(_, path)| path.as_path())
    }

    /// Whether the search for an index has left something out, because there are so many folders or files.
    pub(super) fn is_cut(&self) -> bool {
        self.listed.get().is_some_and(|listed| listed.is_cut)
    }

    fn listed(&self) -> &Listed {
        self.listed.get_or_init(|| {
            let below = self.folder.list();
            let named = |path: PathBuf| Some((path.file_name()?.to_owned(), path));
            let mut by_name: Vec<_> = below.paths.into_iter().filter_map(named).collect();
            by_name.sort_by(|(a, _), (b, _)| a.cmp(b));
            Listed { by_name, is_cut: below.is_cut }
        })
    }
}
