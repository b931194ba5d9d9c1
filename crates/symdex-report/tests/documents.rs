//! Formats in JSON that are described by their keys, and tables of xctrace: what is read, and what is written.

use crate::common::{APP, asked, readable, rewritten};
use symdex_report::{Options, Report};

fn lookups(text: &str) -> Vec<u64> {
    asked(text, &Options::new())
}

fn swift(frames: &str) -> String {
    format!(
        r#"{{"description":"Bad pointer dereference","platform":"macOS 26.0","threads":[{{"crashed":true,
"frames":[{frames}]}}],"images":[{{"name":"App","buildId":"{APP}","baseAddress":"0x100000000","endOfText":"0x100010000"}}]}}"#
    )
}

#[test]
fn the_kind_of_a_swift_frame_says_what_its_address_is() {
    let frame = |kind: &str| format!(r#"{{"kind":"{kind}","address":"0x100001010","image":"App"}}"#);
    for (kind, offset) in
        [("programCounter", 0x1010), ("returnAddress", 0x100f), ("asyncResumePoint", 0x1010)]
    {
        let text = swift(&format!(r#"{},{{"kind":"truncated"}}"#, frame(kind)))
            .replace("\"crashed\":true", "\"x\":\"programCounter\"");
        assert_eq!(lookups(&text), [offset], "{kind}");
        assert_eq!(Report::parse(text.as_bytes()).expect("a report").malformed_frames(), 0);
    }
    let text = readable(&swift(&frame("programCounter")));
    assert!(text.contains("Exception Type:  Bad pointer dereference\n"), "{text}");
    assert!(text.contains("Thread 0 Crashed:\n"), "{text}");
}

#[test]
fn answers_for_swift_have_both_names_and_a_location() {
    let start = r#"{"kind":"returnAddress","address":"0x100001021""#;
    let (inner, outer) =
        (r#""symbol":"_ZN3app5innerEv","description":"app::inner()""#, r#""symbol":"outer""#);
    let location =
        |line| format!(r#""sourceLocation":{{"column":0,"file":"/src/app/main.c","line":{line}}}"#);
    let after = swift(&format!(
        r#"{start},"inlined":true,{inner},"image":"App",{}}},{start},"image":"App",{outer},"offset":33,"description":"outer",{}}}"#,
        location(258),
        location(7)
    ));
    assert_eq!(rewritten(&swift(&format!(r#"{start},"image":"App"}}"#))), after);
    assert_eq!(rewritten(&after), after);
    let symbols = Report::parse(after.as_bytes()).expect("a report").existing_symbols();
    let symbol = &symbols[0][1];
    assert_eq!((symbol.function.as_deref(), symbol.line, symbol.offset), (Some("outer"), Some(7), Some(33)));
    assert_eq!(symbol.file.as_deref(), Some("/src/app/main.c"));
}

fn sentry(frames: &str) -> String {
    format!(
        r#"{{"debug_meta":{{"images":[{{"image_addr":"0x100000000","image_size":65536,"code_file":"App",
"debug_id":"{APP}"}}]}},{frames}}}"#
    )
}

#[test]
fn relative_addresses_of_sentry_count_from_an_image() {
    let event = |mode: &str| {
        sentry(&format!(
            r#""exception":[{{"stacktrace":{{"frames":[{{"instruction_addr":"0x1010","addr_mode":"{mode}"}}]}}}}]"#
        ))
    };
    assert_eq!(lookups(&event("rel:0")), [0x1010]);
    assert_eq!(lookups(&event("abs")), [0_u64; 0]);
    for wrong in ["rel:1", "rel:", "rel:x"] {
        let text = event(wrong);
        assert_eq!(Report::parse(text.as_bytes()).expect("a report").malformed_frames(), 1, "{wrong}");
    }
}

#[test]
fn a_frame_of_a_sentry_profile_is_an_instruction_if_it_calls_nothing() {
    let profile = sentry(
        r#""profile":{"stacks":[[1,0],[2,0],[2,1]],"samples":[],"frames":[{"instruction_addr":"0x100001010"},
{"instruction_addr":"0x100001021"},{"instruction_addr":"0x100001030"}]}"#,
    );
    assert_eq!(lookups(&profile), [0x100f, 0x1020, 0x1030]);
    let after = profile.replace(r#"1010"}"#, r#"1010","function":"outer","symbol":"outer","filename":"main.c","abs_path":"/src/app/main.c","lineno":7}"#);
    assert!(
        rewritten(&profile).starts_with(&after[..after.find("1021").expect("there")]),
        "{}",
        rewritten(&profile)
    );
    let in_envelope = format!("{{\"event_id\":\"1\"}}\n{{\"type\":\"profile_chunk\"}}\n{profile}\n");
    assert_eq!(lookups(&in_envelope), [0x100f, 0x1020, 0x1030]);
    let older = sentry(
        r#""sampled_profile":{"samples":[{"frames":[{"instruction_addr":"0x100001010"},{"instruction_addr":"0x100001021"}]}]}"#,
    );
    assert_eq!(lookups(&older), [0x1010, 0x1020]);
}

#[test]
fn an_element_of_xctrace_with_a_reference_repeats_a_frame() {
    let frame = |name: &str, more: &str| {
        format!(
            r#"<frame id="5"{name} addr="0x100001011"><binary id="6" name="App" UUID="{APP}" load-addr="0x100000000"/>{more}</frame>"#
        )
    };
    let table = |frame: &str| {
        format!(
            "<trace-query-result>\n<row><backtrace id=\"1\">{frame}</backtrace></row><row><backtrace><frame ref=\"5\"/>\
             <frame name=\"f\" addr=\"0x100001041\"><binary ref=\"6\"/></frame></backtrace></row>\
             <row><backtrace ref=\"1\"/></row>\n</trace-query-result>"
        )
    };
    let before = table(&frame(r#" name="0x100001010""#, ""));
    let report = Report::parse(before.as_bytes()).expect("a report");
    let counts: Vec<_> = report.threads().iter().map(|thread| thread.frames.len()).collect();
    assert_eq!((counts, report.images().len()), (vec![1, 2], 1));
    assert_eq!(lookups(&before), [0x1010, 0x1040]);
    let source = r#"<source line="257"><path>/src/app/main.c</path></source>"#;
    let after = table(&frame(r#" name="outer""#, source)).replace(
        r#"name="f" addr="0x100001041"><binary ref="6"/>"#,
        r#"name="outer" addr="0x100001041"><binary ref="6"/><source line="7"><path>/src/app/main.c</path></source>"#,
    );
    assert_eq!(rewritten(&before), after);
    assert_eq!(rewritten(&after), after);
    assert_eq!(
        rewritten(&table(&frame("", ""))),
        after.replace("id=\"5\" name=\"outer\"", "name=\"outer\" id=\"5\"")
    );
    let named = table(&frame(r#" name="&lt;T&gt; &amp;lt;""#, source));
    let symbols = Report::parse(named.as_bytes()).expect("a report").existing_symbols();
    let symbol = (symbols[0][0].function.as_deref(), symbols[0][0].file.as_deref(), symbols[0][0].line);
    assert_eq!(symbol, (Some("<T> &lt;"), Some("/src/app/main.c"), Some(257)));
}

#[test]
fn numbers_of_a_log_of_app_store_connect_are_strings() {
    let members = format!(r#""binaryUUID":"{APP}","binaryName":"App","subFrames":[]"#);
    let log = |offset: &str, symbol: &str| {
        format!(
            r#"{{"productData":[{{"diagnosticLogs":[{{"callStackTree":[{{"callStacks":[{{"callStackRootFrames":[
{{"address":"0x100001010","offsetIntoBinaryTextSegment":"{offset}",{symbol},{members}}}]}}]}}]}}]}}]}}"#
        )
    };
    let empty = r#""offsetIntoSymbol":"","symbolName":"","lineNumber":"","fileName":"""#;
    let answer = r#""offsetIntoSymbol":"16","symbolName":"outer","lineNumber":"257","fileName":"main.c""#;
    assert_eq!(rewritten(&log("4112", empty)), log("4112", answer));
    assert_eq!(rewritten(&log("4112", answer)), log("4112", answer));
    // The report does not state where the image was loaded.
    assert_eq!(rewritten(&log("", empty)), log("", empty));
    assert_eq!(lookups(&log("", empty)), [0_u64; 0]);
}
