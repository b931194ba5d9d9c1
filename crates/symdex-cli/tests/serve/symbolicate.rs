//! `POST /v1/symbolicate`.

use std::fs;
use std::io::Write as _;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::{folder, symdex_on, testdata};
use crate::server::TestServer;

/// The demo's report.
fn report() -> Vec<u8> {
    fs::read(testdata().join("demo/demo.crash")).expect("the demo's report")
}

/// A store with the demo's indexes.
fn demo_store() -> TempDir {
    let store = folder();
    let line = format!("build {} --store {{}}", testdata().join("demo").display());
    assert_eq!(symdex_on(store.path(), &line).code, Some(0));
    store
}

/// What the command writes for the demo's report.
fn from_command(store: &TempDir, arguments: &str) -> String {
    let line =
        format!("symbolicate {} --store {{}} {arguments}", testdata().join("demo/demo.crash").display());
    symdex_on(store.path(), line.trim_end()).out
}

#[test]
fn the_answer_is_what_the_command_writes() {
    let store = demo_store();
    let server = TestServer::start(store.path(), &[]);
    for (query, arguments) in [
        ("", ""),
        ("?format=text", "--format text"),
        ("?lines=exact&inlines=false&addresses=as-given", "--lines exact --no-inlines --addresses as-given"),
        ("?demangle=false&only_missing=true", "--no-demangle --only-missing"),
    ] {
        let answer = server.post(&format!("/v1/symbolicate{query}"), report());
        assert_eq!((answer.status, answer.text()), (200, &*from_command(&store, arguments)), "{query}");
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8", "{query}");
        assert_eq!(answer.header("content-length"), answer.body.len().to_string());
    }
}

#[test]
fn json_is_that_of_the_command() {
    let store = demo_store();
    let server = TestServer::start(store.path(), &[]);
    let answer =
        server.post_with("/v1/symbolicate?name=a", &[("accept", "application/json")], report()).json();
    let expected: Value = serde_json::from_str(&from_command(&store, "--json")).expect("JSON");
    assert_eq!(answer["report"], "a");
    for member in ["format", "header", "images", "threads"] {
        assert_eq!(answer[member], expected[member], "{member}");
    }
}

#[test]
fn compressed_reports_are_read_and_other_encodings_refused() {
    let store = demo_store();
    let server = TestServer::start(store.path(), &[]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&report()).expect("written to memory");
    let gzip = gzip.finish().expect("written to memory");
    let zstd = zstd::encode_all(&report()[..], 3).expect("compressed");
    let expected = from_command(&store, "");
    let post = |encoding: &str, body: &[u8]| {
        server.post_with("/v1/symbolicate", &[("content-encoding", encoding)], body)
    };
    assert_eq!(post("gzip", &gzip).text(), expected);
    assert_eq!(post("zstd", &zstd).text(), expected);
    assert_eq!(post("br", &gzip).status, 415);
    assert_eq!((post("gzip", &zstd).status, post("zstd", &zstd[..99]).status), (400, 400));
    // The checksum comes last.
    let mut wrong = gzip.clone();
    let checksum = wrong.len() - 8;
    wrong[checksum] ^= 1;
    assert_eq!(
        (post("gzip", &wrong).status, post("gzip", &[&gzip[..], b"more"].concat()).status),
        (400, 400)
    );
}

#[test]
fn a_body_past_the_limit_is_refused_before_and_after_it_is_decompressed() {
    let store = folder();
    let server = TestServer::start(store.path(), &["--max-body", "1MB"]);
    assert_eq!(server.post("/v1/symbolicate", vec![b' '; 1_000_001]).status, 413);
    let bomb = zstd::encode_all(&vec![b' '; 100_000_000][..], 3).expect("compressed");
    assert!(bomb.len() < 10_000);
    assert_eq!(server.post_with("/v1/symbolicate", &[("content-encoding", "zstd")], bomb).status, 413);
    let no_report = server.post("/v1/symbolicate", "hello");
    assert_eq!(
        (no_report.status, &no_report.json()["type"]),
        (422, &json!("urn:symdex:problem:not-a-report"))
    );
    let wrong = server.post("/v1/symbolicate?lines=all", report());
    assert_eq!((wrong.status, &wrong.json()["type"]), (400, &json!("urn:symdex:problem:bad-request")));
}

#[test]
fn a_batch_has_a_line_for_each_report() {
    let store = demo_store();
    let server = TestServer::start(store.path(), &[]);
    let line = json!({"name": "a", "report": String::from_utf8(report()).expect("text")});
    let batch = format!("{line}\n\n{{\"name\": \"b\", \"report\": \"hello\"}}\nno json\n{line}");
    let answer = server.post_with("/v1/symbolicate", &[("content-type", "application/x-ndjson")], batch);
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/x-ndjson"));
    let lines: Vec<Value> =
        answer.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<_> =
        lines.iter().map(|line| line["error"]["type"].as_str().unwrap_or("answered")).collect();
    assert_eq!(
        kinds,
        ["answered", "urn:symdex:problem:not-a-report", "urn:symdex:problem:bad-request", "answered"]
    );
    assert_eq!((&lines[1]["report"], &lines[0]), (&json!("b"), &lines[3]));
}
