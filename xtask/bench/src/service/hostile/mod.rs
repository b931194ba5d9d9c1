//! `cargo xtask bench --service --hostile`: what a server does while clients abuse it.
//!
//! Each case has a server of its own. While it runs, a probe asks for `/healthz`, and another client for a lookup.

mod large;
mod slow;
mod watch;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use self::watch::Watched;
use super::client::head;
use super::load::{self, Length};
use super::requests::{self, Asked, Request};
use super::server::Server;

/// How long slow clients are given: longer than the server waits for anybody.
const SLOW: Duration = Duration::from_secs(40);
const HUGE: u64 = 10_000_000_000;

/// What a case has shown.
#[derive(Serialize)]
pub struct Case {
    pub name: &'static str,
    /// How the hostile requests or connections have ended.
    pub ends: BTreeMap<String, u64>,
    /// What else is to be said.
    pub note: String,
    pub watched: Watched,
    /// After the case, as `/metrics` states them: open connections, and the bytes that are free for requests.
    pub connections: u64,
    pub free_memory: u64,
}

/// What a case does.
struct Outcome {
    ends: BTreeMap<String, u64>,
    note: String,
}

/// The servers of the cases.
struct Servers<'s> {
    binary: &'s Path,
    store: &'s Path,
    asked: &'s [Asked],
    /// Only cases whose names have this text are run.
    only: &'s str,
}

/// A server, and the secret of the token of those who abuse it.
struct Target {
    server: Server,
    secret: String,
    /// The requests of those who do not.
    others: [Vec<u8>; 2],
    admin: Vec<u8>,
}

/// Runs the cases whose names have the text `only`, against servers over the folder `store`. `costly` is a report that
/// takes much time, if there is one.
///
/// # Errors
/// A server does not start, or ends.
pub fn run(
    binary: &Path,
    store: &Path,
    asked: &[Asked],
    costly: Option<&Path>,
    only: &str,
) -> Result<Vec<Case>> {
    let servers = Servers { binary, store, asked, only };
    let calm = servers.case("no load", &[], |_| {
        std::thread::sleep(Duration::from_secs(15));
        Ok(Outcome::default())
    })?;
    let cases = [vec![calm], servers.slow()?, servers.large()?, servers.costly(costly)?];
    Ok(cases.into_iter().flatten().flatten().collect())
}

impl Servers<'_> {
    fn case(
        &self,
        name: &'static str,
        arguments: &[&str],
        abuse: impl FnOnce(&Target) -> Result<Outcome>,
    ) -> Result<Option<Case>> {
        if !name.contains(self.only) {
            return Ok(None);
        }
        let target = self.start(arguments)?;
        let done = watch::during(&target.server, &target.others, || abuse(&target));
        let (Outcome { ends, note }, watched) = done.context(name)?;
        let (status, metrics) = target.server.exchange(&target.admin)?;
        ensure!(status == 200, "/metrics: {status}");
        let metrics = String::from_utf8_lossy(&metrics);
        let metric = |name: &str| {
            let mut lines = metrics.lines();
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
            value.with_context(|| format!("/metrics has no {name}"))
        };
        let connections = metric("symdex_http_connections")?;
        let free_memory = metric("symdex_request_memory_free_bytes")?;
        let case = Case { name, ends, note, watched, connections, free_memory };
        eprintln!("{}", serde_json::to_string(&case)?);
        Ok(Some(case))
    }

    fn start(&self, arguments: &[&str]) -> Result<Target> {
        let ([secret, configured], [other, other_configured]) = (self.new_token()?, self.new_token()?);
        let tokens = ["--token", &configured, "--token", &other_configured];
        let arguments: Vec<&str> = tokens.into_iter().chain(arguments.iter().copied()).collect();
        let server = Server::start(self.binary, self.store, &arguments)?;
        let bearer = format!("Bearer {other}");
        let lookup = requests::all(self.asked)?.into_iter().find(|request| request.path == "/v1/lookup");
        let lookup = lookup.context("no lookup")?;
        let authorized = [("authorization", &*bearer)];
        let others = [head("GET", "/healthz", &[], 0), lookup.bytes(&authorized)];
        Ok(Target { server, secret, others, admin: head("GET", "/metrics", &authorized, 0) })
    }

    /// The secret of a new token, and its form for the server.
    fn new_token(&self) -> Result<[String; 2]> {
        let output = Command::new(self.binary).args(["serve", "--new-token", "read,admin"]).output()?;
        let text = String::from_utf8(output.stdout)?;
        let (secret, line) = text.trim_end().split_once('\n').context("no token")?;
        Ok([secret.to_owned(), line.split('"').nth(1).context("no token")?.to_owned()])
    }

    fn slow(&self) -> Result<Vec<Option<Case>>> {
        let slow = |target: &Target, connections, first: &[u8], byte| {
            let slow::Outcome { ends, last_end } =
                slow::run(&target.server.address, connections, first, byte, SLOW)?;
            Ok(Outcome { ends, note: format!("the last was ended after {last_end:.0} s") })
        };
        Ok(vec![
            self.case("10,000 idle connections", &[], |target| slow(target, 10_000, b"", None))?,
            self.case("17,000 idle connections", &[], |target| slow(target, 17_000, b"", None))?,
            self.case("1,000 heads, a byte a second", &[], |target| {
                slow(target, 1_000, b"GET /healthz HTTP/1.1\r\nx-slow: ", Some(b'a'))
            })?,
            self.case("1,000 bodies, a byte a second", &[], |target| {
                slow(target, 1_000, &target.head("/v1/symbolicate", &[], 1_000_000), Some(b' '))
            })?,
            self.case("1,000 heads of 15 kB that do not end", &[], |target| {
                let first = format!("GET /healthz HTTP/1.1\r\nx-large: {}", "a".repeat(15_000));
                slow(target, 1_000, first.as_bytes(), None)
            })?,
            self.case("32 clients that read no byte of answers of 16 MB", &[], |target| {
                let request = target.post("/v1/symbolicate", &[], &self.report(16_000_000));
                large::read_nothing(&target.server.address, &request, 32, SLOW)?;
                Ok(Outcome::default())
            })?,
        ])
    }

    fn large(&self) -> Result<Vec<Option<Case>>> {
        let part = vec![b' '; 64 << 10];
        let endless = |target: &Target, head: &[u8], part: &[u8], clients| {
            let (ends, sent) = large::endless(&target.server.address, head, part, clients, HUGE);
            Ok(Outcome { ends, note: format!("{:.0} MB were sent", sent as f64 / 1e6) })
        };
        let bomb = |target: &Target, encoding, bomb: &[u8]| {
            let request = target.post("/v1/symbolicate", &[("content-encoding", encoding)], bomb);
            let note = format!("{} kB of body each", bomb.len() / 1000);
            Ok(Outcome { ends: large::repeat(&target.server.address, &request, 16, 8), note })
        };
        let report = |target: &Target, size, clients, times| {
            let request = target.post("/v1/symbolicate", &[], &self.report(size));
            Ok(Outcome {
                ends: large::repeat(&target.server.address, &request, clients, times),
                note: String::new(),
            })
        };
        let larger = ["--max-body", "128MB"];
        Ok(vec![
            self.case("8 bodies of 10 GB with their length", &[], |target| {
                endless(target, &target.head("/v1/symbolicate", &[], HUGE as usize), &part, 8)
            })?,
            self.case("8 bodies of 10 GB in chunks", &[], |target| {
                let chunked = target.head_of("/v1/symbolicate", &[("transfer-encoding", "chunked")], None);
                let chunk = [b"10000\r\n", &part[..], b"\r\n"].concat();
                endless(target, &chunked, &chunk, 8)
            })?,
            self.case("zip bombs of 10 GB in gzip, 16 clients", &[], |target| {
                bomb(target, "gzip", &gzip_bomb()?)
            })?,
            self.case("zip bombs of 10 GB in zstd, 16 clients", &[], |target| {
                bomb(target, "zstd", &zstd::bulk::compress(&vec![b' '; 100_000_000], 3)?.repeat(100))
            })?,
            self.case("a report of 100 MB, one client, --max-body 128MB", &larger, |target| {
                report(target, 100_000_000, 1, 4)
            })?,
            self.case("reports of 100 MB, 16 clients, --max-body 128MB", &larger, |target| {
                report(target, 100_000_000, 16, 2)
            })?,
            self.case("reports of 60 MB, 16 clients", &[], |target| report(target, 60_000_000, 16, 2))?,
        ])
    }

    fn costly(&self, costly: Option<&Path>) -> Result<Vec<Option<Case>>> {
        let load = |target: &Target, body: Vec<u8>| {
            let path = "/v1/symbolicate";
            let authorization = Some(format!("authorization: Bearer {}", target.secret));
            let request = Request { name: "", path, content_type: "text/plain", body, authorization };
            let figures = load::run(&target.server, &request, 512, Length::Seconds(20))?;
            let note = format!("{:.0} answers a second, p99 {:.1} s", figures.rate, figures.p99);
            let answered = [("200".to_owned(), figures.answered)];
            Ok(Outcome { ends: answered.into_iter().chain(figures.others).collect(), note })
        };
        let mut cases = Vec::new();
        for (name, size) in
            [("reports of 100 kB, 512 clients", 100_000), ("reports of 2 MB, 512 clients", 2_000_000)]
        {
            cases.push(self.case(name, &[], |target| load(target, self.report(size)))?);
        }
        if let Some(costly) = costly {
            let report = std::fs::read(costly)?;
            cases.push(self.case("costly reports, 512 clients", &[], |target| load(target, report))?);
        }
        Ok(cases)
    }

    /// A report of about `size` bytes.
    fn report(&self, size: usize) -> Vec<u8> {
        let per_frame = requests::report(self.asked, 1000).len() / 1000;
        requests::report(self.asked, size / per_frame)
    }
}

impl Default for Outcome {
    fn default() -> Self {
        Self { ends: BTreeMap::new(), note: String::new() }
    }
}

impl Target {
    fn head_of(&self, path: &str, headers: &[(&str, &str)], length: Option<usize>) -> Vec<u8> {
        let bearer = format!("Bearer {}", self.secret);
        let headers: Vec<_> = [("authorization", &*bearer)].iter().chain(headers).copied().collect();
        super::client::head_of("POST", path, &headers, length)
    }

    fn head(&self, path: &str, headers: &[(&str, &str)], length: usize) -> Vec<u8> {
        self.head_of(path, headers, Some(length))
    }

    fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
        [self.head(path, headers, body.len()), body.to_vec()].concat()
    }
}

/// A gzip file of many members that together have 10 GB.
fn gzip_bomb() -> Result<Vec<u8>> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&vec![b' '; 100_000_000])?;
    Ok(gzip.finish()?.repeat(100))
}

/// The costly report of the corpus of hostile files, and the debug file that it asks for: each of its addresses has a
/// megabyte of names.
pub fn costly_report() -> Option<[PathBuf; 2]> {
    let folder = PathBuf::from(std::env::var_os("SYMDEX_CORPORA")?).join("hostile-finds");
    let files = |folder: &Path| [folder.join("deep1000.txt"), folder.join("zdeepnames.elf")];
    let folders = [folder.clone(), folder.join("hostile-finds")];
    folders.iter().map(|folder| files(folder)).find(|files| files.iter().all(|file| file.exists()))
}
