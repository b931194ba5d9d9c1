//! `POST /v1/symbolicate`.

use std::fs;
use std::io::Write as _;

use serde_json::{Value, json};
use symdex::Index;
use symdex_testkit::folders::folder;
use symdex_testkit::minidump::{DumpedModule, DumpedProcess, DumpedThread, Processor};
use symdex_testkit::testdata::testdata;
use tempfile::TempDir;

use crate::server::{TestServer, demo_report, demo_store, symdex_on};

/// What the command writes for the demo's report.
fn from_command(store: &TempDir, arguments: &str) -> String {
    let line =
        format!("symbolicate {} --store {{}} {arguments}", testdata().join("demo/demo.crash").display());
    symdex_on(store.path(), line.trim_end()).out
}

pub(crate) fn the_answer_is_what_the_command_writes() {
    let store = demo_store();
    let server = TestServer::start(store.path(), &[]);
    for (query, arguments) in [
        ("", ""),
        ("?format=text", "--format text"),
        ("?lines=exact&inlines=false&addresses=as-given", "--lines exact --no-inlines --addresses as-given"),
        ("?demangle=false&only_missing=true", "--no-demangle --only-missing"),
    ] {
        let answer = server.post(&format!("/v1/symbolicate{query}"), demo_report());
        assert_eq!((answer.status, answer.text()), (200, &*from_command(&store, arguments)), "{query}");
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8", "{query}");
        assert_eq!(answer.header("content-length"), answer.body.len().to_string());
    }
}

pub(crate) fn json_is_that_of_the_command() {
    let store = demo_store();
    let server = TestServer::start(store.path(), &[]);
    let answer =
        server.post_with("/v1/symbolicate?name=a", &[("accept", "application/json")], demo_report()).json();
    let expected: Value = serde_json::from_str(&from_command(&store, "--json")).expect("JSON");
    assert_eq!(answer["report"], "a");
    for member in ["format", "header", "images", "threads"] {
        assert_eq!(answer[member], expected[member], "{member}");
    }
}

pub(crate) fn a_minidump_is_answered_as_by_the_command() {
    let store = folder();
    let bytes = fs::read(testdata().join("golden/v1/inline-dwarf4-1.symdex")).expect("an index");
    let id = Index::open(&bytes[..]).expect("opens").id().clone();
    fs::write(store.path().join(format!("{id}.symdex")), &bytes).expect("written");
    let module = DumpedModule {
        base: 0x1_0000_0000,
        size: 0x10_0000,
        path: "/data/app/libdemo.so".to_owned(),
        build_id: id.as_bytes().to_vec(),
    };
    let mut registers = vec![0; 33];
    (registers[31], registers[32]) = (0x7000_0000, 0x1_0000_03cf);
    let thread = DumpedThread { id: 1, registers, stack_address: 0x7000_0000, stack: vec![0; 64] };
    let process = DumpedProcess {
        modules: vec![module],
        threads: vec![thread],
        processor: Processor::Arm64,
        ..DumpedProcess::default()
    };
    let dump = store.path().join("crash.dmp");
    fs::write(&dump, process.to_bytes()).expect("written");
    let server = TestServer::start(store.path(), &[]);
    for (query, arguments) in [("", ""), ("?format=text", " --format text")] {
        let answer = server.post(&format!("/v1/symbolicate{query}"), process.to_bytes());
        let line = format!("symbolicate {} --store {{}}{arguments}", dump.display());
        assert_eq!((answer.status, answer.text()), (200, &*symdex_on(store.path(), &line).out), "{query}");
    }
    for body in [process.to_bytes(), process.to_microdump("F/google-breakpad( 1): ").into_bytes()] {
        let json = server.post("/v1/symbolicate?format=json", body).json();
        assert_eq!(json["threads"][0]["frames"][0]["found_by"], "context");
        assert_eq!(json["images"][0]["status"], "found");
    }
    let damaged = server.post("/v1/symbolicate", b"MDMP");
    assert_eq!(damaged.status, 422, "{}", damaged.text());
}

/// The demo's report without its list of images, so that no image has an id.
fn report_without_ids() -> Vec<u8> {
    let report = String::from_utf8(demo_report()).expect("text");
    report.split_once("Binary Images:").expect("a list of images").0.as_bytes().to_vec()
}

pub(crate) fn images_without_ids_are_matched_by_name_or_assumed_as_by_the_command() {
    let store = demo_store();
    let server = TestServer::start(store.path(), &[]);
    let cut = store.path().join("cut.crash");
    fs::write(&cut, report_without_ids()).expect("written");
    for (query, arguments) in [
        ("", ""),
        ("?match_by_name=true", "--match-by-name"),
        ("?assume=DemoKit%3D4C4C4427-5555", "--assume DemoKit=4C4C4427-5555"),
        (
            "?assume=DemoKit=4c4c442755553144a19dbd913be790e0&assume=DemoApp=4c4c4479",
            "--assume DemoKit=4c4c442755553144a19dbd913be790e0 --assume DemoApp=4c4c4479",
        ),
        // The id in the report is ignored, even if it is another one.
        ("?assume=DemoKit=4c4c4479&match_by_name=true", "--assume DemoKit=4c4c4479 --match-by-name"),
    ] {
        let line = format!("symbolicate {} --store {{}} {arguments}", cut.display());
        let expected = symdex_on(store.path(), line.trim_end()).out;
        assert_eq!(
            expected == String::from_utf8_lossy(&report_without_ids()),
            arguments.is_empty(),
            "{query}"
        );
        let answer = server.post(&format!("/v1/symbolicate{query}"), report_without_ids());
        assert_eq!((answer.status, answer.text()), (200, &*expected), "{query}");
    }
    let by_name = server.post("/v1/symbolicate?format=json&match_by_name=true", report_without_ids()).json();
    let images = by_name["images"].as_array().expect("a list");
    let matched = images.iter().filter(|image| image["matched_by"] == "name");
    assert_eq!(matched.count(), 3, "{images:?}");
    // In a batch, the options are those of each report.
    let line = json!({"report": String::from_utf8(report_without_ids()).expect("text")}).to_string();
    let batch = [("content-type", "application/x-ndjson")];
    let answer = server.post_with("/v1/symbolicate?match_by_name=true", &batch, line).json();
    assert_eq!(answer["threads"], by_name["threads"]);
}

pub(crate) fn an_assumption_names_one_image_of_a_store_and_never_a_file() {
    let store = demo_store();
    let server = TestServer::start(store.path(), &[]);
    let file = testdata().join("demo/DemoKit.framework.dSYM");
    let many = format!("{}assume=A=4c4c4427", "assume=A=4c4c4427&".repeat(32));
    for (query, detail) in [
        ("assume=DemoKit=0123456789abcdef0123456789abcdef", "no image with the id 0123456789abcdef"),
        ("assume=DemoKit=4c4c44", "3 ids begin with 4c4c44"),
        (&format!("assume=DemoKit={}", file.display()), "not an image id"),
        ("assume=DemoKit", "expected NAME=ID"),
        ("assume==4c4c4427", "expected NAME=ID"),
        (&many, "at most 32"),
        ("match_by_name=maybe", "maybe"),
    ] {
        let answer = server.post(&format!("/v1/symbolicate?{query}"), demo_report());
        let found = answer.json()["detail"].to_string();
        assert_eq!((answer.status, found.contains(detail)), (400, true), "{query}: {found}");
    }
}

pub(crate) fn compressed_reports_are_read_and_other_encodings_refused() {
    let store = demo_store();
    let server = TestServer::start(store.path(), &[]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&demo_report()).expect("written to memory");
    let gzip = gzip.finish().expect("written to memory");
    let zstd = zstd::encode_all(&demo_report()[..], 3).expect("compressed");
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

pub(crate) fn a_body_past_the_limit_is_refused_before_and_after_it_is_decompressed() {
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
    let wrong = server.post("/v1/symbolicate?lines=all", demo_report());
    assert_eq!((wrong.status, &wrong.json()["type"]), (400, &json!("urn:symdex:problem:bad-request")));
}

pub(crate) fn a_batch_has_a_line_for_each_report() {
    let store = demo_store();
    let server = TestServer::start(store.path(), &[]);
    let line = json!({"name": "a", "report": String::from_utf8(demo_report()).expect("text")});
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
