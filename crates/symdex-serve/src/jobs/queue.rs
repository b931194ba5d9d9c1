//! The jobs of a server: those that wait, those that run, and those that have finished.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use symdex_pipeline::Input;
use tokio::sync::watch;

use super::builder::Builder;
use super::job::{Job, JobState, id_of, json_size};
use super::published::BuildProgress;
use super::state::StateFolder;
use crate::limits::has_share;
use crate::metrics::Metrics;

/// How often a job may start. If the server ended this often during a job, the job may be the reason.
const MAX_ATTEMPTS: u32 = 3;
/// How many bytes the finished jobs have together as JSON, in memory and on the disk. The oldest ones are removed
/// first.
const MAX_FINISHED: usize = 256 << 20;
/// How many jobs may be unfinished. Each has an upload on the disk.
const MAX_UNFINISHED: usize = 16_384;
/// Longer than a server runs.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);
/// How often old jobs are removed.
const SWEEP: Duration = Duration::from_secs(10 * 60);

/// The jobs of a server.
#[derive(Debug)]
pub(crate) struct Jobs {
    state: StateFolder,
    builder: Arc<Builder>,
    metrics: Arc<Metrics>,
    keep: Duration,
    /// How long publishing is retried if no store accepts the indexes.
    publish_within: Duration,
    shared: Mutex<Shared>,
    /// Held while files of jobs are written or deleted, so that readers of jobs do not wait for the disk.
    filing: Mutex<()>,
    /// Notified when a job is queued or the server stops.
    wakes: Condvar,
    /// Whether the server stops.
    stopping: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Shared {
    jobs: BTreeMap<String, Entry>,
    waiting: VecDeque<String>,
    is_stopping: bool,
}

#[derive(Debug)]
struct Entry {
    job: Job,
    /// The size of the job as JSON, in bytes, when it was put here or has finished.
    size: usize,
    /// Notifies followers that the job has changed.
    changes: watch::Sender<()>,
}

impl Entry {
    fn new(job: Job) -> Self {
        Self { size: json_size(&job), job, changes: watch::Sender::new(()) }
    }
}

/// The reason why an upload is not accepted as a job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error("cannot keep the upload: {0}")]
    Upload(#[from] io::Error),
    #[error("cannot write the job: {0}")]
    Job(#[from] symdex_store::Error),
    /// An unfinished job of the same file does not replace indexes.
    #[error("the same file is being built; send it again when job {0} has finished")]
    Unfinished(String),
    /// There are too many jobs.
    #[error("too many uploads wait for their builds")]
    Full,
}

impl Jobs {
    /// Loads the jobs in `state`. Unfinished jobs are queued again, in their order. Finished jobs are kept for `keep`.
    /// If no store accepts an index, publishing is retried for `publish_within`.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the folder cannot be read.
    pub(crate) fn open(
        state: StateFolder,
        builder: Arc<Builder>,
        metrics: Arc<Metrics>,
        keep: Duration,
        publish_within: Duration,
    ) -> io::Result<Arc<Self>> {
        let (mut shared, uploads) = (Shared::default(), state.whole_uploads()?);
        for mut job in state.jobs()? {
            let has_upload = uploads.contains(&job.sha256);
            let unfinished = match job.state {
                JobState::Done | JobState::Failed => None,
                _ if !has_upload => Some("the upload is gone; send it again".to_owned()),
                JobState::Running if job.progress.total == 0 => {
                    let why = "the server was killed while it unpacked this upload, which may be the reason; \
                               the job is not repeated; send the upload again to try it once more";
                    Some(why.to_owned())
                }
                _ if job.attempts >= MAX_ATTEMPTS => {
                    Some(format!("the server has ended {MAX_ATTEMPTS} times while it built this upload"))
                }
                _ => {
                    job.state = JobState::Queued;
                    shared.waiting.push_back(job.id.clone());
                    None
                }
            };
            if let Some(why) = unfinished {
                job.fail(format!("{}: {why}", job.name));
                log_unsaved(&job, state.save(&job));
            }
            if job.state.is_finished() && has_upload {
                state.remove_upload(&job.sha256);
            }
            shared.jobs.insert(job.id.clone(), Entry::new(job));
        }
        // The server has ended between the two steps of `submit`.
        for sha256 in &uploads {
            if shared.jobs.contains_key(&id_of(sha256)) {
                continue;
            }
            let size = state.upload(sha256).metadata().map_or(0, |file| file.len());
            let job = Job::new(sha256, size, sha256);
            log_unsaved(&job, state.save(&job));
            shared.waiting.push_back(job.id.clone());
            shared.jobs.insert(job.id.clone(), Entry::new(job));
        }
        let (shared, filing, wakes) = (Mutex::new(shared), Mutex::default(), Condvar::new());
        let stopping = watch::Sender::new(false);
        Ok(Arc::new(Self { state, builder, metrics, keep, publish_within, shared, filing, wakes, stopping }))
    }

    /// Starts `threads` threads that run jobs until [`stop`](Self::stop).
    ///
    /// # Errors
    ///
    /// The system's error if no thread can be started.
    pub(crate) fn start(self: &Arc<Self>, threads: usize) -> io::Result<()> {
        for _ in 0..threads.max(1) {
            let jobs = Arc::clone(self);
            let run = move || while jobs.run_next() {};
            thread::Builder::new().name("symdex-job".to_owned()).spawn(run)?;
        }
        Ok(())
    }

    /// Starts no more jobs, and ends the streams of followers. Running jobs start over when the server is restarted.
    pub(crate) fn stop(&self) {
        let mut shared = self.shared();
        shared.is_stopping = true;
        let running = shared.jobs.values().filter(|entry| entry.job.state == JobState::Running);
        let running: Vec<_> =
            running.map(|entry| Job { state: JobState::Queued, ..entry.job.clone() }).collect();
        drop(shared);
        // A job that is left running by a killed server may be the reason.
        running.iter().for_each(|job| log_unsaved(job, self.state.save(job)));
        self.wakes.notify_all();
        self.stopping.send_replace(true);
    }

    /// The folder with the uploads.
    pub(crate) fn state(&self) -> &StateFolder {
        &self.state
    }

    /// Calls `view` with the job; `None` if there is none.
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

    /// Restarts a job that waits for an operator. Returns the job in any state, or `None` if there is none.
    pub(crate) fn resume(&self, id: &str) -> Option<Job> {
        let _filing = self.filing.lock().unwrap_or_else(PoisonError::into_inner);
        self.resume_filed(id)
    }

    /// Like [`resume`](Self::resume), for a caller that holds the lock of files.
    fn resume_filed(&self, id: &str) -> Option<Job> {
        let mut job = self.view(id, Job::clone)?;
        if job.state != JobState::Unpublished {
            return Some(job);
        }
        job.state = JobState::Queued;
        log_unsaved(&job, self.state.save(&job));
        let mut shared = self.shared();
        if let Some(entry) = shared.jobs.get_mut(id) {
            entry.job = job.clone();
            entry.changes.send_replace(());
        }
        self.wait_again(shared, id.to_owned());
        Some(job)
    }

    /// Queues the job.
    fn wait_again(&self, mut shared: MutexGuard<'_, Shared>, id: String) {
        shared.waiting.push_back(id);
        self.metrics.jobs_waiting.set(shared.waiting.len().try_into().unwrap_or(i64::MAX));
        // Threads that wait for a store are woken, too.
        self.wakes.notify_all();
    }

    /// The job of the upload with this SHA-256, if the upload does not have to be sent again: the job is queued or
    /// running, waits for an operator, or is done and the stores still have its images. Blocks.
    pub(crate) fn current(&self, sha256: &str) -> Option<Job> {
        let job = self.view(&id_of(sha256), Job::clone)?;
        match job.state {
            JobState::Queued | JobState::Running | JobState::Unpublished => Some(job),
            JobState::Done => self.builder.has_all(&job.images).then_some(job),
            JobState::Failed => None,
        }
    }

    /// Makes `job` the job of its upload, the file at `received`, whose contents are synced. If the upload has a job
    /// that does not have to be repeated, the file is deleted. A job that waits for an operator starts over. A job that
    /// replaces indexes always runs, and supersedes a finished or waiting one. Returns the job. Blocks.
    ///
    /// # Errors
    ///
    /// [`SubmitError`] if the state folder cannot be written, or if an unfinished job conflicts. No job is created
    /// then.
    pub(crate) fn submit(&self, received: &Path, job: Job) -> Result<Job, SubmitError> {
        let _filing = self.filing.lock().unwrap_or_else(PoisonError::into_inner);
        match self.current(&job.sha256) {
            Some(current) if job.replace && current.state.is_at_rest() => {}
            Some(current) if job.replace && !current.replace => {
                return Err(SubmitError::Unfinished(current.id));
            }
            Some(current) => {
                // A part that stays is deleted after a day.
                let _ = std::fs::remove_file(received);
                return Ok(self.resume_filed(&current.id).unwrap_or(current));
            }
            None => {}
        }
        if !self.shared().has_room(&job) {
            return Err(SubmitError::Full);
        }
        let sha256 = &job.sha256;
        self.state.keep(received, sha256)?;
        if let Err(error) = self.state.save(&job) {
            self.state.remove_upload(sha256);
            return Err(error.into());
        }
        let (id, mut shared) = (job.id.clone(), self.shared());
        match shared.jobs.get_mut(&id) {
            Some(entry) => entry.job = job.clone(),
            None => _ = shared.jobs.insert(id.clone(), Entry::new(job.clone())),
        }
        self.wait_again(shared, id);
        Ok(job)
    }

    /// Runs the next job, or waits for one, removing old jobs in the meantime. Returns `false` if the server stops.
    fn run_next(&self) -> bool {
        self.sweep(SystemTime::now());
        let Some(id) = self.next_waiting() else { return !self.shared().is_stopping };
        let Some(job) = self.change(&id, Job::begin) else { return true };
        log_unsaved(&job, self.state.save(&job));
        let input = Input::Named {
            path: self.state.upload(&job.sha256),
            name: job.name.clone(),
            origin: "upload".to_owned(),
        };
        let is_read = AtomicBool::new(false);
        let on_progress = |progress: BuildProgress| {
            self.change_quietly(&id, |job| job.progress = progress.into());
            // Only children read the upload after this.
            if progress.total != 0
                && !is_read.swap(true, Ordering::Relaxed)
                && let Some(job) = self.view(&id, Job::clone)
            {
                log_unsaved(&job, self.state.save(&job));
            }
        };
        self.metrics.jobs_running.inc();
        let put = self.builder.put_options(job.replace, Some(job.provenance()));
        let deadline = OnceLock::new();
        let retry = |why: &str, pause: Duration| self.wait_for_store(&id, why, pause, &deadline);
        let build = || self.builder.build(input, None, &put, &retry, &on_progress);
        let built = catch_unwind(AssertUnwindSafe(build));
        self.metrics.jobs_running.dec();
        match built {
            Ok(results) => {
                self.metrics.built(&results);
                self.finish(&id, |job| job.end(results));
            }
            // The panic is in the log.
            Err(_) => self.finish(&id, |job| job.fail(format!("{}: the server has failed", job.name))),
        }
        true
    }

    /// Waits until the indexes of a job are put into the stores again, which took none of them for the reason `why`.
    /// Returns `false` if they are put no more: the time since the first failure, which `deadline` ends, is over, or
    /// the server stops.
    fn wait_for_store(&self, id: &str, why: &str, pause: Duration, deadline: &OnceLock<Instant>) -> bool {
        let deadline = *deadline.get_or_init(|| {
            tracing::warn!(job = id, error = why, "no store accepts an index; it is tried again");
            // The job goes on after a restart, however often the server ends meanwhile.
            if let Some(job) = self.change(id, |job| job.lacks_store(why)) {
                log_unsaved(&job, self.state.save(&job));
            }
            // A time beyond the clock is as long as a server runs.
            let now = Instant::now();
            now.checked_add(self.publish_within).unwrap_or(now + FOREVER)
        });
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        let is_running = |shared: &mut Shared| !shared.is_stopping;
        let waited = self.wakes.wait_timeout_while(self.shared(), pause.min(left), is_running);
        let (shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !shared.is_stopping
    }

    /// Returns the next queued job, or `None` if there is none for a while or the server stops.
    fn next_waiting(&self) -> Option<String> {
        let is_idle = |shared: &mut Shared| shared.waiting.is_empty() && !shared.is_stopping;
        let waited = self.wakes.wait_timeout_while(self.shared(), SWEEP, is_idle);
        let (mut shared, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if shared.is_stopping {
            return None;
        }
        let id = shared.waiting.pop_front();
        self.metrics.jobs_waiting.set(shared.waiting.len().try_into().unwrap_or(i64::MAX));
        id
    }

    /// Ends a job by `end` and writes it. The upload of a job that has finished is deleted; that of a job that waits
    /// for an operator stays. Followers see the end when all of this is done.
    fn finish(&self, id: &str, end: impl FnOnce(&mut Job)) {
        let Some(mut job) = self.view(id, Job::clone) else { return };
        end(&mut job);
        let saved = self.state.save(&job);
        if job.state.is_finished() {
            // The upload may have taken the space that the job needs.
            self.state.remove_upload(&job.sha256);
        } else {
            tracing::error!(job = id, error = job.store_error, "a job waits for an operator");
        }
        if saved.is_err() {
            log_unsaved(&job, self.state.save(&job));
        }
        if let Some(entry) = self.shared().jobs.get_mut(id) {
            (entry.size, entry.job) = (json_size(&job), job);
            entry.changes.send_replace(());
        }
    }

    /// Changes a job and notifies its followers. Returns the job.
    fn change(&self, id: &str, change: impl FnOnce(&mut Job)) -> Option<Job> {
        self.change_quietly(id, change);
        self.view(id, Job::clone)
    }

    /// Changes a job and notifies its followers.
    fn change_quietly(&self, id: &str, change: impl FnOnce(&mut Job)) {
        if let Some(entry) = self.shared().jobs.get_mut(id) {
            change(&mut entry.job);
            entry.changes.send_replace(());
        }
    }

    /// Removes finished jobs that have expired, the oldest ones if there are too many, and abandoned partial uploads.
    fn sweep(&self, now: SystemTime) {
        self.state.sweep_parts(now);
        let _filing = self.filing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shared = self.shared();
        let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age > self.keep);
        for id in shared.removable(is_old, MAX_FINISHED) {
            self.state.remove_job(&id);
            shared.jobs.remove(&id);
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Returns whether the client of `job` may have another unfinished job.
    fn has_room(&self, job: &Job) -> bool {
        // A token stands for all addresses that use it.
        let client = |job: &Job| (job.token.clone(), if job.token.is_some() { None } else { job.client });
        let (mut own, mut all, wanted) = (0, 0, client(job));
        for entry in self.jobs.values().filter(|entry| !entry.job.state.is_finished()) {
            all += 1;
            own += usize::from(client(&entry.job) == wanted);
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

/// A job whose state cannot be written continues. It is repeated if the server ends.
fn log_unsaved(job: &Job, saved: Result<(), symdex_store::Error>) {
    if let Err(error) = saved {
        tracing::error!(%error, job = job.id, "the state of a job cannot be written");
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
        let entries = jobs.map(|job| (job.sha256.clone(), Entry::new(job)));
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
}
