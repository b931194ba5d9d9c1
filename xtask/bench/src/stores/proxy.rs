//! A proxy on this machine that counts what passes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Result;
use serde::Serialize;

/// What has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    pub connections: u64,
    /// How often a server has begun to answer after a client has sent something.
    pub round_trips: u64,
    /// Bytes from clients to the server.
    pub sent: u64,
    /// Bytes from the server to clients.
    pub received: u64,
}

#[derive(Default)]
struct Counters {
    connections: AtomicU64,
    round_trips: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

/// A proxy of one server. Its threads end with the connections.
pub struct Proxy {
    port: u16,
    counters: Arc<Counters>,
    has_ended: Arc<AtomicBool>,
}

impl Proxy {
    /// Starts a proxy of the server at `port` of this machine.
    ///
    /// # Errors
    /// There is no free port.
    pub fn start(server: u16) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let (counters, has_ended) = (Arc::new(Counters::default()), Arc::new(AtomicBool::new(false)));
        let proxy = Self { port, counters: Arc::clone(&counters), has_ended: Arc::clone(&has_ended) };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if has_ended.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { return };
                counters.connections.fetch_add(1, Ordering::Relaxed);
                pass(&client, &server, &counters);
            }
        });
        Ok(proxy)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// What has passed since the start.
    pub fn traffic(&self) -> Traffic {
        let Counters { connections, round_trips, sent, received } = &*self.counters;
        let [connections, round_trips, sent, received] =
            [connections, round_trips, sent, received].map(|counter| counter.load(Ordering::Relaxed));
        Traffic { connections, round_trips, sent, received }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts connections.
        _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

/// Passes bytes between `client` and `server` in two threads.
fn pass(client: &TcpStream, server: &TcpStream, counters: &Arc<Counters>) {
    _ = client.set_nodelay(true);
    _ = server.set_nodelay(true);
    let is_waiting = Arc::new(AtomicBool::new(false));
    for is_answer in [false, true] {
        let (from, to) = if is_answer { (server, client) } else { (client, server) };
        let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { return };
        let (counters, is_waiting) = (Arc::clone(counters), Arc::clone(&is_waiting));
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(size @ 1..) = from.read(&mut buffer) {
                let counter = if is_answer { &counters.received } else { &counters.sent };
                counter.fetch_add(size as u64, Ordering::Relaxed);
                if !is_answer {
                    is_waiting.store(true, Ordering::Relaxed);
                } else if is_waiting.swap(false, Ordering::Relaxed) {
                    counters.round_trips.fetch_add(1, Ordering::Relaxed);
                }
                if to.write_all(&buffer[..size]).is_err() {
                    break;
                }
            }
            _ = to.shutdown(Shutdown::Write);
        });
    }
}

impl Add for Traffic {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            round_trips: self.round_trips + other.round_trips,
            sent: self.sent + other.sent,
            received: self.received + other.received,
        }
    }
}

impl Sub for Traffic {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            connections: self.connections - before.connections,
            round_trips: self.round_trips - before.round_trips,
            sent: self.sent - before.sent,
            received: self.received - before.received,
        }
    }
}
