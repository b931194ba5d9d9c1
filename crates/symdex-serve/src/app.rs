//! What all requests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use symdex_store::symbolicator::{SourceError, Symbolicator};

use crate::budget::Budget;
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::problem::Problem;
use crate::sentry::PendingRequests;
use crate::workers::Workers;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) options: ServerOptions,
    pub(crate) symbolicator: Symbolicator,
    pub(crate) budget: Budget,
    pub(crate) metrics: Metrics,
    pub(crate) pending: PendingRequests,
    workers: Workers,
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
}

impl App {
    pub(crate) fn new(options: ServerOptions) -> Result<SharedApp, AppError> {
        let mut on_skipped = |error: SourceError| tracing::warn!(%error, "a source is skipped");
        let symbolicator = Symbolicator::open(&options.symbolicator, &mut on_skipped)?;
        let workers = Workers::new(options.threads, options.queue).map_err(AppError::Threads)?;
        let budget = Budget::new(options.memory);
        Ok(Arc::new(Self {
            options,
            symbolicator,
            budget,
            metrics: Metrics::new(),
            pending: PendingRequests::default(),
            workers,
            is_stopping: AtomicBool::new(false),
        }))
    }

    /// Does `work`, which may block, on a thread of the pool.
    ///
    /// # Errors
    ///
    /// As [`Workers::run`].
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let app = Arc::clone(self);
        self.workers.run(move || work(&app)).await
    }

    /// Whether the server was told to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// From now on, [`is_stopping`](Self::is_stopping).
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }
}
