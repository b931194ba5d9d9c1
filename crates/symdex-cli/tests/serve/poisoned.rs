//! Uploads that have the id of somebody else's image: which index stays, who may replace and delete it, and what is
//! kept about an upload.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use symdex_testkit::folders::{folder, names_in};
use symdex_testkit::images::debug_file::{BASE, Die, Elf, Unit, debug_sections};
use tempfile::TempDir;

use crate::server::{Answer, ELF_BUILD_ID, TestServer, TestToken, elf_store, symdex, symdex_on};

/// The debug file of one image, whose functions have these names. The first one is at 0x1000.
pub(crate) fn image(functions: &[&'static str]) -> Vec<u8> {
    let starts = (0x1000..).step_by(0x100);
    let unit = functions.iter().zip(starts).fold(Unit::new((0x1000, 0x2000)), |unit, (name, start)| {
        unit.child(Die::function(name, (start, start + 0x100)))
    });
    let build_id = (0..20).map(|byte| 0x11 * (byte % 15) + byte / 15).collect();
    Elf { base: BASE, build_id: Some(build_id), ..Elf::default() }.debug(debug_sections(&[unit])).bytes()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A server with three tokens, and its folders.
struct Guarded {
    server: TestServer,
    ci: TestToken,
    stranger: TestToken,
    admin: TestToken,
    _root: TempDir,
    store: PathBuf,
}

impl Guarded {
    fn new(more: &[&str]) -> Self {
        let root = folder();
        let store = root.path().join("store");
        let ci = TestToken::new("ci", "read,upload");
        let stranger = TestToken::new("stranger", "upload");
        let admin = TestToken::new("admin", "read,upload,admin");
        let mut arguments = Vec::new();
        for token in [&ci, &stranger, &admin] {
            arguments.extend(["--token", &token.configured]);
        }
        arguments.extend(more);
        let server = TestServer::start(&store, &arguments);
        Self { server, ci, stranger, admin, _root: root, store }
    }

    fn put(&self, token: &TestToken, query: &str, body: &[u8]) -> Answer {
        self.server.put(&format!("/v1/debug-files?name=libapp.so{query}"), &token.headers(), body)
    }

    /// Uploads `body`, and returns what has become of its image.
    fn upload(&self, token: &TestToken, query: &str, body: &[u8]) -> String {
        let accepted = self.put(token, query, body);
        assert!([200, 202].contains(&accepted.status), "{}", accepted.text());
        let headers = [("authorization", &*token.bearer), ("accept", "text/event-stream")];
        let events = self.server.get_with(accepted.header("location"), &headers);
        let data = events.text().lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        let job: Value = serde_json::from_str(data.expect("an event")).expect("JSON");
        job["images"][0]["outcome"].as_str().unwrap_or_else(|| panic!("{job}")).to_owned()
    }

    /// The function at 0x1010, or the status of the image.
    fn answer(&self) -> String {
        answer(&self.server, &self.ci.headers())
    }

    fn image(&self) -> Value {
        self.server.get_with(&format!("/v1/images/{ELF_BUILD_ID}"), &self.ci.headers()).json()
    }

    /// The first `count` entries of the audit log.
    fn audit_log(&self, count: usize) -> Vec<Value> {
        let entries = || -> Vec<Value> {
            let log = self.server.log();
            let entries = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            entries.filter(|line| line["message"] == "audit").collect()
        };
        self.server.until(|| entries().len() >= count);
        entries()
    }

    /// The first `count` actions in the audit log, with the token and the outcome or the status of each.
    fn audited(&self, count: usize) -> Vec<(String, String, String)> {
        let entry = |entry: Value| {
            assert!(entry["timestamp"].is_string() && entry["client"] == "127.0.0.1", "{entry}");
            let text = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            let status = entry["status"].as_u64().map(|status| status.to_string());
            (text("action"), text("token"), status.unwrap_or_else(|| text("outcome")))
        };
        self.audit_log(count).into_iter().map(entry).collect()
    }
}

fn answer(server: &TestServer, headers: &[(&str, &str)]) -> String {
    let request = json!([{"id": ELF_BUILD_ID, "addresses": ["0x1010"]}]);
    let found = server.post_with("/v1/lookup", headers, request.to_string()).json();
    let function = found[0]["answers"][0]["functions"][0]["function"].as_str();
    function.or(found[0]["status"].as_str()).expect("text").to_owned()
}

/// The lines of the audit log as [`Guarded::audited`] has them.
fn lines(expected: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    expected.iter().map(|(a, b, c)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned())).collect()
}

pub(crate) fn an_upload_of_somebody_else_does_not_replace_an_index() {
    let at = Guarded::new(&[]);
    let (right, evil) = (image(&["right"]), image(&["evil", "more", "functions"]));
    assert_eq!(at.upload(&at.ci, "", &right), "written");
    assert_eq!(at.upload(&at.stranger, "", &evil), "kept");
    assert_eq!(at.answer(), "right");
    // A stripped binary comes first, and the debug file of the same uploader follows.
    let better = image(&["better", "second"]);
    assert_eq!(at.upload(&at.ci, "", &better), "replaced");
    assert_eq!(at.answer(), "better");
    let provenance = &at.image()["stored"]["provenance"];
    assert!(provenance["received"].is_string(), "{provenance}");
    assert_eq!(
        (&provenance["token"], &provenance["client"], &provenance["sha256"]),
        (&json!("ci"), &json!("127.0.0.1"), &json!(sha256(&better)))
    );
    let stat = symdex_on(&at.store, &format!("store stat {{}} {ELF_BUILD_ID}"));
    let line = format!(" with the token ci from 127.0.0.1, SHA-256 {}", sha256(&better));
    assert!(stat.out.contains(&line), "{}", stat.out);
    let stat_as_json = format!("store stat {{}} {ELF_BUILD_ID} --json");
    let stat = symdex_on(&at.store, &stat_as_json);
    assert_eq!(stat.json()[0]["provenance"], *provenance);
    // A copy of the store keeps it.
    let copy = folder();
    let copied = symdex_on(copy.path(), &format!("store copy {} {{}}", at.store.display()));
    assert_eq!(copied.code, Some(0), "{}", copied.err);
    assert_eq!(symdex_on(copy.path(), &stat_as_json).json()[0]["provenance"], *provenance);
    assert_eq!(
        at.audited(6),
        lines(&[
            ("upload", "ci", "-"),
            ("publish", "ci", "written"),
            ("upload", "stranger", "-"),
            ("keep", "stranger", "kept"),
            ("upload", "ci", "-"),
            ("replace", "ci", "replaced"),
        ])
    );
}

pub(crate) fn an_admin_replaces_and_deletes_a_poisoned_index() {
    let at = Guarded::new(&[]);
    let (right, evil) = (image(&["right"]), image(&["evil", "more"]));
    assert_eq!(at.upload(&at.stranger, "", &evil), "written");
    assert_eq!(at.upload(&at.ci, "", &right), "kept");
    assert_eq!(at.answer(), "evil");
    let refused = at.put(&at.ci, "&replace=true", &right);
    assert_eq!((refused.status, at.answer()), (403, "evil".to_owned()), "{}", refused.text());
    // The file was built before, and is built again.
    assert_eq!(at.upload(&at.admin, "&replace=true", &right), "replaced");
    assert_eq!(
        (at.answer(), &at.image()["stored"]["provenance"]["token"]),
        ("right".to_owned(), &json!("admin"))
    );
    // The job of this file is done, and the store has an index of its image.
    assert_eq!((at.put(&at.stranger, "", &evil).status, at.answer()), (200, "right".to_owned()));
    let path = format!("/v1/images/{ELF_BUILD_ID}");
    let delete = |token: &TestToken| at.server.delete(&path, &token.headers());
    // Further ones of one client are counted, and logged a minute later.
    assert_eq!([delete(&at.stranger).status, delete(&at.stranger).status], [403; 2]);
    let nobody = at.server.delete(&path, &[]);
    assert_eq!((nobody.status, at.answer()), (401, "right".to_owned()));
    let deleted = delete(&at.admin);
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    let stores = json!([at.store.to_str()]);
    assert_eq!(deleted.json(), json!({"id": ELF_BUILD_ID, "removed": stores, "left": []}));
    assert_eq!((at.answer(), delete(&at.admin).status), ("missing".to_owned(), 404));
    // Nothing of it is left, so that the next upload is the first one.
    assert_eq!(names_in(&at.store.join("00")), [".symdex-lock"]);
    assert_eq!(at.upload(&at.ci, "", &right), "written");
    assert_eq!(
        (at.answer(), &at.image()["stored"]["provenance"]["token"]),
        ("right".to_owned(), &json!("ci"))
    );
    assert_eq!(
        at.audited(14)[4..],
        lines(&[
            ("refuse", "ci", "403"),
            ("upload", "admin", "-"),
            ("replace", "admin", "replaced"),
            ("upload", "stranger", "-"),
            ("refuse", "stranger", "403"),
            ("refuse", "-", "401"),
            ("delete", "admin", "-"),
            ("refuse", "admin", "404"),
            ("upload", "ci", "-"),
            ("publish", "ci", "written"),
        ])
    );
    let log = at.audit_log(14);
    let refusal = log.iter().find(|entry| entry["status"] == 401).expect("a refusal");
    assert_eq!(refusal.get("token"), None, "{refusal}");
    assert_eq!(refusal["request"], format!("DELETE {path}"));
    assert!(refusal["reason"].as_str().is_some_and(|why| why.starts_with("unauthorized: ")), "{refusal}");
}

pub(crate) fn the_rule_for_conflicts_can_be_chosen() {
    let (right, evil) = (image(&["right"]), image(&["evil", "more"]));
    for (rule, outcome, function) in
        [("keep", "kept", "right"), ("more", "replaced", "evil"), ("replace", "replaced", "evil")]
    {
        let at = Guarded::new(&["--on-conflict", rule]);
        assert_eq!(at.upload(&at.ci, "", &right), "written");
        assert_eq!(
            (at.upload(&at.stranger, "", &evil), at.answer()),
            (outcome.to_owned(), function.to_owned())
        );
    }
    let at = Guarded::new(&["--on-conflict", "replace"]);
    assert_eq!(at.upload(&at.ci, "", &evil), "written");
    assert_eq!(
        (at.upload(&at.stranger, "", &right), at.answer()),
        ("replaced".to_owned(), "right".to_owned())
    );
    // An index that no upload has made stays, too.
    let store = elf_store();
    let at = |more: &[&str]| TestServer::start(store.path(), more);
    let ci = TestToken::new("ci", "read,upload");
    let guarded = at(&["--token", &ci.configured]);
    let accepted = guarded.put("/v1/debug-files", &ci.headers(), &evil);
    let path = accepted.header("location").to_owned();
    let job = || guarded.get_with(&path, &ci.headers()).json();
    crate::jobs::until(|| job()["state"] == "done");
    assert_eq!(
        (&job()["images"][0]["outcome"], answer(&guarded, &ci.headers())),
        (&json!("kept"), "f".to_owned())
    );
    drop(guarded);
    // Without tokens, the index with more functions stays, as everywhere in symdex.
    let open = at(&[]);
    open.put("/v1/debug-files", &[], &evil);
    crate::jobs::until(|| answer(&open, &[]) == "evil");
    let image = open.get(&format!("/v1/images/{ELF_BUILD_ID}")).json();
    assert_eq!(
        (&image["stored"]["provenance"]["token"], &image["stored"]["provenance"]["client"]),
        (&Value::Null, &json!("127.0.0.1"))
    );
    assert_eq!(open.delete(&format!("/v1/images/{ELF_BUILD_ID}"), &[]).status, 200);
}

pub(crate) fn an_index_in_another_store_is_kept_as_well() {
    let second = elf_store();
    let (_root, first) = folder_in();
    let ci = TestToken::new("ci", "read,upload");
    let second_path = second.path().to_str().expect("UTF-8");
    let server = TestServer::start(&first, &["--store", second_path, "--token", &ci.configured]);
    let accepted = server.put("/v1/debug-files", &ci.headers(), &image(&["evil", "more"]));
    let path = accepted.header("location").to_owned();
    let job = || server.get_with(&path, &ci.headers()).json();
    crate::jobs::until(|| job()["state"] == "done");
    let image = &job()["images"][0];
    let location = image["location"].as_str().expect("kept");
    assert!(image["outcome"] == "kept" && location.starts_with(second_path), "{image}");
    assert_eq!(answer(&server, &ci.headers()), "f");
    let file = |store: &Path| store.join("00").join(format!("{ELF_BUILD_ID}.symdex"));
    assert!(!file(&first).exists());
    // A damaged index is not kept.
    drop(server);
    let whole = fs::read(file(second.path())).expect("an index");
    fs::write(file(second.path()), &whole[..whole.len() / 2]).expect("written");
    let server = TestServer::start(&first, &["--store", second_path, "--token", &ci.configured]);
    server.put("/v1/debug-files", &ci.headers(), &self::image(&["right"]));
    crate::jobs::until(|| answer(&server, &ci.headers()) == "right");
}

fn folder_in() -> (TempDir, PathBuf) {
    let root = folder();
    let path = root.path().join("store");
    (root, path)
}

pub(crate) fn a_new_token_needs_scopes_and_says_what_they_are() {
    for arguments in [&["serve", "--new-token"][..], &["serve", "--new-token", "write"]] {
        let refused = symdex(arguments);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains("read (reports, addresses, images)"), "{}", refused.err);
        assert!(refused.err.contains("admin (metrics"), "{}", refused.err);
    }
}
