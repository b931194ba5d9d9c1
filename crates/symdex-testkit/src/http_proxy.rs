//! A proxy of HTTP that logs requests and spoils answers, by a plan or at random from a seed.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What the proxy does to a request and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HttpFault {
    None,
    /// The server is not asked. The answer is the status 500.
    Error500,
    /// The server is not asked. The answer is the status 503, which asks for a pause of one second.
    Error503,
    /// The server gets half of the body of the request, and both connections are closed.
    CutRequest,
    /// The server is asked, and the connection is closed without an answer.
    LostAnswer,
    /// The answer ends after half of its bytes.
    Cut,
    /// The answer has 20 bytes a second.
    Drip,
    /// The answer states another `ETag`.
    WrongTag,
    /// The answer is late by 50 ms.
    Late,
    /// One bit of the body is flipped.
    Flip,
}

impl HttpFault {
    pub const ALL: [Self; 7] =
        [Self::Error500, Self::LostAnswer, Self::Cut, Self::Drip, Self::WrongTag, Self::Late, Self::Flip];
}

/// Forwards requests to a port of this machine, until it is dropped. Each connection has one request.
pub struct HttpProxy {
    pub port: u16,
    state: Arc<State>,
}

struct State {
    target: u16,
    plan: Box<dyn Fn(&str) -> HttpFault + Send + Sync>,
    log: Mutex<Vec<(String, HttpFault)>>,
    body_bytes: AtomicU64,
    is_over: AtomicBool,
}

impl HttpProxy {
    /// Starts a proxy of `target`. `plan` gets the first line of each request, such as `GET /bucket/key HTTP/1.1`.
    pub fn start(target: u16, plan: impl Fn(&str) -> HttpFault + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (plan, log, is_over) = (Box::new(plan), Mutex::default(), AtomicBool::new(false));
        let state = Arc::new(State { target, plan, log, body_bytes: AtomicU64::new(0), is_over });
        let accepting = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if accepting.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let state = Arc::clone(&accepting);
                // It fails if the client or the server goes away.
                thread::spawn(move || _ = state.forward(client));
            }
        });
        Self { port, state }
    }

    /// The methods of all requests since the last call, and what was done to each.
    pub fn take_log(&self) -> Vec<(String, HttpFault)> {
        std::mem::take(&mut self.state.log.lock().expect("not poisoned"))
    }

    /// How many bytes of bodies of PUT were passed on since the last call.
    pub fn take_put_bytes(&self) -> u64 {
        self.state.body_bytes.swap(0, Ordering::Relaxed)
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn forward(&self, mut client: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(client.try_clone()?);
        let mut head = String::new();
        let (mut body_len, mut expects) = (0, false);
        while reader.read_line(&mut head)? > 2 {
            let line = head.lines().next_back().unwrap_or_default().to_lowercase();
            match line.split_once(": ") {
                Some(("content-length", len)) => body_len = len.parse().unwrap_or(0),
                Some(("expect", _)) => expects = true,
                _ => {}
            }
        }
        let Some((first, fields)) = head.split_once("\r\n") else { return Ok(()) };
        let fault = (self.plan)(first);
        let method = first.split(' ').next().unwrap_or_default().to_owned();
        let is_put = method == "PUT";
        self.log.lock().expect("not poisoned").push((method, fault));
        if expects {
            client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut body = vec![0; body_len];
        reader.read_exact(&mut body)?;
        let refused = match fault {
            HttpFault::Error500 => Some("500 Internal Server Error\r\n"),
            HttpFault::Error503 => Some("503 Service Unavailable\r\nRetry-After: 1\r\n"),
            _ => None,
        };
        if let Some(status) = refused {
            let answer = format!("HTTP/1.1 {status}Content-Length: 0\r\nConnection: close\r\n\r\n");
            return client.write_all(answer.as_bytes());
        }
        if fault == HttpFault::CutRequest {
            body.truncate(body.len() / 2);
        }
        if is_put {
            self.body_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        }
        let mut server = TcpStream::connect(("127.0.0.1", self.target))?;
        let fields: String = fields
            .split_inclusive("\r\n")
            .filter(|line| {
                !["connection:", "expect:"].iter().any(|name| line.to_lowercase().starts_with(name))
            })
            .collect();
        server.write_all(format!("{first}\r\nConnection: close\r\n{fields}").as_bytes())?;
        server.write_all(&body)?;
        if fault == HttpFault::CutRequest {
            return Ok(());
        }
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        spoil(&mut answer, fault);
        match fault {
            HttpFault::Late => thread::sleep(Duration::from_millis(50)),
            HttpFault::Drip => {
                for byte in answer {
                    client.write_all(&[byte])?;
                    thread::sleep(Duration::from_millis(50));
                }
                return Ok(());
            }
            _ => {}
        }
        client.write_all(&answer)
    }
}

/// Changes the bytes of `answer` as `fault` says.
fn spoil(answer: &mut Vec<u8>, fault: HttpFault) {
    let body = answer.windows(4).position(|end| end == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
    match fault {
        HttpFault::LostAnswer => answer.clear(),
        HttpFault::Cut => answer.truncate(answer.len() / 2),
        HttpFault::Flip if body < answer.len() => {
            let at = body + (answer.len() - body) / 2;
            answer[at] ^= 4;
        }
        HttpFault::WrongTag => {
            let head = answer[..body].to_ascii_lowercase();
            let field = b"etag: \"";
            if let Some(at) = head.windows(field.len()).position(|found| found == field) {
                // Another digit.
                answer[at + field.len()] = if answer[at + field.len()] == b'0' { b'1' } else { b'0' };
            }
        }
        _ => {}
    }
}
