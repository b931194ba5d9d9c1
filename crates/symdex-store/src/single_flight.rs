//! One thread at a time does the work for a key.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The keys that threads work for.
#[derive(Debug)]
pub(crate) struct SingleFlight<K> {
    busy: Mutex<HashSet<K>>,
    done: Condvar,
}

/// The right to work for a key. Dropping it lets the next thread continue.
pub(crate) struct Flight<'f, K: Eq + Hash> {
    flights: &'f SingleFlight<K>,
    key: K,
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

    /// Waits until no other thread works for `key`. What that thread has found may then be in a cache.
    pub(crate) fn turn(&self, key: &K) -> Flight<'_, K> {
        let busy = self.done.wait_while(self.busy(), |busy| busy.contains(key));
        busy.unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        Flight { flights: self, key: key.clone() }
    }
}

impl<K: Eq + Hash> Drop for Flight<'_, K> {
    fn drop(&mut self) {
        self.flights.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
        self.flights.done.notify_all();
    }
}
