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
mod poisoned;
mod sentry;
#[allow(dead_code, reason = "serve_with_programs uses the rest")]
mod server;
mod symbolicate;
#[cfg(all(feature = "otel", unix))]
mod trace;
