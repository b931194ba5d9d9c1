//! `symdex build`: inputs, indexes and output.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::common::{CommandOutput, command, debug_file, dsym, folder, names_in, symdex, testdata};
use serde_json::Value;

fn build(inputs: &[&Path], out: &Path, more: &[&str]) -> CommandOutput {
    let inputs = inputs.iter().map(|input| input.as_os_str());
    let out = ["-o".as_ref(), out.as_os_str()];
    symdex(["build".as_ref()].into_iter().chain(inputs).chain(out).chain(more.iter().map(AsRef::as_ref)))
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} is no text in {value}"))
}

#[test]
fn every_image_becomes_an_index_named_by_its_id() {
    let out = folder();
    let built = build(&[&testdata().join("dsyms")], out.path(), &["--json"]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    let images = built.images();
    let archs_of = |name: &str| -> Vec<&str> {
        images.iter().filter(|image| image["name"] == name).map(|image| text(image, "arch")).collect()
    };
    assert_eq!(archs_of("fat"), ["x86_64", "arm64", "arm64e"]);
    assert_eq!(archs_of("fat64"), ["x86_64", "arm64"]);
    assert_eq!(archs_of("fat-armv7"), ["armv7", "arm64"]);
    assert_eq!(archs_of("i386"), ["i386"]);
    let mut names: Vec<_> = images.iter().map(|image| text(image, "name")).collect();
    assert!(names.is_sorted_by_key(|name| format!("{name}.dSYM")), "in the order of the paths: {names:?}");
    names.dedup();
    assert_eq!(names.len(), fs::read_dir(testdata().join("dsyms")).expect("the folder").count());

    let mut expected: Vec<_> = images.iter().map(|image| format!("{}.symdex", text(image, "id"))).collect();
    expected.sort();
    assert_eq!(names_in(out.path()), expected);
    for image in &images {
        let index = Path::new(text(image, "location"));
        assert_eq!(index, out.path().join(format!("{}.symdex", text(image, "id"))));
        assert_eq!(image["index_size"], fs::metadata(index).expect("there").len());
        assert_eq!((text(image, "outcome"), image["conflict"].as_bool()), ("written", Some(false)));
        for count in ["debug_size", "units", "functions", "ranges", "symbols", "chunks"] {
            assert!(image[count].as_u64().is_some_and(|count| count > 0), "{count} in {image}");
        }
        assert!(image["partial"].is_array() && image["warnings"].is_array() && image["seconds"].is_f64());
    }
}

#[test]
fn the_summary_has_the_image_the_index_and_the_time() {
    let out = folder();
    let built = build(&[&dsym("inline-dwarf4")], out.path(), &[]).ok();
    for part in
        ["arm64  inline-dwarf4\n", "13.6 kB -> ", " 1 unit, 6 functions, ", " s\n", ".symdex: written\n"]
    {
        assert!(built.contains(part), "{part:?} in {built}");
    }
    let again = build(&[&dsym("inline-dwarf4")], out.path(), &[]).ok();
    assert!(again.contains(": unchanged"), "{again}");
}

#[test]
fn any_number_of_jobs_and_any_memory_make_the_same_bytes() {
    let contents = |option: &str, value: &str| {
        let out = folder();
        let built = build(&[&testdata().join("dsyms")], out.path(), &[option, value]);
        assert_eq!(built.code, Some(0), "{}", built.err);
        let names = names_in(out.path());
        names
            .into_iter()
            .map(|name| (fs::read(out.path().join(&name)).expect("there"), name))
            .collect::<Vec<_>>()
    };
    let one = contents("--jobs", "1");
    assert!(!one.is_empty());
    assert!(one == contents("--jobs", "2") && one == contents("--jobs", "8"));
    assert!(one == contents("--max-memory", "32MB") && one == contents("--max-memory", "64MB"));
}

#[test]
fn only_images_of_the_given_architecture_are_built() {
    let out = folder();
    let built = build(&[&dsym("fat")], out.path(), &["--json", "--arch", "arm64e"]);
    let [image] = &built.images()[..] else { panic!("{}", built.out) };
    assert_eq!(text(image, "arch"), "arm64e");
    assert_eq!(names_in(out.path()).len(), 1);
}

#[test]
fn files_without_the_architecture_are_skipped_and_counted() {
    let out = folder();
    let arch = |archs: &[&str]| {
        let archs: Vec<_> = archs.iter().flat_map(|arch| ["--arch", arch]).collect();
        build(&[&testdata().join("dsyms")], out.path(), &archs)
    };
    let built = arch(&["armv7"]);
    assert_eq!((built.code, names_in(out.path()).len()), (Some(0), 1), "{}", built.err);
    let files = fs::read_dir(testdata().join("dsyms")).expect("the folder").count();
    assert!(built.err.ends_with(&format!(": {} skipped, 1 written\n", files - 1)), "{}", built.err);
    let built = arch(&["armv7", "i386"]);
    assert_eq!((built.code, names_in(out.path()).len()), (Some(0), 2), "{}", built.err);
    let built = build(&[&dsym("i386"), &dsym("fat")], out.path(), &["--arch", "i386", "--json"]);
    assert_eq!((built.code, built.images().len()), (Some(0), 1), "{}", built.err);
    assert_eq!(built.json().last().expect("totals")["totals"]["outcomes"]["skipped"], 1);

    let built = arch(&["ppc", "ppc64"]);
    assert_eq!((built.code, built.out.as_str()), (Some(3), ""));
    assert!(
        built.err.contains("no file has a slice for \"ppc\" or \"ppc64\"; the files have ")
            && built.err.contains("i386"),
        "{}",
        built.err
    );
}

#[test]
fn archives_in_a_folder_are_named() {
    let root = folder();
    for name in ["a.zip", "b.tgz"] {
        fs::write(root.path().join(name), "PK").expect("written");
    }
    let named = format!(
        "symdex: warning: {}: archives in a folder are not read: a.zip, b.tgz; give them to symdex build as inputs",
        root.path().display()
    );
    let out = folder();
    let built = build(&[root.path()], out.path(), &[]);
    assert_eq!(built.code, Some(5), "{}", built.err);
    let told = "inside; archives in a folder are not read: a.zip, b.tgz; give them to symdex build as inputs";
    assert!(built.err.lines().any(|line| line.ends_with(told)), "{}", built.err);
    assert_eq!(built.err.matches("archives").count(), 1, "they are named once: {}", built.err);
    fs::copy(debug_file("cxx"), root.path().join("cxx")).expect("copied");
    let built = build(&[root.path()], out.path(), &[]);
    assert_eq!((built.code, built.err.trim_end()), (Some(0), &*named), "what can be read is built");
}

#[test]
fn archives_give_their_dsyms_and_binaries_their_symbols() {
    let root = folder();
    let bundle = root.path().join("My App.xcarchive/dSYMs/fat.dSYM/Contents/Resources/DWARF");
    fs::create_dir_all(&bundle).expect("a folder");
    fs::copy(debug_file("fat"), bundle.join("fat")).expect("copied");
    fs::copy(debug_file("fat"), bundle.join("._fat")).expect("copied");
    let plain = testdata().join("demo/DemoPlain.dylib");
    let built =
        build(&[&root.path().join("My App.xcarchive"), &plain], &root.path().join("out"), &["--json"]);
    assert_eq!(built.code, Some(0));
    let images = built.images();
    let names: Vec<_> = images.iter().map(|image| text(image, "name")).collect();
    assert_eq!(names, ["fat", "fat", "fat", "DemoPlain.dylib"]);
    assert_eq!((&images[3]["functions"], &images[3]["partial"]), (&0.into(), &Value::Array(Vec::new())));
    let has_dwarf: Vec<_> = images.iter().map(|image| image["has_dwarf"].as_bool()).collect();
    assert_eq!(has_dwarf, [Some(true), Some(true), Some(true), Some(false)]);
    let alone = build(&[&plain], &root.path().join("out"), &[]);
    assert!(alone.err.contains("DemoPlain.dylib (arm64): no debug information"), "{}", alone.err);
}

#[test]
fn one_bad_input_does_not_stop_the_others() {
    let root = folder();
    let text_file = root.path().join("notes.txt");
    fs::write(&text_file, "hello").expect("written");
    let missing = root.path().join("missing.dSYM");
    let out = root.path().join("out");
    let built = build(&[&missing, &dsym("cxx"), &text_file, &dsym("fat")], &out, &["--jobs", "2"]);
    assert_eq!(built.code, Some(6), "unsupported is graver than missing: {}", built.err);
    assert_eq!(names_in(&out).len(), 4);
    let errors: Vec<_> = built.err.lines().collect();
    assert_eq!(errors.len(), 3);
    assert!(errors[0].contains("missing.dSYM: cannot read: "), "{}", errors[0]);
    assert!(errors[1].contains("notes.txt: not a debug file"), "{}", errors[1]);
    assert!(
        errors[2].starts_with("4 indexes, ")
            && errors[2].ends_with(" s: 4 written; failed: 1 not a debug file, 1 not readable"),
        "{}",
        errors[2]
    );
    let built = build(&[&missing, &text_file, &missing], &out, &[]);
    let totals = built.err.lines().find(|line| line.contains(" indexes, ")).expect("totals");
    assert!(totals.starts_with("0 indexes, 0 bytes, in "), "{totals}");
    assert!(totals.ends_with(" s; failed: 1 not a debug file, 2 not readable"), "{totals}");
}

#[test]
fn json_has_an_object_for_each_image_and_failure_and_the_totals_last() {
    let root = folder();
    let [more, less] = ["more", "less"].map(|name| root.path().join(name));
    fs::copy(debug_file("cxx"), &more).expect("copied");
    fs::write(&less, with_id_of("cxx", "dead-strip")).expect("written");
    let out = root.path().join("out");
    build(&[&dsym("i386")], &out, &[]).ok();
    let built = build(&[&more, &less, &dsym("i386"), &root.path().join("gone")], &out, &["--json"]);
    assert_eq!((built.code, built.images().len()), (Some(5), 3));
    let [.., failed, last] = &built.json()[..] else { panic!("{}", built.out) };
    let gone = root.path().join("gone").display().to_string();
    assert_eq!((text(failed, "file"), text(&failed["error"], "kind")), (&*gone, "missing"));
    let message = text(&failed["error"], "message");
    assert!(message.starts_with(&format!("{gone}: cannot read: ")), "{message}");
    assert!(built.err.contains(message), "people are told too: {}", built.err);
    let totals = &last["totals"];
    assert_eq!(totals["indexes"], 3);
    let sizes = built.images().iter().map(|image| image["index_size"].as_u64().expect("a size")).sum::<u64>();
    assert_eq!(totals["size"], sizes);
    assert_eq!(
        totals["outcomes"],
        serde_json::json!({"with_two_debug_files": 1, "kept": 1, "unchanged": 1, "written": 1})
    );
    assert_eq!(totals["failures"], serde_json::json!({"not readable": 1}));
    assert!(totals["seconds"].is_f64());
}

#[test]
fn a_shared_cache_gives_an_index_for_each_image() {
    use symdex_testkit::images::shared_cache::{CacheImage, Layout, cache, write};
    let image = |uuid: u8, path| CacheImage {
        path,
        uuid,
        exported: vec![("_f", 0x1000)],
        locals: vec![("_g", 0x1800)],
        function_starts: vec![0],
    };
    let images = [image(0x11, "/usr/lib/libone.dylib"), image(0x22, "/usr/lib/libtwo.dylib")];
    let root = folder();
    let system = root.path().join("Symbols/System");
    fs::create_dir_all(&system).expect("a folder");
    let main = write(&cache(&images, Layout::Split), &system);
    let out = root.path().join("out");
    let built = build(&[root.path()], &out, &["--json"]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    let names: Vec<_> = built.images().iter().map(|image| text(image, "name").to_owned()).collect();
    assert_eq!(names, ["libone.dylib", "libtwo.dylib"]);
    assert_eq!(names_in(&out), ["11", "22"].map(|uuid| format!("{}.symdex", uuid.repeat(16))));
    let found = symdex([
        "lookup".as_ref(),
        out.as_os_str(),
        "--id".as_ref(),
        "22".repeat(16).as_ref(),
        "0x1900".as_ref(),
    ]);
    assert!(found.ok().contains("g + 0x100"));

    let of_arch = |arch| build(&[&main], &root.path().join("arch"), &["--arch", arch]);
    assert_eq!(of_arch("arm64e").code, Some(0));
    let none = of_arch("arm64");
    assert!(none.code == Some(3) && none.err.contains("the file has arm64e"), "{}", none.err);
    let part = system.join("dyld_shared_cache_arm64e.01");
    assert_eq!(build(&[&part], &out, &[]).code, Some(6));
    fs::remove_file(&part).expect("removed");
    let partly = build(&[&main], &root.path().join("partly"), &[]);
    assert_eq!((partly.code, names_in(&root.path().join("partly")).len()), (Some(5), 1));
    let errors: Vec<_> = partly.err.lines().filter(|line| line.contains(".01: cannot read")).collect();
    assert!(errors.len() == 2 && errors[1].ends_with("(/usr/lib/libtwo.dylib)"), "{}", partly.err);
}

/// The debug file `other` with the id of the debug file `name`.
fn with_id_of(name: &str, other: &str) -> Vec<u8> {
    let id_at = |bytes: &[u8]| {
        // LC_UUID, 24 bytes long.
        let command = [0x1b, 0, 0, 0, 24, 0, 0, 0];
        bytes.windows(8).position(|window| window == command).expect("an LC_UUID") + 8
    };
    let id_from = fs::read(debug_file(name)).expect("there");
    let mut bytes = fs::read(debug_file(other)).expect("there");
    let (from, to) = (id_at(&id_from), id_at(&bytes));
    bytes[to..to + 16].copy_from_slice(&id_from[from..from + 16]);
    bytes
}

#[test]
fn of_two_debug_files_of_one_id_the_one_with_more_functions_is_kept() {
    let root = folder();
    // cxx has 36 functions, dead-strip 8.
    let [more, less] = ["more", "less"].map(|name| root.path().join(name));
    fs::copy(debug_file("cxx"), &more).expect("copied");
    fs::write(&less, with_id_of("cxx", "dead-strip")).expect("written");
    let functions_of = |summary: &Value| summary["functions"].as_u64();
    let mut contents = Vec::new();
    for (name, inputs, outcomes) in [
        ("a", [&more, &less], [("written", false), ("kept", true)]),
        ("b", [&less, &more], [("written", false), ("replaced", true)]),
    ] {
        // Both in one run on several threads, and each in its own run.
        let (together, apart) = (root.path().join(name), root.path().join(format!("{name}-apart")));
        let built = build(&[inputs[0], inputs[1]], &together, &["--json", "--jobs", "4"]);
        let mut apart_json = build(&[inputs[0]], &apart, &["--json"]).images();
        apart_json.extend(build(&[inputs[1]], &apart, &["--json"]).images());
        for images in [built.images(), apart_json] {
            let found: Vec<_> = images
                .iter()
                .map(|image| (text(image, "outcome"), image["conflict"].as_bool() == Some(true)))
                .collect();
            assert_eq!(found, outcomes);
            assert!(functions_of(&images[0]) != functions_of(&images[1]));
        }
        for out in [together, apart] {
            let [only] = &names_in(&out)[..] else { panic!("one index in {out:?}") };
            contents.push(fs::read(out.join(only)).expect("there"));
        }
    }
    assert!(contents.windows(2).all(|pair| pair[0] == pair[1]));
    let mut bytes = fs::read(&more).expect("there");
    let section = bytes.windows(12).position(|name| name == b"__debug_info").expect("DWARF");
    bytes[section..section + 12].copy_from_slice(b"__other_info");
    let stripped = root.path().join("stripped");
    fs::write(&stripped, bytes).expect("written");
    let people = build(&[&less, &more], &root.path().join("c"), &[]).ok();
    assert!(
        people.contains("conflict: another debug file has this id, and its index is replaced"),
        "{people}"
    );
    // A binary without debug information is no other debug file.
    let out = root.path().join("d");
    let first = build(&[&stripped], &out, &[]);
    let later = [build(&[&more], &out, &[]), build(&[&stripped, &dsym("fat")], &out, &["--force"])];
    let [replaced, kept] = &later;
    assert!(replaced.out.contains("written, in place of another index of this id"), "{}", replaced.out);
    assert!(kept.out.contains("not written: the existing index of this id is kept"), "{}", kept.out);
    for built in [&first, replaced, kept] {
        assert!(!built.out.contains("conflict") && !built.err.contains("conflict"), "{}", built.err);
    }
}

#[test]
fn a_binary_and_its_debug_file_make_one_index() {
    let root = folder();
    let whole = fs::read(debug_file("cxx")).expect("there");
    let debug = root.path().join("cxx.dSYM");
    fs::write(&debug, &whole).expect("written");
    // The same image as a stripped binary: without that section there is no debug information.
    let mut stripped = whole;
    let section = stripped.windows(12).position(|name| name == b"__debug_info").expect("DWARF");
    stripped[section..section + 12].copy_from_slice(b"__other_info");
    let binary = root.path().join("cxx");
    fs::write(&binary, &stripped).expect("written");

    let mut contents = Vec::new();
    for (name, inputs) in [("a", [&debug, &binary]), ("b", [&binary, &debug])] {
        let out = root.path().join(name);
        let [image] = &build(&inputs.map(|path| &**path), &out, &["--json"]).images()[..] else {
            panic!("one")
        };
        assert_eq!((text(image, "outcome"), text(image, "file")), ("written", &*debug.to_string_lossy()));
        assert_eq!(image["joined"][0].as_str(), Some(&*binary.to_string_lossy()));
        contents.push(fs::read(out.join(&names_in(&out)[0])).expect("there"));
    }
    assert_eq!(contents[0], contents[1]);
    let people = build(&[&binary, &debug], &root.path().join("c"), &[]).ok();
    assert!(people.contains(&format!("with the symbols of {}", binary.display())), "{people}");

    // If one file cannot be read, the index has the contents of the other.
    let symbols =
        stripped.windows(8).position(|command| command == [2, 0, 0, 0, 24, 0, 0, 0]).expect("symbols");
    stripped[symbols + 8..symbols + 12].fill(0xff);
    fs::write(&binary, &stripped).expect("written");
    let out = root.path().join("d");
    let partly = build(&[&binary, &debug], &out, &[]);
    assert_eq!((partly.code, names_in(&out).len()), (Some(4), 1), "{}", partly.err);
    assert!(partly.err.contains("the symbol table"), "{}", partly.err);
}

#[test]
fn a_damaged_index_is_replaced_with_a_warning() {
    let out = folder();
    let index = crate::common::index_of("cxx", out.path());
    let whole = fs::read(&index).expect("there");
    fs::write(&index, &whole[..whole.len() / 2]).expect("written");
    let built = build(&[&dsym("cxx")], out.path(), &["--json"]);
    assert_eq!((built.code, text(&built.images()[0], "outcome")), (Some(0), "repaired"));
    assert!(built.err.contains("the old index is replaced: "), "{}", built.err);
    assert_eq!(fs::read(&index).expect("there"), whole);
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let out = folder();
    let mut child = command()
        .args(["build".as_ref(), testdata().join("dsyms").as_os_str(), "-o".as_ref(), out.path().as_os_str()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    drop(child.stdout.take());
    let finished = CommandOutput::from(child.wait_with_output().expect("ended"));
    assert_eq!(finished.code, Some(0));
    assert!(!finished.err.contains("panicked"), "{}", finished.err);
}
