//! What is known of the crashes in the corpora's crashprobe-ios, against what symdex answers for their frames.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{command, folder};
use serde_json::Value;

/// Rows that no report bears out (report, frame, what, expected), and why the expectation is wrong.
const WRONG: [(&str, &[[&str; 3]], &str); 5] = [
    (
        "Execute a privileged instruction.json",
        &[
            ["0", "line", "42"],
            ["-", "crashprobe.com-expected", "ARMv7: -[CRLCrashPrivInst crash] (CRLCrashPrivInst.m:42)"],
        ],
        "the ARMv7 report of the debug build has no frame in that file, and that of the release build crashed in line 35",
    ),
    (
        "Jump into an NX page.json",
        &[
            ["0", "line", "37"],
            ["0", "file", "CRLCrashNXPage.m"],
            ["-", "crashprobe.com-expected", "-[CRLCrashNXPage crash] (CRLCrashNXPage.m:37)"],
        ],
        "the release builds have no debug information for -[CRLCrashNXPage crash], the debug reports no frame of the app",
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
    /// The file's own name.
    file: String,
    line: String,
}

/// A report, with the frames of its crashed thread: image id and the offset to look up, innermost first.
struct Report {
    name: String,
    arch: String,
    frames: Vec<(String, u64)>,
}

/// Every row of crashprobe-expected.tsv holds in a report of its name, or is known not to. The corpora are not part of the
/// repository; without them this says so.
#[test]
fn frames_are_those_that_the_crashes_are_known_to_have() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let Ok(expected) = std::fs::read_to_string(corpora.join("crashprobe-expected.tsv")) else {
        eprintln!("not compared with known crashes: {} is missing", corpora.display());
        return;
    };
    let root = folder();
    let unpacked =
        Command::new(corpora.join("unpack")).arg("-d").arg(root.path()).arg("crashprobe-ios").status();
    assert!(unpacked.expect("sh").success(), "unpack needs zstd and tar");
    let indexes = root.path().join("indexes");
    // Some of the libraries are partial and say so.
    let mut build = command();
    build.arg("build").arg(root.path().join("crashprobe-ios")).arg("-o").arg(&indexes);
    assert!(build.output().expect("ran").status.success());
    let reports = reports(&root.path().join("crashprobe-ios"), &indexes);
    assert_eq!(reports.len(), 128);
    let answers = answers(&reports, &indexes);

    let (mut borne_out, mut wrong) = (0, Vec::new());
    for row in expected.lines().skip(1) {
        let fields: Vec<&str> = row.split('\t').collect();
        let [report, _, frame, what, value] = fields[..] else { panic!("{row}") };
        let named = reports.iter().filter(|other| other.name == report);
        let holding = named.filter(|report| holds(report, &answers, frame, what, value)).count();
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
    assert_eq!(borne_out, 407);
}

/// The reports below `root`, with the frames that lie in images of `indexes`.
fn reports(root: &Path, indexes: &Path) -> Vec<Report> {
    let mut reports = Vec::new();
    for kind in ["debug", "release"] {
        for arch in ["arm64", "armv7", "x86_64"] {
            let folder = root.join("symbolic/py/tests/res/ext/1.4.1").join(kind).join(arch);
            let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
                .expect("reports")
                .map(|entry| entry.expect("readable").path())
                .collect();
            paths.sort();
            reports.extend(paths.iter().map(|path| report(path, arch, indexes)));
        }
    }
    reports
}

fn report(path: &Path, arch: &str, indexes: &Path) -> Report {
    let json: Value = serde_json::from_slice(&std::fs::read(path).expect("readable")).expect("JSON");
    let number = |value: &Value| {
        let digits = value.as_str().and_then(|text| text.strip_prefix("0x")).expect("0x");
        u64::from_str_radix(digits, 16).expect("hexadecimal")
    };
    let images = json["debug_meta"]["images"].as_array().expect("images");
    let ids: BTreeMap<u64, String> = images
        .iter()
        .map(|image| {
            let id = image["uuid"].as_str().expect("an id").replace('-', "").to_lowercase();
            (number(&image["image_addr"]), id)
        })
        .collect();
    let threads = json["threads"]["values"].as_array().expect("threads");
    let crashed = threads.iter().find(|thread| thread["crashed"] == true).expect("a crashed thread");
    let registers = &crashed["stacktrace"]["registers"];
    let instruction = ["pc", "rip"].map(|name| &registers[name]).into_iter().find(|value| value.is_string());
    // Few reports lack the registers.
    let instruction = instruction.map(number);
    // The outermost frame comes first.
    let stack = crashed["stacktrace"]["frames"].as_array().expect("frames").iter().rev();
    let frame = |(depth, frame): (usize, &Value)| {
        let package = frame["package"].as_str()?;
        let load = number(&frame["image_addr"]);
        let id = ids.get(&load).filter(|id| indexes.join(format!("{id}.symdex")).exists())?;
        let thumb = if arch == "armv7" { 1 } else { 0 };
        let address = number(&frame["instruction_addr"]) & !thumb;
        let is_app = package.ends_with("/CrashLibiOS") || package.ends_with("/CrashProbeiOS");
        // The instruction that crashed stands as it is; the others are where execution returns to, and so is the innermost one
        // where the instruction is in no image.
        let is_return = depth != 0 || instruction.is_some_and(|instruction| address != instruction & !thumb);
        is_app.then(|| (id.clone(), address - u64::from(is_return) - load))
    };
    Report {
        name: path.file_name().expect("a file").to_string_lossy().into_owned(),
        arch: arch.to_owned(),
        frames: stack.enumerate().filter_map(frame).collect(),
    }
}

/// What symdex answers for each image id and offset of the reports, innermost first, line rows taken as they are.
fn answers(reports: &[Report], indexes: &Path) -> BTreeMap<(String, u64), Vec<Frame>> {
    let asked: BTreeSet<(String, u64)> = reports.iter().flat_map(|report| report.frames.clone()).collect();
    let ids: BTreeSet<&String> = asked.iter().map(|(id, _)| id).collect();
    let mut answers = BTreeMap::new();
    for id in ids {
        let offsets: Vec<u64> = asked.iter().filter(|asked| asked.0 == *id).map(|asked| asked.1).collect();
        let mut child = command()
            .args(["lookup", "--json", "--lines", "exact", "--id", id])
            .arg(indexes)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let lines: String = offsets.iter().map(|offset| format!("{offset:#x}\n")).collect();
        // Far less than a pipe holds.
        stdin.write_all(lines.as_bytes()).expect("read");
        drop(stdin);
        let output = String::from_utf8(child.wait_with_output().expect("ran").stdout).expect("text");
        assert_eq!(output.lines().count(), offsets.len());
        for (offset, line) in offsets.into_iter().zip(output.lines()) {
            let answer: Value = serde_json::from_str(line).expect("JSON");
            let frames = answer["frames"].as_array().map_or(&[][..], Vec::as_slice);
            answers.insert((id.clone(), offset), frames.iter().map(frame).collect());
        }
    }
    answers
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

/// Whether a row holds in a report: `frame` is a number of a frame, inlined ones counted, or `-` for any; `what` is what of it is
/// `expected`.
fn holds(
    report: &Report,
    answers: &BTreeMap<(String, u64), Vec<Frame>>,
    frame: &str,
    what: &str,
    expected: &str,
) -> bool {
    let chain: Vec<&Frame> = report.frames.iter().flat_map(|asked| &answers[asked]).collect();
    let Ok(number) = frame.parse::<usize>() else {
        let (arch, expected) = match expected.split_once(": ") {
            Some((arch, expected)) if arch.starts_with("ARM") => (arch.to_lowercase(), expected),
            _ => (report.arch.clone(), expected),
        };
        let text = |frame: &&Frame| format!("{} ({}:{})", frame.function, frame.file, frame.line);
        return arch == report.arch && chain.iter().any(|frame| text(frame) == expected);
    };
    let Some(Frame { file, line, .. }) = chain.get(number) else { return false };
    match what {
        "line" => line == expected,
        "file" => file == expected,
        "file:line" => format!("{file}:{line}") == expected,
        other => panic!("{other}"),
    }
}
