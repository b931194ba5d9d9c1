//! How many connections are open, in all and from each address.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::Client;

/// The limits of connections.
#[derive(Debug)]
pub(crate) struct Connections {
    open: Arc<Mutex<Open>>,
    max: usize,
    of_address: usize,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    /// Of each address. Those without connections are left out.
    of: HashMap<Client, usize>,
}

/// A connection, which counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    open: Arc<Mutex<Open>>,
    client: Client,
}

impl Connections {
    /// At most `max` connections, of which at most `of_address` come from one address, and never more than half.
    pub(crate) fn new(max: usize, of_address: usize) -> Self {
        Self { open: Arc::default(), max, of_address: of_address.min(max.div_ceil(2)) }
    }

    /// A connection from the address of `client`. `None` if it may not have another one.
    pub(crate) fn open(&self, client: Client) -> Option<Connection> {
        let mut open = lock(&self.open);
        let own = open.of.get(&client).copied().unwrap_or_default();
        if open.all >= self.max || own >= self.of_address {
            return None;
        }
        open.all += 1;
        open.of.insert(client, own + 1);
        Some(Connection { open: Arc::clone(&self.open), client })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        open.all -= 1;
        match open.of.get_mut(&self.client) {
            Some(own) if *own > 1 => *own -= 1,
            _ => _ = open.of.remove(&self.client),
        }
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_has_more_than_its_limit_or_half_of_all_connections() {
        let at = |text: &str| Client::at(text.parse().expect("an address"));
        for (of_address, expected) in [(3, 3), (100, 5)] {
            let connections = Connections::new(10, of_address);
            let all_of = |client| std::iter::from_fn(|| connections.open(client)).collect::<Vec<_>>();
            let one = all_of(at("2001:db8::1"));
            assert_eq!((one.len(), all_of(at("2001:db8::2")).len()), (expected, 0), "they are one network");
            let other = all_of(at("10.0.0.1"));
            assert_eq!(other.len(), expected);
            drop(one);
            assert_eq!(all_of(at("2001:db8::3")).len(), expected);
            drop(other);
            assert!(lock(&connections.open).of.is_empty() && lock(&connections.open).all == 0);
        }
    }

    #[test]
    fn all_addresses_together_have_no_more_than_the_limit() {
        let connections = Connections::new(10, 2);
        let clients = (0..10).map(|number| Client::at([10, 0, 0, number].into()));
        let open: Vec<_> = clients.flat_map(|client| [(); 3].map(|()| connections.open(client))).collect();
        assert_eq!(open.into_iter().flatten().count(), 10);
    }
}
