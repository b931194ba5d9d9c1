//! `symdex symbolicate` on folders, archives and compressed reports, and on files that are no reports.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use crate::common::{CommandOutput, folder, names_in, symbolicate, testdata};

fn demo() -> Vec<u8> {
    fs::read(testdata().join("demo/demo.crash")).expect("readable")
}

/// The demo's report, symbolicated.
fn answered(root: &Path) -> String {
    let done = symbolicate(root, &testdata().join("demo"), &[], [testdata().join("demo/demo.crash")]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    done.out
}

fn run(root: &Path, output: &Path, reports: &[&Path]) -> CommandOutput {
    symbolicate(root, &testdata().join("demo"), &["-o", output.to_str().expect("UTF-8")], reports)
}

fn write(path: &Path, text: &[u8]) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::write(path, text).expect("written");
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

/// A zip archive with these files, deflated.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut archive = rawzip::ZipArchiveWriter::new(&mut bytes);
    for (name, text) in files {
        let file = archive.new_file(name).compression_method(rawzip::CompressionMethod::DEFLATE);
        let (mut entry, config) = file.start().expect("memory");
        let encoder = flate2::write::DeflateEncoder::new(&mut entry, flate2::Compression::default());
        let mut writer = config.wrap(encoder);
        writer.write_all(text).expect("memory");
        let (encoder, data) = writer.finish().expect("memory");
        encoder.finish().expect("memory");
        entry.finish(data).expect("memory");
    }
    archive.finish().expect("memory");
    bytes
}

#[test]
fn compressed_reports_are_read_and_written_unpacked() {
    let root = folder();
    let (gz, zst) = (root.path().join("a.crash.gz"), root.path().join("b.crash.zst"));
    write(&gz, &gzip(&demo()));
    write(&zst, &zstd::encode_all(&demo()[..], 1).expect("memory"));
    let out = root.path().join("out");
    let done = run(root.path(), &out, &[&gz, &zst]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(names_in(&out), ["a.crash", "b.crash"]);
    for name in names_in(&out) {
        assert_eq!(fs::read_to_string(out.join(name)).expect("there"), answered(root.path()));
    }
    write(&gz, &gzip(&demo())[..200]);
    let done = run(root.path(), &out, &[&gz]);
    assert_eq!(done.code, Some(4), "{}", done.err);
}

#[test]
fn the_reports_of_a_folder_and_of_an_archive_are_read() {
    let root = folder();
    let reports = root.path().join("reports");
    write(&reports.join("one.crash"), &demo());
    write(&reports.join("below/two.crash"), &demo());
    write(&reports.join(".DS_Store"), b"x");
    write(&reports.join("three.zip"), &zip(&[("in/three.crash", &demo()), ("__MACOSX/._three.crash", b"x")]));
    let out = root.path().join("out");
    let done = run(root.path(), &out, &[&reports]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.contains("3 reports: "), "{}", done.err);
    assert_eq!(names_in(&out), ["one.crash", "three.crash", "two.crash"]);
    assert_eq!(fs::read_to_string(out.join("three.crash")).expect("there"), answered(root.path()));
    let json = symbolicate(root.path(), &testdata().join("demo"), &["--json"], [reports.join("three.zip")]);
    assert!(json.json()[0]["report"].as_str().expect("a path").ends_with("three.zip/in/three.crash"));
    let empty = root.path().join("empty");
    fs::create_dir_all(&empty).expect("a folder");
    let done = run(root.path(), &out, &[&empty]);
    assert_eq!(done.code, Some(5), "{}", done.err);
}

#[test]
fn reports_of_an_archive_are_read_and_entries_that_are_refused_are_named() {
    let root = folder();
    let (archive, out) = (root.path().join("a.zip"), root.path().join("out"));
    let mut bytes = zip(&[("in/a.crash.gz", &gzip(&demo())), ("xx/up.crash", &demo())]);
    // The writer of archives writes no such names.
    while let Some(at) = bytes.windows(5).position(|name| name == b"xx/up") {
        bytes[at..at + 2].copy_from_slice(b"..");
    }
    write(&archive, &bytes);
    let done = run(root.path(), &out, &[&archive]);
    assert_eq!(done.code, Some(6), "{}", done.err);
    assert!(done.err.contains("up.crash: the entry is skipped: the name has the part"), "{}", done.err);
    assert_eq!(names_in(&out), ["a.crash"]);
    assert_eq!(fs::read_to_string(out.join("a.crash")).expect("there"), answered(root.path()));
    let whole = zip(&[("a.crash", &demo())]);
    // A byte of the data, which begins after a header of 30 bytes and the name.
    let mut damaged = whole.clone();
    damaged[60] ^= 0xff;
    for wrong in [&damaged[..], &whole[..whole.len() - 30]] {
        write(&archive, wrong);
        let done = run(root.path(), &root.path().join("none"), &[&archive]);
        assert_eq!(done.code, Some(4), "{}", done.err);
    }
}

#[test]
fn the_logs_of_a_crash_point_are_read_and_its_other_files_are_not() {
    let root = folder();
    let point = root.path().join("a.xccrashpoint");
    write(&point.join("DistributionInfo.json"), b"{}");
    write(&point.join("Filters/Filter_1/Logs/x.crash"), &demo());
    write(&point.join("Filters/Filter_1/PointInfo.json"), b"{}");
    let out = root.path().join("out");
    let done = run(root.path(), &out, &[&point]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(names_in(&out), ["x.crash"]);
}

#[test]
fn a_refused_report_is_copied_unchanged_to_the_output_folder_and_counted() {
    let root = folder();
    let (report, other) = (root.path().join("in/a.crash"), root.path().join("in/notes.txt"));
    write(&report, &demo());
    write(&other, b"no report\r\n\xff");
    let out = root.path().join("out");
    let done = run(root.path(), &out, &[&report, &other]);
    assert_eq!(done.code, Some(6), "{}", done.err);
    assert!(done.err.contains("symdex: 1 file copied unchanged: not read as a report\n"), "{}", done.err);
    assert_eq!(fs::read(out.join("notes.txt")).expect("there"), b"no report\r\n\xff");
    assert_eq!(fs::read_to_string(out.join("a.crash")).expect("there"), answered(root.path()));
}

#[test]
fn debug_files_and_indexes_among_the_reports_answer_and_other_files_are_counted() {
    let root = folder();
    let inside = root.path().join("in");
    write(&inside.join("a.crash"), &demo());
    write(&inside.join("README.md"), b"# Crashes of last week\n");
    let dsym = testdata().join("demo/DemoApp.app.dSYM");
    let other = testdata().join("dsyms/cxx.dSYM");
    let done = symbolicate(&root.path().join("first"), &other, &[], [&inside, &dsym]);
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(done.err.contains(&format!("1 file not read as a report: {}/README.md\n", inside.display())));
    assert!(done.out.contains("(Engine.cpp:16)"), "{}", done.out);

    let answered_in = |store: &str, input: &Path| {
        let done = symbolicate(&root.path().join(store), &other, &["-q"], [input]);
        assert_eq!((done.code, done.err.as_str()), (Some(3), ""));
        assert!(done.out.contains("(Engine.cpp:16)"), "{}", done.out);
    };
    let file = fs::read(dsym.join("Contents/Resources/DWARF/DemoApp")).expect("readable");
    // A folder without a report has what answers those of another input.
    let debug_files = root.path().join("dsyms");
    write(&debug_files.join("App.dSYM/Contents/Resources/DWARF/DemoApp"), &file);
    let done = symbolicate(&root.path().join("apart"), &other, &[], [&inside.join("a.crash"), &debug_files]);
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(done.out.contains("(Engine.cpp:16)"), "{}", done.out);
    write(&inside.join("DemoApp.app.dSYM/Contents/Resources/DWARF/DemoApp"), &file);
    answered_in("second", &inside);
    let archive = root.path().join("all.zip");
    write(&archive, &zip(&[("a.crash", &demo()), ("App.dSYM/Contents/Resources/DWARF/DemoApp", &file)]));
    answered_in("third", &archive);
}

#[test]
fn a_tombstone_that_could_not_be_unwound_is_said_to_have_no_frames() {
    let root = folder();
    let tombstone = root.path().join("tombstone_00");
    let text = "*** *** ***\nABI: 'arm64'\npid: 7, tid: 9, name: worker  >>> com.app <<<\nFailed to unwind\n";
    write(&tombstone, text.as_bytes());
    let done = symbolicate(root.path(), &testdata().join("demo"), &[], [&tombstone]);
    assert_eq!((done.code, done.out.as_str()), (Some(3), text), "{}", done.err);
    assert!(
        done.err.contains("symdex: 1 report of the format android without frames that have an address\n"),
        "{}",
        done.err
    );
}

/// What `symdex symbolicate` says of `text`, and its exit code.
fn said(text: &[u8], more: &[&str]) -> CommandOutput {
    let root = folder();
    let report = root.path().join("report");
    write(&report, text);
    symbolicate(root.path(), &testdata().join("demo"), more, [&report])
}

#[test]
fn frames_and_reports_that_are_not_read_are_said_and_decide_the_exit_code() {
    let ips = |frames: &str| {
        format!(
            "{{\"usedImages\":[{{\"base\":4096,\"size\":16}}],\"threads\":[{{\"frames\":[{frames}]}}]}}\n"
        )
    };
    let [good, bad] = ["16", "\"x\""].map(|offset| format!("{{\"imageOffset\":{offset},\"imageIndex\":0}}"));
    let done = said(ips(&format!("{bad},{good}")).as_bytes(), &[]);
    assert!(
        done.err.contains("symdex: 1 frame not read: the address or the image is not a whole number\n"),
        "{}",
        done.err
    );
    assert_eq!(done.code, Some(3));
    let two = demo().repeat(2);
    let done = said(&two, &[]);
    let expected = format!(
        "symdex: {} bytes after the end of 1 report not read: put each report in its own file\n",
        two.len() / 2
    );
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(done.err.contains(&expected), "{}", done.err);
    let json = said(&two, &["--json"]).json();
    assert_eq!(
        json[0]["unread"],
        serde_json::json!({"frames": 0, "malformed_frames": 0, "bytes": two.len() / 2})
    );
    assert_eq!(said(&demo(), &["--json"]).json()[0].get("unread"), None);
}

#[test]
fn a_file_in_the_place_of_a_report_is_said_to_need_one() {
    let root = folder();
    let dsym = testdata().join("dsyms/inline-dwarf4.dSYM");
    let binary = dsym.join("Contents/Resources/DWARF/inline-dwarf4");
    let index = testdata().join("golden/v1/inline-dwarf4-1.symdex");
    for file in [&dsym, &binary, &index] {
        let done = symbolicate(root.path(), &testdata().join("demo"), &[], [file]);
        assert_eq!((done.code, done.out.as_str()), (Some(6), ""), "{}", done.err);
        let expected = "no report, only debug files and indexes; name a report, too";
        assert!(done.err.contains(&format!("{}: {expected}\n", file.display())), "{}", done.err);
    }
    let compressed = said(&gzip(&fs::read(&binary).expect("readable")), &[]);
    let expected = "a debug file, not a report; pass it with --dsym\n";
    assert_eq!(compressed.code, Some(6));
    assert!(compressed.err.contains(expected), "{}", compressed.err);
    let notes = said(b"Incident Identifier: 1\nException Type: EXC_CRASH\n", &[]);
    assert!(notes.err.contains("; nearest: apple-crash (has `Incident Identifier:`"), "{}", notes.err);
    assert_eq!(said(b"", &[]).code, Some(6));
}

/// Frames name their images, and nothing says where these were loaded.
#[test]
fn a_report_of_which_nothing_is_answered_never_passes() {
    let lldb = "frame #0: 0x104990158 DemoKit`___lldb_unnamed_symbol12 + 20\n\
                frame #1: 0x1049902f0 DemoKit`___lldb_unnamed_symbol13 + 76\n";
    let done = said(lldb.as_bytes(), &[]);
    assert_eq!((done.code, done.out.as_str()), (Some(3), lldb), "{}", done.err);
    let line = "symdex: missing: DemoKit: 2 frames: the report does not state where it was loaded; \
                add the answer of `image list`\n";
    assert!(done.err.contains(line) && !done.err.contains("--match-by-name"), "{}", done.err);
    let json = said(lldb.as_bytes(), &["--format", "json"]).json();
    let frame = &json[0]["threads"][0]["frames"][0];
    assert_eq!((&frame["status"], &frame["image"]), (&"unknown_image".into(), &0.into()));
    let totals = &json[0]["totals"];
    assert_eq!((&totals["unresolved_app"], &totals["unresolved_system"]), (&2.into(), &0.into()));
    // A stack of the system, and addresses alone.
    for (text, why) in [
        (
            "0  libdyld.dylib  0x18ec897a4 ???\n",
            "symdex: missing: libdyld.dylib: 1 frame: the report does not state where it was loaded; ",
        ),
        (
            "*** First throw call stack:\n(0x18ec897a4 0x1049902f0)\n0  ???  0x0 ???\n",
            "unresolved: 3 frames in no image: ",
        ),
    ] {
        let done = said(text.as_bytes(), &[]);
        assert_eq!(done.code, Some(3), "{}", done.err);
        assert!(done.err.contains(why), "{}", done.err);
    }
    let named = said(b"0  App  0x1049902f0 main + 4\n", &[]);
    assert_eq!(named.code, Some(0), "{}", named.err);
}
