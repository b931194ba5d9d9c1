//! The threads on which requests are answered. Stores and indexes are read by calls that block.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::oneshot;

use super::lane::{Client, Lane, has_share};
use crate::problem::{Problem, ProblemKind};

/// A bounded pool of threads with a bounded queue.
///
/// Lanes take turns, so that the requests of one client wait for each other and not for those of others. No client has
/// all threads, and large requests have at most half of them.
///
/// Work that [waits for a store](while_waiting) does not take one of the threads meanwhile. The pool starts more, so
/// that a store that does not answer does not delay the requests that need nothing of it.
#[derive(Debug)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
}

/// How much work may wait for stores at one time. A client that has more than its share of it waits for itself.
const MAX_STALLED: usize = 64;

thread_local! {
    /// The pool and the lane of the work on this thread.
    static CURRENT: RefCell<Option<(Arc<Shared>, Lane)>> = const { RefCell::new(None) };
}

/// A number of the client whose request this thread of a pool answers.
pub(crate) fn current_client() -> u64 {
    let client = CURRENT.with_borrow(|current| current.as_ref().map(|(_, lane)| lane.client));
    BuildHasherDefault::<DefaultHasher>::default().hash_one(client.unwrap_or_default())
}

/// Does `call`, which waits for a store. If this is a thread of a pool, another one works instead meanwhile.
pub(crate) fn while_waiting(call: &mut dyn FnMut()) {
    let current = CURRENT.with_borrow(Clone::clone);
    let _stalled = current.map(|(shared, lane)| Stalled::new(shared, lane));
    call();
}

/// Work that waits for a store. Dropping this makes the work count as running again, even above the limit.
struct Stalled {
    shared: Arc<Shared>,
    lane: Lane,
}

impl Stalled {
    fn new(shared: Arc<Shared>, lane: Lane) -> Self {
        let mut queue = shared.lock();
        queue.end(lane);
        queue.stalled.push(lane.client);
        shared.wake(&mut queue);
        drop(queue);
        Self { shared, lane }
    }
}

impl Drop for Stalled {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        if let Some(at) = queue.stalled.iter().position(|client| *client == self.lane.client) {
            queue.stalled.swap_remove(at);
        }
        queue.running.push(self.lane);
        // The client may have its share again.
        self.shared.wake(&mut queue);
    }
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    has_work: Condvar,
}

type Work = Box<dyn FnOnce() + Send>;

/// The work that runs and waits.
struct Queue {
    /// How much work may run at one time.
    threads: usize,
    /// How many threads there are, and how many of them have no work.
    started: usize,
    idle: usize,
    /// How much work may wait.
    capacity: usize,
    /// Lanes with work that waits, in the order of their turns. No list of work is empty.
    waiting: VecDeque<(Lane, VecDeque<Work>)>,
    /// The lanes of the work that runs, in no order.
    running: Vec<Lane>,
    /// The clients of the work that waits for a store, in no order.
    stalled: Vec<Client>,
    is_closed: bool,
}

impl Workers {
    /// A pool of `threads`, for which `capacity` more requests may wait.
    ///
    /// # Errors
    ///
    /// The system's error if not all threads can be started.
    pub(crate) fn new(threads: usize, capacity: usize) -> io::Result<Self> {
        let queue = Mutex::new(Queue::new(threads.max(1), capacity));
        // If a thread cannot be started, this is dropped, which ends the others.
        let workers = Self { shared: Arc::new(Shared { queue, has_work: Condvar::new() }) };
        let mut queue = workers.shared.lock();
        for _ in 0..queue.threads {
            workers.shared.start_thread(&mut queue)?;
        }
        drop(queue);
        Ok(workers)
    }

    /// Does `work` on a thread of the pool, in the lane of this task's request. If the caller stops waiting, work that
    /// has not begun is dropped with what it holds. Work that has begun runs to its end.
    ///
    /// # Errors
    ///
    /// A problem `overloaded` if the queue is full, or if requests of this lane fill half of it. `internal` if `work`
    /// panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let lane = Lane::current();
        let pending = {
            let mut queue = self.shared.lock();
            if !queue.has_room(lane) {
                return Err(Problem::overloaded("queue", "too many requests are waiting"));
            }
            self.shared.push(&mut queue, lane, work)
        };
        pending.done().await
    }

    /// How many requests wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.shared.lock().waiting.iter().map(|(_, work)| work.len()).sum()
    }

    /// As [`run`](Self::run), even if the queue is full. The caller waits for the end before it calls again.
    pub(crate) async fn run_when_free<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let pending = self.shared.push(&mut self.shared.lock(), Lane::current(), work);
        pending.done().await
    }
}

/// Work that was handed to the pool. When this is dropped, the work is dropped too if it has not begun.
struct Pending<W, T> {
    work: Arc<Mutex<Option<W>>>,
    done: oneshot::Receiver<T>,
}

impl<W, T> Pending<W, T> {
    async fn done(mut self) -> Result<T, Problem> {
        let done = (&mut self.done).await;
        done.map_err(|_| Problem::new(ProblemKind::Internal, "the request failed on the server"))
    }
}

impl<W, T> Drop for Pending<W, T> {
    fn drop(&mut self) {
        take(&self.work);
    }
}

fn take<W>(work: &Mutex<Option<W>>) -> Option<W> {
    work.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Drop for Workers {
    /// Does not wait for the threads: they end after what they do now.
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.is_closed = true;
        queue.waiting.clear();
        self.shared.has_work.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
        self: &Arc<Self>,
        queue: &mut Queue,
        lane: Lane,
        work: W,
    ) -> Pending<W, T> {
        let (sender, done) = oneshot::channel();
        let span = tracing::Span::current();
        let pending = Pending { work: Arc::new(Mutex::new(Some(work))), done };
        let work = Arc::clone(&pending.work);
        let run = move || {
            if let Some(work) = take(&work) {
                let _ = sender.send(span.in_scope(work));
            }
        };
        queue.push(lane, Box::new(run));
        self.wake(queue);
        pending
    }

    /// Wakes a thread for work that waits, and starts one if all of them are waiting for stores.
    fn wake(self: &Arc<Self>, queue: &mut Queue) {
        self.has_work.notify_one();
        if queue.lacks_thread()
            && let Err(error) = self.start_thread(queue)
        {
            tracing::warn!(%error, "no thread can be started while others wait for stores");
        }
    }

    fn start_thread(self: &Arc<Self>, queue: &mut Queue) -> io::Result<()> {
        let shared = Arc::clone(self);
        thread::Builder::new().name("symdex-worker".to_owned()).spawn(move || shared.work())?;
        queue.started += 1;
        Ok(())
    }

    /// What a thread does.
    fn work(self: Arc<Self>) {
        let mut queue = self.lock();
        while !queue.is_closed {
            let Some((lane, work)) = queue.next() else {
                queue.idle += 1;
                queue = self.has_work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
                continue;
            };
            drop(queue);
            CURRENT.set(Some((Arc::clone(&self), lane)));
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                tracing::error!("the work for a request has panicked");
            }
            CURRENT.set(None);
            queue = self.lock();
            queue.end(lane);
        }
    }
}

impl Queue {
    fn new(threads: usize, capacity: usize) -> Self {
        let (waiting, running, stalled) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { threads, started: 0, idle: 0, capacity, waiting, running, stalled, is_closed: false }
    }

    /// Whether more work may run than there are threads for.
    fn lacks_thread(&self) -> bool {
        let waiting: usize = self.waiting.iter().map(|(_, work)| work.len()).sum();
        waiting > self.idle
            && self.running.len() < self.threads
            && self.started < self.threads + self.stalled.len()
    }

    /// Whether a request of this lane may wait.
    fn has_room(&self, lane: Lane) -> bool {
        let idle = self.threads.saturating_sub(self.running.len());
        let all: usize = self.waiting.iter().map(|(_, work)| work.len()).sum();
        let own = self.waiting.iter().find(|(other, _)| *other == lane).map_or(0, |(_, work)| work.len());
        all < self.capacity + idle && own < self.capacity.div_ceil(2) + idle
    }

    fn push(&mut self, lane: Lane, work: Work) {
        match self.waiting.iter_mut().find(|(other, _)| *other == lane) {
            Some((_, waiting)) => waiting.push_back(work),
            None => self.waiting.push_back((lane, VecDeque::from([work]))),
        }
    }

    /// The next work, of the first lane that may have one more thread. The lane is last in turn then.
    fn next(&mut self) -> Option<(Lane, Work)> {
        let position = self.waiting.iter().position(|(lane, _)| self.may_run(*lane))?;
        let (lane, mut waiting) = self.waiting.remove(position)?;
        let work = waiting.pop_front()?;
        if !waiting.is_empty() {
            self.waiting.push_back((lane, waiting));
        }
        self.running.push(lane);
        Some((lane, work))
    }

    /// A quarter of the threads is left for other clients, and half of them for small requests. One thread is for all.
    fn may_run(&self, lane: Lane) -> bool {
        let stalled = self.stalled.iter().filter(|client| **client == lane.client).count();
        if self.running.len() >= self.threads
            || stalled != 0 && !has_share(stalled, self.stalled.len(), MAX_STALLED)
        {
            return false;
        }
        let of_client = self.running.iter().filter(|other| other.client == lane.client).count();
        let large = self.running.iter().filter(|other| other.is_large).count();
        of_client < (self.threads - self.threads.div_ceil(4)).max(1)
            && (!lane.is_large || large < self.threads.div_ceil(2))
    }

    fn end(&mut self, lane: Lane) {
        if let Some(position) = self.running.iter().position(|other| *other == lane) {
            self.running.swap_remove(position);
        }
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("running", &self.running).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::limits::Client;

    /// A lane of the client with this number.
    fn lane(client: usize, is_large: bool) -> Lane {
        Lane { client: Client::Token(client), is_large }
    }

    fn queue(threads: usize, capacity: usize, waiting: &[Lane]) -> Queue {
        let mut queue = Queue::new(threads, capacity);
        waiting.iter().for_each(|lane| queue.push(*lane, Box::new(|| ())));
        queue
    }

    /// The lanes of the work that begins if none ends.
    fn begun(queue: &mut Queue) -> Vec<Lane> {
        std::iter::from_fn(|| queue.next()).map(|(lane, _)| lane).collect()
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_a_panic_is_an_answer() {
        let workers = Arc::new(Workers::new(1, 1).expect("a thread"));
        let (release, released) = mpsc::channel::<()>();
        let (started, has_started) = oneshot::channel();
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
        while workers.shared.lock().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(workers.run(|| ()).await.is_err());
        release.send(()).expect("it waits");
        assert!(running.await.expect("no panic").is_ok());
        assert!(waiting.await.expect("no panic here").is_err());
        assert!(workers.run(|| ()).await.is_ok());
    }

    #[tokio::test]
    async fn work_that_waits_for_a_store_leaves_its_thread_to_other_work() {
        let workers = Arc::new(Workers::new(2, 64).expect("threads"));
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let hung: Vec<_> = (0..20)
            .map(|client| {
                let (workers, released) = (Arc::clone(&workers), Arc::clone(&released));
                let wait = move || {
                    let receive = || released.lock().expect("not poisoned").recv().expect("the test sends");
                    while_waiting(&mut || receive());
                };
                tokio::spawn(lane(client % 2, false).scope(async move { workers.run(wait).await }))
            })
            .collect();
        while workers.shared.lock().stalled.len() < 20 {
            tokio::task::yield_now().await;
        }
        // Both threads of the pool, and those of all others, are free for those that do not wait.
        assert_eq!(lane(2, false).scope(workers.run(|| 7)).await.ok(), Some(7));
        assert_eq!(lane(0, false).scope(workers.run(|| 8)).await.ok(), Some(8));
        // Work ends a moment after its result is there.
        while !workers.shared.lock().running.is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(workers.shared.lock().started <= 22);
        (0..20).for_each(|_| release.send(()).expect("they wait"));
        for hung in hung {
            assert!(hung.await.expect("no panic").is_ok());
        }
        assert_eq!(lane(2, false).scope(workers.run(|| 9)).await.ok(), Some(9));
        while !workers.shared.lock().running.is_empty() {
            tokio::task::yield_now().await;
        }
        assert!(workers.shared.lock().stalled.is_empty());
    }

    #[test]
    fn a_client_whose_work_waits_for_stores_leaves_room_for_others() {
        let mut queue = queue(2, 8, &[lane(1, false), lane(2, false)]);
        queue.stalled = vec![Client::Token(1); MAX_STALLED / 2];
        assert_eq!(begun(&mut queue), [lane(2, false)]);
        // A client without such work has its turn, however much of others waits.
        queue.running.clear();
        queue.stalled = vec![Client::Token(1); MAX_STALLED];
        queue.push(lane(2, false), Box::new(|| ()));
        assert_eq!(begun(&mut queue), [lane(2, false)]);
        queue.stalled.pop();
        queue.stalled.truncate(MAX_STALLED / 2 - 1);
        queue.running.clear();
        assert_eq!(begun(&mut queue), [lane(1, false)]);
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_is_dropped_if_it_has_not_begun() {
        let workers = Workers::new(1, 8).expect("a thread");
        let (release, released) = mpsc::channel::<()>();
        let push = |work: Box<dyn FnOnce() + Send>| {
            workers.shared.push(&mut workers.shared.lock(), Lane::default(), work)
        };
        let running = push(Box::new(move || released.recv().expect("the test sends")));
        let held = Arc::new(());
        let holds = Arc::clone(&held);
        let abandoned = push(Box::new(move || drop(holds)));
        assert_eq!(Arc::strong_count(&held), 2);
        drop(abandoned);
        assert_eq!(Arc::strong_count(&held), 1);
        release.send(()).expect("it waits");
        assert!(running.done().await.is_ok());
        assert!(push(Box::new(|| ())).done().await.is_ok());
    }

    #[test]
    fn lanes_take_turns_and_no_client_has_all_threads() {
        let (one, other) = (lane(1, false), lane(2, false));
        let mut busy = queue(8, 100, &[one; 20]);
        assert_eq!(begun(&mut busy), [one; 6]);
        busy.push(other, Box::new(|| ()));
        assert_eq!(begun(&mut busy), [other]);
        busy.push(other, Box::new(|| ()));
        busy.end(one);
        assert_eq!(begun(&mut busy), [one, other]);
        let mut both = queue(8, 100, &[one, one, one, other, other]);
        assert_eq!(begun(&mut both), [one, other, one, other, one]);
        assert_eq!(begun(&mut queue(1, 100, &[one, other])), [one]);
    }

    #[test]
    fn large_requests_have_at_most_half_of_the_threads() {
        let large: Vec<_> = (0..8).map(|client| lane(client, true)).collect();
        let mut busy = queue(8, 100, &large);
        assert_eq!(begun(&mut busy), large[..4]);
        busy.push(lane(0, false), Box::new(|| ()));
        assert_eq!(begun(&mut busy), [lane(0, false)]);
        assert_eq!(begun(&mut queue(1, 100, &large[..1])), large[..1]);
    }

    #[test]
    fn a_lane_fills_at_most_half_of_the_queue() {
        let (one, other) = (lane(1, false), lane(2, false));
        let mut busy = queue(1, 4, &[one; 3]);
        begun(&mut busy);
        assert!(!busy.has_room(one));
        assert!(busy.has_room(other));
        [other, other].into_iter().for_each(|lane| busy.push(lane, Box::new(|| ())));
        assert!(!busy.has_room(lane(3, false)));
        assert!(queue(1, 0, &[]).has_room(one));
    }
}
