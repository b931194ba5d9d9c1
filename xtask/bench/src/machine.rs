//! Describes the machine of a run.

use std::process::Command;

/// The processor, the memory, the load and the compiler, one a line, as far as the system states them.
pub fn describe() -> Vec<String> {
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let kilobytes: Option<u64> =
        field("/proc/meminfo", "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
    let memory = kilobytes.map_or_else(String::new, |size| format!(", {} GiB of memory", size >> 20));
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = load.split(' ').take(3).collect();
    let mut lines = vec![format!("{cores} cores of {processor}{memory}, {}", std::env::consts::OS)];
    if load.len() == 3 {
        lines.push(format!("load at the start: {}", load.join(" ")));
    }
    lines.extend(said("rustc", &["--version"]));
    lines.extend(
        said("git", &["describe", "--always", "--dirty"]).map(|commit| format!("symdex at {commit}")),
    );
    lines
}

fn field(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
