//! Connections with TLS, made by openssl.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use symdex_testkit::folders::folder;

use crate::server::{TestServer, symdex_on};

/// The command `openssl` with the words of `line` in `folder`.
fn command(folder: &Path, line: &str) -> Command {
    let mut openssl = symdex_testkit::program("openssl", "version");
    openssl.args(line.split(' ')).current_dir(folder);
    openssl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    openssl
}

/// What `openssl` prints, with the words of `line` in `folder`, and `input` on standard input.
fn openssl(folder: &Path, line: &str, input: &str) -> String {
    let mut child = command(folder, line).spawn().expect("openssl starts");
    // A client that refuses the certificate does not read its input.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("openssl ends");
    String::from_utf8(output.stdout).expect("text")
}

/// Writes a new certificate and its key to `cert.pem` and `key.pem` in `folder`, and another copy of the certificate to
/// `ca`.
fn certificate(folder: &Path, ca: &str) {
    let line = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem \
                -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost";
    openssl(folder, line, "");
    fs::copy(folder.join("cert.pem"), folder.join(ca)).expect("openssl has written it");
}

/// The arguments of a client that trusts the certificate `ca`.
fn client(server: &TestServer, ca: &str) -> String {
    let address = server.url.trim_start_matches("http://");
    format!("s_client -quiet -connect {address} -servername localhost -verify_return_error -CAfile {ca}")
}

const REQUEST: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

fn is_served(folder: &Path, server: &TestServer, ca: &str) -> bool {
    let answer = openssl(folder, &client(server, ca), REQUEST);
    answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("ok\n")
}

/// `SSL_CERT_FILE` names the authorities on Linux.
#[cfg(target_os = "linux")]
pub(crate) fn an_upload_trusts_the_authorities_of_the_system_only() {
    use symdex_testkit::command::CommandOutput;
    let keys = folder();
    let line = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem \
                -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
                -addext basicConstraints=critical,CA:FALSE";
    openssl(keys.path(), line, "");
    let server = start(keys.path());
    let url = server.url.replace("http://127.0.0.1", "https://localhost");
    let upload = |trusted: Option<&str>| {
        let mut run = crate::server::command();
        run.args(["--no-config", "upload", "--retry-for", "0s", "--server", &url]);
        run.arg(symdex_testkit::testdata::dsym("cxx"));
        run.envs(trusted.map(|file| ("SSL_CERT_FILE", keys.path().join(file))));
        CommandOutput::from(run.output().expect("symdex runs"))
    };
    let refused = upload(None);
    assert!(refused.code == Some(1) && refused.err.contains("invalid peer certificate"), "{refused:?}");
    let sent = upload(Some("cert.pem"));
    assert_eq!(sent.code, Some(0), "{sent:?}");
}

/// A server with the certificate and the key in `folder`.
fn start(folder: &Path) -> TestServer {
    let path = |name: &str| folder.join(name).to_str().expect("text").to_owned();
    TestServer::empty(&["--tls-cert", &path("cert.pem"), "--tls-key", &path("key.pem")])
}

pub(crate) fn tls_is_spoken_with_a_certificate_and_a_key() {
    let keys = folder();
    certificate(keys.path(), "ca.pem");
    let server = start(keys.path());
    assert!(is_served(keys.path(), &server, "ca.pem"));
    let metrics = openssl(keys.path(), &client(&server, "ca.pem"), &REQUEST.replace("healthz", "metrics"));
    let expiry = metrics.split("\nsymdex_tls_certificate_expiry_timestamp_seconds{} ").nth(1);
    let expiry = expiry.and_then(|rest| rest.lines().next()?.parse::<u64>().ok()).expect("a time");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time").as_secs();
    let two_days = 2 * 24 * 60 * 60;
    assert!((now + two_days - 60..=now + two_days).contains(&expiry), "{expiry}");

    // The key of another file is refused when the server starts.
    let (store, cert) = (folder(), keys.path().join("cert.pem").display().to_string());
    let line =
        format!("--no-config serve --listen 127.0.0.1:0 --store {{}} --tls-cert {cert} --tls-key {cert}");
    let refused = symdex_on(store.path(), &line);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("cert.pem"), "{}", refused.err);
}

#[cfg(unix)]
pub(crate) fn sighup_replaces_the_certificate_and_keeps_the_connections() {
    let keys = folder();
    let keys = keys.path();
    certificate(keys, "old.pem");
    let server = start(keys);
    let mut open = command(keys, &client(&server, "old.pem")).spawn().expect("openssl starts");
    let (mut to, from) = (open.stdin.take().expect("a pipe"), open.stdout.take().expect("a pipe"));
    let mut lines = BufReader::new(from).lines().map(|line| line.expect("text"));
    to.write_all(REQUEST.replace("Connection: close\r\n", "").as_bytes()).expect("written");
    assert!(lines.any(|line| line == "ok"), "the connection is open");

    certificate(keys, "new.pem");
    server.reload("reloaded");
    assert!(is_served(keys, &server, "new.pem"));
    assert!(!is_served(keys, &server, "old.pem"));
    to.write_all(REQUEST.as_bytes()).expect("written");
    assert!(lines.any(|line| line == "ok"), "the old connection is still open");
    assert!(open.wait().expect("openssl ends").success());

    // A certificate of another key, and a file without one.
    fs::copy(keys.join("old.pem"), keys.join("cert.pem")).expect("copied");
    server.reload("not reloaded");
    fs::write(keys.join("cert.pem"), "").expect("written");
    server.reload("not reloaded");
    assert!(is_served(keys, &server, "new.pem"));
}
