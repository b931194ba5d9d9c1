//! Fair queueing: clients take turns for worker threads.

use std::cell::Cell;
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};

/// From this size on, the body of a request counts as large.
const LARGE: usize = 1 << 20;

/// Who sends a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    #[default]
    Unknown,
    /// The address of the connection. Of an IPv6 address, the part of the network.
    Address(IpAddr),
    /// The token of the request, by its position in the configuration.
    Token(usize),
}

/// The requests of one client that are large, or those that are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) client: Client,
    pub(crate) is_large: bool,
}

tokio::task_local! {
    /// The lane of the request that a connection is answering. A connection answers one request at a time.
    static CURRENT: Cell<Lane>;
}

impl Client {
    /// The client at this address.
    pub(crate) fn at(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
            address => address,
        })
    }
}

impl Lane {
    /// The lane of the request that this task answers.
    pub(crate) fn current() -> Self {
        CURRENT.try_with(Cell::get).unwrap_or_default()
    }

    /// Runs `future` with this as the lane of its request.
    pub(crate) fn scope<F: Future>(self, future: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(Cell::new(self), future)
    }

    /// From now on, the request that this task answers is of this client.
    pub(crate) fn set_client(client: Client) {
        // Without a scope, as in tests, there is nothing to set.
        let _ = CURRENT.try_with(|lane| lane.set(Self { client, ..lane.get() }));
    }

    /// From now on, the request that this task answers has a body of `size` bytes.
    pub(crate) fn set_body(size: usize) {
        let _ = CURRENT.try_with(|lane| lane.set(Self { is_large: size >= LARGE, ..lane.get() }));
    }
}

/// Whether a client that has `own` of `all` places may have another one while `taken` are taken. It may have as many as
/// are free, so that some are left for each further client.
pub(crate) fn has_share(own: usize, taken: usize, all: usize) -> bool {
    own < all.saturating_sub(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_leaves_as_many_places_free_as_it_has() {
        let (all, mut taken, mut shares) = (64, 0, Vec::new());
        while taken < all {
            let mut own = 0;
            while has_share(own, taken, all) {
                (own, taken) = (own + 1, taken + 1);
            }
            shares.push(own);
        }
        assert_eq!(shares, [32, 16, 8, 4, 2, 1, 1]);
        assert!(!has_share(0, 65, 64));
    }

    #[tokio::test]
    async fn a_request_has_the_client_of_its_connection_until_its_token_is_known() {
        let at = |text: &str| Client::at(text.parse().expect("an address"));
        assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
        assert_eq!(at("2001:db8::1"), at("2001:db8::2"));
        assert_ne!(at("2001:db8:1::1"), at("2001:db8:2::1"));
        let connection = Lane { client: at("10.0.0.1"), is_large: false };
        let answering = async {
            assert_eq!(Lane::current(), connection);
            Lane::set_body(LARGE);
            Lane::set_client(Client::Token(2));
            assert_eq!(Lane::current(), Lane { client: Client::Token(2), is_large: true });
            Lane::set_body(LARGE - 1);
            assert!(!Lane::current().is_large);
        };
        connection.scope(answering).await;
        assert_eq!(Lane::current(), Lane::default());
    }
}
