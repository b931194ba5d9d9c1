//! Android's, HarmonyOS's and sanitizers' reports, and lists of addresses.

use crate::common::{APP, asked, new_lines, rewritten, rewritten_with};
use symdex_report::{Addresses, Base, Options, Report};

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
    let text = crate::common::crash("0   App  0x100001010 0x100000000 + 4112\n", "arm64");
    let text = format!("{}{text}", sanitizer("    #0 0x100001010 in f (App:arm64+0x1010)\n"));
    assert!(rewritten(&text).contains("0x100001010 outer + 16 (main.c:257)"));
}

#[test]
fn answers_are_appended_to_the_lines_of_a_list() {
    let text = format!(
        "# what the device had\nApp 0x100001010 0x100000000 worker\nApp\t0x100001021\t0x100000000\t<{APP}>\n\n\
         other 0x1020 0x1000\n{APP} 0x5010 0x4000\r\n\
         App 0x1 0x100000000\nx"
    );
    let expected = format!(
        "# what the device had\nApp 0x100001010 0x100000000 worker outer + 16 (main.c:257)\n\
         App\t0x100001021\t0x100000000\t<{APP}> app::inner() (main.c:258) [inlined]\n\
         App\t0x100001021\t0x100000000\t<{APP}> outer + 33 (main.c:7)\n\nother 0x1020 0x1000\n\
         {APP} 0x5010 0x4000 app::inner() (main.c:256) [inlined]\r\n\
         {APP} 0x5010 0x4000 outer + 16 (main.c:7)\r\nApp 0x1 0x100000000\nx"
    );
    assert_eq!(rewritten(&text), expected);
    assert_eq!(rewritten(&expected), expected);
    assert_eq!(asked(&text, &Options::new().addresses(Addresses::AsGiven)), [0x1010, 0x1021]);
}

#[test]
fn a_frame_without_a_build_id_takes_the_one_that_is_stated_for_its_path() {
    let frame = "    #00 pc 00001010  /data/app/x/App\n";
    for stated in [
        format!(
            "memory map:\n    e1f00000-e1f0ffff r-x         0     10000  /data/app/x/App (BuildId: {APP}) (load bias 0x1000)\n"
        ),
        format!("build id:\n    /data/app/x/App (BuildId: {APP}. FileSize: 12. LastModified: 2019-10-12)\n"),
        format!("build id:\n    /data/app/x/App (BuildId: {APP}, FileSize: 12)\n"),
    ] {
        let text =
            tombstone("", frame).replace(&format!("/data/App (BuildId: {APP})"), "/data/App") + &stated;
        assert_eq!(asked(&text, &Options::new()), [0x1010], "{text}");
        let other = "/data/app/x/App (BuildId: 0102030405060708)\n";
        assert!(asked(&(text + other), &Options::new()).is_empty(), "two lines differ");
    }
}

#[test]
fn the_offset_tells_which_file_of_an_archive_a_frame_is_in() {
    let frame = "    #00 pc 00001010  /data/app/x/base.apk!App (offset 0x4000)\n";
    let maps = format!(
        "    e1f00000-e1f0ffff r-x      2000     10000  /data/app/x/base.apk (BuildId: 0102030405060708)\n    \
         e2f00000-e2f0ffff r-x      4000     10000  /data/app/x/base.apk (BuildId: {APP})\n"
    );
    assert_eq!(asked(&(tombstone("", frame) + &maps), &Options::new()), [0x1010]);
    let other = frame.replace("0x4000", "0x8000");
    assert!(asked(&(tombstone("", &other) + &maps), &Options::new()).is_empty());
}

/// A dump of Android's runtime, which traces of ANRs have.
#[test]
fn frames_of_a_runtime_dump_have_offsets_without_0x_and_placeholders_for_names() {
    let text = format!(
        "\"main\" prio=5 tid=1 Native\n  | group=\"main\" sCount=1\n  | sysTid=1705 nice=-10\n  \
         native: #00 pc 00001010  /data/app/x/base.apk (offset 90000) (???) (BuildId: {APP})\n  \
         native: #01 pc 00001010  /data/app/x/base.apk (offset 90000) (BuildId: {APP})\n  at android.os.Main\n\n\
         \"worker 1\" daemon prio=5 tid=7 Waiting\n  at java.lang.Object.wait\n\n\"worker 2\" sysTid=99\n  \
         native: #00 pc 00001020  /data/app/x/base.apk (offset 90000) (old+8) (BuildId: {APP})\n"
    );
    let expected = [
        format!("  native: #00 pc 00001010  /data/app/x/base.apk (offset 90000) (outer+16) (BuildId: {APP})"),
        "  native:     /src/app/main.c:257 (outer)".to_owned(),
        format!("  native: #01 pc 00001010  /data/app/x/base.apk (offset 90000) (outer+16) (BuildId: {APP})"),
        "  native:     /src/app/main.c:257 (outer)".to_owned(),
    ];
    let after = rewritten(&text);
    assert_eq!(new_lines(&text, &after)[..4], expected);
    assert_eq!(rewritten(&after), after);
    let report = Report::parse(text.as_bytes()).expect("a report");
    let threads = report.threads().iter().map(|thread| (thread.name.as_str(), thread.id, thread.crashed));
    assert!(threads.eq([("main", Some(1705), false), ("worker 2", Some(99), false)]));
    assert_eq!(report.images().len(), 1);
}

#[test]
fn only_the_first_thread_of_a_tombstone_crashed_even_if_each_has_a_signal() {
    let other = "--- --- --- --- ---\npid: 4711, tid: 4721, name: other  >>> com.example.app <<<\n\
                 signal 35 (<debuggerd signal>), code -1 (SI_QUEUE), fault addr 0x0\n    #00 pc 00001010  /x/App\n";
    let without_line = other.replace("--- --- --- --- ---\n", "");
    let one = tombstone("", "    #00 pc 00001010  /x/App\n");
    let crashed = |text: &str| {
        let report = Report::parse(text.as_bytes()).expect("a report");
        report.threads().iter().map(|thread| thread.crashed).collect::<Vec<_>>()
    };
    assert_eq!(crashed(&format!("{one}{other}{other}")), [true, false, false]);
    assert_eq!(crashed(&format!("{one}{without_line}{other}")), [true, false, false]);
    // A log can have several tombstones.
    assert_eq!(crashed(&format!("{one}{other}{one}")), [true, false, true]);
}

#[test]
fn a_tombstone_that_could_not_be_unwound_is_a_report_without_frames() {
    let text = tombstone("", "Failed to unwind\n");
    let report = Report::parse(text.as_bytes()).expect("a report");
    assert_eq!((report.format_name(), report.threads().len()), ("android", 0));
    assert_eq!(rewritten(&text), text);
}

#[test]
fn addresses_that_are_not_mapped_are_in_no_image_of_the_app() {
    let text = format!("Tid:1, Name:a\n#00 pc 0000000000000000 Not mapped\n#01 pc 00001010 /x/App({APP})\n");
    let report = Report::parse(text.as_bytes()).expect("a report");
    assert_eq!(report.format_name(), "harmonyos");
    assert!(!report.images()[0].is_app() && report.images()[1].is_app());
    let unknown = "#00 pc 0000000000000010  <unknown>\n#01 pc 00001010  Unknown\n";
    let report = Report::parse(unknown.as_bytes()).expect("a report");
    assert!(report.images().iter().all(|image| !image.is_app()));
}

#[test]
fn the_release_of_android_says_what_addresses_count_from() {
    let bases = |text: &str| {
        let report = Report::parse(text.as_bytes()).expect("a report");
        report.images().iter().map(|image| image.base).collect::<Vec<_>>()
    };
    let fingerprint =
        |release: &str| format!("Build fingerprint: 'maker/phone/phone:{release}/AB1/7:user/keys'\n");
    let android = |release, mapped| Base::Android { release, mapped };
    let frame = "#00 pc 00001010  /data/app/x/libf.so\n";
    let mapped = "#00 pc 00001010  /data/app/x/libf.so (offset 0x1a000)\n";
    let with_id = "#00 pc 00001010  /data/app/x/base.apk!libf.so (offset 0x1a000) (BuildId: 0a0b)\n";
    for (text, expected) in [
        (fingerprint("14") + frame, Base::File),
        (fingerprint("11") + mapped, Base::File),
        (fingerprint("10") + frame, android(Some(10), None)),
        (fingerprint("8.1.0") + mapped, android(Some(8), Some(0x1a000))),
        (fingerprint("8.1.0") + with_id, android(Some(8), Some(0x1a000))),
        (frame.to_owned(), android(None, None)),
        (mapped.to_owned(), android(None, Some(0x1a000))),
        (with_id.to_owned(), android(None, None)),
        (fingerprint("Tiramisu") + frame, android(None, None)),
        (format!("Galaxy S9 (star2lte), Android 8.0\nReport 1\n{mapped}"), android(Some(8), Some(0x1a000))),
        (format!("F/DEBUG ( 12): {}F/DEBUG ( 12):     {frame}", fingerprint("9")), android(Some(9), None)),
        // Not of Android.
        (fingerprint("10") + "#00 0x55d0c0de1010 in f (/x/App+0x1010)\n", Base::File),
        (
            "Tid:1, Name:a\n#00 pc 00001010 /x/App(f+4)(42521ecd5a913b6984e2ff754dc45cf0)\n".to_owned(),
            Base::File,
        ),
        (fingerprint("10") + "#00 pc 00001010  [vdso]\n", Base::Absolute),
    ] {
        assert_eq!(bases(&text), [expected], "{text}");
    }
    // A log can have tombstones of several phones.
    let two = [fingerprint("10"), frame.to_owned(), fingerprint("12"), frame.to_owned()].concat();
    assert_eq!(bases(&two), [android(Some(10), None), Base::File]);
}

/// Frames of Google Play's console, and of dumps of the runtime before Android 7.
#[test]
fn frames_need_no_number() {
    let text = format!(
        "\"main\" prio=5 tid=1 Native\n  native: pc 0000000000001010  /data/app/x/App (BuildId: {APP})\n  \
         native: pc 0000000000006010  /data/app/x/App\n\"worker\" prio=5 tid=7 Native\n  \
         native: pc 0000000000006010  /data/app/x/App (symbol+16)\n"
    );
    let expected = [
        format!("  native: pc 0000000000001010  /data/app/x/App (outer+16) (BuildId: {APP})"),
        "  native:     /src/app/main.c:257 (outer)".to_owned(),
        "  native: pc 0000000000006010  /data/app/x/App (symbol+16)".to_owned(),
    ];
    let after = rewritten(&text);
    assert_eq!(new_lines(&text, &after)[..2], expected[..2]);
    assert!(expected.iter().all(|line| after.lines().any(|found| found == line)), "{after}");
    assert_eq!(rewritten(&after), after);
    let report = Report::parse(text.as_bytes()).expect("a report");
    let threads = report.threads().iter().map(|thread| (thread.name.as_str(), thread.frames.len()));
    assert!(threads.eq([("main", 2), ("worker", 1)]), "{report:?}");
}

#[test]
fn frames_of_one_image_share_the_build_id_that_some_of_them_state() {
    let frames = |other: &str| {
        format!(
            "#00 pc 00001010  /data/app/x/App\n#01 pc 00001020  /data/app/x/App (BuildId: {APP})\n\
             #02 pc 00001030  /data/app/x/App{other}\n"
        )
    };
    assert_eq!(asked(&frames(""), &Options::new()), [0x1010, 0x1030, 0x1020]);
    let other = asked(&frames(" (BuildId: 0102030405060708)"), &Options::new());
    assert_eq!(other, [0x1020, 0x1030], "two frames differ, and the source is asked for both");
    // Another file of the archive.
    let archive = format!(
        "#00 pc 00001010  /data/app/x/base.apk!App (offset 0x4000) (BuildId: {APP})\n\
         #01 pc 00001020  /data/app/x/base.apk!App (offset 0x4000)\n\
         #02 pc 00001030  /data/app/x/base.apk!App (offset 0x9000)\n"
    );
    assert_eq!(asked(&archive, &Options::new()), [0x1010, 0x1020]);
}
