//! Servers that share the bucket with their uploads and jobs.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use symdex_testkit::moto::{self, BUCKET, environment};

use crate::jobs::{many_images, sha256};
use crate::server::{TestServer, command};

/// A server over the bucket. It keeps jobs there because the store is a bucket.
fn server(moto: &moto::Server) -> TestServer {
    let mut serve = command();
    serve.args(["--no-config", "serve", "--listen", "127.0.0.1:0", "--build-jobs", "1", "--store"]);
    serve.arg(format!("s3://{BUCKET}/indexes"));
    serve.envs(environment(moto.port)).env_remove("SYMDEX_STATE");
    TestServer::spawn(serve)
}

/// Uploads the images with these numbers, and returns the path of the job.
fn upload(server: &TestServer, numbers: std::ops::Range<u8>) -> String {
    let accepted = server.put("/v1/debug-files?name=a.zip", &[], &many_images(numbers));
    assert_eq!(accepted.status, 202, "{}", accepted.text());
    accepted.header("location").to_owned()
}

/// The job when `is_so`, at most after three minutes: a lease is 60 seconds.
fn job(server: &TestServer, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    server.job_within(Duration::from_secs(180), path, is_so)
}

/// The names of the objects in this folder of the bucket.
fn objects(moto: &moto::Server, folder: &str) -> BTreeSet<String> {
    let listed = moto.get(&format!("/{BUCKET}?list-type=2&prefix=indexes/{folder}/"));
    let keys = listed.split("<Key>").skip(1).filter_map(|key| key.split_once("</Key>"));
    keys.filter_map(|(key, _)| Some(key.rsplit_once('/')?.1.to_owned())).collect()
}

pub(crate) fn servers_that_get_the_same_upload_at_once_make_one_job() {
    let moto = moto::Server::start();
    let servers = [(); 2].map(|()| server(&moto));
    let mut canceled = 0;
    for number in 0..6_u8 {
        let paths = std::thread::scope(|scope| {
            let upload = |server| scope.spawn(move || upload(server, number..number + 1));
            servers.each_ref().map(upload).map(|sent| sent.join().expect("no panic"))
        });
        assert_eq!(paths[0], paths[1]);
        // Every third one is canceled, perhaps while it is built.
        let is_canceled = number % 3 == 2 && servers[1].delete(&paths[0], &[]).status == 200;
        canceled += u32::from(is_canceled);
        let expected = if is_canceled { "failed" } else { "done" };
        for server in &servers {
            let ended = job(server, &paths[0], |job| job["state"] == expected);
            assert!(is_canceled || ended["attempts"] == 1, "{ended}");
        }
    }
    assert!(canceled > 0, "all had ended before they were canceled");
    assert_eq!((objects(&moto, "_jobs").len(), objects(&moto, "_uploads")), (6, BTreeSet::new()));
}

pub(crate) fn every_server_knows_the_jobs_of_a_bucket_and_a_killed_server_loses_none() {
    let moto = moto::Server::start();
    let one = server(&moto);
    let path = upload(&one, 0..24);
    let body = many_images(0..24);
    job(&one, &path, |job| job["state"] == "running");
    let other = server(&moto);
    job(&other, &path, |job| job["state"] == "running");
    let uploads: Vec<_> = objects(&moto, "_uploads").into_iter().collect();
    assert!(matches!(&*uploads, [upload] if upload.starts_with(&sha256(&body))), "{uploads:?}");
    let head = other.head(&format!("/v1/debug-files/{}", sha256(&body)));
    assert_eq!((head.status, head.header("upload-complete")), (200, "?1"));
    let again = other.put("/v1/debug-files?name=b.zip", &[], &body);
    assert_eq!((again.status, again.header("location")), (202, &*path));
    drop(one);
    // Those who follow it at the other server see its end.
    let events = other.agent.get(format!("{}{path}", other.url)).header("accept", "text/event-stream");
    let events = events.config().timeout_global(Some(Duration::from_secs(300))).build();
    let events = events.call().expect("events").into_body().read_to_string().expect("text");
    assert!(events.contains(r#""state":"done""#), "{events}");
    let done = other.get(&path).json();
    assert_eq!((&done["state"], &done["attempts"]), (&json!("done"), &json!(2)), "{done}");
    assert_eq!(done["images"].as_array().map(Vec::len), Some(24));
    assert_eq!(objects(&moto, "_uploads"), BTreeSet::new());
}

#[cfg(unix)]
pub(crate) fn a_rolling_restart_over_a_bucket_loses_nothing_and_is_no_attempt() {
    let moto = moto::Server::start();
    let mut servers = [(); 2].map(|()| Some(server(&moto)));
    let mut paths = Vec::new();
    for round in 0..4_u8 {
        let at = usize::from(round % 2);
        let old = servers[at].take().expect("a server");
        paths.extend(
            (0..4).map(|number| upload(&old, 10 * (4 * round + number)..10 * (4 * round + number) + 6)),
        );
        assert!(old.terminate().success());
        servers[at] = Some(server(&moto));
    }
    let [Some(one), Some(other)] = servers else { panic!("two servers") };
    for path in paths {
        let done = job(&one, &path, |job| job["state"] == "done");
        assert_eq!(
            (&done["attempts"], done["images"].as_array().map(Vec::len)),
            (&json!(1), Some(6)),
            "{done}"
        );
        assert_eq!(other.get(&path).json()["state"], "done");
    }
    assert_eq!(objects(&moto, "_uploads"), BTreeSet::new());
}
