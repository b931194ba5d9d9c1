//! A `symdex serve` to measure: a process of its own, on this machine.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use nix::unistd::{SysconfVar, sysconf};
use tempfile::NamedTempFile;

use crate::cost::memory;

/// A server. It ends when this is dropped.
pub struct Server {
    child: Child,
    /// `127.0.0.1:PORT`.
    pub address: String,
    log: NamedTempFile,
}

/// The command `symdex`: what `SYMDEX_BINARY` names, or a release build of this tree.
///
/// # Errors
/// The build fails.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("SYMDEX_BINARY") {
        return Ok(path.into());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo).args(["build", "--release", "--locked", "-p", "symdex-cli"]).status()?;
    ensure!(status.success(), "the release build of symdex has failed");
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(Path::new(&target).join("release/symdex"))
}

impl Server {
    /// Starts a server over the folder `store` and waits until it listens. Its log goes to a file.
    ///
    /// # Errors
    /// The server does not start. The error has its log.
    pub fn start(binary: &Path, store: &Path) -> Result<Self> {
        let log = NamedTempFile::new()?;
        let child = Command::new(binary)
            .args(["--no-config", "serve", "--listen", "127.0.0.1:0", "--store"])
            .arg(store)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::from(File::create(log.path())?))
            .spawn()
            .with_context(|| binary.display().to_string())?;
        let mut server = Self { child, address: String::new(), log };
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(30) && server.child.try_wait()?.is_none() {
            let text = server.log();
            let line = text.split_once("listening at ").and_then(|(_, rest)| rest.split_once('\n'));
            if let Some((address, _)) = line {
                server.address = address.to_owned();
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        bail!("symdex serve does not listen: {}", server.log().trim())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap_or_default()
    }

    /// Sends one request, head and body, which closes its connection. Returns the status and the body of the answer.
    ///
    /// # Errors
    /// There is no answer.
    pub fn exchange(&self, request: &[u8]) -> Result<(u16, Vec<u8>)> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        stream.write_all(request)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").context("no end of the head")?;
        let body = answer.split_off(end + 4);
        let status = answer.get(9..12).context("no status")?;
        Ok((std::str::from_utf8(status)?.parse()?, body))
    }

    /// The CPU time of all threads so far, user and system.
    ///
    /// # Errors
    /// The system is not Linux, or the server has ended.
    pub fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The second field is the name in parentheses, which can have spaces. User and system time are 14 and 15.
        let (_, rest) = stat.rsplit_once(')').context("no name in /proc/PID/stat")?;
        let fields: Vec<u64> = rest.split_whitespace().skip(11).take(2).flat_map(str::parse).collect();
        let ticks = sysconf(SysconfVar::CLK_TCK)?.context("no clock ticks")?;
        Ok(Duration::from_secs_f64(fields.iter().sum::<u64>() as f64 / ticks as f64))
    }

    /// Resident memory in bytes: `VmRSS` now, `VmHWM` at its peak.
    ///
    /// # Errors
    /// The system is not Linux, or the server has ended.
    pub fn memory(&self, field: &str) -> Result<u64> {
        let status = PathBuf::from(format!("/proc/{}/status", self.child.id()));
        memory(&status, field).with_context(|| format!("no {field} of the server; it may have ended"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
