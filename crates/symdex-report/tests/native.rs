//! Android's, HarmonyOS's and sanitizers' reports, and lists of addresses.

mod common;

use common::{APP, asked, new_lines, rewritten, rewritten_with};
use symdex_report::{Options, Report};

/// A tombstone with these lines as frames. `log` is the prefix of each line.
fn tombstone(log: &str, frames: &str) -> String {
    let text = format!(
        "*** *** *** *** *** *** *** ***\nBuild fingerprint: 'maker/phone/phone:14/AB1/7:user/release-keys'\n\
         ABI: 'arm64'\n\
         pid: 4711, tid: 4720, name: worker  >>> com.example.app <<<\nsignal 11 (SIGSEGV), code 1 (SEGV_MAPERR), \
         fault addr 0x8\n    \
         x0  0000000000000000  x1  0000007ff9c2d730\n    lr  00000077d560ac80  pc  00000077d5607f3e\n\nbacktrace:\n\
         {frames}\n\
         memory map (2 entries):\n    00000077'd5600000-00000077'd57fffff r-x         0    200000  /data/App \
         (BuildId: {APP})\n"
    );
    text.lines().map(|line| format!("{log}{line}\n")).collect()
}

fn frames() -> String {
    format!(
        "      #00 pc 0000000000001010  /data/app/x/App (BuildId: {APP})\n      \
         #01 pc 0000000000001020  /data/app/x/base.apk!App (offset 0x4000) (old+32) (BuildId: {APP})\n      \
         #02 pc 0000000000006010  /data/app/x/App (BuildId: {APP})\n      \
         #03 pc 0000000000001020  /data/app/x/App\n      \
         #04 pc 0000000000001020  /data/app/x/App (BuildId: 0102030405060708)\n      \
         #05 pc 0000000000001020  /apex/com.android.runtime/lib64/bionic/libc.so (start+4) (BuildId: 0a0b)\n      \
         #06 pc 0000000000001020  [anon:stack]\n"
    )
}

#[test]
fn frames_of_a_tombstone_get_functions_and_lines() {
    let text = tombstone("", &frames());
    let expected = [
        format!("      #00 pc 0000000000001010  /data/app/x/App (outer+16) (BuildId: {APP})"),
        "          /src/app/main.c:257 (outer)".to_owned(),
        "          /src/app/main.c:258 (app::inner())".to_owned(),
        "          /src/app/main.c:7 (outer)".to_owned(),
        format!("      #02 pc 0000000000006010  /data/app/x/App (symbol+16) (BuildId: {APP})"),
    ];
    assert_eq!(new_lines(&text, &rewritten(&text)), expected);
    // A symbolicated report stays unchanged when it is symbolicated again.
    assert_eq!(rewritten(&rewritten(&text)), rewritten(&text));
    let plain = rewritten_with(&text, &Options::new().inlines(false));
    assert!(
        !plain.contains("inner") && plain.contains("(old+32)") && plain.contains("main.c:7 (outer)"),
        "{plain}"
    );
}

#[test]
fn addresses_are_looked_up_unchanged() {
    // The library in the package, and the library with another id, are separate images.
    let expected = [0x1010, 0x6010, 0x1020, 0x1020];
    assert_eq!(asked(&tombstone("", &frames()), &Options::new()), expected);
}

#[test]
fn lines_of_a_log_keep_their_prefix() {
    let alone = rewritten(&tombstone("", &frames()));
    let logs = [
        "F/DEBUG   ( 4711): ",
        "11-21 17:22:29.123  4711  4720 F DEBUG   : ",
        "11-21 17:22:29.123 F/DEBUG   ( 4711): ",
        "2026-11-21 17:22:29.123 +0000  4711  4720 F DEBUG   : ",
        "F DEBUG   : ",
    ];
    for log in logs {
        let expected: String = alone.lines().map(|line| format!("{log}{line}\n")).collect();
        let text = tombstone(log, &frames());
        assert_eq!(rewritten(&text), expected);
        assert_eq!(rewritten(&text.replace('\n', "\r\n")), expected.replace('\n', "\r\n"));
        assert_eq!(rewritten(&expected), expected);
    }
}

#[test]
fn stacks_have_names_and_are_separated() {
    let text = tombstone("", &frames())
        + "\n--- ---\npid: 4711, tid: 4721, name: other thread  >>> com.example.app <<<\n#00 pc 10  a.so\n\
           #00 pc 10  b.so\n";
    let report = Report::parse(text.as_bytes()).expect("a report");
    let threads: Vec<_> = report
        .threads()
        .iter()
        .map(|thread| (thread.name.as_str(), thread.crashed, thread.frames.len()))
        .collect();
    assert_eq!(threads, [("worker", true, 7), ("other thread", false, 1), ("", false, 1)]);
    assert_eq!(report.format_name(), "android");
    assert!(report.images().iter().all(|image| image.arch.as_ref().is_some_and(|arch| arch.name == "arm64")));
}

#[test]
fn frames_of_harmony_os_get_functions_and_lines() {
    let text = format!(
        "Module name:com.example.app\nCpuAbi:arm64-v8a\nReason:Signal:SIGSEGV(SEGV_MAPERR)@0x8\nFault thread info:\n\
         Tid:4711, Name:com.example.app\n#00 pc 0000000000001010 /data/storage/el1/bundle/libs/arm64/App({APP})\n\
         #01 pc 0000000000001020 /data/storage/el1/bundle/libs/arm64/App(old+32)({APP})\n\
         #02 at entry (src/Index.ets:39:10)\n\
         #03 pc 0000000000000110 /system/lib64/libuv.so(uv_run+408)(25c5e130ae25e495771607adc70da044)\nRegisters:\n\
         x0:0000000000000001 x1:0000000000000002\nOther thread info:\nTid:4712, Name:pool\n\
         #00 pc 0000000000001010 /system/lib/libc.so\n"
    );
    let expected = [
        format!("#00 pc 0000000000001010 /data/storage/el1/bundle/libs/arm64/App(outer+16)({APP})"),
        "    /src/app/main.c:257 (outer)".to_owned(),
        "    /src/app/main.c:258 (app::inner())".to_owned(),
        "    /src/app/main.c:7 (outer)".to_owned(),
    ];
    assert_eq!(new_lines(&text, &rewritten(&text)), expected);
    assert_eq!(rewritten(&rewritten(&text)), rewritten(&text));
    let report = Report::parse(text.as_bytes()).expect("a report");
    let threads: Vec<_> =
        report.threads().iter().map(|thread| (thread.name.as_str(), thread.crashed)).collect();
    assert_eq!(
        (report.format_name(), threads),
        ("harmonyos", vec![("com.example.app", true), ("pool", false)])
    );
}

/// The output of a sanitizer with these lines as frames.
fn sanitizer(frames: &str) -> String {
    format!(
        "=================\n==4711==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000014 at pc \
         0x55d0c0de1011\n\
         READ of size 4 at 0x602000000014 thread T0\n{frames}\nSUMMARY: AddressSanitizer: heap-use-after-free \
         (/x/App+0x1010)\n"
    )
}

#[test]
fn frames_of_a_sanitizer_get_functions_and_lines() {
    let frames = format!(
        "    #0 0x55d0c0de1010 in old (/x/App+0x1010) (BuildId: {APP})\n    \
         #1 0x55d0c0de1020  (/x/App+0x1020) (BuildId: {APP})\n    \
         #2 0x55d0c0de6010  (/x/App+0x6010) (BuildId: {APP})\n    #3 0x55d0c0de1020 in main /src/t.c:12:3\n    \
         #4 0x7fe541045249  (/lib/libc.so.6+0x27249)\n    #5 0x55d0c0de1010 in f(int) (App:arm64+0x1010) (BuildId: \
         {APP}32000000200000000100000000000d00)\n"
    );
    let text = sanitizer(&frames);
    let expected = [
        "    #0 0x55d0c0de1010 in outer /src/app/main.c:257".to_owned(),
        "    #1 0x55d0c0de1020 in app::inner() /src/app/main.c:258".to_owned(),
        "    #1 0x55d0c0de1020 in outer /src/app/main.c:7".to_owned(),
        format!("    #2 0x55d0c0de6010 in symbol (/x/App+0x6010) (BuildId: {APP})"),
        "    #5 0x55d0c0de1010 in outer /src/app/main.c:257".to_owned(),
    ];
    let after = rewritten(&text);
    assert_eq!(new_lines(&text, &after), expected);
    assert_eq!(rewritten(&after), after);
    let report = Report::parse(after.as_bytes()).expect("a report");
    let threads: Vec<_> = report
        .threads()
        .iter()
        .map(|thread| (thread.name.as_str(), thread.crashed, thread.frames.len()))
        .collect();
    assert_eq!(threads, [("AddressSanitizer: heap-use-after-free", true, 7)]);
}

#[test]
fn an_apple_report_can_contain_the_output_of_a_sanitizer() {
    let text = common::crash("0   App  0x100001010 0x100000000 + 4112\n", "arm64");
    let text = format!("{}{text}", sanitizer("    #0 0x100001010 in f (App:arm64+0x1010)\n"));
    assert!(rewritten(&text).contains("0x100001010 outer + 16 (main.c:257)"));
}

#[test]
fn answers_are_appended_to_the_lines_of_a_list() {
    let text = format!(
        "# what the device had\nApp 0x100001010 0x100000000 worker\nApp\t0x100001021\t0x100000000\t<{APP}>\n\n\
         other 0x20 0x10\n{APP} 0x5010 0x4000\r\n\
         App 0x1 0x100000000\nx"
    );
    let expected = format!(
        "# what the device had\nApp 0x100001010 0x100000000 worker outer + 16 (main.c:257)\n\
         App\t0x100001021\t0x100000000\t<{APP}> app::inner() (main.c:258) [inlined]\n\
         App\t0x100001021\t0x100000000\t<{APP}> outer + 33 (main.c:7)\n\nother 0x20 0x10\n\
         {APP} 0x5010 0x4000 app::inner() (main.c:256) [inlined]\r\n\
         {APP} 0x5010 0x4000 outer + 16 (main.c:7)\r\nApp 0x1 0x100000000\nx"
    );
    assert_eq!(rewritten(&text), expected);
    assert_eq!(rewritten(&expected), expected);
    assert_eq!(asked(&text, &Options::new().as_given(true)), [0x1010, 0x1021]);
}
