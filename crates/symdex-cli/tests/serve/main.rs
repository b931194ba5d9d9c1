//! `symdex serve`: the real binary, over HTTP.

#[path = "../common/mod.rs"]
mod common;

mod lookup;
mod miss;
mod operation;
mod server;
mod symbolicate;
#[cfg(all(feature = "otel", unix))]
mod trace;
#[path = "../../../symdex-fetch/tests/server/mod.rs"]
mod web;
