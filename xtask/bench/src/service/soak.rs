//! `cargo xtask bench --service --soak`: the memory of a server over a million requests.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::load::{self, Length};
use super::requests::{self, Asked};
use super::server::Server;

const STEPS: u32 = 10;
const REQUESTS: u32 = 100_000;
const CONNECTIONS: u32 = 16;

/// Resident memory in bytes: before the first request, and after each hundred thousand.
#[derive(Serialize)]
pub struct Figures {
    pub before: u64,
    pub after: Vec<u64>,
    pub seconds: f64,
    /// CPU time of the server for each request, in seconds.
    pub cpu: f64,
    /// Answers of another status than 200.
    pub failed: u64,
}

/// Sends a million lookups of 100 addresses.
///
/// # Errors
/// The server fails.
pub fn run(binary: &Path, store: &Path, asked: &[Asked]) -> Result<Figures> {
    let requests = requests::all(asked)?;
    let request = requests.iter().find(|request| request.path == "/v1/lookup").context("no lookup")?;
    let server = Server::start(binary, store)?;
    let begun = std::time::Instant::now();
    let before = server.memory("VmRSS")?;
    let (mut after, mut failed) = (Vec::new(), 0);
    for step in 1..=STEPS {
        let figures = load::run(&server, request, CONNECTIONS, Length::Requests(REQUESTS))?;
        failed += figures.others.values().sum::<u64>();
        after.push(server.memory("VmRSS")?);
        eprintln!("{} requests, {} kB", step * REQUESTS, after.last().map_or(0, |rss| rss / 1000));
    }
    let cpu = server.cpu()?.as_secs_f64() / f64::from(STEPS * REQUESTS);
    Ok(Figures { before, after, seconds: begun.elapsed().as_secs_f64(), cpu, failed })
}
