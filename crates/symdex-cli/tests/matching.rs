//! `symdex symbolicate` on reports that do not state the ids of their images, and `--needs`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{
    CommandOutput, command, debug_file, dsym, folder, indexes_in, names_in, symbolicate, testdata,
};
use serde_json::Value;

/// The threads of the demo's crash, without the header and the list of images.
fn cut_crash(root: &Path) -> PathBuf {
    let crash = fs::read_to_string(testdata().join("demo/demo.crash")).expect("readable");
    let (stacks, _) = crash.split_once("Binary Images:").expect("a list of images");
    let path = root.join("cut.crash");
    fs::write(&path, stacks).expect("written");
    path
}

/// A stack of one frame in a program, as GCC's sanitizers print it: without a build id.
fn asan(root: &Path) -> PathBuf {
    let path = root.join("asan.txt");
    let text = "==7==ERROR: AddressSanitizer: SEGV on unknown address\n    \
                #0 0x55d1003b8  (/opt/inline-dwarf4+0x1000003b8)\n";
    fs::write(&path, text).expect("written");
    path
}

/// `symdex symbolicate` on one report. `{}` in options stands for the folder `root`.
fn run(root: &Path, report: &Path, options: &[&str]) -> CommandOutput {
    let root_text = root.to_str().expect("UTF-8");
    let mut run = command();
    run.arg("symbolicate").arg(report).args(options.iter().map(|option| option.replace("{}", root_text)));
    CommandOutput::from(run.arg("--store").arg(root.join("store")).output().expect("the command starts"))
}

fn first_frame(done: &CommandOutput) -> Value {
    done.json()[0]["threads"][0]["frames"][0].clone()
}

#[test]
fn images_without_ids_are_not_matched_by_name_unless_asked() {
    let root = folder();
    let report = cut_crash(root.path());
    let done = symbolicate(root.path(), &testdata().join("demo"), &[], [&report]);
    assert_eq!(
        (done.code, &done.out),
        (Some(3), &fs::read_to_string(&report).expect("there")),
        "{}",
        done.err
    );
    let near = "  near: DemoKit arm64 4C4C4427-5555-3144-A19D-BD913BE790E0: same name; \
                the report does not say which build\n";
    assert!(done.err.contains(near) && done.err.contains("--match-by-name"), "{}", done.err);
    assert!(!done.err.contains("another build"), "{}", done.err);
}

/// Without a list of images, the load addresses come from the frames.
#[test]
fn frames_matched_by_name_are_answered_and_marked() {
    let root = folder();
    let dsym = testdata().join("demo");
    let report = cut_crash(root.path());
    let by_id = symbolicate(root.path(), &dsym, &[], [testdata().join("demo/demo.crash")]);
    let (stacks, _) = by_id.out.split_once("Binary Images:").expect("a list of images");
    let done = symbolicate(root.path(), &dsym, &["--match-by-name"], [&report]);
    let of_app = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains("Demo") && line.contains("\t0x"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!((done.code, of_app(&done.out)), (Some(0), of_app(stacks)), "{}", done.err);
    assert!(done.err.contains(" (31 not by id: they may be of another build)"), "{}", done.err);
    let line = "symdex: matched by name: DemoPlain.dylib arm64 without an id: 5 frames answered from ";
    assert!(done.err.contains(line), "{}", done.err);
    let json = symbolicate(root.path(), &dsym, &["--match-by-name", "--format", "json"], [&report]);
    assert_eq!(first_frame(&json)["matched_by"], "name");
    let image = &json.json()[0]["images"][0];
    assert_eq!((&image["matched_by"], &image["id"]), (&"name".into(), &Value::Null));
    // An image that is matched by its id is not marked.
    let json = symbolicate(
        root.path(),
        &dsym,
        &["--match-by-name", "--format", "json"],
        [testdata().join("demo/demo.crash")],
    );
    assert_eq!(json.json()[0]["images"][0]["matched_by"], "id");
    assert!(first_frame(&json).get("matched_by").is_none());
}

#[test]
fn several_builds_of_a_name_are_named_and_none_answers() {
    let root = folder();
    let files = root.path().join("files");
    for (folder, name) in [("a", "inline-dwarf4"), ("b", "inline-dwarf5")] {
        fs::create_dir_all(files.join(folder)).expect("folders");
        fs::copy(debug_file(name), files.join(folder).join("inline-dwarf4")).expect("copied");
    }
    let report = asan(root.path());
    let done = run(root.path(), &report, &["--match-by-name", "--dsym", "{}/files"]);
    assert_eq!((done.code, &done.out), (Some(3), &fs::read_to_string(&report).expect("there")));
    assert!(
        done.err.contains(": 1 frame: the report does not say which of these it is: inline-dwarf4 "),
        "{}",
        done.err
    );
    assert!(done.err.contains("choose one of several images with --assume NAME=ID"), "{}", done.err);
    assert!(names_in(&root.path().join("store")).is_empty());
    let id = "4c4c447055553144a1a22a1f1f7676f4";
    let assume = format!("inline-dwarf4={id}");
    let done = run(root.path(), &report, &["--assume", &assume, "--dsym", "{}/files"]);
    assert_eq!(done.code, Some(0));
    assert_eq!(indexes_in(&root.path().join("store")), [format!("{id}.symdex")]);
    assert!(done.out.contains("#0 0x55d1003b8 in mip /src/symdex/inline/level/mip.h:5\n"), "{}", done.out);
}

#[test]
fn an_assumed_index_or_debug_file_answers() {
    let root = folder();
    let report = asan(root.path());
    let bundle = dsym("inline-dwarf4");
    let of_dsym = format!("inline-dwarf4={}", bundle.display());
    let done = run(root.path(), &report, &["--assume", &of_dsym]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.err.contains(
        "symdex: assumed: inline-dwarf4 ? without an id /opt/inline-dwarf4: 1 frame answered from "
    ));
    let of_index = "inline-dwarf4={}/store/4c/4c4c447055553144a1a22a1f1f7676f4.symdex";
    let again = run(root.path(), &report, &["--assume", of_index]);
    assert_eq!((again.code, &again.out), (Some(0), &done.out), "{}", again.err);
    let json = run(root.path(), &report, &["--assume", of_index, "--format", "json"]);
    assert_eq!(first_frame(&json)["matched_by"], "assumed");
}

#[test]
fn an_assumption_overrides_the_id_in_the_report() {
    let root = folder();
    let crash = testdata().join("demo/demo.crash");
    let of_other = format!("DemoKit={}", dsym("inline-dwarf4").display());
    let done = run(root.path(), &crash, &["--assume", &of_other]);
    assert!(
        done.err.contains("symdex: assumed: DemoKit arm64 4C4C4427-5555-3144-A19D-BD913BE790E0"),
        "{}",
        done.err
    );
    // An image that is named with the id of the report is not marked as assumed.
    let of_same = format!("DemoKit={}", testdata().join("demo/DemoKit.framework.dSYM").display());
    let done = run(root.path(), &crash, &["--assume", &of_same]);
    assert!(done.err.contains("symdex: found: DemoKit arm64"), "{}", done.err);
}

#[test]
fn an_assumption_that_cannot_be_used_says_why() {
    let root = folder();
    let report = asan(root.path());
    fs::write(root.path().join("text"), "text").expect("written");
    for (order, code, message) in [
        ("inline-dwarf4", 2, "expected NAME=FILE or NAME=ID"),
        ("=x", 2, "expected NAME=FILE or NAME=ID"),
        ("inline-dwarf4={}/none", 5, "none: cannot read"),
        ("inline-dwarf4={}/text", 6, "not a debug file"),
        ("inline-dwarf4=0123456789abcdef", 5, "no image of that id in --index, --dsym or the store"),
    ] {
        let done = run(root.path(), &report, &["--assume", order]);
        assert_eq!((done.code, done.out.as_str()), (Some(code), ""), "{order}: {}", done.err);
        assert!(done.err.contains(message), "{order}: {}", done.err);
    }
    let unused = format!("Other={}", dsym("inline-dwarf4").display());
    let done = run(root.path(), &report, &["--assume", &unused]);
    assert!(
        done.err.contains("--assume Other: no report has a frame to answer in an image of that name"),
        "{}",
        done.err
    );
}

#[test]
fn needs_lists_the_images_of_a_report_and_their_sources() {
    let root = folder();
    let demo = testdata().join("demo");
    let crash = demo.join("demo.crash");
    let kit = demo.join("DemoKit.framework.dSYM");
    let done = symbolicate(root.path(), &kit, &["--needs"], [&crash]);
    assert_eq!(done.code, Some(3), "{}", done.err);
    let expected =
        "missing   app     15 frames  DemoApp arm64 4C4C4479-5555-3144-A170-308419376AFA /private/var/";
    assert!(done.out.starts_with(expected), "{}", done.out);
    let file = kit.join("Contents/Resources/DWARF/DemoKit");
    assert!(
        done.out.contains(&format!("DemoKit.framework/DemoKit\n    in {}\n", file.display())),
        "{}",
        done.out
    );
    assert!(done.out.contains("\nmissing   system   5 frames  UIKitCore arm64 "), "{}", done.out);
    let totals = "symdex: 1 report needs 11 images: 1 found; not found: 2 of the app, 8 of system libraries\n\
                  symdex: give the debug files of missing images with --dsym, or have them fetched with \
                  --debug-source\n";
    assert_eq!(done.err, totals);
    assert!(!root.path().join("store").exists(), "nothing is built");
    let all = symbolicate(root.path(), &demo, &[], [&crash]);
    assert_eq!(all.code, Some(0), "{}", all.err);
    let json = symbolicate(root.path(), &demo, &["--needs", "--format", "json"], [&crash, &crash]);
    let images = json.json();
    assert_eq!((json.code, images.len()), (Some(0), 11), "{}", json.err);
    let index = root.path().join("store/4c/4c4c447955553144a170308419376afa.symdex");
    let app = &images[0];
    assert_eq!(
        (&app["name"], &app["status"], &app["is_app"]),
        (&"DemoApp".into(), &"found".into(), &true.into())
    );
    assert_eq!((&app["frames"], &app["reports"]), (&30.into(), &2.into()));
    assert_eq!(app["source"].as_str(), index.to_str());
}

#[test]
fn needs_reports_damage_and_images_without_ids() {
    let root = folder();
    let demo = testdata().join("demo");
    symbolicate(root.path(), &demo, &[], [demo.join("demo.crash")]);
    let index = root.path().join("store/4c/4c4c442755553144a19dbd913be790e0.symdex");
    fs::write(&index, "").expect("written");
    let done = symbolicate(root.path(), &demo, &["--needs"], [demo.join("demo.crash")]);
    assert_eq!(done.code, Some(4), "{}", done.err);
    assert!(done.out.contains("damaged   app     11 frames  DemoKit arm64"), "{}", done.out);
    assert!(fs::read(&index).expect("there").is_empty(), "nothing is built");
    let report = cut_crash(root.path());
    let done = symbolicate(root.path(), &demo, &["--needs"], [&report]);
    assert_eq!(done.code, Some(3), "{}", done.err);
    assert!(
        done.out.starts_with("missing   app     15 frames  DemoApp arm64 without an id\n"),
        "{}",
        done.out
    );
    let done = symbolicate(root.path(), &demo, &["--needs", "--match-by-name"], [&report]);
    assert!(
        done.out.starts_with("found     app     15 frames  DemoApp arm64 without an id\n    by name: "),
        "{}",
        done.out
    );
}

/// A part of an id is enough if only one image begins with it.
#[test]
fn an_assumed_id_may_be_the_start_of_one() {
    let root = folder();
    let report = asan(root.path());
    let files = root.path().join("files");
    fs::create_dir_all(&files).expect("a folder");
    for name in ["inline-dwarf4", "inline-dwarf5"] {
        fs::copy(debug_file(name), files.join(name)).expect("copied");
    }
    let done = run(root.path(), &report, &["--assume", "inline-dwarf4=4C4C4470-5555", "--dsym", "{}/files"]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("#0 0x55d1003b8 in mip /src/symdex/inline/level/mip.h:5\n"), "{}", done.out);
    let done = run(root.path(), &report, &["--assume", "inline-dwarf4=4c4c", "--dsym", "{}/files"]);
    assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{}", done.err);
    let candidate = "inline-dwarf4 arm64 4c4c447055553144a1a22a1f1f7676f4";
    assert!(
        done.err.contains("several ids begin with 4c4c: ") && done.err.contains(candidate),
        "{}",
        done.err
    );
}

/// A damaged page is found only by the addresses in it.
#[test]
fn needs_finds_the_damage_that_symbolicate_finds() {
    let root = folder();
    let report = asan(root.path());
    let id = "4c4c447055553144a1a22a1f1f7676f4";
    let assume = format!("inline-dwarf4={id}");
    let built = run(
        root.path(),
        &report,
        &["--assume", &format!("inline-dwarf4={}", dsym("inline-dwarf4").display())],
    );
    assert_eq!(built.code, Some(0), "{}", built.err);
    let index = root.path().join(format!("store/4c/{id}.symdex"));
    let whole = fs::read(&index).expect("there");
    let mut damaged_pages = 0;
    for place in (0..whole.len()).step_by(16) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0xff;
        fs::write(&index, bytes).expect("written");
        let done = run(root.path(), &report, &["--assume", &assume]);
        if !done.err.contains("parts of it are damaged") {
            continue;
        }
        damaged_pages += 1;
        let needs = run(root.path(), &report, &["--assume", &assume, "--needs"]);
        assert_eq!((needs.code, done.code), (Some(4), Some(4)), "{}", needs.err);
        assert!(needs.out.starts_with("damaged "), "{}", needs.out);
        if damaged_pages == 3 {
            return;
        }
    }
    panic!("no page was damaged");
}

#[test]
fn needs_names_what_is_near_and_how_to_take_it() {
    let root = folder();
    let report = cut_crash(root.path());
    let done = symbolicate(root.path(), &testdata().join("demo"), &["--needs"], [&report]);
    let near = "\n    near: DemoKit arm64 4C4C4427-5555-3144-A19D-BD913BE790E0: same name; \
                the report does not say which build\n";
    assert!(done.out.contains(near), "{}", done.out);
    assert!(done.err.contains("--match-by-name") && done.err.contains("--assume NAME=FILE"), "{}", done.err);
    let json =
        symbolicate(root.path(), &testdata().join("demo"), &["--needs", "--format", "json"], [&report]);
    let images = json.json();
    let kit = images.iter().find(|image| image["name"] == "DemoKit").expect("DemoKit");
    assert_eq!(kit["near"][0]["nearness"], "same_name", "{kit}");
    let ambiguous = root.path().join("files");
    for (folder, name) in [("a", "inline-dwarf4"), ("b", "inline-dwarf5")] {
        fs::create_dir_all(ambiguous.join(folder)).expect("folders");
        fs::copy(debug_file(name), ambiguous.join(folder).join("inline-dwarf4")).expect("copied");
    }
    let done = run(root.path(), &asan(root.path()), &["--needs", "--match-by-name", "--dsym", "{}/files"]);
    assert!(done.err.contains("choose one of several images with --assume NAME=ID"), "{}", done.err);
}

/// glibc prints the distance from an exported function, and no load address. Lines that state the load address get the
/// same answers.
#[test]
fn a_function_of_a_library_stands_for_its_load_address() {
    let root = folder();
    let report = root.path().join("backtrace.txt");
    let (dsym, index) = (dsym("inline-dwarf4"), root.path().join("store"));
    let answered = |text: &str, option: &str, source: &Path| {
        fs::write(&report, text).expect("written");
        let done = run(root.path(), &report, &["--match-by-name", option, source.to_str().expect("UTF-8")]);
        let lines: Vec<_> = done.out.lines().map(|line| line.replace(text.trim_end(), "")).collect();
        (lines, done)
    };
    // The first answer builds the index.
    for (option, source) in [("--dsym", dsym.as_path()), ("--index", &index)] {
        let (chain, done) = answered("./inline-dwarf4(pyramid+0x61) [0x7f0000401]\n", option, source);
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(chain.len() == 3 && chain[2].starts_with(" pyramid + 97 "), "{chain:?}");
        let (expected, _) = answered("./inline-dwarf4(+0x401) [0x7f0000401]\n", option, source);
        assert_eq!(chain, expected);
    }
    let (chain, done) = answered("./inline-dwarf4(nothing+0x61) [0x7f0000401]\n", "--index", &index);
    assert_eq!((chain, done.code), (vec![String::new()], Some(3)), "{}", done.err);
    let why = "no load address, and the index has no function or several functions named nothing";
    assert!(done.err.contains(why), "{}", done.err);
}
