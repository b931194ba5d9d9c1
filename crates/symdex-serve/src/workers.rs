//! The threads on which requests are answered. Stores and indexes are read by calls that block.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Problem, ProblemKind};

/// A bounded pool of threads with a bounded queue.
#[derive(Debug)]
pub(crate) struct Workers {
    /// Only its blocking threads are used. `None` while this is dropped.
    runtime: Option<Runtime>,
    /// A permit for each request that runs or waits.
    admitted: Arc<Semaphore>,
}

impl Workers {
    /// A pool of `threads`, for which `queue` more requests may wait.
    ///
    /// # Errors
    ///
    /// The system's error if no thread can be started.
    pub(crate) fn new(threads: usize, queue: usize) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(threads.max(1))
            .thread_name("symdex-worker")
            .build()?;
        let admitted = threads.max(1).saturating_add(queue).min(Semaphore::MAX_PERMITS);
        Ok(Self { runtime: Some(runtime), admitted: Arc::new(Semaphore::new(admitted)) })
    }

    /// Does `work` on a thread of the pool. The work goes on to its end even if nobody waits for it any more.
    ///
    /// # Errors
    ///
    /// A problem `overloaded` if the queue is full, `internal` if `work` panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = Arc::clone(&self.admitted).try_acquire_owned();
        let permit = permit.map_err(|_| Problem::overloaded("too many requests are waiting"))?;
        self.run_with(permit, work).await
    }

    /// As [`run`](Self::run), and waits for room in the queue as long as it takes.
    pub(crate) async fn run_when_free<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.admitted).acquire_owned().await;
        let permit = permit.map_err(|_| Problem::overloaded("the server is stopping"))?;
        self.run_with(permit, work).await
    }

    async fn run_with<T: Send + 'static>(
        &self,
        permit: OwnedSemaphorePermit,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let Some(runtime) = &self.runtime else { return Err(Problem::overloaded("the server is stopping")) };
        let span = tracing::Span::current();
        let done = runtime.spawn_blocking(move || {
            let _permit = permit;
            span.in_scope(work)
        });
        done.await.map_err(|error| {
            tracing::error!(%error, "a worker has failed");
            Problem::new(ProblemKind::Internal, "the work for this request has failed")
        })
    }
}

impl Drop for Workers {
    /// Does not wait for threads: a runtime must not be dropped where it may block.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_full_queue_refuses_and_a_panic_is_an_answer() {
        let workers = Arc::new(Workers::new(1, 1).expect("a thread"));
        let (release, released) = mpsc::channel::<()>();
        let (started, has_started) = tokio::sync::oneshot::channel();
        let spawn = |work: Box<dyn FnOnce() + Send>| {
            let workers = Arc::clone(&workers);
            tokio::spawn(async move { workers.run(work).await })
        };
        let running = spawn(Box::new(move || {
            started.send(()).expect("the test waits");
            released.recv().expect("the test sends");
        }));
        has_started.await.expect("it runs");
        // The queue has room for one.
        let waiting = spawn(Box::new(|| panic!("as the test wants")));
        while workers.admitted.available_permits() != 0 {
            tokio::task::yield_now().await;
        }
        assert!(workers.run(|| ()).await.is_err());
        release.send(()).expect("it waits");
        assert!(running.await.expect("no panic").is_ok());
        assert!(waiting.await.expect("no panic here").is_err());
        assert!(workers.run(|| ()).await.is_ok());
    }
}
