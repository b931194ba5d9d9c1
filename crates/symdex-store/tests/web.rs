//! Stores on web servers, against a small server in the test.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{id, index, name_at, put};
use symdex::{Cause, ImageOffset, Index};
use symdex_store::{IndexFolder, Store, StoreOptions, StoreUrl, open_store};
use symdex_testkit::web::{Reply, WebServer};

/// What a server does wrong.
#[derive(Clone, Copy)]
struct Faults {
    /// It answers so many requests with "503 Service Unavailable".
    failures: usize,
    /// It cuts the bodies of the first requests, up to this request.
    cuts: usize,
    /// It pauses for this time after each byte of a body.
    pause: Duration,
}

/// A web server that shows a folder.
struct Server {
    port: u16,
    /// The request lines and the header `authorization` of all requests.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts a server that answers the first `failures` requests with "503 Service Unavailable". It ends with the
    /// process.
    fn start(folder: &Path, failures: usize) -> Self {
        Self::with(folder, Faults { failures, cuts: 0, pause: Duration::ZERO })
    }

    fn with(folder: &Path, faults: Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (folder, log) = (folder.to_owned(), Arc::clone(&requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (folder, log) = (folder.clone(), Arc::clone(&log));
                std::thread::spawn(move || _ = answer(stream, &folder, &log, faults));
            }
        });
        Self { port, requests }
    }

    fn open(&self, user: &str, query: &str) -> Box<dyn Store> {
        let url = format!("http://{user}127.0.0.1:{}/indexes{query}", self.port);
        let options = StoreOptions::new().timeout(Duration::from_secs(20));
        open_store(&url.parse().expect("a URL"), &options).expect("opened")
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("not poisoned").clone()
    }
}

/// Answers the requests of one connection.
fn answer(
    mut stream: TcpStream,
    folder: &Path,
    log: &Mutex<Vec<String>>,
    faults: Faults,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while let Some(request) = lines.next().transpose()? {
        let headers = lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty());
        let headers: HashMap<_, _> = headers
            .filter_map(|line| line.split_once(": ").map(|(k, v)| (k.to_lowercase(), v.to_owned())))
            .collect();
        let authorization = headers.get("authorization").cloned().unwrap_or_default();
        let count = {
            let mut log = log.lock().expect("not poisoned");
            log.push(format!("{request} {authorization}").trim().to_owned());
            log.len()
        };
        let path = request.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default();
        let path: PathBuf = folder.join(path.trim_start_matches("/indexes/"));
        let (status, body) = match std::fs::read(path) {
            _ if count <= faults.failures => ("503 Service Unavailable", Vec::new()),
            Ok(body) => ("200 OK", body),
            Err(_) => ("404 Not Found", Vec::new()),
        };
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len())?;
        if !request.starts_with("HEAD") {
            for byte in body.iter().filter(|_| !faults.pause.is_zero()) {
                stream.write_all(&[*byte])?;
                std::thread::sleep(faults.pause);
            }
            if !faults.pause.is_zero() {
                continue;
            }
            let is_cut = count <= faults.cuts && !body.is_empty();
            stream.write_all(&body[..if is_cut { body.len() / 2 } else { body.len() }])?;
            if is_cut {
                return stream.shutdown(std::net::Shutdown::Both);
            }
        }
    }
    Ok(())
}

/// A folder with the index of `id(0xab)`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    put(&IndexFolder::new(folder.path()).fan_out(), &index(0xab, 2));
    folder
}

#[test]
fn a_folder_behind_a_web_server_is_a_store_that_can_only_be_read() {
    let folder = folder();
    let server = Server::start(folder.path(), 0);
    let store = server.open("", "");
    let image = store.open(&id(0xab)).expect("readable").expect("there");
    assert_eq!(name_at(&image, ImageOffset(0x1008)).as_deref(), Some("f1"));
    assert!(store.open(&id(0xcd)).expect("readable").is_none());
    let stat = store.stat(&id(0xab)).expect("readable").expect("there");
    assert_eq!(stat.stored_size, index(0xab, 2).len() as u64);

    assert!(store.is_read_only());
    let before = server.requests().len();
    let bytes = index(0xcd, 1);
    let refused = [
        store.put(&Index::open(&bytes[..]).expect("an index")).map(drop),
        store.remove(&id(0xab)).map(drop),
        store.gc(Duration::ZERO).map(drop),
    ];
    for error in refused.map(Result::unwrap_err) {
        assert!(error.to_string().contains("read only"), "{error}");
    }
    assert_eq!(server.requests().len(), before, "nothing is sent");
}

#[test]
fn an_image_costs_one_request_whether_it_is_there_or_not() {
    let folder = folder();
    let server = Server::start(folder.path(), 0);
    let ids: Vec<_> = (0xab..=0xff).map(id).collect();
    let opened = server.open("", "").open_many(&ids);
    let found = opened.into_iter().map(|image| image.expect("readable").is_some());
    assert_eq!(found.collect::<Vec<_>>(), [vec![true], vec![false; ids.len() - 1]].concat());
    assert_eq!(server.requests().len(), ids.len());
}

#[test]
fn failures_of_the_server_are_tried_again_and_then_reported() {
    let folder = folder();
    let server = Server::start(folder.path(), 3);
    assert!(server.open("", "").open(&id(0xab)).expect("tried again").is_some());
    assert_eq!(server.requests().len(), 4, "{:?}", server.requests());

    let server = Server::start(folder.path(), usize::MAX);
    let error = server.open("", "").open(&id(0xab)).map(drop).expect_err("always fails");
    assert!(error.cause() == Cause::Unavailable && error.to_string().contains("503"), "{error}");
    assert_eq!(server.requests().len(), 6, "one request and five more");
}

#[test]
fn half_an_answer_is_a_failure_of_the_server_and_not_damage() {
    let folder = folder();
    let server = Server::with(folder.path(), Faults { failures: 0, cuts: 1, pause: Duration::ZERO });
    let cache = tempfile::tempdir().expect("a folder");
    let url = format!("http://127.0.0.1:{}/indexes", server.port).parse().expect("a URL");
    let options = StoreOptions::new().cache(cache.path().join("cache"), 1 << 20);
    let store = open_store(&url, &options).expect("opened");
    let error = store.open(&id(0xab)).map(drop).expect_err("half an index");
    assert!(error.cause() == Cause::Unavailable && !error.cause().is_damage(), "{error}");
    assert!(store.open(&id(0xab)).expect("whole").is_some());
}

#[test]
fn users_and_tokens_are_sent_and_not_shown() {
    let folder = folder();
    let server = Server::start(folder.path(), 0);
    let store = server.open("me:password@", "?token=password");
    assert!(store.open(&id(0xab)).expect("readable").is_some());
    let requests = server.requests();
    // "me:password" in base64.
    let is_sent = |request: &String| {
        request.contains("?token=password ") && request.ends_with("Basic bWU6cGFzc3dvcmQ=")
    };
    assert!(requests.iter().all(is_sent), "{requests:?}");
    let failing = Server::start(folder.path(), usize::MAX);
    let error = failing.open("me:password@", "?token=password").open(&id(0xab)).map(drop).expect_err("fails");
    assert!(!format!("{error} {error:?} {store:?}").contains("password"), "{error} {error:?}");
}

#[test]
fn a_server_that_does_not_answer_is_unavailable_after_the_time_out() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url: StoreUrl =
        format!("http://{}/x", listener.local_addr().expect("an address")).parse().expect("a URL");
    let store = open_store(&url, &StoreOptions::new().timeout(Duration::from_millis(300))).expect("opened");
    let error = store.open(&id(0xab)).map(drop).expect_err("no answer");
    assert!(error.cause() == Cause::Unavailable && error.to_string().contains("time-out"), "{error}");
}

#[test]
fn a_body_that_arrives_byte_by_byte_is_given_up_although_no_byte_is_late() {
    let folder = folder();
    let pause = Duration::from_millis(20);
    let server = Server::with(folder.path(), Faults { failures: 0, cuts: 0, pause });
    // All bytes need at least six times as long.
    let timeout = pause * u32::try_from(index(0xab, 2).len()).expect("a small index") / 6;
    let url: StoreUrl = format!("http://127.0.0.1:{}/indexes", server.port).parse().expect("a URL");
    let store = open_store(&url, &StoreOptions::new().timeout(timeout)).expect("opened");
    let error = store.open(&id(0xab)).map(drop).expect_err("too slow");
    assert!(error.cause() == Cause::Unavailable && error.to_string().contains("time-out"), "{error}");
}

#[test]
fn the_target_of_a_redirect_gets_no_secret_of_the_store() {
    let (bytes, heard) = (index(0xab, 2), Arc::new(Mutex::new(Vec::new())));
    let listener = Arc::clone(&heard);
    let other = WebServer::start(move |request| {
        let mut heard = listener.lock().expect("not poisoned");
        heard.extend(request.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        Reply::Body(bytes.clone())
    });
    let to = format!("http://{}/moved", other.authority().replace("127.0.0.1", "localhost"));
    let server = WebServer::start(move |_| Reply::Redirect(to.clone()));
    let url = format!("http://me:password@{}/indexes?token=password", server.authority());
    let store = open_store(&url.parse().expect("a URL"), &StoreOptions::new()).expect("opened");
    assert!(store.open(&id(0xab)).expect("readable").is_some());
    let heard = heard.lock().expect("not poisoned").join("\n");
    // "bWU6cGFzc3dvcmQ=" is me:password in base 64.
    for secret in ["password", "token", "bWU6cGFzc3dvcmQ", "referer", "authorization"] {
        assert!(!heard.contains(secret), "{secret}: {heard}");
    }
}
