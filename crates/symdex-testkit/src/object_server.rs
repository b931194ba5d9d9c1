//! A server of the S3 protocol that can only be read: fast enough for many objects, and with a latency.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Objects of a list.
const PAGE: usize = 1000;
const TIME: &str = "Tue, 24 Nov 2026 00:00:00 GMT";

/// The requests of an [`ObjectServer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Requests for an object that exists.
    pub found: u64,
    /// Requests for an object that does not exist.
    pub missing: u64,
    /// Pages of lists.
    pub pages: u64,
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
    pages: AtomicU64,
}

impl ObjectServer {
    /// Starts a server with objects of these keys.
    pub fn start(objects: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (found, missing, pages) = Default::default();
        let latency = Mutex::default();
        let shared = Shared { objects: objects.into_iter().collect(), latency, found, missing, pages };
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
        let Shared { found, missing, pages, .. } = &*self.shared;
        let [found, missing, pages] =
            [found, missing, pages].map(|counter| counter.swap(0, Ordering::Relaxed));
        Requests { found, missing, pages }
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
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let key = path.trim_start_matches('/').split_once('/').map_or("", |(_, key)| key);
            let (status, body) = if key.is_empty() { (200, self.page(query)) } else { self.object(key) };
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

    /// A page of the list of all objects. The token of the next page is its last key.
    fn page(&self, query: &str) -> Vec<u8> {
        self.pages.fetch_add(1, Ordering::Relaxed);
        let parameter = |name: &str| {
            let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
            value.unwrap_or_default().replace("%2F", "/")
        };
        let (prefix, after) =
            (parameter("prefix"), parameter("continuation-token").max(parameter("start-after")));
        let following = self.objects.range((Bound::Excluded(after), Bound::Unbounded));
        let mut following = following.filter(|(key, _)| key.starts_with(&prefix));
        let mut page = "<ListBucketResult>".to_owned();
        let mut last = String::new();
        for (key, object) in following.by_ref().take(PAGE) {
            let size = object.len();
            write!(
                page,
                "<Contents><Key>{key}</Key><Size>{size}</Size><ETag>\"1\"</ETag>\
                 <LastModified>2026-11-24T00:00:00.000Z</LastModified></Contents>"
            )
            .expect("memory");
            last.clone_from(key);
        }
        let more = match following.next() {
            Some(_) => format!("<NextContinuationToken>{last}</NextContinuationToken>"),
            None => String::new(),
        };
        (page + &more + "</ListBucketResult>").into_bytes()
    }
}
