//! Stores that cannot be queried.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use symdex_testkit::folders::folder;
use symdex_testkit::redis;
use symdex_testkit::testdata::{self, demo_files, testdata};

use crate::server::{
    Answer, TestServer, TestToken, command, demo_report, demo_store, store_of, symdex, symdex_on,
};

/// The URL of a store at a port that no program listens to.
fn dead() -> String {
    format!("redis://127.0.0.1:{}/0", redis::free_port())
}

/// A server over these stores.
fn start(stores: &[&str]) -> TestServer {
    start_with(stores, &[])
}

fn start_with(stores: &[&str], options: &[&str]) -> TestServer {
    let mut serve = command();
    serve.args(["--no-config", "serve", "--listen", "127.0.0.1:0"]).args(options);
    stores.iter().for_each(|store| _ = serve.args(["--store", store]));
    TestServer::spawn(serve)
}

fn is_store_failure(answer: &Answer) -> bool {
    let problem = answer.json();
    answer.status == 503
        && problem["type"] == "urn:symdex:problem:store-failed"
        && problem["status"] == 503
        && answer.header("retry-after") == "5"
}

/// A request of Sentry for an address of the image with this id.
fn sentry(ids: &[&str]) -> Value {
    let modules = ids.iter().zip(1..).map(|(id, number)| {
        let start = format!("{:#x}", number * 0x10_0000);
        json!({"type": "macho", "debug_id": id, "image_addr": start, "image_size": 0x8000})
    });
    let frames = (1..=ids.len())
        .map(|number| json!({"instruction_addr": format!("{:#x}", number * 0x10_0000 + 0x3cf)}));
    json!({"stacktraces": [{"frames": frames.collect::<Vec<_>>()}], "modules": modules.collect::<Vec<_>>()})
}

pub(crate) fn a_store_that_cannot_be_asked_is_503_and_the_server_is_not_ready() {
    let url = dead();
    let server = start(&[&url]);
    let begun = Instant::now();
    let answer = server.post("/v1/symbolicate", demo_report());
    let first = begun.elapsed();
    assert!(is_store_failure(&answer), "{}", answer.text());
    let ids: Vec<_> = demo_files().iter().map(|(id, _)| json!(id)).collect();
    let images = answer.json()["images"].as_array().expect("a list").clone();
    assert!(ids.iter().all(|id| images.iter().any(|image| image["id"] == *id)), "{images:?}");
    for image in &images {
        assert_eq!(image["status"], "unavailable");
        assert!(image["reason"].as_str().is_some_and(|reason| reason.contains(&url)), "{image}");
    }
    // The store is asked once for all images of a report. Its client tries for three seconds.
    assert!(first < Duration::from_secs(10), "{first:?}");
    let not_ready = server.get("/readyz");
    assert!(is_store_failure(&not_ready), "{}", not_ready.text());
    assert_eq!(server.get("/healthz").status, 200);

    let id = demo_files()[0].0;
    let lookup = server.post_json("/v1/lookup", &json!([{"id": id, "addresses": ["0x1000"]}]));
    assert!(is_store_failure(&lookup) && lookup.json()["images"][0]["id"] == id, "{}", lookup.text());
    assert!(is_store_failure(&server.post_json("/v1/missing", &json!([id]))));
    assert!(is_store_failure(&server.get(&format!("/v1/images/{id}"))));
    let debug_id = id.to_uppercase() + "0";
    let mozilla = json!({"memoryMap": [["DemoApp", debug_id]], "stacks": [[[0, 0x1000]]]});
    let mozilla = server.post_json("/symbolicate/v5", &mozilla);
    assert!(
        is_store_failure(&mozilla) && mozilla.json()["images"][0]["name"] == "DemoApp",
        "{}",
        mozilla.text()
    );
    let batch = json!({"name": "a", "report": String::from_utf8(demo_report()).expect("text")}).to_string();
    let batch = server.post_with("/v1/symbolicate", &[("content-type", "application/x-ndjson")], batch);
    assert_eq!((batch.status, &batch.json()["error"]["status"]), (200, &json!(503)), "{}", batch.text());

    let sentry = server.post_json("/symbolicate", &sentry(&[id]));
    let module = &sentry.json()["modules"][0];
    assert_eq!((sentry.status, &module["debug_status"]), (200, &json!("other")), "{module}");
    assert!(module["reason"].as_str().is_some_and(|reason| reason.contains(&url)), "{module}");

    server.expect_log(&["WARN", "a store cannot be queried"]);
}

pub(crate) fn a_store_that_does_not_answer_is_not_ready_either() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("redis://{}/0", silent.local_addr().expect("an address"));
    let server = start(&[&url]);
    let begun = Instant::now();
    let not_ready = server.get("/readyz");
    assert!(
        is_store_failure(&not_ready) && begun.elapsed() < Duration::from_secs(10),
        "{}",
        not_ready.text()
    );
    assert!(not_ready.text().contains("has not answered within 2 seconds"), "{}", not_ready.text());
}

pub(crate) fn a_server_is_ready_while_one_store_answers() {
    let (dead, live) = (dead(), store_of(&[]).0);
    let live = live.path().to_str().expect("UTF-8");
    let server = start(&[&dead, live]);
    server.until(|| server.get("/readyz").text() == format!("ready\n{dead} cannot be queried\n"));
    assert_eq!(server.get("/readyz").status, 200);
    let metrics = server.get("/metrics").text().to_owned();
    for (url, up) in [(&*dead, 0), (live, 1)] {
        assert!(metrics.contains(&format!("symdex_store_up{{store=\"{url}\"}} {up}\n")), "{metrics}");
        let calls = format!("symdex_store_call_duration_seconds_count{{store=\"{url}\"}} ");
        let calls = metrics.lines().find_map(|line| line.strip_prefix(&*calls)).expect("it was asked");
        assert_ne!(calls, "0");
    }

    let token = TestToken::new("app", "read");
    for (stores, status) in [(vec![&*dead, live], 200), (vec![&dead], 503)] {
        let server = start_with(&stores, &["--token", &token.configured]);
        let [stranger, known] =
            [&[][..], &token.headers()].map(|headers| server.get_with("/readyz", headers));
        assert_eq!((stranger.status, known.status), (status, status));
        assert!(!stranger.text().contains("redis"), "{}", stranger.text());
        assert!(known.text().contains(&dead), "{}", known.text());
    }
}

#[cfg(unix)]
pub(crate) fn a_folder_that_has_vanished_is_unavailable_until_it_is_back() {
    let (root, (demo, id)) = (folder(), (demo_store(), demo_files()[0].0));
    let (store, away) = (root.path().join("store"), root.path().join("away"));
    std::os::unix::fs::symlink(demo.path(), &store).expect("a link");
    let server = uploads(&store, &root.path().join("state"), "60s");
    let lookup = |id: &str| server.post_json("/v1/lookup", &json!([{"id": id, "addresses": ["0x1000"]}]));
    let absent = "00112233445566778899aabbccddeeff";
    assert_eq!(lookup(absent).json()[0]["status"], "missing");
    fs::rename(&store, &away).expect("renamed");
    let other = lookup("11112233445566778899aabbccddeeff");
    assert!(is_store_failure(&other) && other.text().contains("it is gone"), "{}", other.text());
    assert!(is_store_failure(&server.post_json("/v1/missing", &json!([id]))));
    server.until(|| server.get("/readyz").status == 503);
    let accepted = server.put("/v1/debug-files?name=cxx", &[], &debug_file());
    let path = accepted.header("location").to_owned();
    let waits = job(&server, &path, |job| !job["store_error"].is_null());
    assert!(waits["store_error"].as_str().is_some_and(|why| why.contains("it is gone")), "{waits}");
    assert!(!store.exists(), "it is not made anew");
    fs::rename(&away, &store).expect("renamed");
    job(&server, &path, |job| job["state"] == "done");
    server.until(|| server.get("/readyz").status == 200);
    server.until(|| lookup(id).json()[0]["status"] == "found");
}

pub(crate) fn a_store_that_is_full_still_answers() {
    let redis = redis::Server::start(&["--maxmemory-policy", "noeviction"]);
    let demo = testdata().join("demo").display().to_string();
    assert_eq!(symdex(["build", &demo, "--store", &redis.url()]).code, Some(0));
    redis.run(&["CONFIG", "SET", "maxmemory", "1"]);
    let server = start_with(&[&redis.url()], &["--publish-within", "60s"]);
    let accepted = server.put("/v1/debug-files?name=cxx", &[], &debug_file());
    let path = accepted.header("location").to_owned();
    let waits = job(&server, &path, |job| !job["store_error"].is_null());
    assert!(waits["store_error"].as_str().is_some_and(|why| why.contains("(OOM)")), "{waits}");
    // The store is asked for each of these.
    for number in 0..20 {
        let id = format!("{number:032x}");
        let lookup = server.post_json("/v1/lookup", &json!([{"id": id, "addresses": ["0x1000"]}]));
        assert_eq!((lookup.status, &lookup.json()[0]["status"]), (200, &json!("missing")));
    }
    assert_eq!(
        (server.post("/v1/symbolicate", demo_report()).status, server.get("/readyz").status),
        (200, 200)
    );
    redis.run(&["CONFIG", "SET", "maxmemory", "0"]);
    job(&server, &path, |job| job["state"] == "done");
}

pub(crate) fn images_that_another_store_has_are_answered() {
    let demo = demo_store();
    let live = demo.path().to_str().expect("UTF-8");
    let expected = start(&[live]).post("/v1/symbolicate", demo_report());
    let server = start(&[&dead(), live]);
    let answer = server.post("/v1/symbolicate", demo_report());
    assert_eq!((answer.status, answer.text()), (200, expected.text()));
    assert_eq!((answer.header("retry-after"), expected.header("retry-after")), ("5", ""));
    server.expect_log(&["a store cannot be queried"]);
    let views = server.post("/v1/symbolicate?format=json", demo_report()).json();
    let status = |app: bool| {
        let images = views["images"].as_array().expect("a list");
        let of = images.iter().filter(|image| image["is_app"] == app && image["status"] != "unused");
        let mut all: Vec<_> = of.map(|image| image["status"].as_str().expect("a word").to_owned()).collect();
        all.dedup();
        all
    };
    assert_eq!((status(true), status(false)), (vec!["found".to_owned()], vec!["unavailable".to_owned()]));

    let (id, absent) = (demo_files()[0].0, "00112233445566778899aabbccddeeff");
    let asked = json!([{"id": id, "addresses": ["0x1000"]}, {"id": absent, "addresses": ["0x1000"]}]);
    let lookup = server.post_json("/v1/lookup", &asked);
    let (found, other) = (&lookup.json()[0], &lookup.json()[1]);
    assert_eq!(
        (lookup.status, &found["status"], &other["status"]),
        (200, &json!("found"), &json!("unavailable"))
    );
    assert!(other["reason"].as_str().is_some_and(|reason| reason.contains("redis://")), "{other}");
    assert_eq!(lookup.header("retry-after"), "5");
    let sentry = server.post_json("/symbolicate", &sentry(&[id, absent])).json();
    let statuses = [0, 1].map(|module| sentry["modules"][module]["debug_status"].clone());
    assert_eq!(statuses, [json!("found"), json!("other")]);
    assert_eq!(server.post_json("/v1/missing", &json!([id])).json(), json!([]));
    assert!(is_store_failure(&server.post_json("/v1/missing", &json!([id, absent]))));
}

pub(crate) fn a_store_that_is_back_is_asked_again() {
    let mut redis = redis::Server::start(&[]);
    let demo = testdata().join("demo").display().to_string();
    let fill = |redis: &redis::Server| {
        let built = symdex(["build", &demo, "--store", &redis.url()]);
        assert_eq!(built.code, Some(0), "{}", built.err);
    };
    fill(&redis);
    let server = start(&[&redis.url()]);
    assert_eq!(server.get("/readyz").status, 200);
    redis.kill();
    assert!(is_store_failure(&server.post("/v1/symbolicate", demo_report())));
    server.until(|| server.get("/readyz").text().contains("/0 cannot be queried"));
    redis.restart();
    redis.wait();
    fill(&redis);
    server.until(|| server.post("/v1/symbolicate", demo_report()).status == 200);
    server.until(|| server.get("/readyz").status == 200);
    server.expect_log(&["a store can be queried again"]);
}

/// A server whose store is at `store`, and that waits for it for this long.
fn uploads(store: &Path, state: &Path, within: &str) -> TestServer {
    let state = state.to_str().expect("UTF-8");
    TestServer::start(store, &["--state", state, "--publish-within", within])
}

fn debug_file() -> Vec<u8> {
    fs::read(testdata::debug_file("cxx")).expect("a debug file")
}

fn job(server: &TestServer, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    server.job_within(Duration::from_secs(60), path, is_so)
}

pub(crate) fn an_index_is_put_again_when_the_store_takes_it() {
    let (root, state) = (folder(), folder());
    // A file is in the place of the folder.
    let store = root.path().join("store");
    fs::write(&store, b"").expect("written");
    let server = uploads(&store, state.path(), "60s");
    let accepted = server.put("/v1/debug-files?name=cxx", &[], &debug_file());
    let path = accepted.header("location").to_owned();
    let waits = job(&server, &path, |job| !job["store_error"].is_null());
    assert_eq!((&waits["state"], &waits["attempts"]), (&json!("running"), &json!(0)), "{waits}");
    assert!(
        waits["store_error"].as_str().is_some_and(|why| why.contains("cannot create the folder")),
        "{waits}"
    );
    fs::remove_file(&store).expect("removed");
    let done = job(&server, &path, |job| job["state"] == "done");
    assert_eq!(
        (&done["images"][0]["outcome"], &done["store_error"]),
        (&json!("written"), &Value::Null),
        "{done}"
    );
    assert_eq!(fs::read_dir(state.path().join("uploads")).expect("a folder").count(), 0);
}

pub(crate) fn a_job_outlives_a_restart_of_its_store() {
    let mut redis = redis::Server::start(&[]);
    let server = start(&[&redis.url()]);
    redis.kill();
    let accepted = server.put("/v1/debug-files?name=cxx", &[], &debug_file());
    let path = accepted.header("location").to_owned();
    let waits = job(&server, &path, |job| !job["store_error"].is_null());
    assert!(waits["store_error"].as_str().is_some_and(|why| why.contains(&redis.url())), "{waits}");
    redis.restart();
    let done = job(&server, &path, |job| job["state"] == "done");
    assert_eq!(done["images"][0]["outcome"], "written", "{done}");
}

pub(crate) fn a_job_without_a_store_waits_for_an_operator_and_keeps_its_upload() {
    let (root, state) = (folder(), folder());
    let store = root.path().join("store");
    fs::write(&store, b"").expect("written");
    let server = uploads(&store, state.path(), "1s");
    let accepted = server.put("/v1/debug-files?name=cxx", &[], &debug_file());
    let path = accepted.header("location").to_owned();
    let is_unpublished = |job: &Value| job["state"] == "unpublished";
    let uploads_there = || fs::read_dir(state.path().join("uploads")).expect("a folder").count();
    // Those who follow the job are told, and are not kept waiting.
    let events = server.get_with(&path, &[("accept", "text/event-stream")]);
    assert!(events.text().contains(r#""state":"unpublished""#), "{}", events.text());
    let waits = job(&server, &path, is_unpublished);
    assert!(
        waits["store_error"].as_str().is_some_and(|why| why.contains("cannot create the folder")),
        "{waits}"
    );
    assert_eq!((&waits["finished"], uploads_there()), (&Value::Null, 1));
    let listed = server.get("/v1/jobs").json();
    assert_eq!((&listed[0]["state"], &listed[0]["store_error"]), (&waits["state"], &waits["store_error"]));
    assert!(server.get("/metrics").text().contains("symdex_jobs_unpublished 1"));
    server.expect_log(&["no store accepts an index", "waits for an operator"]);

    let resume = |server: &TestServer| server.post(&format!("{path}/resume"), b"");
    assert_eq!(server.post("/v1/jobs/none/resume", b"").status, 404);
    let resumed = resume(&server);
    assert_eq!((resumed.status, resumed.header("location")), (202, &*path), "{}", resumed.text());
    job(&server, &path, is_unpublished);
    // The same file again is as good.
    let again = server.put("/v1/debug-files?name=cxx", &[], &debug_file());
    assert_eq!(
        (again.status, again.header("location"), &again.json()["state"]),
        (202, &*path, &json!("queued"))
    );
    job(&server, &path, is_unpublished);
    assert_eq!(uploads_there(), 1);
    drop(server);

    // The next start of the server is a resumption, too, however often it ends.
    for _ in 0..4 {
        let server = uploads(&store, state.path(), "60s");
        job(&server, &path, |job| job["state"] == "running" && !job["store_error"].is_null());
    }
    let server = uploads(&store, state.path(), "1s");
    job(&server, &path, is_unpublished);
    assert_eq!(uploads_there(), 1);
    fs::remove_file(&store).expect("removed");
    assert_eq!(resume(&server).status, 202);
    let done = job(&server, &path, |job| job["state"] == "done");
    assert_eq!((done["images"].as_array().map(Vec::len), &done["failures"]), (Some(1), &json!([])), "{done}");
    assert_eq!((uploads_there(), resume(&server).status), (0, 409));
}

/// Such a server does not put an index into one store before it knows that no other store has a different one.
const KEEP: [&str; 4] = ["--on-conflict", "keep", "--publish-within", "1s"];

pub(crate) fn a_job_waits_for_a_store_that_may_have_another_index() {
    let root = folder();
    let (first, stripped) = (root.path().join("store"), root.path().join("cxx"));
    let cxx = testdata::debug_file("cxx");
    fs::write(&stripped, testdata::without_debug_information(&cxx)).expect("written");
    let mut redis = redis::Server::start(&[]);
    let server = start_with(&[first.to_str().expect("UTF-8"), &redis.url()], &KEEP);
    redis.kill();
    let accepted = server.put("/v1/debug-files?name=cxx", &[], &debug_file());
    let path = accepted.header("location").to_owned();
    let waits = job(&server, &path, |job| job["state"] == "unpublished");
    assert!(waits["store_error"].as_str().is_some_and(|why| why.contains(&redis.url())), "{waits}");
    assert_eq!(waits["images"], json!([]));
    redis.restart();
    redis.wait();
    let built = symdex_on(&stripped, &format!("build {{}} --json --store {}", redis.url()));
    assert_eq!(built.code, Some(0), "{}", built.err);
    server.until(|| server.get("/readyz").text() == "ready\n");
    assert_eq!(server.post(&format!("{path}/resume"), b"").status, 202);
    let done = job(&server, &path, |job| job["state"] == "done");
    let image = &done["images"][0];
    assert_eq!((&image["id"], &image["outcome"]), (&built.images()[0]["id"], &json!("kept")));
    assert!(image["location"].as_str().is_some_and(|location| location.starts_with(&redis.url())), "{image}");
    assert!(!first.exists());
}

pub(crate) fn a_job_that_replaces_takes_the_place_of_one_that_waits_for_an_operator() {
    let first = folder();
    let server = start_with(&[first.path().to_str().expect("UTF-8"), &dead()], &KEEP);
    let put = |query: &str| server.put(&format!("/v1/debug-files?name=cxx{query}"), &[], &debug_file());
    let path = put("").header("location").to_owned();
    job(&server, &path, |job| job["state"] == "unpublished");
    let replaces = put("&replace=true");
    assert_eq!((replaces.status, replaces.header("location")), (202, &*path), "{}", replaces.text());
    let done = job(&server, &path, |job| job["state"] == "done");
    assert_eq!((&done["images"][0]["outcome"], &done["replace"]), (&json!("written"), &json!(true)));
}

pub(crate) fn an_upload_is_done_only_if_the_store_has_its_index_now() {
    let (store, ids) = store_of(&[]);
    assert!(ids.is_empty());
    let server = TestServer::start(store.path(), &[]);
    let upload = || server.put("/v1/debug-files?name=cxx", &[], &debug_file());
    let first = job(&server, upload().header("location"), |job| job["state"] == "done");
    let id = first["images"][0]["id"].as_str().expect("an id");
    // The index is in the memory of the server.
    let lookup = server.post_json("/v1/lookup", &json!([{"id": id, "addresses": ["0x400"]}]));
    assert_eq!((upload().status, &lookup.json()[0]["status"]), (200, &json!("found")));
    let path = store.path().join(&id[..2]).join(format!("{id}.symdex"));
    fs::remove_file(&path).expect("removed");
    let again = upload();
    assert_eq!(again.status, 202, "{}", again.text());
    let rebuilt = job(&server, again.header("location"), |job| job["state"] == "done");
    assert_eq!(rebuilt["images"][0]["outcome"], "written");
    assert!(path.exists());
}
