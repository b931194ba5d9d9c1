//! A folder of indexes: finding and opening them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use symdex::{Grade, ImageId, Index};

use crate::access::IndexAccess;
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::id_prefix::IdPrefix;
use crate::store::StoreUrl;

mod list;
mod seen;

pub use self::list::IndexList;
use self::list::SortedList;
use self::seen::Seen;

/// The extension of index files.
pub(crate) const EXTENSION: &str = "symdex";

/// The folder of a dSYM bundle for the indexes that its debug files carry. It is no part of a folder of indexes,
/// because the debug files may have changed since.
pub const EMBEDDED_FOLDER: &str = "Contents/Resources/symdex";

/// A use is recorded at most once in this time.
pub(crate) const USE_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// A folder of indexes, each named by its image's id: `0c37c502aba03641a08f84c794684f36.symdex`.
///
/// The folder is flat or fanned out. In a fanned out folder, each index is in a subfolder named by the first two digits
/// of its id. Both are found, even in one folder. [`searched`](Self::searched) finds indexes in other folders below it,
/// too.
///
/// A folder is a [`Store`](crate::Store). The modification time of an index file is its last use. It changes at most
/// once a day, and not if the reader may not write the file.
///
/// ```
/// use symdex_store::IndexFolder;
///
/// let folder = IndexFolder::new("/var/lib/symdex");
/// let id = "0c37c502aba03641a08f84c794684f36".parse()?;
/// match folder.index(&id)? {
///     Some(index) => println!("{}", index.metadata().image_name),
///     None => println!("no index of {id}"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct IndexFolder {
    path: PathBuf,
    /// The path as the URL of a store.
    pub(crate) url: StoreUrl,
    access: IndexAccess,
    pub(crate) fans_out: bool,
    /// Whether the folders below are searched, too. Nothing is then written.
    pub(crate) is_searched: bool,
    /// All indexes in the folder and below it, once they are needed.
    list: OnceLock<SortedList>,
    /// The folder that was there last.
    seen: Seen,
}

impl IndexFolder {
    /// The folder at `path`. Nothing is read or created until another method is called, so the folder need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let (url, access) = (StoreUrl::from(&*path), IndexAccess::default());
        let (list, seen) = (OnceLock::new(), Seen::default());
        Self { path, url, access, fans_out: false, is_searched: false, list, seen }
    }

    /// Sets how [`index`](Self::index) opens indexes. The default maps only files that nobody else can change.
    #[must_use]
    pub fn access(self, access: IndexAccess) -> Self {
        Self { access, ..self }
    }

    /// Sets that the first index of an id is written to the subfolder that is named by the first two digits of the id.
    /// Choose it for folders of more than a few thousand indexes. An index that is put again then counts as used.
    #[must_use]
    pub fn fan_out(mut self) -> Self {
        self.fans_out = true;
        self
    }

    /// The folder at `path` with all folders below it, or the single index at `path`, as a store that can only be read.
    /// If there are several indexes of an image, the best one that can be opened answers, and of equal ones the first.
    ///
    /// The folder itself is searched first. If it does not have an image with lines, all folders below it are listed,
    /// once: indexes that are added to them afterwards may be missing.
    pub fn searched(path: impl Into<PathBuf>) -> Self {
        Self { is_searched: true, ..Self::new(path) }
    }

    /// The path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file name of the index of `id`.
    #[must_use]
    pub fn file_name(id: &ImageId) -> String {
        format!("{id}.{EXTENSION}")
    }

    /// The path of the index of `id`; `None` if there is none. This checks two paths and does not list the folder,
    /// unless the folders below it are [searched](Self::searched) and they have not found one.
    ///
    /// # Errors
    ///
    /// [`Error::Unreadable`] if the folder cannot be searched, [`Error::Store`] if it was there before and has
    /// vanished.
    pub fn find(&self, id: &ImageId) -> Result<Option<PathBuf>, Error> {
        let found = self.find_all(id)?.into_iter().next().or_else(|| self.find_below(id).next());
        if found.is_none() || !self.seen.is_known() {
            self.check_not_vanished()?;
        }
        Ok(found)
    }

    /// The paths of the indexes of `id`: first the one in the folder itself, then the fanned out one.
    ///
    /// # Errors
    ///
    /// [`Error::Unreadable`] if the folder cannot be searched.
    pub fn find_all(&self, id: &ImageId) -> Result<Vec<PathBuf>, Error> {
        self.search(id).map_err(|source| Error::unreadable(&self.path, source))
    }

    /// The folder of the index of `id` if the folder is fanned out.
    pub(crate) fn subfolder(&self, id: &ImageId) -> PathBuf {
        self.path.join(id.to_string().get(..2).unwrap_or_default())
    }

    /// The path at which the first index of `id` is written.
    pub(crate) fn path_of_new(&self, id: &ImageId) -> PathBuf {
        let folder = if self.fans_out { self.subfolder(id) } else { self.path.clone() };
        folder.join(Self::file_name(id))
    }

    pub(crate) fn search(&self, id: &ImageId) -> io::Result<Vec<PathBuf>> {
        let name = Self::file_name(id);
        let mut found = Vec::new();
        for path in [self.path.join(&name), self.subfolder(id).join(&name)] {
            match path.try_exists() {
                Ok(true) => found.push(path),
                Ok(false) => {}
                // A file may have the name of the subfolder.
                Err(error) if error.kind() == io::ErrorKind::NotADirectory || !found.is_empty() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The path of the index whose id begins with `prefix`; `None` if there is none. The folder is listed, unless
    /// `prefix` is a whole id that [`find`](Self::find) finds.
    ///
    /// # Errors
    ///
    /// [`Error::AmbiguousId`] if several ids begin with `prefix`, [`Error::Unreadable`] if the folder cannot be
    /// searched.
    pub fn find_prefix(&self, prefix: &IdPrefix) -> Result<Option<PathBuf>, Error> {
        let whole = prefix.to_id().map(|id| self.find(&id)).transpose()?.flatten();
        if whole.is_some() {
            return Ok(whole);
        }
        let mut found = self.files().paths;
        found
            .retain(|path| path.file_stem().is_some_and(|stem| prefix.matches_text(&stem.to_string_lossy())));
        // One id may have several files in the folder and below it. All methods use the first of them.
        found.sort_by_key(|path| path.file_stem().map(ToOwned::to_owned));
        found.dedup_by(|a, b| a.file_stem() == b.file_stem());
        if found.len() <= 1 {
            return Ok(found.pop());
        }
        let stems = found.iter().filter_map(|path| path.file_stem());
        let ids = stems.map(|stem| stem.to_string_lossy().into_owned()).collect();
        Err(Error::AmbiguousId { folder: self.path.clone(), prefix: prefix.clone(), ids })
    }

    /// Opens the index of `id`; `None` if there is none. This is a use of the index, as
    /// [`Store::touch`](crate::Store::touch) records it.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if the index is damaged or of an unsupported version, [`Error::OtherImage`] if it is the index
    /// of another image, [`Error::Unreadable`] if the folder or the index cannot be read.
    pub fn index(&self, id: &ImageId) -> Result<Option<Index<IndexBytes>>, Error> {
        if self.is_searched {
            return self.best_index(id);
        }
        let Some((path, bytes)) = self.bytes(id)? else { return Ok(None) };
        use_index(&path, id, bytes).map(Some)
    }

    /// The best of all indexes of `id` that can be opened; without any, the first error.
    fn best_index(&self, id: &ImageId) -> Result<Option<Index<IndexBytes>>, Error> {
        let grade = |index: &Index<_>| index.metadata().grade();
        let mut best: Result<Option<Index<_>>, Error> = Ok(None);
        let below = std::iter::once_with(|| self.find_below(id)).flatten();
        for path in self.find_all(id)?.into_iter().chain(below) {
            let bytes = self.access.bytes(&path).map_err(|error| Error::index(&path, error));
            match (bytes.and_then(|bytes| use_index(&path, id, bytes)), &best) {
                (Ok(index), _) if grade(&index) == Grade::Lines => return Ok(Some(index)),
                (Ok(index), Ok(Some(known))) if grade(&index) <= grade(known) => {}
                (Err(_), Ok(Some(_)) | Err(_)) => {}
                (opened, _) => best = opened.map(Some),
            }
        }
        best
    }

    /// The path and the bytes of the index of `id`; `None` if there is none. This is not a use of the index.
    pub(crate) fn bytes(&self, id: &ImageId) -> Result<Option<(PathBuf, IndexBytes)>, Error> {
        let Some(path) = self.find(id)? else { return Ok(None) };
        match self.access.bytes(&path) {
            // Another process has removed it.
            Err(symdex::Error::Io(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::index(&path, error)),
            Ok(bytes) => Ok(Some((path, bytes))),
        }
    }
}

/// Records a use of the index file at `path`, so that the index does not seem to be unused: sets its modification time
/// to now, unless that was done during the last day. A reader need not be allowed to.
pub(crate) fn record_use(path: &Path) -> io::Result<()> {
    let last = path.metadata()?.modified()?;
    match SystemTime::now().duration_since(last) {
        Ok(age) if age >= USE_INTERVAL => set_now(path),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn set_now(path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};
    // Everybody who may write a file may set both of its times to now. Other times are for its owner.
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    Ok(utimensat(CWD, path, &times, AtFlags::empty())?)
}

#[cfg(not(unix))]
fn set_now(path: &Path) -> io::Result<()> {
    std::fs::File::options().write(true).open(path)?.set_modified(SystemTime::now())
}

/// Opens `bytes`, those of the index file at `path`, as the index of `id`.
fn use_index(path: &Path, id: &ImageId, bytes: IndexBytes) -> Result<Index<IndexBytes>, Error> {
    let index = Index::open(bytes).map_err(|error| Error::index(path, error))?;
    if index.id() != id {
        let (found, wanted) = (index.id().clone(), id.clone());
        return Err(Error::OtherImage { path: path.to_owned(), found, wanted });
    }
    // A reader need not be allowed to write.
    _ = record_use(path);
    Ok(index)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::test_indexes::index;

    #[test]
    fn an_index_is_opened_by_its_id() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = IndexFolder::new(root.path());
        let (seven, eight) = (index(7, 1, 1, "x"), index(8, 1, 1, "x"));
        assert!(folder.index(seven.id()).expect("readable").is_none());
        let path = folder.publish(&seven).expect("published").path;
        let opened = folder.index(seven.id()).expect("readable").expect("there");
        assert_eq!(opened.as_bytes(), seven.as_bytes());
        fs::copy(path, root.path().join(IndexFolder::file_name(eight.id()))).expect("copied");
        assert!(matches!(folder.index(eight.id()), Err(Error::OtherImage { .. })));
        fs::write(root.path().join(IndexFolder::file_name(eight.id())), b"symdex").expect("written");
        assert!(matches!(folder.index(eight.id()), Err(Error::Index { .. })));
    }

    #[test]
    fn an_index_is_found_by_the_first_digits_of_its_id() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = IndexFolder::new(root.path());
        for path in ["ab", "ab12"] {
            fs::create_dir(root.path().join(path)).expect("a folder");
        }
        for path in ["ab12cd.symdex", "ab/ab12cd.symdex", "ab12/ab34.symdex"] {
            fs::write(root.path().join(path), b"").expect("written");
        }
        let find = |digits: &str| folder.find_prefix(&digits.parse().expect("digits"));
        assert_eq!(find("AB12").expect("one id"), Some(root.path().join("ab12cd.symdex")));
        assert_eq!(find("ab34").expect("one id"), Some(root.path().join("ab12/ab34.symdex")));
        assert_eq!(find("ffff").expect("none"), None);
        fs::write(root.path().join("ab1200.symdex"), b"").expect("written");
        match find("ab12") {
            Err(Error::AmbiguousId { ids, .. }) => assert_eq!(ids, ["ab1200", "ab12cd"]),
            other => panic!("{other:?}"),
        }
    }
}
