//! The index files that stay open from one report to the next.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use symdex::{ImageId, Index};
use symdex_store::{Error, IndexAccess, IndexBytes, open_index};

/// How many files stay open at most.
const MOST: usize = 64;
/// How many bytes of files that are read, not mapped, stay in memory at most.
const MOST_READ: usize = 256 << 20;

/// Open index files, by their paths. A file that was replaced or changed since is opened again.
#[derive(Default)]
pub(crate) struct OpenFiles {
    open: Mutex<HashMap<PathBuf, OpenFile>>,
}

struct OpenFile {
    state: FileState,
    index: Arc<Index<IndexBytes>>,
}

/// What changes when a file is replaced or written.
#[derive(PartialEq, Eq)]
struct FileState {
    len: u64,
    modified: SystemTime,
    /// The device and the number of the file; `None` on systems where the standard library does not have them.
    number: Option<(u64, u64)>,
}

impl FileState {
    fn of(file: &Metadata) -> io::Result<Self> {
        #[cfg(unix)]
        let number = {
            use std::os::unix::fs::MetadataExt as _;
            Some((file.dev(), file.ino()))
        };
        #[cfg(not(unix))]
        let number = None;
        Ok(Self { len: file.len(), modified: file.modified()?, number })
    }
}

impl OpenFiles {
    /// The index file at `path`, which is checked to be the index of `id`.
    ///
    /// # Errors
    ///
    /// As [`open_index`].
    pub(crate) fn open(
        &self,
        path: &Path,
        id: &ImageId,
        access: IndexAccess,
    ) -> Result<Arc<Index<IndexBytes>>, Error> {
        // If the file is replaced before it is opened, its state differs at the next call, and it is opened again.
        let state = path.metadata().and_then(|file| FileState::of(&file)).ok();
        if let Some(state) = &state
            && let Some(known) = self.lock().get(path).filter(|known| known.state == *state)
            && known.index.id() == id
        {
            return Ok(Arc::clone(&known.index));
        }
        let index = Arc::new(open_index(path, id, access)?);
        if let Some(state) = state {
            self.keep(path, OpenFile { state, index: Arc::clone(&index) });
        }
        Ok(index)
    }

    /// Keeps `file` open. If there are too many files, the others are closed.
    fn keep(&self, path: &Path, file: OpenFile) {
        let mut open = self.lock();
        open.remove(path);
        let read: usize = open.values().chain([&file]).map(|file| file.bytes_read()).sum();
        if open.len() >= MOST || read > MOST_READ {
            open.clear();
        }
        if file.bytes_read() <= MOST_READ {
            open.insert(path.to_owned(), file);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, OpenFile>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenFile {
    /// The bytes in memory. Those that are mapped take none.
    fn bytes_read(&self) -> usize {
        if self.index.bytes().is_mapped() { 0 } else { self.index.as_bytes().len() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use symdex_testkit::indexes::{id, index};

    use super::*;

    #[test]
    fn a_file_stays_open_until_it_is_replaced() {
        let root = tempfile::tempdir().expect("a folder");
        let (path, beside) = (root.path().join("a.symdex"), root.path().join("b.symdex"));
        fs::write(&path, index(7, 1)).expect("written");
        let files = OpenFiles::default();
        let open = || files.open(&path, &id(7), IndexAccess::Map).expect("an index");
        let first = open();
        assert!(Arc::ptr_eq(&first, &open()));
        let other = files.open(&path, &id(8), IndexAccess::Map);
        assert!(matches!(other, Err(Error::OtherImage { .. })), "the id is checked again");

        fs::write(&beside, index(7, 2)).expect("written");
        fs::rename(&beside, &path).expect("replaced");
        assert_eq!(open().as_bytes(), index(7, 2));
        fs::remove_file(&path).expect("removed");
        assert!(files.open(&path, &id(7), IndexAccess::Map).is_err());
    }

    #[test]
    fn few_files_stay_open() {
        let root = tempfile::tempdir().expect("a folder");
        let files = OpenFiles::default();
        for number in 1..=200 {
            let path = root.path().join(format!("{number}.symdex"));
            fs::write(&path, index(number, 1)).expect("written");
            files.open(&path, &id(number), IndexAccess::Map).expect("an index");
            assert!((1..=MOST).contains(&files.lock().len()));
        }
    }
}
