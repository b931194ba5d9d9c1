//! `POST /applecrashreport`. What is expected is what llvm-symbolizer says about the same address, in the form of
//! Symbolicator.

use serde_json::{Value, json};
use symdex_testkit::testdata::testdata;
use tempfile::TempDir;

use crate::server::{Answer, TestServer, demo_report, demo_store};

/// A form with these parts.
fn form(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut form = Vec::new();
    for (name, content) in parts {
        form.extend(
            format!("--xx\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"f\"\r\n\r\n")
                .bytes(),
        );
        form.extend(*content);
        form.extend(b"\r\n");
    }
    form.extend(b"--xx--\r\n");
    form
}

fn post_form(server: &TestServer, path: &str, parts: &[(&str, &[u8])]) -> Answer {
    server.post_with(path, &[("content-type", "multipart/form-data; boundary=xx")], form(parts))
}

/// A server over the indexes of the demo app.
fn demo_server(arguments: &[&str]) -> (TempDir, TestServer) {
    let store = demo_store();
    let server = TestServer::start(store.path(), arguments);
    (store, server)
}

pub(crate) fn a_crash_report_is_symbolicated_as_llvm_symbolizer_does() {
    let (_store, server) = demo_server(&[]);
    let answer = post_form(
        &server,
        "/applecrashreport",
        &[("sources", b"[]"), ("apple_crash_report", &demo_report())],
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    let answer = answer.json();
    let expected =
        std::fs::read_to_string(testdata().join("demo/demo.expected.tsv")).expect("the expected frames");
    let mut compared = 0;
    for line in expected.lines().filter(|line| !line.starts_with('#')) {
        let [thread, frame, _, _, depth, function, file, lineno] = line.split('\t').collect::<Vec<_>>()[..]
        else {
            panic!("{line}");
        };
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let stacktraces = answer["stacktraces"].as_array().expect("a list");
        let stacktrace =
            stacktraces.iter().find(|one| one["thread_id"] == number(thread)).expect("the thread");
        let frames = stacktrace["frames"].as_array().expect("a list").iter();
        let found: Vec<_> = frames.filter(|one| one["original_index"] == number(frame)).collect();
        let found = found[usize::try_from(number(depth)).expect("small")];
        let stated = |text: &str| if text == "-" { Value::Null } else { json!(text) };
        let number_of = |text: &str| if text == "-" { Value::Null } else { json!(number(text)) };
        assert_eq!((&found["symbol"], &found["lineno"]), (&stated(function), &number_of(lineno)), "{line}");
        let path = found["abs_path"].as_str().unwrap_or("-");
        assert!(path == file || path.ends_with(&format!("/{file}")), "{line}: {path}");
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
    let first = &answer["stacktraces"][0];
    assert_eq!((&first["thread_id"], &first["is_requesting"]), (&json!(0), &json!(true)));
    assert_eq!(
        (&answer["crashed"], &answer["crash_reason"], &answer["crash_details"], &answer["timestamp"]),
        (
            &json!(true),
            &json!("EXC_BAD_ACCESS (SIGSEGV)"),
            &json!("KERN_INVALID_ADDRESS at 0x0000000000000000"),
            &json!(1_709_257_260)
        )
    );
    assert_eq!(
        answer["system_info"],
        json!({"os_name": "iPhone OS", "os_version": "15.4.1", "os_build": "19E258", "cpu_arch": "arm64",
            "device_model": "iPhone13,2"})
    );
    let statuses: Vec<_> =
        answer["modules"].as_array().expect("a list").iter().map(|module| &module["debug_status"]).collect();
    assert_eq!(statuses[..4], ["found", "found", "found", "missing"]);
    assert_eq!(answer["modules"][1]["features"]["has_debug_info"], false);
    assert_eq!(answer["modules"][1]["features"]["has_symbols"], true);
}

/// What Symbolicator's own test expects of such a report: images that only frames name are no modules, and frames have
/// the names of images that they state.
pub(crate) fn a_crash_report_keeps_its_packages_registers_and_thread_names() {
    let (_store, server) = demo_server(&[]);
    let report = "Incident Identifier: 1\nHardware Model:      MacBookPro14,3\nProcess:         App [42]\n\
        Code Type:       X86-64 (Native)\nOS Version:      Mac OS X 10.14.0 (18A391)\nReport Version:  104\n\n\
        Exception Type:  SIGSEGV\n\nThread 0:\n\
        0   libsystem_kernel.dylib   0x00007fff61bc6c2a 0x7fff61bc6000 + 3114\n\
        1   CoreFoundation           0x00007fff349f505e 0x7fff349b9000 + 245854\n\
        2   libdyld.dylib            0x00007fff61a8e085 start + 0\n\
        3   App                      0x0000000108b702a6 a_function_here + 64\n\n\
        Thread 1 Crashed: Test Thread Name\n\
        0   libsystem_kernel.dylib   0x00007fff61bc85be 0x7fff61bc6000 + 9662\n\
        1   ???                      0x0000000054485244 0x0 + 0\n\n\
        Thread 1 crashed with X86-64 Thread State:\n   rip: 0x00000001090a0132    rbp: 0x0000700015a616d0 \n\
        \x20   gs: 0x0000000000000000 \n\nBinary Images:\n\
        \x20      0x10864e000 -        0x10ee0ffff +App x86_64 (400.9.4 - 1.0.0) \
        <2d903291397d3d14bfca52c7fb8c5e00> /Users/App\n";
    let answer = post_form(&server, "/applecrashreport", &[("apple_crash_report", report.as_bytes())]).json();
    let packages = |thread: usize| {
        let frames = answer["stacktraces"][thread]["frames"].as_array().expect("a list").iter();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        frames
            .map(|frame| (text(&frame["status"]).unwrap_or_default(), text(&frame["package"])))
            .collect::<Vec<_>>()
    };
    let unknown = |package: &str| ("unknown_image".to_owned(), Some(package.to_owned()));
    let expected = ["libsystem_kernel.dylib", "CoreFoundation", "libdyld.dylib"].map(unknown);
    assert_eq!(packages(0)[..3], expected);
    assert_eq!(packages(0)[3], ("missing".to_owned(), Some("/Users/App".to_owned())));
    assert_eq!(packages(1), [unknown("libsystem_kernel.dylib"), ("unknown_image".to_owned(), None)]);
    let crashed = &answer["stacktraces"][1];
    assert_eq!(crashed["thread_name"], "Test Thread Name");
    assert_eq!(crashed["registers"], json!({"gs": "0x0", "rbp": "0x700015a616d0", "rip": "0x1090a0132"}));
    assert_eq!(answer["stacktraces"][0].get("registers"), None);
    assert_eq!(answer["modules"].as_array().map(Vec::len), Some(1));
    assert_eq!(answer["system_info"]["cpu_arch"], "x86_64");
}

pub(crate) fn forms_without_a_readable_report_are_refused() {
    let (_store, server) = demo_server(&["--max-body", "64KB"]);
    let failed = post_form(&server, "/applecrashreport", &[("apple_crash_report", b"no report")]);
    assert_eq!((failed.status, &failed.json()["status"]), (200, &json!("failed")));
    let message = failed.json()["message"].as_str().expect("a message").to_owned();
    assert!(message.starts_with("failed to parse apple crash report: "), "{message}");
    let without = post_form(&server, "/applecrashreport", &[("report", b"x")]);
    assert_eq!(without.status, 400);
    assert!(without.text().contains("apple_crash_report"), "{}", without.text());
    let large = post_form(&server, "/applecrashreport", &[("apple_crash_report", &[b'x'; 65 << 10])]);
    assert_eq!((large.status, &large.json()["type"]), (413, &json!("urn:symdex:problem:too-large")));
    for body in ["", "--xx\r\ncut"] {
        let kind = [("content-type", "multipart/form-data; boundary=xx")];
        assert_eq!(server.post_with("/applecrashreport", &kind, body).status, 400, "{body}");
    }
    assert_eq!(server.post("/applecrashreport", demo_report()).status, 400);
    let pending =
        post_form(&server, "/applecrashreport?timeout=0", &[("apple_crash_report", &demo_report())]).json();
    let path = format!("/requests/{}", pending["request_id"].as_str().expect("an id"));
    assert_eq!(server.get(&path).json()["status"], "completed");
}
