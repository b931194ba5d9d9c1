//! Connections with TLS, made by openssl.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use symdex_testkit::folders::folder;

use crate::server::{TestServer, store_of, symdex_on};

/// Runs `openssl` with the words of `line` in `folder`, and `input` on standard input.
fn openssl(folder: &Path, line: &str, input: &str) -> String {
    let mut openssl = symdex_testkit::program("openssl", "version");
    openssl.args(line.split(' ')).current_dir(folder);
    openssl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = openssl.spawn().expect("openssl starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("openssl ends");
    assert!(output.status.success(), "openssl {line}");
    String::from_utf8(output.stdout).expect("text")
}

pub(crate) fn tls_is_spoken_with_a_certificate_and_a_key() {
    let keys = folder();
    let line = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem \
                -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost";
    openssl(keys.path(), line, "");
    let path = |name: &str| keys.path().join(name).to_str().expect("text").to_owned();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let server = TestServer::start(store_of(&[]).0.path(), &["--tls-cert", &cert, "--tls-key", &key]);
    let address = server.url.trim_start_matches("http://");
    let client = format!(
        "s_client -quiet -connect {address} -servername localhost -verify_return_error -CAfile cert.pem"
    );
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = openssl(keys.path(), &client, request);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("ok\n"), "{answer}");

    // The key of another file is refused when the server starts.
    let store = folder();
    let line =
        format!("--no-config serve --listen 127.0.0.1:0 --store {{}} --tls-cert {cert} --tls-key {cert}");
    let refused = symdex_on(store.path(), &line);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("cert.pem"), "{}", refused.err);
}
