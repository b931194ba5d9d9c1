//! Files that a debug file refers to, in the corpus of samply's own tests.

use std::fs;

use crate::common::{CommandOutput, command, folder, names_in, symbolicate, symdex_on};
use symdex_testkit::corpus;

pub(crate) fn lookup_finds_a_file_that_a_debug_file_refers_to_in_a_debug_dir() {
    let root = folder();
    let corpus = corpus("samply-fixtures", root.path());
    let original = corpus.join("samply/fixtures/other/simple-example/out/regular-debuglink");
    let main = root.path().join("main");
    fs::copy(original.join("main"), &main).expect("copied");
    let lookup = |more: &[&str]| {
        let mut run = command();
        run.arg("lookup").arg(&main).args(["--svma", "0x8a0"]).args(more);
        CommandOutput::from(run.output().expect("ran"))
    };
    let alone = lookup(&[]);
    assert!(alone.out.ends_with("main + 0x0 (symbol table)\n"), "{}", alone.out);
    assert!(alone.err.contains("the debug file main.dbg (build id 581d3e0c"), "{}", alone.err);
    assert!(alone.err.contains("is not found; answers have the names"), "{}", alone.err);
    assert!(alone.err.contains("give the folder of the right one with --debug-dir"), "{}", alone.err);
    let with = lookup(&["--debug-dir", original.to_str().expect("UTF-8")]);
    assert!(with.out.ends_with("/src/main.cpp:5\n") && with.err.is_empty(), "{}{}", with.out, with.err);
}

pub(crate) fn symbolicate_finds_files_that_a_debug_file_refers_to_in_a_debug_dir() {
    let root = folder();
    let corpus = corpus("samply-fixtures", root.path());
    let original = corpus.join("samply/fixtures/other/simple-example/out/regular-debuglink");
    let (main, report) = (root.path().join("main"), root.path().join("list"));
    fs::copy(original.join("main"), &main).expect("copied");
    let ids = symdex_on(&main, "ids {} --json").json();
    fs::write(&report, format!("{} 0x8a0 0x0\n", ids[0]["id"].as_str().expect("an id"))).expect("written");
    for (name, options) in [("a", &[][..]), ("b", &["--debug-dir", original.to_str().expect("UTF-8")])] {
        let done = symbolicate(&root.path().join(name), &main, options, [&report]);
        assert_eq!(
            (done.code, done.out.contains("main.cpp:5")),
            (Some(0), !options.is_empty()),
            "{}",
            done.out
        );
    }
}

pub(crate) fn an_isolated_build_reads_a_file_in_a_debug_dir() {
    let root = folder();
    let corpus = corpus("samply-fixtures", root.path());
    let original = corpus.join("samply/fixtures/other/simple-example/out/regular-debuglink");
    let stripped = root.path().join("main");
    fs::copy(original.join("main"), &stripped).expect("copied");
    let index = |name: &str, more: &[&str]| {
        let out = root.path().join(name);
        let mut build = command();
        build.arg("build").arg(&stripped).arg("-o").arg(&out).args(more);
        assert!(build.status().expect("ran").success());
        fs::read(out.join(names_in(&out).pop().expect("an index"))).expect("readable")
    };
    let debug_dir = ["--debug-dir", original.to_str().expect("UTF-8")];
    let alone = index("alone", &[]);
    let with = index("with", &debug_dir);
    assert!(alone != with);
    assert!(with == index("isolated", &[&debug_dir[..], &["--isolate"]].concat()));
}
