//! Clients that ask for too much.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;
use symdex_testkit::folders::folder;
use symdex_testkit::indexes::{deep_index, id, index, index_called};

use crate::server::{TestServer, TestToken, command_with_limit};

/// Opens a connection and sends `bytes`. The server may answer and close it before all of them are sent.
fn connect(server: &TestServer, bytes: &[u8]) -> TcpStream {
    let address = server.url.strip_prefix("http://").expect("a URL");
    let mut stream = TcpStream::connect(address).expect("the server listens");
    let _ = stream.write_all(bytes);
    stream
}

/// The first line of the answer.
fn status_line(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

/// A server whose process has this limit of open files, as an argument of `ulimit`.
#[cfg(unix)]
fn server_with_files(limit: &str) -> (tempfile::TempDir, TestServer) {
    let store = folder();
    let mut serve = command_with_limit(limit);
    serve.args(["--no-config", "serve", "--listen", "127.0.0.1:0", "--store"]).arg(store.path());
    (store, TestServer::spawn(serve))
}

#[cfg(unix)]
pub(crate) fn connections_beyond_the_limit_of_open_files_are_refused_and_others_stay() {
    // Half of the files are left for stores.
    let (_store, server) = server_with_files("-n 100");
    assert_eq!(server.get("/healthz").status, 200);
    // The agent has kept its connection.
    let idle: Vec<_> = (0..49).map(|_| connect(&server, b"")).collect();
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(status_line(connect(&server, request)), "HTTP/1.1 503 Service Unavailable");
    assert_eq!(server.get("/healthz").status, 200);
    drop(idle);
}

#[cfg(unix)]
pub(crate) fn the_soft_limit_of_open_files_is_raised() {
    let (_store, server) = server_with_files("-Sn 100");
    let idle: Vec<_> = (0..200).map(|_| connect(&server, b"")).collect();
    assert_eq!(server.get("/healthz").status, 200);
    drop(idle);
}

/// Other addresses of the loopback interface are not set up on other systems.
#[cfg(target_os = "linux")]
pub(crate) fn an_address_with_many_connections_leaves_others_to_other_addresses() {
    let server = TestServer::empty(&["--address-connections", "5"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    let connect_from_other = |bytes: &[u8]| {
        let address = server.url.strip_prefix("http://").expect("a URL").parse().expect("an address");
        let connected = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.bind(([127, 0, 0, 2], 0).into())?;
            socket.connect(address).await?.into_std()
        });
        let mut stream = connected.expect("the server listens");
        stream.set_nonblocking(false).expect("set");
        let _ = stream.write_all(bytes);
        stream
    };
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let mut idle: Vec<_> = (0..5).map(|_| connect_from_other(b"")).collect();
    assert_eq!(status_line(connect_from_other(request)), "HTTP/1.1 503 Service Unavailable");
    assert_eq!(server.get("/healthz").status, 200);
    idle.pop();
    server.until(|| status_line(connect_from_other(request)) == "HTTP/1.1 200 OK");
}

pub(crate) fn strangers_write_little_to_the_log() {
    let token = TestToken::new("ci", "read,admin");
    let server = TestServer::empty(&["--token", &token.configured]);
    let (path, id) = ("y".repeat(7000), "x".repeat(7000));
    let request = format!(
        "POST /v1/jobs/{path}/resume HTTP/1.1\r\nhost: a\r\nx-request-id: {id}\r\ncontent-length: 0\r\nconnection: \
         close\r\n\r\n"
    );
    for _ in 0..20 {
        assert_eq!(status_line(connect(&server, request.as_bytes())), "HTTP/1.1 401 Unauthorized");
    }
    assert_eq!(server.post_with("/v1/missing", &token.headers(), "[]").status, 200);
    server.expect_log(&["\"status\":200"]);
    let log = server.log();
    let refused: Vec<_> = log.lines().filter(|line| line.contains("\"action\":\"refuse\"")).collect();
    assert_eq!(refused.len(), 1, "the others are counted: {log}");
    assert!(
        refused[0].contains(&format!("POST /v1/jobs/{}\"", "y".repeat(200 - "/v1/jobs/".len()))),
        "{log}"
    );
    let answered: Vec<_> = log.lines().filter(|line| line.contains("\"message\":\"answered\"")).collect();
    assert_eq!(answered.len(), 21);
    assert!(answered[0].contains(&format!("\"id\":\"{}\"", "x".repeat(64))), "{}", answered[0]);
    assert!(log.lines().all(|line| line.len() < 1000), "{log}");
    for member in [r#""client":"127.0.0.1""#, r#""token":"ci""#, r#""received":2"#, r#""sent":2"#] {
        assert!(answered[20].contains(member), "{}", answered[20]);
    }
}

pub(crate) fn a_request_names_one_host_and_one_token() {
    let server = TestServer::empty(&[]);
    let status = |head: &str| {
        let request = format!("{head}\r\nconnection: close\r\n\r\n");
        status_line(connect(&server, request.as_bytes())).split(' ').nth(1).map(str::to_owned)
    };
    assert_eq!(status("GET /v1/images HTTP/1.1\r\nhost: localhost").as_deref(), Some("200"));
    for wrong in [
        "GET /v1/images HTTP/1.1",
        "GET /v1/images HTTP/1.1\r\nhost: localhost\r\nhost: evil.example",
        "GET http://evil.example/v1/images HTTP/1.1\r\nhost: localhost",
        "GET /v1/images HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer a\r\nauthorization: Bearer b",
    ] {
        assert_eq!(status(wrong).as_deref(), Some("400"), "{wrong}");
    }
}

pub(crate) fn a_body_in_chunks_is_refused_when_it_is_too_long() {
    let server = TestServer::empty(&["--max-body", "1MB"]);
    let head = "POST /v1/symbolicate HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    let endless = connect(&server, format!("{head}{}", chunk.repeat(16)).as_bytes());
    assert_eq!(status_line(endless), "HTTP/1.1 413 Payload Too Large");
}

pub(crate) fn a_head_that_is_too_long_is_refused() {
    let server = TestServer::empty(&[]);
    let head = format!("GET /healthz HTTP/1.1\r\nx-long: {}", "a".repeat(32 << 10));
    assert_eq!(
        status_line(connect(&server, head.as_bytes())),
        "HTTP/1.1 431 Request Header Fields Too Large"
    );
}

pub(crate) fn a_lookup_of_too_many_addresses_is_refused() {
    let server = TestServer::empty(&[]);
    let lookup = |count| {
        let addresses = vec![0; count];
        server.post_json("/v1/lookup", &json!([{"id": "aa".repeat(16), "addresses": addresses}]))
    };
    assert_eq!(lookup(100_000).status, 200);
    let refused = lookup(100_001);
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("found 100001 addresses"), "{}", refused.text());
}

pub(crate) fn a_request_for_too_many_images_is_refused() {
    let server = TestServer::empty(&[]);
    let list = |entry: &str, count| format!("[{}]", vec![entry; count].join(","));
    for (path, entry) in
        [("/v1/lookup", r#"{"id":"aaaaaaaa","addresses":[]}"#), ("/v1/missing", r#""aaaaaaaa""#)]
    {
        assert_eq!(server.post(path, list(entry, 100_000)).status, 200, "{path}");
        let refused = server.post(path, list(entry, 100_001));
        assert_eq!(refused.status, 400, "{path}");
        assert!(refused.text().contains("a request may have 100000 images"), "{}", refused.text());
    }
}

pub(crate) fn an_error_quotes_little_of_a_request() {
    let server = TestServer::empty(&[]);
    let long = "\u{7f}".repeat(1_000_000);
    let wrong = [
        ("/v1/lookup", json!([{"id": long, "addresses": [1]}])),
        ("/v1/lookup", json!([{"id": "aa", "addresses": [long]}])),
        ("/v1/lookup", json!([{"id": "aa", "addresses": [1], &long: 1}])),
        ("/v1/missing", json!([long])),
        ("/symbolicate", json!({"stacktraces": [{"frames": [{"instruction_addr": long}]}]})),
    ];
    for (path, body) in wrong {
        let refused = server.post_json(path, &body);
        assert_eq!(refused.status, 400, "{path}");
        assert!(refused.text().len() < 1000, "{path}: {} bytes", refused.text().len());
    }
}

pub(crate) fn answers_that_nobody_reads_do_not_fill_the_memory() {
    // More than the system buffers for a connection.
    let name = "n".repeat(40 << 10);
    let images: Vec<_> = (0..200).map(|byte| (byte, index_called(byte, &name))).collect();
    let (_store, server) = server_of_options(&images, &["--memory", "64MB"]);
    let list = "/v1/images?limit=10000";
    let whole = server.get(list);
    assert_eq!((whole.status, whole.text().len() > 8_000_000), (200, true));
    let request = format!("GET {list} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    // One after the other: while an answer is written, it takes more.
    let unread_one = |_| {
        let mut stream = connect(&server, request.as_bytes());
        stream.read_exact(&mut [0]).expect("an answer");
        stream
    };
    let unread: Vec<_> = (0..8).map(unread_one).collect();
    server.until(|| server.get(list).status == 503);
    // Short answers are given.
    assert_eq!(server.get("/v1/images?limit=1").status, 200);
    drop(unread);
    server.until(|| server.get(list).status == 200);
}

pub(crate) fn requests_that_do_not_fit_into_the_memory_are_refused() {
    let server = TestServer::empty(&["--memory", "32MB"]);
    // However often it is sent.
    let refused = server.post("/v1/symbolicate", vec![b' '; 4_000_000]);
    assert_eq!((refused.status, refused.header("retry-after")), (413, ""));
    assert_eq!(refused.json()["type"], "urn:symdex:problem:too-large");
    // The memory is free again.
    assert_eq!(server.post("/v1/symbolicate", "hello").status, 422);
}

/// The buffers of connections belong to no request.
#[cfg(all(feature = "jemalloc", target_os = "linux"))]
pub(crate) fn memory_that_no_request_has_reserved_counts_and_small_requests_go_last() {
    let server = TestServer::empty(&["--memory", "32MB"]);
    let metrics = || server.get("/metrics").text().to_owned();
    let bytes = |name: &str| {
        let metrics = metrics();
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{metrics}"));
        line.rsplit(' ').next().and_then(|value| value.parse::<u64>().ok()).expect("a number")
    };
    let allocated = || bytes("symdex_memory_allocated");
    let large = || server.post("/v1/symbolicate", vec![b' '; 200_000]).status;
    let small = || server.post("/v1/missing", "[]");
    assert_eq!((large(), small().status), (422, 200));
    let head = format!("GET / HTTP/1.1\r\nx-long: {}", "a".repeat(15 << 10));
    let mut idle = Vec::new();
    let mut until_allocated = |megabytes: u64| {
        while allocated() < megabytes * 1_000_000 {
            assert!(idle.len() < 1000, "{} bytes with {} connections", allocated(), idle.len());
            idle.extend((0..20).map(|_| connect(&server, head.as_bytes())));
        }
    };
    until_allocated(27);
    assert_eq!((large(), small().status), (503, 200));
    assert!(bytes("symdex_request_memory_free") > 15_000_000, "nothing is reserved");
    until_allocated(33);
    let refused = small();
    assert_eq!((refused.status, refused.header("retry-after")), (503, "1"));
    assert_eq!(refused.json()["type"], "urn:symdex:problem:overloaded");
    assert_eq!((server.get("/healthz").status, server.get("/readyz").status), (200, 503));
    assert!(metrics().contains("symdex_http_unavailable_total{reason=\"memory\"} 2\n"), "{}", metrics());
    drop(idle);
    server.until(|| large() == 422);
}

/// A server whose store has these indexes, each of the image `id(byte)`.
fn server_of(indexes: &[(u8, Vec<u8>)]) -> (tempfile::TempDir, TestServer) {
    server_of_options(indexes, &[])
}

/// As [`server_of`], with these options.
pub(crate) fn server_of_options(
    indexes: &[(u8, Vec<u8>)],
    options: &[&str],
) -> (tempfile::TempDir, TestServer) {
    let store = folder();
    for (byte, index) in indexes {
        std::fs::write(store.path().join(format!("{}.symdex", id(*byte))), index).expect("writes");
    }
    let server = TestServer::start(store.path(), options);
    (store, server)
}

pub(crate) fn an_address_with_megabytes_of_names_is_marked_and_the_others_are_answered() {
    // 200 functions with a name of 32 KiB are inlined into one another.
    let (_store, server) = server_of(&[(7, deep_index(7, 200, &"n".repeat(32 << 10))), (9, index(9, 1))]);
    let [deep, other] = [7, 9].map(|byte| json!({"id": id(byte).to_string(), "addresses": [0, 4096]}));
    let answer = server.post_json("/v1/lookup", &json!([deep, other]));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let statuses = answer.json();
    let status = |image: usize, address: usize| statuses[image]["answers"][address]["status"].clone();
    assert_eq!((status(0, 0), status(0, 1)), (json!("limit"), json!("missing_symbol")));
    assert_eq!(status(1, 0), "symbolicated");
    // The frame of a report has the same limit.
    let report = format!("demo 0x100000000 0x100000000 {}\n", id(7));
    let answer = server.post("/v1/symbolicate?format=json", &report).json();
    assert_eq!(answer["threads"][0]["frames"][0]["status"], "limit");
}

pub(crate) fn answers_of_a_lookup_past_the_limit_are_marked() {
    // The answer has about 1 MB in the output.
    let (_store, server) = server_of(&[(7, deep_index(7, 10, &"n".repeat(50_000)))]);
    let request = json!([{"id": id(7).to_string(), "addresses": vec![0; 100]}]);
    let answer = server.post_json("/v1/lookup", &request);
    let text = answer.text();
    let [answered, too_large] = ["symbolicated", "\"limit\""].map(|status| text.matches(status).count());
    assert_eq!((answered, too_large), (67, 33));
}
