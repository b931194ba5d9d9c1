//! Clients that keep connections open and do next to nothing.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::service::client::status;

/// How the connections of slow clients have ended.
#[derive(Default)]
pub struct Outcome {
    /// By what the server did: a status, `closed` without an answer, or `open` if it has not ended them.
    pub ends: BTreeMap<String, u64>,
    /// When the server has ended the last of them, in seconds.
    pub last_end: f64,
}

struct Client {
    stream: TcpStream,
    status: Option<u16>,
}

/// Opens `connections`, sends `first` on each, and then a byte a second for `time`. Without `byte`, the clients stay
/// idle.
///
/// # Errors
/// A connection cannot be opened.
pub fn run(
    address: &str,
    connections: usize,
    first: &[u8],
    byte: Option<u8>,
    time: Duration,
) -> Result<Outcome> {
    let mut clients = Vec::with_capacity(connections);
    for _ in 0..connections {
        let mut stream = TcpStream::connect(address)?;
        // The server may have refused the connection already.
        let _ = stream.write_all(first);
        stream.set_nonblocking(true)?;
        clients.push(Client { stream, status: None });
    }
    let mut outcome = Outcome::default();
    let begun = Instant::now();
    while begun.elapsed() < time && !clients.is_empty() {
        std::thread::sleep(Duration::from_secs(1));
        clients.retain_mut(|client| match client.is_open(byte) {
            true => true,
            false => {
                let end = client.status.map_or_else(|| "closed".to_owned(), |status| status.to_string());
                *outcome.ends.entry(end).or_default() += 1;
                outcome.last_end = begun.elapsed().as_secs_f64();
                false
            }
        });
    }
    if !clients.is_empty() {
        outcome.ends.insert("open".to_owned(), clients.len() as u64);
    }
    Ok(outcome)
}

impl Client {
    /// Reads what there is, and sends the byte. Returns whether the server has left the connection open.
    fn is_open(&mut self, byte: Option<u8>) -> bool {
        let mut part = [0; 4 << 10];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => return false,
                Ok(size) => self.status = self.status.or_else(|| status(&part[..size])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        if let Some(byte) = byte.filter(|_| self.status.is_none()) {
            // If this fails, the next read does.
            let _ = self.stream.write(&[byte]);
        }
        true
    }
}
