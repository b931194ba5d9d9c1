//! The uploads and jobs of several servers, in a bucket that all of them use:
//!
//! | object | contents |
//! | --- | --- |
//! | `_uploads/<SHA-256>.<random>` | a whole upload, until its job has finished |
//! | `_jobs/<id>.json` | a job |

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use symdex_store::{Error, ObjectBody, Objects, StoreUrl};

use super::folder::is_sha256;
use super::job::{Job, id_of};
use super::store::{JobStore, JobStoreError, Record, UploadFile, Version};

const JOBS: &str = "_jobs";
const UPLOADS: &str = "_uploads";
/// How long the bucket may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// When an upload without a job counts as left by a server that was killed before it wrote the job.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// More than a job has.
const MAX_JOB: u64 = 64 << 20;

/// The bucket with the uploads and jobs of several servers.
#[derive(Debug)]
pub(crate) struct Bucket {
    objects: Objects,
}

impl Bucket {
    /// The bucket at `url`. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the environment has no valid configuration.
    pub(crate) fn open(url: &StoreUrl) -> Result<Self, Error> {
        Ok(Self { objects: Objects::open(url, TIMEOUT)? })
    }

    fn put(&self, job: &Job, over: Option<&Version>) -> Result<Option<Version>, JobStoreError> {
        // A job has only text and numbers, which are always JSON.
        let json = serde_json::to_vec(job).unwrap_or_default();
        let over = match over {
            Some(Version::Object(version)) => Some(version),
            Some(Version::File(_)) => return Ok(None),
            None => None,
        };
        Ok(self.objects.put(&job_key(&job.id), json, over)?.map(Version::Object))
    }

    fn delete(&self, key: &str) {
        if let Err(error) = self.objects.delete(key) {
            tracing::warn!(%error, "an object cannot be deleted; it is tried again later");
        }
    }
}

fn job_key(id: &str) -> String {
    format!("{JOBS}/{id}.json")
}

/// The id of the job of an upload.
fn job_of(upload: &str) -> Option<String> {
    let (sha256, _) = upload.split_once('.')?;
    is_sha256(sha256).then(|| id_of(sha256))
}

fn upload_key(upload: &str) -> String {
    format!("{UPLOADS}/{upload}")
}

fn read(object: ObjectBody) -> io::Result<Record> {
    let (version, mut json) = (Version::Object(object.version().clone()), Vec::new());
    object.take(MAX_JOB).read_to_end(&mut json)?;
    Ok(Record { job: serde_json::from_slice(&json)?, version })
}

impl JobStore for Bucket {
    fn is_shared(&self) -> bool {
        true
    }

    fn list(
        &self,
        known: &dyn Fn(&str) -> Option<Version>,
    ) -> Result<Vec<(String, Option<Record>)>, JobStoreError> {
        let mut records = Vec::new();
        for listed in self.objects.list(JOBS)? {
            let Some(id) = listed.name.strip_suffix(".json") else { continue };
            let is_known =
                matches!(known(id), Some(Version::Object(version)) if version.has_tag_of(&listed.version));
            match if is_known { Ok(None) } else { self.get(id) } {
                Ok(record) => records.push((id.to_owned(), record)),
                Err(JobStoreError::Disk(error)) => tracing::warn!(job = id, %error, "a job cannot be read"),
                Err(error) => return Err(error),
            }
        }
        Ok(records)
    }

    fn with_uploads(&self) -> Result<Vec<String>, JobStoreError> {
        Ok(self.objects.list(UPLOADS)?.iter().filter_map(|upload| job_of(&upload.name)).collect())
    }

    fn get(&self, id: &str) -> Result<Option<Record>, JobStoreError> {
        Ok(self.objects.get(&job_key(id))?.map(read).transpose()?)
    }

    fn submit(
        &self,
        received: &Path,
        job: &Job,
        over: Option<&Version>,
    ) -> Result<Option<Version>, JobStoreError> {
        self.objects.put_file(&upload_key(&job.upload), &mut File::open(received)?)?;
        let version = self.put(job, over)?;
        if version.is_some() {
            // A file that stays is deleted with its folder.
            let _ = std::fs::remove_file(received);
        } else if self.get(&job.id)?.is_none_or(|there| there.job.upload != job.upload) {
            // The record is not this one, as it were if an earlier attempt to write it had only seemed to fail.
            self.delete(&upload_key(&job.upload));
        }
        Ok(version)
    }

    fn write(&self, job: &Job, over: &Version) -> Result<Option<Version>, JobStoreError> {
        let version = self.put(job, Some(over))?;
        if version.is_some() && job.state.is_finished() {
            self.delete(&upload_key(&job.upload));
        }
        Ok(version)
    }

    fn remove(&self, id: &str) {
        self.delete(&job_key(id));
    }

    fn upload(&self, job: &Job, folder: &Path) -> Result<Option<UploadFile>, JobStoreError> {
        let Some(mut object) = self.objects.get(&upload_key(&job.upload))? else { return Ok(None) };
        let path = folder.join(format!("{}.upload", uuid::Uuid::new_v4().simple()));
        let mut file = File::create_new(&path)?;
        let upload = UploadFile { path, is_copy: true };
        io::copy(&mut object, &mut file)?;
        Ok(Some(upload))
    }

    fn sweep(&self, now: SystemTime) {
        let uploads = self.objects.list(UPLOADS).inspect_err(|error| {
            tracing::warn!(%error, "uploads cannot be listed");
        });
        for upload in uploads.unwrap_or_default() {
            let is_old = now.duration_since(upload.written).is_ok_and(|age| age > ABANDONED_AFTER);
            if is_old && let Some(id) = job_of(&upload.name) {
                let needs = |Record { job, .. }| job.upload == upload.name && !job.state.is_finished();
                match self.get(&id).map(|record| record.is_some_and(needs)) {
                    Ok(true) => {}
                    Ok(false) => self.delete(&upload_key(&upload.name)),
                    Err(error) => tracing::warn!(%error, "a job cannot be read"),
                }
            }
        }
    }
}
