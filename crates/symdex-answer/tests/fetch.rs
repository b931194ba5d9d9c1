//! Fetching from folders and web servers.

use std::fs;
use std::path::Path;
use std::time::Duration;

use symdex_answer::fetch::{DebugSources, FetchError, FetchOptions, FileKind, Layout, Verdict, WantedImage};
use symdex_testkit::web::{Gate, Reply, WebServer};

const BUILD_ID: &str = "0123456789abcdef0123456789abcdef01234567";
const UUID: &str = "0c37c502aba03641a08f84c794684f36";

fn elf(len: usize) -> Vec<u8> {
    let mut bytes = b"\x7fELF".to_vec();
    bytes.resize(len, 7);
    bytes
}

fn wanted(id: &str) -> WantedImage {
    let mut wanted = WantedImage::new(id.parse().expect("an id"));
    wanted.name = Some("App".to_owned());
    wanted
}

fn sources(urls: &[&str], options: &FetchOptions) -> DebugSources {
    let urls: Vec<_> = urls.iter().map(|url| url.parse().expect("a URL")).collect();
    DebugSources::open(&urls, options).expect("opened")
}

/// The bytes of the first file, and where it was.
fn fetch(sources: &DebugSources, id: &str) -> Result<Option<(Vec<u8>, String)>, FetchError> {
    sources.fetch(&wanted(id), |file| {
        let bytes = fs::read(file.path()).expect("it is there");
        assert_eq!(bytes.len() as u64, file.size());
        Verdict::Used((bytes, file.location().to_owned()))
    })
}

fn no_retries() -> FetchOptions {
    FetchOptions::new().retries(0)
}

fn put(folder: &Path, key: &str, bytes: &[u8]) {
    let path = folder.join(key);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, bytes).expect("written");
}

#[test]
fn a_folder_in_each_layout_has_the_file() {
    let macho = b"\xcf\xfa\xed\xfe rest".to_vec();
    for (layout, id, key, file) in [
        ("unified", BUILD_ID, "01/23456789abcdef0123456789abcdef01234567/debuginfo", elf(9)),
        ("unified", UUID, "0c/37c502aba03641a08f84c794684f36/executable", macho.clone()),
        ("lldb", UUID, "0C37/C502/ABA0/3641/A08F/84C794684F36", macho.clone()),
        ("lldb", UUID, "0C37/C502/ABA0/3641/A08F/84C794684F36.app", macho.clone()),
        ("gdb", BUILD_ID, "01/23456789abcdef0123456789abcdef01234567.debug", elf(9)),
        ("gdb", BUILD_ID, ".build-id/01/23456789abcdef0123456789abcdef01234567.debug", elf(9)),
        ("debuginfod", BUILD_ID, "buildid/0123456789abcdef0123456789abcdef01234567/debuginfo", elf(9)),
        ("ssqp", UUID, "_.dwarf/mach-uuid-sym-0c37c502aba03641a08f84c794684f36/_.dwarf", macho),
        ("ssqp", BUILD_ID, "app/elf-buildid-0123456789abcdef0123456789abcdef01234567/app", elf(9)),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        put(folder.path(), key, &file);
        let path = folder.path().display();
        for url in [format!("{layout}+dir:{path}"), path.to_string()] {
            let found = fetch(&sources(&[&url], &no_retries()), id).expect("no failure");
            let (bytes, location) = found.unwrap_or_else(|| panic!("{url} has {key}"));
            assert!(bytes == file && location.ends_with(key), "{location}");
        }
        for other in Layout::ALL.into_iter().filter(|other| other.name() != layout) {
            let url = format!("{other}+{path}");
            assert_eq!(fetch(&sources(&[&url], &no_retries()), id), Ok(None), "{url} {key}");
        }
    }
}

#[test]
fn a_debuginfod_server_is_asked_for_debug_information_and_then_for_the_binary() {
    let server = WebServer::of("/executable".to_owned(), elf(3000));
    let sources = sources(&[&format!("{}/files/", server.url())], &no_retries());
    let (bytes, location) = fetch(&sources, BUILD_ID).expect("no failure").expect("found");
    assert!(
        bytes == elf(3000) && location == format!("{}/files/buildid/{BUILD_ID}/executable", server.url())
    );
    let asked = ["debuginfo", "executable"].map(|part| format!("/files/buildid/{BUILD_ID}/{part}"));
    assert_eq!(server.paths(), asked);
    let mut apple = wanted(UUID);
    apple.kind = Some(FileKind::MachO);
    let found = sources.fetch(&apple, |_| Verdict::Used(())).expect("no failure");
    assert_eq!((found, server.paths().len()), (None, 2), "debuginfod has no Mach-O files");
}

#[test]
fn compressed_files_files_in_chunks_and_redirects_arrive() {
    let file = elf(500_000);
    let zstd = zstd::encode_all(&file[..], 3).expect("memory");
    let other = WebServer::start(move |_| Reply::Chunked(zstd.clone()));
    let to = format!("{}/moved", other.url());
    let server = WebServer::start(move |_| Reply::Redirect(to.clone()));
    let (bytes, _) =
        fetch(&sources(&[&server.url()], &no_retries()), BUILD_ID).expect("fetched").expect("there");
    assert!(bytes == file);
    assert_eq!(other.paths(), ["/moved"]);
}

#[test]
fn redirects_end() {
    let server = WebServer::start(|request| Reply::Redirect(format!("{}/x", request.path)));
    let error = fetch(&sources(&[&server.url()], &no_retries()), BUILD_ID).expect_err("too many");
    assert!(error.to_string().contains("too many redirects"), "{error}");
    assert!(server.paths().len() <= 2 * 7, "{:?}", server.paths());
}

#[test]
fn failures_that_pass_are_repeated_and_others_are_not() {
    let server = WebServer::start(|request| match request.number {
        0 => Reply::Status(503),
        1 => Reply::Status(429),
        2 => Reply::Cut(elf(100_000)),
        _ => Reply::Body(elf(100_000)),
    });
    let found = fetch(&sources(&[&server.url()], &FetchOptions::new()), BUILD_ID).expect("fetched");
    assert!(found.is_some_and(|(bytes, _)| bytes == elf(100_000)));
    assert_eq!(server.paths().len(), 4);

    let server = WebServer::start(|_| Reply::Status(403));
    let error = fetch(&sources(&[&server.url()], &FetchOptions::new()), BUILD_ID).expect_err("forbidden");
    assert!(error.to_string().contains("403"), "{error}");
    assert_eq!(server.paths().len(), 2, "debuginfo and executable, once each");
}

#[test]
fn a_server_that_fails_is_left_alone_and_the_next_source_answers() {
    let broken = WebServer::start(|_| Reply::Status(500));
    let folder = tempfile::tempdir().expect("a folder");
    put(folder.path(), &format!("buildid/{BUILD_ID}/debuginfo"), &elf(9));
    let folder = folder.path().display().to_string();
    let options = FetchOptions::new().retries(1).pause(Duration::from_secs(3600));
    let sources = sources(&[&broken.url(), &folder], &options);
    for _ in 0..6 {
        assert!(fetch(&sources, BUILD_ID).expect("the folder has it").is_some());
    }
    assert_eq!(broken.paths().len(), 3 * 2, "three failures, each tried twice");
    let error = fetch(&sources, &BUILD_ID.replace("01", "02")).expect_err("nobody has it for certain");
    assert!(error.to_string().contains("not asked for a while"), "{error}");
}

#[test]
fn a_source_that_does_not_answer_in_time_fails() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = WebServer::start(move |_| Reply::Behind(held.clone(), Box::new(Reply::Status(404))));
    let options = no_retries().timeout(Duration::from_millis(100));
    let error = fetch(&sources(&[&server.url()], &options), BUILD_ID).expect_err("no answer");
    gate.open();
    assert!(error.to_string().contains("time"), "{error}");
}

#[test]
fn files_over_the_limit_are_refused_before_and_while_they_arrive() {
    for (reply, requests) in
        [(Reply::Length(1 << 40), 2), (Reply::Chunked(elf(200_000)), 2), (Reply::Body(elf(200_000)), 2)]
    {
        let server = WebServer::start(move |_| reply.clone());
        let temporary = tempfile::tempdir().expect("a folder");
        let options = FetchOptions::new().max_size(100_000).temporary(temporary.path());
        let error = fetch(&sources(&[&server.url()], &options), BUILD_ID).expect_err("too large");
        assert!(error.to_string().contains("100000 bytes"), "{error}");
        assert_eq!(server.paths().len(), requests, "it is not tried again");
        assert_eq!(fs::read_dir(temporary.path()).expect("a folder").count(), 0, "nothing is left");
    }
}

#[test]
fn pages_and_refused_files_lead_to_the_next_source() {
    let page = WebServer::start(|_| Reply::Body(b"<html>Log in".to_vec()));
    let wrong = WebServer::start(|_| Reply::Body(elf(10)));
    let right = WebServer::start(|_| Reply::Body(elf(20)));
    let sources = sources(&[&page.url(), &wrong.url(), &right.url()], &no_retries());
    let accept = |size| {
        sources.fetch(&wanted(BUILD_ID), move |file| match file.size() {
            found if found == size => Verdict::Used(found),
            found => Verdict::Refused(format!("it has {found} bytes")),
        })
    };
    assert_eq!(accept(20), Ok(Some(20)));
    assert_eq!(right.paths().len(), 1);
    let error = accept(30).expect_err("no source has it");
    let text = error.to_string();
    assert_eq!(error.failures().len(), 6);
    assert!(text.contains("no debug file") && text.contains("it has 10 bytes"), "{text}");
}

#[test]
fn credentials_are_sent_and_not_shown() {
    let server = WebServer::start(|request| match request.headers.get("authorization") {
        Some(basic) if basic == "Basic bWU6c2VjcmV0" && request.path.ends_with("?token=secret") => {
            Reply::Body(elf(9))
        }
        _ => Reply::Status(401),
    });
    let url = |user: &str| format!("http://{user}@{}/x?token=secret", server.authority());
    let (_, location) =
        fetch(&sources(&[&url("me:secret")], &no_retries()), BUILD_ID).expect("allowed").expect("there");
    assert!(!location.contains("secret"), "{location}");
    let error = fetch(&sources(&[&url("me:secrets")], &no_retries()), BUILD_ID).expect_err("refused");
    assert!(error.to_string().contains("401") && !error.to_string().contains("secret"), "{error}");
    let closed = "http://me:secret@127.0.0.1:9/x?token=secret".to_owned();
    let error = fetch(&sources(&[&closed], &no_retries()), BUILD_ID).expect_err("nobody listens");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn temporary_files_end_with_their_value_and_files_of_a_folder_stay() {
    let (folder, temporary) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let key = format!("buildid/{BUILD_ID}/debuginfo");
    put(folder.path(), &key, &zstd::encode_all(&elf(9)[..], 1).expect("memory"));
    let url = folder.path().display().to_string();
    let options = no_retries().temporary(temporary.path());
    let sources = sources(&[&url], &options);
    let left = || fs::read_dir(temporary.path()).expect("a folder").count();
    let during = sources.fetch(&wanted(BUILD_ID), |_file| Verdict::Used(left())).expect("fetched");
    assert_eq!((during, left()), (Some(1), 0));
    put(folder.path(), &key, &elf(9));
    assert_eq!(sources.fetch(&wanted(BUILD_ID), |_file| Verdict::Used(left())), Ok(Some(0)));
    assert!(folder.path().join(&key).exists());
}
