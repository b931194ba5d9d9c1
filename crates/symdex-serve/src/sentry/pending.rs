//! Requests that were not answered in the time that their clients wait. The answers are kept for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use uuid::Uuid;

use crate::limits::{Client, has_share};
use crate::problem::{Problem, ProblemKind};

/// How long an answer is kept after it is ready.
const KEPT: Duration = Duration::from_secs(90);

/// How many requests may be pending or kept.
const MAX_PENDING: usize = 4096;

/// The answer of a request, as JSON.
pub(super) type JsonResult = Result<Bytes, Problem>;

/// A request that is being answered.
#[derive(Clone, Debug)]
pub(super) struct Running(watch::Receiver<Option<JsonResult>>);

impl Running {
    /// A request that `work` answers, also if its client goes away while the request is kept. `work` is dropped when
    /// nobody can ask for the answer any more.
    pub(super) fn start(work: impl Future<Output = JsonResult> + Send + 'static) -> Self {
        let (sender, receiver) = watch::channel(None);
        tokio::spawn(async move {
            tokio::select! {
                answer = work => drop(sender.send(Some(answer))),
                () = sender.closed() => {}
            }
        });
        Self(receiver)
    }

    /// The answer.
    pub(super) async fn answer(&mut self) -> JsonResult {
        let failed = || Problem::new(ProblemKind::Internal, "the request failed on the server");
        let answer = self.0.wait_for(Option::is_some).await.map(|answer| Option::clone(&answer));
        answer.ok().flatten().unwrap_or_else(|| Err(failed()))
    }

    /// The answer; `None` if it is not ready within `wait`. A time of 0 does not wait at all.
    pub(super) async fn answer_within(&mut self, wait: Duration) -> Option<JsonResult> {
        if wait.is_zero() { None } else { tokio::time::timeout(wait, self.answer()).await.ok() }
    }
}

/// The requests whose clients come back for the answer.
#[derive(Debug)]
pub(crate) struct PendingRequests {
    table: Arc<Mutex<Table>>,
    kept: Duration,
}

#[derive(Debug)]
struct Table {
    requests: HashMap<Uuid, Request>,
    /// How many answers there were.
    answered: u64,
    /// How many bytes the answers may have together. Those of one client may have half of them.
    max_bytes: u64,
}

/// A request that is pending, or whose answer is kept.
#[derive(Debug)]
struct Request {
    client: Client,
    running: Running,
    /// `None` until it is answered.
    answer: Option<AnswerSize>,
    /// Removes it when its time is over.
    removal: AbortHandle,
}

#[derive(Clone, Copy, Debug)]
struct AnswerSize {
    /// Its place in the order of all answers.
    number: u64,
    bytes: u64,
}

impl Drop for Request {
    fn drop(&mut self) {
        self.removal.abort();
    }
}

impl PendingRequests {
    /// No requests yet. Answers that are kept may have a quarter of `memory`, what requests may reserve.
    pub(crate) fn new(memory: u64) -> Self {
        let table = Table { requests: HashMap::new(), answered: 0, max_bytes: memory / 4 };
        Self { table: Arc::new(Mutex::new(table)), kept: KEPT }
    }

    /// Keeps `running`, a request of `client`, until its client has had time to fetch the answer. Returns its id. The
    /// oldest answers are dropped if there are too many.
    ///
    /// # Errors
    ///
    /// A problem `overloaded` if too many requests are pending.
    pub(super) fn keep(&self, mut running: Running, client: Client) -> Result<Uuid, Problem> {
        let id = Uuid::new_v4();
        let mut table = lock(&self.table);
        if !table.make_room(client) {
            return Err(Problem::overloaded("pending", "too many requests are pending"));
        }
        let (shared, kept, kept_running) = (Arc::clone(&self.table), self.kept, running.clone());
        let removal = tokio::spawn(async move {
            let bytes = running.answer().await.map_or(0, |answer| answer.len() as u64);
            // Only the table keeps the answer.
            drop(running);
            lock(&shared).answer(id, bytes);
            tokio::time::sleep(kept).await;
            lock(&shared).requests.remove(&id);
        });
        let request =
            Request { client, running: kept_running, answer: None, removal: removal.abort_handle() };
        table.requests.insert(id, request);
        Ok(id)
    }

    /// The request with this id; `None` if there was none, or if its answer is not kept any more.
    pub(super) fn get(&self, id: Uuid) -> Option<Running> {
        lock(&self.table).requests.get(&id).map(|request| request.running.clone())
    }
}

impl Table {
    /// Drops answers of `client` until it may have one more request; if it has none, the answers of others. Returns
    /// `false` if too many requests are pending.
    fn make_room(&mut self, client: Client) -> bool {
        loop {
            let own = self.requests.values().filter(|request| request.client == client).count();
            if has_share(own, self.requests.len(), MAX_PENDING) {
                return true;
            }
            if !self.drop_oldest(|request| own == 0 || request.client == client) {
                return false;
            }
        }
    }

    /// The request `id` has an answer of `bytes`. The oldest answers are dropped that do not fit any more.
    fn answer(&mut self, id: Uuid, bytes: u64) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let (number, client) = (self.answered, request.client);
        request.answer = Some(AnswerSize { number, bytes });
        self.answered += 1;
        // An answer that is larger than the limit is within the memory of requests, and stays alone.
        let is_older = |request: &Request| request.answer.is_some_and(|answer| answer.number < number);
        let is_own = |request: &Request| request.client == client;
        while self.bytes(is_own) > self.max_bytes / 2
            && self.drop_oldest(|request| is_own(request) && is_older(request))
        {}
        while self.bytes(|_| true) > self.max_bytes && self.drop_oldest(is_older) {}
    }

    /// How many bytes the answers of these requests have.
    fn bytes(&self, of: impl Fn(&Request) -> bool) -> u64 {
        let requests = self.requests.values().filter(|request| of(request));
        requests.filter_map(|request| request.answer).map(|answer| answer.bytes).sum()
    }

    /// Drops the oldest answer of these requests. Returns whether there was one.
    fn drop_oldest(&mut self, of: impl Fn(&Request) -> bool) -> bool {
        let answered = self.requests.iter().filter(|(_, request)| of(request));
        let oldest = answered.filter_map(|(id, request)| Some((request.answer?.number, *id))).min();
        oldest.is_some_and(|(_, id)| self.requests.remove(&id).is_some())
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Client = Client::Token(0);
    const OTHER: Client = Client::Token(1);

    fn never() -> Running {
        Running::start(std::future::pending())
    }

    /// Keeps a request of `client` whose answer has `bytes`.
    async fn keep_answered(pending: &PendingRequests, client: Client, bytes: usize) -> Uuid {
        let running = Running::start(async move { Ok(Bytes::from(vec![b' '; bytes])) });
        let id = pending.keep(running, client).expect("room");
        let is_answered = || lock(&pending.table).requests.get(&id).is_none_or(|one| one.answer.is_some());
        while !is_answered() {
            tokio::task::yield_now().await;
        }
        id
    }

    #[tokio::test]
    async fn a_client_that_never_waits_leaves_places_for_others() {
        let pending = PendingRequests::new(1 << 20);
        let kept = std::iter::repeat_with(|| pending.keep(never(), CLIENT)).take_while(Result::is_ok).count();
        assert_eq!(kept, MAX_PENDING / 2);
        let refused = pending.keep(never(), CLIENT).expect_err("full");
        assert!(format!("{refused:?}").contains("Overloaded"), "{refused:?}");
        let other = pending.keep(never(), OTHER).expect("left for others");
        assert!(pending.get(other).is_some());
    }

    #[tokio::test]
    async fn the_oldest_answers_of_a_client_make_room_for_its_next_request() {
        let pending = PendingRequests::new(1 << 20);
        let first = keep_answered(&pending, CLIENT, 1).await;
        let second = keep_answered(&pending, CLIENT, 1).await;
        let other = keep_answered(&pending, OTHER, 1).await;
        // The place of the other client is not free either.
        while lock(&pending.table).requests.len() < MAX_PENDING / 2 + 1 {
            pending.keep(never(), CLIENT).expect("room");
        }
        assert!(pending.get(first).is_some());
        pending.keep(never(), CLIENT).expect("room");
        assert!(pending.get(first).is_none() && pending.get(second).is_some(), "the oldest one");
        pending.keep(never(), CLIENT).expect("room");
        assert!(pending.keep(never(), CLIENT).is_err(), "nothing is answered");
        assert!(pending.get(second).is_none() && pending.get(other).is_some());
    }

    #[tokio::test]
    async fn answers_are_bounded_in_bytes_for_each_client_and_for_all() {
        let pending = PendingRequests::new(4 * 1000);
        let is_kept = |ids: &[Uuid]| ids.iter().map(|id| pending.get(*id).is_some()).collect::<Vec<_>>();
        let own = [
            keep_answered(&pending, CLIENT, 300).await,
            keep_answered(&pending, CLIENT, 200).await,
            keep_answered(&pending, CLIENT, 100).await,
        ];
        assert_eq!(is_kept(&own), [false, true, true], "half of the bytes");
        let others =
            [keep_answered(&pending, OTHER, 500).await, keep_answered(&pending, Client::Token(2), 400).await];
        assert_eq!(is_kept(&own), [false, false, true], "the oldest of all");
        assert_eq!(is_kept(&others), [true, true]);
        let large = keep_answered(&pending, CLIENT, 5000).await;
        assert_eq!((is_kept(&others), is_kept(&[large])), (vec![false; 2], vec![true]));
        assert_eq!(lock(&pending.table).bytes(|_| true), 5000);
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_ends() {
        let held = Arc::new(());
        let holds = Arc::clone(&held);
        let running = Running::start(async move {
            std::future::pending::<()>().await;
            drop(holds);
            Ok(Bytes::new())
        });
        tokio::task::yield_now().await;
        drop(running);
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn an_answer_is_kept_until_its_client_has_had_time_to_fetch_it() {
        let (finish, finished) = tokio::sync::oneshot::channel::<()>();
        let mut running = Running::start(async {
            let _ = finished.await;
            Ok(Bytes::from_static(b"{}"))
        });
        assert!(running.answer_within(Duration::ZERO).await.is_none());
        let pending = PendingRequests::new(1 << 20);
        let id = pending.keep(running.clone(), CLIENT).expect("room");
        let short = PendingRequests { kept: Duration::ZERO, ..PendingRequests::new(1 << 20) };
        let short_id = short.keep(running, CLIENT).expect("room");
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
