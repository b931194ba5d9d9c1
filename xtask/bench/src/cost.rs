//! What a process costs: time, and memory at its peak.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

/// How often a process is asked for its memory.
const SAMPLE: Duration = Duration::from_millis(2);

/// What one process, from its start to its end, cost.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Seconds that passed.
    pub wall: f64,
    /// Seconds of CPU, user and system, of all its threads.
    pub cpu: f64,
    /// Bytes of memory at the peak, mapped files included.
    pub peak_rss: u64,
    /// Bytes of anonymous memory at the peak, sampled; `None` where the system does not tell (all but Linux).
    pub peak_anonymous: Option<u64>,
}

/// Where a measured process reads from and writes to; nothing where `None`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Streams {
    pub stdin: Option<PathBuf>,
    pub stdout: Option<PathBuf>,
}

/// Runs `command` in a process whose only child it is, so that the figures are its own.
///
/// # Errors
/// A command that fails, with what it says.
pub fn measure(streams: &Streams, command: &[String]) -> Result<Cost> {
    let output = Command::new(std::env::current_exe()?)
        .args(["measure", &serde_json::to_string(streams)?])
        .args(command)
        .stdin(Stdio::null())
        .output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The other side of [`measure`]: runs `command` and waits for it.
///
/// # Errors
/// A command that cannot be run or fails.
pub fn measured(streams: &Streams, command: &[String]) -> Result<Cost> {
    let (program, arguments) = command.split_first().context("no program to measure")?;
    let stdin = streams.stdin.as_ref().map(File::open).transpose()?;
    let stdout = streams.stdout.as_ref().map(File::create).transpose()?;
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(stdin.map_or_else(Stdio::null, Stdio::from))
        .stdout(stdout.map_or_else(Stdio::null, Stdio::from))
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let done = AtomicBool::new(false);
    let (exit, wall, peak_anonymous) = std::thread::scope(|threads| {
        let sampler = threads.spawn(|| peak_anonymous(&status, &done));
        let exit = child.wait();
        let wall = begun.elapsed();
        done.store(true, Ordering::Relaxed);
        (exit, wall, sampler.join().unwrap_or_default())
    });
    let exit = exit?;
    ensure!(exit.success(), "{program} ended with {exit}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    // Apple counts bytes, the others kilobytes.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    Ok(Cost {
        wall: wall.as_secs_f64(),
        cpu: seconds(usage.user_time()) + seconds(usage.system_time()),
        peak_rss: u64::try_from(usage.max_rss()).unwrap_or_default() * unit,
        peak_anonymous,
    })
}

fn peak_anonymous(status: &Path, done: &AtomicBool) -> Option<u64> {
    let mut peak = None;
    while !done.load(Ordering::Relaxed) {
        peak = peak.max(memory(status, "RssAnon"));
        std::thread::sleep(SAMPLE);
    }
    peak
}

/// Bytes that a process's `status` file states as `field`; `None` where there is no such file or field.
pub fn memory(status: &Path, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// The middle one of the values; the lower of the two middle ones.
pub fn median<T: PartialOrd + Copy>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// The medians of several runs, each figure by itself; `None` for no run.
pub fn medians(runs: &[Cost]) -> Option<Cost> {
    Some(Cost {
        wall: median(runs.iter().map(|run| run.wall))?,
        cpu: median(runs.iter().map(|run| run.cpu))?,
        peak_rss: median(runs.iter().map(|run| run.peak_rss))?,
        peak_anonymous: median(runs.iter().map(|run| run.peak_anonymous))?,
    })
}
