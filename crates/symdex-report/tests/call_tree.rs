//! Apple's call trees: which addresses are looked up, and what is written.

use crate::common::{APP, asked, crash, new_lines, rewritten, rewritten_with};
use symdex_report::{Options, Report, symbolicate};

/// A report of `sample` with these lines in its call graph.
fn sample(lines: &str) -> String {
    format!(
        "Analysis of sampling App (pid 7) every 1 millisecond\nCode Type:       ARM64\n\
         Analysis Tool:   /usr/bin/sample\n----\n\n\
         Call graph:\n    9 Thread_12   DispatchQueue_1: com.apple.main-thread  (serial)\n{lines}\n\
         Total number in stack (recursive counted multiple, when >=5):\n        \
         5       ???  (in App)  load address 0x100000000 + 0x1010  [0x100001010]\n\n\
         Sort by top of stack, same collapsed (when >= 5):\n        f  (in App)        5\n\n\
         Binary Images:\n       0x100000000 -        0x10000ffff +App (0) <{APP}> /Users/USER/*/App\n\
         0x180000000 -        0x18000ffff  libsystem_c.dylib (957) <C4BEB94C-B831-3889-A403-4B7A4AA4DCDF> \
         /usr/lib/system/libsystem_c.dylib\n"
    )
}

const RAW: &str = "???  (in App)  load address 0x100000000 +";

/// A report of `spindump` with these lines in the app's threads. A second process has an image at the same address.
fn spindump(lines: &str) -> String {
    format!(
        "OS Version:       macOS 14.0 (Build 23A1)\nArchitecture:     arm64e\nReport Version:   60\n\n\
         Process:          App [7]\nArchitecture:     arm64\n\n{lines}\n  Binary Images:\n           \
         0x100000000 -                ???  com.company.App 1.0 (1)  <{APP}>  \
         /Applications/App.app/Contents/MacOS/App\n   \
         *0xfffffe0008860000 - 0xfffffe00091cffff  kernel.release (1)  \
         <B3B9C89A-5728-31D0-8065-3C50623191AE>__TEXT_EXEC  /System/Library/Kernels/k\n\n\n\
         Process:          other [8]\n\n  Thread 0x9    9 samples (1-9)\n  9  ??? (other + 4112) [0x100001010]\n    \
         *9  ??? (kernel.release + 16) [0xfffffe0008860010]\n\n  Binary Images:\n           \
         0x100000000 -        0x10000ffff  other (1)  <C4BEB94C-B831-3889-A403-4B7A4AA4DCDF>  /usr/libexec/other\n"
    )
}

fn lines(before: &str) -> Vec<String> {
    new_lines(before, &rewritten(before)).into_iter().map(str::to_owned).collect()
}

/// A callee comes before its caller. The caller has a return address.
#[test]
fn leaves_are_instructions_and_callers_are_return_addresses() {
    let text = sample(&format!(
        "    + 9 {RAW} 0x1031  [0x100001031]\n    +   5 {RAW} 0x1051  [0x100001051]\n    \
         +   ! 5 {RAW} 0x1071  [0x100001071]\n    \
         +   4 {RAW} 0x1091  [0x100001091]\n"
    ));
    assert_eq!(asked(&text, &Options::new()), [0x1030, 0x1050, 0x1071, 0x1091]);
    let report = Report::parse(text.as_bytes()).expect("a report");
    assert_eq!(report.format_name(), "apple-call-tree");
    let addresses = report.threads()[0].frames.iter().map(|frame| frame.address & 0xffff);
    assert_eq!(addresses.collect::<Vec<_>>(), [0x1091, 0x1071, 0x1051, 0x1031]);
    assert_eq!((report.threads().len(), report.threads()[0].name.as_str()), (1, "Thread_12"));
}

#[test]
fn the_caller_of_a_signal_trampoline_is_an_instruction() {
    let text = sample(&format!(
        "      9 {RAW} 0x1031  [0x100001031]\n        9 {RAW} 0x1051  [0x100001051]\n          \
         9 _sigtramp  (in libsystem_c.dylib) + 8  [0x180000010]\n            9 {RAW} 0x1071  [0x100001071]\n"
    ));
    assert_eq!(asked(&text, &Options::new()), [0x1030, 0x1051, 0x1071]);
}

#[test]
fn inlined_functions_are_inserted_between_a_frame_and_its_callees() {
    let before = sample(&format!(
        "    + 9 {RAW} 0x1021  [0x100001021]\n    + ! 5 {RAW} 0x1051  [0x100001051]\n    \
         + ! : 5 start  (in dyld) + 3  [0x200000000]\n    \
         + 4 main  (in App) + 2  [0x100001010,0x100001018,...]\n    4 Thread_13\n      4 {RAW} 0x1040  [0x100001040]\n"
    ));
    let expected = [
        "    + 9 outer  (in App) + 33  [0x100001021]  main.c:7",
        "    + ! 9 app::inner()  (in App)  [0x100001021]  main.c:258 [inlined]",
        "    + !   5 outer  (in App) + 81  [0x100001051]  main.c:261",
        "    + !   : 5 start  (in dyld) + 3  [0x200000000]",
        "    + 4 outer  (in App) + 16  [0x100001010,0x100001018,...]  main.c:257",
        "      4 outer  (in App) + 64  [0x100001040]  main.c:7",
        "        4 app::inner()  (in App)  [0x100001040]  main.c:260 [inlined]",
    ];
    assert_eq!(lines(&before), expected);
    let after = rewritten(&before);
    assert_eq!(rewritten(&after), after);
    assert_eq!(asked(&after, &Options::new()), Vec::<u64>::new());
    let plain = rewritten_with(&before, &Options::new().inlines(false));
    assert_eq!(
        new_lines(&before, &plain),
        [expected[0], &expected[2].replacen("  5", "5", 1), expected[4], expected[5]]
    );
}

#[test]
fn frames_with_a_line_stay_and_frames_with_a_name_get_a_line() {
    for known in ["old  (in App) + 3  [0x100001010]  a.c:1", "old (in App) (a.c:1) [0x100001010]"] {
        let text = sample(&format!("      9 {known}\n"));
        assert_eq!(rewritten(&text), text);
    }
    let named = sample("      9 old  (in App) + 3  [0x100001010]\n");
    assert_eq!(lines(&named), ["      9 outer  (in App) + 16  [0x100001010]  main.c:257"]);
    assert_eq!(rewritten_with(&named, &Options::new().only_missing(true)), named);
    let symbol = sample(&format!("      9 {RAW} 0x6010  [0x100006010]\n"));
    assert_eq!(lines(&symbol), ["      9 symbol  (in App) + 16  [0x100006010]"]);
}

#[test]
fn spindump_has_trees_and_images_of_many_processes() {
    let before = spindump(
        "  Thread 0x1a    DispatchQueue \"com.apple.main-thread\"(1)    9 samples (1-9)\n  \
         9   start + 462 (dyld + 16) [0x1800010]\n    \
         9   ??? (App + 4129) [0x100001021] (running)\n      8   ??? [0x55]\n      \
         1   <Effective Thread QoS Default>\n    \
         5   ??? (App + 4112) [0x100001010] 1-3\n     *5   ??? (kernel.release + 32) [0xfffffe0008860020]\n",
    );
    let expected = [
        "    9   outer + 33 (main.c:7 in App + 4129) [0x100001021] (running)",
        "      9   app::inner() (main.c:258 in App + 4129) [0x100001021] (running) [inlined]",
        "        8   ??? [0x55]",
        "        1   <Effective Thread QoS Default>",
        "    5   outer + 16 (main.c:257 in App + 4112) [0x100001010] 1-3",
    ];
    assert_eq!(lines(&before), expected);
    let after = rewritten(&before);
    assert_eq!(rewritten(&after), after);
    // `dyld` is not in the list of images. The frame of the kernel has the address of an instruction.
    let report = Report::parse(before.as_bytes()).expect("a report");
    let images: Vec<_> = report.images().iter().map(|image| (image.file_name(), image.size)).collect();
    let expected =
        [("App", Some(0x1022)), ("k", Some(0x97_0000)), ("other", Some(0x1_0000)), ("dyld", Some(0x11))];
    assert_eq!(images, expected);
    assert_eq!(report.images()[0].arch.as_ref().map(|arch| arch.name.as_str()), Some("arm64"));
    assert_eq!(report.images()[1].path, "/System/Library/Kernels/k");
    assert_eq!(report.images()[1].base, symdex_report::Base::TextExec);
    let names: Vec<_> = report.threads().iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["Thread 0x1a", "Thread 0x9"]);
    let numbers = report.threads().iter().flat_map(|thread| thread.frames.iter().map(|frame| frame.image()));
    assert_eq!(numbers.collect::<Vec<_>>(), [Some(1), Some(0), Some(0), Some(3), Some(1), Some(2)]);
}

/// The heaviest stack is a list, the outermost frame first.
#[test]
fn the_heaviest_stack_is_a_list() {
    let before = format!(
        "{{\"bug_type\":\"202\",\"app_name\":\"App\"}}\n{}",
        spindump("").replace(
            "\nProcess:          App",
            "\nHeaviest stack for the target process:\n  9  ??? (App + 4129) [0x100001021]\n  \
             5  ??? (App + 4161) [0x100001041]\n\n\n\
             Powerstats for:   App [7]\n  9  ??? (App + 4129) [0x100001021]\n    5  ??? (App + 4112) [0x100001010]\n\
             Process:          App"
        )
    );
    let report = Report::parse(before.as_bytes()).expect("a report");
    let mut source = crate::common::App { asked: Vec::new() };
    symbolicate(&report, &mut source, &Options::new());
    assert_eq!(source.asked[0], ("com.company.App 1.0".to_owned(), vec![0x1010, 0x1020, 0x1041]));
    let inner = "9  app::inner() (main.c:258 in App + 4129) [0x100001021] [inlined]";
    let expected = [
        "  9  outer + 33 (main.c:7 in App + 4129) [0x100001021]".to_owned(),
        format!("  {inner}"),
        "  5  outer + 65 (main.c:7 in App + 4161) [0x100001041]".to_owned(),
        "  5  app::inner() (main.c:260 in App + 4161) [0x100001041] [inlined]".to_owned(),
        "  9  outer + 33 (main.c:7 in App + 4129) [0x100001021]".to_owned(),
        format!("    {inner}"),
        "      5  outer + 16 (main.c:257 in App + 4112) [0x100001010]".to_owned(),
    ];
    assert_eq!(lines(&before), expected);
    let names: Vec<_> = report.threads().iter().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["Heaviest stack for the target process", "Powerstats for:   App [7]", "Thread 0x9"]);
}

#[test]
fn line_endings_are_kept_and_crash_reports_are_not_call_trees() {
    let text = sample(&format!("      9 {RAW} 0x1020  [0x100001020]\n")).replace('\n', "\r\n");
    let after = rewritten(&text);
    assert!(
        after.contains(
            "main.c:7\r\n        9 app::inner()  (in App)  [0x100001020]  main.c:258 [inlined]\r\n"
        ),
        "{after}"
    );
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count());
    let crash = crash("0   App  0x100001010 f (in App) (main.m:9)\n", "arm64");
    assert_eq!(Report::parse(crash.as_bytes()).expect("a report").format_name(), "apple-crash");
}
