//! Stores that accept requests and never answer.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use serde_json::{Value, json};
use symdex_testkit::redis;
use symdex_testkit::testdata::dsym;
use symdex_testkit::web::{Gate, Reply, WebServer};

use crate::server::{TestServer, store_of, symdex_on};

/// How many requests wait for the store. The server has two threads.
const WAITING: usize = 8;

fn lookup(server: &TestServer, id: &str) -> Value {
    server.post_json("/v1/lookup", &json!([{"id": id, "addresses": ["0x400"]}])).json()
}

/// How many calls of stores were begun.
fn calls(server: &TestServer) -> usize {
    let metrics = server.get("/metrics");
    let is_count = |line: &&str| line.starts_with("symdex_store_answers_total") && line.contains("\"calls\"");
    let counts = metrics.text().lines().filter(is_count);
    counts.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}

/// The image `id` is in memory. After `hang`, the store at `url` does not answer any more, until `answer`.
fn check(server: &TestServer, url: &str, id: &str, hang: impl FnOnce(), answer: impl FnOnce()) {
    let expected = lookup(server, id);
    assert_eq!(expected[0]["status"], "found", "{expected}");
    let before = calls(server);
    hang();
    let (begun, answered) = (Barrier::new(WAITING + 1), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for number in 0..WAITING {
            let (begun, answered) = (&begun, &answered);
            scope.spawn(move || {
                begun.wait();
                lookup(server, &format!("{number:032x}"));
                answered.fetch_add(1, Ordering::SeqCst);
            });
        }
        begun.wait();
        server.until(|| calls(server) >= before + WAITING);
        assert_eq!(lookup(server, id), expected);
        assert_eq!(answered.load(Ordering::SeqCst), 0, "the others still wait for the store");
        // Until then, what the store has answered before counts.
        server.until(|| server.get("/readyz").status == 503);
        let detail = server.get("/readyz").json()["detail"].as_str().expect("text").to_owned();
        assert!(detail.starts_with(url), "{detail}");
        answer();
    });
}

#[cfg(unix)]
pub(crate) fn a_redis_server_that_hangs_delays_neither_images_in_memory_nor_readiness() {
    let redis = redis::Server::start(&[]);
    let built = symdex_on(&dsym("cxx"), &format!("build {{}} --json --store {}", redis.url()));
    assert_eq!(built.code, Some(0), "{}", built.err);
    let id = built.images()[0]["id"].as_str().expect("an id").to_owned();
    let server = TestServer::start(Path::new(&redis.url()), &["--threads", "2"]);
    check(&server, &redis.url(), &id, || redis.signal("STOP"), || redis.signal("CONT"));
}

pub(crate) fn a_web_server_that_hangs_delays_neither_images_in_memory_nor_readiness() {
    let (store, ids) = store_of(&["cxx"]);
    let folder = store.path().to_owned();
    let (is_hung, gate) = (Arc::new(AtomicBool::new(false)), Gate::default());
    let (hangs, held) = (Arc::clone(&is_hung), gate.clone());
    let web = WebServer::start(move |request| {
        let file = fs::read(folder.join(request.path.trim_start_matches('/')));
        let reply = file.map_or(Reply::Status(404), Reply::Body);
        if hangs.load(Ordering::SeqCst) { Reply::Behind(held.clone(), Box::new(reply)) } else { reply }
    });
    let server = TestServer::start(Path::new(&web.url()), &["--threads", "2"]);
    check(&server, &web.url(), &ids[0], || is_hung.store(true, Ordering::SeqCst), || gate.open());
}
