//! Stores in Redis, against servers of this machine.
//!
//! `.ci/run` installs `redis-server`. Without it, these tests say so and pass.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/proxy.rs"]
mod proxy;
#[cfg(feature = "symbolicate")]
#[path = "../common/reports.rs"]
mod reports;

mod access;
mod expiry;
mod faults;
mod layout;
mod publishing;
#[cfg(feature = "symbolicate")]
mod round_trips;
mod server;
