//! Apple's text reports: which addresses are looked up, and what is written.

use crate::common::{asked, crash, new_lines, rewritten, rewritten_with};
use symdex_report::{Addresses, Options, Report, symbolicate};

fn lines(frames: &str) -> Vec<String> {
    let before = crash(frames, "arm64");
    new_lines(&before, &rewritten(&before)).into_iter().map(str::to_owned).collect()
}

#[test]
fn the_innermost_frame_is_an_instruction_and_the_others_are_return_addresses() {
    let frames = "0   App  0x0000000100001010 0x100000000 + 4112\n\
                  1   App  0x0000000100001020 0x100000000 + 4128\n\
                  2   App  0x0000000100001031 0x100000000 + 4145\n";
    let text = crash(frames, "arm64");
    assert_eq!(asked(&text, &Options::new()), [0x1010, 0x101f, 0x1030]);
    let as_given = Options::new().addresses(Addresses::AsGiven);
    assert_eq!(asked(&text, &as_given), [0x1010, 0x1020, 0x1031]);
    let threads = text.replace(
        "Thread 0 crashed",
        "\nThread 1:\n0   App  0x100002000 0x100000000 + 8192\n\nThread 0 crashed",
    );
    assert_eq!(asked(&threads, &Options::new()), [0x1010, 0x101f, 0x1030, 0x2000]);
}

#[test]
fn the_frame_after_a_signal_trampoline_is_an_instruction() {
    let frames = "0   libsystem_c.dylib  0x0000000180000010 abort + 8\n\
                  1   libsystem_c.dylib  0x0000000180000020 _sigtramp + 56\n\
                  2   App  0x0000000100001020 0x100000000 + 4128\n\
                  3   App  0x0000000100001030 0x100000000 + 4144\n";
    assert_eq!(asked(&crash(frames, "arm64"), &Options::new()), [0x1020, 0x102f]);
}

#[test]
fn thumb_bits_and_authentication_codes_are_removed_before_the_lookup() {
    let thumb =
        "0   App  0x0000000100001011 0x100000000 + 4113\n1   App  0x0000000100001021 0x100000000 + 4129\n";
    assert_eq!(asked(&crash(thumb, "armv7s"), &Options::new()), [0x1010, 0x101f]);
    assert_eq!(asked(&crash(thumb, "arm64"), &Options::new()), [0x1011, 0x1020]);
    let signed = "0   App  0x100001010 f + 16\n1   App  0x8a2e800100001020 f + 32\n";
    assert_eq!(asked(&crash(signed, "arm64e"), &Options::new()), [0x1010, 0x101f]);
    assert_eq!(asked(&crash(signed, "x86_64"), &Options::new()), [0x1010]);
}

#[test]
fn answers_follow_the_address_and_inlined_functions_come_first() {
    let frames = "0   App             \t       0x100001010 0x100000000 + 4112\n\
                  1   App  0x0000000100001021 App + 4129\n";
    let expected = [
        "0   App             \t       0x100001010 outer + 16 (main.c:257)",
        "1   App  0x0000000100001021 app::inner() (main.c:258) [inlined]",
        "1   App  0x0000000100001021 outer + 33 (main.c:7)",
    ];
    assert_eq!(lines(frames), expected);
    let before = crash(frames, "arm64");
    let options = Options::new().inlines(false).demangle(false);
    assert_eq!(new_lines(&before, &rewritten_with(&before, &options)), [expected[0], expected[2]]);
    let raw = Options::new().demangle(false);
    let raw = rewritten_with(&before, &raw);
    assert!(raw.contains("_ZN3app5innerEv (main.c:258) [inlined]"), "{raw}");
}

#[test]
fn symbolicating_twice_changes_nothing() {
    let frames = "0   App  0x100001010 0x100000000 + 4112\n1   App  0x0000000100001021 App + 4129\n";
    let once = rewritten(&crash(frames, "arm64"));
    assert_eq!(rewritten(&once), once);
}

#[test]
fn frames_with_a_name_get_a_line_and_frames_with_a_line_stay() {
    assert_eq!(lines("0   App  0x100001010 old + 99\n"), ["0   App  0x100001010 outer + 16 (main.c:257)"]);
    assert_eq!(
        lines("0   App  0x100001010 <redacted> + 99\n"),
        ["0   App  0x100001010 outer + 16 (main.c:257)"]
    );
    for known in ["old + 99 (a.c:1)", "old (in App) (a.c:1)", "old + 99 (a.c:1) [inlined]"] {
        assert_eq!(lines(&format!("0   App  0x100001010 {known}\n")), Vec::<String>::new(), "{known}");
    }
    // A name from a symbol table does not replace the name that the report has.
    assert_eq!(lines("0   App  0x100006010 old + 99\n"), Vec::<String>::new());
    assert_eq!(lines("0   App  0x100006010 0x100000000 + 24592\n"), ["0   App  0x100006010 symbol + 16"]);
    let before = crash("0   App  0x100001010 old + 99\n", "arm64");
    assert_eq!(rewritten_with(&before, &Options::new().only_missing(true)), before);
}

#[test]
fn existing_inlined_frames_are_not_inserted_again() {
    let frames =
        "0   App  0x100001000 app::inner() + 4 (main.c:1) [inlined]\n0   App  0x100001000 outer + 4\n";
    assert_eq!(lines(frames), ["0   App  0x100001000 outer + 0 (main.c:7)"]);
    // Both frames have the address of the same instruction.
    assert_eq!(asked(&crash(frames, "arm64"), &Options::new()), [0x1000]);
}

#[test]
fn stacks_of_exceptions_have_return_addresses_on_one_line_or_on_several() {
    let bare = "\nLast Exception Backtrace:\n(0x180000010 0x100001011 0x100001021)\n";
    let text = crash(bare, "arm64");
    assert_eq!(asked(&text, &Options::new()), [0x1010, 0x1020]);
    let expected = [
        "0   libsystem_c.dylib             \t0x0000000180000010 0x180000000 + 16",
        "1   App                           \t0x0000000100001011 outer + 17 (main.c:257)",
        "2   App                           \t0x0000000100001021 app::inner() (main.c:258) [inlined]",
        "2   App                           \t0x0000000100001021 outer + 33 (main.c:7)",
    ];
    assert_eq!(new_lines(&text, &rewritten(&text)), expected);
    for line in ["(0x180000010 0x100001011 0x100001021 )", " ( 0x180000010  0x100001011 0x100001021\t)  "] {
        let spaced = crash(&format!("\nLast Exception Backtrace:\n{line}\n"), "arm64");
        let trimmed: Vec<_> = new_lines(&spaced, &rewritten(&spaced))
            .into_iter()
            .map(|line| line.trim_end().to_owned())
            .collect();
        assert_eq!(trimmed, expected, "{line}");
    }
    // A stack without any answer stays on one line.
    let unknown = crash("\nLast Exception Backtrace:\n(0x180000010 0x180000020)\n", "arm64");
    assert_eq!(rewritten(&unknown), unknown);
    let lines = crash("\nLast Exception Backtrace:\n0   App  0x100001011 0x100000000 + 4113\n", "arm64");
    assert_eq!(asked(&lines, &Options::new()), [0x1010]);
}

#[test]
fn stacks_of_leaks_count_down_and_have_return_addresses() {
    let text = crash(
        "STACK OF 1 INSTANCE OF 'ROOT LEAK: <X>':\n1   App  0x100001021 0x100000000 + 4129\n\
         0   App  0x100001011 0x100000000 + 4113\n",
        "x86_64",
    );
    assert_eq!(asked(&text, &Options::new()), [0x1010, 0x1020]);
}

#[test]
fn line_endings_are_kept() {
    let text = crash("0   App  0x100001000 0x100000000 + 4096\n", "arm64").replace('\n', "\r\n");
    let after = rewritten(&text);
    assert!(
        after
            .contains("app::inner() (main.c:256) [inlined]\r\n0   App  0x100001000 outer + 0 (main.c:7)\r\n")
    );
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
}

#[test]
fn a_json_header_before_the_report_stays() {
    let text = crash("0   App  0x100001010 0x100000000 + 4112\n", "arm64");
    let with_header = format!("{{\"bug_type\":\"109\",\"app_name\":\"App\"}}\n{text}");
    assert_eq!(
        rewritten(&with_header),
        format!("{{\"bug_type\":\"109\",\"app_name\":\"App\"}}\n{}", rewritten(&text))
    );
}

/// The status word and the reason of each frame.
#[test]
fn every_frame_without_an_answer_has_a_reason() {
    let frames = "0   App  0x100008010 0x100000000 + 32784\n\
                  1   App  0x100007010 0x100000000 + 28688\n\
                  2   libsystem_c.dylib  0x180000010 0x180000000 + 16\n\
                  3   Gone  0x200000010 0x200000000 + 16\n\
                  4   ???  0x300000010 0x0 + 12884901904\n";
    let text = crash(frames, "arm64");
    let report = Report::parse(text.as_bytes()).expect("a report");
    let symbolicated = symbolicate(&report, &mut crate::common::App { asked: Vec::new() }, &Options::new());
    let reasons = symbolicated.frames().map(|(thread, frame)| {
        let image = symbolicated.image_of(thread, frame).map(|image| &symbolicated.images()[image]);
        let why = symbolicated.unresolved(thread, frame).expect("unresolved");
        (why.status(image), why.reason(image).into_owned())
    });
    let expected = [
        ("missing_symbol", "the index knows nothing at this address"),
        ("damaged", "damaged here"),
        ("missing", "no index or debug file has its id"),
        ("unknown_image", "the report does not state its id"),
        ("unknown_image", "the address lies in no image of the report"),
    ];
    assert_eq!(reasons.collect::<Vec<_>>(), expected.map(|(status, reason)| (status, reason.to_owned())));
    assert_eq!(rewritten(&text), text);
}

#[test]
fn text_after_the_offset_stays_and_the_frame_is_answered() {
    let frames = "0   App  0x100001010 0x100000000 + 4112 \n\
                  1   App  0x100001021 0x100000000 + 4129 (<redacted> + 24)\n\
                  2   App  0x100001031 0x100000000 + 0x1031 (-[Crasher foo] + 24)\n\
                  3   App  0x100001031 0x100000000 + 4145\t// -[Crasher foo] + 0x18\n";
    let expected = [
        "0   App  0x100001010 outer + 16 (main.c:257) ",
        "1   App  0x100001021 app::inner() (main.c:258) [inlined]",
        "1   App  0x100001021 outer + 33 (main.c:7) (<redacted> + 24)",
        "2   App  0x100001031 outer + 49 (main.c:259) (-[Crasher foo] + 24)",
        "3   App  0x100001031 outer + 49 (main.c:259)\t// -[Crasher foo] + 0x18",
    ];
    assert_eq!(lines(frames), expected);
    let once = rewritten(&crash(frames, "arm64"));
    assert_eq!(rewritten(&once), once);
}

#[test]
fn frames_of_crashlytics_are_answered_by_the_uuid_that_they_miss() {
    let text = format!(
        "Crashed: com.apple.main-thread\n0  App  0x1010 (Missing UUID {id})\n1  libobjc.A.dylib  0x4b34 objc_msgSend\n\
         2  App  0x1021 (Missing UUID {id})\n",
        id = crate::common::APP
    );
    assert_eq!(asked(&text, &Options::new()), [0x1010, 0x1020]);
    let expected = [
        "0  App  0x1010 outer + 16 (main.c:257)",
        "2  App  0x1021 app::inner() (main.c:258) [inlined]",
        "2  App  0x1021 outer + 33 (main.c:7)",
    ];
    assert_eq!(new_lines(&text, &rewritten(&text)), expected);
    let other = text.replace(crate::common::APP, "c4beb94cb8313889a4034b7a4aa4dcdf");
    let report = Report::parse(other.as_bytes()).expect("a report");
    let symbolicated = symbolicate(&report, &mut crate::common::App { asked: Vec::new() }, &Options::new());
    assert!(symbolicated.unresolved(0, 0).is_some() && report.images()[0].is_app());
}

#[test]
fn all_addresses_of_a_throw_stack_are_return_addresses() {
    let frame = "\t0   App  0x0000000100001021 0x100000000 + 4129\n";
    let listed = format!("*** First throw call stack:\n(\n{frame})\n");
    assert_eq!(asked(&crash(&listed, "arm64"), &Options::new()), [0x1020]);
    for line in [
        "*** First throw call stack:\n    (0x100001021 0x100001031)",
        "*** First throw call stack: (0x100001021 0x100001031)",
        "2024-01-01 App[7:9] *** First throw call stack:\n(0x100001021 0x100001031)",
        "Last Exception Backtrace: (0x100001021 0x100001031)",
    ] {
        let text = crash(line, "arm64");
        assert_eq!(asked(&text, &Options::new()), [0x1020, 0x1030], "{line}");
        let title = line.split('\n').next().unwrap_or_default().split(" (").next().unwrap_or_default();
        let after = rewritten(&text);
        let expected =
            format!("\n{title}\n0   App                           \t0x0000000100001021 app::inner()");
        assert!(after.contains(&expected), "{after}");
        assert_eq!(rewritten(&after), after);
    }
    let list = format!("First throw call stack:\nApp 0x100001021 0x100000000 {}\n", crate::common::APP);
    assert_eq!(asked(&list, &Options::new()), [0x1020]);
}

#[test]
fn addresses_in_no_image_have_no_function_and_no_image() {
    let frames =
        "0   ???  0x0000000104a3c7d8 0 + 4372811736\n1   <unknown>  0x0000000104a3c7d8 <unknown> + 4\n";
    let text = crash(frames, "arm64");
    let report = Report::parse(text.as_bytes()).expect("a report");
    for (frame, symbol) in report.threads()[0].frames.iter().zip(&report.existing_symbols()[0]) {
        assert_eq!((frame.image(), &symbol.function), (None, &None));
    }
    assert_eq!(report.images().len(), 2);
}

#[test]
fn images_without_a_name_have_the_name_of_their_file() {
    let frames = "0   \t0x0000000100001010 0x100000000 + 4112\n";
    let nameless = crash(frames, "arm64").replace(" App arm64  <", " + (0) <");
    let report = Report::parse(nameless.as_bytes()).expect("a report");
    assert_eq!(report.images()[0].name, "App");
    assert!(rewritten(&nameless).contains("0   \t0x0000000100001010 outer + 16 (main.c:257)\n"));
}
