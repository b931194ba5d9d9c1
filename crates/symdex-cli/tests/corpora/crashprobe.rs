//! The known frames of the crashes in the corpora's crashprobe-ios, compared with the output of `symdex symbolicate`.

use std::path::{Path, PathBuf};

use crate::common::{folder, symbolicate};
use serde_json::Value;
use symdex_testkit::{corpora, corpus};

/// Expected rows that no report confirms (report, frame, property, value), and why the expectation is wrong.
const WRONG: [(&str, &[[&str; 3]], &str); 4] = [
    (
        "Jump into an NX page.json",
        &[
            ["0", "line", "37"],
            ["0", "file", "CRLCrashNXPage.m"],
            ["-", "crashprobe.com-expected", "-[CRLCrashNXPage crash] (CRLCrashNXPage.m:37)"],
        ],
        "the release builds have no debug information for -[CRLCrashNXPage crash]; the debug reports have no frame \
         of the app",
    ),
    (
        "Stack overflow.json",
        &[["0", "line", "39"]],
        "the instruction that crashed is of line 38 in every report that has its dSYM; the frames above are of line 39",
    ),
    (
        "DWARF Unwinding.json",
        &[
            ["2", "line", "49"],
            ["4", "line", "35"],
            ["2", "file", "CRLFramelessDWARF.m"],
            ["1", "file:line", "CRLDetailViewController.m:53"],
            ["-", "crashprobe.com-expected", "-[CRLFramelessDWARF crash] (CRLFramelessDWARF.m:49)"],
            [
                "-",
                "crashprobe.com-expected",
                "-[CRLDetailViewController doCrash] (CRLDetailViewController.m:53)",
            ],
        ],
        "the reports end above CRLFramelessDWARF_test: who wrote them did not unwind further",
    ),
    (
        "Swift.json",
        &[[
            "-",
            "crashprobe.com-expected",
            "@objc CrashLibiOS.CRLCrashSwift.crash (CrashLibiOS.CRLCrashSwift)() -> () (CRLCrashSwift.swift:36)",
        ]],
        "the thunk is of line 0, what it calls of line 36; the text is an old demangler's",
    ),
];

/// A frame of a crashed thread in one of the two images of the app, as symdex answers it.
#[derive(Clone, Debug, PartialEq)]
struct Frame {
    function: String,
    /// The file name.
    file: String,
    line: String,
}

/// A report, with the functions of the app's images in its crashed thread, innermost first.
struct Report {
    name: String,
    arch: String,
    chain: Vec<Frame>,
}

/// Every row of crashprobe-expected.tsv holds in a report of its name, or is in the list of wrong expectations.
pub(crate) fn crashes_have_their_known_frames() {
    let root = folder();
    let crashes = corpus("crashprobe-ios", root.path());
    let expected = std::fs::read_to_string(corpora().join("crashprobe-expected.tsv")).expect("there");
    let paths = paths(&crashes);
    let symbolicated = symbolicate(root.path(), &crashes, &["--format", "json", "--lines", "exact"], &paths);
    // There are no debug files of the system, and of some builds of the app.
    assert_eq!(symbolicated.code, Some(3), "{}", symbolicated.err);
    let reports: Vec<Report> = symbolicated.json().iter().zip(&paths).map(report).collect();
    assert_eq!(reports.len(), 128);

    let (mut borne_out, mut wrong) = (0, Vec::new());
    for row in expected.lines().skip(1) {
        let fields: Vec<&str> = row.split('\t').collect();
        let [report, _, frame, what, value] = fields[..] else { panic!("{row}") };
        let named = reports.iter().filter(|other| other.name == report);
        let holding = named.filter(|report| holds(report, frame, what, value)).count();
        borne_out += holding;
        if holding == 0 {
            wrong.push((report, [frame, what, value]));
        }
    }
    let known = WRONG.iter().flat_map(|(report, rows, _)| rows.iter().map(move |row| (*report, *row)));
    let (mut known, total) = (known.collect::<Vec<_>>(), expected.lines().count() - 1);
    wrong.sort_unstable();
    known.sort_unstable();
    assert_eq!(wrong, known);
    println!(
        "{} of {total} rows hold, in {borne_out} places of {} reports",
        total - wrong.len(),
        reports.len()
    );
    assert_eq!(borne_out, 429);
}

/// The reports below `root`, in order.
fn paths(root: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for kind in ["debug", "release"] {
        for arch in ["arm64", "armv7", "x86_64"] {
            let folder = root.join("symbolic/py/tests/res/ext/1.4.1").join(kind).join(arch);
            let entries = std::fs::read_dir(folder).expect("reports");
            let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
            paths.sort();
            all.extend(paths);
        }
    }
    all
}

fn report((json, path): (&Value, &PathBuf)) -> Report {
    assert_eq!(json["report"].as_str(), path.to_str());
    let threads = json["threads"].as_array().expect("threads");
    let crashed = threads.iter().find(|thread| thread["crashed"] == true).expect("a crashed thread");
    let is_app = |frame: &&Value| {
        let image = frame["image"].as_u64().and_then(|number| usize::try_from(number).ok());
        let path = image.and_then(|number| json["images"][number]["path"].as_str()).unwrap_or_default();
        path.ends_with("/CrashLibiOS") || path.ends_with("/CrashProbeiOS")
    };
    let frames = crashed["frames"].as_array().expect("frames").iter().filter(is_app);
    // For builds without a debug file, frames keep the names that the report states.
    let frames = frames.filter(|frame| frame["status"] == "symbolicated");
    let functions = frames.flat_map(|frame| frame["functions"].as_array().expect("functions"));
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    Report {
        name: name(path),
        arch: name(path.parent().expect("a folder")),
        chain: functions.map(frame).collect(),
    }
}

fn frame(json: &Value) -> Frame {
    let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
    let file = text("file").rsplit('/').next().unwrap_or_default().to_owned();
    Frame {
        function: text("function"),
        file,
        line: json["line"].as_u64().map_or(String::new(), |l| l.to_string()),
    }
}

/// Whether a row holds in a report. `frame` is the number of a frame, counting inlined ones, or `-` for any frame.
/// `what` is the property that must be `expected`.
fn holds(report: &Report, frame: &str, what: &str, expected: &str) -> bool {
    let Ok(number) = frame.parse::<usize>() else {
        let (arch, expected) = match expected.split_once(": ") {
            Some((arch, expected)) if arch.starts_with("ARM") => (arch.to_lowercase(), expected),
            _ => (report.arch.clone(), expected),
        };
        let text = |frame: &Frame| format!("{} ({}:{})", frame.function, frame.file, frame.line);
        return arch == report.arch && report.chain.iter().any(|frame| text(frame) == expected);
    };
    let Some(Frame { file, line, .. }) = report.chain.get(number) else { return false };
    match what {
        "line" => line == expected,
        "file" => file == expected,
        "file:line" => format!("{file}:{line}") == expected,
        other => panic!("{other}"),
    }
}
