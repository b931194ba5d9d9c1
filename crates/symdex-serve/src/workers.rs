//! The threads on which requests are answered. Stores and indexes are read by calls that block.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::oneshot;

use crate::lane::Lane;
use crate::problem::{Problem, ProblemKind};

/// A bounded pool of threads with a bounded queue.
///
/// Lanes take turns, so that the requests of one client wait for each other and not for those of others. No client has
/// all threads, and large requests have at most half of them.
#[derive(Debug)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    has_work: Condvar,
}

type Work = Box<dyn FnOnce() + Send>;

/// The work that runs and waits.
struct Queue {
    threads: usize,
    /// How much work may wait.
    capacity: usize,
    /// Lanes with work that waits, in the order of their turns. No list of work is empty.
    waiting: VecDeque<(Lane, VecDeque<Work>)>,
    /// The lanes of the work that runs, in no order.
    running: Vec<Lane>,
    is_closed: bool,
}

impl Workers {
    /// A pool of `threads`, for which `capacity` more requests may wait.
    ///
    /// # Errors
    ///
    /// The system's error if not all threads can be started.
    pub(crate) fn new(threads: usize, capacity: usize) -> io::Result<Self> {
        let queue = Queue {
            threads: threads.max(1),
            capacity,
            waiting: VecDeque::new(),
            running: Vec::new(),
            is_closed: false,
        };
        let threads = queue.threads;
        let shared = Arc::new(Shared { queue: Mutex::new(queue), has_work: Condvar::new() });
        // If a thread cannot be started, this is dropped, which ends the others.
        let workers = Self { shared };
        for _ in 0..threads {
            let shared = Arc::clone(&workers.shared);
            thread::Builder::new().name("symdex-worker".to_owned()).spawn(move || shared.work())?;
        }
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
                return Err(Problem::overloaded("too many requests are waiting"));
            }
            self.shared.push(&mut queue, lane, work)
        };
        pending.done().await
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
        done.map_err(|_| Problem::new(ProblemKind::Internal, "the work for this request has failed"))
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
        &self,
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
        self.has_work.notify_one();
        pending
    }

    /// What a thread does.
    fn work(&self) {
        let mut queue = self.lock();
        while !queue.is_closed {
            let Some((lane, work)) = queue.next() else {
                queue = self.has_work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(queue);
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                tracing::error!("the work for a request has panicked");
            }
            queue = self.lock();
            queue.end(lane);
        }
    }
}

impl Queue {
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
    use crate::lane::Client;

    /// A lane of the client with this number.
    fn lane(client: usize, is_large: bool) -> Lane {
        Lane { client: Client::Token(client), is_large }
    }

    fn queue(threads: usize, capacity: usize, waiting: &[Lane]) -> Queue {
        let (waiting_now, running) = (VecDeque::new(), Vec::new());
        let mut queue = Queue { threads, capacity, waiting: waiting_now, running, is_closed: false };
        waiting.iter().for_each(|lane| queue.push(*lane, Box::new(|| ())));
        queue
    }

    /// The lanes of the work that begins if none ends.
    fn begun(queue: &mut Queue) -> Vec<Lane> {
        let next = || (queue.running.len() < queue.threads).then(|| queue.next())?;
        std::iter::from_fn(next).map(|(lane, _)| lane).collect()
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
