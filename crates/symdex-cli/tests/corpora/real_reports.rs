//! Real reports of Apple's systems, compared with the answers of Apple's atos for their frames.

use std::fs;
use std::path::Path;

use crate::common::{folder, symbolicate};
use crate::corpora::report_corpora::files;
use serde_json::Value;
use symdex_testkit::corpus;

/// The options that answer as atos does.
const AS_ATOS: [&str; 5] = ["--lines", "exact", "--no-inlines", "--addresses", "as-given"];

/// Lines of the expected reports that atos changed and symbolicate does not, and why.
const LEFT_ALONE: [(&str, &str, &str); 1] = [(
    "report_symbolicated.crash",
    "  rip: 0x00000001003dade1 -[MyClass crashingMethod] (in CrashingAndHangingTest) (main.m:50)",
    "a register, the rest of whose line atos's caller has overwritten; registers stay as they are",
)];

/// Every answer of atos in an expected report is the answer of symdex for that address.
pub(crate) fn frames_have_the_answers_of_atos() {
    let root = folder();
    let corpus = corpus("atos-reports", root.path());
    let history = corpus.join("MacSymbolicator-history");
    let mut compared = 0;
    let mut left_alone = Vec::new();
    for (folder, names) in [
        ("2019-10-22-76de4d5/MacSymbolicatorTests/Resources", &["ios-report.crash", "report.crash"][..]),
        (
            "2022-09-18-4c56af2/MacSymbolicatorTests/Resources/Crashes",
            &[
                "ios-crash.crash",
                "ios-crash.ips",
                "multi-target-crash.crash",
                "multi-target-crash.ips",
                "single-target-crash.crash",
                "single-target-crash.ips",
            ],
        ),
    ] {
        for name in names {
            let path = history.join(folder).join(name);
            let done =
                symbolicate(root.path(), &history, &[&AS_ATOS[..], &["--format", "json"]].concat(), [&path]);
            assert_eq!(done.code, Some(0), "{}", done.err);
            let [report] = &done.json()[..] else { panic!("{}", done.out) };
            let atos_report = atos_report(&path);
            for line in atos_report.1.lines().filter(|line| line.contains(" (in ")) {
                if let Some(known) =
                    LEFT_ALONE.iter().find(|known| atos_report.0 == known.0 && line == known.1)
                {
                    left_alone.push(known);
                    continue;
                }
                let (address, answer) = atos(line);
                assert_eq!(ours(report, address), answer, "{}: {line}", path.display());
                compared += 1;
            }
        }
    }
    assert_eq!((compared, left_alone.len()), (19, LEFT_ALONE.len()));
}

/// The name and the text of the report that atos made from the report at `path`.
fn atos_report(path: &Path) -> (String, String) {
    let stem = path.file_stem().expect("a name").to_string_lossy();
    let extension = path.extension().expect("an extension").to_string_lossy();
    let name = format!("{stem}_symbolicated.{extension}");
    let text = fs::read_to_string(path.with_file_name(&name)).expect("the report of atos");
    (name, text)
}

/// The address, and the function with its file and line, in `... 0x1007da4bc main (in App) (main.m:9)`.
fn atos(line: &str) -> (u64, String) {
    let (head, place) = line.split_once(" (in ").expect("an image");
    let place = place.split_once(") ").expect("a place").1;
    let (address, function) =
        head.split_once("0x").and_then(|(_, rest)| rest.split_once(' ')).expect("an address");
    (u64::from_str_radix(address, 16).expect("hexadecimal"), format!("{function} {place}"))
}

fn ours(report: &Value, address: u64) -> String {
    let threads = report["threads"].as_array().expect("threads").iter();
    let mut frames = threads.flat_map(|thread| thread["frames"].as_array().expect("frames"));
    let frame = frames.find(|frame| frame["address"] == format!("{address:#x}")).expect("the frame");
    let [function] = &frame["functions"].as_array().expect("functions")[..] else { panic!("{frame}") };
    let file = function["file"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let name = function["function"].as_str().expect("a function");
    format!("{name} ({file}:{})", function["line"])
}

/// Without an index, `.ips` files and text reports come back byte for byte. With one, only the frames of the app
/// change.
pub(crate) fn everything_that_is_not_symbolicated_stays_byte_for_byte() {
    let root = folder();
    let [atos, leaking] = ["atos-reports", "memory-leaking-app"].map(|name| corpus(name, root.path()));
    let mut reports = Vec::new();
    for folder in [&atos, &leaking] {
        files(folder, &mut reports);
    }
    reports
        .retain(|path| path.extension().is_some_and(|extension| extension == "ips" || extension == "crash"));
    assert_eq!(reports.len(), 19);
    for path in reports {
        // The expected reports with the extension .ips are text. The content decides the format.
        let before = fs::read(&path).expect("readable");
        let empty = root.path().join("empty");
        fs::create_dir_all(&empty).expect("a folder");
        let mut run = crate::common::command();
        run.arg("symbolicate").arg(&path).arg("--store").arg(&empty);
        let output = run.output().expect("ran");
        assert!(output.stdout == before, "{} has changed", path.display());
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", path.display());
    }
}

pub(crate) fn json_keeps_everything_but_the_frames_of_the_app() {
    let root = folder();
    let corpus = corpus("atos-reports", root.path());
    let history = corpus.join("MacSymbolicator-history");
    let path = history.join("2022-09-18-4c56af2/MacSymbolicatorTests/Resources/Crashes/ios-crash.ips");
    let before = fs::read_to_string(&path).expect("readable");
    let done = symbolicate(root.path(), &history, &[], [&path]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    let json = |text: &str| -> Value {
        serde_json::from_str(text.split_once('\n').expect("a header").1).expect("JSON")
    };
    let (mut old, mut new) = (json(&before), json(&done.out));
    let frames = |report: &mut Value| {
        let threads = report["threads"].as_array_mut().expect("threads");
        threads.iter_mut().map(|thread| thread["frames"].take()).collect::<Vec<_>>()
    };
    let (old_frames, new_frames) = (frames(&mut old), frames(&mut new));
    assert_eq!(old, new);
    assert_eq!(old_frames[1..], new_frames[1..]);
    let lines = done.out.lines().filter(|line| !before.lines().any(|other| other == *line)).count();
    assert_eq!(lines, 1, "threads are one line");
    let added: Vec<_> =
        new_frames[0].as_array().expect("frames").iter().filter(|f| f["sourceFile"].is_string()).collect();
    let symbols: Vec<_> = added.iter().map(|frame| frame["symbol"].as_str().expect("a name")).collect();
    let expected = [
        "specialized static CrashClass.pleaseCrash()",
        "static CrashClass.pleaseCrash()",
        "ViewController.viewDidLoad()",
        "@objc ViewController.viewDidLoad()",
        "main",
    ];
    assert_eq!(symbols, expected);
    assert_eq!(
        (&added[1]["inline"], &added[1]["imageOffset"]),
        (&Value::Bool(true), &added[3]["imageOffset"])
    );
}

/// One of the reports is of the build of the dSYM. The other is of another build, which the summary names.
pub(crate) fn a_report_of_another_build_names_the_missing_image_and_the_near_one() {
    let root = folder();
    let corpus = corpus("memory-leaking-app", root.path());
    let folder = corpus.join("mobile-dev-inc-Symbolicator/Tests/SymbolicatorTests/Resources");
    let matching =
        symbolicate(root.path(), &folder, &AS_ATOS, [folder.join("memory_leak_unsymbolicated.txt")]);
    assert_eq!(matching.code, Some(0), "{}", matching.err);
    for line in [
        "29  dev.mobile.MemoryLeakingApp           0x102d6026e main + 30 (<compiler-generated>:0)",
        "closure #2 in closure #1 in closure #1 in closure #1 in ContentView.body.getter + 135 (ContentView.swift:40)",
    ] {
        assert!(matching.out.contains(line), "{}", matching.out);
    }
    for name in ["MemoryLeakingApp-2022-08-05-132419.ips", "MemoryLeakingApp-2022-08-05-132419.crash"] {
        let other = symbolicate(root.path(), &folder, &[], [folder.join(name)]);
        assert_eq!(other.code, Some(3), "{}", other.err);
        let missing =
            "symdex: missing: MemoryLeakingApp x86_64 938A8C4A-3BE6-3A6B-865D-1E39ADBFA134 /Users/USER/";
        let near = "  near: MemoryLeakingApp x86_64 345607C9-5CDB-323A-894D-85F1F839B4B4: another build of that name\n";
        assert!(other.err.contains(missing) && other.err.contains(near), "{}", other.err);
        assert_eq!(other.out, fs::read_to_string(folder.join(name)).expect("readable"));
    }
}

/// Each frame of the app in the output of `sample` has the function and the line of atos.
pub(crate) fn samples_have_the_answers_of_atos() {
    let root = folder();
    let corpus = corpus("atos-reports", root.path());
    let history = corpus.join("MacSymbolicator-history");
    let mut compared = 0;
    for folder in [
        "2019-10-22-76de4d5/MacSymbolicatorTests/Resources",
        "2022-09-18-4c56af2/MacSymbolicatorTests/Resources/Samples",
    ] {
        for name in ["singlethread-sample.txt", "multithread-sample.txt"] {
            let path = history.join(folder).join(name);
            let done = symbolicate(root.path(), &history, &AS_ATOS, [&path]);
            assert_eq!(done.code, Some(0), "{}", done.err);
            let before = fs::read_to_string(&path).expect("readable");
            for (line, (ours, theirs)) in
                before.lines().zip(done.out.lines().zip(atos_report(&path).1.lines()))
            {
                if line == theirs {
                    assert_eq!(ours, line, "{}", path.display());
                    continue;
                }
                // sample itself writes `main (in App) (main.m:57) [0x101671e30]` as
                // `main  (in App) + 16  [0x101671e30]  main.m:57`.
                let (head, place) = theirs.split_once(") (").expect("a place");
                let (place, address) = place.split_once(") ").expect("an address");
                let head = head.replace(" (in ", "  (in ");
                assert!(ours.starts_with(&format!("{head}) + ")), "{ours}: {theirs}");
                assert!(ours.ends_with(&format!("  {address}  {place}")), "{ours}: {theirs}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 10);
}
