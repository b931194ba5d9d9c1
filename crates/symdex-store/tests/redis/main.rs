//! Stores in Redis, against servers of this machine.
//!
//! `.ci/run` installs `redis-server`. Without it, these tests say so and pass.

#[path = "../common/mod.rs"]
mod common;

mod access;
mod expiry;
mod faults;
mod layout;
mod proxy;
mod publishing;
mod server;
