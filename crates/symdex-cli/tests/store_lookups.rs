//! `symdex lookup`, `atos` and `inspect` on stores that keep an index as values or as an object, against servers of
//! this machine. `.ci/run` installs the servers.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{CommandOutput, command, folder, testdata};
use symdex::{ImageId, Metadata};

/// Runs `symdex` with the words of `line`, and `input` on standard input, in an environment for the server of S3 at
/// `port`.
fn run(port: u16, line: &str, input: &str) -> CommandOutput {
    let mut run = command();
    run.args(line.split(' ')).envs(symdex_testkit::moto::environment(port));
    let mut child =
        run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ran");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("read");
    CommandOutput::from(child.wait_with_output().expect("ran"))
}

/// Index files, and the ids of their images. The last one has 300 chunks, of which a store makes 75 values.
fn indexes(root: &Path) -> Vec<(PathBuf, String)> {
    let mut paths: Vec<_> = ["inline-dwarf4-1", "icf-1", "swift-names-1"]
        .map(|name| testdata().join(format!("golden/v1/{name}.symdex")))
        .into();
    paths.push(root.join("large.symdex"));
    fs::write(paths.last().expect("there"), symdex_testkit::indexes::index(0xab, 300)).expect("written");
    let with_id = |path: PathBuf| {
        let id = Metadata::read_file(&path).expect("an index").id.to_string();
        (path, id)
    };
    paths.into_iter().map(with_id).collect()
}

/// Addresses all over the image of the index at `path`, and outside of it.
fn addresses(path: &Path) -> Vec<String> {
    let size = Metadata::read_file(path).expect("an index").image_size;
    let step = usize::try_from(size / 500).expect("small").max(4);
    (0..size + 0x100).step_by(step).map(|offset| format!("{offset:#x}")).collect()
}

/// Checks that the answers of `stored`, the arguments that name an image in a store, are those of the index at `path`.
fn answers_as_the_file(port: u16, path: &Path, stored: &str) {
    let (words, lines) = (addresses(path).join(" "), addresses(path).join("\n"));
    for (options, input) in [
        (format!("lookup FILE {words}"), ""),
        (format!("lookup FILE --json --lines exact {words}"), ""),
        ("lookup FILE --json".to_owned(), lines.as_str()),
        (format!("lookup FILE --no-inlines --load 0x10000000 {words}"), ""),
        (format!("atos -o FILE -offset -i -dedup -fullPath {words}"), ""),
        ("atos -o FILE -offset".to_owned(), lines.as_str()),
    ] {
        let of_file = run(port, &options.replace("FILE", &path.display().to_string()), input);
        let of_store = run(port, &options.replace("-o FILE", "FILE").replace("FILE", stored), input);
        assert!(of_file.out.lines().count() > 50, "{}", of_file.err);
        assert!(of_store.out == of_file.out, "{options:.40}: {}\n{}", of_store.out, of_store.err);
        assert_eq!((of_store.code, of_store.err), (of_file.code, of_file.err), "{options:.40}");
    }
    let overview = &run(port, &format!("inspect {} --json", path.display()), "").json()[0];
    for chunk in overview["chunks"].as_array().expect("a list").iter().step_by(67) {
        let (number, table) = (&chunk["chunk"], chunk["table"].as_str().expect("a name"));
        for json in ["", " --json"] {
            let options = format!("--chunk {number} --table {table}{json}");
            let of_file = run(port, &format!("inspect {} {options}", path.display()), "").ok();
            assert_eq!(run(port, &format!("inspect {stored} {options}"), "").ok(), of_file, "{options}");
        }
    }
}

pub(crate) fn redis_answers_as_the_index() {
    let server = symdex_testkit::redis::Server::start(&[]);
    let (root, url) = (folder(), server.url());
    for (path, id) in indexes(root.path()) {
        assert_eq!(run(0, &format!("store put {url} {}", path.display()), "").code, Some(0));
        answers_as_the_file(0, &path, &format!("--store {url} --id {id}"));
    }
}

pub(crate) fn redis_is_asked_once_for_all_addresses_of_a_command() {
    let server = symdex_testkit::redis::Server::start(&[]);
    let (root, url) = (folder(), server.url());
    let (path, id) = indexes(root.path()).pop().expect("the large one");
    assert_eq!(run(0, &format!("store put {url} {}", path.display()), "").code, Some(0));
    // How often the server reads from sockets. Commands that are sent at once are one read.
    let reads = |addresses: u64| {
        server.run(&["CONFIG", "RESETSTAT"]);
        let words: Vec<_> = (0..addresses).map(|number| format!("{:#x}", number * 0x1000 + 8)).collect();
        run(0, &format!("lookup --store {url} --id {id} {}", words.join(" ")), "").ok();
        let stats = server.text(&["INFO", "stats"]);
        let reads = stats.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
        reads.and_then(|reads| reads.parse::<u32>().ok()).expect("a number")
    };
    assert_eq!(reads(200), reads(1));
}

pub(crate) fn inspect_shows_of_values_what_the_store_states_and_says_what_is_missing() {
    let server = symdex_testkit::redis::Server::start(&[]);
    let (root, url) = (folder(), server.url());
    for (path, id) in indexes(root.path()) {
        assert_eq!(run(0, &format!("store put {url} {}", path.display()), "").code, Some(0));
        let of_file = run(0, &format!("inspect {}", path.display()), "").ok();
        let of_store = run(0, &format!("inspect --store {url} --id {id}"), "").ok();
        let (shown, note) = of_store.rsplit_once("\n\n").expect("a note");
        assert!(note.contains("are not shown, because the store keeps the index as values"), "{note}");
        for line in shown.lines() {
            assert!(of_file.lines().any(|of_file| of_file == line), "{line:?} in\n{of_file}");
        }
        let mut of_file = run(0, &format!("inspect {} --json", path.display()), "").json().remove(0);
        let mut of_store = run(0, &format!("inspect --store {url} --id {id} --json"), "").json().remove(0);
        let only_of_files = ["location", "format", "sections", "chunks", "aliases"];
        only_of_files.iter().for_each(|key| assert!(of_file[*key].take() != serde_json::Value::Null));
        assert!(of_store["location"].take().is_string());
        for (key, value) in of_file.as_object().expect("an object") {
            assert_eq!(&of_store[key], value, "{key}");
        }
    }
    let (_, id) = &indexes(root.path())[3];
    let missing = run(0, &format!("inspect --store {url} --id {id} --chunk 300"), "");
    assert_eq!(missing.code, Some(3), "{}", missing.err);
    assert!(missing.err.contains("no chunk 300; the table dwarf has 0 to 299"), "{}", missing.err);
}

pub(crate) fn a_lost_value_is_damage_and_the_other_addresses_are_answered() {
    let server = symdex_testkit::redis::Server::start(&[]);
    let (root, url) = (folder(), server.url());
    let (path, id) = indexes(root.path()).pop().expect("the large one");
    assert_eq!(run(0, &format!("store put {url} {}", path.display()), "").code, Some(0));
    let lost = server.keys().into_iter().find(|key| key.ends_with("/25")).expect("a value");
    server.run(&["DEL", &lost]);
    // Chunks 100 to 103 are in value 25.
    let found = run(0, &format!("lookup --store {url} --id {id} --json 0x8 0x64008 0x68008 0x64800"), "");
    assert_eq!(found.code, Some(4), "{}", found.err);
    let lines = found.json();
    let names: Vec<_> = lines.iter().map(|line| line["functions"][0]["name"].as_str()).collect();
    assert_eq!(names, [Some("f0"), None, Some("f104"), None]);
    for line in [&lines[1], &lines[3]] {
        let message = line["error"]["message"].as_str().expect("a message");
        assert_eq!(line["error"]["kind"], "lost");
        assert!(message.contains("has lost value 25 of the index") && message.contains(&url), "{message}");
    }
    let atos = run(0, &format!("atos --store {url} --id {id} -offset 0x64008 0x8"), "");
    assert_eq!((atos.code, atos.out.lines().count()), (Some(4), 2), "{}", atos.err);
    assert!(atos.out.contains("f0 (in demo)"), "{}", atos.out);
    let chunk = run(0, &format!("inspect --store {url} --id {id} --chunk 100"), "");
    assert_eq!(chunk.code, Some(4), "{}", chunk.err);
}

pub(crate) fn a_report_says_what_a_store_has_lost_and_puts_it_again() {
    let server = symdex_testkit::redis::Server::start(&[]);
    let (root, url) = (folder(), server.url());
    let (path, id) = indexes(root.path()).pop().expect("the large one");
    let other = root.path().join("other").display().to_string();
    for store in [&url, &other] {
        assert_eq!(run(0, &format!("store put {store} {}", path.display()), "").code, Some(0));
    }
    let lost = server.keys().into_iter().find(|key| key.ends_with("/25")).expect("a value");
    server.run(&["DEL", &lost]);
    let report = format!("App 0x100000008 0x100000000 {id}\nApp 0x100064008 0x100000000 {id}\n");
    let ask = |options: &str| run(0, &format!("symbolicate - {options}"), &report);
    let alone = ask(&format!("--store {url} --json"));
    assert_eq!(alone.code, Some(4), "{}", alone.err);
    let report = &alone.json()[0];
    let frames = &report["threads"][0]["frames"];
    assert_eq!(
        (&report["images"][0]["status"], &frames[0]["status"]),
        (&"lost".into(), &"symbolicated".into())
    );
    assert_eq!(frames[1]["status"], "lost");
    assert!(frames[1]["reason"].as_str().is_some_and(|why| why.contains("has lost value 25")), "{frames}");
    assert!(alone.err.contains("  lost: redis://") && !alone.err.contains("no index"), "{}", alone.err);
    let both = ask(&format!("--store {url} --store {other}"));
    assert_eq!(both.code, Some(0), "{}", both.err);
    assert!(both.out.contains("f100"), "{}", both.out);
    assert!(
        both.err.contains(&format!("{url}: the index of {id} is put again, from {other}")),
        "{}",
        both.err
    );
    assert_eq!(ask(&format!("--store {url}")).code, Some(0));
}

pub(crate) fn an_object_answers_as_the_index() {
    let server = symdex_testkit::moto::Server::start();
    let (root, url) = (folder(), format!("s3://{}/x", symdex_testkit::moto::BUCKET));
    for (path, id) in indexes(root.path()) {
        let put = run(server.port, &format!("store put {url} {} --zstd-level 0", path.display()), "");
        assert_eq!(put.code, Some(0), "{}", put.err);
        answers_as_the_file(server.port, &path, &format!("--store {url} --id {id}"));
        let of_file = run(0, &format!("inspect {}", path.display()), "").ok();
        let of_store = run(server.port, &format!("inspect --store {url} --id {id}"), "").ok();
        assert_eq!(of_store, of_file);
    }
}

/// Checks that a build id of ELF is found by its first 16 bytes. `url` is an empty store in the server at `port`.
fn a_long_id_is_found_by_its_debug_id(port: u16, url: &str) {
    let (root, debug_id) = (folder(), "cd".repeat(16));
    let put = |last: u8| {
        let id = [&[0xcd; 16][..], &[1, 2, 3, last]].concat();
        let path = root.path().join(format!("{last}.symdex"));
        fs::write(&path, symdex_testkit::indexes::index_of(ImageId::new(&id).expect("an id"), 3))
            .expect("written");
        let put = run(port, &format!("store put {url} {}", path.display()), "");
        assert_eq!(put.code, Some(0), "{}", put.err);
    };
    let lookup = || run(port, &format!("lookup --store {url} --id {debug_id} 0x1008"), "");
    assert_eq!(lookup().code, Some(3));
    put(4);
    let found = lookup().ok();
    assert!(found.contains("f1 + 0x8 at a.c:1"), "{found}");
    put(5);
    let several = lookup();
    assert_eq!(several.code, Some(2), "{}", several.err);
    assert!(several.err.contains(&format!("several ids begin with {debug_id}: ")), "{}", several.err);
}

pub(crate) fn a_folder_finds_a_long_id_by_its_debug_id() {
    let root = folder();
    a_long_id_is_found_by_its_debug_id(0, &root.path().display().to_string());
}

pub(crate) fn redis_finds_a_long_id_by_its_debug_id() {
    let server = symdex_testkit::redis::Server::start(&[]);
    a_long_id_is_found_by_its_debug_id(0, &server.url());
}

pub(crate) fn an_object_store_finds_a_long_id_by_its_debug_id() {
    let server = symdex_testkit::moto::Server::start();
    a_long_id_is_found_by_its_debug_id(server.port, &format!("s3://{}/y", symdex_testkit::moto::BUCKET));
}
