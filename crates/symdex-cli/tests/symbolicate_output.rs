//! `symdex symbolicate -o`: no report is overwritten, and outputs have the extension of their format.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{CommandOutput, folder, names_in, symbolicate, testdata};

const IPS: &str = r#"{"bug_type":"309"}
{"procName":"App","pid":1,"exception":{"type":"EXC_CRASH"},"threads":[{"id":7,"triggered":true,"frames":[
{"imageOffset":17136,"imageIndex":0}]}],"usedImages":[{"source":"P","base":4294967296,"size":65536,"arch":"arm64",
"uuid":"4c4c4427-5555-3144-a19d-bd913be790e0","name":"DemoKit"}]}"#;

/// A report in JSON at `name` below `root`.
fn ips(root: &Path, name: &str) -> PathBuf {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::write(&path, IPS).expect("written");
    path
}

fn run(root: &Path, format: &str, output: &Path, reports: &[&Path]) -> CommandOutput {
    let options = ["--format", format, "-o", output.to_str().expect("UTF-8")];
    symbolicate(root, &testdata().join("demo"), &options, reports)
}

#[test]
fn a_report_is_not_overwritten_by_its_own_output() {
    let root = folder();
    let crash = root.path().join("in/a.crash");
    let report = ips(root.path(), "in/r.json");
    fs::copy(testdata().join("demo/demo.crash"), &crash).expect("copied");
    let detour = root.path().join("in/../in");
    for (format, output, reports) in [
        ("native", detour.as_path(), &[report.as_path()][..]),
        ("json", &detour, &[&report]),
        ("native", &detour, &[&crash, &report]),
        ("text", &detour, &[&crash]),
        ("native", &report, &[&report]),
    ] {
        let done = run(root.path(), format, output, reports);
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{}", done.err);
        let message = format!(
            "the output would overwrite the report {}; choose another folder with -o",
            reports[0].display()
        );
        assert!(done.err.contains("the output would overwrite the report "), "{}", done.err);
        assert!(reports.len() > 1 || done.err.contains(&message), "{}", done.err);
        assert_eq!(fs::read_to_string(&report).expect("there"), IPS);
        assert_eq!(names_in(&root.path().join("in")), ["a.crash", "r.json"]);
    }
    // The text output has another name.
    let done = run(root.path(), "text", &detour, &[&report]);
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert_eq!(names_in(&root.path().join("in")), ["a.crash", "r.crash", "r.json"]);
}

#[test]
fn names_of_outputs_have_the_extension_of_their_format_and_are_unique() {
    let root = folder();
    let names = |format: &str, reports: &[&str]| {
        let reports: Vec<_> = reports.iter().map(|name| ips(root.path(), name)).collect();
        let reports: Vec<_> = reports.iter().map(PathBuf::as_path).collect();
        let out = folder();
        let done = run(root.path(), format, out.path(), &reports);
        assert_eq!(done.code, Some(0), "{}", done.err);
        names_in(out.path())
    };
    assert_eq!(
        names("text", &["a.ips", "b.json", "c.1", "d"]),
        ["a.crash", "b.crash", "c.1.crash", "d.crash"]
    );
    assert_eq!(names("json", &["a.ips", "b.json", "e.crash"]), ["a.json", "b.json", "e.json"]);
    assert_eq!(names("native", &["a.ips", "c.1"]), ["a.ips", "c.1"]);
    assert_eq!(names("text", &["a.ips", "a.json"]), ["a.ips.crash", "a.json.crash"]);
    assert_eq!(names("text", &["x/a.ips", "y/a.ips"]), ["x", "y"]);
}

/// A binary report is written as text. Another binary file is copied, and keeps its name.
#[test]
fn a_binary_report_becomes_a_crash_with_format_text() {
    let (root, out) = (folder(), folder());
    // A report of PLCrashReporter with one thread, which crashed and has no frames.
    let report = [b"plcrash\x01".as_slice(), b"\x1a\x04\x08\x00\x18\x01"].concat();
    let files = [("a.plcrash", report.as_slice()), ("b.png", b"\x89PNG\r\n\x1a\n\0\0")];
    let paths = files.map(|(name, bytes)| {
        let path = root.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    });
    run(root.path(), "text", out.path(), &paths.each_ref().map(PathBuf::as_path));
    assert_eq!(names_in(out.path()), ["a.crash", "b.png"]);
}

#[test]
fn names_in_a_report_are_demangled_in_text_and_json_only() {
    let root = folder();
    let report = ips(root.path(), "named.ips");
    let text = IPS
        .replace("\"imageIndex\":0}", "\"imageIndex\":0,\"symbol\":\"_ZN3app3runEi\",\"symbolLocation\":4}")
        .replace("4c4c4427", "00000000");
    fs::write(&report, &text).expect("written");
    let run = |options: &[&str]| symbolicate(root.path(), &testdata().join("dsyms"), options, [&report]);
    assert_eq!(run(&[]).out, text);
    assert!(run(&["--format", "text"]).out.contains(" app::run(int) + 4\n"));
    assert!(run(&["--format", "text", "--no-demangle"]).out.contains(" _ZN3app3runEi + 4\n"));
    for (options, function) in [
        (&["--format", "json"][..], "app::run(int)"),
        (&["--format", "json", "--no-demangle"], "_ZN3app3runEi"),
    ] {
        let functions = &run(options).json()[0]["threads"][0]["frames"][0]["functions"][0];
        assert_eq!((&functions["function"], &functions["name"]), (&function.into(), &"_ZN3app3runEi".into()));
    }
}
