//! `symdex symbolicate --format text`: real `.ips` reports, compared with Apple's own translation to text.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{folder, symbolicate, testdata};
use serde_json::Value;
use symdex_testkit::corpus;

/// The folder of MacSymbolicator's reports of 2022.
fn resources(root: &Path) -> PathBuf {
    let history = corpus("atos-reports", root).join("MacSymbolicator-history");
    history.join("2022-09-18-4c56af2/MacSymbolicatorTests/Resources")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("readable")
}

/// The report as text, without any index.
fn text_of(report: &Path, root: &Path) -> String {
    symbolicate(root, &testdata().join("demo"), &["--format", "text"], [report]).out
}

pub(crate) fn an_ips_of_ios_equals_apples_translation() {
    let root = folder();
    let resources = resources(root.path());
    let lines =
        |text: &str| text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let ours = text_of(&resources.join("Crashes/ios-crash.ips"), root.path());
    let apples = read(&resources.join("Crashes/ios-crash.crash"));
    // The empty lines differ between versions of Apple's tool.
    assert_eq!(lines(&ours), lines(&apples));
}

/// Apple lays out a report of macOS with other columns and without architectures. Stacks and registers are the same.
pub(crate) fn an_ips_of_macos_has_the_stacks_and_registers_of_apples_translation() {
    let root = folder();
    let resources = resources(root.path());
    for name in ["single-target-crash", "multi-target-crash"] {
        let ours = text_of(&resources.join(format!("Crashes/{name}.ips")), root.path());
        let apples = read(&resources.join(format!("Crashes/{name}.crash")));
        let is_same = |line: &&str| {
            let is_frame = line.split_once(' ').is_some_and(|(number, _)| number.parse::<u32>().is_ok());
            let words = ["rax: ", "rdi: ", "r8: ", "r12: ", "rip: ", "crashed with", "Exception Note"];
            // The instruction stream is not written.
            is_frame && line.contains('\t') || words.iter().any(|word| line.contains(word))
        };
        let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines = |text: &str| text.lines().filter(is_same).map(squeezed).collect::<Vec<_>>();
        assert_eq!(lines(&ours), lines(&apples), "{name}");
        assert!(lines(&ours).len() > 9, "{ours}");
    }
}

/// The compared parts of a report in JSON: the address and functions of each frame, and the images.
fn content(report: &Value) -> Value {
    let threads = report["threads"].as_array().expect("threads").iter();
    let frames = threads.flat_map(|thread| thread["frames"].as_array().expect("frames"));
    let frames = frames.map(|frame| {
        let functions = frame["functions"].as_array().expect("functions").iter();
        let functions = functions
            .map(|function| (&function["function"], &function["line"], &function["function_offset"]));
        (&frame["address"], functions.collect::<Vec<_>>())
    });
    let images = report["images"].as_array().expect("images").iter();
    let images = images
        .map(|image| ["id", "name", "path", "arch", "load_address", "size"].map(|key| image[key].clone()));
    // An entry without an id is not an image.
    let images = images.filter(|image| !image[0].is_null());
    serde_json::json!([frames.collect::<Vec<_>>(), images.collect::<Vec<_>>()])
}

pub(crate) fn text_of_a_real_ips_is_symbolicated_as_the_ips_is() {
    let root = folder();
    let (resources, leaking) = (resources(root.path()), corpus("memory-leaking-app", root.path()));
    let tests = leaking.join("mobile-dev-inc-Symbolicator/Tests/SymbolicatorTests/Resources");
    let mut reports = vec![tests.join("MemoryLeakingApp-2022-08-05-132419.ips")];
    reports.extend(
        ["ios", "single-target", "multi-target"]
            .map(|name| resources.join(format!("Crashes/{name}-crash.ips"))),
    );
    for report in reports {
        let text = root.path().join("text.crash");
        fs::write(&text, text_of(&report, root.path())).expect("written");
        let dsyms = if report.starts_with(&tests) { &tests } else { &resources };
        let done = symbolicate(root.path(), dsyms, &["--format", "json"], [&report, &text]);
        let [ips, crash] = &done.json()[..] else { panic!("{}", done.out) };
        assert_eq!(
            (ips["format"].as_str(), crash["format"].as_str()),
            (Some("apple-ips"), Some("apple-crash"))
        );
        assert_eq!(content(crash), content(ips), "{}", report.display());
    }
}

pub(crate) fn a_text_report_changes_only_in_its_frames() {
    let root = folder();
    let crash = testdata().join("demo/demo.crash");
    let [text, native] = ["text", "native"]
        .map(|format| symbolicate(root.path(), &testdata().join("demo"), &["--format", format], [&crash]));
    assert_eq!((text.code, &text.out), (Some(0), &native.out));
    assert!(text.out != read(&crash), "nothing is symbolicated");
}
