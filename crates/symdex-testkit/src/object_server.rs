//! A server of the S3 protocol that can only be read, without lists: fast enough for many objects, and with a latency.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const TIME: &str = "Tue, 24 Nov 2026 00:00:00 GMT";

/// The requests of an [`ObjectServer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests for an object that exists.
    pub found: u64,
    /// Requests for an object that does not exist.
    pub missing: u64,
}

/// A server with one bucket, whatever it is called. It ends with the process.
pub struct ObjectServer {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    objects: BTreeMap<String, Vec<u8>>,
    /// The time before each answer.
    latency: Mutex<Duration>,
    found: AtomicU64,
    missing: AtomicU64,
}

impl ObjectServer {
    /// Starts a server with objects of these keys.
    pub fn start(objects: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (latency, found, missing) = Default::default();
        let shared = Shared { objects: objects.into_iter().collect(), latency, found, missing };
        let shared = Arc::new(shared);
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&serving);
                // It fails if the client goes away.
                thread::spawn(move || _ = shared.serve(stream));
            }
        });
        Self { port, shared }
    }

    /// Sets the time before each answer.
    pub fn set_latency(&self, latency: Duration) {
        *self.shared.latency.lock().expect("not poisoned") = latency;
    }

    /// The requests since the last call.
    pub fn take_requests(&self) -> Requests {
        let Shared { found, missing, .. } = &*self.shared;
        let [found, missing] = [found, missing].map(|counter| counter.swap(0, Ordering::Relaxed));
        Requests { found, missing }
    }
}

impl Shared {
    /// Answers the requests of a connection.
    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        while let Some(first) = lines.next().transpose()? {
            lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
            // The lock is not held meanwhile.
            let latency = *self.latency.lock().expect("not poisoned");
            thread::sleep(latency);
            let mut words = first.split(' ');
            let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let key = target.trim_start_matches('/').split_once('/').map_or("", |(_, key)| key);
            let (status, body) = self.object(key);
            let head = format!(
                "HTTP/1.1 {status} Status\r\nContent-Length: {}\r\nETag: \"1\"\r\nLast-Modified: {TIME}\r\n\r\n",
                body.len()
            );
            let body = if method == "HEAD" { &[] } else { &body[..] };
            stream.write_all(&[head.as_bytes(), body].concat())?;
        }
        Ok(())
    }

    fn object(&self, key: &str) -> (u16, Vec<u8>) {
        match self.objects.get(key) {
            Some(object) => {
                self.found.fetch_add(1, Ordering::Relaxed);
                (200, object.clone())
            }
            None => {
                self.missing.fetch_add(1, Ordering::Relaxed);
                (404, b"<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>".into())
            }
        }
    }
}
