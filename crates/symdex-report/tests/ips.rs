//! Apple's JSON reports: what is written. All other bytes stay unchanged.

use crate::common::{asked, ips, rewritten, rewritten_with};
use symdex_report::{Error, Options, Report};

#[test]
fn answers_become_members_and_inlined_functions_become_frames() {
    let before = ips(r#"{"imageOffset":4112,"imageIndex":0},{"imageOffset":4129,"imageIndex":0}"#);
    assert_eq!(asked(&before, &Options::new()), [0x1010, 0x1020]);
    let expected = ips(concat!(
        r#"{"imageOffset":4112,"imageIndex":0,"#,
        r#""symbol":"outer","symbolLocation":16,"sourceFile":"main.c","sourceLine":257},"#,
        r#"{"inline":true,"imageOffset":4129,"imageIndex":0,"#,
        r#""symbol":"app::inner()","sourceFile":"main.c","sourceLine":258},"#,
        r#"{"imageOffset":4129,"imageIndex":0,"#,
        r#""symbol":"outer","symbolLocation":33,"sourceFile":"main.c","sourceLine":7}"#
    ));
    assert_eq!(rewritten(&before), expected);
    assert_eq!(rewritten(&expected), expected);
}

#[test]
fn existing_members_are_replaced_in_place() {
    let before = ips(r#"{"symbol":"old","symbolLocation":99,"imageIndex":0,"imageOffset":4112,"x":1.0}"#);
    let expected = ips(concat!(
        r#"{"symbol":"outer","symbolLocation":16,"imageIndex":0,"imageOffset":4112,"#,
        r#""x":1.0,"sourceFile":"main.c","sourceLine":257}"#
    ));
    assert_eq!(rewritten(&before), expected);
    let only_missing = Options::new().only_missing(true);
    assert_eq!(rewritten_with(&before, &only_missing), before);
    let known =
        ips(r#"{"symbol":"old","symbolLocation":99,"imageIndex":0,"imageOffset":4112,"sourceFile":"a.c"}"#);
    assert_eq!(rewritten(&known), known);
}

#[test]
fn new_members_have_the_white_space_of_the_frame() {
    let before = ips("\n    {\n      \"imageOffset\" : 4096,\n      \"imageIndex\" : 0\n    }\n  ");
    let after = rewritten(&before);
    let expected = "[\n    \
                    {\n      \"inline\" : true,\n      \"imageOffset\" : 4096,\n      \"imageIndex\" : 0,\n      \
                    \"symbol\" : \"app::inner()\",\n      \"sourceFile\" : \"main.c\",\n      \
                    \"sourceLine\" : 256\n    },\n    \
                    {\n      \
                    \"imageOffset\" : 4096,\n      \"imageIndex\" : 0,\n      \"symbol\" : \"outer\",\n";
    assert!(after.contains(expected), "{after}");
}

/// A frame of the entry for addresses in no image has a runtime address, with or without a pointer authentication code.
#[test]
fn absolute_addresses_find_their_image() {
    let before = ips(r#"{"imageOffset":0,"imageIndex":1},{"imageOffset":4294971425,"imageIndex":1}"#);
    assert_eq!(asked(&before, &Options::new()), [0x1020]);
    assert!(rewritten(&before).contains(r#"{"imageOffset":4294971425,"imageIndex":1,"symbol":"outer""#));
}

#[test]
fn exceptions_and_bodies_without_a_header_are_read() {
    let text = ips("").replace(
        "\"version\"",
        "\"lastExceptionBacktrace\" : [{\"imageOffset\":4113,\"imageIndex\":0}],\n  \"version\"",
    );
    assert_eq!(asked(&text, &Options::new()), [0x1010]);
    let body = text.split_once('\n').expect("two parts").1;
    assert_eq!(asked(body, &Options::new()), [0x1010]);
    let marked = format!("\u{feff}{text}");
    assert_eq!(asked(&marked, &Options::new()), [0x1010]);
    assert_eq!(rewritten(&marked), format!("\u{feff}{}", rewritten(&text)));
}

/// Unresolved lines stay byte for byte, including their escapes.
#[test]
fn backtraces_in_strings_are_rewritten_line_by_line() {
    let backtrace =
        r#"0   lib\/c   \t0x180000010 raise + 8\n1   App   \t0x100001021 0x100000000 + 4129\n2   \"x\" \\n"#;
    let with = |backtrace: &str| {
        ips("").replace("\"version\"", &format!("\"asiBacktraces\" : [\"{backtrace}\"],\n  \"version\""))
    };
    assert_eq!(asked(&with(backtrace), &Options::new()), [0x1020]);
    let answer = concat!(
        r"1   App   \t0x100001021 app::inner() (main.c:258) [inlined]\n",
        r"1   App   \t0x100001021 outer + 33 (main.c:7)"
    );
    let expected = with(&backtrace.replace(r"1   App   \t0x100001021 0x100000000 + 4129", answer));
    assert_eq!(rewritten(&with(backtrace)), expected);
}

#[test]
fn other_kinds_of_ips_are_refused_by_their_bug_type() {
    let error = Report::parse(b"{\"bug_type\":\"298\"}\n{\"memoryStatus\":{}}\n").err();
    assert!(matches!(&error, Some(Error::Unsupported { what }) if what.contains("298")), "{error:?}");
    for text in ["{\"a\":1}", ""] {
        assert_eq!(
            Report::parse(text.as_bytes()).err(),
            Some(Error::UnknownFormat { near: Vec::new() }),
            "{text}"
        );
    }
}
