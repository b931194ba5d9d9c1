//! A queue of tasks that run on threads. Results are taken in the order in which the tasks were added.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use rayon::{ScopeFifo, Yield};

/// Tasks on the threads of a scope, the oldest first.
pub(crate) struct Queue<'s, 'scope, R> {
    scope: &'s ScopeFifo<'scope>,
    results: VecDeque<Receiver<R>>,
}

impl<'s, 'scope, R: Send + 'scope> Queue<'s, 'scope, R> {
    pub(crate) fn new(scope: &'s ScopeFifo<'scope>) -> Self {
        Self { scope, results: VecDeque::new() }
    }

    /// How many results have not been taken.
    pub(crate) fn len(&self) -> usize {
        self.results.len()
    }

    /// Adds a task.
    pub(crate) fn add(&mut self, work: impl FnOnce() -> R + Send + 'scope) {
        let (result, receiver) = sync_channel(1);
        self.scope.spawn_fifo(move |_| {
            // After a failure the receiver is gone.
            let _ = result.send(work());
        });
        self.results.push_back(receiver);
    }

    /// Takes the result of the oldest task. This thread runs tasks itself while it waits. Returns `None` if there is no
    /// task, or if the task has panicked; the scope then panics as well.
    pub(crate) fn take(&mut self) -> Option<R> {
        let result = self.results.pop_front()?;
        loop {
            match result.try_recv() {
                Ok(result) => return Some(result),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            if rayon::yield_now() == Some(Yield::Executed) {
                continue;
            }
            // Another thread runs the task. Meanwhile other tasks may be added, for example by the build of another
            // image.
            const SHORT: Duration = Duration::from_micros(200);
            if let Ok(result) = result.recv_timeout(SHORT) {
                return Some(result);
            }
        }
    }
}
