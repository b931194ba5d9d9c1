//! Measures the cost of a process: time, and peak memory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

/// The interval at which the memory of a process is sampled.
const SAMPLE: Duration = Duration::from_millis(2);

/// The cost of one process, from start to end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cost {
    /// Wall-clock time in seconds.
    pub wall: f64,
    /// CPU time of all threads in seconds, user and system.
    pub cpu: f64,
    /// Peak resident memory in bytes, with mapped files.
    pub peak_rss: u64,
    /// Peak anonymous memory in bytes, sampled. `None` on systems other than Linux.
    pub peak_anonymous: Option<u64>,
}

/// The standard streams of a measured process. `None` stands for an empty stream.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Streams {
    pub stdin: Option<PathBuf>,
    pub stdout: Option<PathBuf>,
}

/// Measures `command`. A separate process runs it as its only child, so that the figures cover nothing else.
///
/// # Errors
/// The command fails. The error has its error text.
pub fn measure(streams: &Streams, command: &[String]) -> Result<Cost> {
    let output = Command::new(std::env::current_exe()?)
        .args(["measure", &serde_json::to_string(streams)?])
        .args(command)
        .stdin(Stdio::null())
        .output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The work of the separate process of [`measure`]: runs `command` and waits for it.
///
/// # Errors
/// The command cannot be run or fails.
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
    // The unit is bytes on Apple's systems and kilobytes on others.
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

/// Reads `field` of a process's `status` file, in bytes. `None` if the file or the field does not exist.
pub fn memory(status: &Path, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// The median of the values; of two middle values the lower.
pub fn median<T: PartialOrd + Copy>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// The medians of several runs, for each figure separately. `None` if there are no runs.
pub fn medians(runs: &[Cost]) -> Option<Cost> {
    Some(Cost {
        wall: median(runs.iter().map(|run| run.wall))?,
        cpu: median(runs.iter().map(|run| run.cpu))?,
        peak_rss: median(runs.iter().map(|run| run.peak_rss))?,
        peak_anonymous: median(runs.iter().map(|run| run.peak_anonymous))?,
    })
}
