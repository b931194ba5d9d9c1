//! What all requests share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::response::{IntoResponse, Response};
use symdex_answer::fetch::{FetchError, FetchingSource, Misses};
use symdex_answer::{Matching, Refill, SourceError, Symbolicator};
use symdex_pipeline::archive::TemporaryFolder;
use symdex_pipeline::{DiskSpace, PipelineOptions};
use symdex_report::Source;
use symdex_store::{OnConflict, StoreUrl};

use crate::auth::Access;
use crate::health::StoreHealth;
use crate::jobs::{Bucket, Builder, JobStore, Jobs, Publishing, StateFolder, Uploads};
use crate::limits::{Budget, Workers, current_client, while_waiting};
use crate::metrics::Metrics;
use crate::misses;
use crate::options::ServerOptions;
use crate::problem::{Problem, ProblemKind};
use crate::sentry::PendingRequests;

/// How long a request waits for a store that is asked whether an image in memory is still the same.
const STORE_PATIENCE: Duration = Duration::from_secs(1);

/// What all requests share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) options: ServerOptions,
    pub(crate) access: Arc<Access>,
    pub(crate) symbolicator: Arc<Symbolicator>,
    /// Builds debug files; `None` if the server must not.
    pub(crate) builder: Option<Arc<Builder>>,
    /// Fetches and builds images that no store has; `None` if there are no sources of debug files.
    misses: Option<Misses>,
    pub(crate) budget: Budget,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) uploads: Arc<Uploads>,
    /// The jobs of uploads; `None` if the server does not accept uploads.
    jobs: Option<Arc<Jobs>>,
    pub(crate) pending: PendingRequests,
    pub(crate) store_health: StoreHealth,
    pub(crate) workers: Workers,
    is_stopping: AtomicBool,
}

/// The state of the router.
pub(crate) type SharedApp = Arc<App>;

/// Why the parts of a server cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AppError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("cannot start threads: {0}")]
    Threads(std::io::Error),
    #[error("{}: cannot use the folder: {error}", path.display())]
    Folder { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Jobs(symdex_store::Error),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("debug files cannot be fetched: no program is configured that reads them in isolation")]
    NoIsolation,
}

fn log_refill(Refill { id, to, from, outcome, .. }: &Refill) {
    match outcome {
        Ok(Some(outcome)) => tracing::info!(%id, %to, %from, ?outcome, "a lost index is put again"),
        Ok(None) => {
            tracing::warn!(%id, %to, %from, "a lost index is not put again: the other store has lost it, too")
        }
        Err(error) => tracing::warn!(%id, %to, %from, error, "a lost index cannot be put again"),
    }
}

/// Where uploads and jobs are kept, and the folder in which uploads are received; `work` if they are kept elsewhere.
fn open_state(url: &StoreUrl, work: &Path) -> Result<(Box<dyn JobStore>, PathBuf), AppError> {
    if let Some(path) = url.folder() {
        let state = StateFolder::open(&path).map_err(|error| AppError::Folder { path, error })?;
        let uploads = state.uploads().to_owned();
        return Ok((Box::new(state), uploads));
    }
    if url.is_bucket() {
        return Ok((Box::new(Bucket::open(url).map_err(AppError::Jobs)?), work.to_owned()));
    }
    let error = std::io::Error::other("uploads are kept in a folder or in a bucket: s3://, gs:// or az://");
    Err(AppError::Folder { path: url.to_string().into(), error })
}

/// A folder for temporary files of builds, in the state folder if there is one. Those of killed servers are deleted.
fn work_folder(options: &ServerOptions) -> Result<TemporaryFolder, AppError> {
    let path = options.state.as_ref().and_then(StoreUrl::folder).unwrap_or_else(std::env::temp_dir);
    let made = std::fs::create_dir_all(&path).and_then(|()| TemporaryFolder::new_in(&path));
    made.map_err(|error| AppError::Folder { path, error })
}

impl App {
    pub(crate) fn new(options: ServerOptions) -> Result<SharedApp, AppError> {
        let mut on_skipped = |error: SourceError| tracing::warn!(%error, "a source is skipped");
        let metrics = Arc::new(Metrics::new());
        let timed = Arc::clone(&metrics);
        let reader = options.symbolicator.reader().clone().patience(STORE_PATIENCE);
        let reader = reader.around_calls(move |url, call| timed.time_store_call(url, || while_waiting(call)));
        let sources = options.symbolicator.clone().reader_options(reader).on_refill(log_refill);
        let symbolicator = Symbolicator::open(&sources, &mut on_skipped)?;
        let workers = Workers::new(options.threads, options.queue).map_err(AppError::Threads)?;
        let (budget, pending) =
            (Budget::new(options.memory, options.allocated), PendingRequests::new(options.memory / 2));
        let symbolicator = Arc::new(symbolicator);
        let work = work_folder(&options)?;
        // Uploads are in the same file system.
        let work_path = work.path().to_owned();
        let state = options.state.as_ref().map(|url| open_state(url, &work_path)).transpose()?;
        let space = DiskSpace::of_folder(&work_path, options.min_free);
        let default_rule = if options.tokens.is_empty() { OnConflict::More } else { OnConflict::Keep };
        let on_conflict = options.on_conflict.unwrap_or(default_rule);
        let builder = options.isolation.clone().map(|isolation| -> Result<_, AppError> {
            let publishing = Publishing { symbolicator: Arc::clone(&symbolicator), on_conflict };
            let mut pipeline = PipelineOptions::default();
            pipeline.at_once = Some(options.build_jobs.max(1));
            pipeline.max_memory = options.build_memory;
            pipeline.max_seconds = Some(options.build_seconds);
            pipeline.unwind_rows = options.build_unwind_rows;
            // Requests come first.
            pipeline.isolation = Some(isolation.nice());
            let builder = Builder::new(pipeline, publishing, work, Arc::clone(&space));
            Ok(Arc::new(builder.map_err(|failure| AppError::Threads(std::io::Error::other(failure)))?))
        });
        let builder = builder.transpose()?;
        let misses = match &builder {
            _ if options.debug_sources.is_empty() => None,
            None => return Err(AppError::NoIsolation),
            Some(builder) => {
                let counts = metrics.misses.clone();
                let fetch = options.fetch.clone().temporary(&work_path).space(Arc::clone(&space));
                Some(misses::start(&options, &fetch, Arc::clone(builder), counts)?)
            }
        };
        let received = state.as_ref().map_or(&work_path, |(_, folder)| folder).clone();
        let uploads = Arc::new(Uploads::new(received, space));
        let jobs = match (state, &builder) {
            (Some((state, _)), Some(builder)) => {
                let times = (options.keep_jobs, options.publish_within);
                let (builder, uploads) = (Arc::clone(builder), Arc::clone(&uploads));
                let jobs = Jobs::open(state, builder, uploads, Arc::clone(&metrics), times);
                jobs.start(options.build_jobs).map_err(AppError::Threads)?;
                Some(jobs)
            }
            _ => None,
        };
        let store_health = StoreHealth::new(&symbolicator);
        Ok(Arc::new(Self {
            access: Arc::new(Access::new(&options)),
            options,
            symbolicator,
            builder,
            misses,
            budget,
            metrics,
            uploads,
            jobs,
            pending,
            store_health,
            workers,
            is_stopping: AtomicBool::new(false),
        }))
    }

    /// Does `work`, which may block, on a thread of the pool.
    ///
    /// # Errors
    ///
    /// As [`Workers::run`], and a problem `overloaded` if the program has allocated more memory than it may.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        self.budget.check()?;
        let app = Arc::clone(self);
        self.workers.run(move || work(&app)).await
    }

    /// As [`run`](Self::run), for work that makes the whole answer, so that the thread of the pool writes its JSON.
    pub(crate) async fn respond<R: IntoResponse>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> Response {
        self.run(|app| work(app).into_response()).await.unwrap_or_else(IntoResponse::into_response)
    }

    /// As [`run`](Self::run), and waits for a thread as long as it takes.
    pub(crate) async fn run_when_free<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let app = Arc::clone(self);
        self.workers.run_when_free(move || work(&app)).await
    }

    /// A source of answers for one report. Images that no store has are fetched. The first answer waits for them, at
    /// most for [`fetch_wait`](ServerOptions::fetch_wait).
    pub(crate) fn session(&self) -> impl Source + Send + '_ {
        self.session_matching(None)
    }

    /// As [`session`](Self::session), with the assumptions of a request.
    pub(crate) fn session_matching<'a>(&'a self, matching: Option<&'a Matching>) -> impl Source + Send + 'a {
        self.session_until(matching, Instant::now() + self.options.fetch_wait)
    }

    /// As [`session_matching`](Self::session_matching), for one of several sessions that wait until `deadline`.
    pub(crate) fn session_until<'a>(
        &'a self,
        matching: Option<&'a Matching>,
        deadline: Instant,
    ) -> impl Source + Send + 'a {
        let session = self.symbolicator.session(&|_| ()).matching(matching);
        FetchingSource::new(session, self.misses.as_ref(), Some(deadline)).client(current_client())
    }

    /// Whether the server was told to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// The jobs of uploads.
    ///
    /// # Errors
    ///
    /// A problem if the server does not accept uploads.
    pub(crate) fn jobs(&self) -> Result<&Arc<Jobs>, Problem> {
        self.jobs.as_ref().ok_or_else(|| {
            let detail = match self.builder {
                Some(_) => "it has no folder for them; start it with `state`",
                None => "it has no program that builds debug files",
            };
            Problem::new(ProblemKind::UploadsOff, detail)
        })
    }

    /// From now on, [`is_stopping`](Self::is_stopping).
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        if let Some(jobs) = &self.jobs {
            jobs.stop();
        }
    }

    /// Waits until nothing writes jobs any more, at most for `patience`. Blocks.
    pub(crate) fn join(&self, patience: Duration) {
        if let Some(jobs) = &self.jobs {
            jobs.join(patience);
        }
    }
}
