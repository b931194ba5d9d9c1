//! `symdex serve`: the real binary, over HTTP.

#[path = "../common/mod.rs"]
mod common;

mod lookup;
mod operation;
mod server;
mod symbolicate;
#[cfg(all(feature = "otel", unix))]
mod trace;
