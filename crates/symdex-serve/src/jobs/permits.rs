//! How many children may run at one time.

use std::sync::{Condvar, Mutex, PoisonError};

/// A number of permits. Threads wait until one is free.
#[derive(Debug)]
pub(super) struct Permits {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A permit. It is given back when this is dropped.
pub(super) struct Permit<'p>(&'p Permits);

impl Permits {
    pub(super) fn new(count: usize) -> Self {
        Self { free: Mutex::new(count), freed: Condvar::new() }
    }

    /// Waits for a permit.
    pub(super) fn take(&self) -> Permit<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let free = self.freed.wait_while(free, |free| *free == 0);
        *free.unwrap_or_else(PoisonError::into_inner) -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn no_more_threads_than_permits_run_at_one_time() {
        let (permits, running, most) = (Permits::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
        let begin = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    begin.wait();
                    for _ in 0..100 {
                        let _permit = permits.take();
                        most.fetch_max(1 + running.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                        std::thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 2);
        assert_eq!(*permits.free.lock().expect("not poisoned"), 2);
    }
}
