//! KSCrash's reports: which addresses are looked up, and what is written.

use crate::common::{APP, asked, new_lines, rewritten, rewritten_with};
use symdex_report::{Options, Report};

/// A report with this error type, members of the crashed thread, and frames.
fn report(error: &str, thread: &str, frames: &str) -> String {
    format!(
        "{{\n  \"report\": {{\"version\": \"3.2.0\"}},\n  \"binary_images\": [{{\"cpu_subtype\": 0, \
         \"cpu_type\": 16777228, \
         \"image_addr\": 4294967296, \"image_size\": 65536, \"image_vmaddr\": 4294967296, \
         \"name\": \"/var/App.app/App\", \
         \"uuid\": \"{APP}\"}}],\n  \"crash\": {{\n    \"error\": {{\"type\": \"{error}\"}},\n    \
         \"threads\": [{{\"crashed\": true, \
         \"index\": 0{thread}, \"backtrace\": {{\"contents\": [{frames}], \"skipped\": 0}}}}]\n  }}\n}}\n"
    )
}

fn frame(offset: u64, more: &str) -> String {
    format!(
        "{{\"instruction_addr\": {}, \"object_addr\": 4294967296, \"object_name\": \"App\"{more}}}",
        0x1_0000_0000 + offset
    )
}

#[test]
fn answers_become_members_and_inlined_functions_become_frames() {
    let header = ", \"symbol_addr\": 4294967296, \"symbol_name\": \"_mh_execute_header\"";
    let before = report("mach", "", &[frame(0x1010, header), frame(0x1021, "")].join(", "));
    assert_eq!(asked(&before, &Options::new()), [0x1010, 0x1020]);
    let outer = ", \"symbol_addr\": 4294971392, \"symbol_name\": \"outer\", \"source_file\": \"main.c\", \
                 \"source_line\": 257";
    let inner = ", \"symbol_name\": \"app::inner()\", \"source_file\": \"main.c\", \"source_line\": 258, \
                 \"inlined\": true";
    let frames =
        [frame(0x1010, outer), frame(0x1021, inner), frame(0x1021, &outer.replace("257", "7"))].join(", ");
    let expected = report("mach", "", &frames);
    assert_eq!(rewritten(&before), expected);
    assert_eq!(rewritten(&expected), expected);
    let plain = rewritten_with(&before, &Options::new().inlines(false));
    assert!(!plain.contains("inlined") && plain.contains("\"source_line\": 7"), "{plain}");
}

#[test]
fn frames_with_a_name_get_a_line() {
    let before =
        report("mach", "", &frame(0x1010, ", \"symbol_addr\": 1, \"symbol_name\": \"old\", \"x\": 1.0"));
    let after = ", \"symbol_addr\": 4294971392, \"symbol_name\": \"outer\", \"x\": 1.0, \"source_file\": \"main.c\", \
                 \"source_line\": 257";
    assert_eq!(rewritten(&before), report("mach", "", &frame(0x1010, after)));
    assert_eq!(rewritten_with(&before, &Options::new().only_missing(true)), before);
}

/// An exception is caught before it is reported, so the innermost frame has a return address. Registers override
/// this.
#[test]
fn the_innermost_frame_of_an_exception_is_a_return_address() {
    let frames = [frame(0x1010, ""), frame(0x1021, "")].join(",");
    let offsets = |error: &str, thread: &str| asked(&report(error, thread, &frames), &Options::new());
    for thrown in ["nsexception", "cpp_exception", "user"] {
        assert_eq!(offsets(thrown, ""), [0x100f, 0x1020], "{thrown}");
    }
    let registers = |pc: u64| format!(", \"registers\": {{\"basic\": {{\"lr\": 7, \"pc\": {pc}}}}}");
    assert_eq!(offsets("nsexception", &registers(0x1_0000_1010)), [0x1010, 0x1020]);
    assert_eq!(offsets("signal", &registers(0x1_0000_1010)), [0x1010, 0x1020]);
    assert_eq!(offsets("signal", &registers(0)), [0x100f, 0x1020]);
}

/// The first report is incomplete. The second one describes the crash of KSCrash itself and uses the first one's
/// images.
#[test]
fn a_crash_during_reporting_yields_both_reports() {
    let inner = report("mach", "", &frame(0x1010, ""));
    let outer = format!(
        "{{\"crash\": {{\"error\": {{\"type\": \"signal\"}}, \"crashed_thread\": {{\"index\": 3, \"crashed\": true, \
         \"backtrace\": {{\"contents\": [{}]}}}}}}, \"recrash_report\": {inner}}}",
        frame(0x2010, "")
    );
    assert_eq!(asked(&outer, &Options::new()), [0x1010, 0x2010]);
    assert_eq!(new_lines(&outer, &rewritten(&outer)).len(), 2);
    let report = Report::parse(outer.as_bytes()).expect("a report");
    assert_eq!(
        report.threads().iter().map(|thread| thread.name.as_str()).collect::<Vec<_>>(),
        ["Thread 3", "Thread 0"]
    );
    assert!(report.threads().iter().all(|thread| thread.crashed));
}

#[test]
fn stacks_of_deallocated_exceptions_are_read() {
    let text = report("mach", "", "").replace(
        "\"report\"",
        &format!(
            "\"process\": {{\"last_dealloced_nsexception\": {{\"backtrace\": {{\"contents\": [{}]}}}}}}, \"report\"",
            frame(0x1011, "")
        ),
    );
    assert_eq!(asked(&text, &Options::new()), [0x1010]);
}

/// Some versions write a CPU subtype with its top bit set as a negative number.
#[test]
fn the_cpu_type_of_the_image_tells_thumb_code() {
    let arm = report("mach", "", &frame(0x1011, ""))
        .replace("16777228", "12")
        .replace("\"cpu_subtype\": 0", "\"cpu_subtype\": 9");
    assert_eq!(asked(&arm, &Options::new()), [0x1010]);
    let arm64e =
        report("mach", "", &frame(0x1011, "")).replace("\"cpu_subtype\": 0", "\"cpu_subtype\": -2147483646");
    let report = Report::parse(arm64e.as_bytes()).expect("a report");
    assert_eq!(report.images()[0].arch.as_ref().map(|arch| arch.name.as_str()), Some("arm64e"));
}
