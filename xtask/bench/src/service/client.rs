//! A client of HTTP/1.1 that does no more than it is told.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection that is kept alive.
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// The status of an answer, if its first line has arrived.
fn status(answer: &[u8]) -> Option<u16> {
    std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()
}

impl Connection {
    pub fn open(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, received: Vec::new() })
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// The server has closed the connection.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes)?)
    }

    /// Receives an answer that has a `Content-Length`. Returns its status and its body.
    ///
    /// # Errors
    /// The server closes the connection before the end of the answer, or takes too long.
    pub fn answer(&mut self) -> Result<(u16, Vec<u8>)> {
        let end = loop {
            match self.received.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => self.receive()?,
            }
        };
        let head = String::from_utf8_lossy(&self.received[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.context("an answer without Content-Length")?.trim().parse()?;
        let status = status(head.as_bytes()).context("an answer without a status")?;
        while self.received.len() < end + length {
            self.receive()?;
        }
        let rest = self.received.split_off(end + length);
        let body = std::mem::replace(&mut self.received, rest).split_off(end);
        Ok((status, body))
    }

    fn receive(&mut self) -> Result<()> {
        let mut part = [0; 64 << 10];
        match self.stream.read(&mut part)? {
            0 => bail!("the server has closed the connection"),
            size => self.received.extend_from_slice(&part[..size]),
        }
        Ok(())
    }
}
