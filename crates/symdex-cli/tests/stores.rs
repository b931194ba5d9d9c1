//! The option `--store` of the commands.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::{CommandOutput, command, dsym, folder, names_in, symdex, symdex_on, testdata};

/// The id of the image of `inline-dwarf4.dSYM`, and its index in a new store below `root`.
fn build(root: &Path) -> String {
    let store = root.join("store");
    let built = symdex([
        "build".as_ref(),
        dsym("inline-dwarf4").as_os_str(),
        "--json".as_ref(),
        "--store".as_ref(),
        store.as_os_str(),
    ]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    let [image] = &built.images()[..] else { panic!("more than one image: {}", built.out) };
    let id = image["id"].as_str().expect("an id").to_owned();
    let path = store.join(&id[..2]).join(format!("{id}.symdex"));
    assert_eq!(image["location"].as_str(), path.to_str());
    assert!(path.is_file());
    id
}

pub(crate) fn every_command_reads_a_store_as_it_reads_the_index() {
    let root = folder();
    let id = build(root.path());
    let store = root.path().join("store");
    let index = store.join(&id[..2]).join(format!("{id}.symdex"));
    for (from_index, from_store) in [
        ("lookup {} 0x3cf --json", format!("lookup --store {{}} --id {id} 0x3cf --json")),
        ("lookup {} 0x3cf 0x3d0", format!("lookup --store {{}} --id {} 0x3cf 0x3d0", &id[..8])),
        ("atos -o {} -i -offset 0x3cf", format!("atos --store {{}} --id {id} -i -offset 0x3cf")),
        ("inspect {}", format!("inspect --store {{}} --id {id}")),
        ("inspect {} --json", format!("inspect --store {{}} --id {} --json", id.to_uppercase())),
        ("ids {}", "ids --store {}".to_owned()),
        ("ids {} --json", "ids --store {} --json".to_owned()),
    ] {
        let expected = symdex_on(&index, from_index).ok();
        assert!(!expected.is_empty());
        assert_eq!(symdex_on(&store, &from_store).ok(), expected, "{from_store}");
    }
}

pub(crate) fn an_index_that_no_store_has_is_not_found() {
    let root = folder();
    build(root.path());
    let store = root.path().join("store");
    let missing = symdex_on(&store, "lookup --store {} --id 00000000000000000000000000000000 0x3cf");
    assert_eq!(missing.code, Some(3), "{}", missing.err);
    assert!(missing.err.contains("no index has an id that begins with 0000"), "{}", missing.err);
    let any = symdex_on(&store, "lookup --store {} 0x3cf");
    assert_eq!(any.code, Some(2), "{}", any.err);
    assert!(any.err.contains("choose an index of the store with --id"), "{}", any.err);
}

pub(crate) fn an_index_is_put_into_the_folder_and_into_all_stores() {
    let root = folder();
    let [flat, near, far] = ["flat", "near", "far"].map(|name| root.path().join(name));
    let input = dsym("inline-dwarf4");
    let run = || {
        let mut run = command();
        run.arg("build").arg(&input).arg("--json").arg("-o").arg(&flat).arg("--store").arg(&near);
        CommandOutput::from(run.arg("--store").arg(&far).output().expect("the command starts"))
    };
    for outcome in ["written", "unchanged"] {
        let built = run();
        assert_eq!(built.code, Some(0), "{}", built.err);
        let image = &built.images()[0];
        let id = image["id"].as_str().expect("an id");
        let name = format!("{id}.symdex");
        let copies = [&near, &far].map(|store| store.join(&id[..2]).join(&name).display().to_string());
        assert_eq!(image["location"].as_str(), flat.join(&name).to_str());
        assert_eq!(
            (image["copies"].clone(), image["outcome"].as_str()),
            (copies.as_slice().into(), Some(outcome))
        );
        assert_eq!(names_in(&flat), [name]);
    }
}

pub(crate) fn an_index_that_one_store_cannot_take_is_still_put_into_the_others() {
    let root = folder();
    let file = root.path().join("file");
    std::fs::write(&file, b"").expect("written");
    let mut run = command();
    run.arg("build").arg(dsym("inline-dwarf4")).arg("--store").arg(file.join("below"));
    let built = CommandOutput::from(run.arg("--store").arg(root.path().join("good")).output().expect("ran"));
    assert_eq!(built.code, Some(1), "{}", built.err);
    assert!(built.err.contains("below") && built.err.contains("cannot create the folder"), "{}", built.err);
    assert_eq!(names_in(&root.path().join("good")).len(), 1);
}

pub(crate) fn the_environment_names_the_stores_if_the_command_line_does_not() {
    let root = folder();
    let (one, two) = (root.path().join("one"), root.path().join("two"));
    let input = testdata().join("demo");
    let both = format!("{} {}", one.display(), two.display());
    let build = |more: &[&str]| {
        let mut run = command();
        run.arg("build").arg(&input).args(more).env("SYMDEX_STORE", &both).current_dir(root.path());
        CommandOutput::from(run.output().expect("the command starts"))
    };
    assert_eq!(build(&[]).code, Some(0));
    assert!(!names_in(&one).is_empty() && names_in(&one) == names_in(&two));
    assert_eq!(build(&["-o", "three"]).code, Some(0));
    assert!(!names_in(&root.path().join("three")).is_empty());
    let crash = testdata().join("demo/demo.crash");
    let done = command().arg("symbolicate").arg(crash).env("SYMDEX_STORE", &both).output().expect("ran");
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
}

pub(crate) fn urls_with_secrets_are_refused_on_the_command_line_and_errors_say_what_is_accepted() {
    for (url, part) in [
        ("redis://:hunter2@host/0", "SYMDEX_REDIS_PASSWORD_FILE"),
        ("https://me:hunter2@host/x", "SYMDEX_STORE"),
        ("https://host/x?token=hunter2", "SYMDEX_STORE"),
        ("s3://key:hunter2@bucket/x", "AWS_SECRET_ACCESS_KEY"),
        ("ftp://host/x", "expected PATH or dir:PATH, s3://"),
        ("s3:bucket/x", "a folder with such a name is ./s3:... or dir:s3:..."),
        ("s3://", "the bucket is missing"),
    ] {
        let refused = symdex(["ids", "--store", url]);
        assert_eq!(refused.code, Some(2), "{}", refused.err);
        assert!(refused.err.contains(part) && !refused.err.contains("hunter2"), "{url}: {}", refused.err);
    }
    let wrong =
        command().args(["build", "x"]).env("SYMDEX_STORE", "ftp://me:hunter2@host").output().expect("ran");
    let text = String::from_utf8_lossy(&wrong.stderr);
    assert_eq!(wrong.status.code(), Some(2), "{text}");
    assert!(text.contains("SYMDEX_STORE") && !text.contains("hunter2"), "{text}");
}

/// A server of Redis on this machine, which ends with the value.
struct Redis(Child, u16);

impl Drop for Redis {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

impl Redis {
    fn start() -> Self {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
        let mut server = symdex_testkit::program("redis-server", "--version");
        server.args(["--port", &port.to_string()]).args(options).stdout(Stdio::null()).stderr(Stdio::null());
        let child = server.spawn().expect("started");
        let (server, begun) = (Self(child, port), Instant::now());
        while server.run("PING").is_none_or(|answer| answer != "+PONG") {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// The first line of the answer to the last of the commands, which are lines.
    fn run(&self, command: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.1)).ok()?;
        stream.write_all(format!("{command}\r\n").as_bytes()).ok()?;
        let answers = BufReader::new(stream).lines().take(command.lines().count());
        answers.last()?.ok()
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.1)
    }
}

pub(crate) fn a_report_is_answered_from_redis_in_two_calls_and_the_summary_says_which_store_answered() {
    let server = Redis::start();
    let (root, url, demo) = (folder(), server.url(), testdata().join("demo"));
    let built =
        symdex(["build".as_ref(), demo.as_os_str(), "--store".as_ref(), url.as_ref(), "--json".as_ref()]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    let (empty, crash) = (root.path().join("empty"), demo.join("demo.crash"));
    let ask = |stores: &[&std::ffi::OsStr]| {
        let mut run = command();
        run.arg("symbolicate").arg(&crash);
        stores.iter().for_each(|store| _ = run.arg("--store").arg(store));
        CommandOutput::from(run.output().expect("the command starts"))
    };
    let from_debug_files =
        symdex(["symbolicate".as_ref(), crash.as_os_str(), "--dsym".as_ref(), demo.as_os_str()]);
    let answered = ask(&[empty.as_ref(), url.as_ref()]);
    assert_eq!((answered.code, &answered.out), (Some(0), &from_debug_files.out), "{}", answered.err);
    let lines: Vec<_> = answered.err.lines().filter_map(|line| line.strip_prefix("symdex: store ")).collect();
    let [of_folder, of_redis] = lines[..] else { panic!("{}", answered.err) };
    assert!(of_folder.contains("empty: 0 images and values found in "), "{of_folder}");
    assert!(of_redis.starts_with(&url) && of_redis.contains("found in 2 calls"), "{of_redis}");

    drop(server);
    let lost = ask(&[url.as_ref()]);
    assert_eq!(lost.code, Some(1), "{}", lost.err);
    assert!(lost.err.contains(&format!("store {url}: 0 images and values found in 1 call")), "{}", lost.err);
    assert!(lost.err.contains("1 of the calls failed"), "{}", lost.err);
}

/// The URL of a store at a port that no program listens to.
fn dead() -> String {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    format!("redis://127.0.0.1:{port}/0")
}

/// Runs the words of `line`. It must not take longer than one call of a store that does not answer.
fn in_time(line: &str) -> CommandOutput {
    let begun = Instant::now();
    let done = symdex(line.split(' '));
    assert!(begun.elapsed() < Duration::from_secs(15), "{line}: {:?}", begun.elapsed());
    done
}

pub(crate) fn a_report_names_the_images_that_no_store_could_be_asked_for() {
    let (root, url, demo) = (folder(), dead(), testdata().join("demo"));
    let (crash, live) = (demo.join("demo.crash"), root.path().join("live"));
    let (crash, live) = (crash.display(), live.display());
    assert_eq!(symdex(format!("build {} --store {live}", demo.display()).split(' ')).code, Some(0));
    let lost = in_time(&format!("symbolicate {crash} --store {url} --json"));
    assert_eq!(lost.code, Some(1), "{}", lost.err);
    assert!(lost.err.contains("1 of the calls failed"), "{}", lost.err);
    assert!(lost.err.contains("not answered because a store could not be queried"), "{}", lost.err);
    let [report] = &lost.json()[..] else { panic!("{}", lost.out) };
    let images = report["images"].as_array().expect("a list");
    for name in ["DemoApp", "DemoKit", "DemoPlain.dylib"] {
        let line = lost.err.lines().find(|line| line.contains(&format!("unavailable: {name} ")));
        assert!(line.is_some_and(|line| line.contains(&url)), "{name}: {}", lost.err);
        let image = images.iter().find(|image| image["name"] == name).expect("listed");
        assert!(
            image["status"] == "unavailable"
                && image["reason"].as_str().is_some_and(|why| why.contains(&url))
        );
    }
    assert_eq!(report["threads"][0]["frames"][0]["status"], "unavailable");

    // The images of the system are in no store, so that nobody knows whether the other store has them.
    let both = in_time(&format!("symbolicate {crash} --store {url} --store {live}"));
    let whole = in_time(&format!("symbolicate {crash} --store {live}"));
    assert_eq!((both.code, whole.code, &both.out), (Some(1), Some(0), &whole.out), "{}", both.err);
    assert!(both.err.contains("found: DemoApp ") && !both.err.contains("other: DemoApp "), "{}", both.err);
}

pub(crate) fn lookups_answer_from_another_store_and_fail_if_nobody_else_has_the_image() {
    let (root, url) = (folder(), dead());
    let id = build(root.path());
    let live = root.path().join("store");
    let live = live.display();
    for command in ["lookup", "atos -offset"] {
        for id in [&id[..], &id[..8]] {
            let answered = in_time(&format!("{command} 0x3cf --store {url} --store {live} --id {id}"));
            let expected = in_time(&format!("{command} 0x3cf --store {live} --id {id}")).ok();
            assert_eq!((answered.code, &answered.out), (Some(0), &expected), "{command}: {}", answered.err);
            let warning = answered.err.starts_with(&format!("symdex: warning: {url}"));
            assert!(warning && answered.err.contains("answered from"), "{command}: {}", answered.err);
            let lost = in_time(&format!("{command} 0x3cf --store {url} --id {id}"));
            assert_eq!((lost.code, lost.out.as_str()), (Some(1), ""), "{command}: {}", lost.err);
            assert!(lost.err.contains(&url), "{command}: {}", lost.err);
        }
        let absent = "00112233445566778899aabbccddeeff";
        let unsure = in_time(&format!("{command} 0x3cf --store {live} --store {url} --id {absent}"));
        assert_eq!(unsure.code, Some(1), "{command}: {}", unsure.err);
    }
}

pub(crate) fn build_asks_its_stores_before_it_reads_an_input_and_a_lost_one_once() {
    let (root, url) = (folder(), dead());
    let nothing = in_time(&format!("build gone.zip --store {url}"));
    assert_eq!(nothing.code, Some(1), "{}", nothing.err);
    assert!(nothing.err.contains(&url) && !nothing.err.contains("gone.zip"), "{}", nothing.err);
    let live = root.path().join("live");
    let demo = testdata().join("demo");
    let both = in_time(&format!("build {} --store {url} --store {}", demo.display(), live.display()));
    assert_eq!(both.code, Some(1), "{}", both.err);
    assert_eq!(names_in(&live).len(), 1, "all ids begin with the same digits");
    assert_eq!(crate::common::indexes_in(&live).len(), 3, "{}", both.err);
    let read_only = in_time("build gone.zip --store https://127.0.0.1:1/x");
    assert!(read_only.code == Some(1) && read_only.err.contains("read only"), "{}", read_only.err);
}

pub(crate) fn an_index_in_redis_expires_after_the_time_of_the_option() {
    let server = Redis::start();
    let (root, url, other) = (folder(), server.url(), server.url().replace("/0", "/1"));
    let id = build(root.path());
    let local = root.path().join("store");
    let index = local.join(&id[..2]).join(format!("{id}.symdex"));
    let (input, local, index) = (dsym("inline-dwarf4"), local.display(), index.display());
    for (line, database) in [
        (format!("build {} --store {url}", input.display()), "0"),
        (format!("store put {url} {index}"), "0"),
        (format!("store copy {local} {url}"), "0"),
        (format!("store copy {url} {other}"), "1"),
    ] {
        for (ttl, most) in [("", 45 * 24 * 3600), (" --ttl 2h", 2 * 3600)] {
            let flushed = server.run(&format!("SELECT {database}\r\nFLUSHDB"));
            assert_eq!(flushed.as_deref(), Some("+OK"));
            let done = symdex(format!("{line}{ttl}").split(' '));
            assert_eq!(done.code, Some(0), "{}", done.err);
            let seconds = server.run(&format!("SELECT {database}\r\nTTL symdex/1/{{{id}}}/metadata"));
            let seconds = seconds.expect("an answer");
            let seconds: u64 = seconds.trim_start_matches(':').parse().expect("a number");
            assert!(seconds <= most && seconds + 600 > most, "{line}{ttl}: {seconds}");
        }
    }
    for line in ["build x", "store put x y", "store copy x y", "symbolicate x"] {
        let wrong = symdex(line.split(' ').chain(["--ttl", "999ms"]));
        assert!(wrong.code == Some(2) && wrong.err.contains("at least a second"), "{}", wrong.err);
    }
}
