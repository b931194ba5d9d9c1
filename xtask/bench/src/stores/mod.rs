//! `cargo xtask bench --stores`: what a lookup and a crash report cost in each kind of store.
//!
//! Each measurement is a process ([`ask`]). The servers run on this machine. Times are measured without anything
//! between the process and the server. Round trips and bytes are counted in further runs, by a [`proxy`].

pub mod ask;
mod http;
mod markdown;
mod proxy;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use symdex::Index;
use symdex_testkit::{moto, redis};

use self::ask::{Asked, Child};
use self::proxy::{Proxy, Traffic};
use crate::cost::median;
use crate::input::Input;
use crate::questions::{Questions, REPORT_ADDRESSES, REPORT_FRAMES};
use crate::tool::Tool;
use crate::{builds, machine};

/// The number of addresses for which all stores must give the same answers.
const COMPARED: usize = 10_000;

/// A way to keep an index, and to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Home {
    Folder,
    Redis,
    /// An object store. The local cache is empty when a process starts.
    S3,
    /// An object store. The local cache has the index when a process starts.
    S3Cached,
    /// A symcache in the same object store, which is read whole.
    Symcache,
}

const HOMES: [Home; 5] = [Home::Folder, Home::Redis, Home::S3, Home::S3Cached, Home::Symcache];

/// What is asked in one process: first with nothing open, then other addresses of the open image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    Lookup,
    Report,
}

/// The report of all debug files.
#[derive(Serialize)]
struct Report {
    date: String,
    machine: Vec<String>,
    runs: usize,
    inputs: Vec<InputFigures>,
}

/// The figures of one debug file. Sizes are in bytes.
#[derive(Serialize)]
struct InputFigures {
    name: String,
    debug_size: u64,
    index_size: u64,
    object_size: u64,
    symcache_size: u64,
    compared: usize,
    figures: Vec<Figures>,
}

/// What a question costs in one home. Times are in nanoseconds.
#[derive(Serialize)]
struct Figures {
    home: Home,
    question: Question,
    cold: f64,
    warm: f64,
    cold_traffic: Traffic,
    warm_traffic: Traffic,
}

/// The servers, and where the indexes are.
struct Servers {
    redis: redis::Server,
    s3: moto::Server,
    folder: PathBuf,
}

/// Measures all stores, for each of `inputs`, and writes a report to `folder`.
///
/// # Errors
/// A server is not installed, a store fails, or two stores give different answers.
pub fn run(inputs: &[Input], runs: usize, folder: &Path) -> Result<()> {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let mut report = Report { date: date.clone(), machine: machine::describe(), runs, inputs: Vec::new() };
    for input in inputs {
        eprintln!("{} ...", input.name);
        report.inputs.push(of_input(input, runs).with_context(|| input.name.clone())?);
    }
    std::fs::create_dir_all(folder)?;
    let file = |extension: &str| folder.join(format!("{date}-stores.{extension}"));
    let text = markdown::render(&report)?;
    print!("{text}");
    std::fs::write(file("md"), text)?;
    std::fs::write(file("json"), serde_json::to_string_pretty(&report)? + "\n")?;
    eprintln!("wrote {} and its .json", file("md").display());
    Ok(())
}

fn of_input(input: &Input, runs: usize) -> Result<InputFigures> {
    let scratch = tempfile::tempdir()?;
    let servers = Servers {
        redis: redis::Server::start(&[]),
        s3: moto::Server::start(),
        folder: scratch.path().join("store"),
    };
    for tool in [Tool::Symdex, Tool::Symcache] {
        builds::build(tool, input, &builds::artifact(scratch.path(), tool))?;
    }
    let index = builds::artifact(scratch.path(), Tool::Symdex);
    let symcache = std::fs::read(builds::artifact(scratch.path(), Tool::Symcache))?;
    http::put(servers.s3.port, Home::Symcache.object(), &symcache)?;
    let homes = HOMES.into_iter().filter(|home| *home != Home::Symcache);
    let sizes = homes.map(|home| Ok((home, servers.child(home).put(&index)?))).collect::<Result<Vec<_>>>()?;
    let object_size = sizes.iter().find(|(home, _)| *home == Home::S3).map_or(0, |(_, size)| *size);
    let questions = Questions::of(&Index::open_file(&index)?)?;
    let compared = compare(&servers, &index, &questions)?;
    let mut figures = Vec::new();
    for question in [Question::Lookup, Question::Report] {
        for home in HOMES {
            figures.push(measure(&servers, home, question, &index, &questions, runs)?);
        }
    }
    Ok(InputFigures {
        name: input.name.clone(),
        debug_size: input.size,
        index_size: index.metadata()?.len(),
        object_size,
        symcache_size: symcache.len() as u64,
        compared,
        figures,
    })
}

/// Compares the answers of all homes of indexes. Returns the number of addresses.
fn compare(servers: &Servers, index: &Path, questions: &Questions) -> Result<usize> {
    let offsets = &questions.uniform[..COMPARED.min(questions.uniform.len())];
    let homes = HOMES.into_iter().filter(|home| *home != Home::Symcache);
    let mut first: Option<(Home, Vec<u8>)> = None;
    for home in homes {
        let answers = servers.child(home).answers(index, offsets)?;
        match &first {
            None => first = Some((home, answers)),
            Some((other, expected)) => {
                ensure!(answers == *expected, "{home:?} and {other:?} give different answers");
            }
        }
    }
    Ok(offsets.len())
}

/// The addresses of a question, and other addresses of the same kind.
fn offsets(question: Question, questions: &Questions) -> [Vec<u64>; 2] {
    let distinct = &questions.uniform[1000..1000 + REPORT_ADDRESSES];
    match question {
        Question::Lookup => [vec![questions.uniform[0]], vec![distinct[0]]],
        Question::Report => {
            let other = distinct.iter().cycle().take(REPORT_FRAMES).copied().collect();
            [questions.report.clone(), other]
        }
    }
}

fn measure(
    servers: &Servers,
    home: Home,
    question: Question,
    index: &Path,
    questions: &Questions,
    runs: usize,
) -> Result<Figures> {
    let offsets = offsets(question, questions);
    let child = servers.child(home);
    let mut times = Vec::new();
    for _ in 0..runs {
        times.push(child.ask(index, &offsets, || Traffic::default())?);
    }
    let proxies = [Proxy::start(servers.redis.port)?, Proxy::start(servers.s3.port)?];
    let [redis, s3] = &proxies;
    let counted = servers.child_through(home, redis.port(), s3.port());
    let traffic = || redis.traffic() + s3.traffic();
    let [cold_traffic, warm_traffic] =
        counted.ask(index, &offsets, traffic)?.map(|Asked { traffic, .. }| traffic);
    let median_of = |which: usize| median(times.iter().map(|asked| asked[which].time)).context("no runs");
    Ok(Figures { home, question, cold: median_of(0)?, warm: median_of(1)?, cold_traffic, warm_traffic })
}

impl Servers {
    /// A process that asks `home`.
    fn child(&self, home: Home) -> Child {
        self.child_through(home, self.redis.port, self.s3.port)
    }

    /// A process that asks `home` by these ports.
    fn child_through(&self, home: Home, redis: u16, s3: u16) -> Child {
        let url = match home {
            Home::Folder => self.folder.display().to_string(),
            Home::Redis => format!("redis://127.0.0.1:{redis}/0"),
            Home::S3 | Home::S3Cached | Home::Symcache => {
                format!("s3://{}/{}", moto::BUCKET, home.object())
            }
        };
        Child { home, url, environment: moto::environment(s3).into() }
    }
}

impl Home {
    /// What keys in the bucket begin with; for a symcache, the key.
    fn object(self) -> &'static str {
        match self {
            Self::Symcache => "symcache",
            _ => "compressed",
        }
    }
}
