//! A web server for one test.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

/// What the server does with a request.
#[derive(Clone)]
pub enum Reply {
    /// 200 with this body and its length.
    Body(Vec<u8>),
    /// 200 with this body, in chunks, without its length.
    Chunked(Vec<u8>),
    /// 200 with the length of this body, and only half of it.
    Cut(Vec<u8>),
    /// 200 that states this length, and no body.
    Length(u64),
    /// This status without a body.
    Status(u16),
    /// A redirect to this URL.
    Redirect(String),
    /// This reply, as soon as the gate is open.
    Behind(Gate, Box<Reply>),
}

/// Holds replies back until it is opened.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn open(&self) {
        *self.0.0.lock().expect("not poisoned") = true;
        self.0.1.notify_all();
    }

    pub(crate) fn pass(&self) {
        let is_open = self.0.0.lock().expect("not poisoned");
        drop(self.0.1.wait_while(is_open, |is_open| !*is_open).expect("not poisoned"));
    }
}

/// A request.
pub struct Request {
    pub path: String,
    pub headers: HashMap<String, String>,
    /// How many requests there were before it.
    pub number: usize,
}

/// A web server. It ends with the process.
pub struct WebServer {
    port: u16,
    paths: Arc<Mutex<Vec<String>>>,
}

impl WebServer {
    /// Starts a server that answers as `reply` says.
    pub fn start(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let paths: Arc<Mutex<Vec<String>>> = Arc::default();
        let (log, reply) = (Arc::clone(&paths), Arc::new(reply));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, reply) = (Arc::clone(&log), Arc::clone(&reply));
                // It fails if the client goes away.
                std::thread::spawn(move || _ = serve(stream, &log, &*reply));
            }
        });
        Self { port, paths }
    }

    /// Starts a server that has this body at each path that ends with `end`, and nothing else.
    pub fn of(end: String, body: Vec<u8>) -> Self {
        Self::start(move |request| {
            let is_it = request.path.ends_with(&end);
            if is_it { Reply::Body(body.clone()) } else { Reply::Status(404) }
        })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.authority())
    }

    /// `127.0.0.1:PORT`.
    pub fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The paths of all requests until now.
    pub fn paths(&self) -> Vec<String> {
        self.paths.lock().expect("not poisoned").clone()
    }
}

fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<String>>,
    reply: &(dyn Fn(&Request) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let headers = lines.map_while(Result::ok).take_while(|line| !line.is_empty());
    let headers = headers.filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_lowercase(), value.to_owned()))
    });
    let headers = headers.collect();
    let number = {
        let mut log = log.lock().expect("not poisoned");
        log.push(path.clone());
        log.len() - 1
    };
    let mut reply = reply(&Request { path, headers, number });
    while let Reply::Behind(gate, then) = reply {
        gate.pass();
        reply = *then;
    }
    let mut head = |status: u16, header: String| {
        write!(stream, "HTTP/1.1 {status} Status\r\nConnection: close\r\n{header}\r\n\r\n")
    };
    let length = |len: u64| format!("Content-Length: {len}");
    match reply {
        Reply::Body(body) => {
            head(200, length(body.len() as u64))?;
            stream.write_all(&body)
        }
        Reply::Cut(body) => {
            head(200, length(body.len() as u64))?;
            stream.write_all(&body[..body.len() / 2])
        }
        Reply::Length(len) => head(200, length(len)),
        Reply::Chunked(body) => {
            head(200, "Transfer-Encoding: chunked".to_owned())?;
            for part in body.chunks(1000) {
                write!(stream, "{:x}\r\n", part.len())?;
                stream.write_all(part)?;
                stream.write_all(b"\r\n")?;
            }
            stream.write_all(b"0\r\n\r\n")
        }
        Reply::Status(status) => head(status, length(0)),
        Reply::Redirect(to) => head(302, format!("Content-Length: 0\r\nLocation: {to}")),
        Reply::Behind(..) => unreachable!("it is taken apart above"),
    }
}
