//! `PUT /v1/indexes/{id}`: indexes that were built elsewhere, damaged and forged ones among them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use symdex::Grade;
use symdex_testkit::folders::{folder, indexes_in, names_in};
use symdex_testkit::images::archive::{ZipEntry, gzip, zip, zip_of};
use symdex_testkit::images::seal::{CHUNKS_SIZE, FILE_SIZE, enlarge, seal_header, sealed};
use symdex_testkit::indexes;
use symdex_testkit::testdata::{debug_file, dsym, testdata};

use crate::jobs::{failure, finished, is_found, sha256};
use crate::lookup::from_command;
use crate::server::{Answer, TestServer, TestToken, command, store_of, symdex_on};

/// The id and the index of a debug file of testdata.
fn built_index(name: &str) -> (String, Vec<u8>) {
    let (store, mut ids) = store_of(&[name]);
    let id = ids.remove(0);
    let index = fs::read(file_of(store.path(), &id)).expect("the index");
    (id, index)
}

fn file_of(store: &Path, id: &str) -> std::path::PathBuf {
    store.join(&id[..2]).join(format!("{id}.symdex"))
}

fn send(server: &TestServer, id: &str, body: &[u8]) -> Answer {
    server.put(&format!("/v1/indexes/{id}?name=App.symdex"), &[], body)
}

/// Sends `body` as the index of `id` and returns the finished job.
fn sent(server: &TestServer, id: &str, body: &[u8]) -> Value {
    finished(server, &send(server, id, body))
}

/// The only image of a job that is done.
fn image(job: &Value) -> &Value {
    assert_eq!((&job["state"], &job["failures"]), (&json!("done"), &json!([])), "{job}");
    assert_eq!(job["images"].as_array().map(Vec::len), Some(1), "{job}");
    &job["images"][0]
}

pub(crate) fn a_sent_index_answers_at_once_and_says_that_it_was_sent() {
    let (store, (id, index)) = (folder(), built_index("inline-dwarf4"));
    let server = TestServer::start(store.path(), &[]);
    // The server remembers for a while that the store has not this image.
    assert!(!is_found(&server, &id));
    let accepted = send(&server, &id, &index);
    assert_eq!(accepted.status, 202, "{}", accepted.text());
    let job = finished(&server, &accepted);
    assert_eq!((&job["image"], &job["sha256"]), (&json!(id), &json!(sha256(&index))), "{job}");
    let image = image(&job);
    assert_eq!((&image["id"], &image["name"]), (&json!(id), &json!("inline-dwarf4")));
    assert_eq!((&image["outcome"], &image["grade"]), (&json!("written"), &json!("lines")));
    assert_eq!((&image["file"], &image["warnings"]), (&json!("upload: App.symdex"), &json!([])));
    assert_eq!(fs::read(file_of(store.path(), &id)).expect("the index"), index, "the same bytes");
    for address in ["0x400", "0x3a0", "0x61b"] {
        let asked = json!([{"id": id, "addresses": [address]}]);
        let found = server.post_json("/v1/lookup", &asked).json();
        let expected = from_command(store.path(), &id, address);
        let names = |functions: &Value| -> Vec<Value> {
            functions.as_array().expect("a list").iter().map(|one| one["name"].clone()).collect()
        };
        assert_eq!(names(&found[0]["answers"][0]["functions"]), names(&expected), "{address}");
    }
    let provenance = server.get(&format!("/v1/images/{id}")).json()["stored"]["provenance"].clone();
    assert_eq!((&provenance["is_index"], &provenance["sha256"]), (&json!(true), &json!(sha256(&index))));
    let stat = symdex_on(store.path(), &format!("store stat {{}} {id}"));
    assert!(stat.out.contains(", sent as an index"), "{}", stat.out);
    // The same upload is the same job.
    let again = send(&server, &id.to_uppercase(), &index);
    assert_eq!((again.status, again.json()), (200, job));
    let zstd = zstd::encode_all(&index[..], 3).expect("compressed");
    for packed in [zstd, gzip(&index), zip_of(&[("a/b.symdex", &index), ("notes.txt", b"x")])] {
        assert_eq!(self::image(&sent(&server, &id, &packed))["outcome"], "unchanged");
    }
    // The debug file gives the same index, which stays as it was sent.
    let file = fs::read(debug_file("inline-dwarf4")).expect("a debug file");
    let built = finished(&server, &server.put("/v1/debug-files?name=inline-dwarf4", &[], &file));
    assert_eq!(self::image(&built)["outcome"], "unchanged");
}

/// The commands of docs/SERVICE.md.
pub(crate) fn the_documented_commands_send_indexes() {
    let document = fs::read_to_string(testdata().join("../docs/SERVICE.md")).expect("the document");
    let (_, section) = document.split_once("\n### Send an index\n").expect("the section");
    let (_, block) = section.split_once("\n```sh\n").expect("commands");
    let (script, _) = block.split_once("\n```").expect("their end");
    _ = symdex_testkit::program("curl", "--version");
    let (root, store) = (folder(), folder());
    let server = TestServer::start(store.path(), &[]);
    let script = script.replace("http://127.0.0.1:8040", &server.url);
    let script = script.replace("MyApp.app.dSYM", dsym("fat").to_str().expect("UTF-8"));
    let program = command();
    let programs = Path::new(program.get_program()).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let run = Command::new("sh").args(["-ec", &script]).current_dir(root.path()).env("PATH", path).output();
    let run = run.expect("sh runs");
    assert!(run.status.success(), "{script}: {}", String::from_utf8_lossy(&run.stderr));
    let built = names_in(&root.path().join("indexes"));
    assert!(built.len() > 1, "{built:?}");
    crate::jobs::until(|| indexes_in(store.path()) == built);
}

pub(crate) fn an_index_is_sent_in_parts() {
    let ((id, index), store) = (built_index("cxx"), folder());
    let server = TestServer::start(store.path(), &[]);
    let path = format!("/v1/indexes/{id}?sha256={}&name=cxx.symdex", sha256(&index));
    assert_eq!(server.head(&path).status, 404);
    let part = |first: usize, end: usize| {
        let range = format!("bytes {first}-{}/{}", end - 1, index.len());
        server.put(&path, &[("content-range", &range)], &index[first..end])
    };
    let accepted = part(0, 100);
    assert_eq!((accepted.status, accepted.header("upload-offset")), (204, "100"), "{}", accepted.text());
    let head = server.head(&path);
    assert_eq!((head.header("upload-offset"), head.header("upload-complete")), ("100", "?0"));
    assert_eq!(part(50, 60).status, 409);
    let job = finished(&server, &part(100, index.len()));
    assert_eq!(image(&job)["outcome"], "written");
    let head = server.head(&path);
    let complete = ["upload-complete", "location"].map(|name| head.header(name).to_owned());
    assert_eq!(complete, ["?1".to_owned(), format!("/v1/jobs/{}", job["id"].as_str().expect("an id"))]);
    // The same bytes for another image were not sent yet.
    let other = format!("/v1/indexes/{}?sha256={}", indexes::id(9), sha256(&index));
    assert_eq!(server.head(&other).status, 404);
    for wrong in [&format!("/v1/indexes/{id}?sha256=ab"), &format!("/v1/indexes/{id}")] {
        assert_eq!(server.head(wrong).status, 400);
    }
    let range = [("content-range", "bytes 0-9/100")];
    let without = server.put(&format!("/v1/indexes/{id}"), &range, &index[..10]);
    assert_eq!(without.status, 400);
    assert!(without.text().contains("needs the SHA-256"), "{}", without.text());
    assert_eq!(send(&server, "xyz", &index).status, 400);
    let mismatch = server.put(&other, &[], b"x");
    assert_eq!(mismatch.status, 422, "{}", mismatch.text());
}

pub(crate) fn the_same_bytes_for_another_image_are_another_job() {
    // A file is in the place of the store, so that the first job waits.
    let root = folder();
    let store = root.path().join("store");
    fs::write(&store, b"").expect("written");
    let server = TestServer::start(&store, &[]);
    let (id, other) = (indexes::id(3).to_string(), indexes::id(4).to_string());
    let accepted = send(&server, &id, &indexes::index(3, 2));
    let path = accepted.header("location");
    crate::jobs::until(|| !server.get(path).json()["store_error"].is_null());
    let again = send(&server, &id, &indexes::index(3, 2));
    assert_eq!((again.status, again.header("location")), (202, path));
    let early = send(&server, &other, &indexes::index(3, 2));
    assert_eq!(early.status, 409, "{}", early.text());
    fs::remove_file(&store).expect("removed");
    assert_eq!(image(&finished(&server, &accepted))["outcome"], "written");
    let job = sent(&server, &other, &indexes::index(3, 2));
    assert_eq!((failure(&job).0, &job["image"]), ("usage", &json!(other)));
}

pub(crate) fn only_the_whole_index_of_its_image_is_taken() {
    let ((id, index), store) = (built_index("cxx"), folder());
    let (other, right) = (indexes::id(7).to_string(), indexes::index(7, 3));
    fs::write(store.path().join(format!("{other}.symdex")), &right).expect("written");
    let server = TestServer::start(store.path(), &[]);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut index = index.clone();
        change(&mut index);
        index
    };
    let newer = changed(&|index| {
        index[8] = 9;
        seal_header(index);
    });
    let claims = changed(&|index| enlarge(index, &[FILE_SIZE, CHUNKS_SIZE], 2 << 30));
    let zeros = [&claims[..], &vec![0; 2 << 20]].concat();
    let debug = fs::read(debug_file("cxx")).expect("a debug file");
    let bomb = zstd::encode_all(&[&claims[..], &vec![0; 64 << 20]].concat()[..], 3).expect("compressed");
    let both = zip_of(&[("a.symdex", &index), ("b.symdex", &right)]);
    let with_debug_file = zip_of(&[("a.symdex", &index), ("cxx", &debug)]);
    let empty = indexes::index(8, 0);
    let cases: &[(&str, &[u8], &str, &str)] = &[
        (&id, &index[..index.len() / 2], "damaged", "it was cut or appended to"),
        (&id, &index[..60], "damaged", ""),
        (&id, &changed(&|index| *index.last_mut().expect("bytes") ^= 1), "damaged", "damaged index"),
        (&id, &newer, "unsupported", "format version 9, this reader knows version 1; update symdex"),
        (&id, &claims, "damaged", "it was cut or appended to"),
        (&id, &zeros, "damaged", "it was cut or appended to"),
        (&id, &bomb, "unsupported", "limit of `ratio`"),
        (
            &other,
            &index,
            "usage",
            &format!("found the index of {id}, expected the index of {other} and nothing"),
        ),
        (&id, &both, "usage", "found 2 files, expected the index"),
        (&id, &with_debug_file, "usage", "found 2 files, expected the index"),
        (&id, &debug, "usage", "found a debug file, expected the index"),
        (&id, b"no index", "unsupported", "it begins with the bytes 6e6f2069"),
        (&id, b"", "unsupported", "it is empty"),
        (&indexes::id(8).to_string(), &empty, "not_found", "the index is empty"),
    ];
    for (id, body, kind, message) in cases {
        let job = sent(&server, id, body);
        let found = failure(&job);
        assert!(found.0 == *kind && found.1.contains(message), "{kind}, {message}: {job}");
        assert_eq!(job["failures"][0]["limit"], Value::Null, "no child has ended: {job}");
    }
    assert_eq!(indexes_in(store.path()), [""; 0], "nothing was published");
    assert!(is_found(&server, &other) && !is_found(&server, &id));
    // The same bytes are taken for the right image afterwards.
    assert_eq!(image(&sent(&server, &id, &index))["outcome"], "written");
    assert!(is_found(&server, &id));
}

/// Changes to every part of indexes, with correct checksums, as the fuzzers make them.
pub(crate) fn forged_indexes_harm_neither_the_server_nor_other_images() {
    let (store, other) = (folder(), indexes::id(7).to_string());
    fs::write(store.path().join(format!("{other}.symdex")), indexes::index(7, 3)).expect("written");
    let server = TestServer::start(store.path(), &[]);
    let index = built_index("inline-dwarf4").1;
    let changes = (0..index.len()).step_by(index.len() / 60).skip(1);
    let forged = changes.map(|at| {
        let mut forged = index.clone();
        forged[at] ^= 0x15;
        sealed(&forged).expect("longer than a header")
    });
    let forged: Vec<_> = forged.collect();
    let entries = (0..).zip(&forged).map(|(at, index)| ZipEntry::deflated(&format!("{at}.symdex"), index));
    let archive = zip(&entries.collect::<Vec<_>>());
    let job = finished(&server, &server.put("/v1/debug-files?name=forged.zip", &[], &archive));
    let list = |member: &str| job[member].as_array().expect("a list").clone();
    assert_eq!(list("images").len() + list("failures").len(), forged.len(), "{job}");
    assert!(list("failures").len() > 20, "{job}");
    for failure in list("failures") {
        assert_eq!(failure["limit"], Value::Null, "no child has ended: {failure}");
        assert!(failure["kind"] == "damaged" || failure["kind"] == "unsupported", "{failure}");
    }
    assert!(is_found(&server, &other));
    let asked = json!([{"id": other, "addresses": ["0x8"]}]);
    let answer = server.post_json("/v1/lookup", &asked).json()[0]["answers"][0].clone();
    assert_eq!(answer["functions"][0]["function"], "f0", "{answer}");
    // Those that are whole answer something, or nothing.
    for image in list("images") {
        let asked = json!([{"id": image["id"], "addresses": ["0x400", "0x3a0", "0x61b"]}]);
        assert_eq!(server.post_json("/v1/lookup", &asked).status, 200, "{image}");
    }
}

pub(crate) fn a_better_index_replaces_a_poorer_one() {
    let [ci, other] = ["ci", "other"].map(|name| TestToken::new(name, "read,index"));
    let (store, id) = (folder(), indexes::id(5).to_string());
    let server = TestServer::start(store.path(), &["--token", &ci.configured, "--token", &other.configured]);
    let send = |token: &TestToken, grade: Grade, functions: u16| {
        let index = indexes::index_of_grade(5, functions, grade);
        let accepted = server.put(&format!("/v1/indexes/{id}"), &token.headers(), &index);
        assert_eq!(accepted.status, 202, "{}", accepted.text());
        let headers = [("authorization", &*token.bearer), ("accept", "text/event-stream")];
        let events = server.get_with(accepted.header("location"), &headers);
        let job = events.text().lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        image(&serde_json::from_str(job.expect("an event")).expect("JSON"))["outcome"].clone()
    };
    let missing = || {
        let headers = [("authorization", &*ci.bearer), ("content-type", "application/json")];
        server.post_with("/v1/missing", &headers, json!([id]).to_string()).json()
    };
    assert_eq!(missing(), json!([{"id": id, "grade": "nothing"}]));
    assert_eq!(send(&ci, Grade::Names, 9), "written");
    // The client learns that its index with lines is better.
    assert_eq!(missing(), json!([{"id": id, "grade": "names"}]));
    assert_eq!(send(&other, Grade::Lines, 2), "kept", "another token does not replace an index");
    assert_eq!(send(&ci, Grade::Lines, 3), "replaced");
    assert_eq!(missing(), json!([]));
    assert_eq!(send(&ci, Grade::Names, 8), "kept", "a poorer index never replaces a better one");
    assert_eq!(send(&ci, Grade::Lines, 1), "kept");
}

pub(crate) fn indexes_need_their_scope() {
    let [upload, index] = ["upload", "index"].map(|scope| TestToken::new(scope, scope));
    let (both, admin) = (TestToken::new("both", "upload,index"), TestToken::new("admin", "index,admin"));
    let tokens = [&upload, &index, &both, &admin];
    let server = TestServer::empty(
        &tokens
            .map(|token| ["--token", &token.configured])
            .concat()
            .iter()
            .map(|one| &**one)
            .collect::<Vec<_>>(),
    );
    let (id, bytes) = (indexes::id(3).to_string(), indexes::index(3, 2));
    let path = format!("/v1/indexes/{id}");
    let job_of = |accepted: &Answer, token: &TestToken| {
        assert!([200, 202].contains(&accepted.status), "{}", accepted.text());
        let path = accepted.header("location").to_owned();
        crate::jobs::until(|| !server.get_with(&path, &token.headers()).json()["finished"].is_null());
        server.get_with(&path, &token.headers()).json()
    };
    for (token, status) in [(None, 401), (Some(&upload), 403)] {
        let headers = token.map(TestToken::headers);
        let refused = server.put(&path, headers.as_ref().map_or(&[], |headers| &headers[..]), &bytes);
        assert_eq!(refused.status, status, "{}", refused.text());
    }
    let refused = server.put("/v1/debug-files", &index.headers(), b"x");
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("the scope `upload`"), "{}", refused.text());
    // A token that may send debug files only.
    for body in [&bytes, &zip_of(&[("a.symdex", &bytes)])] {
        let job = job_of(&server.put("/v1/debug-files", &upload.headers(), body), &upload);
        let (kind, message) = failure(&job);
        assert_eq!(kind, "unsupported");
        let advice = "send it to /v1/indexes/ID, with a token that has the scope `index`";
        assert!(message.ends_with(advice), "{message}");
    }
    // A file that is called as if it were a debug file.
    let dsym = zip_of(&[("A.dSYM/Contents/Resources/DWARF/A", &bytes)]);
    let job = job_of(&server.put("/v1/debug-files", &upload.headers(), &dsym), &upload);
    assert!(failure(&job).1.contains("an index, and not a debug file"), "{job}");
    // An index beside debug files is left out.
    let debug = fs::read(debug_file("cxx")).expect("a debug file");
    let mixed = zip_of(&[("a.symdex", &bytes), ("cxx", &debug)]);
    let job = job_of(&server.put("/v1/debug-files", &upload.headers(), &mixed), &upload);
    assert_eq!(image(&job)["name"], "cxx");
    // With both scopes, indexes may be sent with debug files.
    let more = zip_of(&[("a.symdex", &bytes), ("b/c.symdex", &indexes::index(4, 2)), ("cxx", &debug)]);
    let job = job_of(&server.put("/v1/debug-files", &both.headers(), &more), &both);
    let outcomes: Vec<_> =
        job["images"].as_array().expect("a list").iter().map(|image| &image["outcome"]).collect();
    assert_eq!(outcomes, ["written", "written", "unchanged"], "{job}");
    // A job is followed, listed and canceled with the scope `index`.
    let job = job_of(&server.put(&path, &index.headers(), &bytes), &index);
    assert_eq!(image(&job)["outcome"], "unchanged");
    let own = server.get_with("/v1/jobs", &index.headers()).json();
    assert_eq!((own.as_array().map(Vec::len), &own[0]["id"]), (Some(1), &job["id"]));
    let canceled =
        server.delete(&format!("/v1/jobs/{}", job["id"].as_str().expect("an id")), &index.headers());
    assert_eq!(canceled.status, 409, "it has finished");
    // Replacing takes an administrator.
    let worse = indexes::index(3, 1);
    let replace = |token: &TestToken| server.put(&format!("{path}?replace=true"), &token.headers(), &worse);
    assert_eq!(replace(&index).status, 403);
    assert_eq!(image(&job_of(&replace(&admin), &index))["outcome"], "replaced");
    server.expect_log(&[r#""action":"upload""#, r#""action":"replace","token":"admin""#]);
}
