//! `symdex serve`: the real binary, over HTTP.

#[path = "../common/mod.rs"]
mod common;

mod abuse;
mod browse;
mod deploy;
mod jobs;
mod lookup;
mod miss;
mod mozilla;
mod operation;
mod page;
mod sentry;
mod server;
mod symbolicate;
#[cfg(all(feature = "otel", unix))]
mod trace;
#[path = "../../../symdex-fetch/tests/server/mod.rs"]
mod web;
