//! A `symdex serve` on this machine.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

/// A server, which ends when this is dropped.
pub struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts `symdex serve` over the store in a folder, and waits until it listens.
    pub fn start(symdex: &Path, store: &Path) -> Result<Self> {
        let mut serve = Command::new(symdex);
        serve.args(["--no-config", "serve", "--listen", "127.0.0.1:0", "--store"]).arg(store);
        let mut child = serve.stderr(Stdio::piped()).spawn()?;
        let mut errors = BufReader::new(child.stderr.take().context("no pipe")?);
        let mut server = Self { child, url: String::new() };
        loop {
            let mut line = String::new();
            if errors.read_line(&mut line)? == 0 {
                bail!("the server has not started");
            }
            if let Some((_, address)) = line.trim_end().split_once("listening at ") {
                server.url = format!("http://{address}");
                // The pipe is read to its end, or the server would wait when it is full.
                std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
                return Ok(server);
            }
        }
    }

    /// The answer to a request with this body.
    pub fn post(&self, path: &str, body: &str) -> Result<String> {
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        let request = ureq::Agent::from(config).post(format!("{}{path}", self.url));
        let mut response = request.header("content-type", "application/json").send(body)?;
        let text = response.body_mut().with_config().limit(1 << 30).read_to_string()?;
        ensure!(response.status() == 200, "{}: {text}", response.status());
        Ok(text)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
