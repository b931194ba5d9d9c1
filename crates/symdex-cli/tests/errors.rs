//! Failures name the file, have their own exit codes, and leave no files behind.

use std::fs;
use std::path::Path;

use crate::common::{debug_file, dsym, folder, index_of, names_in, symdex, symdex_on};
use symdex_testkit::images::seal::seal_header;

fn build(input: &Path, out: &Path, more: &[&str]) -> crate::common::CommandOutput {
    let arguments = ["build".as_ref(), input.as_os_str(), "-o".as_ref(), out.as_os_str()];
    symdex(arguments.into_iter().chain(more.iter().map(AsRef::as_ref)))
}

/// Builds from `input`, which must fail with this code and a message of one line that has these parts.
#[track_caller]
fn fails(input: &Path, more: &[&str], code: i32, parts: &[&str]) {
    let root = folder();
    let out = root.path().join("out");
    let built = build(input, &out, more);
    assert_eq!((built.code, built.out.as_str()), (Some(code), ""), "{}", built.err);
    assert_eq!(built.err.lines().count(), 1, "{}", built.err);
    assert!(
        built.err.starts_with("symdex: ") && built.err.contains(&*input.to_string_lossy()),
        "{}",
        built.err
    );
    for part in parts {
        assert!(built.err.contains(part), "{part:?} in {}", built.err);
    }
    assert_eq!(names_in(root.path()), [""; 0], "left behind");
}

#[test]
fn inputs_that_are_not_debug_files_are_named() {
    let root = folder();
    let write = |name: &str, bytes: &[u8]| {
        let path = root.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    fails(
        &write("notes.txt", b"hello, world"),
        &[],
        6,
        &["not a debug file", "a text file (it begins with \"hello, world\")", "expected a Mach-O file"],
    );
    fails(&write("empty", b""), &[], 6, &["an empty file"]);
    fails(&write("dsyms.zip", b"PK\x03\x04...."), &[], 4, &["cut short: it has no directory"]);
    fails(&write("libx.so", b"\x7fELF\x02\x01\x01"), &[], 4, &["cut short: the ELF header"]);
    fails(&write("big.so", b"\x7fELF\x02\x02\x01.............."), &[], 6, &["a big-endian ELF file"]);
    fails(&root.path().join("nowhere.dSYM"), &[], 5, &["cannot read"]);
    let nothing = root.path().join("Empty.dSYM/Contents/Resources/DWARF");
    fs::create_dir_all(&nothing).expect("a folder");
    fails(&root.path().join("Empty.dSYM"), &[], 5, &["no debug file in this folder"]);
    fs::write(nothing.join("Empty"), b"").expect("written");
    let built = build(&root.path().join("Empty.dSYM"), root.path(), &[]);
    assert_eq!(built.code, Some(6), "an empty file in a bundle is not passed over: {}", built.err);
}

#[test]
fn an_unknown_architecture_lists_those_there_are() {
    fails(&debug_file("fat"), &["--arch", "ppc"], 3, &["no slice for \"ppc\"", "x86_64, arm64, arm64e"]);
}

#[test]
fn a_truncated_debug_file_is_damaged_wherever_it_ends() {
    let root = folder();
    let whole = fs::read(debug_file("cxx")).expect("there");
    for part in 1..24 {
        let cut = root.path().join(format!("cxx-{part}"));
        fs::write(&cut, &whole[..whole.len() * part / 24]).expect("written");
        fails(&cut, &[], 4, &["cut short"]);
    }
    let bundle = root.path().join("cxx.dSYM/Contents/Resources/DWARF");
    fs::create_dir_all(&bundle).expect("a folder");
    fs::copy(root.path().join("cxx-12"), bundle.join("cxx")).expect("copied");
    fails(&root.path().join("cxx.dSYM"), &[], 4, &["Contents/Resources/DWARF/cxx", "copy it again"]);
}

#[test]
fn a_truncated_universal_file_loses_only_the_slices_that_are_cut() {
    let root = folder();
    let whole = fs::read(debug_file("fat")).expect("there");
    let mut built_slices = Vec::new();
    for part in 1..24 {
        let cut = root.path().join(format!("fat-{part}"));
        fs::write(&cut, &whole[..whole.len() * part / 24]).expect("written");
        let out = root.path().join(format!("indexes-{part}"));
        let built = build(&cut, &out, &[]);
        assert_eq!(built.code, Some(4), "{}", built.err);
        assert!(built.err.lines().all(|line| line.contains("cut short")), "{}", built.err);
        let published = fs::read_dir(&out).map_or(0, |folder| folder.count());
        assert_eq!(published + built.err.lines().count(), 3, "{}", built.err);
        built_slices.push(published);
    }
    assert!(built_slices.is_sorted() && built_slices.ends_with(&[2]), "{built_slices:?}");
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let root = folder();
    let file = root.path().join("file");
    fs::write(&file, "not a folder").expect("written");
    // The parent of the last one does not exist and cannot be created.
    for out in [file.clone(), file.join("below"), file.join("further/below")] {
        let built = build(&dsym("cxx"), &out, &[]);
        assert_eq!((built.code, built.out.as_str()), (Some(1), ""), "{}", built.err);
        assert!(built.err.contains(&format!("{}: cannot ", out.display())), "{}", built.err);
    }
    assert_eq!(names_in(root.path()), ["file"]);
}

/// Every command that reads an index, with `{}` for the index.
const READERS: [&str; 4] = ["lookup {} 0x400", "verify {}", "inspect {}", "atos -o {} 0x400"];

#[test]
fn a_missing_or_foreign_index_is_named() {
    let root = folder();
    let missing = root.path().join("missing.symdex");
    for reader in READERS {
        let finished = symdex_on(&missing, reader);
        assert_eq!(finished.code, Some(5), "{reader}: {}", finished.err);
        assert!(finished.err.contains("missing.symdex: cannot read: "), "{}", finished.err);
    }
    let other = root.path().join("other");
    fs::write(&other, "hello, world").expect("written");
    let [lookup, verify, inspect, atos] = READERS;
    for reader in [verify, inspect] {
        let finished = symdex_on(&other, reader);
        assert_eq!(finished.code, Some(6), "{reader}");
        assert!(
            finished.err.contains("not a symdex index: a text file (it begins with \"hello, world\")"),
            "{}",
            finished.err
        );
    }
    // These commands also read debug files, so their message says what they accept.
    for reader in [lookup, atos] {
        let finished = symdex_on(&other, reader);
        assert_eq!(finished.code, Some(6), "{}", finished.err);
        assert!(finished.err.contains("not a debug file"), "{}", finished.err);
    }
}

#[cfg(unix)]
#[test]
fn an_index_in_a_pipe_is_refused_without_waiting() {
    let root = folder();
    let pipe = root.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    for line in ["verify {}", "inspect {}"] {
        let finished = symdex_on(&pipe, line);
        assert_eq!(finished.code, Some(1), "{line}: {}", finished.err);
        assert!(finished.err.contains("pipe: cannot read: n"), "{}", finished.err);
    }
}

#[test]
fn a_truncated_or_changed_index_is_damaged() {
    let root = folder();
    let whole = fs::read(index_of("inline-dwarf4", root.path())).expect("there");
    let damaged = root.path().join("damaged.symdex");
    // From 8 bytes on, the file still begins as an index does.
    for len in (8..whole.len()).step_by(97) {
        fs::write(&damaged, &whole[..len]).expect("written");
        for reader in READERS {
            let finished = symdex_on(&damaged, reader);
            assert_eq!((finished.code, finished.out.as_str()), (Some(4), ""), "{reader}, {len} bytes");
            assert!(finished.err.contains("damaged.symdex: "), "{}", finished.err);
        }
    }
    for at in (12..whole.len()).step_by(41) {
        let mut changed = whole.clone();
        changed[at] ^= 4;
        fs::write(&damaged, &changed).expect("written");
        let finished = symdex_on(&damaged, "verify {}");
        assert_eq!((finished.code, finished.out.as_str()), (Some(4), ""), "byte {at}");
        assert!(finished.err.contains("damaged.symdex: damaged index: "), "{}", finished.err);
    }
    let mut newer = whole;
    newer[8] = 99;
    // With a wrong checksum, the index would be damaged instead.
    seal_header(&mut newer);
    fs::write(&damaged, &newer).expect("written");
    for reader in READERS {
        let finished = symdex_on(&damaged, reader);
        assert_eq!(finished.code, Some(6), "{reader}: {}", finished.err);
        assert!(finished.err.contains("format version 99"), "{}", finished.err);
    }
}

#[test]
fn damage_found_by_a_lookup_is_reported_for_the_address() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let mut bytes = fs::read(&index).expect("there");
    let sections = symdex::Index::open(&bytes[..]).expect("an index").sections();
    let chunks = sections.iter().find(|section| section.name == "chunks").expect("there");
    bytes[usize::try_from(chunks.offset).expect("small") + 20] ^= 1;
    fs::write(&index, &bytes).expect("written");
    let lookup = symdex_on(&index, "lookup {} 0x400 0x999999 --json");
    assert_eq!(lookup.code, Some(4), "{}", lookup.out);
    let [damaged, gap] = &lookup.json()[..] else { panic!("{}", lookup.out) };
    assert_eq!((&damaged["error"]["kind"], &damaged["address"]), (&"damaged".into(), &"0x400".into()));
    assert!(damaged["error"]["message"].as_str().is_some_and(|text| text.contains("chunk page 0")));
    assert_eq!((&gap["address"], &gap["functions"]), (&"0x999999".into(), &serde_json::json!([])));
    assert_eq!(gap.get("error"), None);
    let people = symdex_on(&index, "lookup {} 0x400");
    let named = format!("{}: damaged index: ", index.display());
    assert!(people.out.starts_with(&format!("0x400         error: {named}")), "{}", people.out);
    let atos = symdex_on(&index, "atos -o {} -offset 0x400");
    assert_eq!((atos.code, atos.out.as_str()), (Some(4), "0x0000000000000400 (in inline-dwarf4)\n"));
    assert!(atos.err.contains(&named), "{}", atos.err);
    // In a folder, the message names the file that was found there.
    let id = index.file_stem().expect("a name").display();
    let lookup = symdex_on(root.path(), &format!("lookup {{}} --id {id} 0x400"));
    assert!(lookup.code == Some(4) && lookup.out.contains(&named), "{}", lookup.out);
    let atos = symdex_on(root.path(), &format!("atos -o {{}} --id {id} -offset 0x400"));
    assert!(atos.code == Some(4) && atos.err.contains(&named), "{}", atos.err);
}

#[test]
fn wrong_usage_has_its_own_exit_code() {
    let root = folder();
    index_of("cxx", root.path());
    for line in
        ["", "lookup", "build", "lookup {} --load 1 --svma", "verify", "build {} --jobs 0", "atos 0x1"]
    {
        assert_eq!(symdex_on(root.path(), line).code, Some(2), "{line}");
    }
    let finished = symdex_on(root.path(), "lookup {} 0x400");
    assert_eq!(finished.code, Some(2), "{}", finished.err);
    assert!(finished.err.contains("a folder of indexes; choose one with --id"), "{}", finished.err);
    let finished = symdex_on(root.path(), "verify {} --id 00112233445566778899aabbccddeeff");
    assert_eq!(finished.code, Some(3), "{}", finished.err);
    let message =
        "no index in this folder or below it has an id that begins with 00112233445566778899aabbccddeeff";
    assert!(finished.err.contains(message), "{}", finished.err);
    assert_eq!(symdex_on(root.path(), "verify {} --id xyz").code, Some(2));
}
