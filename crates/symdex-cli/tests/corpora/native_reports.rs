//! Android's backtraces, with what its own ndk-stack answered for their frames.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{dsym, folder, symbolicate};
use symdex_testkit::corpus;

/// The libraries that the corpus has, with their build ids.
const LIBRARIES: [(&str, &str); 3] = [
    ("libbase.so", "d280fa435ad6a06508c989758d188679"),
    ("libutils.so", "7376adfc34e61bd6ddd0d4af404b9adf"),
    ("libziparchive.so", "786581cf8457e7df2bd30179c821d754"),
];

fn files(root: &Path) -> PathBuf {
    corpus("ndk-stack", root).join("android-ndk-tests/tests/pytest/ndkstack/files")
}

/// `text` with a build id for each frame of the libraries that states none. ndk-stack matches libraries by name, symdex
/// by build id.
fn with_ids(text: &str) -> String {
    let with_id = |line: &str| {
        let library = LIBRARIES.iter().find(|(name, _)| line.contains(&format!("!{name}")));
        match library.filter(|_| !line.contains("BuildId")) {
            Some((_, id)) => format!("{line} (BuildId: {id})\n"),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(with_id).collect()
}

/// `(function, file:line)` for each frame of ndk-stack's output that is in one of the libraries.
fn expected(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let frames = lines.windows(3).filter(|lines| {
        let is_known = LIBRARIES.iter().any(|(name, _)| lines[0].contains(&format!("!{name}")));
        is_known
            && lines[0].starts_with('#')
            && !lines[1].starts_with('#')
            && !lines[1].starts_with("WARNING")
    });
    // symdex has no columns. In the expected output they are 0.
    let place = |place: &str| place.strip_suffix(":0").expect("a column").to_owned();
    frames.map(|lines| (lines[1].to_owned(), place(lines[2]))).collect()
}

/// The same for the output of symdex.
fn found(text: &str) -> Vec<(String, String)> {
    let more = text.lines().filter_map(|line| line.strip_prefix("      "));
    let split = |line: &str| {
        let (place, function) = line.split_once(" (")?;
        Some((function.strip_suffix(')')?.to_owned(), place.to_owned()))
    };
    more.filter_map(split).collect()
}

pub(crate) fn frames_have_the_answers_of_ndk_stack() {
    let root = folder();
    let files = files(root.path());
    let text = with_ids(&fs::read_to_string(files.join("backtrace.txt")).expect("the corpus has it"));
    let report = root.path().join("backtrace.txt");
    fs::write(&report, &text).expect("a folder of the test's own");
    let after = symbolicate(root.path(), &files, &[], [&report]);
    assert_eq!(after.code, Some(3), "not every library is there: {}", after.err);
    // The report names some libraries only by their offset in a package. ndk-stack finds them so; each occurs twice.
    let mut expected = expected(&fs::read_to_string(files.join("expected.txt")).expect("the corpus has it"));
    let mut found = found(&after.out);
    expected.sort();
    expected.dedup();
    found.sort();
    assert_eq!(found.len(), 5, "{}", after.out);
    found.dedup();
    assert_eq!((found.len(), found), (3, expected));
    // Lines without an answer are unchanged.
    let unanswered = text.lines().filter(|line| LIBRARIES.iter().all(|(_, id)| !line.contains(id)));
    assert!(unanswered.clone().count() > 10);
    for line in unanswered {
        assert!(after.out.lines().any(|other| other == line), "{line}");
    }
}

pub(crate) fn a_build_id_that_is_missing_has_a_reason_and_what_is_near() {
    let root = folder();
    let files = files(root.path());
    let after = symbolicate(root.path(), &files, &[], [files.join("backtrace.txt")]);
    let missing = "missing: test.apk!libziparchive.so ? bad01245 test.apk!libziparchive.so: 1 frame: no index or debug \
                   file has its id\n\
                   symdex:   near: libziparchive.so arm 786581CF-8457-E7DF-2BD3-0179C821D754: another build of that name";
    assert!(after.err.contains(missing), "{}", after.err);
    // No frame without an id is answered.
    assert_eq!(found(&after.out).len(), 2, "{}", after.out);
}

pub(crate) fn without_debug_files_reports_come_back_as_they_were() {
    let root = folder();
    let files = files(root.path());
    let empty = root.path().join("empty");
    fs::create_dir(&empty).expect("a folder of the test's own");
    for name in ["backtrace.txt", "hwasan.txt", "multiple.txt"] {
        let after = symbolicate(root.path(), &empty, &[], [files.join(name)]);
        assert_eq!(after.out, fs::read_to_string(files.join(name)).expect("the corpus has it"));
    }
}

/// For an executable that is linked to a fixed address, sanitizers and Android count from address 0, not from its
/// start.
pub(crate) fn addresses_are_those_of_the_file() {
    let id = "4c4c447055553144a1a22a1f1f7676f4";
    let frames = [
        format!("#00 pc 00000001000003b8  /data/a (BuildId: {id})\n"),
        format!(
            "    #1 0x104a343b8  (a:arm64+0x1000003b8) (BuildId: {id}32000000200000000100000000000d00)\n"
        ),
    ];
    let root = folder();
    let report = root.path().join("report");
    fs::write(&report, frames.concat()).expect("a folder of the test's own");
    let after = symbolicate(root.path(), &dsym("inline-dwarf4"), &[], [&report]);
    let file = "/src/symdex/inline/level/mip.h";
    let expected = format!(
        "#00 pc 00000001000003b8  /data/a (pyramid+24) (BuildId: {id})\n    {file}:5 (mip)\n    {file}:11 (pyramid)\n    \
         #1 0x104a343b8 in mip {file}:5\n    #1 0x104a343b8 in pyramid {file}:11\n"
    );
    assert_eq!((after.code, after.out), (Some(0), expected), "{}", after.err);
}
