//! `symdex serve --debug-source`: images that no store has are fetched.

use std::fs;

use serde_json::{Value, json};
use symdex_testkit::folders::{folder, indexes_in};
use symdex_testkit::redis;
use symdex_testkit::testdata::{demo_files, testdata};
use symdex_testkit::web::{Gate, Reply, WebServer};

use crate::server::{TestServer, symdex, symdex_on};

/// A request for an address of the image with this id.
fn lookup(id: &str) -> Value {
    json!([{"id": id, "addresses": ["0x1000"]}])
}

/// The id and the bytes of a debug file, and what its path on a server ends with.
fn kit() -> (&'static str, Vec<u8>, String) {
    let [_, (id, path), _] = demo_files();
    (id, fs::read(path).expect("a debug file"), format!("/{}/{}/debuginfo", &id[..2], &id[2..]))
}

fn start(store: &std::path::Path, web: &WebServer, arguments: &[&str]) -> TestServer {
    let source = format!("unified+{}", web.url());
    let mut all = vec!["--debug-source", source.as_str()];
    all.extend(arguments);
    TestServer::start(store, &all)
}

/// The count of missing images with this outcome.
fn misses(server: &TestServer, outcome: &str) -> u64 {
    let metrics = server.get("/metrics");
    let name = format!("symdex_misses_total{{outcome=\"{outcome}\"}} ");
    let line = metrics.text().lines().find_map(|line| line.strip_prefix(&name));
    line.map_or(0, |count| count.parse().expect("a number"))
}

pub(crate) fn many_requests_for_a_missing_image_fetch_it_once() {
    let (id, bytes, path) = kit();
    let web = WebServer::of(path.clone(), bytes);
    let store = folder();
    let server = start(store.path(), &web, &["--threads", "16"]);
    // Some say at once that it is being fetched, and come back.
    let ask = || loop {
        let answer = server.post_json("/v1/lookup", &lookup(id));
        assert_eq!(answer.status, 200, "{}", answer.text());
        match answer.json()[0]["status"].as_str() {
            Some("fetching") => assert_eq!(answer.header("retry-after"), "5"),
            _ => return answer.json(),
        }
    };
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..64).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|thread| thread.join().expect("an answer")).collect()
    });
    assert!(answers.iter().all(|answer| answer[0]["status"] == "found" && *answer == answers[0]));
    assert_eq!(web.paths(), [path]);
    assert_eq!(misses(&server, "built"), 1);
    assert_eq!(indexes_in(store.path()), [format!("{id}.symdex")]);
    let line = format!("lookup --store {{}} --id {id} 0x1000 --json");
    let frames = symdex_on(store.path(), &line).json()[0]["functions"].clone();
    let functions = answers[0][0]["answers"][0]["functions"].as_array().expect("a list");
    assert_eq!(functions.len(), frames.as_array().expect("a list").len());
}

pub(crate) fn an_image_that_no_source_has_is_asked_for_once() {
    let web = WebServer::start(|_| Reply::Status(404));
    let store = folder();
    let server = start(store.path(), &web, &[]);
    for _ in 0..5 {
        assert_eq!(server.post_json("/v1/lookup", &lookup(kit().0)).json()[0]["status"], "missing");
    }
    assert_eq!(web.paths().len(), 2, "debuginfo and executable: {:?}", web.paths());
    assert_eq!(misses(&server, "absent"), 1);
}

pub(crate) fn a_slow_source_is_pending_and_the_image_is_built_although_nobody_waits() {
    let (id, bytes, path) = kit();
    let gate = Gate::default();
    let held = gate.clone();
    let web = WebServer::start(move |request| {
        if request.path == path {
            Reply::Behind(held.clone(), Box::new(Reply::Body(bytes.clone())))
        } else {
            Reply::Status(404)
        }
    });
    let store = folder();
    let server = start(store.path(), &web, &["--fetch-wait", "1s"]);
    let pending = server.post_json("/v1/lookup", &lookup(id));
    assert_eq!((pending.status, &pending.json()[0]["status"]), (200, &json!("fetching")));
    assert_eq!(pending.header("retry-after"), "5");
    let demo = testdata().join("demo/demo.crash");
    let report = server.post("/v1/symbolicate", fs::read(&demo).expect("a report"));
    assert_eq!((report.status, report.header("retry-after")), (200, "5"));
    gate.open();
    while indexes_in(store.path()).is_empty() {
        assert_eq!(server.get("/healthz").status, 200);
    }
    let found = server.post_json("/v1/lookup", &lookup(id)).json();
    assert_eq!(found[0]["status"], "found", "{found}");
    assert_eq!(web.paths().iter().filter(|path| path.contains(&id[2..])).count(), 1);
}

pub(crate) fn files_that_cannot_be_used_are_failures_with_a_reason() {
    let (id, bytes, path) = kit();
    let [(_, other), ..] = demo_files();
    let other = fs::read(other).expect("a debug file");
    let mut gzip = symdex_testkit::images::archive::gzip(&bytes);
    let middle = gzip.len() / 2;
    gzip[middle] ^= 0x55;
    let mut hostile = bytes.clone();
    hostile.truncate(5000);
    for (reply, reason) in [
        (Reply::Body(other), "the file of another image"),
        (Reply::Body(gzip), "decompressed"),
        (Reply::Body(hostile), ""),
        (Reply::Body(b"<html>".to_vec()), "no debug file"),
        (Reply::Length(17 << 30), "the limit for debug files"),
        (Reply::Status(500), "500"),
    ] {
        let path = path.clone();
        let web = WebServer::start(move |request| {
            let is_it = request.path == path;
            if is_it { reply.clone() } else { Reply::Status(404) }
        });
        let store = folder();
        let server = start(store.path(), &web, &[]);
        let answer = server.post_json("/v1/lookup", &lookup(id)).json();
        assert_eq!(answer[0]["status"], "fetching_failed", "{reason}: {answer}");
        let said = answer[0]["reason"].as_str().expect("a reason");
        assert!(said.contains(reason) && said.contains(&web.url()), "{reason}: {said}");
        let asked = web.paths().len();
        assert_eq!(server.post_json("/v1/lookup", &lookup(id)).json(), answer, "it is remembered");
        assert_eq!((web.paths().len(), misses(&server, "failed")), (asked, 1), "{reason}");
        assert_eq!(indexes_in(store.path()), [""; 0]);
    }
}

pub(crate) fn both_foreign_interfaces_fetch_too() {
    let (id, bytes, path) = kit();
    let debug_id = id.to_uppercase() + "0";
    let mozilla = json!({"memoryMap": [["DemoKit", debug_id]], "stacks": [[[0, 0x1000]]]});
    let sentry = json!({
        "platform": "native",
        "stacktraces": [{"frames": [{"instruction_addr": "0x104001000"}]}],
        "modules": [{"type": "macho", "debug_id": id, "image_addr": "0x104000000", "image_size": 0x8000}],
    });
    for (endpoint, request) in [("/symbolicate/v5", mozilla), ("/symbolicate", sentry)] {
        let web = WebServer::of(path.clone(), bytes.clone());
        let store = folder();
        let server = start(store.path(), &web, &[]);
        let answer = server.post_json(endpoint, &request);
        assert_eq!((answer.status, misses(&server, "built")), (200, 1), "{endpoint}: {}", answer.text());
        let answer = answer.json();
        match endpoint {
            "/symbolicate" => {
                assert_eq!(
                    (&answer["status"], &answer["modules"][0]["debug_status"]),
                    (&json!("completed"), &json!("found"))
                );
                assert_eq!(answer["modules"][0]["arch"], "arm64", "{answer}");
            }
            _ => assert_eq!(
                answer["results"][0]["found_modules"][format!("DemoKit/{debug_id}")],
                true,
                "{answer}"
            ),
        }
    }
}

/// A lookup in an index of which Redis has lost all values, and one of which it has lost a part.
pub(crate) fn a_lost_index_is_said_to_be_lost_and_built_again() {
    let (id, bytes, path) = kit();
    let redis = redis::Server::start(&[]);
    let demo = testdata().join("demo").display().to_string();
    let built = symdex(["build", &demo, "--store", &redis.url()]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    let lose = || {
        let keys = redis.keys().into_iter().filter(|key| key.contains(id) && !key.ends_with("metadata"));
        keys.for_each(|key| _ = redis.run(&["DEL", &key]));
    };
    lose();
    let ask = |server: &TestServer| server.post_json("/v1/lookup", &lookup(id)).json()[0].clone();
    let lost = ask(&TestServer::start(redis.url().as_ref(), &[]));
    let reason = lost["reason"].as_str().unwrap_or_default();
    assert!(lost["status"] == "lost" && reason.contains("has lost value"), "{lost}");
    let web = WebServer::of(path, bytes);
    let server = start(redis.url().as_ref(), &web, &[]);
    let found = loop {
        let answer = ask(&server);
        if answer["status"] != "fetching" {
            break answer;
        }
    };
    assert_eq!(found["status"], "found", "{found}: {}", server.log());
    assert_eq!(misses(&server, "built"), 1);
    assert_eq!(ask(&TestServer::start(redis.url().as_ref(), &[])), found, "the store has it again");
}
