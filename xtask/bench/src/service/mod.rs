//! `cargo xtask bench --service`: what `symdex serve` does under load.
//!
//! The server is a process of its own on this machine, over a folder with the indexes of the debug files. Requests come
//! from this machine too, and share its CPUs.

mod load;
mod markdown;
mod requests;
mod server;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use symdex::Index;
use symdex_store::IndexFolder;

use self::load::Length;
use self::requests::{Asked, Request};
use self::server::Server;
use crate::cost::median;
use crate::input::Input;
use crate::tool::Tool;
use crate::{builds, machine, report};

const CONNECTIONS: [u32; 4] = [1, 8, 64, 512];
/// How long each load lasts, in seconds.
const SECONDS: u32 = 10;

#[derive(Serialize)]
struct Report {
    date: String,
    machine: Vec<String>,
    runs: usize,
    oha: String,
    inputs: Vec<String>,
    index_size: u64,
    loads: Vec<Load>,
}

/// The figures of one kind of request.
#[derive(Serialize)]
struct Load {
    request: &'static str,
    path: &'static str,
    request_size: usize,
    answer_size: usize,
    cold: Cold,
    /// For each number of connections.
    warm: Vec<load::Figures>,
}

/// The first request to a new server, in seconds.
#[derive(Serialize)]
struct Cold {
    /// From the start of the process until it listens.
    start: f64,
    /// From connecting until the answer has arrived.
    answer: f64,
    /// As `answer`, for a second request by another connection.
    second: f64,
}

/// Measures a server with the indexes of `inputs`, and writes a report to `folder`. Indexes are built in `scratch`.
///
/// # Errors
/// oha is not installed, or the server fails.
pub fn run(inputs: &[Input], runs: usize, folder: &Path, scratch: &Path) -> Result<()> {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let (oha, binary) = (load::version()?, server::binary()?);
    let store = scratch.join("store");
    let mut asked = Vec::new();
    for input in inputs {
        asked.push(Asked::of(&publish(input, scratch, &store)?).context(input.name.clone())?);
    }
    let mut report = Report {
        date: date.clone(),
        machine: machine::describe(),
        runs,
        oha,
        inputs: inputs.iter().map(|input| input.name.clone()).collect(),
        index_size: index_size(&store)?,
        loads: Vec::new(),
    };
    for request in requests::all(&asked)? {
        report.loads.extend(load_of(&binary, &store, &request, runs)?);
    }
    let text = markdown::render(&report)?;
    print!("{text}");
    report::write(folder, &format!("{date}-service"), &text, &report)
}

/// Builds the index of `input` and puts it into the folder `store`. Returns its path.
fn publish(input: &Input, scratch: &Path, store: &Path) -> Result<std::path::PathBuf> {
    let built = builds::artifact(scratch, Tool::Symdex);
    builds::build(Tool::Symdex, input, &built).with_context(|| input.name.clone())?;
    Ok(IndexFolder::new(store).publish(&Index::open(std::fs::read(built)?)?)?.path)
}

fn index_size(store: &Path) -> Result<u64> {
    let mut size = 0;
    for entry in std::fs::read_dir(store)? {
        size += entry?.metadata()?.len();
    }
    Ok(size)
}

/// The figures of `request`; `None` if the server does not have its path.
fn load_of(binary: &Path, store: &Path, request: &Request, runs: usize) -> Result<Option<Load>> {
    let Request { name, path, .. } = request;
    eprintln!("{name} ...");
    let bytes = request.bytes();
    let mut colds = Vec::new();
    let mut answer_size = 0;
    for _ in 0..runs {
        let begun = Instant::now();
        let server = Server::start(binary, store)?;
        let start = begun.elapsed().as_secs_f64();
        let ask = || {
            let begun = Instant::now();
            Ok::<_, anyhow::Error>((begun, server.exchange(&bytes)?))
                .map(|(begun, answer)| (begun.elapsed().as_secs_f64(), answer))
        };
        let (answer, (status, body)) = ask()?;
        if status == 404 {
            eprintln!("{path}: not there");
            return Ok(None);
        }
        ensure!(status == 200, "{path}: {status} {}", String::from_utf8_lossy(&body));
        answer_size = body.len();
        colds.push(Cold { start, answer, second: ask()?.0 });
    }
    let median_of = |value: fn(&Cold) -> f64| median(colds.iter().map(value)).context("no runs");
    let cold = Cold {
        start: median_of(|cold| cold.start)?,
        answer: median_of(|cold| cold.answer)?,
        second: median_of(|cold| cold.second)?,
    };
    let mut warm = Vec::new();
    for connections in CONNECTIONS {
        let server = Server::start(binary, store)?;
        load::run(&server, request, 8, Length::Requests(1000))?;
        warm.push(load::run(&server, request, connections, Length::Seconds(SECONDS))?);
    }
    Ok(Some(Load { request: name, path, request_size: request.body.len(), answer_size, cold, warm }))
}
