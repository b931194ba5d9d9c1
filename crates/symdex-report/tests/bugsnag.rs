//! Bugsnag's events: which addresses are looked up, and what is written.

use crate::common::{APP, asked, rewritten};
use symdex_report::Options;

fn event(owner: &str, frames: &str) -> String {
    format!("{{\"threads\": [{{{owner}\"stacktrace\": [{frames}]}}]}}")
}

fn frame(offset: u64, more: &str) -> String {
    format!(
        "{{\"frameAddress\": \"{:#x}\", \"machoLoadAddress\": \"0x100000000\", \"machoFile\": \"/var/App\", \
         \"machoUUID\": \"{APP}\"{more}}}",
        0x1_0000_0000 + offset
    )
}

#[test]
fn the_innermost_frame_is_an_instruction_if_the_thread_was_suspended_or_the_frame_says_so() {
    let frames = [frame(0x1010, ""), frame(0x1031, "")].join(", ");
    let marked = [frame(0x1010, ""), frame(0x1031, ", \"isPC\": true")].join(", ");
    for (owner, frames, expected) in [
        ("\"id\": \"1\", ", &frames, [0x1010, 0x1030]),
        ("\"errorReportingThread\": true, ", &frames, [0x100f, 0x1030]),
        ("\"errorClass\": \"E\", ", &frames, [0x100f, 0x1030]),
        ("\"errorReportingThread\": true, ", &marked, [0x100f, 0x1031]),
    ] {
        assert_eq!(asked(&event(owner, frames), &Options::new()), expected, "{owner}");
    }
}

#[test]
fn answers_become_members_and_inlined_functions_become_frames() {
    let before = event("\"id\": \"1\", ", &frame(0x1020, ""));
    let inlined = ", \"method\": \"app::inner()\", \"file\": \"/src/app/main.c\", \"lineNumber\": 258, \"inlined\": true";
    let concrete = ", \"method\": \"outer\", \"symbolAddress\": \"0x100001000\", \"file\": \"/src/app/main.c\", \
                    \"lineNumber\": 7";
    let after = rewritten(&before);
    let inlined = inlined_frame(inlined);
    assert_eq!(after, event("\"id\": \"1\", ", &format!("{inlined},{}", frame(0x1020, concrete))));
    assert_eq!(rewritten(&after), after);
}

/// An object for an inlined function has the members of the address in the order of the format's own list.
fn inlined_frame(more: &str) -> String {
    format!(
        "{{\"frameAddress\": \"0x100001020\", \"machoFile\": \"/var/App\", \"machoLoadAddress\": \"0x100000000\", \
         \"machoUUID\": \"{APP}\"{more}}}"
    )
}

/// Android's client writes the library as the file, so a name with a file still wants a line.
#[test]
fn frames_of_android_with_a_name_get_a_line() {
    let frame = format!(
        "{{\"frameAddress\": \"0x100001030\", \"loadAddress\": \"0x100000000\", \"codeIdentifier\": \"{APP}\", \
         \"method\": \"old\", \"file\": \"/data/app/libapp.so\", \"lineNumber\": 4144, \"isPC\": true}}"
    );
    let after = rewritten(&event("", &frame));
    assert!(
        after.contains("\"method\": \"outer\", \"file\": \"/src/app/main.c\", \"lineNumber\": 259"),
        "{after}"
    );
    assert_eq!(rewritten(&after), after);
}
