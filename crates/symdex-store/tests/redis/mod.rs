//! Stores in Redis, against servers of this machine.
//!
//! Without `redis-server`, these tests are ignored.

pub(crate) mod access;
pub(crate) mod eviction;
pub(crate) mod expiry;
pub(crate) mod faults;
pub(crate) mod layout;
pub(crate) mod publishing;

use symdex_store::{RedisStore, StoreOptions};
use symdex_testkit::redis::Server;

/// The store at `url`.
fn store(url: &str, options: &StoreOptions) -> RedisStore {
    let url = url.parse().unwrap_or_else(|error| panic!("{error}"));
    RedisStore::open(&url, options).unwrap_or_else(|error| panic!("{error}"))
}

/// The store in the first database of `server`.
fn store_in(server: &Server) -> RedisStore {
    store(&server.url(), &StoreOptions::new())
}
