//! The jobs of a server: those that wait, those that run, and those that have finished.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

use super::builder::{BuildProgress, Builder};
use super::intake::BuildInput;
use super::job::{Job, JobState, id_of};
use super::state::StateFolder;
use crate::metrics::Metrics;

/// How often a job may begin. A job during which the server has ended so often may be the reason.
const MAX_ATTEMPTS: u32 = 3;
/// How many finished jobs are kept at most. Each can have megabytes of results.
const MAX_FINISHED: usize = 10_000;
/// How often old jobs are removed.
const SWEEP: Duration = Duration::from_secs(10 * 60);

/// The jobs of a server.
#[derive(Debug)]
pub(crate) struct Jobs {
    state: StateFolder,
    builder: Arc<Builder>,
    metrics: Arc<Metrics>,
    keep: Duration,
    shared: Mutex<Shared>,
    /// Held while files of jobs come or go, so that others do not wait for the disk.
    filing: Mutex<()>,
    /// A job waits, or the server stops.
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
    /// Tells those who follow the job that it has changed.
    changes: watch::Sender<()>,
}

impl Entry {
    fn new(job: Job) -> Self {
        Self { job, changes: watch::Sender::new(()) }
    }
}

/// Why an upload is not accepted as a job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error("cannot keep the upload: {0}")]
    Upload(#[from] io::Error),
    #[error("cannot write the job: {0}")]
    Job(#[from] symdex_store::Error),
    /// The job of the same file does not replace indexes, and has not finished.
    #[error("the same file is being built; send it again when job {0} has finished")]
    Unfinished(String),
}

impl Jobs {
    /// The jobs in `state`. Those that have not finished wait again, in their order. Finished jobs are kept for `keep`.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the folder cannot be read.
    pub(crate) fn open(
        state: StateFolder,
        builder: Arc<Builder>,
        metrics: Arc<Metrics>,
        keep: Duration,
    ) -> io::Result<Arc<Self>> {
        let (mut shared, uploads) = (Shared::default(), state.whole_uploads()?);
        for mut job in state.jobs()? {
            let has_upload = uploads.contains(&job.sha256);
            let unfinished = match job.state {
                JobState::Done | JobState::Failed => None,
                _ if !has_upload => Some("the upload is gone; send it again".to_owned()),
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
        Ok(Arc::new(Self { state, builder, metrics, keep, shared, filing, wakes, stopping }))
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

    /// No more jobs begin, and those who follow jobs are told to end. Jobs that run begin again when the server is
    /// started again.
    pub(crate) fn stop(&self) {
        self.shared().is_stopping = true;
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

    /// Tells when the job changes, and when the server stops. `None` if there is no such job.
    pub(crate) fn follow(&self, id: &str) -> Option<(watch::Receiver<()>, watch::Receiver<bool>)> {
        let changes = self.shared().jobs.get(id)?.changes.subscribe();
        Some((changes, self.stopping.subscribe()))
    }

    /// The job of the upload with this SHA-256, if the upload need not be sent again: the job waits, runs, or is done and
    /// the stores still have its images. This blocks.
    pub(crate) fn current(&self, sha256: &str) -> Option<Job> {
        let job = self.view(&id_of(sha256), Job::clone)?;
        match job.state {
            JobState::Queued | JobState::Running => Some(job),
            JobState::Done => self.builder.has_all(&job.images).then_some(job),
            JobState::Failed => None,
        }
    }

    /// Makes `job` the job of its upload, the file at `received`, whose contents are synced. If the upload has a job that
    /// need not be done again, the file is deleted. A job that replaces indexes is always done. Returns the job. This
    /// blocks.
    ///
    /// # Errors
    ///
    /// [`SubmitError`] if the state folder cannot be written, or if an unfinished job is in the way. There is no new job
    /// then.
    pub(crate) fn submit(&self, received: &Path, job: Job) -> Result<Job, SubmitError> {
        let _filing = self.filing.lock().unwrap_or_else(PoisonError::into_inner);
        match self.current(&job.sha256) {
            Some(current) if job.replace && current.state.is_finished() => {}
            Some(current) if job.replace && !current.replace => {
                return Err(SubmitError::Unfinished(current.id));
            }
            Some(current) => {
                // A part that stays is deleted after a day.
                let _ = std::fs::remove_file(received);
                return Ok(current);
            }
            None => {}
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
        shared.waiting.push_back(id);
        self.metrics.jobs_waiting.set(shared.waiting.len().try_into().unwrap_or(i64::MAX));
        self.wakes.notify_one();
        Ok(job)
    }

    /// Runs the next job, or waits for one and removes old jobs meanwhile. Returns `false` if the server stops.
    fn run_next(&self) -> bool {
        self.sweep(SystemTime::now());
        let Some(id) = self.next_waiting() else { return !self.shared().is_stopping };
        let Some(job) = self.change(&id, Job::begin) else { return true };
        log_unsaved(&job, self.state.save(&job));
        let input = BuildInput {
            path: self.state.upload(&job.sha256),
            name: job.name.clone(),
            origin: "upload".to_owned(),
        };
        let on_progress = |progress: BuildProgress| {
            self.change_quietly(&id, |job| job.progress = progress.into());
        };
        self.metrics.jobs_running.inc();
        let put = self.builder.put_options(job.replace, Some(job.provenance()));
        let build = || self.builder.build(&[input], None, &put, &on_progress);
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

    /// The next job that waits. `None` if there is none for a while, or if the server stops.
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

    /// Ends a job by `end`, writes it, and deletes its upload. Followers see the end when all of this is done.
    fn finish(&self, id: &str, end: impl FnOnce(&mut Job)) {
        let Some(mut job) = self.view(id, Job::clone) else { return };
        end(&mut job);
        let saved = self.state.save(&job);
        // The upload may have taken the space that the job needs.
        self.state.remove_upload(&job.sha256);
        if saved.is_err() {
            log_unsaved(&job, self.state.save(&job));
        }
        self.change(id, |old| *old = job);
    }

    /// Changes a job, and tells those who follow it. Returns the job.
    fn change(&self, id: &str, change: impl FnOnce(&mut Job)) -> Option<Job> {
        self.change_quietly(id, change);
        self.view(id, Job::clone)
    }

    /// Changes a job, and tells those who follow it.
    fn change_quietly(&self, id: &str, change: impl FnOnce(&mut Job)) {
        if let Some(entry) = self.shared().jobs.get_mut(id) {
            change(&mut entry.job);
            entry.changes.send_replace(());
        }
    }

    /// Removes finished jobs that are older than they are kept, and the oldest if there are too many. Removes the parts of
    /// uploads that were given up.
    fn sweep(&self, now: SystemTime) {
        self.state.sweep_parts(now);
        let _filing = self.filing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shared = self.shared();
        let finished = shared.jobs.values().filter_map(|entry| Some((entry.job.finished?.0, &entry.job.id)));
        let mut finished: Vec<_> = finished.collect();
        finished.sort_unstable();
        let too_many = finished.len().saturating_sub(MAX_FINISHED);
        let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age > self.keep);
        let old = finished.iter().enumerate().filter(|(number, (at, _))| *number < too_many || is_old(*at));
        let old: Vec<String> = old.map(|(_, (_, id))| (*id).clone()).collect();
        for id in old {
            self.state.remove_job(&id);
            shared.jobs.remove(&id);
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job whose state cannot be written goes on. It is done again if the server ends.
fn log_unsaved(job: &Job, saved: Result<(), symdex_store::Error>) {
    if let Err(error) = saved {
        tracing::error!(%error, job = job.id, "the state of a job cannot be written");
    }
}
