//! Places that clients share, such as connections and uploads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::lane::Client;

/// Counts the places that clients have taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Of each client. Those without places are left out.
    of: HashMap<Client, usize>,
}

/// A place, which is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    client: Client,
}

impl Places {
    /// A place for `client`; `None` if it may not have one. `may_have` is called with the number of its places, and of
    /// those of all clients.
    pub(crate) fn take(&self, client: Client, may_have: impl FnOnce(usize, usize) -> bool) -> Option<Place> {
        let mut taken = self.lock();
        let own = taken.of.get(&client).copied().unwrap_or_default();
        if !may_have(own, taken.all) {
            return None;
        }
        taken.all += 1;
        taken.of.insert(client, own + 1);
        Some(Place { places: self.clone(), client })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all -= 1;
        match taken.of.get_mut(&self.client) {
            Some(own) if *own > 1 => *own -= 1,
            _ => _ = taken.of.remove(&self.client),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_for_their_client_until_they_are_dropped() {
        let at = |text: &str| Client::at(text.parse().expect("an address"));
        let places = Places::default();
        let all_of = |client| {
            std::iter::from_fn(|| places.take(client, |own, all| own < 3 && all < 5)).collect::<Vec<_>>()
        };
        let one = all_of(at("2001:db8::1"));
        assert_eq!((one.len(), all_of(at("2001:db8::2")).len()), (3, 0), "they are one network");
        let other = all_of(at("10.0.0.1"));
        assert_eq!(other.len(), 2, "there are five");
        drop(one);
        assert_eq!(all_of(at("2001:db8:1::1")).len(), 3);
        drop(other);
        assert!(places.lock().of.is_empty() && places.lock().all == 0);
    }
}
