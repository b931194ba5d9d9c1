//! Health, metrics, tokens, limits, and stopping.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::json;
use symdex_testkit::folders::folder;

use crate::server::{TestServer, TestToken, command, symdex, symdex_on};

pub(crate) fn a_server_says_that_it_is_alive_and_counts_requests() {
    let server = TestServer::empty(&[]);
    assert_eq!((server.get("/healthz").status, server.get("/readyz").status), (200, 200));
    let missing = server.get("/nothing");
    assert_eq!((missing.status, &missing.json()["type"]), (404, &json!("urn:symdex:problem:not-found")));
    assert_eq!(server.get("/v1/lookup").status, 405);
    let metrics = server.get("/metrics");
    assert!(
        metrics
            .text()
            .contains("symdex_http_requests_total{method=\"GET\",route=\"/healthz\",status=\"200\"} 1")
    );
    assert!(metrics.text().contains("route=\"none\",status=\"404\"} 1"), "{}", metrics.text());
    assert!(metrics.text().contains("\nsymdex_index_memory_bytes 0\n"), "{}", metrics.text());
    assert_eq!(missing.header("x-request-id").len(), 36);
}

pub(crate) fn operators_see_the_process_the_queues_and_who_asks() {
    let tokens = [TestToken::new("app", "read"), TestToken::new("admin", "admin")];
    let [app, admin] = &tokens;
    let server =
        TestServer::empty(&["--token", &app.configured, "--token", &admin.configured, "--memory", "32MB"]);
    assert_eq!(server.post_with("/v1/missing", &app.headers(), "[]").status, 200);
    // A body that is still being sent takes most of the memory.
    let address = server.url.strip_prefix("http://").expect("a URL");
    let mut sending = TcpStream::connect(address).expect("the server listens");
    let head = format!(
        "POST /v1/symbolicate HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\ncontent-length: 1450000\r\n\r\n",
        app.bearer
    );
    sending.write_all(&[head.as_bytes(), &[b' '; 1_200_000]].concat()).expect("sent");
    server.until(|| {
        let metrics = server.get_with("/metrics", &admin.headers());
        let mut free = metrics
            .text()
            .lines()
            .filter_map(|line| line.strip_prefix("symdex_request_memory_free_bytes ")?.parse::<u64>().ok());
        free.next().is_some_and(|free| free < 8_000_000)
    });
    assert_eq!(server.post_with("/v1/symbolicate", &app.headers(), vec![b' '; 1_200_000]).status, 503);
    let answer = server.get_with("/metrics", &admin.headers());
    assert_eq!((answer.status, answer.header("cache-control")), (200, "no-store"));
    let metrics = answer.text();
    let value = |name: &str| {
        let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{name}: {metrics}")).parse::<f64>().expect("a number")
    };
    for (name, expected) in [
        (concat!("symdex_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1.0),
        ("symdex_token_requests_total{token=\"app\",status=\"200\"}", 1.0),
        ("symdex_token_requests_total{token=\"app\",status=\"503\"}", 1.0),
        ("symdex_http_unavailable_total{reason=\"memory\"}", 1.0),
        ("symdex_http_requests_waiting", 0.0),
        ("symdex_jobs_oldest_age_seconds", 0.0),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
    assert!(!metrics.contains("\nsymdex_tls_certificate_expiry_timestamp_seconds"), "{metrics}");
    if cfg!(target_os = "linux") {
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_open_fds") >= 3.0 && value("process_max_fds") > value("process_open_fds"));
        assert!(value("process_cpu_seconds_total") > 0.0 && value("process_threads") > 1.0);
        let started = value("process_start_time_seconds");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time");
        assert!((now.as_secs_f64() - 60.0..=now.as_secs_f64() + 1.0).contains(&started), "{started}");
    }
    assert!(metrics.ends_with("# EOF\n") && metrics.matches("# EOF").count() == 1);
}

pub(crate) fn tokens_have_scopes() {
    let made = symdex(["serve", "--new-token", "read"]);
    let (secret, configured) = made.out.trim_end().split_once('\n').expect("two lines");
    let token = configured.split('"').nth(1).expect("a line of symdex.toml");
    let server = TestServer::empty(&["--token", token]);
    let bearer = format!("Bearer {secret}");
    let status = |path: &str, value: &str| server.post_with(path, &[("authorization", value)], "[]").status;
    assert_eq!(status("/v1/lookup", &bearer), 200);
    assert_eq!(status("/v1/lookup", "Bearer sdx_wrong"), 401);
    assert_eq!(server.post("/v1/lookup", "[]").status, 401);
    assert_eq!(server.get("/healthz").status, 200);
    let metrics = server.agent.get(format!("{}/metrics", server.url)).header("authorization", &bearer).call();
    assert_eq!(metrics.expect("an answer").status(), 403);
}

pub(crate) fn without_tokens_a_server_is_for_this_machine_only() {
    let store = folder();
    let refused = symdex_on(store.path(), "--no-config serve --listen 0.0.0.0:0 --store {}");
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("--insecure-public"), "{}", refused.err);
    let refused = symdex(["--no-config", "serve"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.err.contains("--store"), "{}", refused.err);
}

pub(crate) fn without_tokens_a_page_of_another_origin_cannot_use_a_server() {
    let server = TestServer::empty(&["--allow-host", "symdex.example"]);
    let status =
        |name: &'static str, value: &str| server.post_with("/v1/lookup", &[(name, value)], "[]").status;
    assert_eq!(server.post("/v1/lookup", "[]").status, 200);
    assert_eq!(status("host", "symdex.example:8040"), 200);
    assert_eq!(status("host", "127.0.0.1.nip.io"), 403);
    assert_eq!(status("origin", "http://127.0.0.1:1"), 403);
    assert_eq!(status("origin", &server.url), 200);
}

#[cfg(unix)]
pub(crate) fn sigterm_stops_a_server_without_an_error() {
    let mut serve = command();
    let store = folder();
    serve.args(["--no-config", "serve", "--listen", "127.0.0.1:0", "--store"]).arg(store.path());
    let server = TestServer::spawn(serve);
    assert_eq!(server.get("/healthz").status, 200);
    assert!(server.terminate().success());
}
