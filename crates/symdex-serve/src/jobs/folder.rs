//! The folder with the uploads and jobs of one server:
//!
//! | path | contents |
//! | --- | --- |
//! | `lock` | locked by the server that uses the folder |
//! | `uploads/<SHA-256>` | a whole upload, until its job has finished |
//! | `uploads/<SHA-256>.part`, `.new` | uploads that are being received ([`Uploads`](super::Uploads)) |
//! | `jobs/<id>.json` | a job |

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use symdex_store::{Durability, create_private_folder};

use super::job::{Job, id_of};
use super::store::{JobStore, JobStoreError, Record, UploadFile, Version};

/// The folder with the uploads and jobs of this server.
#[derive(Debug)]
pub(crate) struct StateFolder {
    uploads: PathBuf,
    jobs: PathBuf,
    /// The versions of the records. Held while files are written or deleted.
    versions: Mutex<Versions>,
    /// Unlocked on drop, and when the process ends.
    _lock: File,
}

#[derive(Debug, Default)]
struct Versions {
    of: HashMap<String, Version>,
    last: u64,
}

impl StateFolder {
    /// Opens the folder at `root`, and makes it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if it cannot be made, read or written, or if another server uses it.
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
        let folder = Self { uploads, jobs, versions: Mutex::default(), _lock: lock };
        folder.tidy()?;
        Ok(folder)
    }

    /// The folder with the uploads.
    pub(crate) fn uploads(&self) -> &Path {
        &self.uploads
    }

    /// Reads the versions of all records. Deletes the uploads of finished jobs. An upload without a job was not
    /// accepted: it is a part that has all bytes.
    fn tidy(&self) -> io::Result<()> {
        let mut versions = self.lock();
        let mut has_finished = HashMap::new();
        for path in paths_in(&self.jobs)?.filter(|path| path.extension().is_some_and(|found| found == "json"))
        {
            match fs::read(&path).and_then(|json| Ok(serde_json::from_slice::<Job>(&json)?)) {
                Ok(job) if self.path(&job.id) == path => {
                    versions.next(&job.id);
                    has_finished.insert(job.id, job.state.is_finished());
                }
                Ok(_) => {
                    tracing::warn!(path = %path.display(), "the file of a job has another name than its id")
                }
                Err(error) => tracing::warn!(path = %path.display(), %error, "a job cannot be read"),
            }
        }
        for path in paths_in(&self.uploads)? {
            let Some(sha256) = path.file_name().and_then(|name| name.to_str()).filter(|name| is_sha256(name))
            else {
                continue;
            };
            match has_finished.get(&id_of(sha256)) {
                Some(false) => {}
                Some(true) => _ = fs::remove_file(&path),
                None => fs::rename(&path, path.with_added_extension("part"))?,
            }
        }
        Ok(())
    }

    fn path(&self, id: &str) -> PathBuf {
        self.jobs.join(format!("{id}.json"))
    }

    fn save(&self, job: &Job, versions: &mut Versions) -> Result<Version, JobStoreError> {
        // A job has only text and numbers, which are always JSON.
        let json = serde_json::to_vec(job).unwrap_or_default();
        symdex_store::replace_file(&self.path(&job.id), &json[..], Durability::Synced)?;
        Ok(versions.next(&job.id))
    }

    fn lock(&self) -> MutexGuard<'_, Versions> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Versions {
    fn next(&mut self, id: &str) -> Version {
        self.last += 1;
        self.of.insert(id.to_owned(), Version::File(self.last));
        Version::File(self.last)
    }
}

impl JobStore for StateFolder {
    fn is_shared(&self) -> bool {
        false
    }

    fn list(
        &self,
        known: &dyn Fn(&str) -> Option<Version>,
    ) -> Result<Vec<(String, Option<Record>)>, JobStoreError> {
        let versions: Vec<_> =
            self.lock().of.iter().map(|(id, version)| (id.clone(), version.clone())).collect();
        let record = |(id, version): (String, Version)| {
            let changed = known(&id) != Some(version);
            Ok((id.clone(), if changed { self.get(&id)? } else { None }))
        };
        versions.into_iter().map(record).collect()
    }

    fn get(&self, id: &str) -> Result<Option<Record>, JobStoreError> {
        let versions = self.lock();
        let Some(version) = versions.of.get(id).cloned() else { return Ok(None) };
        let job = serde_json::from_slice(&fs::read(self.path(id))?).map_err(io::Error::from)?;
        Ok(Some(Record { job, version }))
    }

    fn submit(
        &self,
        received: &Path,
        job: &Job,
        over: Option<&Version>,
    ) -> Result<Option<Version>, JobStoreError> {
        let mut versions = self.lock();
        if versions.of.get(&job.id) != over {
            return Ok(None);
        }
        let upload = self.uploads.join(&job.sha256);
        fs::rename(received, &upload)?;
        // The new name is durable once the folder is synced. Windows cannot open folders and does not need this.
        if cfg!(unix) {
            File::open(&self.uploads)?.sync_all()?;
        }
        let saved = self.save(job, &mut versions);
        if saved.is_err() {
            // An upload that stays is a part when the server starts again.
            let _ = fs::remove_file(&upload);
        }
        saved.map(Some)
    }

    fn write(&self, job: &Job, over: &Version) -> Result<Option<Version>, JobStoreError> {
        let mut versions = self.lock();
        if versions.of.get(&job.id) != Some(over) {
            return Ok(None);
        }
        let saved = self.save(job, &mut versions);
        if !job.state.is_finished() {
            return saved.map(Some);
        }
        let _ = fs::remove_file(self.uploads.join(&job.sha256));
        // The upload may have taken the space that the job needs.
        saved.or_else(|_| self.save(job, &mut versions)).map(Some)
    }

    fn remove(&self, id: &str) {
        let mut versions = self.lock();
        let _ = fs::remove_file(self.path(id));
        versions.of.remove(id);
    }

    fn upload(&self, job: &Job, _: &Path) -> Result<Option<UploadFile>, JobStoreError> {
        let path = self.uploads.join(&job.sha256);
        Ok(path.try_exists()?.then_some(UploadFile { path, is_copy: false }))
    }

    fn sweep(&self, _: SystemTime) {}
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

/// Returns whether `text` is a SHA-256: 64 lower-case hexadecimal digits.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_server_and_an_upload_without_a_job_is_a_part() {
        let root = tempfile::tempdir().expect("a folder");
        let state = StateFolder::open(root.path()).expect("made");
        let busy = StateFolder::open(root.path()).expect_err("locked").to_string();
        assert!(busy.contains("`state`"), "{busy}");
        let received = root.path().join("received");
        let submit = |digits: &str| {
            fs::write(&received, "abc").expect("written");
            let job = Job::new(&digits.repeat(32), 3, "a");
            let version = state.submit(&received, &job, None).expect("written").expect("new");
            (job, version)
        };
        let ((waits, _), (mut done, version)) = (submit("aa"), submit("bb"));
        done.fail("for a test".to_owned());
        fs::write(state.uploads.join("cc".repeat(32)), "abc").expect("written");
        fs::write(root.path().join("jobs/other.json"), "{").expect("written");
        assert!(state.write(&done, &version).expect("written").is_some());
        // As if the server had been killed before.
        fs::write(state.uploads.join(&done.sha256), "abc").expect("written");
        drop(state);
        let state = StateFolder::open(root.path()).expect("free again");
        assert_eq!(state.list(&|_| None).expect("readable").len(), 2);
        let mut names: Vec<_> = paths_in(&state.uploads).expect("readable").collect();
        names.sort();
        assert_eq!(names, [state.uploads.join(waits.sha256), state.uploads.join("cc".repeat(32) + ".part")]);
        assert!(root.path().join("jobs/other.json").exists(), "nothing is lost");
    }

    #[test]
    fn a_record_is_written_only_over_the_version_that_was_read() {
        let root = tempfile::tempdir().expect("a folder");
        let state = StateFolder::open(root.path()).expect("made");
        let (job, received) = (Job::new(&"ab".repeat(32), 3, "a"), root.path().join("received"));
        fs::write(&received, "abc").expect("written");
        let first = state.submit(&received, &job, None).expect("written").expect("it is new");
        fs::write(&received, "abc").expect("written");
        assert_eq!(state.submit(&received, &job, None).expect("readable"), None, "it exists");
        assert!(received.exists());
        let second = state.write(&job, &first).expect("written").expect("unchanged");
        assert_eq!(state.write(&job, &first).expect("readable"), None);
        let mut done = job.clone();
        done.fail("for a test".to_owned());
        assert_eq!(state.write(&done, &first).expect("readable"), None);
        let has_upload = || state.upload(&job, root.path()).expect("readable").is_some();
        assert!(has_upload());
        assert!(state.write(&done, &second).expect("written").is_some());
        assert!(!has_upload());
    }
}
