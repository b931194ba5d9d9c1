//! `symdex serve`: the real binary, over HTTP.

#[path = "../common/mod.rs"]
mod common;

mod lookup;
mod mozilla;
mod operation;
mod sentry;
mod server;
