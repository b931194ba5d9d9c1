//! Crashes of Swift 6.3 programs on macOS 26, compared with the answers of Apple's tools for the same dSYMs.

use std::path::{Path, PathBuf};

use crate::common::{folder, symbolicate, symdex};
use crate::corpora::report_corpora::files;
use serde_json::{Value, json};
use symdex_testkit::corpus;

/// A frame of a program: its image offset, and what the tools of Apple print there.
struct Known {
    offset: u64,
    /// The function.
    symbol: &'static str,
    /// The distance from the start of the function, which reports state.
    distance: u64,
    /// The line of main.swift in reports: that of the call, because Apple's tools look return addresses up less one.
    line: u64,
    /// The place that atos prints for the address as it is.
    atos: &'static str,
}

const fn known(offset: u64, symbol: &'static str, distance: u64, line: u64, atos: &'static str) -> Known {
    Known { offset, symbol, distance, line, atos }
}

/// The frames of the programs.
///
/// Apple's answers are known for all frames of crashspike, from its symbolicated reports. CrashSymbolicator.py prints
/// line 10 for the first, and atos line 14 for the second. atos prints the functions of the first two frames of
/// nsexcrash, and line 8 for the first. The other lines are those of the calls in the sources, and the other places
/// those of the line table.
const PROGRAMS: [(&str, &[Known]); 3] = [
    (
        "crashspike",
        &[
            // The call ends the code of line 10. The row at the return address has line 0.
            known(3148, "applyDiscount(_:)", 180, 10, "/<compiler-generated>:0"),
            known(3224, "processOrder(_:)", 40, 14, "main.swift:14"),
            known(2524, "run()", 76, 19, "main.swift:19"),
            known(2436, "main", 12, 23, "main.swift:23"),
        ],
    ),
    (
        "nsexcrash",
        &[
            known(2756, "throwingHelper()", 128, 8, "main.swift:8"),
            known(2620, "doWork()", 12, 12, "main.swift:13"),
            known(2596, "main", 12, 15, "main.swift:15"),
        ],
    ),
    (
        "nullderef",
        &[
            known(2460, "readThroughNullPointer()", 24, 9, "main.swift:9"),
            known(2192, "run()", 144, 13, "main.swift:13"),
            known(2036, "main", 12, 16, "main.swift:16"),
        ],
    ),
];

/// A report whose frames its author wrote by hand: five of a function `recurse(_:)`, which no program has, at offsets
/// behind the code of nullderef.
const MADE_UP: (&str, [u64; 5]) = ("stack-overflow.ips", [3000, 3040, 3080, 3120, 3160]);

/// The programs' folders, with their dSYMs.
fn programs(corpus: &Path) -> PathBuf {
    corpus.join("corpus/fixtures")
}

pub(crate) fn atos_prints_what_apples_atos_prints() {
    let root = folder();
    let programs = programs(&corpus("crashdx", root.path()));
    for (program, frames) in PROGRAMS {
        let dsym = programs.join(format!("{program}/{program}.dSYM"));
        let atos = |options: &[&str]| {
            let offsets = frames.iter().map(|frame| format!("{:#x}", frame.offset));
            let fixed = ["atos", "-arch", "arm64", "-o", dsym.to_str().expect("UTF-8"), "-offset"];
            symdex(fixed.iter().chain(options).map(ToString::to_string).chain(offsets)).ok()
        };
        let line = |Known { symbol, atos, .. }: &Known| format!("{symbol} (in {program}) ({atos})\n");
        assert_eq!(atos(&[]), frames.iter().map(line).collect::<String>());
        // No function is inlined at these addresses.
        assert_eq!(atos(&["-i"]), frames.iter().map(|frame| line(frame) + "\n").collect::<String>());
    }
}

/// Each frame of each report has Apple's answer, under both line policies: none of the instructions of these calls has
/// line 0.
pub(crate) fn reports_have_the_frames_of_crash_symbolicator() {
    let root = folder();
    let corpus = corpus("crashdx", root.path());
    let mut reports = Vec::new();
    files(&corpus, &mut reports);
    reports.retain(|path| path.extension().is_some_and(|extension| extension == "ips"));
    reports.sort();
    assert_eq!(reports.len(), 18);
    for policy in ["statement", "exact"] {
        let (mut compared, mut made_up) = (0, Vec::new());
        for report in &reports {
            let options = ["--lines", policy];
            let done = symbolicate(root.path(), &programs(&corpus), &options, [report]);
            for (program, frame) in frames(&done.out) {
                let offset = frame["imageOffset"].as_u64().expect("an offset");
                let Some((_, known)) = PROGRAMS.iter().find(|(name, _)| *name == program) else { continue };
                let Some(known) = known.iter().find(|known| known.offset == offset) else {
                    made_up.push((report.file_name().expect("a name").to_owned(), offset));
                    continue;
                };
                let expected = json!({
                    "imageIndex": 0,
                    "imageOffset": offset,
                    "symbol": known.symbol,
                    "symbolLocation": known.distance,
                    "sourceFile": "main.swift",
                    "sourceLine": known.line,
                });
                assert_eq!(frame, expected, "{} {policy}", report.display());
                compared += 1;
            }
        }
        assert_eq!(compared, 64);
        assert_eq!(made_up, MADE_UP.1.map(|offset| (MADE_UP.0.into(), offset)));
    }
}

/// The frames of an `.ips` file, with the names of their images.
fn frames(ips: &str) -> Vec<(String, Value)> {
    let report: Value = serde_json::from_str(ips.split_once('\n').expect("a header").1).expect("JSON");
    let stacks = report["threads"].as_array().into_iter().flatten().map(|thread| &thread["frames"]);
    let stacks = stacks.chain([&report["lastExceptionBacktrace"]]);
    let frames = stacks.flat_map(|frames| frames.as_array().cloned().unwrap_or_default());
    let image = |frame: &Value| {
        let number = usize::try_from(frame["imageIndex"].as_u64().expect("a number")).expect("small");
        report["usedImages"][number]["name"].as_str().unwrap_or_default().to_owned()
    };
    frames.map(|frame| (image(&frame), frame)).collect()
}
