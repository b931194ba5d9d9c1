//! The folder with the uploads and jobs of a server:
//!
//! | path | contents |
//! | --- | --- |
//! | `lock` | locked by the server that uses the folder |
//! | `uploads/<SHA-256>` | a whole upload, until its job has finished |
//! | `uploads/<SHA-256>.part` | the first part of an upload that can be resumed |
//! | `uploads/<number>.new` | an upload that is being received and cannot be resumed |
//! | `jobs/<id>.json` | a job |

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use symdex_store::{Durability, create_private_folder};

use super::job::Job;

/// How long a partial upload is kept.
const KEEP_PARTS: Duration = Duration::from_secs(24 * 60 * 60);

/// The folder with the uploads and jobs of this server.
#[derive(Debug)]
pub(crate) struct StateFolder {
    uploads: PathBuf,
    jobs: PathBuf,
    /// Unlocked on drop, and when the process ends.
    _lock: File,
}

impl StateFolder {
    /// Opens the folder at `root`, and makes it if it does not exist. Deletes the temporary files of a killed server.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if it cannot be made or written, or if another server uses it.
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let (uploads, jobs) = (root.join("uploads"), root.join("jobs"));
        for folder in [&uploads, &jobs] {
            create_private_folder(folder)?;
            #[cfg(unix)]
            make_private(folder)?;
        }
        let lock = File::options().create(true).truncate(false).write(true).open(root.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            // Some file systems of networks have no locks.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other(
                    "another server uses it; give each server its own with `state`",
                ));
            }
        }
        for path in paths_in(&uploads)?.filter(|path| has_extension(path, "new")) {
            let _ = fs::remove_file(path);
        }
        Ok(Self { uploads, jobs, _lock: lock })
    }

    /// The whole upload with this SHA-256.
    pub(crate) fn upload(&self, sha256: &str) -> PathBuf {
        self.uploads.join(sha256)
    }

    /// The first part of the upload with this SHA-256.
    pub(crate) fn part(&self, sha256: &str) -> PathBuf {
        self.uploads.join(format!("{sha256}.part"))
    }

    /// Returns a path for an upload with an unknown SHA-256.
    pub(crate) fn new_upload(&self) -> PathBuf {
        self.uploads.join(format!("{}.new", uuid::Uuid::new_v4().simple()))
    }

    /// Makes the file at `received` the whole upload with this SHA-256. Its contents must be synced.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if it cannot be renamed.
    pub(super) fn keep(&self, received: &Path, sha256: &str) -> io::Result<()> {
        fs::rename(received, self.upload(sha256))?;
        // The new name is durable once the folder is synced. Windows cannot open folders and does not need this.
        if cfg!(unix) { File::open(&self.uploads)?.sync_all() } else { Ok(()) }
    }

    /// Writes `job` over its old state.
    ///
    /// # Errors
    ///
    /// [`symdex_store::Error`] if it cannot be written. The old state is kept then.
    pub(super) fn save(&self, job: &Job) -> Result<(), symdex_store::Error> {
        // A job has only text and numbers, which are always JSON.
        let json = serde_json::to_vec(job).unwrap_or_default();
        symdex_store::replace_file(&self.path(&job.id), &json[..], Durability::Synced)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.jobs.join(format!("{id}.json"))
    }

    /// Returns all jobs, the oldest first. Unreadable files are logged and kept.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the folder cannot be read.
    pub(super) fn jobs(&self) -> io::Result<Vec<Job>> {
        let mut jobs = Vec::new();
        for path in paths_in(&self.jobs)?.filter(|path| has_extension(path, "json")) {
            let read = fs::read(&path).and_then(|json| Ok(serde_json::from_slice::<Job>(&json)?));
            match read {
                Ok(job) if self.path(&job.id) == path => jobs.push(job),
                Ok(_) => {
                    tracing::warn!(path = %path.display(), "the file of a job has another name than its id")
                }
                Err(error) => tracing::warn!(path = %path.display(), %error, "a job cannot be read"),
            }
        }
        jobs.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(jobs)
    }

    /// The SHA-256 of each whole upload.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the folder cannot be read.
    pub(super) fn whole_uploads(&self) -> io::Result<Vec<String>> {
        let names = paths_in(&self.uploads)?.filter_map(|path| path.file_name()?.to_str().map(str::to_owned));
        Ok(names.filter(|name| is_sha256(name)).collect())
    }

    /// Deletes an upload. If this fails, the next start of the server deletes it.
    pub(super) fn remove_upload(&self, sha256: &str) {
        let _ = fs::remove_file(self.upload(sha256));
    }

    /// Deletes a job.
    pub(super) fn remove_job(&self, id: &str) {
        let _ = fs::remove_file(self.path(id));
    }

    /// Deletes partial uploads that were not continued for a day.
    pub(super) fn sweep_parts(&self, now: SystemTime) {
        let is_old = |path: &PathBuf| {
            let modified = path.metadata().and_then(|metadata| metadata.modified());
            let age = modified.ok().and_then(|modified| now.duration_since(modified).ok());
            has_extension(path, "part") && age.is_some_and(|age| age > KEEP_PARTS)
        };
        for path in paths_in(&self.uploads).into_iter().flatten().filter(is_old) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Takes the permissions of others from a folder that exists.
#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;

    let mut permissions = folder.metadata()?.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(0o700);
        if let Err(error) = fs::set_permissions(folder, permissions) {
            tracing::warn!(path = %folder.display(), %error, "other users may read this folder");
        }
    }
    Ok(())
}

fn paths_in(folder: &Path) -> io::Result<impl Iterator<Item = PathBuf> + use<>> {
    Ok(fs::read_dir(folder)?.flatten().map(|entry| entry.path()))
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// Returns whether `text` is a SHA-256: 64 lower-case hexadecimal digits.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_server_and_loses_only_temporary_files() {
        let root = tempfile::tempdir().expect("a folder");
        let state = StateFolder::open(root.path()).expect("made");
        let busy = StateFolder::open(root.path()).expect_err("locked").to_string();
        assert!(busy.contains("`state`"), "{busy}");
        let sha256 = "ab".repeat(32);
        state.save(&Job::new(&sha256, 3, "a")).expect("written");
        for path in [state.new_upload(), state.part(&sha256), state.upload(&sha256)] {
            fs::write(path, "abc").expect("written");
        }
        fs::write(root.path().join("jobs/other.json"), "{").expect("written");
        drop(state);
        let state = StateFolder::open(root.path()).expect("free again");
        assert_eq!(state.jobs().expect("readable").len(), 1);
        assert_eq!(state.whole_uploads().expect("readable"), [&*sha256]);
        assert_eq!(paths_in(&state.uploads).expect("readable").count(), 2);
        assert!(root.path().join("jobs/other.json").exists(), "nothing is lost");
    }

    #[test]
    fn parts_are_deleted_after_a_day() {
        let root = tempfile::tempdir().expect("a folder");
        let state = StateFolder::open(root.path()).expect("made");
        let part = state.part(&"ab".repeat(32));
        fs::write(&part, "abc").expect("written");
        state.sweep_parts(SystemTime::now());
        assert!(part.exists());
        state.sweep_parts(SystemTime::now() + KEEP_PARTS + Duration::from_secs(60));
        assert!(!part.exists());
    }
}
