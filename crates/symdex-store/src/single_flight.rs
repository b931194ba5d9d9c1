//! One thread at a time does the work for a key, or for several keys.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

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

    /// Waits until no other thread works for one of `keys`. What those threads have found may then be in a cache. The
    /// thread must not have the right for other keys already: two such threads could wait for each other.
    pub(crate) fn turn(&self, keys: &[K]) -> Flight<'_, K> {
        let busy = self.done.wait_while(self.busy(), |busy| keys.iter().any(|key| busy.contains(key)));
        busy.unwrap_or_else(PoisonError::into_inner).extend(keys.iter().cloned());
        Flight { flights: self, keys: keys.to_vec() }
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
