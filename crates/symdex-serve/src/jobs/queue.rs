//! The jobs that a server knows: those that wait, those that run, and those that have finished.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::Path;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

use super::builder::Builder;
use super::job::{Job, JobProgress, JobState, Timestamp, id_of};
use super::published::json_size;
use super::receive::Uploads;
use super::run::Claim;
use super::store::{JobStore, JobStoreError, Record, Version};
use crate::limits::has_share;
use crate::metrics::Metrics;

/// How many jobs may be unfinished. Each has an upload.
const MAX_UNFINISHED: usize = 16_384;
/// How often a record is read again that others write at the same time.
const WRITES: u32 = 8;

/// The jobs that a server knows. Their store has the records; this has copies of them, so that jobs are shown without
/// waiting for it.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(super) store: Box<dyn JobStore>,
    pub(super) builder: Arc<Builder>,
    pub(super) uploads: Arc<Uploads>,
    pub(super) metrics: Arc<Metrics>,
    /// A name of this process.
    pub(super) server: String,
    pub(super) keep: Duration,
    /// How long publishing is retried if no store accepts the indexes.
    pub(super) publish_within: Duration,
    pub(super) shared: Mutex<Shared>,
    /// Notified when a job is queued, a thread has ended, or the server stops.
    pub(super) wakes: Condvar,
    /// Whether the server stops.
    pub(super) stopping: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) jobs: BTreeMap<String, Entry>,
    /// The number of the last turn of each client that has unfinished jobs.
    pub(super) turns: HashMap<JobClient, u64>,
    pub(super) last_turn: u64,
    /// How many threads run jobs.
    pub(super) threads: usize,
    /// How many of them wait for a job.
    pub(super) idle: usize,
    pub(super) is_stopping: bool,
}

/// Who has sent a job: a token, which stands for all addresses that use it, or an address.
pub(super) type JobClient = (Option<String>, Option<IpAddr>);

pub(super) fn client_of(job: &Job) -> JobClient {
    (job.token.clone(), if job.token.is_some() { None } else { job.client })
}

/// The copy of a record.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) job: Job,
    pub(super) version: Version,
    /// Since when this server knows the version.
    pub(super) since: Instant,
    /// The size of the job as JSON, in bytes, when it was put here or has finished.
    pub(super) size: usize,
    /// If this server runs the job, or is about to.
    pub(super) claim: Option<Arc<Claim>>,
    /// Notifies followers that the job has changed.
    pub(super) changes: watch::Sender<()>,
}

/// A job, and whether it was changed. `None` if there is no such job.
pub(crate) type Changed = Result<Option<(Job, bool)>, JobStoreError>;

/// The reason why an upload is not accepted as a job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error(transparent)]
    Store(#[from] JobStoreError),
    /// An unfinished job of the same file does not replace indexes, is for another image, or does not take indexes.
    #[error("the same file is being built; send it again when job {0} has finished")]
    Unfinished(String),
    /// There are too many jobs.
    #[error("too many uploads wait for their builds")]
    Full,
    /// Other requests and servers write the same job.
    #[error("the same file is being sent by others")]
    Busy,
}

impl Jobs {
    /// The jobs in `store`. Jobs that only waited for a store are queued again. Finished jobs are kept for `keep`. If
    /// no store accepts an index, publishing is retried for `publish_within`.
    pub(crate) fn open(
        store: Box<dyn JobStore>,
        builder: Arc<Builder>,
        uploads: Arc<Uploads>,
        metrics: Arc<Metrics>,
        (keep, publish_within): (Duration, Duration),
    ) -> Arc<Self> {
        let jobs = Self {
            store,
            builder,
            uploads,
            metrics,
            server: uuid::Uuid::new_v4().simple().to_string(),
            keep,
            publish_within,
            shared: Mutex::default(),
            wakes: Condvar::new(),
            stopping: watch::Sender::new(false),
        };
        if !jobs.store.is_shared() {
            jobs.load();
        }
        Arc::new(jobs)
    }

    /// Calls `view` with the job as this server knows it; `None` if it knows none.
    pub(crate) fn view<T>(&self, id: &str, view: impl FnOnce(&Job) -> T) -> Option<T> {
        self.shared().jobs.get(id).map(|entry| view(&entry.job))
    }

    /// Calls `view` with each job, the newest first.
    pub(crate) fn list<T>(&self, view: impl Fn(&Job) -> T) -> Vec<T> {
        let shared = self.shared();
        let mut jobs: Vec<_> = shared.jobs.values().map(|entry| &entry.job).collect();
        jobs.sort_by(|a, b| (b.created, &b.id).cmp(&(a.created, &a.id)));
        jobs.into_iter().map(view).collect()
    }

    /// Returns receivers of changes of the job and of the end of the server. `None` if there is no such job.
    pub(crate) fn follow(&self, id: &str) -> Option<(watch::Receiver<()>, watch::Receiver<bool>)> {
        let changes = self.shared().jobs.get(id)?.changes.subscribe();
        Some((changes, self.stopping.subscribe()))
    }

    /// Returns the number of jobs with this state.
    pub(crate) fn count(&self, state: JobState) -> usize {
        self.shared().jobs.values().filter(|entry| entry.job.state == state).count()
    }

    /// Returns when the oldest upload was received that waits for its build or is being built.
    pub(crate) fn oldest_unfinished(&self) -> Option<SystemTime> {
        let shared = self.shared();
        let unfinished = shared.jobs.values().filter(|entry| !entry.job.state.is_at_rest());
        unfinished.map(|entry| entry.job.created.0).min()
    }

    /// Returns whether another server may change the job, so that [`read`](Self::read) may tell more than
    /// [`view`](Self::view).
    pub(crate) fn is_of_others(&self, id: &str) -> bool {
        let is_at_rest = |entry: &Entry| entry.claim.is_some() || entry.job.state.is_finished();
        self.store.is_shared() && !self.shared().jobs.get(id).is_some_and(is_at_rest)
    }

    /// Reads the record of the job, and shows it. Blocks.
    ///
    /// # Errors
    ///
    /// [`JobStoreError`] if the store of jobs cannot be read.
    pub(crate) fn read(&self, id: &str) -> Result<Option<Record>, JobStoreError> {
        let known = self.shared().jobs.get(id).map(|entry| entry.version.clone());
        let record = self.store.get(id)?;
        match &record {
            Some(record) => self.show(record.clone(), false),
            None => {
                let mut shared = self.shared();
                let is_known =
                    |entry: &Entry| entry.claim.is_none() && Some(&entry.version) == known.as_ref();
                // What was written meanwhile is shown, and so is a job that runs here.
                if shared.jobs.get(id).is_some_and(is_known) {
                    shared.jobs.remove(id);
                }
            }
        }
        Ok(record)
    }

    /// Writes the job after `change` if it `may_change`. Blocks.
    pub(super) fn update(
        &self,
        id: &str,
        may_change: impl Fn(&Job) -> bool,
        change: impl Fn(&mut Job),
    ) -> Changed {
        for _ in 0..WRITES {
            let Some(Record { mut job, version }) = self.read(id)? else { return Ok(None) };
            if !may_change(&job) {
                return Ok(Some((job, false)));
            }
            change(&mut job);
            if let Some(version) = self.store.write(&job, &version)? {
                self.show(Record { job: job.clone(), version }, true);
                return Ok(Some((job, true)));
            }
        }
        Ok(self.view(id, |job| (job.clone(), false)))
    }

    /// Restarts a job that waits for an operator. Blocks.
    ///
    /// # Errors
    ///
    /// [`JobStoreError`] if the store of jobs cannot be read or written.
    pub(crate) fn resume(&self, id: &str) -> Changed {
        self.update(id, |job| job.state == JobState::Unpublished, Job::resume)
    }

    /// Ends a job that has not finished; `by` has canceled it. Its build ends, too. Blocks.
    ///
    /// # Errors
    ///
    /// [`JobStoreError`] if the store of jobs cannot be read or written.
    pub(crate) fn cancel(&self, id: &str, by: &str) -> Changed {
        let cancel = |job: &mut Job| job.fail(format!("{}: canceled by {by}", job.name));
        self.update(id, |job| !job.state.is_finished(), cancel)
    }

    /// Puts a queued job before all others. Blocks.
    ///
    /// # Errors
    ///
    /// [`JobStoreError`] if the store of jobs cannot be read or written.
    pub(crate) fn put_first(&self, id: &str) -> Changed {
        let now = Timestamp::now();
        self.update(id, |job| job.state == JobState::Queued, |job| job.first = Some(now))
    }

    /// The job of the upload with this SHA-256 and for this `image`, if the upload does not have to be sent again: the
    /// job is queued or running, waits for an operator, or is done and the stores still have its images. With
    /// `indexes`, only a job that takes the indexes in the upload. Blocks.
    ///
    /// # Errors
    ///
    /// [`JobStoreError`] if the store of jobs cannot be read.
    pub(crate) fn current(
        &self,
        sha256: &str,
        image: Option<&str>,
        indexes: bool,
    ) -> Result<Option<Job>, JobStoreError> {
        let id = id_of(sha256);
        if self.is_of_others(&id) {
            self.read(&id)?;
        }
        let job = self.view(&id, Job::clone).filter(|job| job.does(image, indexes));
        Ok(job.filter(|job| self.is_current(job)))
    }

    fn is_current(&self, job: &Job) -> bool {
        match job.state {
            JobState::Queued | JobState::Running | JobState::Unpublished => true,
            JobState::Done => self.builder.has_all(&job.images),
            JobState::Failed => false,
        }
    }

    /// Makes `job` the job of its upload, the file at `received`, whose contents are synced. The file is gone
    /// afterwards. An upload whose job does not have to be repeated is not kept. A job that waits for an operator
    /// starts over. A job that replaces indexes, or that is for another image than the current one or takes indexes
    /// that the current one does not, always runs, and supersedes a finished or waiting one. Returns the job. Blocks.
    ///
    /// # Errors
    ///
    /// [`SubmitError`] if the upload cannot be kept, or if an unfinished job conflicts. No job is created then.
    pub(crate) fn submit(&self, received: &Path, job: Job) -> Result<Job, SubmitError> {
        for _ in 0..WRITES {
            let there = self.read(&job.id)?;
            let does_other = |current: &Job| !current.does(job.image.as_deref(), job.indexes);
            match there.as_ref().map(|record| &record.job).filter(|job| self.is_current(job)) {
                Some(current) if current.state.is_at_rest() && (job.replace || does_other(current)) => {}
                Some(current) if job.replace && !current.replace || does_other(current) => {
                    return Err(SubmitError::Unfinished(current.id.clone()));
                }
                Some(current) => match self.resume(&current.id)? {
                    Some((job, _)) if job.state != JobState::Failed => {
                        // A part that stays is deleted after a day.
                        let _ = std::fs::remove_file(received);
                        return Ok(job);
                    }
                    // It was canceled meanwhile.
                    _ => continue,
                },
                None => {}
            }
            if !self.shared().has_room(&job) {
                return Err(SubmitError::Full);
            }
            let over = there.map(|record| record.version);
            if let Some(version) = self.store.submit(received, &job, over.as_ref())? {
                self.show(Record { job: job.clone(), version }, true);
                return Ok(job);
            }
        }
        Err(SubmitError::Busy)
    }

    /// Shows `record` from now on. With `ends_claim`, no thread of this server runs the job; otherwise a record that
    /// was read does not hide what this server itself does.
    pub(super) fn show(&self, record: Record, ends_claim: bool) {
        let mut shared = self.shared();
        let Record { job, version } = record;
        let (id, size, since) = (job.id.clone(), json_size(&job), Instant::now());
        match shared.jobs.get_mut(&id) {
            Some(entry) if !version.supersedes(&entry.version) => {
                // It may have been read before its writer shows it.
                if ends_claim && version == entry.version {
                    entry.claim = None;
                }
                return;
            }
            Some(entry) => {
                if ends_claim {
                    entry.claim = None;
                }
                let progress = entry.job.progress;
                (entry.job, entry.version, entry.size, entry.since) = (job, version, size, since);
                if entry.claim.is_some() {
                    entry.job.progress = progress;
                }
                entry.changes.send_replace(());
            }
            None => {
                let changes = watch::Sender::new(());
                let entry = Entry { job, version, since, size, claim: None, changes };
                shared.jobs.insert(id, entry);
            }
        }
        self.wake(shared);
    }

    /// Shows how far the job of a claim is.
    pub(super) fn show_progress(&self, claim: &Claim, progress: JobProgress) {
        if let Some(entry) = self.shared().claimed(claim) {
            entry.job.progress = progress;
            entry.changes.send_replace(());
        }
    }

    /// The claim of this server to a job is over.
    pub(super) fn lose(&self, claim: &Claim) {
        let mut shared = self.shared();
        if let Some(entry) = shared.claimed(claim) {
            entry.claim = None;
        }
        self.wake(shared);
    }

    /// Whether the claim of this server is not over.
    pub(super) fn has(&self, claim: &Claim) -> bool {
        self.shared().claimed(claim).is_some()
    }

    pub(super) fn wake(&self, shared: MutexGuard<'_, Shared>) {
        let waiting = shared.jobs.values().filter(|entry| entry.waits()).count();
        self.metrics.jobs_waiting.set(waiting.try_into().unwrap_or(i64::MAX));
        drop(shared);
        self.wakes.notify_all();
    }

    pub(super) fn claims(&self) -> Vec<Arc<Claim>> {
        self.shared().jobs.values().filter_map(|entry| entry.claim.clone()).collect()
    }

    pub(super) fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The job of the claim, if it is not over.
    pub(super) fn claimed(&mut self, claim: &Claim) -> Option<&mut Entry> {
        let entry = self.jobs.get_mut(&claim.id)?;
        entry.claim.as_deref().is_some_and(|one| ptr::eq(one, claim)).then_some(entry)
    }

    /// Returns whether the client of `job` may have another unfinished job.
    fn has_room(&self, job: &Job) -> bool {
        let unfinished = self.jobs.values().filter(|entry| !entry.job.state.is_finished());
        let (all, wanted) = (unfinished.clone().count(), client_of(job));
        has_share(unfinished.filter(|entry| client_of(&entry.job) == wanted).count(), all, MAX_UNFINISHED)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn job(number: usize, token: &str) -> Job {
        Job { token: Some(token.to_owned()), ..Job::new(&format!("{number:032}{:032}", 0), 1, "a") }
    }

    pub(in super::super) fn shared(jobs: impl Iterator<Item = Job>) -> Shared {
        let entry = |job: Job| {
            let (since, size, changes) = (Instant::now(), json_size(&job), watch::Sender::new(()));
            Entry { job, version: Version::File(0), since, size, claim: None, changes }
        };
        let entries = jobs.map(|job| (job.id.clone(), entry(job)));
        Shared { jobs: entries.collect(), ..Shared::default() }
    }

    #[test]
    fn a_client_with_many_jobs_leaves_room_for_others() {
        let waiting = shared((0..MAX_UNFINISHED / 2).map(|number| job(number, "a")));
        assert!(!waiting.has_room(&job(0, "a")) && waiting.has_room(&job(0, "b")));
        let client = Some([10, 0, 0, 1].into());
        assert!(waiting.has_room(&Job { token: None, client, ..job(0, "") }));
    }
}
