//! `symdex symbolicate --dsym` with debug files of which a part cannot be read, and with files that they refer to.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{
    CommandOutput, command, debug_file, folder, symbolicate, symdex_on, testdata, with_damaged_symbols,
    without_debug_information,
};
use symdex::Grade;
use symdex_testkit::images::debug_file::{library_and_package, write};
use symdex_testkit::indexes;

fn app() -> PathBuf {
    testdata().join("demo/DemoApp.app.dSYM/Contents/Resources/DWARF/DemoApp")
}

/// The demo's crash, symbolicated from the debug files below `dsym` with these options.
fn crash(root: &Path, dsym: &Path, options: &[&str]) -> CommandOutput {
    symbolicate(root, dsym, options, [testdata().join("demo/demo.crash")])
}

#[test]
fn a_damaged_debug_file_is_reported_although_the_binary_answers() {
    let root = folder();
    let (binary, debug) = (root.path().join("both/DemoApp"), root.path().join("both/DemoApp.debug"));
    fs::create_dir(root.path().join("both")).expect("a folder");
    fs::write(&binary, without_debug_information(&app())).expect("written");
    let alone = crash(&root.path().join("a"), &binary, &[]);
    fs::write(&debug, with_damaged_symbols(&app())).expect("written");
    // Once from the index that is built for the store, once directly.
    let from_index = crash(&root.path().join("b"), &root.path().join("both"), &[]);
    let mut direct = command();
    direct.arg("symbolicate").arg(testdata().join("demo/demo.crash"));
    direct.arg("--dsym").arg(root.path().join("both")).env("XDG_CACHE_HOME", root.path().join("cache"));
    for done in [from_index, direct.output().expect("the command starts").into()] {
        assert_eq!((done.code, &done.out), (Some(4), &alone.out), "{}", done.err);
        let said: Vec<_> = done.err.lines().filter(|line| line.contains("damaged: ")).collect();
        assert_eq!(said.len(), 1, "{}", done.err);
        assert!(
            said[0].starts_with(&format!("symdex:   damaged: {} (arm64 slice): ", debug.display())),
            "{}",
            said[0]
        );
        assert!(said[0].ends_with(&format!("; answered from {}", binary.display())), "{}", said[0]);
    }
    assert!(!root.path().join("cache").exists());
    // The other commands refuse to answer.
    let lookup = symdex_on(&root.path().join("both"), "lookup {} 0x400");
    assert_eq!(lookup.code, Some(4), "{}", lookup.err);
}

#[test]
fn a_damaged_binary_is_reported_although_the_debug_file_answers() {
    let root = folder();
    let both = root.path().join("both");
    fs::create_dir(&both).expect("a folder");
    fs::copy(app(), both.join("DemoApp.debug")).expect("copied");
    let alone = symdex_on(&both, "lookup {} 0x4230").ok();
    let binary = both.join("DemoApp");
    fs::write(&binary, without_debug_information(&app())).expect("written");
    fs::write(&binary, with_damaged_symbols(&binary)).expect("written");
    for line in ["lookup {} 0x4230", "atos -o {} -offset 0x400"] {
        let done = symdex_on(&both, line);
        assert_eq!(done.code, Some(4), "{}", done.err);
        assert!(done.err.starts_with(&format!("symdex: {}: ", binary.display())), "{}", done.err);
        assert!(line.starts_with("atos") || done.out == alone, "{}", done.out);
    }
    let done = crash(root.path(), &both, &[]);
    assert_eq!(done.code, Some(4), "{}", done.err);
    assert!(done.err.contains(&format!("damaged: {} (arm64 slice): ", binary.display())), "{}", done.err);
}

#[test]
fn packages_among_the_debug_files_and_in_debug_folders_are_used() {
    let root = folder();
    let at = |path: &str| root.path().join(path);
    let (library, package) = library_and_package();
    write(&at("in/lib/liba.so"), &library);
    write(&at("dwp/liba.so.dwp"), &package);
    let report = at("list");
    fs::write(&report, format!("{} 0x1018 0x0\n", "07".repeat(20))).expect("written");
    let ask = |store: &str, options: &[&str]| {
        let options: Vec<_> =
            options.iter().map(|option| option.replace("{}", &at("").to_string_lossy())).collect();
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        symbolicate(&at(store), &at("in"), &options, [&report]).out
    };
    assert!(!ask("a", &[]).contains("split"));
    assert!(ask("b", &["--debug-dir", "{}dwp"]).contains("split"));
    assert!(ask("c", &["--dsym", "{}dwp/liba.so.dwp"]).contains("split"));
    write(&at("in/dwp/other.dwp"), &package);
    assert!(ask("d", &[]).contains("split"));
    let lookup = symdex_on(&at("in"), "lookup {} 0x1018").ok();
    assert!(lookup.contains("split"), "{lookup}");
    let alone = symdex_on(&at("dwp/liba.so.dwp"), "lookup {} 0x1018");
    assert_eq!(alone.code, Some(6));
    assert!(
        alone.err.contains("liba.so.dwp: a package of split units (.dwp), which is no image"),
        "{}",
        alone.err
    );
}

#[test]
fn a_damaged_slice_is_reported_and_the_other_slices_are_used() {
    let root = folder();
    let fat = root.path().join("fat");
    let mut bytes = fs::read(debug_file("fat")).expect("a debug file");
    // The first entry of the header states offset 0x1000 for x86_64. Its load commands become nonsense.
    let start =
        usize::try_from(u32::from_be_bytes(bytes[16..20].try_into().expect("4 bytes"))).expect("small");
    bytes[start + 20..start + 24].fill(0xff);
    fs::write(&fat, bytes).expect("written");
    let listed = symdex_on(&fat, "ids {} --json");
    let id = |arch: &str| {
        let images = listed.json();
        let image = images.iter().find(|image| image["arch"] == arch)?;
        Some(image["id"].as_str().expect("an id").to_owned())
    };
    assert_eq!((listed.code, id("x86_64")), (Some(4), None), "{}", listed.out);
    let report = root.path().join("list");
    fs::write(&report, format!("{} 0x100000400 0x100000000\n", id("arm64e").expect("listed")))
        .expect("written");
    let done = symbolicate(root.path(), &fat, &[], [&report]);
    assert_eq!(done.code, Some(4), "{}", done.err);
    assert!(done.out.contains("mip.h:11"), "{}", done.out);
    let damage = format!("symdex: {} (x86_64 slice): ", fat.display());
    assert_eq!(done.err.lines().filter(|line| line.starts_with(&damage)).count(), 1, "{}", done.err);
}

#[test]
fn the_index_of_a_stripped_binary_hides_no_full_one() {
    let root = folder();
    let (poor, full) = (root.path().join("poor"), root.path().join("full"));
    let binary = root.path().join("DemoApp");
    fs::write(&binary, without_debug_information(&app())).expect("written");
    let build = |file: &Path, store: &Path| {
        let mut build = command();
        build.arg("build").arg(file).arg("--store").arg(store).arg("--json");
        let built = CommandOutput::from(build.output().expect("the command starts"));
        assert_eq!(built.code, Some(0), "{}", built.err);
        built.images()[0].clone()
    };
    let (stripped, whole) = (build(&binary, &poor), build(&app(), &full));
    assert_eq!((&stripped["grade"], &whole["grade"]), (&"names".into(), &"lines".into()));
    let id = whole["id"].as_str().expect("an id");
    let on = |words: &str, stores: &[&Path]| {
        let mut run = command();
        run.args(words.split(' ')).env("XDG_CACHE_HOME", root.path().join("cache"));
        stores.iter().for_each(|store| _ = run.arg("--store").arg(store));
        CommandOutput::from(run.output().expect("the command starts"))
    };
    let report = root.path().join("list");
    fs::write(&report, format!("{id} 0x100004230 0x100000000\n")).expect("written");
    for words in [format!("symbolicate {}", report.display()), format!("lookup --id {id} 0x4230 --json")] {
        let expected = on(&words, &[&full]);
        assert_eq!(expected.code, Some(0), "{}", expected.err);
        assert_ne!(on(&words, &[&poor]).out, expected.out);
        for stores in [[&*poor, &full], [&full, &poor]] {
            let found = on(&words, &stores);
            assert_eq!((found.code, found.out), (Some(0), expected.out.clone()), "{}", found.err);
        }
    }
    let json = format!("symbolicate {} --json", report.display());
    let grade = |stores: &[&Path]| on(&json, stores).json()[0]["images"][0]["grade"].clone();
    assert_eq!((grade(&[&poor]), grade(&[&poor, &full])), ("names".into(), "lines".into()));
    let said = on(&json, &[&poor]).err;
    assert!(said.contains("symdex: found: ") && said.contains(" (without lines)\n"), "{said}");
    // The same word everywhere.
    let lists = |words: &str| {
        let list = |store: &Path| on(words, &[store]).json()[0]["grade"].clone();
        assert_eq!((list(&poor), list(&full)), ("names".into(), "lines".into()), "{words}");
    };
    lists("ids --json");
    lists(&format!("inspect --id {id} --json"));
    let listed = |store: &Path, json: &[&str]| {
        let mut list = command();
        list.args(["store", "ls"]).arg(store).args(json);
        CommandOutput::from(list.output().expect("the command starts"))
    };
    assert_eq!(listed(&poor, &["--json"]).json()[0]["grade"], "names");
    assert!(listed(&full, &[]).out.contains("  whole   lines    "), "{}", listed(&full, &[]).out);
    assert!(on("ids", &[&poor]).out.contains("  index  names    "), "{}", on("ids", &[&poor]).out);
}

#[test]
fn a_function_without_a_name_is_not_symbolicated() {
    let root = folder();
    let id = indexes::id(0xab);
    let index = indexes::index_of_grade(0xab, 3, Grade::Bounds);
    fs::write(root.path().join(format!("{id}.symdex")), index).expect("written");
    let report = root.path().join("list");
    fs::write(&report, format!("App 0x100001008 0x100000000 {id}\n")).expect("written");
    let run = |options: &[&str]| {
        let mut run = command();
        run.arg("symbolicate").arg(&report).arg("--index").arg(root.path()).args(options);
        CommandOutput::from(run.output().expect("the command starts"))
    };
    let reason = "the index has no name of the function at this address";
    for options in [&[][..], &["--json"], &["--format", "text"]] {
        let done = run(options);
        assert_eq!(done.code, Some(3), "{}", done.err);
        assert!(done.err.contains("0 of 1 frame symbolicated"), "{}", done.err);
        assert!(done.err.contains(" (without names)\n"), "{}", done.err);
        assert!(done.err.contains(&format!("unresolved: 1 frame in App: {reason}")), "{}", done.err);
    }
    let json = &run(&["--json"]).json()[0];
    let frame = &json["threads"][0]["frames"][0];
    assert_eq!((&frame["status"], &json["images"][0]["grade"]), (&"missing_symbol".into(), &"bounds".into()));
    assert!(frame["reason"].as_str().is_some_and(|said| said.starts_with(reason)), "{frame}");
    // What is known is there.
    assert_eq!(
        (&frame["functions"][0]["function"], &frame["functions"][0]["function_offset"]),
        (&serde_json::Value::Null, &8.into())
    );
    assert_eq!((&json["totals"]["symbolicated"], &json["totals"]["unresolved_app"]), (&0.into(), &1.into()));
}
