//! Servers that share a store.

use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::json;
use symdex_answer::SymbolicatorOptions;
use symdex_serve::{Server, ServerOptions};
use symdex_store::ReaderOptions;
use symdex_testkit::folders::folder;

use crate::jobs::until;
use crate::poisoned::image;
use crate::server::{ELF_BUILD_ID, TestServer};

/// The URL of a server in this process, over the store in the folder `store`.
fn server_that_reads(store: &Path, reader: ReaderOptions) -> String {
    let store = store.to_str().expect("UTF-8").parse::<symdex_store::StoreUrl>().expect("a store");
    let mut options = ServerOptions::new(SymbolicatorOptions::new().store(store).reader_options(reader));
    options.listen = ([127, 0, 0, 1], 0).into();
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    let server = runtime.block_on(Server::bind(options)).expect("the server starts");
    let url = format!("http://{}", server.local_addr().expect("an address"));
    thread::spawn(move || runtime.block_on(server.run(std::future::pending())));
    url
}

/// An index in memory answers for ten minutes ([`ReaderOptions::fresh`]), and then its store is asked. The writer's own
/// server drops it at once.
pub(crate) fn a_replaced_index_is_seen_by_another_server_after_its_time() {
    let store = folder();
    let writer = TestServer::start(store.path(), &[]);
    let put = |function, query: &str| {
        let path = format!("/v1/debug-files?name=libapp.so{query}");
        let job = writer.put(&path, &[], &image(&[function]));
        assert_eq!(job.status, 202, "{}", job.text());
        let job = job.header("location").to_owned();
        until(|| writer.get(&job).json()["state"] == "done");
    };
    let answer_of = |url: &str| {
        let request = json!([{"id": ELF_BUILD_ID, "addresses": ["0x1000"]}]).to_string();
        let answer = writer.agent.post(format!("{url}/v1/lookup")).send(request).expect("an answer");
        let answer: serde_json::Value =
            serde_json::from_reader(answer.into_body().into_reader()).expect("JSON");
        answer[0]["answers"][0]["functions"][0]["name"].as_str().map(str::to_owned)
    };
    put("first", "");
    let at_once = server_that_reads(store.path(), ReaderOptions::new().fresh(Duration::ZERO));
    let later = server_that_reads(store.path(), ReaderOptions::new());
    let answers = || [&writer.url, &at_once, &later].map(|url| answer_of(url).unwrap_or_default());
    assert_eq!(answers(), ["first"; 3]);
    put("second", "&replace=true");
    assert_eq!(answers(), ["second", "second", "first"]);
}

/// A client asks one server whether the upload to another one is published, and then sends its reports.
pub(crate) fn an_image_is_found_as_soon_as_it_is_no_longer_missing() {
    let store = folder();
    let [writer, one, other] = [(); 3].map(|()| TestServer::start(store.path(), &[]));
    let status = |server: &TestServer| {
        let request = json!([{"id": ELF_BUILD_ID, "addresses": ["0x1000"]}]);
        server.post_json("/v1/lookup", &request).json()[0]["status"].as_str().map(str::to_owned)
    };
    // Its index has no lines.
    let missing = || one.post_json("/v1/missing", &json!([ELF_BUILD_ID])).json();
    let is_missing = || missing()[0]["grade"] == "nothing";
    let path = format!("/v1/images/{ELF_BUILD_ID}");
    assert!([&one, &other].iter().all(|server| status(server).as_deref() == Some("missing")));
    assert_eq!((is_missing(), other.head(&path).status), (true, 404));
    writer.put("/v1/debug-files?name=libapp.so", &[], &image(&["f"]));
    until(|| !is_missing());
    assert_eq!(status(&one).as_deref(), Some("found"));
    assert_eq!(status(&other).as_deref(), Some("missing"), "it is remembered for a minute");
    assert_eq!(other.head(&path).status, 200);
    assert_eq!(status(&other).as_deref(), Some("found"));
}

/// Jobs are in the state folder of the server that took the upload. See [`crate::deploy`] for what the manifests do.
pub(crate) fn a_job_of_another_server_is_missing_and_its_upload_can_be_sent_again() {
    let store = folder();
    let [one, other] = [(); 2].map(|()| TestServer::start(store.path(), &[]));
    let upload = |server: &TestServer| server.put("/v1/debug-files?name=libapp.so", &[], &image(&["f"]));
    let path = upload(&one).header("location").to_owned();
    until(|| one.get(&path).json()["state"] == "done");
    let missing = other.get(&path);
    assert_eq!(missing.status, 404);
    assert!(missing.text().contains("send the file again"), "{}", missing.text());
    let again = upload(&other);
    assert_eq!((again.status, again.header("location")), (202, &*path), "{}", again.text());
    until(|| other.get(&path).json()["state"] == "done");
    assert_eq!(other.get(&path).json()["images"][0]["outcome"], "unchanged");
}
