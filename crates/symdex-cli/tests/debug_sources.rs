//! `symdex symbolicate --debug-source`: debug files that are fetched.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{CommandOutput, command, demo_files, folder, indexes_in, symbolicate, testdata};
use symdex_testkit::images::debug_file::{BASE, Die, Elf, Unit, debug_sections};
use symdex_testkit::web::{Reply, WebServer};

fn crash() -> PathBuf {
    testdata().join("demo/demo.crash")
}

/// The demo's crash with debug files on the command line.
fn expected(options: &[&str]) -> CommandOutput {
    let root = folder();
    symbolicate(root.path(), &testdata().join("demo"), options, [crash()])
}

/// `symdex symbolicate REPORT` with these sources and the store in `store`.
fn fetching(report: &Path, sources: &[&str], store: &Path, options: &[&str]) -> CommandOutput {
    let mut run = command();
    run.arg("symbolicate").arg(report).args(options).arg("--store").arg(store);
    sources.iter().for_each(|source| _ = run.args(["--debug-source", source]));
    CommandOutput::from(run.output().expect("the command starts"))
}

/// A server with the demo's debug files, compressed, in the layout `unified`.
fn unified() -> WebServer {
    let files = demo_files().map(|(id, path)| {
        let bytes = fs::read(path).expect("a debug file");
        (format!("/{}/{}/debuginfo", &id[..2], &id[2..]), zstd::encode_all(&bytes[..], 3).expect("memory"))
    });
    WebServer::start(move |request| match files.iter().find(|(path, _)| *path == request.path) {
        Some((_, bytes)) => Reply::Body(bytes.clone()),
        None => Reply::Status(404),
    })
}

#[test]
fn fetched_files_answer_as_files_of_the_command_line_and_only_once() {
    let (server, store) = (unified(), folder());
    let source = format!("unified+{}", server.url());
    let done = fetching(&crash(), &[&source], store.path(), &[]);
    let expected = expected(&[]);
    assert_eq!((done.code, &done.out), (Some(0), &expected.out), "{}", done.err);
    let ids = demo_files().map(|(id, _)| format!("{id}.symdex"));
    let mut sorted = ids.to_vec();
    sorted.sort();
    assert_eq!(indexes_in(store.path()), sorted);
    let inspected =
        crate::common::symdex(["inspect".as_ref(), store.path().join(format!("4c/{}", ids[1])).as_os_str()]);
    assert!(inspected.out.contains("DemoKit"), "the index has the image's name: {}", inspected.out);

    let asked = server.paths().len();
    let again = fetching(&crash(), &[&source], store.path(), &[]);
    assert_eq!(again.out, expected.out);
    let found =
        |paths: &[String]| ids.iter().filter(|id| paths.iter().any(|path| path.contains(&id[2..32]))).count();
    assert_eq!((found(&server.paths()[..asked]), found(&server.paths()[asked..])), (3, 0));
}

#[test]
fn a_folder_is_searched_in_all_layouts() {
    let (source, store) = (folder(), folder());
    let [app, kit, plain] = demo_files();
    let lldb = "4C4C/4479/5555/3144/A170/308419376AFA".to_owned();
    let ssqp = format!("_.dwarf/mach-uuid-sym-{}/_.dwarf", kit.0);
    let unified = format!("{}/{}/executable", &plain.0[..2], &plain.0[2..]);
    for (key, (_, path)) in [(lldb, app), (ssqp, kit), (unified, plain)] {
        let to = source.path().join(key);
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::copy(path, to).expect("copied");
    }
    let url = source.path().to_str().expect("text");
    let done = fetching(&crash(), &[url], store.path(), &[]);
    assert_eq!((done.code, done.out), (Some(0), expected(&[]).out), "{}", done.err);
}

#[test]
fn the_file_of_another_image_is_not_used() {
    let [app, kit, _] = demo_files();
    let wrong = WebServer::of(format!("{}/debuginfo", &app.0[2..]), fs::read(kit.1).expect("a debug file"));
    let (right, store) = (unified(), folder());
    let [wrong_url, right_url] = [&wrong, &right].map(|server| format!("unified+{}", server.url()));
    let done = fetching(&crash(), &[&wrong_url], store.path(), &[]);
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.err.contains("this is the file of another image"), "{}", done.err);
    assert_eq!(indexes_in(store.path()), [""; 0]);
    let json = fetching(&crash(), &[&wrong_url], store.path(), &["--json"]).json();
    let images = json[0]["images"].as_array().expect("a list");
    let status = |id: &str| {
        let same = |image: &&serde_json::Value| {
            image["id"].as_str().is_some_and(|other| other.replace('-', "").eq_ignore_ascii_case(id))
        };
        images.iter().find(same).expect("the image")["status"].clone()
    };
    assert_eq!((status(app.0), status(kit.0)), ("fetching_failed".into(), "missing".into()));
    let done = fetching(&crash(), &[&wrong_url, &right_url], store.path(), &[]);
    assert_eq!((done.code, done.out), (Some(0), expected(&[]).out), "{}", done.err);
}

#[test]
fn without_a_store_that_can_be_written_the_indexes_stay_in_memory() {
    let (server, empty) = (unified(), WebServer::start(|_| Reply::Status(404)));
    let store = format!("{}/indexes", empty.url());
    let source = format!("unified+{}", server.url());
    let done = fetching(&crash(), &[&source], store.as_ref(), &[]);
    assert_eq!((done.code, done.out), (Some(0), expected(&[]).out), "{}", done.err);
    assert!(done.err.contains("kept in memory"), "{}", done.err);
}

#[test]
fn needs_fetches_nothing() {
    let (server, store) = (unified(), folder());
    let source = format!("unified+{}", server.url());
    let done = fetching(&crash(), &[&source], store.path(), &["--needs"]);
    assert_eq!((done.code, server.paths().len()), (Some(3), 0), "{}", done.err);
}

/// A report of Android with a frame in the image with this build id.
fn tombstone(folder: &Path, build_id: &str) -> PathBuf {
    let path = folder.join("tombstone");
    let frame =
        format!("      #00 pc 0000000100001080  /data/app/lib/arm64/libapp.so (BuildId: {build_id})\n");
    let text = format!(
        "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\nABI: 'arm64'\n\
         signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0\n\nbacktrace:\n{frame}"
    );
    fs::write(&path, text).expect("written");
    path
}

#[test]
fn the_servers_of_debuginfod_urls_are_asked() {
    let unit = Unit::new((0x1000, 0x1100)).child(Die::function("fetched_one", (0x1000, 0x1100)));
    let elf = Elf { base: BASE, build_id: Some(vec![0xab; 20]), ..Elf::default() };
    let server = WebServer::of("/debuginfo".to_owned(), elf.debug(debug_sections(&[unit])).bytes());
    let (build_id, store) = ("ab".repeat(20), folder());
    let report = tombstone(store.path(), &build_id);
    let run = |name: &str, value: &str| {
        let mut run = command();
        run.arg("symbolicate").arg(&report).arg("--store").arg(store.path().join("indexes"));
        CommandOutput::from(run.env(name, value).output().expect("the command starts"))
    };
    let off = run("SYMDEX_DEBUG_SOURCE", "");
    assert!(!off.out.contains("fetched_one"), "{}", off.out);
    let done = run("DEBUGINFOD_URLS", &format!("ima:enforcing {}", server.url()));
    assert!(done.out.contains("fetched_one"), "{}{}", done.out, done.err);
    // The debug file has no lines. Perhaps the binary has some.
    let asked = ["debuginfo", "executable"].map(|kind| format!("/buildid/{build_id}/{kind}"));
    assert_eq!(server.paths(), asked);
    let again = run("DEBUGINFOD_URLS", &format!("ima:enforcing {}", server.url()));
    assert_eq!((again.out, server.paths().len()), (done.out, 2), "it is fetched once: {}", again.err);
    let wrong = run("DEBUGINFOD_URLS", "ftp://host");
    assert!(wrong.code == Some(2) && wrong.err.contains("DEBUGINFOD_URLS: ftp"), "{}", wrong.err);
}

#[test]
fn secrets_on_the_command_line_are_refused_and_those_of_the_environment_are_not_shown() {
    let store = folder();
    let done = fetching(&crash(), &["https://me:secret@localhost/x"], store.path(), &[]);
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("SYMDEX_DEBUG_SOURCE") && !done.err.contains("secret"), "{}", done.err);
    let server = WebServer::start(|_| Reply::Status(403));
    let url = format!("unified+http://me:secret@{}/?token=secret", server.authority());
    let mut run = command();
    run.arg("symbolicate").arg(crash()).arg("--store").arg(store.path()).env("SYMDEX_DEBUG_SOURCE", url);
    let done = CommandOutput::from(run.output().expect("the command starts"));
    assert!(done.err.contains("403") && !done.err.contains("secret"), "{}", done.err);
}
