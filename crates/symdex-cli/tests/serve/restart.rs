//! Stops and restarts that no client notices.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use symdex_testkit::folders::folder;

use crate::server::{TestServer, command};

pub(crate) fn a_server_that_stops_still_answers_and_closes_its_connections() {
    let store = folder();
    let server = TestServer::start(store.path(), &["--drain", "5s"]);
    // An idle connection, and one whose request is under way.
    let host = server.url.trim_start_matches("http://").to_owned();
    let mut idle = TcpStream::connect(&host).expect("connected");
    write!(idle, "GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("sent");
    let mut reader = BufReader::new(idle.try_clone().expect("the same"));
    let mut head = String::new();
    while !head.ends_with("ok\n") {
        assert_ne!(reader.read_line(&mut head).expect("text"), 0, "{head}");
    }
    assert!(!head.contains("connection: close"), "{head}");
    let mut slow = TcpStream::connect(&host).expect("connected");
    write!(slow, "POST /v1/missing HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\n[").expect("sent");
    server.signal("TERM");
    server.until(|| server.get("/readyz").status == 503);
    // A new connection is accepted, and closed after its answer.
    let answer = server.get("/healthz");
    assert_eq!((answer.status, answer.header("connection")), (200, "close"));
    let finish = |stream: &mut TcpStream, rest: &str| {
        stream.write_all(rest.as_bytes()).expect("open");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("closed after the answer");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
    };
    finish(&mut idle, &format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    finish(&mut slow, "]");
    assert!(server.wait().success());
}

pub(crate) fn a_socket_of_a_supervisor_keeps_clients_waiting_during_a_restart() {
    let (store, state) = (folder(), folder());
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
    let start = || {
        // A supervisor names the process that the socket is for.
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\" 3<&0 </dev/null"]);
        shell.arg(command().get_program()).args([
            "--no-config",
            "serve",
            "--listen",
            "127.0.0.1:1",
            "--store",
        ]);
        shell.arg(store.path()).arg("--state").arg(state.path());
        shell.stdin(Stdio::from(OwnedFd::from(socket.try_clone().expect("the same"))));
        TestServer::spawn(shell)
    };
    let server = start();
    let address = socket.local_addr().expect("an address").to_string();
    assert_eq!(server.url, format!("http://{address}"));
    assert_eq!(server.get("/healthz").status, 200);
    assert!(server.terminate().success());
    let mut waiting = TcpStream::connect(&address).expect("the socket listens");
    write!(waiting, "GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("sent");
    let _server = start();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
