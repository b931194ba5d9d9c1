//! Real reports of KSCrash, with the debug files of the apps that crashed.

use crate::common::{folder, symbolicate};
use serde_json::Value;
use symdex_testkit::corpus;

/// The answers of llvm-symbolizer for frames of the app, by the numbers of thread and frame. Frames of libraries keep
/// their names. Names without a line are from a symbol table.
const CRASH_TESTER: [(usize, usize, &str, &str); 7] = [
    (0, 5, "-[Crasher throwUncaughtNSException]", "Crasher.mm:96"),
    (0, 6, "__32-[AppDelegate(UI) crashCommands]_block_invoke", "AppDelegate+UI.m:358"),
    (0, 7, "-[CommandEntry executeWithViewController:]", "CommandTVC.m:48"),
    (0, 8, "-[CommandTVC tableView:didSelectRowAtIndexPath:]", "CommandTVC.m:128"),
    (0, 20, "main", "main.m:17"),
    (3, 3, "ksmachexc_i_handleExceptions", ""),
    (4, 2, "ksmachexc_i_handleExceptions", ""),
];

/// The address of the second frame is in a function that is inlined into the button's. Its line is made up by the
/// compiler.
const SWIFT_TESTER: [(usize, usize, &str, &str); 5] = [
    (
        0,
        0,
        "_TTSf4dg_d___TFC12Swift_Tester14ViewController15onButtonPressedfS0_FPSs9AnyObject_T_",
        "ViewController.swift:25",
    ),
    (
        0,
        1,
        "_TTSg5SiSiSs8HashableSs_Si___TFOSs25_VariantDictionaryStorage8maybeGetu0_Rq_Ss8Hashable_fGS_q_q0__Fq_GSqq0__",
        "ViewController.swift:0",
    ),
    (
        0,
        2,
        "_TTSf4dg_d___TFC12Swift_Tester14ViewController15onButtonPressedfS0_FPSs9AnyObject_T_",
        "ViewController.swift:25",
    ),
    (0, 19, "main", "AppDelegate.swift:12"),
    (6, 3, "ksmachexc_i_handleExceptions", ""),
];

pub(crate) fn testers_have_the_expected_backtraces() {
    let root = folder();
    let corpus = corpus("kscrash-testers", root.path());
    let folder = corpus.join("symsynd/tests/res");
    for (name, expected) in
        [("crash-report.json", &CRASH_TESTER[..]), ("swift-crash-report.json", &SWIFT_TESTER)]
    {
        let before = std::fs::read_to_string(folder.join(name)).expect("readable");
        let done = symbolicate(root.path(), &folder, &["--no-demangle"], [folder.join(name)]);
        assert_eq!(done.code, Some(0), "{}", done.err);
        let (before, after) = [&before, &done.out].map(|text| frames(text)).into();
        assert_eq!(changed(&before, &after), expected.iter().map(owned).collect::<Vec<_>>(), "{name}");
    }
}

type Row = (usize, usize, String, String);

fn owned((thread, frame, name, place): &(usize, usize, &str, &str)) -> Row {
    (*thread, *frame, (*name).to_owned(), (*place).to_owned())
}

fn frames(text: &str) -> Vec<Vec<Value>> {
    let report: Value = serde_json::from_str(text).expect("JSON");
    let contents = |thread: &Value| thread["backtrace"]["contents"].as_array().cloned().unwrap_or_default();
    report["crash"]["threads"].as_array().expect("threads").iter().map(contents).collect()
}

/// The frames of `after` that are not in `before`.
fn changed(before: &[Vec<Value>], after: &[Vec<Value>]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (thread, (before, after)) in before.iter().zip(after).enumerate() {
        for (number, frame) in after.iter().enumerate().filter(|(_, frame)| !before.contains(frame)) {
            let name = frame["symbol_name"].as_str().expect("a name").to_owned();
            let place = frame["source_file"].as_str().map(|file| format!("{file}:{}", frame["source_line"]));
            rows.push((thread, number, name, place.unwrap_or_default()));
        }
    }
    rows
}
