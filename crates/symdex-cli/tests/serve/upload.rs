//! `symdex upload`: what it sends, through a proxy that counts bytes and breaks connections, and what it says.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use boon::{Compiler, Schemas};
use serde_json::{Value, json};
use symdex_testkit::command::CommandOutput;
use symdex_testkit::folders::folder;
use symdex_testkit::http_proxy::{HttpFault, HttpProxy};
use symdex_testkit::images::debug_file::{BASE, Die, Elf, ElfSymbol, Unit, debug_sections};
use symdex_testkit::testdata::{debug_file, dsym, testdata, without_debug_information};
use symdex_testkit::web::{Reply, WebServer};
use tempfile::TempDir;

use crate::server::{TestServer, TestToken, command};

/// A server, and a proxy before it. The plan of the proxy gets the first line of a request, and its number among those
/// of its method.
struct Place {
    server: TestServer,
    proxy: HttpProxy,
    url: String,
    work: TempDir,
}

impl Place {
    fn new(arguments: &[&str], plan: impl Fn(&str, usize) -> HttpFault + Send + Sync + 'static) -> Self {
        let server = TestServer::empty(arguments);
        let port = server.url.rsplit(':').next().expect("a port").parse().expect("a number");
        let counts = ["PUT", "POST", "HEAD", "GET"].map(|method| (method, AtomicUsize::new(0)));
        let proxy = HttpProxy::start(port, move |line| {
            let of_method = counts.iter().find(|(method, _)| line.starts_with(method));
            plan(line, of_method.map_or(0, |(_, count)| count.fetch_add(1, Ordering::Relaxed)))
        });
        let url = format!("http://127.0.0.1:{}", proxy.port);
        Self { server, proxy, url, work: folder() }
    }

    fn upload(&self, inputs: &[&Path], options: &[&str]) -> CommandOutput {
        let mut run = upload(&self.url);
        CommandOutput::from(run.args(options).args(inputs).output().expect("symdex runs"))
    }

    /// How often each method was asked for since the last call.
    fn count(&self, method: &str) -> usize {
        self.proxy.take_log().iter().filter(|(asked, _)| asked == method).count()
    }

    fn write(&self, path: &str, bytes: &[u8]) -> std::path::PathBuf {
        let path = self.work.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(&path, bytes).expect("written");
        path
    }
}

fn upload(url: &str) -> Command {
    let mut run = command();
    run.env_remove("SYMDEX_SERVER_TOKEN").args(["--no-config", "upload", "--server", url]);
    run
}

fn no_fault(_: &str, _: usize) -> HttpFault {
    HttpFault::None
}

/// An ELF file with one function. Without `is_whole`, it has symbols only.
fn elf(id: u16, is_whole: bool) -> Vec<u8> {
    let build_id = Some([id.to_be_bytes(); 10].concat());
    let symbols = vec![ElfSymbol::function("f", BASE + 0x1000, 0x100)];
    let elf = Elf { base: BASE, build_id, symbols, ..Elf::default() };
    let unit = Unit::new((0x1000, 0x1100)).child(Die::function("f", (0x1000, 0x1100)));
    if is_whole { elf.debug(debug_sections(&[unit])).bytes() } else { elf.bytes() }
}

#[track_caller]
fn outcomes(run: &CommandOutput) -> Vec<String> {
    run.images().iter().map(|image| image["outcome"].as_str().expect("text").to_owned()).collect()
}

pub(crate) fn an_upload_sends_a_part_of_the_debug_files_and_the_next_one_nothing() {
    let place = Place::new(&[], no_fault);
    let inputs = [dsym("cxx"), dsym("fat"), dsym("lto")];
    let inputs: Vec<_> = inputs.iter().map(|path| &**path).collect();
    let first = place.upload(&inputs, &["--json"]);
    assert_eq!((first.code, outcomes(&first)), (Some(0), vec!["answered".to_owned(); 5]), "{first:?}");
    let debug_files = ["cxx", "fat", "lto"].map(|name| debug_file(name).metadata().expect("a file").len());
    let sent = place.proxy.take_put_bytes();
    // Files of some kB have the worst share: the indexes of 50 to 335 MB have 2 to 4 %.
    assert!(sent > 0 && sent * 10 < debug_files.iter().sum(), "{sent} of {debug_files:?}");
    let totals = &first.json()[5]["totals"];
    assert_eq!((&totals["indexes"], &totals["size"]), (&json!(5), &json!(sent)), "{totals}");
    let of_images: u64 = first.images().iter().map(|image| image["sent"].as_u64().expect("a number")).sum();
    assert_eq!(of_images, sent);
    let id = first.images()[0]["id"].as_str().expect("an id").to_owned();
    assert!(crate::jobs::is_found(&place.server, &id));
    place.proxy.take_log();

    let second = place.upload(&inputs, &["--json"]);
    assert_eq!((second.code, outcomes(&second)), (Some(0), vec!["unchanged".to_owned(); 5]), "{second:?}");
    assert!(
        second.images().iter().all(|image| image["index_size"].is_null()),
        "nothing is built: {second:?}"
    );
    let log = place.proxy.take_log();
    assert_eq!(log.iter().map(|(method, _)| &**method).collect::<Vec<_>>(), ["POST"], "one question");
    // If the images are built all the same, the server has the uploads.
    let third = place.upload(&inputs, &["--json", "--force"]);
    assert_eq!((third.code, place.proxy.take_put_bytes()), (Some(0), 0), "{third:?}");
    let text = place.upload(&inputs, &[]);
    assert_eq!((text.out.lines().count(), text.err.lines().count()), (5, 2), "{text:?}");
    assert!(text.err.ends_with(&format!("{} answers 5 of 5 images\n", place.url)), "{}", text.err);
    let quiet = place.upload(&inputs, &["-q"]);
    assert_eq!((quiet.code, quiet.out, quiet.err), (Some(0), String::new(), String::new()));
}

pub(crate) fn indexes_of_real_dsyms_have_a_few_per_cent_of_their_bytes() {
    let corpora = folder();
    let cut_first = |line: &str, number| match (line.starts_with("PUT"), number) {
        (true, 0 | 3) => HttpFault::CutRequest,
        (true, 1) => HttpFault::Error503,
        _ => HttpFault::None,
    };
    for name in ["cbundle.dSYM", "ripgrep.dSYM"] {
        let place = Place::new(&[], cut_first);
        let dsym = symdex_testkit::corpus(name, corpora.path());
        let run = place.upload(&[&dsym], &["--json"]);
        assert_eq!((run.code, outcomes(&run)), (Some(0), vec!["answered".to_owned()]), "{run:?}");
        let debug_size = run.images()[0]["debug_size"].as_u64().expect("a size");
        let percent = place.proxy.take_put_bytes() * 100 / debug_size;
        assert!((2..5).contains(&percent), "{percent} % of {debug_size}");
        let again = place.upload(&[&dsym], &[]);
        assert_eq!((again.code, place.proxy.take_put_bytes()), (Some(0), 0), "{again:?}");
    }
}

pub(crate) fn an_upload_goes_on_after_broken_connections_and_an_overloaded_server() {
    let place = Place::new(&[], |line, number| match (line.split(' ').next(), number) {
        (Some("PUT"), 0) => HttpFault::CutRequest,
        (Some("PUT"), 1) => HttpFault::LostAnswer,
        (Some("POST" | "HEAD" | "GET"), 0) => HttpFault::Error503,
        (Some("HEAD"), 1) => HttpFault::Cut,
        _ => HttpFault::None,
    });
    let begun = Instant::now();
    let run = place.upload(&[&dsym("cxx")], &["--json"]);
    assert_eq!((run.code, outcomes(&run)), (Some(0), vec!["answered".to_owned()]), "{run:?}");
    assert!(begun.elapsed() > Duration::from_secs(2), "Retry-After is obeyed");
    assert!(run.err.contains("warning: ") && run.err.contains("the server answers 503"), "{}", run.err);
    // Half of the index, and then the rest: nothing is sent twice.
    let size: u64 = {
        let other = Place::new(&[], no_fault);
        assert_eq!(other.upload(&[&dsym("cxx")], &[]).code, Some(0));
        other.proxy.take_put_bytes()
    };
    assert_eq!(place.proxy.take_put_bytes(), size);
}

pub(crate) fn a_server_that_asks_for_a_longer_pause_is_a_failure() {
    let place = Place::new(
        &[],
        |line, _| {
            if line.starts_with("PUT") { HttpFault::Error503 } else { HttpFault::None }
        },
    );
    let run = place.upload(&[&dsym("cxx"), &dsym("lto")], &["--retry-for", "500ms"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    for part in
        ["cxx: not sent: PUT ", "asks for a pause of 1 s, and --retry-for is 500ms", "answers 0 of 2 images"]
    {
        assert!(run.err.contains(part), "{part}: {}", run.err);
    }
}

pub(crate) fn a_killed_client_sends_only_the_rest_in_its_next_run() {
    let place = Place::new(&[], |line, number| match (line.split(' ').next(), number) {
        (Some("PUT"), 0) => HttpFault::CutRequest,
        // The first client waits when it is killed.
        (Some("HEAD"), 1) => HttpFault::Drip,
        _ => HttpFault::None,
    });
    let mut killed = upload(&place.url);
    let mut killed = killed.arg(dsym("cxx")).stderr(Stdio::null()).spawn().expect("symdex starts");
    place.server.until(|| place.proxy.take_log().iter().any(|(_, fault)| *fault == HttpFault::Drip));
    killed.kill().expect("killed");
    killed.wait().expect("ended");
    let before = place.proxy.take_put_bytes();
    let run = place.upload(&[&dsym("cxx")], &["--json"]);
    assert_eq!((run.code, outcomes(&run)), (Some(0), vec!["answered".to_owned()]), "{run:?}");
    let rest = place.proxy.take_put_bytes();
    assert_eq!(run.images()[0]["sent"], rest);
    assert!(before > 0 && rest.abs_diff(before) <= 1, "two halves: {before} and {rest}");
}

pub(crate) fn two_hundred_images_are_sent_in_one_run() {
    let place = Place::new(&[], no_fault);
    for id in 1..=200 {
        place.write(&format!("libs/lib{id}.so"), &elf(id, true));
    }
    let libs = place.work.path().join("libs");
    let run = place.upload(&[&libs], &["--json"]);
    assert_eq!((run.code, outcomes(&run)), (Some(0), vec!["answered".to_owned(); 200]), "{}", run.err);
    assert_eq!(place.proxy.take_log().iter().filter(|(method, _)| method == "POST").count(), 2);
    place.proxy.take_put_bytes();
    let again = place.upload(&[&libs], &["--json"]);
    assert_eq!((again.code, place.proxy.take_put_bytes()), (Some(0), 0), "{}", again.err);
}

pub(crate) fn the_whole_index_is_sent_after_that_of_a_stripped_library() {
    let place = Place::new(&[], no_fault);
    let (stripped, whole) = (place.write("a/lib.so", &elf(1, false)), place.write("b/lib.so", &elf(1, true)));
    let first = |run: CommandOutput| (run.code, outcomes(&run)[0].clone());
    let run = |path: &Path| first(place.upload(&[path], &["--json"]));
    assert_eq!(run(&stripped), (Some(0), "answered".to_owned()));
    assert_eq!(run(&stripped), (Some(0), "unchanged".to_owned()));
    assert_eq!(run(&whole), (Some(0), "answered".to_owned()));
    assert_eq!(run(&stripped), (Some(0), "unchanged".to_owned()));
    // An image that the server answers with lines has debug information, also if its dSYM is not here.
    assert_eq!(place.upload(&[&dsym("cxx")], &[]).code, Some(0));
    let binary = place.write("cxx", &without_debug_information(&debug_file("cxx")));
    let run = place.upload(&[&binary], &["--require-all"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let missing = place.upload(&[&place.write("c/lib.so", &elf(2, false))], &["--require-all"]);
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert!(missing.err.contains("which --require-all asks for"), "{}", missing.err);
    let absent = place.upload(&[&whole], &["--id", "0c37c502-aba0-3641-a08f-84c794684f36"]);
    assert_eq!(absent.code, Some(3), "{absent:?}");
}

pub(crate) fn a_dry_run_sends_nothing() {
    let place = Place::new(&[], no_fault);
    let run = place.upload(&[&dsym("cxx")], &["--dry-run"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(
        run.out.contains(": planned, ") && run.err.ends_with("nothing was sent (--dry-run)\n"),
        "{run:?}"
    );
    assert_eq!(place.proxy.take_log(), [("POST".to_owned(), HttpFault::None)]);
}

pub(crate) fn debug_files_are_sent_as_archives_and_once() {
    let place = Place::new(&[], no_fault);
    let (cxx, fat) = (dsym("cxx"), debug_file("fat"));
    let inputs: [&Path; 2] = [&cxx, &fat];
    let run = place.upload(&inputs, &["--debug-files", "--json"]);
    assert_eq!((run.code, outcomes(&run).len()), (Some(0), 4), "{run:?}");
    let sent = place.proxy.take_put_bytes();
    let job =
        place.server.get(&format!("/v1/jobs/{}", run.images()[0]["job"].as_str().expect("an id"))).json();
    assert_eq!((&job["name"], &job["images"][0]["name"]), (&json!("cxx.dSYM.zip"), &json!("cxx")), "{job}");
    assert_eq!(run.json().last().expect("totals")["totals"]["size"], sent);
    for options in [&["--debug-files"][..], &["--debug-files", "--force"]] {
        let again = place.upload(&inputs, options);
        assert_eq!((again.code, place.proxy.take_put_bytes()), (Some(0), 0), "{again:?}");
    }
    place.proxy.take_log();
    let damaged = place.write("x.zip", b"PK\x03\x04 and nothing else");
    let run = place.upload(&[&damaged], &["--debug-files"]);
    assert_eq!((run.code, place.count("PUT")), (Some(4), 0), "{run:?}");
}

pub(crate) fn a_token_needs_its_scopes_and_is_not_shown() {
    let [index, read, both] = [("i", "index"), ("r", "read"), ("b", "read,index")]
        .map(|(name, scopes)| TestToken::new(name, scopes));
    let configured = [&index, &read, &both].map(|token| ["--token", &token.configured]);
    let place = Place::new(configured.as_flattened(), no_fault);
    let run = |token: Option<&TestToken>| {
        let mut run = upload(&place.url);
        if let Some(token) = token {
            let secret = token.bearer.strip_prefix("Bearer ").expect("a token");
            let file = place.write("token", format!("{secret}\n").as_bytes());
            run.arg("--token-file").arg(file);
        }
        CommandOutput::from(run.arg(dsym("cxx")).output().expect("symdex runs"))
    };
    let without = run(None);
    assert_eq!(without.code, Some(2), "{without:?}");
    assert!(
        without.err.contains("give its token with --token-file or in SYMDEX_SERVER_TOKEN"),
        "{without:?}"
    );
    for token in [&index, &read] {
        let refused = run(Some(token));
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused.err.contains("403") && refused.err.contains("the scopes read and index"),
            "{refused:?}"
        );
    }
    let sent = run(Some(&both));
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let secret = both.bearer.strip_prefix("Bearer ").expect("a token");
    for (value, code) in [(secret, 0), ("wrong-token", 2), ("two words", 2), ("", 2)] {
        let mut run = upload(&place.url);
        let run = run.env("SYMDEX_SERVER_TOKEN", value).arg(dsym("lto")).output().expect("symdex runs");
        let run = CommandOutput::from(run);
        assert_eq!(run.code, Some(code), "{run:?}");
        assert!(value.is_empty() || !run.err.contains(value), "{run:?}");
    }
}

pub(crate) fn what_is_no_symdex_server_is_named() {
    let other = WebServer::start(|_| Reply::Body(b"[]".to_vec()));
    let there = format!("{}/v1/missing", other.url());
    let servers: [(Reply, i32, &str); 6] = [
        (Reply::Status(404), 6, "404 Not Found; is this a symdex server?"),
        (Reply::Body(b"<html>".to_vec()), 6, "this is not the answer of a symdex server"),
        (Reply::Redirect(there), 2, "302 Found; redirects are not followed"),
        (Reply::Body(vec![b'['; 33 << 20]), 6, "is this a symdex server?"),
        (Reply::Cut(b"[]".to_vec()), 1, "--retry-for is 300ms"),
        (Reply::Status(503), 1, "503 Service Unavailable"),
    ];
    for (reply, code, message) in servers {
        let server = WebServer::start(move |_| reply.clone());
        let run = upload(&server.url()).args(["--retry-for", "300ms"]).arg(dsym("cxx")).output();
        let run = CommandOutput::from(run.expect("symdex runs"));
        assert_eq!(run.code, Some(code), "{run:?}");
        assert!(run.err.contains(message), "{message}: {}", run.err);
    }
    assert!(other.paths().is_empty(), "the target of a redirect gets nothing");
    let lying = WebServer::start(|request| match &*request.path {
        "/v1/missing" => {
            Reply::Body(br#"[{"id": "4c4c441855553144a171dd2444a9c64a", "grade": "nothing"}]"#.to_vec())
        }
        path if path.starts_with("/v1/jobs") => Reply::Body(br#"{"state": "done"}"#.to_vec()),
        _ => Reply::Body(Vec::new()),
    });
    let run = CommandOutput::from(upload(&lying.url()).arg(dsym("cxx")).output().expect("symdex runs"));
    assert_eq!(run.code, Some(1), "a server that takes an index and does not answer it: {run:?}");
    assert!(run.err.contains("the server's answers for it are worse than the local index"), "{}", run.err);
    let url = "https://user:secret@127.0.0.1:9";
    let run = CommandOutput::from(upload(url).arg(dsym("cxx")).output().expect("symdex runs"));
    assert!(run.code == Some(2) && !run.err.contains("secret"), "{run:?}");
    let mut run = command();
    let run = run.env_remove("SYMDEX_SERVER").args(["--no-config", "upload"]).arg(dsym("cxx")).output();
    let run = CommandOutput::from(run.expect("symdex runs"));
    assert!(run.code == Some(2) && run.err.contains("no server is named"), "{run:?}");
}

pub(crate) fn an_index_that_is_too_large_for_the_server_does_not_stop_the_others() {
    let place = Place::new(&["--max-upload", "1kB"], no_fault);
    let run = place.upload(&[&dsym("cxx"), &dsym("lto")], &["--json"]);
    assert_eq!((run.code, outcomes(&run)), (Some(1), vec!["answered".to_owned()]), "{run:?}");
    let failed = run.json().into_iter().find(|line| line.get("error").is_some()).expect("a failure");
    assert_eq!(failed["error"]["kind"], "limit", "{failed}");
    assert!(failed["error"]["message"].as_str().expect("text").contains("--max-upload"), "{failed}");
}

pub(crate) fn a_server_that_is_lost_after_the_uploads_leaves_them_unconfirmed() {
    let place = Place::new(&[], |line, number| {
        if line.starts_with("POST") && matches!(number, 1 | 2) {
            HttpFault::LostAnswer
        } else {
            HttpFault::None
        }
    });
    let run = place.upload(&[&dsym("cxx"), &dsym("lto")], &["--json", "--retry-for", "500ms"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let totals = &run.json().pop().expect("totals")["totals"];
    assert_eq!(totals["failures"], json!({"not confirmed": 2}), "{totals}");
    assert_eq!(totals["size"], place.proxy.take_put_bytes(), "{totals}");
    assert!(run.err.contains("cxx: not confirmed: POST "), "{}", run.err);
    let next = place.upload(&[&dsym("cxx"), &dsym("lto")], &["--json"]);
    assert_eq!((next.code, place.proxy.take_put_bytes()), (Some(0), 0), "{next:?}");
}

pub(crate) fn an_upload_that_always_fails_does_not_stop_the_others() {
    let place = Place::new(&[], |line, _| {
        let is_first = line.starts_with("PUT") && line.contains("/00010001");
        if is_first { HttpFault::Error500 } else { HttpFault::None }
    });
    for id in 1..=9 {
        place.write(&format!("libs/lib{id}.so"), &elf(id, true));
    }
    let libs = place.work.path().join("libs");
    let run = place.upload(&[&libs], &["--json", "--retry-for", "500ms"]);
    assert_eq!((run.code, outcomes(&run)), (Some(1), vec!["answered".to_owned(); 8]), "{run:?}");
    // A server that never keeps what was sent gets it four times.
    let forgetful = WebServer::start(|request| match (&*request.path, request.number % 2) {
        ("/v1/missing", _) => {
            Reply::Body(json!([{"id": "0001".repeat(10), "grade": "nothing"}]).to_string().into_bytes())
        }
        (_, 0) => Reply::Status(422),
        _ => Reply::Status(404),
    });
    let run = upload(&forgetful.url()).arg(libs.join("lib1.so")).output();
    let run = CommandOutput::from(run.expect("symdex runs"));
    assert!(run.code == Some(1) && run.err.contains("not sent: PUT "), "{run:?}");
    assert_eq!(forgetful.paths().len(), 10, "one question, HEAD and PUT four times, HEAD");
}

pub(crate) fn each_part_of_an_upload_that_arrives_renews_the_patience() {
    let place = Place::new(&[], |line, number| {
        if line.starts_with("PUT") && number < 5 { HttpFault::CutRequest } else { HttpFault::None }
    });
    let run = place.upload(&[&dsym("cxx")], &["--json", "--retry-for", "1500ms"]);
    assert_eq!((run.code, outcomes(&run)), (Some(0), vec!["answered".to_owned()]), "{run:?}");
}

pub(crate) fn an_upload_whose_job_outlasts_the_wait_is_not_confirmed() {
    let slow = WebServer::start(|request| match &*request.path {
        "/v1/missing" => {
            Reply::Body(json!([{"id": "0001".repeat(10), "grade": "nothing"}]).to_string().into_bytes())
        }
        path if path.starts_with("/v1/jobs") => Reply::Body(br#"{"state": "running"}"#.to_vec()),
        _ => Reply::Body(Vec::new()),
    });
    let place = Place::new(&[], no_fault);
    let mut run = upload(&slow.url());
    let run = run.args(["--json", "--wait", "0s"]).arg(place.write("lib.so", &elf(1, true))).output();
    let run = CommandOutput::from(run.expect("symdex runs"));
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.err.contains("lib.so: not confirmed: the job ") && run.err.contains("is still running"),
        "{run:?}"
    );
    let totals = &run.json().pop().expect("totals")["totals"];
    assert_eq!(totals["failures"], json!({"not confirmed": 1}), "{totals}");
    assert!(totals["size"].as_u64() > Some(0), "{totals}");
}

pub(crate) fn debug_files_without_an_id_or_a_wanted_architecture_are_failures() {
    let place = Place::new(&[], no_fault);
    let (whole, text) = (place.write("lib.so", &elf(1, true)), place.write("notes.txt", b"text"));
    // `symdex build` fails in the same way if no input has the architecture, and skips the others.
    let none = place.upload(&[&whole], &["--debug-files", "--json", "--dry-run", "--arch", "armv7"]);
    assert_eq!((none.code, outcomes(&none).len()), (Some(3), 0), "{none:?}");
    let fat = fs::read(debug_file("fat")).expect("a file");
    place.write("both/fat.dSYM/Contents/Resources/DWARF/fat", &fat);
    let binary = place.write("both/fat", &fat);
    let folder = binary.parent().expect("a folder");
    let both = place.upload(&[folder], &["--debug-files", "--json", "--dry-run"]);
    assert_eq!((both.code, outcomes(&both).len()), (Some(0), 3), "each image is counted once: {both:?}");
    let skipped = place.upload(
        &[&dsym("cxx"), &debug_file("fat")],
        &["--debug-files", "--json", "--dry-run", "--arch", "x86_64"],
    );
    assert_eq!(skipped.code, Some(0), "{skipped:?}");
    let cut = place.write("cut", &fs::read(debug_file("cxx")).expect("a file")[..100]);
    let unreadable = place.upload(&[&cut], &["--debug-files"]);
    assert_eq!(
        (unreadable.code, unreadable.err.contains("has an id that can be read")),
        (Some(3), true),
        "{unreadable:?}"
    );
    let no_image = place.upload(&[&text], &["--debug-files"]);
    assert_ne!(no_image.code, Some(0), "{no_image:?}");
    let folder = place.work.path().join("empty");
    fs::create_dir(&folder).expect("a folder");
    let empty = place.upload(&[&folder], &["--debug-files"]);
    assert_ne!(empty.code, Some(0), "{empty:?}");
}

pub(crate) fn a_server_of_a_found_file_gets_no_token() {
    let other = WebServer::start(|_| Reply::Body(b"[]".to_vec()));
    let place = Place::new(&[], no_fault);
    let (config, token) = (format!("server = \"{}\"\ntoken-file = \"token\"\n", other.url()), "secret-token");
    let (config, file) =
        (place.write("symdex.toml", config.as_bytes()), place.write("token", token.as_bytes()));
    let run = |arguments: &[&str], variable: Option<&str>| {
        let mut run = command();
        run.env_remove("SYMDEX_SERVER").env_remove("SYMDEX_SERVER_TOKEN").current_dir(place.work.path());
        run.args(arguments)
            .arg("upload")
            .arg(dsym("cxx"))
            .envs(variable.map(|token| ("SYMDEX_SERVER_TOKEN", token)));
        CommandOutput::from(run.output().expect("symdex runs"))
    };
    for variable in [None, Some("other-token")] {
        let refused = run(&[], variable);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused.err.contains("gets no token, because a symdex.toml that was found names it"),
            "{refused:?}"
        );
        assert!(other.paths().is_empty(), "nothing is asked");
    }
    let named = config.to_str().expect("text");
    assert_eq!(run(&["--config", named], None).code, Some(0));
    // The variable comes before the file.
    assert_eq!(run(&["--config", named], Some("two words")).code, Some(2));
    fs::remove_file(file).expect("removed");
    assert_eq!(run(&["--config", named], Some("other-token")).code, Some(0));
    place.write("symdex.toml", format!("server = \"{}\"\n", other.url()).as_bytes());
    assert_eq!(run(&[], None).code, Some(0), "without a token, the file may name it");
}

pub(crate) fn what_builds_leave_is_found_and_printed_first() {
    let place = Place::new(&[], no_fault);
    let (whole, stripped) = (elf(1, true), elf(9, false));
    let cxx = fs::read(debug_file("cxx")).expect("a file");
    let files: [(&str, &[u8]); 15] = [
        (
            "ios/DerivedData/App-x/Build/Products/Release-iphoneos/App.app.dSYM/Contents/Resources/DWARF/App",
            &cxx,
        ),
        (
            "app/build/intermediates/merged_native_libs/release/mergeReleaseNativeLibs/out/lib/arm64-v8a/liba.so",
            &whole,
        ),
        ("app/build/intermediates/cxx/RelWithDebInfo/1b73323r/obj/arm64-v8a/libb.so", &elf(2, true)),
        ("app/build/intermediates/stripped_native_libs/release/out/lib/arm64-v8a/liba.so", &stripped),
        ("symbols/app.android-arm64.symbols", &elf(3, true)),
        ("rust/target/.rustc_info.json", b"{}"),
        ("rust/target/release/tool", &elf(4, true)),
        ("rust/target/release/deps/tool-1234", &elf(4, true)),
        ("rust/target/release/build/c-1/build-script-build", &elf(7, true)),
        ("rust/target/release/deps/tool.dSYM/Contents/Resources/DWARF/tool", &cxx),
        ("rust/target/release/stripped", &stripped),
        ("examples/cpp/build/CMakeCache.txt", b""),
        ("examples/cpp/build/CMakeFiles/a.so", &elf(8, true)),
        ("examples/cpp/build/src/libcpp.so", &elf(5, true)),
        ("examples/cpp/src/fixture.so", &elf(6, true)),
    ];
    for (path, bytes) in files {
        place.write(path, bytes);
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("deps/tool.dSYM", place.work.path().join("rust/target/release/tool.dSYM"))
        .expect("a link");
    let mut run = upload(&place.url);
    let run = run.current_dir(place.work.path()).args(["--discover", "--json", "--dry-run"]).output();
    let run = CommandOutput::from(run.expect("symdex runs"));
    assert_eq!(run.code, Some(0), "{run:?}");
    let found: Vec<_> = run.err.lines().filter_map(|line| line.strip_prefix("found ")).collect();
    let expected = [
        "Gradle libraries of a module: ./app/build/intermediates/cxx/RelWithDebInfo/1b73323r/obj",
        "Gradle libraries: ./app/build/intermediates/merged_native_libs/release",
        "CMake: ./examples/cpp/build/src/libcpp.so",
        "dSYM: ./ios/DerivedData/App-x/Build/Products/Release-iphoneos/App.app.dSYM",
        "cargo: ./rust/target/release/tool",
        #[cfg(unix)]
        "dSYM: ./rust/target/release/tool.dSYM",
        "symbols of Flutter: ./symbols/app.android-arm64.symbols",
    ];
    assert_eq!(found, expected, "{}", run.err);
    assert_eq!(outcomes(&run), vec!["planned"; 6]);
    let none = place.upload(&[&testdata().join("demo/nothing-here")], &["--discover"]);
    assert_eq!(none.code, Some(5), "{none:?}");
    let empty = place.upload(&[folder().path()], &["--discover"]);
    assert!(empty.code == Some(3) && empty.err.contains("--discover finds no Xcode archive"), "{empty:?}");
}

pub(crate) fn every_line_of_json_conforms_to_its_schema() {
    let path = testdata().join("../docs/schema/upload.schema.json");
    let document: Value = serde_json::from_str(&fs::read_to_string(path).expect("the schema")).expect("JSON");
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.add_resource("schema.json", document).expect("a schema");
    let schema = compiler.compile("schema.json", &mut schemas).expect("a schema");
    let place = Place::new(&[], no_fault);
    let gone = place.work.path().join("gone.dSYM");
    let (cxx, fat) = (dsym("cxx"), dsym("fat"));
    let inputs: [&Path; 3] = [&cxx, &fat, &gone];
    let mut kinds = Vec::new();
    for options in
        [&["--dry-run"][..], &["--no-wait", "--debug-files"], &[], &["--force", "--readable-names"], &[]]
    {
        let run = place.upload(&inputs, &[&["--json"][..], options].concat());
        assert_eq!(run.code, Some(5), "{run:?}");
        for mut line in run.json() {
            assert!(schemas.validate(&line, schema).is_ok(), "{line}");
            kinds.extend(line.get("outcome").map(ToString::to_string));
            line["undocumented"] = json!(1);
            assert!(schemas.validate(&line, schema).is_err(), "{line}");
        }
    }
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds, [r#""answered""#, r#""planned""#, r#""received""#, r#""unchanged""#]);
}
