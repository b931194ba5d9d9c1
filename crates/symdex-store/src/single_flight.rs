//! One thread at a time does the work for a key, or for several keys.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a thread waits for another one. Stores time out earlier, 10 seconds by default, unless they are asked for
/// very much, or are folders of a file system that hangs.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The keys that threads work for.
#[derive(Debug)]
pub(crate) struct SingleFlight<K> {
    busy: Mutex<HashSet<K>>,
    done: Condvar,
}

/// The right to work for some keys. Dropping it lets the next thread continue.
pub(crate) struct Flight<'f, K: Eq + Hash> {
    flights: &'f SingleFlight<K>,
    keys: Vec<K>,
}

impl<K> Default for SingleFlight<K> {
    fn default() -> Self {
        Self { busy: Mutex::default(), done: Condvar::new() }
    }
}

impl<K: Eq + Hash + Clone> SingleFlight<K> {
    fn busy(&self) -> MutexGuard<'_, HashSet<K>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no other thread works for one of `keys`, at most for `longest`. What those threads have found may
    /// then be in a cache. Returns `None` if one of them still works. The thread must not have the right for other keys
    /// already: two such threads could wait for each other.
    pub(crate) fn turn(&self, keys: &[K], longest: Duration) -> Option<Flight<'_, K>> {
        let is_busy = |busy: &mut HashSet<K>| keys.iter().any(|key| busy.contains(key));
        let waited = self.done.wait_timeout_while(self.busy(), longest, is_busy);
        let (mut busy, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        busy.extend(keys.iter().cloned());
        Some(Flight { flights: self, keys: keys.to_vec() })
    }
}

impl<K: Eq + Hash> Drop for Flight<'_, K> {
    fn drop(&mut self) {
        let mut busy = self.flights.busy.lock().unwrap_or_else(PoisonError::into_inner);
        self.keys.iter().for_each(|key| _ = busy.remove(key));
        drop(busy);
        self.flights.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_does_not_wait_without_limit() {
        let flights = SingleFlight::default();
        let first = flights.turn(&[1, 2], Duration::ZERO).expect("nobody works");
        assert!(flights.turn(&[2, 3], Duration::from_millis(1)).is_none());
        assert!(flights.turn(&[3], Duration::ZERO).is_some(), "the thread that gave up holds nothing");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| flights.turn(&[2], Duration::from_secs(60)).is_some());
            drop(first);
            assert!(waits.join().expect("no panic"));
        });
    }
}
