//! The JSON form of a report: the header, the threads, the symbols that the report has, and the images near missing
//! ones.

use crate::common::{APP, App, crash, ips};
use serde_json::{Value, json};
use symdex_report::{ExistingSymbol, KnownImage, Options, Report, symbolicate};

fn view(text: &str, known: &[KnownImage]) -> Value {
    let report = Report::parse(text.as_bytes()).expect("a report");
    let symbolicated = symbolicate(&report, &mut App { asked: Vec::new() }, &Options::new());
    serde_json::to_value(symbolicated.view(known)).expect("JSON")
}

#[test]
fn the_header_and_the_threads_are_in_the_json() {
    let frames = "0   App  0x100001010 0x100000000 + 4112\n";
    let text = crash(frames, "arm64").replace(
        "Report Version",
        "Process:  App [7]\nOS Version: iOS 17\nException Type:  EXC_CRASH (SIGABRT)\nReport Version",
    );
    let view = view(&text, &[]);
    let header = &view["header"];
    assert_eq!(
        [&header["incident"], &header["process"], &header["os"], &header["version"]],
        [&json!("0D7B1E5C"), &json!("App"), &json!("iOS 17"), &Value::Null]
    );
    assert_eq!((&header["pid"], &header["crashed_thread"]), (&json!(7), &json!(0)));
    assert_eq!(
        (&header["exception"]["type"], &header["exception"]["signal"]),
        (&json!("EXC_CRASH"), &json!("SIGABRT"))
    );
    let text = text.replace("Dispatch queue", "worker Dispatch queue: q");
    let thread = &self::view(&text, &[])["threads"][0];
    assert_eq!(
        (&thread["label"], &thread["queue"], &thread["id"]),
        (&json!("worker"), &json!("q"), &Value::Null)
    );
    let thread = &self::view(&ips(""), &[])["threads"][0];
    assert_eq!(thread["id"], 7);
}

#[test]
fn threads_have_the_registers_of_the_report() {
    let frames = "0   App  0x100001010 0x100000000 + 4112\n";
    let text =
        crash(frames, "arm64").replace("x1: 0x0000000100001010", "far: 0x0000000000000004 (Alignment)");
    assert_eq!(
        view(&text, &[])["threads"][0]["registers"],
        json!([{"name": "x0", "value": "0x0"}, {"name": "far", "value": "0x4", "description": "(Alignment)"}])
    );
    assert_eq!(view(&ips(""), &[])["threads"][0].get("registers"), None);
}

#[test]
fn a_frame_has_the_symbol_of_the_report() {
    let known = r#""symbol":"old \"x\"","symbolLocation":3,"sourceFile":"a.c","sourceLine":4"#;
    let kept = format!(r#"{{"imageOffset":4112,"imageIndex":0,{known}}}"#);
    let answered = r#"{"imageOffset":4113,"imageIndex":0,"symbol":"old","symbolLocation":3}"#;
    let unknown = r#"{"imageOffset":32768,"imageIndex":0,"symbol":"<redacted>","symbolLocation":3}"#;
    let view = view(&ips(&format!("{kept},{answered},{unknown}")), &[]);
    let [kept, answered, unknown] = [0, 1, 2].map(|frame| &view["threads"][0]["frames"][frame]);
    let function = json!({"function": "old \"x\"", "name": null, "file": "a.c", "line": 4, "inlined": false,
                          "function_offset": 3, "table": "report"});
    assert_eq!((&kept["functions"], kept.get("reported")), (&json!([function]), None));
    assert_eq!(answered["functions"][0]["table"], "dwarf");
    assert_eq!(
        answered["reported"],
        json!({"function": "old", "file": null, "line": null, "function_offset": 3})
    );
    assert_eq!((&unknown["functions"], unknown.get("reported")), (&json!([]), None));
}

#[test]
fn existing_symbols_have_file_line_and_distance() {
    let symbol = |text: &str| {
        let report = Report::parse(text.as_bytes()).expect("a report");
        let ExistingSymbol { function, file, line, offset, .. } =
            report.existing_symbols().concat().swap_remove(0);
        (function, file, line, offset)
    };
    let expected = |function: &str, file: Option<&str>, line, offset| {
        (Some(function.to_owned()), file.map(str::to_owned), line, offset)
    };
    for (text, expected) in [
        ("0   App  0x100001010 main + 8 (a.c:3)\n", expected("main", Some("a.c"), Some(3), Some(8))),
        ("0   App  0x100001010 main + 8\n", expected("main", None, None, Some(8))),
        ("    9 main  (in App) + 8  [0x100001010]  a.c:3\n", expected("main", Some("a.c"), Some(3), Some(8))),
        ("#00 pc 1010  /x/App (f(int)+8)\n", expected("f(int)", None, None, Some(8))),
        (
            "#00 pc 1010  /x/App (f(int)+8)\n    src/b.c:9 (inner)\n    src/a.c:3 (f(int))\n#01 pc 2  /x/b",
            expected("f(int)", Some("src/a.c"), Some(3), Some(8)),
        ),
        ("    #0 0x551030 in g() /src/t.c:1:2\n", expected("g()", Some("/src/t.c"), Some(1), None)),
        (
            &ips("").replace(
                "\"version\"",
                "\"asiBacktraces\":[\"0   App   0x100001010 main + 8 (a.c:3)\"],\"version\"",
            ),
            expected("main", Some("a.c"), Some(3), Some(8)),
        ),
    ] {
        assert_eq!(symbol(text), expected, "{text}");
    }
}

#[test]
fn a_missing_image_lists_the_images_near_it() {
    let known = |name: &str, id: &str, arch: &str| KnownImage {
        name: name.to_owned(),
        id: id.parse().expect("an id"),
        arch: arch.to_owned(),
    };
    let other = "00000000111122223333444444444444";
    let all = [known("Lib", other, "arm64"), known("Other", other, "arm64"), known("App", APP, "armv7")];
    let text =
        crash("0   Lib  0x180000010 0x180000000 + 16\n1   App  0x100001011 0x100000000 + 1\n", "arm64")
            .replace("/usr/lib/system/libsystem_c.dylib", "/var/App.app/Lib")
            .replace("libsystem_c.dylib", "Lib");
    let view = view(&text, &all);
    let near = json!([{"nearness": "other_build", "name": "Lib", "id": other, "arch": "arm64"}]);
    assert_eq!(view["images"][1]["near"], near);
    assert_eq!((&view["images"][0]["status"], view["images"][0].get("near")), (&json!("found"), None));
}
