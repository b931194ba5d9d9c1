//! A folder of indexes that is listed once.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use symdex::ImageId;

use symdex_store::Error;
use symdex_store::IndexFolder;

/// A folder that is searched for indexes, with the folders below it.
pub(crate) struct ListedFolder {
    folder: IndexFolder,
    list: OnceLock<SortedList>,
}

/// All indexes in a folder and below it.
struct SortedList {
    /// Sorted by file name. Indexes of one name are in the order of [`IndexFolder::list`].
    by_name: Vec<(OsString, PathBuf)>,
    is_cut: bool,
}

impl ListedFolder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { folder: IndexFolder::new(path), list: OnceLock::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The indexes of `id` in the folder itself.
    pub(crate) fn here(&self, id: &ImageId) -> Result<Vec<PathBuf>, Error> {
        self.folder.find_all(id)
    }

    /// The other indexes of `id`, in the folders below it. They are listed first.
    pub(crate) fn below(&self, id: &ImageId) -> impl Iterator<Item = PathBuf> + use<'_> {
        let name = OsString::from(IndexFolder::file_name(id));
        let here = self.here(id).unwrap_or_default();
        let by_name = &self.list().by_name;
        let start = by_name.partition_point(|(other, _)| *other < name);
        let of_name = by_name[start..].iter().take_while(move |(other, _)| *other == name);
        of_name.map(|(_, path)| path.clone()).filter(move |path| !here.contains(path))
    }

    /// The ids of the indexes that begin with `start`.
    pub(crate) fn ids_from(&self, start: &ImageId) -> impl Iterator<Item = ImageId> + use<'_> {
        let start = start.to_string();
        let by_name = &self.list().by_name;
        let from = by_name.partition_point(|(name, _)| name.as_os_str() < OsStr::new(&start));
        let names = by_name[from..].iter().filter_map(|(name, _)| Path::new(name).file_stem()?.to_str());
        names.take_while(move |name| name.starts_with(&start)).filter_map(|name| name.parse().ok())
    }

    /// Every index in the folder and below it.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Path> {
        self.list().by_name.iter().map(|(_, path)| path.as_path())
    }

    /// Whether the folder was listed and the list is not complete.
    pub(crate) fn is_cut(&self) -> bool {
        self.list.get().is_some_and(|list| list.is_cut)
    }

    fn list(&self) -> &SortedList {
        self.list.get_or_init(|| {
            let list = self.folder.list();
            let named = |path: PathBuf| Some((path.file_name()?.to_owned(), path));
            let mut by_name: Vec<_> = list.paths.into_iter().filter_map(named).collect();
            by_name.sort_by(|(a, _), (b, _)| a.cmp(b));
            SortedList { by_name, is_cut: list.is_cut }
        })
    }
}
