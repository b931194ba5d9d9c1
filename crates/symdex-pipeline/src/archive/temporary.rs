//! Temporary folders that are deleted however their process ends.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// How the names of these folders begin.
const PREFIX: &str = "symdex-unpack-";
/// The file in the folder that is locked as long as its process runs. No other folder has a file of this name.
const LOCK: &str = ".symdex-unpack.lock";
/// Its name until it is locked.
const UNLOCKED: &str = ".symdex-unpack.lock-new";
/// When a folder that is not locked yet counts as left by a killed process.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// The folders of this process.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn folders() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A private temporary folder. Dropping it deletes it.
///
/// A process that a signal ends drops nothing. It calls [`remove_all`](Self::remove_all) where it handles signals. What
/// a killed process leaves is deleted when another process makes such a folder in the same place. An empty folder, left
/// by a process that was killed before it locked it, is deleted when it is a day old.
#[derive(Debug)]
pub struct TemporaryFolder {
    /// Locked. `None` if the file system has no locks. Then other folders are not swept.
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
        let mut made = tempfile::Builder::new();
        made.prefix(PREFIX);
        #[cfg(unix)]
        made.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = made.tempdir_in(parent)?;
        folders.push(folder.path().to_owned());
        drop(folders);
        let lock = lock(folder.path());
        if lock.is_some() {
            sweep(parent, folder.path());
        }
        Ok(Self { lock, folder })
    }

    /// Where it is. It contains a lock file, whose name begins with a dot.
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
            let is_left = |_: &i32| delete(folder).is_err() && folder.exists();
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
        let _ = delete(self.folder.path());
        folders.retain(|path| path != self.folder.path());
    }
}

/// Locks `folder`. `None` if other processes could not see it.
fn lock(folder: &Path) -> Option<File> {
    let path = folder.join(UNLOCKED);
    let lock = File::create_new(&path).ok()?;
    lock.try_lock().ok()?;
    // Some file systems accept locks and ignore them.
    let is_seen = matches!(open(&path).ok()?.try_lock(), Err(TryLockError::WouldBlock));
    // It gets its name when it is locked: without this file, no process deletes the folder.
    (is_seen && fs::rename(&path, folder.join(LOCK)).is_ok()).then_some(lock)
}

/// Deletes the folders in `parent` whose processes have ended.
fn sweep(parent: &Path, own: &Path) {
    let Ok(own) = fs::symlink_metadata(own) else { return };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let folder = fs::symlink_metadata(&path).ok();
        let Some(folder) = folder.filter(|folder| folder.is_dir() && has_same_owner(folder, &own)) else {
            continue;
        };
        // What cannot be deleted is left to the next process.
        match open(&path.join(LOCK)) {
            Ok(lock) if lock.try_lock().is_ok() => _ = delete(&path),
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_abandoned(&folder) => {
                let _ = fs::remove_file(path.join(UNLOCKED));
                // This deletes only an empty folder.
                let _ = fs::remove_dir(&path);
            }
            _ => {}
        }
    }
}

/// Deletes `folder`. Its lock is deleted last: if this process is killed before, another one deletes the rest.
fn delete(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else if entry.file_name() != LOCK {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir_all(folder)
}

fn is_abandoned(folder: &Metadata) -> bool {
    let age = folder.modified().ok().and_then(|modified| modified.elapsed().ok());
    age.is_some_and(|age| age > ABANDONED_AFTER)
}

/// Opens a file to lock it. NFS locks a file only for a process that may write it.
fn open(path: &Path) -> io::Result<File> {
    // Opening a pipe would wait for its reader.
    if fs::symlink_metadata(path)?.is_file() {
        return File::options().write(true).open(path);
    }
    Err(io::ErrorKind::InvalidInput.into())
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

    /// Makes a folder in `root` with these files.
    fn folder(root: &TempDir, name: &str, files: &[&str]) -> PathBuf {
        let folder = root.path().join(name);
        fs::create_dir(&folder).expect("new");
        files.iter().for_each(|file| fs::write(folder.join(file), b"x").expect("written"));
        folder
    }

    #[test]
    fn folders_of_ended_processes_are_swept_and_those_in_use_are_not() {
        let root = tempfile::tempdir().expect("a folder");
        let left = folder(&root, "symdex-unpack-left", &[LOCK, "0", "1"]);
        fs::create_dir(left.join("children")).expect("new");
        fs::write(left.join("children/0"), b"x").expect("written");
        let other = folder(&root, "other", &[LOCK]);
        let starting = folder(&root, "symdex-unpack-starting", &[UNLOCKED]);
        let linked = folder(&root, "linked", &[LOCK]);
        #[cfg(unix)]
        std::os::unix::fs::symlink(&linked, root.path().join("symdex-unpack-link")).expect("a link");
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

    #[test]
    #[cfg(unix)]
    fn only_their_owner_may_read_folders() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().expect("a folder");
        let folder = TemporaryFolder::new_in(root.path()).expect("made");
        let mode = folder.path().metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    /// A server locks a file `lock` in its folder, which a user may call anything.
    #[test]
    fn folders_of_stopped_servers_stay() {
        let root = tempfile::tempdir().expect("a folder");
        let states =
            ["symdex-state", "symdex-unpack-state"].map(|name| folder(&root, name, &["lock", "upload"]));
        drop(TemporaryFolder::new_in(root.path()).expect("made"));
        for state in states {
            assert!(state.join("lock").exists() && state.join("upload").exists(), "{}", state.display());
        }
    }

    #[test]
    #[cfg(unix)]
    fn folders_that_were_never_locked_are_swept_after_a_day_if_they_are_empty() {
        let root = tempfile::tempdir().expect("a folder");
        let old = std::time::SystemTime::now() - ABANDONED_AFTER - Duration::from_secs(60);
        let folder = |name: &str, files: &[&str]| {
            let folder = folder(&root, name, files);
            File::open(&folder).and_then(|file| file.set_modified(old)).expect("a folder");
            folder
        };
        let swept = [folder("symdex-unpack-0", &[]), folder("symdex-unpack-1", &[UNLOCKED])];
        let kept = [folder("symdex-unpack-2", &["mine"]), folder("symdex-state", &[])];
        drop(TemporaryFolder::new_in(root.path()).expect("made"));
        assert!(swept.iter().all(|folder| !folder.exists()));
        assert!(kept.iter().all(|folder| folder.exists()) && kept[0].join("mine").exists());
    }
}
