//! Requests that were not answered in the time that their clients wait. The answers are kept for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::watch;
use uuid::Uuid;

use crate::problem::{Problem, ProblemKind};

/// How long an answer is kept after it is ready.
const KEPT: Duration = Duration::from_secs(90);

/// How many requests may be pending or kept. The memory of their answers counts with that of all requests.
const MAX_PENDING: usize = 4096;

/// The answer of a request, as JSON.
pub(super) type Answer = Result<Bytes, Problem>;

/// A request that is being answered.
#[derive(Clone, Debug)]
pub(super) struct Running(watch::Receiver<Option<Answer>>);

impl Running {
    /// A request that `work` answers, also if its client goes away.
    pub(super) fn start(work: impl Future<Output = Answer> + Send + 'static) -> Self {
        let (sender, receiver) = watch::channel(None);
        tokio::spawn(async move {
            let answer = work.await;
            // It fails if the request is no longer waiting.
            let _ = sender.send(Some(answer));
        });
        Self(receiver)
    }

    /// The answer.
    pub(super) async fn answer(&mut self) -> Answer {
        let failed = || Problem::new(ProblemKind::Internal, "the work for this request has failed");
        let answer = self.0.wait_for(Option::is_some).await.map(|answer| Option::clone(&answer));
        answer.ok().flatten().unwrap_or_else(|| Err(failed()))
    }

    /// The answer; `None` if it is not ready within `wait`. A time of 0 does not wait at all.
    pub(super) async fn answer_within(&mut self, wait: Duration) -> Option<Answer> {
        match wait.is_zero() {
            true => None,
            false => tokio::time::timeout(wait, self.answer()).await.ok(),
        }
    }
}

/// The requests whose clients come back for the answer.
#[derive(Debug)]
pub(crate) struct PendingRequests {
    requests: Arc<Mutex<HashMap<Uuid, Running>>>,
    kept: Duration,
}

impl Default for PendingRequests {
    fn default() -> Self {
        Self { requests: Arc::default(), kept: KEPT }
    }
}

impl PendingRequests {
    /// Keeps `running` until its client has had time to fetch the answer. Returns its id.
    ///
    /// # Errors
    ///
    /// A problem `overloaded` if too many are kept.
    pub(super) fn keep(&self, mut running: Running) -> Result<Uuid, Problem> {
        let id = Uuid::new_v4();
        let mut requests = lock(&self.requests);
        if requests.len() >= MAX_PENDING {
            return Err(Problem::overloaded("too many requests are pending"));
        }
        requests.insert(id, running.clone());
        drop(requests);
        let (requests, kept) = (Arc::clone(&self.requests), self.kept);
        tokio::spawn(async move {
            let _ = running.answer().await;
            tokio::time::sleep(kept).await;
            lock(&requests).remove(&id);
        });
        Ok(id)
    }

    /// The request with this id; `None` if there was none, or if its answer has expired.
    pub(super) fn get(&self, id: Uuid) -> Option<Running> {
        lock(&self.requests).get(&id).cloned()
    }
}

fn lock(requests: &Mutex<HashMap<Uuid, Running>>) -> MutexGuard<'_, HashMap<Uuid, Running>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_is_kept_until_its_client_has_had_time_to_fetch_it() {
        let (finish, finished) = tokio::sync::oneshot::channel::<()>();
        let mut running = Running::start(async {
            let _ = finished.await;
            Ok(Bytes::from_static(b"{}"))
        });
        assert!(running.answer_within(Duration::ZERO).await.is_none());
        let pending = PendingRequests::default();
        let id = pending.keep(running.clone()).expect("room");
        let short = PendingRequests { kept: Duration::ZERO, ..PendingRequests::default() };
        let short_id = short.keep(running).expect("room");
        let mut running = pending.get(id).expect("it runs still");
        assert!(running.answer_within(Duration::ZERO).await.is_none());
        assert!(short.get(short_id).is_some());
        finish.send(()).expect("it waits");
        assert_eq!(running.answer().await.expect("an answer"), "{}");
        while short.get(short_id).is_some() {
            tokio::task::yield_now().await;
        }
        assert!(pending.get(id).is_some() && pending.get(short_id).is_none());
    }

    #[tokio::test]
    async fn work_that_panics_is_a_problem() {
        let mut running = Running::start(async { panic!("as the test wants") });
        assert!(running.answer().await.is_err());
    }
}
