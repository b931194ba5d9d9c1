//! Clients that send large bodies.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::Result;

use crate::service::client::{Connection, status};

/// How many answers of each kind there were.
pub type Ends = BTreeMap<String, u64>;

/// `clients` send `request` `times` times each, at the same time. An answer that does not come is `failed`.
pub fn repeat(address: &str, request: &[u8], clients: usize, times: usize) -> Ends {
    let ends = Mutex::new(Ends::new());
    std::thread::scope(|threads| {
        for _ in 0..clients {
            threads.spawn(|| {
                for _ in 0..times {
                    let end = once(address, request).map_or("failed".to_owned(), |status| status.to_string());
                    count(&ends, end);
                }
            });
        }
    });
    ends.into_inner().unwrap_or_default()
}

/// Counts an end. A poisoned map has all counts.
fn count(ends: &Mutex<Ends>, end: String) {
    *ends.lock().unwrap_or_else(std::sync::PoisonError::into_inner).entry(end).or_default() += 1;
}

fn once(address: &str, request: &[u8]) -> Result<u16> {
    let mut connection = Connection::open(address)?;
    connection.send(request)?;
    Ok(connection.answer()?.0)
}

/// Each of `clients` sends `head`, and then `part` until `size` bytes are sent or the server ends the connection.
/// Returns how they have ended, and the bytes that were sent.
pub fn endless(address: &str, head: &[u8], part: &[u8], clients: usize, size: u64) -> (Ends, u64) {
    let (ends, total) = (Mutex::new(Ends::new()), Mutex::new(0));
    std::thread::scope(|threads| {
        for _ in 0..clients {
            threads.spawn(|| {
                let (end, sent) = send_until_refused(address, head, part, size);
                count(&ends, end.map_or("closed".to_owned(), |status| status.to_string()));
                *total.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += sent;
            });
        }
    });
    (ends.into_inner().unwrap_or_default(), total.into_inner().unwrap_or_default())
}

/// The status of the answer, if there is one, and the bytes that were sent.
fn send_until_refused(address: &str, head: &[u8], part: &[u8], size: u64) -> (Option<u16>, u64) {
    let Ok(mut stream) = TcpStream::connect(address) else { return (None, 0) };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
    let mut sent = 0;
    if stream.write_all(head).is_ok() {
        while sent < size && stream.write_all(part).is_ok() {
            sent += part.len() as u64;
        }
    }
    // A server that does not read the rest may reset the connection, and the answer can be lost.
    let mut answer = [0; 1 << 10];
    let length = stream.read(&mut answer).unwrap_or_default();
    (status(&answer[..length]), sent)
}

/// Each of `clients` sends `request`, reads nothing, and keeps the connection for `time`.
///
/// # Errors
/// A connection cannot be opened.
pub fn read_nothing(address: &str, request: &[u8], clients: usize, time: Duration) -> Result<()> {
    let open = (0..clients).map(|_| Ok(TcpStream::connect(address)?)).collect::<Result<Vec<_>>>()?;
    std::thread::scope(|threads| {
        for mut stream in &open {
            threads.spawn(move || {
                let _ = stream.set_write_timeout(Some(time));
                let _ = stream.write_all(request);
            });
        }
    });
    std::thread::sleep(time);
    Ok(())
}
