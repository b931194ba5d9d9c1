//! SIGHUP: the tokens are read again. `tls.rs` has the certificates.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use symdex_testkit::folders::folder;

use crate::server::{TestServer, TestToken, command};

/// A connection that several requests use.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn to(server: &TestServer) -> Self {
        let address = server.url.strip_prefix("http://").expect("a URL");
        Self(BufReader::new(TcpStream::connect(address).expect("the server listens")))
    }

    /// The status of a request with `token` for an image that no store has.
    fn status(&mut self, token: &TestToken) -> u16 {
        let path = format!("/v1/images/{}", "ab".repeat(16));
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\n\r\n", token.bearer);
        self.0.get_mut().write_all(request.as_bytes()).expect("the connection is open");
        let mut head = Vec::new();
        while head.last().is_none_or(|line: &String| !line.is_empty()) {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).expect("a line"), 0, "the connection was closed");
            head.push(line.trim_end().to_ascii_lowercase());
        }
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        let mut body = vec![0; length.parse().expect("a number")];
        self.0.read_exact(&mut body).expect("the body");
        head[0].split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }
}

pub(crate) fn sighup_replaces_the_tokens_and_keeps_the_connections() {
    let root = folder();
    let [old, new] = ["old", "new"].map(|name| TestToken::new(name, "read"));
    let config = root.path().join("symdex.toml");
    let configure = |text: &str| fs::write(&config, text).expect("written");
    let with = |token: &TestToken| format!("token = [\"{}\"]\n", token.configured);
    configure(&with(&old));
    let mut serve = command();
    serve.arg("--config").arg(&config).args(["serve", "--listen", "127.0.0.1:0", "--store"]).arg(root.path());
    let server = TestServer::spawn(serve);
    let mut connection = Connection::to(&server);
    assert_eq!((connection.status(&old), connection.status(&new)), (404, 401));

    configure(&with(&new));
    server.reload("reloaded");
    assert_eq!((connection.status(&old), connection.status(&new)), (401, 404));

    for wrong in ["token = [\"read\"]", "token = []", "tokens = \"a\"", "token = ["] {
        configure(wrong);
        server.reload("not reloaded");
        assert_eq!((connection.status(&old), connection.status(&new)), (401, 404), "{wrong}");
    }
}
