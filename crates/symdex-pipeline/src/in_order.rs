//! Parallel work with results in order, of which few are in memory.

use std::collections::VecDeque;
use std::sync::mpsc;

use rayon::ThreadPool;

/// Calls `work` on each item, on the threads of `pool`, and `done` with each result on this thread, in the order of the
/// items. At most `in_flight` items are in work or waiting for `done` at any time. After `done` fails, no more work is
/// started.
pub fn in_order<T: Send, R: Send, E>(
    pool: &ThreadPool,
    in_flight: usize,
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
    mut done: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let mut items = items.into_iter();
    let work = &work;
    pool.in_place_scope(|scope| {
        let mut waiting = VecDeque::new();
        loop {
            while waiting.len() < in_flight
                && let Some(item) = items.next()
            {
                let (result, receiver) = mpsc::sync_channel(1);
                scope.spawn(move |_| {
                    // Fails if `done` has failed: the receiver is gone.
                    let _ = result.send(work(item));
                });
                waiting.push_back(receiver);
            }
            let Some(receiver) = waiting.pop_front() else { return Ok(()) };
            // Without a result, the work has panicked. The scope propagates the panic.
            let Ok(result) = receiver.recv() else { return Ok(()) };
            done(result)?;
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn pool() -> ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(3).build().expect("three threads")
    }

    #[test]
    fn results_come_in_order_and_few_are_in_flight() {
        let begun = AtomicUsize::new(0);
        let mut ended = 0;
        let work = |item: usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            item
        };
        let done = |item| {
            assert_eq!(item, ended);
            assert!(begun.load(Ordering::SeqCst) <= ended + 3);
            ended += 1;
            Ok::<(), ()>(())
        };
        in_order(&pool(), 3, 0..100, work, done).expect("no failure");
        assert_eq!(ended, 100);
    }

    #[test]
    fn a_failure_ends_the_work() {
        let begun = AtomicUsize::new(0);
        let work = |_| begun.fetch_add(1, Ordering::SeqCst);
        assert_eq!(in_order(&pool(), 2, 0..100, work, |_| Err("enough")), Err("enough"));
        assert!(begun.load(Ordering::SeqCst) <= 2);
    }
}
