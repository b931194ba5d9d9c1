//! A proxy that spoils connections.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the proxy does to the next connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The connection is closed at once.
    Refused,
    /// The replies are cut after this many bytes, and the connection is closed.
    CutAfter(usize),
    /// One bit of the replies is flipped, in the byte at this position.
    FlipAt(usize),
    /// Replies are late by this time.
    Late(Duration),
    /// There are no replies.
    Silent,
    /// The reply to the first request is an error of a server of HTTP, and the connection is closed.
    Error500,
}

/// Forwards connections to a port of this machine, until it is dropped.
pub struct Proxy {
    pub port: u16,
    state: Arc<State>,
}

struct State {
    target: AtomicU16,
    /// The fault, and how many connections have it.
    fault: Mutex<(Fault, u32)>,
    connections: AtomicU32,
    is_over: AtomicBool,
}

impl Proxy {
    pub fn start(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let state = Arc::new(State {
            target: AtomicU16::new(target),
            fault: Mutex::new((Fault::None, 0)),
            connections: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if accepting.is_over.load(Ordering::Relaxed) {
                    return;
                }
                accepting.connections.fetch_add(1, Ordering::Relaxed);
                accepting.forward(client.expect("a connection"));
            }
        });
        Self { port, state }
    }

    /// The next `connections` have this fault, those after them have none.
    pub fn spoil(&self, fault: Fault, connections: u32) {
        *self.state.fault.lock().expect("no panic") = (fault, connections);
    }

    /// New connections are forwarded to this port.
    pub fn set_target(&self, port: u16) {
        self.state.target.store(port, Ordering::Relaxed);
    }

    /// How many connections there were.
    pub fn connections(&self) -> u32 {
        self.state.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn forward(&self, client: TcpStream) {
        let fault = {
            let mut fault = self.fault.lock().expect("no panic");
            if fault.1 == 0 {
                fault.0 = Fault::None;
            }
            fault.1 = fault.1.saturating_sub(1);
            fault.0
        };
        if fault == Fault::Refused {
            return;
        }
        if fault == Fault::Error500 {
            std::thread::spawn(move || answer_with_500(client));
            return;
        }
        let Ok(server) = TcpStream::connect(("127.0.0.1", self.target.load(Ordering::Relaxed))) else {
            return;
        };
        let (from, to) = (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
        std::thread::spawn(move || copy(from, to, Fault::None));
        std::thread::spawn(move || match fault {
            Fault::Late(time) => copy_late(server, client, time),
            fault => copy(server, client, fault),
        });
    }
}

fn answer_with_500(mut client: TcpStream) {
    let answer = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    _ = client.read(&mut [0; 4096]).and_then(|_| client.write_all(answer));
}

/// Copies each byte when it is as old as `time`.
fn copy_late(mut from: TcpStream, mut to: TcpStream, time: Duration) {
    let (sender, arrived) = channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        for (due, bytes) in arrived {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        _ = to.shutdown(Shutdown::Both);
    });
    let mut buffer = [0; 4096];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        if sender.send((Instant::now() + time, buffer[..len].to_vec())).is_err() {
            break;
        }
    }
    _ = from.shutdown(Shutdown::Both);
}

fn copy(mut from: TcpStream, mut to: TcpStream, fault: Fault) {
    let (mut buffer, mut copied) = ([0; 4096], 0);
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        let mut kept = len;
        match fault {
            Fault::CutAfter(limit) => kept = len.min(limit - copied),
            Fault::FlipAt(at) if (copied..copied + len).contains(&at) => buffer[at - copied] ^= 4,
            Fault::Silent => continue,
            Fault::FlipAt(_) | Fault::Late(_) | Fault::None | Fault::Refused | Fault::Error500 => {}
        }
        copied += kept;
        if to.write_all(&buffer[..kept]).is_err() || kept < len {
            break;
        }
    }
    _ = from.shutdown(Shutdown::Both);
    _ = to.shutdown(Shutdown::Both);
}
