//! Notices that a folder has vanished, for example because its volume was unmounted. The folder of such a store would
//! otherwise answer that it has no image, and the next index would make it anew on the disk below.
//!
//! A folder has vanished if nothing is at its path any more, or an empty folder that is another one than before, as the
//! mount point of a volume. Another folder that is not empty is the store from then on: a link may lead to it, or the
//! volume was mounted again. There is no marker file in the folder, because folders that are only read, or that
//! `symdex build -o` has written, would have none.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::IndexFolder;
use crate::error::Error;

/// The folder that was at a path last; `None` before there was one.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen(Arc<Mutex<Option<FolderId>>>);

impl Seen {
    /// Whether there was a folder.
    pub(super) fn is_known(&self) -> bool {
        self.lock().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Option<FolderId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells folders apart: the device and the number of the file. On systems other than Unix, all folders are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FolderId(u64, u64);

impl FolderId {
    fn at(path: &Path) -> io::Result<Self> {
        let metadata = path.metadata()?;
        if !metadata.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            Ok(Self(metadata.dev(), metadata.ino()))
        }
        #[cfg(not(unix))]
        Ok(Self(0, 0))
    }
}

impl IndexFolder {
    /// Checks that the folder has not vanished since it was there. A folder that was never there has not.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] with the cause `unavailable` if it has.
    pub(crate) fn check_not_vanished(&self) -> Result<(), Error> {
        let mut seen = self.seen.lock();
        let vanished = match (*seen, FolderId::at(&self.path)) {
            (None, Err(_)) => return Ok(()),
            (Some(old), Ok(new)) if old != new && is_empty(&self.path) => "an empty folder is in its place",
            (_, Ok(new)) => {
                *seen = Some(new);
                return Ok(());
            }
            (Some(_), Err(_)) => "it is gone",
        };
        let advice = "mount its volume again, or restart symdex if this is intended";
        Err(Error::Store {
            location: self.path.display().to_string(),
            action: "use the folder",
            reason: format!("{vanished}, although there were indexes before; {advice}"),
            is_unavailable: true,
        })
    }
}

fn is_empty(path: &Path) -> bool {
    path.read_dir().is_ok_and(|mut entries| entries.next().is_none())
}
