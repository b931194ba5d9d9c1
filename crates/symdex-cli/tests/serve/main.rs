//! `symdex serve`: the real binary, over HTTP.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../symdex-store/tests/redis/server.rs"]
#[allow(dead_code, reason = "the tests of symdex-store use the rest")]
mod redis_server;

mod abuse;
mod browse;
mod browser;
mod deploy;
mod jobs;
mod lookup;
mod miss;
mod mozilla;
mod operation;
mod page;
mod poisoned;
mod sentry;
mod server;
mod symbolicate;
#[cfg(all(feature = "otel", unix))]
mod trace;
#[path = "../../../symdex-fetch/tests/server/mod.rs"]
mod web;
