//! Reports as text that people read.

use std::fmt::Write as _;

use crate::common::{APP, crash, ips, readable, rewritten};
use symdex_report::{Base, Report, ReportImage, Thread};

/// Members of an `.ips`: the header, the exception, and the stack that the exception was thrown from.
const HEADER_MEMBERS: &str = r#""procName":"My App","pid":42,"procPath":"\/var\/App.app\/App",
"parentProc":"launchd","parentPid":1,"procRole":"Foreground","modelCode":"iPhone14,2","cpuType":"ARM-64",
"incident":"0D7B1E5C","crashReporterKey":"key","captureTime":"2026-01-02","procLaunch":"2026-01-01",
"osVersion":{"train":"iPhone OS 15.5","build":"19F77","releaseType":"User"},
"bundleInfo":{"CFBundleShortVersionString":"1.0","CFBundleVersion":"7","CFBundleIdentifier":"com.app"},"isCorpse":1,
"exception":{"codes":"0x1, 0x2","type":"EXC_BAD_ACCESS","signal":"SIGSEGV","subtype":"KERN_INVALID_ADDRESS at 0x2"},
"termination":{"code":11,"namespace":"SIGNAL","indicator":"Segmentation fault: 11","byProc":"exc handler","byPid":42},
"asi":{"libsystem_c.dylib":["abort() called"]},"ktriageinfo":"VM - out\n",
"lastExceptionBacktrace":[{"imageOffset":4128,"imageIndex":0,"symbol":"thrower","symbolLocation":3}],
"version""#;

const THREAD_MEMBERS: &str = r#""triggered":true,"queue":"com.apple.main-thread",
"threadState":{"x":[{"value":1},{"value":2},{"value":3},{"value":4},{"value":5}],
"sp":{"value":6},"pc":{"value":7},"lr":{"value":8},"cpsr":{"value":9},
"esr":{"value":10,"description":"(Breakpoint) brk 1"},"flavor":"ARM_THREAD_STATE64"}"#;

#[test]
fn an_ips_gets_the_layout_of_a_crash() {
    let frames = r#"{"imageOffset":4129,"imageIndex":0},
        {"imageOffset":36864,"imageIndex":0,"symbol":"f","symbolLocation":9,
        "sourceFile":"f.c","sourceLine":3,"inline":true},
        {"imageOffset":36864,"imageIndex":0},{"imageOffset":16,"imageIndex":1}"#;
    let text =
        ips(frames).replace("\"version\"", HEADER_MEMBERS).replace("\"triggered\":true", THREAD_MEMBERS);
    let expected = format!(
        "Incident Identifier: 0D7B1E5C\nCrashReporter Key:   key\nHardware Model:      iPhone14,2\n\
         Process:             My App [42]\n\
         Path:                /var/App.app/App\nIdentifier:          com.app\nVersion:             1.0 (7)\n\
         Code Type:           ARM-64 (Native)\nRole:                Foreground\nParent Process:      launchd [1]\n\n\
         Date/Time:           2026-01-02\nLaunch Time:         2026-01-01\n\
         OS Version:          iPhone OS 15.5 (19F77)\n\
         Release Type:        User\nReport Version:      104\n\n\
         Exception Type:  EXC_BAD_ACCESS (SIGSEGV)\nException Subtype: KERN_INVALID_ADDRESS at 0x2\n\
         Exception Codes: 0x1, 0x2\n\
         Exception Note:  EXC_CORPSE_NOTIFY\nTermination Reason: SIGNAL 11 Segmentation fault: 11\n\
         Terminating Process: exc handler [42]\n\nTriggered by Thread:  0\n\n\
         Application Specific Information:\nabort() called\n\nKernel Triage:\nVM - out\n\n\
         Last Exception Backtrace:\n0   App                           \t       0x100001020 outer + 32 (main.c:257)\n\n\
         Thread 0 name:   Dispatch queue: com.apple.main-thread\nThread 0 Crashed:\n\
         0   App                           \t       0x100001021 app::inner() (main.c:258) [inlined]\n\
         0   App                           \t       0x100001021 outer + 33 (main.c:7)\n\
         1   App                           \t       0x100009000 f + 9 (f.c:3) [inlined]\n\
         2   App                           \t       0x100009000 0x100000000 + 36864\n\
         3   ???                           \t              0x10 ???\n\n\n\
         Thread 0 crashed with ARM Thread State (64-bit):\n    \
         x0: 0x0000000000000001   x1: 0x0000000000000002   x2: 0x0000000000000003   x3: 0x0000000000000004\n    \
         x4: 0x0000000000000005   lr: 0x0000000000000008\n    \
         sp: 0x0000000000000006   pc: 0x0000000000000007 cpsr: 0x00000009  esr: 0x0000000a (Breakpoint) brk 1\n\n\
         Binary Images:\n       0x100000000 -        0x10000ffff App arm64  <{APP}> /var/App.app/App\n               \
         0x0 - 0xffffffffffffffff ??? (*)  <00000000000000000000000000000000> ???\n\nEOF\n"
    );
    assert_eq!(readable(&text), expected);
}

/// The threads that have frames. A thread without frames is written as its title only.
fn with_frames(threads: &[Thread]) -> Vec<&Thread> {
    threads.iter().filter(|thread| !thread.frames.is_empty()).collect()
}

/// The comparable fields of images, without the entry for addresses in no image.
fn identities(images: &[ReportImage]) -> Vec<String> {
    let of = |ReportImage { name, path, id, arch, load_address, size, .. }: &ReportImage| {
        let arch = arch.as_ref().map(|arch| arch.name.as_str());
        format!("{name} {path} {id:?} {arch:?} {load_address:#x} {size:?}")
    };
    images.iter().filter(|image| image.base != Base::Absolute).map(of).collect()
}

/// A report with random images and threads, and with names of several kinds.
fn random_ips(seed: u64) -> String {
    let mut state = seed;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    fn one_of<'c>(choices: &[&'c str], number: u64) -> &'c str {
        choices[usize::try_from(number).expect("small") % choices.len()]
    }
    let mut images = String::new();
    let count = 1 + next(6);
    for n in 0..count {
        let base = 0x1_0000_0000 + n * 0x10_0000 + next(16) * 0x1000;
        let (size, arch) = (0x1000 + next(32) * 0x400, one_of(&["arm64", "arm64e", "x86_64"], next(3)));
        let name =
            one_of(&["App", "My App", "libc++.1.dylib", "a_name_of_more_than_thirty_characters"], next(4));
        let _ = write!(
            images,
            "{{\"source\":\"P\",\"arch\":\"{arch}\",\"base\":{base},\"size\":{size},\"uuid\":\"{:032x}\",\
             \"path\":\"\\/a b\\/{name}\",\"name\":\"{name}\"}},",
            next(u64::MAX)
        );
    }
    let mut threads = String::new();
    let faulting = next(3);
    for n in 0..3 {
        let mut frames = Vec::new();
        for _ in 0..next(5) {
            let symbol = [
                "",
                ",\"symbol\":\"main\",\"symbolLocation\":5",
                ",\"symbol\":\"-[A b:]\",\"sourceFile\":\"A.m\",\"sourceLine\":3",
            ];
            let symbol = one_of(&symbol, next(3));
            frames.push(format!(
                "{{\"imageOffset\":{},\"imageIndex\":{}{symbol}}}",
                next(0x1000),
                next(count + 1)
            ));
        }
        let (frames, id) = (frames.join(","), 100 + n);
        let _ = write!(threads, "{{\"id\":{id},\"name\":\"worker {n}\",\"frames\":[{frames}]}},");
    }
    format!(
        "{{\"bug_type\":\"309\"}}\n{{\"procName\":\"App\",\"cpuType\":\"ARM-64\",\"faultingThread\":{faulting},\
         \"threads\":[{}],\
         \"usedImages\":[{images}{{\"source\":\"A\",\"base\":0,\"size\":0}}]}}",
        threads.trim_end_matches(',')
    )
}

#[test]
fn rendered_text_parses_to_the_same_threads_addresses_and_images() {
    for seed in 0..300 {
        let text = random_ips(seed);
        let before = Report::parse(text.as_bytes()).expect("an .ips");
        let rendered = readable(&text);
        let after = Report::parse(rendered.as_bytes()).expect("a report");
        assert_eq!(after.format_name(), "apple-crash", "{rendered}");
        assert_eq!(identities(after.images()), identities(before.images()), "{rendered}");
        let (before_threads, after_threads) = (with_frames(before.threads()), with_frames(after.threads()));
        assert_eq!(after_threads.len(), before_threads.len(), "{rendered}");
        for (before_thread, after_thread) in before_threads.into_iter().zip(after_threads) {
            assert_eq!(after_thread.name.trim_end_matches(" Crashed"), before_thread.name);
            assert_eq!(
                (after_thread.crashed, &after_thread.label),
                (before_thread.crashed, &before_thread.label)
            );
            let frames = |thread: &Thread| {
                thread
                    .frames
                    .iter()
                    .map(|frame| (frame.address, frame.kind, frame.detail))
                    .collect::<Vec<_>>()
            };
            assert_eq!(frames(after_thread), frames(before_thread), "{rendered}");
        }
        assert_eq!(after.info().process, before.info().process);
    }
}

#[test]
fn text_formats_are_written_in_their_own_format() {
    let report = crash("0   App  0x100001010 0x100000000 + 4112\n", "arm64");
    assert_eq!(readable(&report), rewritten(&report));
    let android = format!("#00 pc 1010  /x/App (BuildId: {APP})\n");
    assert_eq!(readable(&android), rewritten(&android));
}

#[test]
fn call_trees_of_metrickit_are_written_with_sample_counts() {
    let frame = |offset: u64, samples: u64, inner: &str| {
        format!(
            r#"{{"binaryUUID":"{APP}","offsetIntoBinaryTextSegment":{offset},"sampleCount":{samples},
            "binaryName":"App","address":{},"subFrames":[{inner}]}}"#,
            0x1_0000_0000 + offset
        )
    };
    let tree = frame(0x1021, 9, &[frame(0x9000, 4, ""), frame(0x1010, 5, &frame(0x6000, 5, ""))].join(","));
    let text = format!(
        r#"{{"timeStampEnd":"2026-01-01","hangDiagnostics":[{{"callStackTree":{{"callStackPerThread":false,
        "callStacks":[{{"callStackRootFrames":[{tree}]}}]}},
        "diagnosticMetaData":{{"hangDuration":"20 sec","osVersion":"iOS 17.0","deviceType":"iPhone14,2",
        "platformArchitecture":"arm64"}}}}]}}"#
    );
    let expected = format!(
        "Hardware Model:      iPhone14,2\nCode Type:           arm64\n\nDate/Time:           2026-01-01\n\
         OS Version:          iOS 17.0\nReport Version:      104\n\n\
         Diagnostic:          hang 0\nhangDuration:        20 sec\nosVersion:           iOS 17.0\n\
         deviceType:          iPhone14,2\n\
         platformArchitecture: arm64\n\nCall tree of hang 0 Thread 0, samples before each frame:\n    \
         9 outer  (in App) + 33  [0x100001021]  main.c:7\n      9 app::inner()  (in App)  [0x100001021]  main.c:258 \
         [inlined]\n        \
         4 ???  (in App)  load address 0x100000000 + 0x9000  [0x100009000]\n        \
         5 outer  (in App) + 16  [0x100001010]  main.c:7\n          \
         5 app::inner()  (in App)  [0x100001010]  main.c:256 [inlined]\n            \
         5 symbol  (in App) + 0  [0x100006000]\n\n\
         Binary Images:\n       0x100000000 -                ??? App arm64  <{APP}> \n\nEOF\n"
    );
    assert_eq!(readable(&text), expected);
}

/// Indentation has a limit, so the output of a deep recursion is proportional to the input.
#[test]
fn the_indentation_of_a_deep_tree_is_limited() {
    let depth = 20_000;
    let open = format!(
        r#"{{"binaryUUID":"{APP}","binaryName":"App","address":4294971424,
        "offsetIntoBinaryTextSegment":4128,"subFrames":["#
    );
    let text = format!(
        r#"{{"hangDiagnostics":[{{"callStacks":[{{"callStackRootFrames":[{}1{}]}}]}}]}}"#,
        open.repeat(depth),
        "]}".repeat(depth)
    );
    let rendered = readable(&text);
    assert!(
        rendered.matches("outer").count() >= depth && rendered.len() < 5 * text.len(),
        "{}",
        rendered.len()
    );
}

#[test]
fn reports_of_kscrash_and_sentry_have_the_same_layout() {
    let kscrash = format!(
        r#"{{"report":{{"id":"0D7B","process_name":"App","timestamp":"2026"}},
        "system":{{"machine":"iPhone9,4","system_name":"iOS","system_version":"10.3","os_version":"14E277",
        "CFBundleShortVersionString":"1.4","CFBundleVersion":"7","process_id":9}},
        "binary_images":[{{"image_addr":4294967296,"image_size":65536,"name":"/var/App","uuid":"{APP}"}}],
        "crash":{{"error":{{"mach":{{"exception_name":"EXC_CRASH","code":0,"subcode":0}},"signal":{{"name":"SIGABRT"}},
        "nsexception":{{"name":"E","reason":"no"}},"type":"nsexception"}},
        "threads":[{{"index":0,"crashed":true,"dispatch_queue":"main","registers":{{"basic":{{"pc":7,"x0":1}}}},
        "backtrace":{{"contents":[{{"instruction_addr":4294971409,"symbol_name":"old","symbol_addr":4294971400}},
        {{"instruction_addr":4295004160,"symbol_name":"kept","symbol_addr":4295004150}}]}}}}]}}}}"#
    );
    let rendered = readable(&kscrash);
    for line in [
        "Incident Identifier: 0D7B\n",
        "Process:             App [9]\n",
        "Version:             1.4 (7)\n",
        "OS Version:          iOS 10.3 (14E277)\n",
        "\nException Type:  EXC_CRASH (SIGABRT)\nException Codes: 0x0000000000000000, 0x0000000000000000\n",
        "\nApplication Specific Information:\nE: no\n",
        "\nThread 0 name:   Dispatch queue: main\nThread 0 Crashed:\n",
        "\n1   App                           \t       0x100009000 kept + 10\n",
        "\nThread 0 crashed with ARM Thread State (64-bit):\n    x0: 0x0000000000000001   pc: 0x0000000000000007\n",
        &format!("\n       0x100000000 -        0x10000ffff App (*)  <{APP}> /var/App\n"),
    ] {
        assert!(rendered.contains(line), "{line}\n{rendered}");
    }
    let sentry = format!(
        r#"{{"event_id":"afcb","timestamp":1.5,
        "contexts":{{"os":{{"name":"iOS","version":"17.0"}},"app":{{"app_version":"1.0"}}}},
        "exception":{{"values":[{{"type":"EXC_BAD_ACCESS","value":"bad",
        "mechanism":{{"meta":{{"signal":{{"name":"SIGSEGV"}}}}}}}}]}},
        "threads":[{{"id":3,"name":"worker","crashed":true,"stacktrace":{{"frames":[{{"instruction_addr":"0x100009000",
        "function":"kept","symbol_addr":"0x100008ff0","filename":"k.c","lineno":4}}]}}}}],
        "debug_meta":{{"images":[{{"image_addr":"0x100000000","image_size":65536,"code_file":"/App",
        "debug_id":"{APP}"}}]}}}}"#
    );
    let rendered = readable(&sentry);
    for line in [
        "Date/Time:           1.5\nOS Version:          iOS 17.0\n",
        "\nException Type:  EXC_BAD_ACCESS (SIGSEGV)\n",
        "\nThread 0 name:  worker\nThread 0 Crashed:\n0   App                           \t       0x100009000 kept + \
         16 (k.c:4)\n",
    ] {
        assert!(rendered.contains(line), "{line}\n{rendered}");
    }
}
