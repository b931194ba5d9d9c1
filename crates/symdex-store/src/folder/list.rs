//! All indexes in a folder and in the folders below it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use symdex::{ImageId, Metadata};
use walkdir::{DirEntry, WalkDir};

use super::{EMBEDDED_FOLDER, EXTENSION, IndexFolder};

/// The depth to which [`IndexFolder::files`] descends, and the number of entries that it reads.
const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 1_000_000;

/// The indexes in a folder and in the folders below it.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexList {
    /// The paths of the index files. The indexes in a folder come before those in its subfolders. Both are sorted by
    /// name.
    pub paths: Vec<PathBuf>,
    /// Whether some indexes may be missing, because folders are nested more than 16 deep or have more than 1,000,000
    /// entries.
    pub is_cut: bool,
}

/// The files of an [`IndexList`] by name.
#[derive(Clone, Debug, Default)]
pub(super) struct SortedList {
    /// Sorted by file name. Indexes of one name are in the order of [`IndexList::paths`].
    by_name: Vec<(OsString, PathBuf)>,
    is_cut: bool,
}

impl SortedList {
    fn new(list: IndexList) -> Self {
        let named = |path: PathBuf| Some((path.file_name()?.to_owned(), path));
        let mut by_name: Vec<_> = list.paths.into_iter().filter_map(named).collect();
        by_name.sort_by(|(a, _), (b, _)| a.cmp(b));
        Self { by_name, is_cut: list.is_cut }
    }

    /// The files from the first one whose name is not less than `name`.
    fn from(&self, name: &OsStr) -> &[(OsString, PathBuf)] {
        &self.by_name[self.by_name.partition_point(|(other, _)| other.as_os_str() < name)..]
    }
}

/// Whether the entry is the folder of a bundle whose debug files carry indexes. Those of the folder itself are listed.
fn is_embedded(entry: &DirEntry) -> bool {
    entry.depth() != 0 && entry.path().ends_with(EMBEDDED_FOLDER)
}

impl IndexFolder {
    /// The indexes in the folder and in the folders below it, found by their extension.
    ///
    /// Folders that cannot be read count as empty. Symbolic links to folders are not followed, except for the folder
    /// itself.
    #[must_use]
    pub fn files(&self) -> IndexList {
        let mut list = IndexList::default();
        let walk = WalkDir::new(&self.path).max_depth(MAX_DEPTH);
        let walk = walk.sort_by_key(|entry| (entry.file_type().is_dir(), entry.file_name().to_owned()));
        let walk = walk.into_iter().filter_entry(|entry| !is_embedded(entry));
        for (count, entry) in walk.flatten().enumerate() {
            let is_dir = entry.file_type().is_dir();
            if count == MAX_ENTRIES || (is_dir && entry.depth() == MAX_DEPTH) {
                list.is_cut = true;
            }
            if count == MAX_ENTRIES {
                break;
            }
            if !is_dir && entry.path().extension().is_some_and(|extension| extension == EXTENSION) {
                list.paths.push(entry.into_path());
            }
        }
        list
    }

    /// The indexes of `id` that [`find_all`](Self::find_all) does not find, in the folders below a folder that is
    /// [searched](Self::searched).
    pub(crate) fn find_below(&self, id: &ImageId) -> impl Iterator<Item = PathBuf> + use<'_> {
        let name = OsString::from(Self::file_name(id));
        let named = self.listed().from(&name);
        let named = &named[..named.iter().take_while(|(other, _)| *other == name).count()];
        // Most images that are searched are in no folder. Their paths are not checked again.
        let here = if named.is_empty() { Vec::new() } else { self.find_all(id).unwrap_or_default() };
        named.iter().map(|(_, path)| path.clone()).filter(move |path| !here.contains(path))
    }

    /// The ids of the listed indexes that begin with `start`.
    pub(crate) fn ids_below(&self, start: &ImageId) -> impl Iterator<Item = ImageId> + use<'_> {
        let start = start.to_string();
        let files = self.listed().from(start.as_ref()).iter();
        let names = files.filter_map(|(name, _)| Path::new(name).file_stem()?.to_str());
        names.take_while(move |name| name.starts_with(&start)).filter_map(|name| name.parse().ok())
    }

    /// Every listed index with its file name, sorted by that.
    pub(crate) fn all_below(&self) -> &[(OsString, PathBuf)] {
        &self.listed().by_name
    }

    /// Whether the folder was listed and some indexes may be missing, as [`IndexList::is_cut`].
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.list.get().is_some_and(|list| list.is_cut)
    }

    /// All indexes, or the single one, if the folder is searched. They are listed once.
    fn listed(&self) -> &SortedList {
        self.list.get_or_init(|| match self.is_searched {
            true if !self.path.is_dir() => {
                let id = Metadata::read_file(&self.path).map(|metadata| metadata.id);
                let named = id.map(|id| (Self::file_name(&id).into(), self.path.clone()));
                SortedList { by_name: named.into_iter().collect(), is_cut: false }
            }
            true => SortedList::new(self.files()),
            false => SortedList::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn indexes_are_found_in_folders_of_folders() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, b"").expect("written");
        };
        for path in ["b.symdex", "1/2/c.symdex", "1/a.symdex", "07/07.symdex", "1/readme.txt"] {
            put(path);
        }
        let deep = format!("{}d.symdex", "x/".repeat(MAX_DEPTH));
        let shown = || {
            let IndexList { paths, is_cut } = IndexFolder::new(root.path()).files();
            let relative = paths.iter().map(|path| path.strip_prefix(root.path()).expect("below").display());
            (relative.map(|path| path.to_string()).collect::<Vec<_>>().join(" "), is_cut)
        };
        let expected = "b.symdex 07/07.symdex 1/a.symdex 1/2/c.symdex".to_owned();
        assert_eq!(shown(), (expected.clone(), false));
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.path(), root.path().join("1/loop")).expect("linked");
        assert_eq!(shown(), (expected.clone(), false));
        put(&deep);
        assert_eq!(shown(), (expected, true));
        assert_eq!(IndexFolder::new(root.path().join("none")).files(), IndexList::default());
    }

    #[test]
    fn folders_below_are_listed_once_and_only_if_they_are_asked_for() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = IndexFolder::searched(root.path());
        let id: ImageId = "abcdef00".parse().expect("an id");
        let name = IndexFolder::file_name(&id);
        let put = |below: &str| {
            fs::create_dir_all(root.path().join(below)).expect("folders");
            let path = root.path().join(below).join(&name);
            fs::write(&path, b"").expect("written");
            path
        };
        let below = || folder.find_below(&id).collect::<Vec<_>>();
        let (flat, fanned, first) = (put(""), put("ab"), put("x/y"));
        assert_eq!(folder.find_all(&id).expect("readable"), [flat, fanned]);
        let second = put("z");
        assert_eq!(below(), [first, second], "nothing was listed before");
        put("later");
        assert_eq!(below().len(), 2, "it was not listed again");
        assert_eq!(folder.ids_below(&"abcd".parse().expect("digits")).count(), 4, "one for each listed file");
        assert_eq!(folder.all_below().len(), 4);
    }
}
