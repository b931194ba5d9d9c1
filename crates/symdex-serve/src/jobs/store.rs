//! Where the records of jobs and their uploads are kept.
//!
//! A record is written only over the version that its writer has read. The states of a job are therefore one path,
//! however many servers and threads know it:
//!
//! ```text
//! submit -> queued -> running (attempt, lease) -> done | failed | unpublished
//!             ^            | stop, lost server        |
//!             +------------+-------- resume ----------+
//! ```

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use symdex_store::ObjectVersion;

use super::job::Job;
use super::receive::of_disk;
use crate::problem::{Problem, ProblemKind};

/// The version of a record. A new one is different from all former versions of the record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Version {
    /// Counted up.
    File(u64),
    Object(ObjectVersion),
}

impl Version {
    /// Whether this may be the version of a newer record than `other`.
    pub(crate) fn supersedes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(one), Self::File(other)) => one > other,
            // The next list repairs what an older one has shown.
            _ => self != other,
        }
    }
}

/// A job as its store has it.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) job: Job,
    pub(crate) version: Version,
}

/// The file of an upload. A copy is deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct UploadFile {
    pub(crate) path: PathBuf,
    pub(crate) is_copy: bool,
}

impl Drop for UploadFile {
    fn drop(&mut self) {
        if self.is_copy {
            // If it cannot be deleted now, it is deleted with its folder.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Why a job or an upload cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobStoreError {
    #[error("cannot keep an upload: {0}")]
    Disk(#[from] io::Error),
    #[error("cannot write a job: {0}")]
    Store(#[from] symdex_store::Error),
}

impl From<JobStoreError> for Problem {
    fn from(error: JobStoreError) -> Self {
        match error {
            JobStoreError::Disk(error) => of_disk(error),
            JobStoreError::Store(symdex_store::Error::Store { .. }) => {
                tracing::error!(%error, "the store of jobs cannot be used");
                Self::new(ProblemKind::StoreFailed, "the store of jobs cannot be reached")
            }
            JobStoreError::Store(_) => {
                tracing::error!(%error, "a job cannot be written");
                Self::new(ProblemKind::Internal, "the job cannot be written on the server")
            }
        }
    }
}

/// The records of jobs, and their uploads.
///
/// A write returns the new version of the record, or `None` if the record is no longer the one of the stated version.
/// Nothing has changed then. All methods block.
pub(crate) trait JobStore: fmt::Debug + Send + Sync {
    /// Whether several servers use it at the same time.
    fn is_shared(&self) -> bool;

    /// The records in no order. Records whose version is equal to the one that `known` returns for their id are `None`.
    fn list(
        &self,
        known: &dyn Fn(&str) -> Option<Version>,
    ) -> Result<Vec<(String, Option<Record>)>, JobStoreError>;

    /// The ids of jobs whose uploads are in the store: all that are unfinished, and perhaps others. A shared store
    /// lists them faster than all jobs.
    fn with_uploads(&self) -> Result<Vec<String>, JobStoreError> {
        Ok(Vec::new())
    }

    fn get(&self, id: &str) -> Result<Option<Record>, JobStoreError>;

    /// Makes `job` the job of the upload at `received`, whose contents are synced. The file is gone afterwards. `over`
    /// is the version of the record that it takes the place of.
    fn submit(
        &self,
        received: &Path,
        job: &Job,
        over: Option<&Version>,
    ) -> Result<Option<Version>, JobStoreError>;

    /// Writes a job. If it has finished, its upload is deleted.
    fn write(&self, job: &Job, over: &Version) -> Result<Option<Version>, JobStoreError>;

    /// Deletes the record of a job. If this fails, it is deleted later.
    fn remove(&self, id: &str);

    /// The file of the upload of `job`, which may be a copy in `folder`. `None` if it is gone.
    fn upload(&self, job: &Job, folder: &Path) -> Result<Option<UploadFile>, JobStoreError>;

    /// Deletes uploads that no job needs.
    fn sweep(&self, now: SystemTime);
}
