//! `symdex store` on stores in S3 and Redis, against servers of this machine.
//!
//! `.ci/run` installs the servers. Without them, these tests say so and pass.

use std::fs;
use std::path::Path;

use crate::common::store_verbs::{indexes, totals};
use crate::common::{CommandOutput, command, folder};

/// Runs `symdex store` with the words of `line`, in an environment for the server at `port`.
fn store(port: u16, line: &str) -> CommandOutput {
    let mut run = command();
    run.arg("store").args(line.split(' ')).envs(symdex_testkit::moto::environment(port));
    CommandOutput::from(run.output().expect("the command starts"))
}

/// A folder with the golden indexes below `root`.
fn local(root: &Path) -> String {
    let path = root.join("local").display().to_string();
    for (index, _) in indexes() {
        assert_eq!(store(0, &format!("put {path} {}", index.display())).code, Some(0));
    }
    path
}

/// Checks what all stores have in common. `url` is an empty store in the server at `port`.
fn every_verb_works(port: u16, url: &str, layout: &str) {
    let root = folder();
    let local = local(root.path());
    let store = |line: &str| store(port, line);
    let empty = store(&format!("ls {url} --json"));
    assert_eq!((empty.code, empty.json().len()), (Some(0), 1), "{}", empty.err);
    let copied = store(&format!("copy {local} {url} --json"));
    assert_eq!(copied.code, Some(0), "{}", copied.err);
    assert_eq!(totals(&copied)["outcomes"]["written"], indexes().len(), "{}", copied.out);
    let again = store(&format!("copy {local} {url} --json"));
    assert_eq!(totals(&again)["outcomes"]["unchanged"], indexes().len(), "{}", again.out);

    let listed = store(&format!("ls {url} --json"));
    let lines = listed.json();
    assert_eq!(lines.len(), indexes().len() + 1, "{}", listed.out);
    for (file, id) in indexes() {
        let line = lines.iter().find(|line| line["id"] == *id).expect("listed");
        assert!(line["stored_size"].as_u64().is_some_and(|size| size > 0), "{line}");
        let name = symdex::Metadata::read_file(&file).expect("an index").image_name;
        assert_eq!(line["name"], name, "{line}");
        assert_eq!((line["layout"].as_str(), line["written"].is_string()), (Some(layout), true), "{line}");
        let stat = store(&format!("stat {url} {} --json", &id[..8]));
        let size = fs::metadata(file).expect("there").len();
        assert_eq!(
            (&stat.json()[0]["index_size"], &stat.json()[0]["location"]),
            (&size.into(), &line["location"])
        );
    }
    let whole = store(&format!("verify {url} --json"));
    assert_eq!(
        (whole.code, totals(&whole)["outcomes"]["whole"].as_u64()),
        (Some(0), Some(3)),
        "{}",
        whole.err
    );
    let kept = store(&format!("gc {url} --older-than 1h --force"));
    assert_eq!((kept.code, kept.out.as_str()), (Some(0), ""), "{}", kept.err);
    assert!(kept.err.contains("3 kept"), "{}", kept.err);
    let unseen = store(&format!("gc {url} --older-than 0s --dry-run"));
    let said = if layout == "whole" { "the store records no uses" } else { "once an hour" };
    assert!(unseen.err.contains(said), "{}", unseen.err);
    let (_, id) = &indexes()[0];
    let removed = store(&format!("rm {url} {id}")).ok();
    assert!(removed.starts_with(&format!("removed  {id}")) && removed.contains(url), "{removed}");
    assert_eq!(store(&format!("stat {url} {id}")).code, Some(3));
    assert_eq!(store(&format!("rm {url} {id}")).code, Some(3));
    let rest = store(&format!("copy {local} {url} --json"));
    assert_eq!(totals(&rest)["outcomes"]["written"], 1, "{}", rest.out);
}

pub(crate) fn every_verb_works_on_s3() {
    let server = symdex_testkit::moto::Server::start();
    let url = format!("s3://{}/store", symdex_testkit::moto::BUCKET);
    every_verb_works(server.port, &url, "whole");
    // The indexes come back as they were.
    let root = folder();
    let back = root.path().join("back").display().to_string();
    assert_eq!(store(server.port, &format!("copy {url} {back}")).code, Some(0));
    for (file, id) in indexes() {
        let golden = fs::read(file).expect("there");
        assert!(fs::read(format!("{back}/{}/{id}.symdex", &id[..2])).expect("copied") == golden, "{id}");
        let got = root.path().join("got").display().to_string();
        store(server.port, &format!("get {url} {id} -o {got}")).ok();
        assert!(fs::read(got).expect("written") == golden, "{id}");
    }
    let missing = store(server.port, "ls s3://no-such-bucket/x");
    assert_eq!(missing.code, Some(1), "{}", missing.err);
    assert!(missing.err.contains("NoSuchBucket"), "{}", missing.err);
}

pub(crate) fn every_verb_works_on_redis() {
    let server = symdex_testkit::redis::Server::start(&[]);
    every_verb_works(0, &server.url(), "values");
    let listed = store(0, &format!("ls {} --json", server.url()));
    assert!(listed.json()[0]["expires"].is_string(), "{}", listed.out);
    // Redis can be copied to Redis only.
    let root = folder();
    let back = root.path().join("back").display().to_string();
    let files = store(0, &format!("copy {} {back}", server.url()));
    assert_eq!(files.code, Some(1), "{}", files.err);
    assert!(files.err.contains("Redis keeps an index as values"), "{}", files.err);
    let other = server.url().replace("/0", "/1");
    let copied = store(0, &format!("copy {} {other} --json", server.url()));
    assert_eq!(totals(&copied)["outcomes"]["written"], 3, "{}", copied.err);
    let again = store(0, &format!("copy {} {other} --json", server.url()));
    assert_eq!(totals(&again)["outcomes"]["unchanged"], 3, "{}", again.out);
    assert_eq!(store(0, &format!("verify {other}")).code, Some(0));
}

pub(crate) fn verify_names_lost_and_damaged_values() {
    let server = symdex_testkit::redis::Server::start(&[]);
    let (url, root) = (server.url(), folder());
    assert_eq!(store(0, &format!("copy {} {url}", local(root.path()))).code, Some(0));
    let [(_, lost), (_, damaged), (_, whole)] = &indexes()[..] else { panic!("three indexes") };
    let value_of = |id: &str| {
        let keys = server.keys();
        let is_value = |key: &&String| key.contains(id) && !key.ends_with("metadata");
        keys.iter().find(is_value).unwrap_or_else(|| panic!("a value of {id}: {keys:?}")).clone()
    };
    server.run(&["DEL", &value_of(lost)]);
    server.run(&["SETRANGE", &value_of(damaged), "40", "damage"]);
    let checked = store(0, &format!("verify {url} --json"));
    assert_eq!(checked.code, Some(4), "{}", checked.err);
    let lines = checked.json();
    let line = |id: &str| lines.iter().find(|line| line["id"] == *id).expect("a line").clone();
    let (lost, damaged, whole) = (line(lost), line(damaged), line(whole));
    assert_eq!(lost["lost_values"].as_array().map(Vec::len), Some(1), "{lost}");
    assert!(lost["error"]["message"].as_str().is_some_and(|text| text.contains(" lost: ")), "{lost}");
    assert_eq!(damaged["damaged_values"].as_array().map(Vec::len), Some(1), "{damaged}");
    assert_eq!(
        (whole["error"].clone(), totals(&checked)["failures"]["damaged"].as_u64()),
        (serde_json::Value::Null, Some(2))
    );
    // A copy replaces them only if the store says that the index is another one; `put` checks each value.
    for (file, _) in indexes() {
        assert_eq!(store(0, &format!("put {url} {}", file.display())).code, Some(0));
    }
    assert_eq!(store(0, &format!("verify {url}")).code, Some(0));
}
