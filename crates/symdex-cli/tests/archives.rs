//! `symdex build`: archives as inputs.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::{
    CommandOutput, command, debug_file, folder, names_in, testdata, without_debug_information,
};
use symdex_testkit::images::archive::{ZipEntry, gzip, tar_of, zip, zip_of};

const IN_BUNDLE: &str = "App.xcarchive/dSYMs/cxx.dSYM/Contents/Resources/DWARF/cxx";
fn read(name: &str) -> Vec<u8> {
    fs::read(debug_file(name)).expect("there")
}

fn build(inputs: &[&Path], out: &Path, more: &[&str]) -> CommandOutput {
    let mut run = command();
    run.arg("build").args(inputs).arg("-o").arg(out).args(more);
    CommandOutput::from(run.output().expect("the command starts"))
}

fn write(root: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = root.join(name);
    fs::write(&path, bytes).expect("written");
    path
}

fn contents(out: &Path) -> Vec<(String, Vec<u8>)> {
    names_in(out).into_iter().map(|name| (name.clone(), fs::read(out.join(name)).expect("there"))).collect()
}

#[test]
fn archives_of_every_kind_make_the_indexes_of_the_folder() {
    let root = folder();
    let (cxx, fat) = (read("cxx"), read("fat"));
    let files: &[(&str, &[u8])] = &[
        (IN_BUNDLE, &cxx),
        ("__MACOSX/App.xcarchive/dSYMs/cxx.dSYM/Contents/Resources/DWARF/._cxx", b"junk"),
        ("App.xcarchive/Info.plist", b"<plist>"),
        ("fat", &fat),
        ("Main.class", b"\xca\xfe\xba\xbe\0\0\0\x34"),
        ("unlinked.o", b"\xcf\xfa\xed\xfe\x0c\0\0\x01\0\0\0\0\x01\0\0\0"),
    ];
    let (zipped, tar) = (zip_of(files), tar_of(files));
    let zstd = zstd::encode_all(&tar[..], 3).expect("in memory");
    let nested = zip_of(&[("Payload/appDsyms.zip", &zipped)]);
    let expected = root.path().join("expected");
    assert_eq!(build(&[&debug_file("cxx"), &debug_file("fat")], &expected, &[]).code, Some(0));
    let archives = [
        ("a.zip", &zipped),
        ("app.ipa", &nested),
        ("a.tar", &tar),
        ("a.tgz", &gzip(&tar)),
        ("a.tar.zst", &zstd),
        ("called.txt", &zipped),
    ];
    for (name, bytes) in archives {
        let archive = write(root.path(), name, bytes);
        let out = root.path().join(format!("{name}.indexes"));
        let built = build(&[&archive], &out, &["--json"]);
        assert_eq!((built.code, built.err.as_str()), (Some(0), ""), "{name}");
        assert_eq!(names_in(&out), names_in(&expected), "{name}: {}", built.out);
        assert!(contents(&out) == contents(&expected), "{name}");
        let file = built.images()[0]["file"].as_str().expect("a file").to_owned();
        let inner = if name == "app.ipa" { ": Payload/appDsyms.zip" } else { "" };
        assert_eq!(file, format!("{}{inner}: {IN_BUNDLE}", archive.display()));
    }
}

#[test]
fn an_archive_or_a_debug_file_is_read_from_standard_input() {
    let root = folder();
    let run = |input: &[u8]| {
        let mut child = command()
            .args(["build", "-", "-o"])
            .arg(root.path().join("out"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        child.stdin.take().expect("piped").write_all(input).expect("written");
        CommandOutput::from(child.wait_with_output().expect("ended"))
    };
    let built = run(&zip_of(&[("x/cxx", &read("cxx"))])).ok();
    assert!(built.contains("arm64  cxx\n"), "the entry names the image: {built}");
    assert_eq!(names_in(&root.path().join("out")).len(), 1);
    let built = run(&read("inline-dwarf4")).ok();
    assert!(built.contains("arm64  standard input\n"), "a debug file alone: {built}");
    let failed = run(b"no archive");
    assert_eq!(failed.code, Some(6), "{}", failed.err);
    assert!(failed.err.contains("standard input: not a debug file: a text file"), "{}", failed.err);
}

#[test]
fn files_of_one_image_are_joined_across_archives() {
    let root = folder();
    let stripped = without_debug_information(&debug_file("cxx"));
    let ipa = write(root.path(), "App.ipa", &zip_of(&[("Payload/App.app/App", &stripped)]));
    let dsyms = write(root.path(), "dsyms.zip", &zip_of(&[(IN_BUNDLE, &read("cxx"))]));
    let built = build(&[&ipa, &dsyms], &root.path().join("out"), &["--json"]);
    let [image] = &built.images()[..] else { panic!("one image: {}", built.out) };
    assert_eq!(image["name"], "App", "reports have the name of the binary");
    assert_eq!(image["joined"][0], format!("{}: Payload/App.app/App", ipa.display()));
    // Each archive is a batch of its own: nothing is joined, and the better index stays.
    let apart = build(&[&ipa, &dsyms], &root.path().join("apart"), &["--json", "--max-temporary", "1"]);
    assert_eq!(
        (apart.code, apart.images().len(), names_in(&root.path().join("apart")).len()),
        (Some(0), 2, 1)
    );
}

#[test]
fn hostile_archives_fail_by_name_and_lose_nothing_of_the_others() {
    let root = folder();
    let cxx = read("cxx");
    let entry = |name: &str| ZipEntry::deflated(name, &cxx);
    let bomb = [&cxx[..], &vec![0; 40 << 20]].concat();
    let many: Vec<_> = (0..9).map(|n| ZipEntry::stored(&format!("{n}"), b"x")).collect();
    let hostile = [
        ("up", zip(&[entry("../cxx")]), 6, "../cxx: the entry is skipped: the name has the part \"..\""),
        ("absolute", zip(&[entry("/cxx")]), 6, "the name is absolute"),
        ("twice", zip(&[entry("cxx"), entry("cxx")]), 6, "an earlier entry has the same name"),
        (
            "size",
            zip(&[ZipEntry { size: 9, ..entry("cxx") }]),
            4,
            "more bytes than the 9 that the archive states",
        ),
        ("bomb", zip_of(&[("cxx", &bomb)]), 6, "the limit of --max-ratio"),
        ("gzip-bomb", gzip(&tar_of(&[("cxx", &bomb)])), 6, "the limit of --max-ratio"),
        ("many", zip(&many), 6, "more than 5 entries, the limit of --max-entries"),
        ("cut", zip(&[entry("cxx")])[..900].to_vec(), 4, "cut short"),
        (
            "shared",
            zip(&[entry("a"), ZipEntry { offset: Some(0), ..entry("b") }]),
            4,
            "that of another entry",
        ),
        ("none", zip_of(&[("notes.txt", b"notes")]), 5, "no debug file in this archive"),
    ];
    let good = write(root.path(), "good.zip", &zip_of(&[("fat", &read("fat"))]));
    for (name, bytes, code, message) in hostile {
        let archive = write(root.path(), name, &bytes);
        let out = root.path().join(format!("{name}.out"));
        let built = build(&[&archive, &good], &out, &["--max-entries", "5"]);
        assert_eq!(built.code, Some(code), "{name}: {}", built.err);
        assert!(built.err.contains(&format!("{}: ", archive.display())), "{name}: {}", built.err);
        assert!(built.err.contains(message), "{name}: {}", built.err);
        assert!(names_in(&out).len() >= 3, "the other archive is built: {name}");
    }
    // What leads out of the archive was not written.
    assert!(!root.path().join("cxx").exists() && !Path::new("/cxx").exists());
}

#[test]
fn nothing_is_published_from_a_damaged_stream() {
    let root = folder();
    let tar = tar_of(&[("cxx", &read("cxx")), ("fat", &read("fat"))]);
    let mut checksum = gzip(&tar);
    let at = checksum.len() - 8;
    checksum[at] ^= 1;
    let cut = gzip(&tar)[..at].to_vec();
    for (name, bytes) in [("checksum", checksum), ("cut", cut)] {
        let archive = write(root.path(), name, &bytes);
        let out = root.path().join(format!("{name}.out"));
        let built = build(&[&archive], &out, &[]);
        assert_eq!((built.code, names_in(&out)), (Some(4), Vec::new()), "{}", built.err);
        assert!(
            built.err.contains("damaged: ") && built.err.contains("none of its files is used"),
            "{}",
            built.err
        );
    }
}

#[test]
fn archives_answer_as_the_debug_files_in_them() {
    let root = folder();
    let (cxx, demo) = (read("cxx"), testdata().join("demo"));
    let archive = write(root.path(), "appDsyms.zip", &zip_of(&[(IN_BUNDLE, &cxx)]));
    for line in ["lookup {} --json 0x604 0x610 0x640", "atos -o {} -arch arm64 -i -offset 0x604 0x610 0x640"]
    {
        let expected = crate::common::symdex_on(&debug_file("cxx"), line).ok();
        assert_eq!(crate::common::symdex_on(&archive, line).ok(), expected);
        assert!(expected.contains("scene::Named"), "{expected}");
    }
    let binary = |name: &str| fs::read(demo.join(name)).expect("there");
    let app = "DemoApp.app.dSYM/Contents/Resources/DWARF/DemoApp";
    let kit = "DemoKit.framework.dSYM/Contents/Resources/DWARF/DemoKit";
    let (app_file, kit_file, plain) = (binary(app), binary(kit), binary("DemoPlain.dylib"));
    let files: &[(&str, &[u8])] = &[(app, &app_file), (kit, &kit_file), ("DemoPlain.dylib", &plain)];
    let symbolicate = |dsym: &Path| {
        let (report, none) = (demo.join("demo.crash"), root.path().join("none"));
        let mut run = command();
        run.args(["symbolicate", "--format", "json"]).arg(report).arg("--dsym").arg(dsym);
        // The user's cache folder.
        run.env("XDG_CACHE_HOME", &none).env("HOME", &none).env("LOCALAPPDATA", &none);
        CommandOutput::from(run.output().expect("the command starts"))
    };
    let threads = |done: &CommandOutput| done.json()[0]["threads"].clone();
    let expected = symbolicate(&demo);
    for (name, bytes) in [("demo.zip", zip_of(files)), ("demo.tgz", gzip(&tar_of(files)))] {
        let done = symbolicate(&write(root.path(), name, &bytes));
        assert_eq!((done.code, threads(&done)), (expected.code, threads(&expected)), "{}", done.err);
        let source = done.json()[0]["images"][0]["source"].as_str().expect("a source").to_owned();
        assert!(source.ends_with(&format!("{name}: {app}")), "{source}");
    }
    // A damaged archive is named.
    let mut bytes = gzip(&tar_of(files));
    let at = bytes.len() - 8;
    bytes[at] ^= 1;
    let archive = write(root.path(), "damaged.tgz", &bytes);
    let failed = crate::common::symdex_on(&archive, "lookup {} 0x400");
    for failed in [symbolicate(&archive), failed] {
        assert_eq!(failed.code, Some(4), "{}", failed.err);
        assert!(failed.err.contains("damaged.tgz: damaged: "), "{}", failed.err);
    }
}

#[test]
fn links_in_an_archive_are_mentioned_and_are_no_failure() {
    let root = folder();
    let link = ZipEntry { mode: 0o120_777, ..ZipEntry::stored("Versions/Current", b"/etc/passwd") };
    let archive = write(root.path(), "a.zip", &zip(&[link, ZipEntry::deflated("cxx", &read("cxx"))]));
    let built = build(&[&archive], &root.path().join("out"), &[]);
    assert_eq!(built.code, Some(0));
    assert!(
        built.err.contains("warning: ")
            && built.err.contains("Versions/Current: the entry is skipped: it is a link")
    );
}

#[test]
fn symbol_maps_in_an_archive_are_used() {
    use symdex_testkit::images::debug_file::{BASE, MachO, Symbol};
    let root = folder();
    let symbols = vec![Symbol::function("__hidden#0_", BASE + 0x1000)];
    let image = MachO { uuid: Some([7; 16]), symbols, ..MachO::default() }.bytes();
    let map = b"BCSymbolMap Version: 2.0\n_shown\n";
    let name = "App.xcarchive/BCSymbolMaps/07070707-0707-0707-0707-070707070707.bcsymbolmap";
    let archive = write(root.path(), "a.zip", &zip_of(&[("App", &image), (name, map)]));
    let built = build(&[&archive], root.path(), &["--json"]);
    assert_eq!((built.code, built.images()[0]["hidden_names"].as_u64()), (Some(0), Some(0)), "{}", built.err);
}

#[test]
fn the_images_in_an_archive_are_listed() {
    let root = folder();
    let archive = write(
        root.path(),
        "a.zip",
        &zip_of(&[(IN_BUNDLE, &read("cxx")), ("x", b"notes"), ("fat", &read("fat"))]),
    );
    let ids = |path: &Path| crate::common::symdex(["ids".as_ref(), path.as_os_str(), "--json".as_ref()]);
    let listed = ids(&archive);
    let rows = listed.json();
    assert_eq!((listed.code, rows.len()), (Some(0), 4), "{}", listed.err);
    assert_eq!(rows[0]["location"], format!("{}: {IN_BUNDLE}", archive.display()));
    assert_eq!(rows[0]["id"], ids(&debug_file("cxx")).json()[0]["id"]);
    let empty = write(root.path(), "b.zip", &zip_of(&[("x", b"notes")]));
    assert_eq!(ids(&empty).code, Some(5));
    let bad =
        write(root.path(), "c.zip", &zip(&[ZipEntry { crc: 0, ..ZipEntry::deflated("cxx", &read("cxx")) }]));
    assert_eq!(ids(&bad).code, Some(4));
}

#[test]
fn failures_of_archives_are_objects_of_json() {
    let root = folder();
    let archive = write(root.path(), "a.zip", &zip(&[ZipEntry::deflated("../cxx", &read("cxx"))]));
    let built = build(&[&archive], root.path(), &["--json"]);
    let [failed, totals] = &built.json()[..] else { panic!("{}", built.out) };
    assert_eq!(failed["file"], archive.display().to_string());
    assert_eq!(failed["error"]["kind"], "unsupported");
    assert_eq!(totals["totals"]["failures"]["refused in an archive"], 1);
}
