//! Text of PLCrashReporter's formatter: a `.crash` with other column widths and other words for unknown values.

use crate::common::{APP, asked, new_lines, rewritten};
use symdex_report::{Options, Report};

/// A report for this architecture. The formatter itself writes `TODO` as the key.
fn report(arch: &str) -> String {
    format!(
        "Incident Identifier: 0D7B1E5C-0000-4000-8000-000000000000\nCrashReporter Key:   TODO\n\
         Hardware Model:      iPhone9,1\n\
         Process:         App [107]\nPath:            /var/App.app/App\nIdentifier:      com.company.App\n\
         Version:         1.0 (3)\n\
         Code Type:       ARM-64\nParent Process:  ??? [1]\n\nDate/Time:       2026-01-01 14:55:59 +0000\n\
         OS Version:      iPhone OS 13.3.1 (17D50)\nReport Version:  104\n\nException Type:  SIGABRT\n\
         Exception Codes: #0 at 0x180000010\nCrashed Thread:  0\n\nApplication Specific Information:\n\
         *** Terminating app due to uncaught exception 'X', reason: 'Y'\n\nLast Exception Backtrace:\n\
         0   libsystem_c.dylib                   0x0000000180000010 0x180000000 + 16\n\
         1   App                                 0x0000000100001021 0x100000000 + 4129\n\n\
         Thread 0 Crashed:\n\
         0   App                                 0x0000000100001010 0x100000000 + 4112\n\
         1   App                                 0x0000000100001051 old + 3\n\
         2   ???                                 0x0000000300000000 0x0 + 0\n\n\
         Thread 1:\n\
         0   App                                 0x0000000100002010 0x100000000 + 8208\n\n\
         Thread 0 crashed with ARM-64 Thread State:\n    pc:\t0x0000000100001010     fp:\t0x000000016fdff000 \n\n\
         Binary Images:\n\
         \u{20}      0x100000000 -        0x10000ffff +App {arch}  <{APP}> /var/App.app/App\n\
         \u{20}      0x180000000 -        0x18000ffff  libsystem_c.dylib ???  <???> /usr/lib/system/libsystem_c.dylib\n"
    )
}

#[test]
fn frames_are_looked_up_and_written_as_in_a_crash_report() {
    let before = report("arm64");
    assert_eq!(asked(&before, &Options::new()), [0x1010, 0x1020, 0x1050, 0x2010]);
    let name = "App                                ";
    let expected = [
        format!("1   {name} 0x0000000100001021 app::inner() (main.c:258) [inlined]"),
        format!("1   {name} 0x0000000100001021 outer + 33 (main.c:7)"),
        format!("0   {name} 0x0000000100001010 outer + 16 (main.c:257)"),
        format!("1   {name} 0x0000000100001051 outer + 81 (main.c:261)"),
        format!("0   {name} 0x0000000100002010 outer + 16 (main.c:513)"),
    ];
    let after = rewritten(&before);
    assert_eq!(new_lines(&before, &after), expected);
    assert_eq!(rewritten(&after), after);
}

#[test]
fn unknown_values_are_not_part_of_the_image_name() {
    for arch in ["arm64", "???", "arm-unknown"] {
        let text = report(arch);
        let report = Report::parse(text.as_bytes()).expect("a report");
        assert_eq!(report.format_name(), "apple-crash");
        let [app, system] = &report.images()[..2] else { panic!("images") };
        assert_eq!((app.name.as_str(), system.name.as_str()), ("App", "libsystem_c.dylib"), "{arch}");
        assert_eq!((system.path.as_str(), &system.id), ("/usr/lib/system/libsystem_c.dylib", &None));
        let archs = [app, system].map(|image| image.arch.as_ref().map(|arch| arch.name.as_str()));
        assert_eq!(archs, [Some("arm64"); 2]);
    }
}
