//! Requests in large numbers, sent by oha.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::requests::Request;
use super::server::Server;

const INSTALL: &str = "oha is missing: `cargo install oha`, or name it with the environment variable OHA";

/// How long a load lasts.
#[derive(Clone, Copy)]
pub enum Length {
    Seconds(u32),
    Requests(u32),
}

/// What a load has cost. Times are in seconds.
#[derive(Clone, Serialize)]
pub struct Figures {
    pub connections: u32,
    /// Answers of status 200.
    pub answered: u64,
    /// Answers of other statuses, by status, and connections that failed, by error.
    pub others: BTreeMap<String, u64>,
    /// Answers of status 200 in a second.
    pub rate: f64,
    /// The latency of these answers.
    pub p50: f64,
    pub p99: f64,
    /// The CPU time of the server, divided by all answers.
    pub cpu: f64,
    /// The resident memory of the server at its peak, since it was started.
    pub peak_rss: u64,
}

/// The parts of oha's output that are used.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Output {
    summary: Summary,
    latency_percentiles_successful: BTreeMap<String, Option<f64>>,
    status_code_distribution: BTreeMap<String, u64>,
    error_distribution: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Summary {
    /// How long the load lasted, in seconds.
    total: f64,
}

fn oha() -> PathBuf {
    std::env::var_os("OHA").map_or_else(|| "oha".into(), PathBuf::from)
}

/// The version of oha.
///
/// # Errors
/// oha is not installed. The error says how to install it.
pub fn version() -> Result<String> {
    let output = Command::new(oha()).arg("--version").output().context(INSTALL)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Sends `request` again and again, by `connections` connections that are kept alive.
///
/// # Errors
/// oha fails, or the server ends.
pub fn run(server: &Server, request: &Request, connections: u32, length: Length) -> Result<Figures> {
    let body = tempfile::NamedTempFile::new()?;
    std::fs::write(body.path(), &request.body)?;
    let mut command = Command::new(oha());
    match length {
        Length::Seconds(seconds) => command.args(["-z", &format!("{seconds}s")]),
        Length::Requests(requests) => command.args(["-n", &requests.to_string()]),
    };
    command
        .args(["--no-tui", "--output-format", "json", "--stats-success-breakdown"])
        .args(["-c", &connections.to_string(), "-m", "POST", "-T", request.content_type, "-D"])
        .arg(body.path())
        .arg(format!("http://{}{}", server.address, request.path));
    let before = server.cpu()?;
    let output = command.output().context(INSTALL)?;
    let cpu = server.cpu()?.saturating_sub(before);
    ensure!(output.status.success(), "oha: {}", String::from_utf8_lossy(&output.stderr).trim());
    let output: Output = serde_json::from_slice(&output.stdout).context("the output of oha")?;
    let Output { summary, latency_percentiles_successful: latency, .. } = output;
    let statuses = output.status_code_distribution;
    let answers: u64 = statuses.values().sum();
    let answered = statuses.get("200").copied().unwrap_or_default();
    let percentile = |name| latency.get(name).copied().flatten().unwrap_or(f64::NAN);
    let others = statuses.into_iter().filter(|(status, _)| status != "200");
    // Requests that run when the time is over are counted as errors.
    let errors = output.error_distribution.into_iter().filter(|(error, _)| !error.contains("deadline"));
    Ok(Figures {
        connections,
        answered,
        others: others.chain(errors).collect(),
        rate: answered as f64 / summary.total,
        p50: percentile("p50"),
        p99: percentile("p99"),
        cpu: cpu.as_secs_f64() / answers.max(1) as f64,
        peak_rss: server.memory("VmHWM")?,
    })
}
