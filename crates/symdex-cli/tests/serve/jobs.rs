//! Uploads of debug files, the jobs that build them, and what the stores have afterwards.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use symdex::Grade;
use symdex_testkit::folders::{folder, indexes_in, names_in};
use symdex_testkit::images::archive::{ZipEntry, gzip, tar_of, zip, zip_of};
use symdex_testkit::indexes;
use symdex_testkit::testdata::debug_file;

use crate::server::{Answer, TestServer, TestToken, command, command_with_limit, store_of, symdex};

const IN_BUNDLE: &str = "A.app.dSYM/Contents/Resources/DWARF/A";

fn read(name: &str) -> Vec<u8> {
    fs::read(debug_file(name)).expect("a debug file")
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn upload(server: &TestServer, name: &str, body: &[u8]) -> Answer {
    server.put(&format!("/v1/debug-files?name={name}"), &[], body)
}

/// The events of the job of an answer, until the job has finished.
fn events(server: &TestServer, accepted: &Answer) -> Vec<(String, Value)> {
    assert!([200, 202].contains(&accepted.status), "{}", accepted.text());
    let events = server.get_with(accepted.header("location"), &[("accept", "text/event-stream")]);
    assert_eq!((events.status, events.header("content-type")), (200, "text/event-stream"));
    let event = |text: &str| {
        let (name, data) = text.split_once('\n').expect("a name and data");
        let data = data.strip_prefix("data: ").expect("data");
        let name = name.strip_prefix("event: ").expect("a name");
        (name.to_owned(), serde_json::from_str(data).expect("JSON"))
    };
    let blocks = events.text().split("\n\n").filter(|block| block.starts_with("event"));
    blocks.map(event).collect()
}

/// The job of an answer when it has finished.
pub(crate) fn finished(server: &TestServer, accepted: &Answer) -> Value {
    events(server, accepted).pop().expect("an event").1
}

/// Uploads `body` and returns the finished job.
fn built(server: &TestServer, name: &str, body: &[u8]) -> Value {
    finished(server, &upload(server, name, body))
}

/// The only failure of a job that has failed: its kind and its message.
pub(crate) fn failure(job: &Value) -> (&str, &str) {
    assert_eq!((&job["state"], &job["images"]), (&json!("failed"), &json!([])), "{job}");
    assert_eq!(job["failures"].as_array().map(Vec::len), Some(1), "{job}");
    let text = |member: &str| job["failures"][0][member].as_str().expect("text");
    (text("kind"), text("message"))
}

/// Whether a lookup finds the image.
pub(crate) fn is_found(server: &TestServer, id: &str) -> bool {
    let found = server.post_json("/v1/lookup", &json!([{"id": id, "addresses": ["0x400"]}])).json();
    found[0]["status"] == "found"
}

pub(crate) fn an_upload_is_built_and_a_lookup_finds_it_at_once() {
    let (store, id) = (folder(), store_of(&["inline-dwarf4"]).1.remove(0));
    let server = TestServer::start(store.path(), &[]);
    // The server remembers for a while that the store has not this image.
    assert!(!is_found(&server, &id));
    let accepted = upload(&server, "App", &read("inline-dwarf4"));
    assert_eq!(accepted.status, 202);
    let job = accepted.json();
    assert_eq!((&job["name"], &job["sha256"]), (&json!("App"), &json!(sha256(&read("inline-dwarf4")))));
    let events = events(&server, &accepted);
    assert_eq!(events[0].0, "job", "the first event is the present state");
    let (name, job) = events.last().expect("an event");
    assert_eq!((&**name, &job["state"]), ("job", &json!("done")));
    for (name, progress) in events.iter().filter(|(name, _)| name == "progress") {
        assert_eq!((&progress["id"], &progress["state"]), (&job["id"], &json!("running")), "{name}");
        assert!(progress["progress"]["done"].as_u64() <= progress["progress"]["total"].as_u64());
    }
    let image = &job["images"][0];
    assert_eq!(
        (&image["id"], &image["name"], &image["outcome"]),
        (&json!(id), &json!("App"), &json!("written"))
    );
    assert_eq!(image["file"], "upload: App");
    assert!(is_found(&server, &id));
    // A job that has finished is followed by one event.
    assert_eq!(self::events(&server, &accepted).len(), 1);
    assert_eq!(server.get(accepted.header("location")).json(), *job);
    let metrics = server.get("/metrics");
    assert!(metrics.text().contains("symdex_builds_total{outcome=\"written\"} 1"), "{}", metrics.text());
    let bytes = format!("symdex_uploads_received_bytes_total {}", read("inline-dwarf4").len());
    assert!(metrics.text().contains(&bytes), "{}", metrics.text());
}

pub(crate) fn indexes_of_uploads_have_unwind_rows_if_asked_for() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/elf/gcc-parts.so");
    let body = fs::read(file).expect("readable");
    let config = folder();
    fs::write(config.path().join("symdex.toml"), "unwind = true\n").expect("written");
    let has_rows = |folder: &Path, options: &[&str]| {
        let store = self::folder();
        let mut serve = command();
        serve.current_dir(folder).args(["serve", "--listen", "127.0.0.1:0", "--store"]).arg(store.path());
        serve.args(options);
        let server = TestServer::spawn(serve);
        assert_eq!(built(&server, "libparts.so", &body)["state"], "done");
        let [name] = &indexes_in(store.path())[..] else { panic!("not one index") };
        let path = store.path().join(&name[..2]).join(name);
        symdex::Index::open(fs::read(path).expect("readable")).expect("whole").has_unwind_rows()
    };
    assert!(has_rows(config.path(), &[]));
    assert!(!has_rows(config.path(), &["--no-unwind"]));
    assert!(has_rows(config.path(), &["--no-config", "--unwind"]));
    assert!(!has_rows(config.path(), &["--no-config"]));
}

pub(crate) fn archives_are_unpacked_and_built_and_their_uploads_deleted() {
    let (store, state) = (folder(), folder());
    let server = TestServer::start(store.path(), &["--state", state.path().to_str().expect("UTF-8")]);
    let cut = &read("lto")[..3000];
    let files: &[(&str, &[u8])] = &[(IN_BUNDLE, &read("cxx")), ("lib/icf", &read("icf")), ("cut", cut)];
    let job = built(&server, "dsyms.zip", &zip_of(files));
    let files: Vec<_> =
        job["images"].as_array().expect("a list").iter().map(|image| &image["file"]).collect();
    assert_eq!(files, [&json!(format!("dsyms.zip: {IN_BUNDLE}")), &json!("dsyms.zip: lib/icf")]);
    assert_eq!((&job["state"], job["failures"].as_array().map(Vec::len)), (&json!("done"), Some(1)));
    assert_eq!(job["failures"][0]["file"], "dsyms.zip: cut");
    let tgz = gzip(&tar_of(&[("notes.txt", b"x"), (IN_BUNDLE, &read("fat"))]));
    let job = built(&server, "b.tar.gz", &tgz);
    assert!(job["images"].as_array().is_some_and(|images| images.len() > 1), "{job}");
    assert_eq!(names_in(&state.path().join("uploads")), [""; 0]);
    assert_eq!(server.get("/v1/jobs").json().as_array().map(Vec::len), Some(2));
}

pub(crate) fn the_same_upload_is_the_same_job_until_the_stores_lose_its_images() {
    let store = folder();
    let server = TestServer::start(store.path(), &[]);
    let first = built(&server, "A", &read("cxx"));
    let again = upload(&server, "b", &read("cxx"));
    assert_eq!((again.status, again.json()), (200, first.clone()));
    let head = server.head(&format!("/v1/debug-files/{}", sha256(&read("cxx"))));
    assert_eq!((head.status, head.header("upload-complete")), (200, "?1"));
    assert_eq!(head.header("location"), format!("/v1/jobs/{}", first["id"].as_str().expect("an id")));
    // The same image in another upload is another job, and its index is up to date.
    let zipped = built(&server, "a.zip", &zip_of(&[(IN_BUNDLE, &read("cxx"))]));
    assert_ne!(zipped["id"], first["id"]);
    assert_eq!(zipped["images"][0]["outcome"], "unchanged");
    drop(server);
    for digits in names_in(store.path()) {
        let _ = fs::remove_dir_all(store.path().join(digits));
    }
    let server = TestServer::start(store.path(), &[]);
    let rebuilt = built(&server, "a", &read("cxx"));
    assert_eq!(rebuilt["images"][0]["outcome"], "written");
}

pub(crate) fn an_upload_repairs_a_damaged_index() {
    let (store, ids) = store_of(&["cxx"]);
    let path = store.path().join(&ids[0][..2]).join(format!("{}.symdex", ids[0]));
    let whole = fs::read(&path).expect("the index");
    fs::write(&path, &whole[..whole.len() / 2]).expect("written");
    let server = TestServer::start(store.path(), &[]);
    let lookup = || server.post_json("/v1/lookup", &json!([{"id": ids[0], "addresses": ["0x400"]}])).json();
    assert_eq!(lookup()[0]["status"], "damaged");
    let job = built(&server, "cxx", &read("cxx"));
    assert_eq!(job["images"][0]["outcome"], "repaired", "{job}");
    assert!(job["images"][0]["warnings"][0].as_str().is_some_and(|text| text.contains("replaced")), "{job}");
    // The server remembers damage, but not that of an index that it has replaced.
    assert_eq!(lookup()[0]["status"], "found");
}

pub(crate) fn an_upload_continues_after_a_cut_connection() {
    let (store, state) = (folder(), folder());
    let arguments = ["--state", state.path().to_str().expect("UTF-8")];
    let body = zip_of(&[(IN_BUNDLE, &read("cxx")), ("b", &read("icf"))]);
    let path = format!("/v1/debug-files/{}?name=a.zip", sha256(&body));
    let half = body.len() / 2;
    let server = TestServer::start(store.path(), &arguments);
    assert_eq!(server.head(&path).status, 404);
    // The connection is cut after half of the body.
    let mut stream = TcpStream::connect(server.url.trim_start_matches("http://")).expect("connected");
    let host = server.url.trim_start_matches("http://");
    write!(stream, "PUT {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\n\r\n", body.len())
        .expect("sent");
    stream.write_all(&body[..half]).expect("sent");
    drop(stream);
    let offset = |server: &TestServer| server.head(&path).header("upload-offset").parse::<usize>().ok();
    until(|| offset(&server) == Some(half));
    // What is there survives the server, which is killed.
    drop(server);
    let server = TestServer::start(store.path(), &arguments);
    assert_eq!(offset(&server), Some(half));
    let send = |from: usize, to: usize| {
        let range = format!("bytes {from}-{}/{}", to - 1, body.len());
        server.put(&path, &[("content-range", &range)], &body[from..to])
    };
    let early = send(half + 1, half + 3);
    assert_eq!((early.status, early.header("upload-offset")), (409, &*half.to_string()));
    let part = send(half, half + 10);
    assert_eq!((part.status, part.header("upload-offset")), (204, &*(half + 10).to_string()));
    assert_eq!(part.header("upload-length"), body.len().to_string());
    let job = finished(&server, &send(half + 10, body.len()));
    assert_eq!((&job["state"], job["images"].as_array().map(Vec::len)), (&json!("done"), Some(2)));
    assert_eq!(names_in(&state.path().join("uploads")), [""; 0]);
    // All of it is there, and the server was killed before it was a job.
    let body = read("lto");
    let path = format!("/v1/debug-files/{}", sha256(&body));
    fs::write(state.path().join(format!("uploads/{}.part", sha256(&body))), &body).expect("written");
    let size = format!("bytes */{}", body.len());
    assert_eq!(finished(&server, &server.put(&path, &[("content-range", &size)], b""))["state"], "done");
}

/// Waits until `is_done`, at most a minute.
pub(crate) fn until(is_done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it takes too long");
        std::thread::yield_now();
    }
}

pub(crate) fn wrong_uploads_are_refused() {
    let (store, state) = (folder(), folder());
    let state_path = state.path().to_str().expect("UTF-8");
    let server = TestServer::start(store.path(), &["--state", state_path, "--max-upload", "30kB"]);
    let body = read("cxx");
    let kind =
        |answer: &Answer| answer.json()["type"].as_str().expect("a type").replace("urn:symdex:problem:", "");
    let hash = format!("/v1/debug-files/{}", sha256(b"other"));
    let wrong = server.put(&hash, &[], &body);
    assert_eq!((wrong.status, &*kind(&wrong)), (422, "hash-mismatch"));
    let detail = wrong.json()["detail"].clone();
    assert!(detail.as_str().is_some_and(|detail| detail.contains(&sha256(&body))), "{detail}");
    assert_eq!(server.head(&hash).status, 404, "nothing of it is kept");
    let large = upload(&server, "large", &vec![0; 30_001]);
    assert_eq!((large.status, &*kind(&large)), (413, "too-large"));
    let range = [("content-range", "bytes 0-9/30001")];
    assert_eq!(server.put(&hash, &range, &body[..10]).status, 413);
    for range in ["bytes 0-9/5", "bytes 0-9/*", "0-9/10"] {
        assert_eq!(server.put(&hash, &[("content-range", range)], &body[..10]).status, 400, "{range}");
    }
    assert_eq!(server.put("/v1/debug-files/abc", &[], &body).status, 400);
    assert_eq!(server.put("/v1/debug-files?nam=a", &[], &body).status, 400);
    assert_eq!(server.get("/v1/jobs/abc").status, 404);
    assert_eq!(names_in(&state.path().join("uploads")), [""; 0]);
    // The whole disk is to stay free.
    drop(server);
    let full = TestServer::start(store.path(), &["--min-free", "900000000GB"]);
    let refused = upload(&full, "a", &body);
    if cfg!(unix) {
        assert_eq!((refused.status, &*kind(&refused)), (507, "disk-full"));
    }
}

pub(crate) fn uploads_that_have_no_image_fail_with_their_reason() {
    let store = folder();
    let server = TestServer::start(store.path(), &[]);
    let job = built(&server, "notes.txt", b"no debug file");
    let (kind, message) = failure(&job);
    assert_eq!(kind, "unsupported");
    assert!(
        message.starts_with("notes.txt: not a debug file: it begins with the bytes 6e6f2064"),
        "{message}"
    );
    let job = built(&server, "empty", b"");
    assert!(failure(&job).1.contains("it is empty"), "{job}");
    let job = built(&server, "a.zip", &zip_of(&[("notes.txt", b"x")]));
    assert_eq!(failure(&job).0, "missing");
    // 40 MB of zeros, in 50 kB.
    let bomb = ZipEntry::deflated("A", &[read("cxx"), vec![0; 40 << 20]].concat());
    let job = built(&server, "bomb.zip", &zip(&[bomb]));
    assert!(failure(&job).1.contains("limit of `ratio`"), "{job}");
    let outside =
        zip(&[ZipEntry::deflated("../../up", &read("cxx")), ZipEntry::deflated("/etc/a", &read("icf"))]);
    let job = built(&server, "outside.zip", &outside);
    let messages: Vec<_> =
        job["failures"].as_array().expect("a list").iter().map(|one| &one["message"]).collect();
    assert_eq!(messages.len(), 2, "{job}");
    assert!(messages[0].as_str().is_some_and(|text| text.contains("\"..\"")), "{job}");
    assert!(messages[1].as_str().is_some_and(|text| text.contains("absolute")), "{job}");
    assert_eq!(indexes_in(store.path()), [""; 0]);
    // A job that has failed is done again when its upload is sent again.
    assert_eq!(upload(&server, "notes.txt", b"no debug file").status, 202);
}

/// A debug file whose line program has so many rows that it needs more than 64 MB.
#[cfg(target_os = "linux")]
pub(crate) fn a_build_that_a_limit_ends_says_so() {
    use symdex_testkit::images::debug_file::{Unit, debug_file};
    let unit = Unit::new((0x1000, 0x1100)).sequence_of_bytes(0x1000, &vec![33; 6 << 20]);
    let large = debug_file(&[unit], &[("f", 0x1000)]);
    let store = folder();
    // The children inherit this limit, which is lower than their own. The server needs less.
    let mut serve = command_with_limit("-d 131072");
    serve
        .args(["--no-config", "serve", "--listen", "127.0.0.1:0", "--threads", "2", "--store"])
        .arg(store.path());
    let server = TestServer::spawn(serve);
    let job = built(&server, "a.zip", &zip_of(&[("large", &large), ("small", &read("cxx"))]));
    assert_eq!((&job["state"], &job["images"][0]["file"]), (&json!("done"), &json!("a.zip: small")), "{job}");
    let failure = &job["failures"][0];
    assert_eq!((&failure["kind"], &failure["limit"]), (&json!("limit"), &json!("memory")), "{job}");
    assert!(failure["message"].as_str().is_some_and(|message| message.contains("128 MB")), "{job}");
    assert!(server.get("/metrics").text().contains("symdex_builds_total{outcome=\"memory\"} 1"));
}

/// Copies of a debug file of testdata, each with another id, in a zip archive.
pub(crate) fn many_images(numbers: std::ops::Range<u8>) -> Vec<u8> {
    let whole = read("cxx");
    let uuid = whole.windows(8).position(|command| command == [0x1b, 0, 0, 0, 24, 0, 0, 0]).expect("LC_UUID");
    let copy = |number: u8| {
        let mut copy = whole.clone();
        copy[uuid + 8] = number;
        ZipEntry::deflated(&format!("{number}"), &copy)
    };
    zip(&numbers.map(copy).collect::<Vec<_>>())
}

pub(crate) fn jobs_survive_a_killed_server() {
    const IMAGES: u8 = 24;
    let (store, state) = (folder(), folder());
    let arguments = ["--state", state.path().to_str().expect("UTF-8"), "--build-jobs", "1"];
    let server = TestServer::start(store.path(), &arguments);
    let done = built(&server, "done", &read("icf"));
    let failed = built(&server, "failed", b"no debug file");
    let running = upload(&server, "running.zip", &many_images(0..IMAGES));
    let queued = upload(&server, "queued", &read("lto"));
    // Another upload is being received.
    let host = server.url.trim_start_matches("http://");
    let mut open = TcpStream::connect(host).expect("connected");
    write!(open, "PUT /v1/debug-files HTTP/1.1\r\nHost: {host}\r\nContent-Length: 100\r\n\r\nfirst")
        .expect("sent");
    // The server is killed as soon as it says that children build.
    let mut stream = TcpStream::connect(host).expect("connected");
    let path = running.header("location");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n").expect("sent");
    let lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let is_building = |line: &str| line.contains(r#""state":"running""#) && !line.contains(r#""total":0"#);
    assert!(lines.into_iter().any(|line| is_building(&line)), "the build has begun");
    drop(server);

    let server = TestServer::start(store.path(), &arguments);
    let job = finished(&server, &running);
    assert_eq!((&job["state"], &job["attempts"]), (&json!("done"), &json!(2)), "{job}");
    assert_eq!(job["images"].as_array().map(Vec::len), Some(IMAGES.into()));
    assert_eq!(finished(&server, &queued)["state"], "done");
    for job in [done, failed] {
        assert_eq!(server.get(&format!("/v1/jobs/{}", job["id"].as_str().expect("an id"))).json(), job);
    }
    assert_eq!(indexes_in(store.path()).len(), usize::from(IMAGES) + 2);
    assert_eq!(names_in(&state.path().join("uploads")), [""; 0]);
    assert_eq!(work_folders(state.path()), 1, "that of the killed server is deleted");
}

fn work_folders(state: &Path) -> usize {
    names_in(state).iter().filter(|name| name.starts_with("symdex-unpack-")).count()
}

pub(crate) fn a_job_during_which_the_server_is_killed_three_times_waits_for_an_operator() {
    let (store, state) = (folder(), folder());
    let arguments = ["--state", state.path().to_str().expect("UTF-8")];
    let server = TestServer::start(store.path(), &arguments);
    let job = built(&server, "cxx", &read("cxx"));
    drop(server);
    // As a server leaves it that was killed.
    let (id, sha256) = (job["id"].as_str().expect("an id"), sha256(&read("cxx")));
    let leave = |attempts: u32| {
        let mut job = job.clone();
        (job["state"], job["attempts"], job["images"]) = (json!("running"), json!(attempts), json!([]));
        fs::write(state.path().join(format!("jobs/{id}.json")), job.to_string()).expect("written");
        fs::write(state.path().join(format!("uploads/{sha256}")), read("cxx")).expect("written");
    };
    leave(2);
    let server = TestServer::start(store.path(), &arguments);
    let path = format!("/v1/jobs/{id}");
    until(|| server.get(&path).json()["state"] == "done");
    drop(server);
    leave(3);
    let server = TestServer::start(store.path(), &arguments);
    let waits = server.get(&path).json();
    assert_eq!(waits["state"], "unpublished", "{waits}");
    let message = waits["failures"][0]["message"].as_str().expect("a text");
    assert!(message.contains("has ended 3 times"), "{waits}");
    drop(server);
    // The next start does not try it again, and loses nothing.
    let server = TestServer::start(store.path(), &arguments);
    assert_eq!(server.get(&path).json(), waits);
    assert_eq!(names_in(&state.path().join("uploads")), [&*sha256]);
    assert_eq!(server.post(&format!("{path}/resume"), b"").status, 202);
    until(|| server.get(&path).json()["state"] == "done");
    assert_eq!(names_in(&state.path().join("uploads")), [""; 0]);
}

/// A stop during a build, and one right after many small uploads: as pipelines send them, and deployments stop servers.
#[cfg(unix)]
pub(crate) fn an_orderly_stop_loses_no_upload_and_is_no_attempt() {
    const IMAGES: u8 = 24;
    let (store, state) = (folder(), folder());
    let arguments = ["--state", state.path().to_str().expect("UTF-8"), "--build-jobs", "2"];
    let server = TestServer::start(store.path(), &arguments);
    let running = upload(&server, "running.zip", &many_images(0..IMAGES)).header("location").to_owned();
    until(|| server.get(&running).json()["state"] == "running");
    let small: Vec<_> = (IMAGES..IMAGES + 8)
        .map(|number| {
            upload(&server, "small.zip", &many_images(number..number + 1)).header("location").to_owned()
        })
        .collect();
    assert!(server.terminate().success());
    assert_eq!(work_folders(state.path()), 0, "the threads have ended before the folder was deleted");
    let server = TestServer::start(store.path(), &arguments);
    for path in small.iter().chain([&running]) {
        until(|| server.get(path).json()["state"] == "done");
        assert_eq!(server.get(path).json()["attempts"], 1, "{path}");
    }
    assert_eq!(indexes_in(store.path()).len(), usize::from(IMAGES) + small.len());
    assert_eq!(names_in(&state.path().join("uploads")), [""; 0]);
}

pub(crate) fn a_kill_while_an_upload_is_unpacked_is_an_attempt() {
    let (store, state) = (folder(), folder());
    let arguments = ["--state", state.path().to_str().expect("UTF-8")];
    let server = TestServer::start(store.path(), &arguments);
    let mut job = built(&server, "cxx", &read("cxx"));
    drop(server);
    // As a server leaves it that was killed while it unpacked the upload.
    let id = job["id"].as_str().expect("an id").to_owned();
    (job["state"], job["images"], job["progress"]["total"]) = (json!("running"), json!([]), json!(0));
    fs::write(state.path().join(format!("jobs/{id}.json")), job.to_string()).expect("written");
    fs::write(state.path().join("uploads").join(sha256(&read("cxx"))), read("cxx")).expect("written");
    let server = TestServer::start(store.path(), &arguments);
    let path = format!("/v1/jobs/{id}");
    until(|| server.get(&path).json()["state"] == "done");
    assert_eq!(server.get(&path).json()["attempts"], 2);
    assert_eq!(names_in(&state.path().join("uploads")), [""; 0]);
}

pub(crate) fn a_state_folder_has_one_server() {
    let (store, state) = (folder(), folder());
    let _server = TestServer::start(store.path(), &["--state", state.path().to_str().expect("UTF-8")]);
    let mut second = command();
    second.args(["--no-config", "serve", "--listen", "127.0.0.1:0", "--store"]).arg(store.path());
    let refused = second.arg("--state").arg(state.path()).output().expect("symdex starts");
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{message}");
    assert!(message.contains("another server uses it"), "{message}");
}

pub(crate) fn uploads_need_their_scope() {
    let made = symdex(["serve", "--new-token", "upload"]);
    let (secret, configured) = made.out.trim_end().split_once('\n').expect("two lines");
    let token = configured.split('"').nth(1).expect("a line of symdex.toml");
    let server = TestServer::empty(&["--token", token]);
    let bearer = [("authorization", &*format!("Bearer {secret}"))];
    assert_eq!(server.put("/v1/debug-files", &[], b"x").status, 401);
    assert_eq!(server.put("/v1/debug-files", &bearer, b"x").status, 202);
    assert_eq!(server.get_with("/v1/jobs", &bearer).json().as_array().map(Vec::len), Some(1), "its own");
    assert_eq!(server.post_with("/v1/jobs/none/first", &bearer, b"").status, 403);
    assert_eq!(server.get_with("/v1/images/00", &bearer).status, 403);
}

pub(crate) fn an_uploader_learns_which_images_are_there() {
    let (store, ids) = store_of(&["cxx", "icf"]);
    let server = TestServer::start(store.path(), &[]);
    let absent = "00112233-4455-6677-8899-AABBCCDDEEFF";
    let stripped = indexes::index_of_grade(0xee, 3, Grade::Bounds);
    let stripped_id = indexes::id(0xee).to_string();
    fs::write(store.path().join(format!("{stripped_id}.symdex")), stripped).expect("written");
    let missing = server.post_json("/v1/missing", &json!([absent, ids[0], stripped_id, ids[1], absent]));
    let nothing = json!({"id": absent, "grade": "nothing"});
    let expected = json!([nothing, {"id": stripped_id, "grade": "bounds"}, nothing]);
    assert_eq!((missing.status, missing.json()), (200, expected));
    assert_eq!(server.get(&format!("/v1/images/{stripped_id}")).json()["grade"], "bounds");
    // A function without a name is no answer.
    let asked = json!([{"id": stripped_id, "addresses": ["0x8"]}, {"id": ids[0], "addresses": ["0x400"]}]);
    let found = server.post_json("/v1/lookup", &asked).json();
    let grades = [0, 1].map(|at| (found[at]["status"].clone(), found[at]["grade"].clone()));
    assert_eq!(grades, [("found".into(), "bounds".into()), ("found".into(), "lines".into())]);
    let answer = &found[0]["answers"][0];
    assert_eq!(
        (&answer["status"], &answer["functions"][0]["function_offset"]),
        (&json!("missing_symbol"), &json!(8))
    );
    let wrong = server.post_json("/v1/missing", &json!(["xyz"]));
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("`xyz`"), "{}", wrong.text());
    let image = server.get(&format!("/v1/images/{}", ids[0])).json();
    assert_eq!(
        (&image["id"], &image["name"], &image["arch"]),
        (&json!(ids[0]), &json!("cxx"), &json!("arm64"))
    );
    let index =
        fs::read(store.path().join(&ids[0][..2]).join(format!("{}.symdex", ids[0]))).expect("the index");
    assert_eq!(
        (&image["stored"]["index_size"], &image["stored"]["layout"]),
        (&json!(index.len()), &json!("whole"))
    );
    assert_eq!(server.head(&format!("/v1/images/{}", ids[0])).status, 200);
    let near = server.get(&format!("/v1/images/{absent}?name=cxx"));
    assert_eq!(near.status, 404);
    assert!(near.text().contains(&ids[0]), "{}", near.text());
    assert_eq!(server.head(&format!("/v1/images/{absent}")).status, 404);
}

pub(crate) fn a_partial_upload_is_continued_and_replaced_by_its_token_only() {
    let [ci, other] = ["ci", "other"].map(|name| TestToken::new(name, "upload"));
    let server = TestServer::empty(&["--token", &ci.configured, "--token", &other.configured]);
    let bytes = read("cxx");
    let path = format!("/v1/debug-files/{}?name=cxx", sha256(&bytes));
    let send = |token: &TestToken, (first, end): (usize, usize)| {
        let range = format!("bytes {first}-{}/{}", end - 1, bytes.len());
        let headers = [("authorization", &*token.bearer), ("content-range", &*range)];
        server.put(&path, &headers, &bytes[first..end])
    };
    assert_eq!(send(&ci, (0, 100)).status, 204);
    // The other one knows the SHA-256.
    assert_eq!(server.put(&path, &other.headers(), b"x").status, 422);
    assert_eq!(send(&other, (100, 200)).status, 409);
    assert_eq!(send(&other, (0, 50)).status, 204);
    assert_eq!(send(&ci, (100, bytes.len())).status, 202);
}

pub(crate) fn the_build_of_a_canceled_job_ends() {
    const IMAGES: u8 = 24;
    let (store, state) = (folder(), folder());
    let arguments = ["--state", state.path().to_str().expect("UTF-8"), "--build-jobs", "1"];
    let server = TestServer::start(store.path(), &arguments);
    let body = many_images(0..IMAGES);
    let running = upload(&server, "a.zip", &body).header("location").to_owned();
    let next = upload(&server, "b.zip", &many_images(IMAGES..IMAGES + 1)).header("location").to_owned();
    until(|| server.get(&running).json()["progress"]["done"].as_u64() > Some(0));
    let canceled = server.delete(&running, &[]);
    assert_eq!((canceled.status, failure(&canceled.json()).1), (200, "a.zip: canceled by 127.0.0.1"));
    assert_ne!(names_in(&state.path().join("uploads")), [sha256(&body)]);
    // The only thread goes on with the next job when the build has ended.
    until(|| server.get(&next).json()["state"] == "done");
    assert!(indexes_in(store.path()).len() <= usize::from(IMAGES), "some were not built");
    assert_eq!(server.get(&running).json(), canceled.json());
    assert_eq!(server.delete(&running, &[]).status, 409);
    assert_eq!(server.post(&format!("{running}/resume"), b"").status, 409);
    let again = built(&server, "a.zip", &body);
    assert_eq!((&again["state"], &again["attempts"]), (&json!("done"), &json!(1)), "{again}");
    assert_eq!(indexes_in(store.path()).len(), usize::from(IMAGES) + 1);
}

pub(crate) fn jobs_are_canceled_by_their_token_and_put_first_by_operators() {
    let [ci, other] = ["ci", "other"].map(|name| TestToken::new(name, "upload"));
    let admin = TestToken::new("admin", "admin");
    // A file is in the place of the store, so that the first job waits.
    let root = folder();
    let (store, state) = (root.path().join("store"), root.path().join("state"));
    fs::write(&store, b"").expect("written");
    let mut arguments = vec!["--state", state.to_str().expect("UTF-8"), "--build-jobs", "1"];
    [&ci, &other, &admin].iter().for_each(|token| arguments.extend(["--token", &token.configured]));
    let server = TestServer::start(&store, &arguments);
    let send = |token: &TestToken, name: &str| {
        let sent = server.put(&format!("/v1/debug-files?name={name}"), &token.headers(), &read(name));
        assert_eq!(sent.status, 202, "{}", sent.text());
        sent.header("location").to_owned()
    };
    let job = |path: &str| server.get_with(path, &ci.headers()).json();
    let running = send(&ci, "cxx");
    until(|| !job(&running)["store_error"].is_null());
    let (own, second, third) = (send(&ci, "lto"), send(&other, "icf"), send(&other, "outliner"));
    let names = |token: &TestToken, query: &str| {
        let list = server.get_with(&format!("/v1/jobs{query}"), &token.headers()).json();
        let mut names: Vec<_> =
            list.as_array().expect("a list").iter().map(|job| job["name"].clone()).collect();
        names.sort_by_key(Value::to_string);
        json!(names)
    };
    assert_eq!(names(&ci, ""), json!(["cxx", "lto"]));
    assert_eq!(names(&other, "?state=queued"), json!(["icf", "outliner"]));
    assert_eq!(names(&admin, ""), json!(["cxx", "icf", "lto", "outliner"]));
    assert_eq!(names(&admin, "?state=running"), json!(["cxx"]));

    let cancel = |path: &str, token: &TestToken| server.delete(path, &token.headers());
    assert_eq!((cancel(&own, &other).status, cancel(&running, &other).status), (403, 403));
    assert_eq!(cancel("/v1/jobs/none", &admin).status, 404);
    let canceled = cancel(&own, &ci);
    assert_eq!((canceled.status, failure(&canceled.json()).1), (200, "lto: canceled by ci"));
    assert_eq!((cancel(&own, &admin).status, job(&own)), (409, canceled.json()));
    assert_eq!(names_in(&state.join("uploads")).len(), 3);

    let first = |path: &str, token: &TestToken| {
        server.post_with(&format!("{path}/first"), &token.headers(), b"").status
    };
    assert_eq!((first(&third, &other), first(&third, &admin), first(&own, &admin)), (403, 200, 409));
    // The job that waits for the store makes room for the others.
    assert_eq!(cancel(&running, &ci).json()["state"], "failed");
    until(|| !job(&third)["store_error"].is_null());
    fs::remove_file(&store).expect("removed");
    until(|| [&second, &third].iter().all(|path| job(path)["state"] == "done"));
    assert_eq!(job(&running)["failures"][0]["message"], "cxx: canceled by ci");
    let started = |path: &str| job(path)["started"].as_str().expect("a time").to_owned();
    let finished = |path: &str| job(path)["finished"].as_str().expect("a time").to_owned();
    assert!(finished(&third) <= started(&second), "{} {}", job(&third), job(&second));
    server.expect_log(&[r#""action":"cancel","token":"ci""#, r#""action":"first","token":"admin""#]);
}
