//! Temporary folders that are deleted however their process ends.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// How the names of these folders begin.
const PREFIX: &str = "symdex-";
/// The file in the folder that is locked as long as its process runs.
const LOCK: &str = "lock";
/// Its name until it is locked.
const UNLOCKED: &str = "lock-new";

/// The folders of this process.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A private temporary folder. Dropping it deletes it.
///
/// A process that a signal ends drops nothing. It calls [`remove_all`](Self::remove_all) where it handles signals. What
/// a killed process leaves is deleted when another process makes such a folder in the same place.
#[derive(Debug)]
pub struct TemporaryFolder {
    /// Locked. `None` if the file system has no locks: then nothing is known of other processes' folders.
    lock: Option<File>,
    folder: TempDir,
}

impl TemporaryFolder {
    /// Makes a folder in `parent`, and deletes those that processes of the same user have left there.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if it cannot be made.
    pub fn new_in(parent: &Path) -> io::Result<Self> {
        // While this is held, no other thread deletes the new folder before it is in the list.
        let mut folders = folders();
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        folders.push(folder.path().to_owned());
        drop(folders);
        let lock = lock(folder.path());
        if lock.is_some() {
            sweep(parent, folder.path());
        }
        Ok(Self { lock, folder })
    }

    /// Where it is. It has a file of its own, called `lock`.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Deletes all folders of this process, and calls `end`, which ends the process. Until then, threads that make
    /// or drop such folders wait.
    pub fn remove_all(end: impl FnOnce()) {
        let folders = folders();
        for folder in &*folders {
            // Other threads may still write files to it.
            let is_left = |_: &i32| fs::remove_dir_all(folder).is_err() && folder.exists();
            (0..10).take_while(is_left).for_each(|_| thread::sleep(Duration::from_millis(5)));
        }
        end();
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let mut folders = folders();
        // Some systems delete no open file.
        drop(self.lock.take());
        // What cannot be deleted now is tried again when the fields are dropped.
        let _ = fs::remove_dir_all(self.folder.path());
        folders.retain(|path| path != self.folder.path());
    }
}

/// Locks `folder`. `None` if other processes could not see it.
fn lock(folder: &Path) -> Option<File> {
    let path = folder.join(UNLOCKED);
    let lock = File::create_new(&path).ok()?;
    lock.try_lock().ok()?;
    // Some file systems accept locks and ignore them.
    let is_seen = matches!(open(&path)?.try_lock(), Err(TryLockError::WouldBlock));
    // It gets its name when it is locked: without this file, no process deletes the folder.
    (is_seen && fs::rename(&path, folder.join(LOCK)).is_ok()).then_some(lock)
}

/// Deletes the folders in `parent` whose processes have ended.
fn sweep(parent: &Path, own: &Path) {
    let Ok(own) = fs::symlink_metadata(own) else { return };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && fs::symlink_metadata(&path)
                .is_ok_and(|folder| folder.is_dir() && has_same_owner(&folder, &own))
            && let Some(lock) = open(&path.join(LOCK))
            && lock.try_lock().is_ok()
        {
            // What cannot be deleted is left to the next process.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

/// Opens a file to lock it. NFS locks a file only for a process that may write it.
fn open(path: &Path) -> Option<File> {
    // Opening a pipe would wait for its reader.
    fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
    File::options().write(true).open(path).ok()
}

#[cfg(unix)]
fn has_same_owner(folder: &Metadata, own: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    folder.uid() == own.uid()
}

/// Elsewhere, each user has a folder for temporary files.
#[cfg(not(unix))]
fn has_same_owner(_: &Metadata, _: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_ended_processes_are_swept_and_those_in_use_are_not() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = |name: &str, files: &[&str]| {
            let folder = root.path().join(name);
            fs::create_dir(&folder).expect("new");
            files.iter().for_each(|file| fs::write(folder.join(file), b"x").expect("written"));
            folder
        };
        let (left, other) = (folder("symdex-left", &[LOCK, "0", "1"]), folder("other", &[LOCK]));
        let starting = folder("symdex-starting", &[UNLOCKED]);
        let linked = folder("linked", &[LOCK]);
        #[cfg(unix)]
        std::os::unix::fs::symlink(&linked, root.path().join("symdex-link")).expect("a link");
        let first = TemporaryFolder::new_in(root.path()).expect("made");
        fs::write(first.path().join("0"), b"x").expect("written");
        let second = TemporaryFolder::new_in(root.path()).expect("made");
        assert!(!left.exists());
        for folder in [&other, &starting, &linked, first.path(), second.path()] {
            assert!(folder.exists(), "{}", folder.display());
        }
        let path = first.path().to_owned();
        drop(first);
        assert!(!path.exists() && second.path().exists());
    }
}
