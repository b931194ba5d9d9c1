//! A job: an upload, and what is built of it.

use std::fmt;
use std::net::IpAddr;
use std::ops::Not;
use std::time::SystemTime;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use symdex::Cause;
use symdex_pipeline::{Failure, Indexes, PublishedIndex};
use symdex_store::{Provenance, rfc3339};
use utoipa::ToSchema;

use super::published::{BuildResults, Listing, MAX_FAILURES, MAX_LISTED, short, shortened};

/// The build of an upload.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub(crate) struct Job {
    /// The first 32 digits of the SHA-256 of the upload, so that the same upload is the same job.
    pub(crate) id: String,
    /// The name of the upload.
    pub(crate) name: String,
    /// The SHA-256 of the upload.
    pub(crate) sha256: String,
    /// The name of the upload in a bucket of jobs. No other job has it, not even of the same file.
    #[serde(default)]
    pub(crate) upload: String,
    /// The size of the upload, in bytes.
    pub(crate) size: u64,
    /// The name of the token that sent the upload, if the server has tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// The address that the upload came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) client: Option<IpAddr>,
    /// Whether its indexes replace different ones.
    #[serde(default)]
    pub(crate) replace: bool,
    /// Whether indexes that are in it are taken. They are checked, and not built.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub(crate) indexes: bool,
    /// The image whose index the upload is; null if it may have debug files and several images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<String>,
    pub(crate) state: JobState,
    /// When the upload was received.
    #[schema(value_type = String, example = "2026-11-22T12:00:00Z")]
    pub(crate) created: Timestamp,
    /// When the last build began.
    #[schema(value_type = Option<String>)]
    pub(crate) started: Option<Timestamp>,
    /// When the job was done or failed.
    #[schema(value_type = Option<String>)]
    pub(crate) finished: Option<Timestamp>,
    /// When an operator put the job before the others that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) first: Option<Timestamp>,
    /// How often the build was started: more than once if the server was killed in the meantime. Builds that ended with
    /// an orderly stop of the server, or that failed only for lack of a store, do not count.
    pub(crate) attempts: u32,
    /// The server that runs the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lease: Option<Lease>,
    /// Why no store accepts the indexes. While the job runs, publishing is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) store_error: Option<String>,
    pub(crate) progress: JobProgress,
    /// The images that have an index now.
    pub(crate) images: Vec<PublishedIndex>,
    /// The files, or parts of files, that have no index.
    pub(crate) failures: Vec<JobFailure>,
    /// Entries of the archive that were left out.
    pub(crate) warnings: Vec<String>,
    /// The number of images, failures and warnings that are not listed.
    pub(crate) unlisted: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum JobState {
    /// The upload is whole and waits for its build.
    #[default]
    Queued,
    /// The indexes are being built.
    Running,
    /// At least one image has an index, which lookups find. `failures` lists the files without one.
    Done,
    /// No image has an index, or the job was canceled. `failures` says why.
    Failed,
    /// Indexes were built that no store accepts (`store_error` says why), or the server was killed three times during
    /// the build (`failures` says so). The upload is kept, and the job waits for an operator: it is built again after
    /// `POST /v1/jobs/{id}/resume`. If it lacks a store, it is built again when a server starts, too.
    Unpublished,
}

/// The name in JSON.
impl fmt::Display for JobState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl JobState {
    pub(crate) fn is_finished(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }

    /// Returns whether the job has finished or waits for an operator.
    pub(crate) fn is_at_rest(self) -> bool {
        self.is_finished() || self == Self::Unpublished
    }
}

/// What to do with an index that is not taken.
const SEND_INDEX: &str = "send it to /v1/indexes/ID, with a token that has the scope `index`";

/// How often a job may start. If the server was killed this often during a job, the job may be the reason.
const MAX_ATTEMPTS: u32 = 3;

/// The claim of a server to a job. Another one takes the job when this is not renewed in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Lease {
    /// A name of the process.
    pub(crate) server: String,
    /// How often the server has renewed the lease.
    pub(crate) renewals: u64,
}

/// How much of the debug information is read, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct JobProgress {
    pub(crate) done: u64,
    /// The size of all debug files. 0 until the upload is unpacked.
    pub(crate) total: u64,
}

/// Why a file, or a part of it, has no index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct JobFailure {
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// `damaged`, `unsupported`, `missing`, `not_found`, `usage`, `limit` or `other`. `limit` means that the build
    /// exceeds a limit.
    #[schema(value_type = String)]
    pub(crate) kind: Cause,
    /// What ended the child process of the build: `memory`, `cpu_time`, `wall_clock`, `file_size`, `system_call`,
    /// `stack`, `panic`, `signal` or `exit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<String>,
    /// What is wrong, and what was expected.
    pub(crate) message: String,
}

impl From<Failure> for JobFailure {
    fn from(failure: Failure) -> Self {
        let Failure { path, cause: kind, limit, message, .. } = failure;
        let file = path.map(|path| short(path.to_string_lossy().into_owned()));
        Self { file, kind, limit: limit.map(String::from), message: short(message) }
    }
}

impl Job {
    /// A job that waits for its build.
    pub(crate) fn new(sha256: &str, size: u64, name: &str) -> Self {
        Self {
            id: id_of(sha256),
            name: name.to_owned(),
            sha256: sha256.to_owned(),
            upload: format!("{sha256}.{}", uuid::Uuid::new_v4().simple()),
            size,
            ..Self::default()
        }
    }

    /// Whether the job makes what an upload for this `image`, or of debug files, asks for. `indexes` says whether
    /// indexes in it are to be taken.
    pub(super) fn does(&self, image: Option<&str>, indexes: bool) -> bool {
        self.image.as_deref() == image && (self.indexes || !indexes)
    }

    /// What becomes of the indexes that the upload has itself.
    pub(super) fn indexes(&self) -> Indexes {
        let image = self.image.as_ref().and_then(|id| id.parse().ok());
        match image {
            Some(image) => Indexes::Only(image),
            None if self.indexes => Indexes::Taken,
            None => Indexes::Refused(SEND_INDEX),
        }
    }

    /// The provenance that stores record for its indexes.
    pub(super) fn provenance(&self) -> Provenance {
        let mut provenance = Provenance::new(self.created.0);
        provenance.token.clone_from(&self.token);
        provenance.client = self.client;
        provenance.sha256 = Some(self.sha256.clone());
        provenance
    }

    /// `server` begins to build.
    pub(super) fn begin(&mut self, server: &str) {
        self.state = JobState::Running;
        self.started = Some(Timestamp::now());
        self.attempts += 1;
        self.first = None;
        self.lease = Some(Lease { server: server.to_owned(), renewals: 0 });
        self.progress = JobProgress::default();
        self.store_error = None;
        self.images.clear();
        self.failures.clear();
    }

    /// The job is queued again.
    pub(super) fn queue(&mut self) {
        self.state = JobState::Queued;
        self.lease = None;
    }

    /// The server stops, which is not the fault of the build.
    pub(super) fn give_back(&mut self) {
        self.attempts = self.attempts.saturating_sub(1);
        self.queue();
    }

    /// The server was killed during the build.
    pub(super) fn lose_server(&mut self) {
        self.queue();
        if self.attempts >= MAX_ATTEMPTS {
            self.state = JobState::Unpublished;
            let what = format!(
                "{}: the server has ended {MAX_ATTEMPTS} times while it built this upload",
                self.name
            );
            self.failures = vec![Failure::new(Cause::Other, what).of_path(self.name.as_ref()).into()];
        }
    }

    /// An operator or a client wants the job to be built again.
    pub(super) fn resume(&mut self) {
        self.queue();
        self.attempts = 0;
    }

    /// Returns whether `there`, a version of this job, has the lease of the same server.
    pub(super) fn is_of_claim(&self, there: &Self) -> bool {
        let server = |job: &Self| job.lease.as_ref().map(|lease| lease.server.clone());
        server(self).is_some() && server(self) == server(there)
    }

    /// Returns whether the job waits only for a store.
    pub(super) fn waits_for_store(&self) -> bool {
        self.state == JobState::Unpublished && self.store_error.is_some()
    }

    /// No store accepts the indexes. If the server ends now, that is not the fault of the build.
    pub(super) fn lacks_store(&mut self, why: &str) {
        self.store_error = Some(short(why.to_owned()));
        self.attempts = 0;
    }

    /// The build has ended with `results`.
    pub(super) fn end(&mut self, results: BuildResults) {
        let BuildResults { images, warnings, store_error } = results;
        let mut list = Listing { left: MAX_LISTED - MAX_FAILURES, unlisted: 0 };
        let (images, failures): (Vec<_>, Vec<_>) = images.into_iter().partition(Result::is_ok);
        self.images = list.of(images.into_iter().flatten().map(shortened));
        list.left += MAX_FAILURES;
        self.failures = list.of(failures.into_iter().filter_map(Result::err).map(JobFailure::from));
        self.warnings = list.of(warnings.into_iter().map(short));
        self.unlisted = list.unlisted;
        if self.images.is_empty() && self.failures.is_empty() {
            let failure = Failure::of_file(self.name.as_ref(), Cause::Missing, "it has no image to index");
            self.failures.push(failure.into());
        }
        self.progress.done = self.progress.total;
        self.lease = None;
        self.store_error = None;
        if let Some(why) = store_error {
            self.lacks_store(&why);
            self.state = JobState::Unpublished;
            return;
        }
        self.state = if self.images.is_empty() { JobState::Failed } else { JobState::Done };
        self.finished = Some(Timestamp::now());
    }

    /// The build can no longer be done.
    pub(super) fn fail(&mut self, message: String) {
        self.failures.push(Failure::new(Cause::Other, message).of_path(self.name.as_ref()).into());
        self.lease = None;
        self.state = JobState::Failed;
        self.finished = Some(Timestamp::now());
    }
}

/// The id of the job of the upload with this SHA-256.
pub(crate) fn id_of(sha256: &str) -> String {
    sha256.chars().take(32).collect()
}

/// A time of day, in JSON as RFC 3339 has it: `2026-11-22T12:00:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timestamp(pub(crate) SystemTime);

impl Timestamp {
    pub(crate) fn now() -> Self {
        Self(SystemTime::now())
    }
}

impl Default for Timestamp {
    fn default() -> Self {
        Self::now()
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(self.0))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        humantime::parse_rfc3339(&text).map(Self).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::super::published::{MAX_TEXT, json_size};
    use super::*;

    #[test]
    fn a_job_survives_json() {
        let mut job = Job::new(&"ab".repeat(32), 5, "a.zip");
        job.begin("a server");
        let killed = Failure::of_file("a.zip: x".as_ref(), Cause::Limit, "too large");
        let failure = Failure { limit: Some("memory".into()), ..killed };
        let (images, warnings) = (vec![Err(failure)], vec!["w".to_owned()]);
        job.end(BuildResults { images, warnings, store_error: None });
        assert_eq!((job.state, job.id.len()), (JobState::Failed, 32));
        let json = serde_json::to_string(&job).expect("JSON");
        let read: Job = serde_json::from_str(&json).expect("a job");
        assert_eq!(serde_json::to_string(&read).expect("JSON"), json);
        assert!(json.contains(r#""kind":"limit","limit":"memory""#), "{json}");
    }

    #[test]
    fn a_job_without_an_image_or_a_failure_says_so() {
        let mut job = Job::new(&"ab".repeat(32), 5, "a.zip");
        job.end(BuildResults::default());
        assert_eq!(
            (job.state, &*job.failures[0].message),
            (JobState::Failed, "a.zip: it has no image to index")
        );
    }

    fn image(text: &str) -> PublishedIndex {
        let text = || text.to_owned();
        let texts = || vec![text(); 20];
        PublishedIndex {
            id: "ab".repeat(16),
            arch: text(),
            name: text(),
            file: text(),
            joined: texts(),
            outcome: "written".to_owned(),
            conflict: false,
            has_dwarf: true,
            location: Some(text()),
            index_size: 1,
            debug_size: 1,
            grade: symdex::Grade::Lines,
            functions: 1,
            symbols: 1,
            warnings: texts(),
            seconds: 1.0,
        }
    }

    #[test]
    fn the_record_of_a_job_is_bounded_whatever_its_files_are_called() {
        let long = "\u{1f980}".repeat(1000);
        let mut job = Job::new(&"ab".repeat(32), 5, "a.zip");
        let failure = || Failure::new(Cause::Other, long.clone()).of_path(long.as_ref());
        let images = (0..200).map(|_| Ok(image(&long))).chain((0..2000).map(|_| Err(failure())));
        let warnings = vec![long.clone(); 2000];
        job.end(BuildResults { images: images.collect(), warnings, store_error: None });
        let size = json_size(&job);
        assert!((MAX_LISTED / 2..MAX_LISTED + 4 * MAX_TEXT).contains(&size), "{size}");
        // Warnings are left out first, and images do not take the place of failures.
        let counts = [job.images.len(), job.failures.len(), job.warnings.len()];
        assert!(counts[0] > 50 && counts[1] > 400 && counts[2] < 2, "{counts:?}");
        assert_eq!(job.unlisted, 200 + 2000 + 2000 - counts.iter().sum::<usize>() as u64);
        let mut failed = Job::new(&"ab".repeat(32), 5, "a.zip");
        failed.fail(long.clone());
        failed.lacks_store(&long);
        assert!(json_size(&failed) < 4 * MAX_TEXT);
    }

    #[test]
    fn a_job_lists_all_images_of_a_shared_cache() {
        let mut job = Job::new(&"ab".repeat(32), 5, "cache");
        let short = PublishedIndex { joined: Vec::new(), warnings: Vec::new(), ..image(&"x".repeat(60)) };
        let images = vec![Ok(short); 5000];
        job.end(BuildResults { images, ..BuildResults::default() });
        assert_eq!((job.images.len(), job.unlisted), (5000, 0));
    }
}
