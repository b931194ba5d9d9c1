//! Runs jobs: a claim from its begin to its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use symdex_pipeline::Input;

use super::builder::BuildClient;
use super::job::{Job, JobProgress};
use super::published::BuildResults;
use super::queue::Jobs;
use super::store::{JobStoreError, Record};

/// Longer than a server runs.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// How long a thread waits for a store of jobs that cannot be written.
const PAUSE: Duration = Duration::from_secs(5);

/// The right of this server to write a job, from the claim to the end of the job. It writes all changes of the record
/// meanwhile, one after the other.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) id: String,
    /// `None` when the job has ended here, or another server has taken it.
    record: Mutex<Option<Record>>,
}

impl Claim {
    pub(super) fn new(record: Record) -> Arc<Self> {
        Arc::new(Self { id: record.job.id.clone(), record: Mutex::new(Some(record)) })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Record>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the job after `change`. The claim ends if the job does not run then. Returns whether the job was written:
    /// not if the claim is over.
    fn update(&self, jobs: &Jobs, change: impl FnOnce(&mut Job)) -> Result<bool, JobStoreError> {
        let mut held = self.lock();
        let Some(Record { job: before, version }) = held.clone() else { return Ok(false) };
        let mut job = before.clone();
        change(&mut job);
        let mut written = jobs.store.write(&job, &version)?;
        if written.is_none()
            && let Some(there) = jobs.read(&self.id)?
            && before.is_of_claim(&there.job)
            && jobs.has(self)
        {
            // An earlier write of this claim seemed to fail, and was done.
            written = jobs.store.write(&job, &there.version)?;
        }
        *held = None;
        let Some(version) = written else {
            if before.lease.is_some() && jobs.has(self) {
                tracing::warn!(job = self.id, "another server has taken or canceled a job");
            }
            jobs.lose(self);
            return Ok(false);
        };
        let record = Record { job, version };
        jobs.show(record.clone(), record.job.lease.is_none());
        *held = Some(record).filter(|record| record.job.lease.is_some());
        Ok(true)
    }

    /// As [`update`](Self::update). A failure is logged; the change is then not known after a restart.
    fn try_update(&self, jobs: &Jobs, change: impl FnOnce(&mut Job)) {
        if let Err(error) = self.update(jobs, change) {
            tracing::error!(%error, job = self.id, "the state of a job cannot be written");
        }
    }

    /// Renews the lease, if the job has begun.
    pub(super) fn renew(&self, jobs: &Jobs) {
        if self.lock().as_ref().is_none_or(|record| record.job.lease.is_none()) {
            return;
        }
        let progress = jobs.view(&self.id, |job| job.progress);
        self.try_update(jobs, |job| {
            job.progress = progress.unwrap_or_default();
            job.lease.as_mut().into_iter().for_each(|lease| lease.renewals += 1);
        });
    }

    /// Queues the job again, as if it had not begun. Its thread writes nothing any more.
    pub(super) fn give_back(&self, jobs: &Jobs) {
        self.try_update(jobs, Job::give_back);
        *self.lock() = None;
    }

    /// Builds the job. Returns when it has ended, here or on another server.
    pub(super) fn run(&self, jobs: &Jobs) {
        match self.update(jobs, |job| job.begin(&jobs.server)) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::error!(%error, job = self.id, "a job cannot begin");
                jobs.lose(self);
                _ = jobs.pause(PAUSE);
                return;
            }
        }
        let Some(job) = self.lock().as_ref().map(|record| record.job.clone()) else { return };
        jobs.metrics.jobs_running.inc();
        let built = catch_unwind(AssertUnwindSafe(|| self.build(jobs, &job)));
        jobs.metrics.jobs_running.dec();
        // The build was ended, and says nothing of the upload.
        let is_ended = jobs.is_stopping() || !jobs.has(self);
        let gives_back = |results: &BuildResults| is_ended && !results.is_complete();
        let end = |ended: &mut Job| match &built {
            Ok(Some(results)) if gives_back(results) => ended.give_back(),
            Ok(Some(results)) => ended.end(results.clone()),
            Ok(None) => ended.fail(format!("{}: the upload is gone; send it again", job.name)),
            // The panic is in the log.
            Err(_) => ended.fail(format!("{}: the server has failed", job.name)),
        };
        if let Ok(Some(results)) = &built
            && !gives_back(results)
            && jobs.has(self)
        {
            jobs.metrics.built(results);
        }
        loop {
            match self.update(jobs, end) {
                Ok(true) => break,
                Ok(false) => return,
                Err(error) => {
                    tracing::error!(%error, job = self.id, "the end of a job cannot be written");
                    if !jobs.pause(PAUSE) {
                        return;
                    }
                }
            }
        }
        if let Some(Some(error)) =
            jobs.view(&self.id, |job| job.waits_for_store().then(|| job.store_error.clone()))
        {
            tracing::error!(job = self.id, error, "a job waits for an operator");
        }
    }

    /// The results of the build; `None` if the upload is gone.
    fn build(&self, jobs: &Jobs, job: &Job) -> Option<BuildResults> {
        let builder = &jobs.builder;
        let client = ClaimedBuild { jobs, claim: self, deadline: OnceLock::new() };
        let upload = loop {
            let size = if jobs.store.is_shared() { job.size } else { 0 };
            let room = builder.reserve(size).map_err(JobStoreError::from);
            match room.and_then(|_room| jobs.store.upload(job, builder.work())) {
                Ok(upload) => break upload?,
                Err(error) => {
                    tracing::error!(%error, job = self.id, "an upload cannot be read");
                    if !client.pause(PAUSE) {
                        return Some(BuildResults {
                            store_error: Some(error.to_string()),
                            ..Default::default()
                        });
                    }
                }
            }
        };
        let input =
            Input::Named { path: upload.path.clone(), name: job.name.clone(), origin: "upload".to_owned() };
        let put = builder.put_options(job.replace, Some(job.provenance()));
        Some(builder.build((input, job.indexes()), None, &put, &client))
    }
}

/// The build of a claimed job. It is over when the claim is, because somebody has canceled or taken the job.
struct ClaimedBuild<'j> {
    jobs: &'j Jobs,
    claim: &'j Claim,
    /// Until when indexes are put again, which no store accepts.
    deadline: OnceLock<Instant>,
}

impl ClaimedBuild<'_> {
    /// Waits for `time`. Returns `false` at once when the server stops, or the claim is over.
    fn pause(&self, time: Duration) -> bool {
        self.jobs.pause_while(time, |shared| shared.claimed(self.claim).is_some())
    }
}

impl BuildClient for ClaimedBuild<'_> {
    fn progress(&self, progress: JobProgress) {
        self.jobs.show_progress(self.claim, progress);
    }

    fn retries(&self, why: &str, pause: Duration) -> bool {
        let Self { jobs, claim, .. } = self;
        let deadline = *self.deadline.get_or_init(|| {
            tracing::warn!(job = claim.id, error = why, "no store accepts an index; it is tried again");
            // The job goes on after a restart, however often the server ends meanwhile.
            claim.try_update(jobs, |job| job.lacks_store(why));
            // A time beyond the clock is as long as a server runs.
            let now = Instant::now();
            now.checked_add(jobs.publish_within).unwrap_or(now + FOREVER)
        });
        let left = deadline.saturating_duration_since(Instant::now());
        !left.is_zero() && self.pause(pause.min(left))
    }

    fn is_over(&self) -> bool {
        !self.jobs.has(self.claim)
    }
}
