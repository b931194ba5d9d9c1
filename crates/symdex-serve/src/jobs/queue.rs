//! The jobs that a server knows: those that wait, those that run, and those that have finished.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

use super::builder::Builder;
use super::job::{Job, JobProgress, JobState, Timestamp, id_of, json_size};
use super::receive::Uploads;
use super::run::Claim;
use super::store::{JobStore, JobStoreError, Record, Version};
use crate::limits::has_share;
use crate::metrics::Metrics;

/// How many bytes the finished jobs have together as JSON, in memory and in their store. The oldest ones are removed
/// first.
const MAX_FINISHED: usize = 256 << 20;
/// How many jobs may be unfinished. Each has an upload.
const MAX_UNFINISHED: usize = 16_384;
/// How often old jobs are removed.
const SWEEP: Duration = Duration::from_secs(10 * 60);
/// How often a server reads which jobs other servers have changed.
const REFRESH: Duration = Duration::from_secs(10);
/// How often a server renews the leases of its jobs.
const RENEW: Duration = Duration::from_secs(15);
/// How long a server sees the same version of a job that another one runs until it takes the job for abandoned. No
/// clocks are compared.
const LEASE: Duration = Duration::from_secs(60);
/// How often a record is read again that others write at the same time.
const WRITES: u32 = 8;

/// The jobs that a server knows. Their store has the records; this has copies of them, so that jobs are shown without
/// waiting for it.
#[derive(Debug)]
pub(crate) struct Jobs {
    store: Box<dyn JobStore>,
    builder: Arc<Builder>,
    uploads: Arc<Uploads>,
    metrics: Arc<Metrics>,
    /// A name of this process.
    server: String,
    keep: Duration,
    /// How long publishing is retried if no store accepts the indexes.
    publish_within: Duration,
    shared: Mutex<Shared>,
    /// Notified when a job is queued, a thread has ended, or the server stops.
    wakes: Condvar,
    /// Whether the server stops.
    stopping: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Shared {
    jobs: BTreeMap<String, Entry>,
    /// The number of the last turn of each client that has unfinished jobs.
    turns: HashMap<JobClient, u64>,
    last_turn: u64,
    /// How many threads run jobs.
    threads: usize,
    is_stopping: bool,
}

/// Who has sent a job: a token, which stands for all addresses that use it, or an address.
type JobClient = (Option<String>, Option<IpAddr>);

fn client_of(job: &Job) -> JobClient {
    (job.token.clone(), if job.token.is_some() { None } else { job.client })
}

/// The copy of a record.
#[derive(Debug)]
struct Entry {
    job: Job,
    version: Version,
    /// Since when this server knows the version.
    since: Instant,
    /// The size of the job as JSON, in bytes, when it was put here or has finished.
    size: usize,
    /// If this server runs the job, or is about to.
    claim: Option<Arc<Claim>>,
    /// Notifies followers that the job has changed.
    changes: watch::Sender<()>,
}

/// The reason why an upload is not accepted as a job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error(transparent)]
    Store(#[from] JobStoreError),
    /// An unfinished job of the same file does not replace indexes.
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

    /// Reads all jobs, and queues those that only waited for a store.
    fn load(&self) {
        self.refresh();
        for id in self.ids(|entry| entry.job.waits_for_store()) {
            log_unwritten(&id, self.update(&id, |job| job.waits_for_store().then(|| job.resume()).is_some()));
        }
    }

    /// Starts `threads` threads that run jobs until [`stop`](Self::stop), and those that keep leases and copies fresh.
    ///
    /// # Errors
    ///
    /// The system's error if no thread can be started.
    pub(crate) fn start(self: &Arc<Self>, threads: usize) -> io::Result<()> {
        self.start_thread("symdex-jobs", Self::keep_fresh)?;
        if self.store.is_shared() {
            self.start_thread("symdex-leases", |jobs| {
                while jobs.pause(RENEW) {
                    jobs.claims().iter().for_each(|claim| claim.renew(jobs));
                }
            })?;
        }
        (0..threads.max(1)).try_for_each(|_| {
            self.start_thread("symdex-job", |jobs| {
                while let Some(claim) = jobs.next_waiting() {
                    claim.run(jobs);
                }
            })
        })
    }

    fn start_thread(self: &Arc<Self>, name: &str, work: fn(&Self)) -> io::Result<()> {
        let jobs = Arc::clone(self);
        self.shared().threads += 1;
        let run = move || {
            work(&jobs);
            jobs.shared().threads -= 1;
            jobs.wakes.notify_all();
        };
        let started = thread::Builder::new().name(name.to_owned()).spawn(run);
        started.map(|_| ()).inspect_err(|_| self.shared().threads -= 1)
    }

    /// Starts no more jobs, ends those that run, and ends the streams of followers. The jobs are queued again, for the
    /// next start of a server.
    pub(crate) fn stop(&self) {
        self.shared().is_stopping = true;
        self.builder.stop();
        self.wakes.notify_all();
        self.stopping.send_replace(true);
    }

    /// Waits until all threads have ended, at most for `patience`. The jobs of threads that are left are given back.
    pub(crate) fn join(&self, patience: Duration) {
        let waits = |shared: &mut Shared| shared.threads != 0;
        drop(self.wakes.wait_timeout_while(self.shared(), patience, waits));
        for claim in self.claims() {
            claim.give_back(self);
        }
    }

    pub(super) fn store(&self) -> &dyn JobStore {
        &*self.store
    }

    pub(super) fn builder(&self) -> &Builder {
        &self.builder
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn publish_within(&self) -> Duration {
        self.publish_within
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.shared().is_stopping
    }

    /// Waits for `time`. Returns `false` at once when the server stops.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let is_running = |shared: &mut Shared| !shared.is_stopping;
        let end = Instant::now() + time;
        let mut shared = self.shared();
        while is_running(&mut shared) && Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            shared = self.wakes.wait_timeout(shared, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        is_running(&mut shared)
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

    /// Reads the job if another server may have changed it. Blocks.
    ///
    /// # Errors
    ///
    /// [`JobStoreError`] if the store of jobs cannot be read.
    pub(crate) fn read(&self, id: &str) -> Result<(), JobStoreError> {
        if self.is_of_others(id) {
            self.read_record(id)?;
        }
        Ok(())
    }

    fn read_record(&self, id: &str) -> Result<Option<Record>, JobStoreError> {
        let record = self.store.get(id)?;
        match &record {
            Some(record) => self.show(record.clone(), false),
            None => _ = self.shared().jobs.remove(id),
        }
        Ok(record)
    }

    /// Writes the job after `change`, unless that returns `false`, or a server runs the job. Returns the job, or `None`
    /// if there is none. Blocks.
    fn update(&self, id: &str, change: impl Fn(&mut Job) -> bool) -> Result<Option<Job>, JobStoreError> {
        for _ in 0..WRITES {
            let Some(Record { mut job, version }) = self.read_record(id)? else { return Ok(None) };
            if !change(&mut job) {
                return Ok(Some(job));
            }
            let written = match job.state.is_finished() {
                true => self.store.finish(&job, &version),
                false => self.store.write(&job, &version),
            };
            if let Some(version) = written? {
                self.show(Record { job: job.clone(), version }, true);
                return Ok(Some(job));
            }
        }
        self.view(id, |job| Ok(job.clone())).transpose()
    }

    /// Restarts a job that waits for an operator. Returns the job in any state, or `None` if there is none. Blocks.
    ///
    /// # Errors
    ///
    /// [`JobStoreError`] if the store of jobs cannot be read or written.
    pub(crate) fn resume(&self, id: &str) -> Result<Option<Job>, JobStoreError> {
        self.update(id, |job| (job.state == JobState::Unpublished).then(|| job.resume()).is_some())
    }

    /// Ends a job that is queued or waits for an operator; `by` has canceled it. Returns the job, and whether it was
    /// canceled. `None` if there is none. Blocks.
    ///
    /// # Errors
    ///
    /// [`JobStoreError`] if the store of jobs cannot be read or written.
    pub(crate) fn cancel(&self, id: &str, by: &str) -> Result<Option<(Job, bool)>, JobStoreError> {
        let waits = |job: &Job| matches!(job.state, JobState::Queued | JobState::Unpublished);
        self.change(id, |job| {
            waits(job).then(|| job.fail(format!("{}: canceled by {by}", job.name))).is_some()
        })
    }

    /// Puts a queued job before all others. Returns the job, and whether it is queued. `None` if there is none. Blocks.
    ///
    /// # Errors
    ///
    /// [`JobStoreError`] if the store of jobs cannot be read or written.
    pub(crate) fn put_first(&self, id: &str) -> Result<Option<(Job, bool)>, JobStoreError> {
        let now = Timestamp::now();
        self.change(id, |job| (job.state == JobState::Queued).then(|| job.first = Some(now)).is_some())
    }

    /// As [`update`](Self::update), and returns whether the job was changed.
    fn change(
        &self,
        id: &str,
        change: impl Fn(&mut Job) -> bool,
    ) -> Result<Option<(Job, bool)>, JobStoreError> {
        let is_changed = Cell::new(false);
        let job = self.update(id, |job| {
            is_changed.set(change(job));
            is_changed.get()
        })?;
        Ok(job.map(|job| (job, is_changed.get())))
    }

    /// The job of the upload with this SHA-256, if the upload does not have to be sent again: the job is queued or
    /// running, waits for an operator, or is done and the stores still have its images. Blocks.
    ///
    /// # Errors
    ///
    /// [`JobStoreError`] if the store of jobs cannot be read.
    pub(crate) fn current(&self, sha256: &str) -> Result<Option<Job>, JobStoreError> {
        let id = id_of(sha256);
        self.read(&id)?;
        Ok(self.view(&id, Job::clone).filter(|job| self.is_current(job)))
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
    /// starts over. A job that replaces indexes always runs, and supersedes a finished or waiting one. Returns the job.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// [`SubmitError`] if the upload cannot be kept, or if an unfinished job conflicts. No job is created then.
    pub(crate) fn submit(&self, received: &Path, job: Job) -> Result<Job, SubmitError> {
        for _ in 0..WRITES {
            let there = self.read_record(&job.id)?;
            match there.as_ref().map(|record| &record.job).filter(|job| self.is_current(job)) {
                Some(current) if job.replace && current.state.is_at_rest() => {}
                Some(current) if job.replace && !current.replace => {
                    return Err(SubmitError::Unfinished(current.id.clone()));
                }
                Some(current) => {
                    // A part that stays is deleted after a day.
                    let _ = std::fs::remove_file(received);
                    return Ok(self.resume(&current.id)?.unwrap_or_else(|| current.clone()));
                }
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
            Some(entry) if !version.supersedes(&entry.version) => return,
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

    /// Shows how far a job of this server is.
    pub(super) fn show_progress(&self, id: &str, progress: JobProgress) {
        if let Some(entry) = self.shared().jobs.get_mut(id) {
            entry.job.progress = progress;
            entry.changes.send_replace(());
        }
    }

    /// The claim of this server to a job is over. The job is read again.
    pub(super) fn lose(&self, id: &str) {
        if let Some(entry) = self.shared().jobs.get_mut(id) {
            entry.claim = None;
        }
        log_unwritten(id, self.read_record(id));
    }

    fn wake(&self, shared: MutexGuard<'_, Shared>) {
        let waiting = shared.jobs.values().filter(|entry| entry.waits()).count();
        self.metrics.jobs_waiting.set(waiting.try_into().unwrap_or(i64::MAX));
        drop(shared);
        self.wakes.notify_all();
    }

    /// Claims the next queued job, or waits for one. Returns `None` when the server stops.
    fn next_waiting(&self) -> Option<Arc<Claim>> {
        let mut shared = self.shared();
        loop {
            if shared.is_stopping {
                return None;
            }
            if let Some(claim) = shared.claim_next() {
                self.wake(shared);
                return Some(claim);
            }
            shared = self.wakes.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reads what other servers do, takes over their abandoned jobs, and removes old jobs.
    fn keep_fresh(&self) {
        if self.store.is_shared() {
            // A bucket that cannot be reached does not delay the start.
            self.load();
        }
        let (mut refreshed, mut swept) = (Instant::now(), None::<Instant>);
        loop {
            if swept.is_none_or(|swept| swept.elapsed() >= SWEEP) {
                self.sweep(SystemTime::now());
                swept = Some(Instant::now());
            }
            if !self.pause(Duration::from_secs(1)) {
                return;
            }
            if self.store.is_shared() && refreshed.elapsed() >= REFRESH {
                self.refresh();
                refreshed = Instant::now();
            }
        }
    }

    /// Reads the records that have changed, and queues the jobs of lost servers.
    fn refresh(&self) {
        let known = |id: &str| self.shared().jobs.get(id).map(|entry| entry.version.clone());
        let listed = match self.store.list(&known) {
            Ok(listed) => listed,
            Err(error) => return tracing::warn!(%error, "the jobs cannot be listed"),
        };
        let mut gone: Vec<_> = self.ids(|entry| entry.claim.is_none());
        let there: std::collections::BTreeSet<_> = listed.iter().map(|(id, _)| id.clone()).collect();
        gone.retain(|id| !there.contains(id));
        listed.into_iter().filter_map(|(_, record)| record).for_each(|record| self.show(record, false));
        for id in gone {
            // It may be newer than the list.
            log_unwritten(&id, self.read_record(&id));
        }
        let patience = if self.store.is_shared() { LEASE } else { Duration::ZERO };
        for id in self.ids(|entry| {
            entry.job.state == JobState::Running && entry.claim.is_none() && entry.since.elapsed() >= patience
        }) {
            let lease = self.view(&id, |job| job.lease.clone()).flatten();
            let lose = |job: &mut Job| {
                let is_lost = job.state == JobState::Running && job.lease == lease;
                is_lost.then(|| job.lose_server()).is_some()
            };
            tracing::warn!(job = id, "a job of a server that was killed starts over");
            log_unwritten(&id, self.update(&id, lose));
        }
    }

    /// Removes finished jobs that have expired, and the oldest ones if there are too many.
    fn sweep(&self, now: SystemTime) {
        self.store.sweep(now);
        self.uploads.sweep(now);
        let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age > self.keep);
        let removable = self.shared().removable(is_old, MAX_FINISHED);
        for id in removable {
            self.store.remove(&id);
            self.shared().jobs.remove(&id);
        }
    }

    /// The ids of the jobs for which `is_wanted`.
    fn ids(&self, is_wanted: impl Fn(&Entry) -> bool) -> Vec<String> {
        let shared = self.shared();
        shared.jobs.iter().filter(|(_, entry)| is_wanted(entry)).map(|(id, _)| id.clone()).collect()
    }

    fn claims(&self) -> Vec<Arc<Claim>> {
        self.shared().jobs.values().filter_map(|entry| entry.claim.clone()).collect()
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Whether the job waits for a thread of any server.
    fn waits(&self) -> bool {
        self.job.state == JobState::Queued && self.claim.is_none()
    }
}

impl Shared {
    /// Claims the next queued job: the last one that was put first, if there is one. Otherwise, clients take turns:
    /// first those of whose jobs fewer run here, then those whose last turn is longer ago. The oldest job of a client is
    /// first.
    fn claim_next(&mut self) -> Option<Arc<Claim>> {
        let mut running = HashMap::<JobClient, usize>::new();
        for entry in self.jobs.values().filter(|entry| entry.claim.is_some()) {
            *running.entry(client_of(&entry.job)).or_default() += 1;
        }
        let turn = |entry: &Entry| {
            let client = client_of(&entry.job);
            let of = |counts: &HashMap<JobClient, usize>| counts.get(&client).copied().unwrap_or(0);
            (
                Reverse(entry.job.first),
                of(&running),
                self.turns.get(&client).copied().unwrap_or(0),
                entry.job.created,
                entry.job.id.clone(),
            )
        };
        let (.., id) = self.jobs.values().filter(|entry| entry.waits()).map(turn).min()?;
        let entry = self.jobs.get_mut(&id)?;
        let claim = Claim::new(Record { job: entry.job.clone(), version: entry.version.clone() });
        entry.claim = Some(Arc::clone(&claim));
        let client = client_of(&entry.job);
        let waiting = self.jobs.values().filter(|entry| entry.waits());
        let waiting: std::collections::HashSet<_> = waiting.map(|entry| client_of(&entry.job)).collect();
        self.turns.retain(|client, _| waiting.contains(client));
        self.last_turn += 1;
        self.turns.insert(client, self.last_turn);
        Some(claim)
    }

    /// Returns whether the client of `job` may have another unfinished job.
    fn has_room(&self, job: &Job) -> bool {
        let (mut own, mut all, wanted) = (0, 0, client_of(job));
        for entry in self.jobs.values().filter(|entry| !entry.job.state.is_finished()) {
            all += 1;
            own += usize::from(client_of(&entry.job) == wanted);
        }
        has_share(own, all, MAX_UNFINISHED)
    }

    /// The finished jobs that are old, and the oldest of the others, so that those that stay have at most `max` bytes.
    fn removable(&self, is_old: impl Fn(SystemTime) -> bool, max: usize) -> Vec<String> {
        let finished = self.jobs.values().filter_map(|entry| Some((entry.job.finished?.0, entry)));
        let mut finished: Vec<_> = finished.collect();
        finished.sort_unstable_by_key(|(at, entry)| (*at, &entry.job.id));
        let mut left: usize = finished.iter().map(|(_, entry)| entry.size).sum();
        let mut removable = Vec::new();
        for (at, entry) in finished {
            if left > max || is_old(at) {
                left -= entry.size;
                removable.push(entry.job.id.clone());
            }
        }
        removable
    }
}

/// A job that cannot be written now is written at the next refresh, or when the server starts again.
fn log_unwritten<T>(id: &str, written: Result<T, JobStoreError>) {
    if let Err(error) = written {
        tracing::error!(%error, job = id, "a job cannot be read or written");
    }
}

#[cfg(test)]
mod tests {
    use super::super::job::Timestamp;
    use super::*;

    fn job(number: usize, token: &str) -> Job {
        Job { token: Some(token.to_owned()), ..Job::new(&format!("{number:032}{:032}", 0), 1, "a") }
    }

    fn shared(jobs: impl Iterator<Item = Job>) -> Shared {
        let entry = |job: Job| {
            let (since, size, changes) = (Instant::now(), json_size(&job), watch::Sender::new(()));
            Entry { job, version: Version::File(0), since, size, claim: None, changes }
        };
        let entries = jobs.map(|job| (job.id.clone(), entry(job)));
        Shared { jobs: entries.collect(), ..Shared::default() }
    }

    #[test]
    fn the_oldest_finished_jobs_are_removed_when_all_have_too_many_bytes() {
        let at = |seconds| Timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        let finished =
            (0..10).map(|number| Job { finished: Some(at(100 - number as u64)), ..job(number, "a") });
        let shared = shared(finished.chain([job(10, "a")]));
        let size = shared.jobs.values().next().expect("a job").size;
        let removed = |max| shared.removable(|_| false, max);
        assert_eq!(removed(10 * size), [""; 0], "the one that is unfinished does not count");
        let ids = [9, 8].map(|number| id_of(&job(number, "a").sha256));
        assert_eq!(removed(8 * size), ids);
        assert_eq!(shared.removable(|finished| finished <= at(92).0, usize::MAX), ids);
    }

    #[test]
    fn a_client_with_many_jobs_leaves_room_for_others() {
        let waiting = shared((0..MAX_UNFINISHED / 2).map(|number| job(number, "a")));
        assert!(!waiting.has_room(&job(0, "a")) && waiting.has_room(&job(0, "b")));
        let client = Some([10, 0, 0, 1].into());
        assert!(waiting.has_room(&Job { token: None, client, ..job(0, "") }));
    }

    #[test]
    fn clients_take_turns_for_builds() {
        let tokens = ["a", "a", "a", "a", "b", "c", "b"];
        let mut shared = shared(tokens.into_iter().enumerate().map(|(number, token)| job(number, token)));
        let mut next = || {
            let claim = shared.claim_next()?;
            let entry = shared
                .jobs
                .values_mut()
                .find(|entry| entry.claim.as_ref().is_some_and(|one| Arc::ptr_eq(one, &claim)))?;
            // It has ended at once.
            (entry.claim, entry.job.state) = (None, JobState::Done);
            entry.job.token.clone()
        };
        let turns: Vec<_> = std::iter::from_fn(&mut next).collect();
        assert_eq!(turns, ["a", "b", "c", "a", "b", "a", "a"]);
    }

    #[test]
    fn a_client_without_a_running_job_is_first() {
        let mut shared = shared((0..3).map(|number| job(number, "a")).chain([job(3, "b")]));
        shared.turns.insert((Some("b".to_owned()), None), 7);
        let mut next = || {
            let claim = shared.claim_next().expect("a job waits");
            let of = |entry: &&Entry| entry.claim.as_ref().is_some_and(|one| Arc::ptr_eq(one, &claim));
            shared.jobs.values().find(of).and_then(|entry| entry.job.token.clone())
        };
        assert_eq!([next(), next(), next()].map(Option::unwrap_or_default), ["a", "b", "a"]);
    }
}
