//! Logs and spans.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use symdex_testkit::folders::folder;

use crate::server::{TestServer, command};

const TRACE: [u8; 16] = *b"\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36";

/// Accepts one request, and returns its path and its body.
fn one_request(listener: &TcpListener) -> (String, Vec<u8>) {
    let (stream, _) = listener.accept().expect("a connection");
    let mut reader = BufReader::new(&stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        if line.trim_end().is_empty() {
            break;
        }
        head.push(line.trim_end().to_ascii_lowercase());
    }
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.parse().expect("a number")];
    reader.read_exact(&mut body).expect("the body");
    (&stream)
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .expect("written");
    (head[0].clone(), body)
}

/// The spans of the server belong to the trace of the client, and are sent at the latest when the server stops.
pub(crate) fn a_collector_gets_the_span_of_a_request() {
    let collector = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = collector.local_addr().expect("an address");
    let endpoint = format!("http://{address}");
    let received = thread::spawn(move || one_request(&collector));
    let mut serve = command();
    let store = folder();
    serve.args(["--no-config", "serve", "--listen", "127.0.0.1:0", "--store"]).arg(store.path());
    serve.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
    let server = TestServer::spawn(serve);
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    assert_eq!(server.post_with("/v1/lookup", &[("traceparent", traceparent)], "[]").status, 200);
    assert!(server.terminate().success());
    // If no spans came, the collector still waits.
    drop(TcpStream::connect(address));
    let (path, body) = received.join().expect("a request");
    assert_eq!(path, "post /v1/traces http/1.1");
    let has = |bytes: &[u8]| body.windows(bytes.len()).any(|window| window == bytes);
    assert!(has(&TRACE), "the span is part of the trace");
    assert!(has(b"symdex") && has(b"/v1/lookup"), "the service and the route are named");
}
