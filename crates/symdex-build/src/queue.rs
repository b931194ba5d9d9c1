//! Work that is given out to threads, and whose results come back in order.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use rayon::{ScopeFifo, Yield};

/// Pieces of work on the threads of a scope, oldest first.
pub(crate) struct Queue<'s, 'scope, R> {
    scope: &'s ScopeFifo<'scope>,
    results: VecDeque<Receiver<R>>,
}

impl<'s, 'scope, R: Send + 'scope> Queue<'s, 'scope, R> {
    pub(crate) fn new(scope: &'s ScopeFifo<'scope>) -> Self {
        Self { scope, results: VecDeque::new() }
    }

    /// How many results nobody has taken.
    pub(crate) fn len(&self) -> usize {
        self.results.len()
    }

    /// Gives out one more piece of work.
    pub(crate) fn give(&mut self, work: impl FnOnce() -> R + Send + 'scope) {
        let (result, receiver) = sync_channel(1);
        self.scope.spawn_fifo(move |_| {
            // Nobody waits for it after a failure.
            let _ = result.send(work());
        });
        self.results.push_back(receiver);
    }

    /// The result of the oldest piece; this thread works on pieces itself while it waits. `None` where there is none, or where the
    /// work has panicked: then the scope goes on panicking.
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
            // Another thread is at it. More work may turn up meanwhile, of another image for example.
            const SHORT: Duration = Duration::from_micros(200);
            if let Ok(result) = result.recv_timeout(SHORT) {
                return Some(result);
            }
        }
    }
}
