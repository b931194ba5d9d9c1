//! `symdex serve`: the real binary, over HTTP.

#[path = "../common/mod.rs"]
mod common;

mod abuse;
mod lookup;
mod operation;
mod server;
mod symbolicate;
