//! What is not read of a report is counted; reports without frames and other files are named.

use crate::common::{APP, asked, crash, ips, rewritten, stacks::samples};
use symdex_report::{Base, Error, Options, Report, formats};

/// The frames that are read, those that are malformed, and the bytes after the report.
fn read(text: &str) -> (usize, u64, u64) {
    let report = Report::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    let frames = report.threads().iter().map(|thread| thread.frames.len()).sum();
    (frames, report.malformed_frames(), report.unread_bytes())
}

#[test]
fn whole_numbers_are_read_in_every_notation() {
    let before = ips(concat!(
        r#"{"imageOffset":4112.0,"imageIndex":0},{"imageOffset":"4129","imageIndex":"0"},"#,
        r#"{"imageOffset":"0x1021","imageIndex":0.0},{"imageOffset":4.129e3,"imageIndex":0}"#
    ));
    assert_eq!(read(&before), (4, 0, 0));
    assert_eq!(asked(&before, &Options::new()), [0x1010, 0x1020]);
    assert!(rewritten(&before).contains(r#"{"imageOffset":4112.0,"imageIndex":0,"symbol":"outer""#));
    let base = ips(r#"{"imageOffset":4112,"imageIndex":0}"#).replace("4294967296", "\"4294967296\"");
    assert_eq!(asked(&base, &Options::new()), [0x1010]);
}

#[test]
fn frames_without_a_whole_number_are_counted_and_stay() {
    let good = r#"{"imageOffset":4112,"imageIndex":0}"#;
    for bad in [
        r#"{"imageOffset":16.5,"imageIndex":0}"#,
        r#"{"imageOffset":16.00000000000000001,"imageIndex":0}"#,
        r#"{"imageOffset":9007199254740993.0,"imageIndex":0}"#,
        r#"{"imageOffset":-16,"imageIndex":0}"#,
        r#"{"imageOffset":null,"imageIndex":0}"#,
        r#"{"imageOffset":"main","imageIndex":0}"#,
        r#"{"imageOffset":16,"imageIndex":"first"}"#,
        r#"{"imageOffset":16,"imageIndex":2}"#,
        r#"{"imageIndex":0}"#,
    ] {
        let text = ips(&format!("{bad},{good}"));
        assert_eq!(read(&text), (1, 1, 0), "{bad}");
        assert!(rewritten(&text).contains(bad), "{bad}");
    }
    let address = "\"instruction_addr\":4294971408";
    let kscrash = crate::common::samples::KSCRASH.replace("%ID", APP);
    assert_eq!(read(&kscrash), (3, 0, 0));
    assert_eq!(read(&kscrash.replacen(address, "\"instruction_addr\":\"?\"", 1)), (2, 1, 0));
    let metrickit = crate::common::samples::METRICKIT.replace("%ID", APP);
    assert_eq!(read(&metrickit.replace("\"address\":4294971456", "\"address\":[]")), (2, 1, 0));
    for none in ["{}", r#"{"symbol":"f"}"#, r#"{"binaryName":"x","sampleCount":1}"#] {
        let root = "\"callStackRootFrames\":[";
        let text = metrickit.replace(root, &format!("{root}{none},"));
        assert_eq!(read(&text), (3, 0, 0), "{none}");
        assert!(rewritten(&text).contains(none), "{none}");
    }
    for (name, address) in [
        ("sentry-event", "\"instruction_addr\":\"0x104a343d0\""),
        ("bugsnag", "\"frameAddress\":\"0x104a343d0\""),
        ("apple-stackshot", "[0,976]"),
    ] {
        let format = formats().iter().find(|format| format.name() == name).expect("a format");
        let malformed = address.replace("0x104a343d0", "?").replace("976", "9.5");
        assert_eq!(read(&format.example().replace(address, &malformed)), (0, 1, 0), "{name}");
    }
}

#[test]
fn frames_of_other_languages_have_no_addresses_and_are_not_malformed() {
    let text = r#"{"event_id":"x","platform":"cocoa","debug_meta":{},"threads":[{"stacktrace":{"frames":[
        {"function":"f","lineno":1},{"instruction_addr":"0x10"}]}}]}"#;
    assert_eq!(read(text), (1, 0, 0));
}

#[test]
fn a_second_report_in_a_text_is_counted() {
    let one = ips(r#"{"imageOffset":4112,"imageIndex":0}"#);
    let second = one.trim().len() as u64 + 1;
    assert_eq!(read(&format!("{one}\n{one}")), (1, 0, second));
    assert_eq!(rewritten(&format!("{one}\n{one}")), format!("{}\n{one}", rewritten(&one)));
    assert_eq!(read(&format!("{one}\r\n\0\n")), (1, 0, 0));
    // The hardware of a Mac is no second report.
    let hardware = format!("{one}\nModel: MacBookPro18,1, BootROM 1, proc 10:8:2\nDisplay: Color LCD\n");
    assert_eq!(read(&hardware), (1, 0, 0));
    assert_eq!(rewritten(&hardware), hardware.replace(&one, &rewritten(&one)));
    assert_eq!(read(&format!("{hardware}{one}")), (1, 0, one.len() as u64));
    let one = crash("0   App   0x100001010 0x100000000 + 4112\n", "arm64");
    assert_eq!(read(&format!("{one}{one}")), (1, 0, one.len() as u64));
    assert_eq!(rewritten(&format!("{one}{one}")), format!("{}{one}", rewritten(&one)));
    let kscrash = crate::common::samples::KSCRASH.replace("%ID", APP);
    assert_eq!(read(&format!("{kscrash}\n{{}}")), (3, 0, 2));
}

#[test]
fn every_format_is_read_after_a_byte_order_mark() {
    let examples = formats().iter().filter(|format| !format.example().is_empty());
    let examples = examples.map(|format| (format.name(), format.example().to_owned()));
    let samples = samples()
        .into_iter()
        .filter_map(|sample| Some((sample.format, String::from_utf8(sample.text).ok()?)));
    for (name, text) in samples.chain(examples) {
        let marked = format!("\u{feff}{text}");
        let report = Report::parse(marked.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let unmarked = Report::parse(text.as_bytes()).expect("a report");
        assert_eq!((report.format_name(), report.text()), (name, unmarked.text()));
        assert_eq!(read(&marked), read(&text), "{name}");
        assert_eq!(rewritten(&marked), format!("\u{feff}{}", rewritten(&text)), "{name}");
        let takers = formats().iter().filter(|format| format.recognises(report.text()));
        assert_eq!(takers.count(), 1, "{name}");
    }
    let cut = "\u{feff}{\"usedImages\":[}";
    let at = cut.find('}').expect("there");
    assert_eq!(
        Report::parse(cut.as_bytes()).err(),
        Some(Error::Malformed {
            what: "its frames or its list of images are missing, because it is cut (copy all of it)",
            at
        })
    );
}

#[test]
fn utf_16_is_named() {
    let text = crash("0   App   0x100001010 0x100000000 + 4112\n", "arm64");
    let little = text.encode_utf16().flat_map(u16::to_le_bytes);
    let big = text.encode_utf16().flat_map(u16::to_be_bytes);
    let texts =
        [[0xff, 0xfe].into_iter().chain(little).collect(), [0xfe, 0xff].into_iter().chain(big).collect()];
    for text in texts as [Vec<u8>; 2] {
        let error = Report::parse(&text).err();
        assert!(
            matches!(&error, Some(Error::Unsupported { what }) if what.contains("iconv -f UTF-16")),
            "{error:?}"
        );
    }
}

#[test]
fn reports_without_frames_have_a_format() {
    for (name, text) in [
        // The system ended the process: there is no stack.
        (
            "kscrash",
            r#"{"report":{"id":"1","type":"standard","version":"3.9.0"},"system":{"process_name":"App"},
                "crash":{"error":{"type":"memory_termination"}}}"#,
        ),
        ("kscrash", r#"{"binary_images":[],"report":{"id":"1","type":"standard","version":"3"}}"#),
        ("sentry-event", r#"{"event_id":"1","platform":"java","exception":{"values":[{"type":"E"}]}}"#),
        (
            "sentry-event",
            "{\"event_id\":\"1\",\"trace\":{}}\n{\"type\":\"transaction\"}\n{\"event_id\":\"1\",\"spans\":[]}",
        ),
        ("bugsnag", r#"{"apiKey":"1","payloadVersion":"4","notifier":{},"events":[]}"#),
        ("measure", r#"{"foreground":true,"threads":[],"exceptions":[{"frames":[{"method_name":"f"}]}]}"#),
    ] {
        let report = Report::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!((report.format_name(), read(text)), (name, (0, 0, 0)), "{text}");
        let takers = formats().iter().filter(|format| format.recognises(text.as_bytes()));
        assert_eq!(takers.count(), 1, "{text}");
    }
}

#[test]
fn the_event_of_an_envelope_is_read() {
    let event = crate::common::samples::SENTRY.replace("%ID", APP);
    let envelope = |event: &str| {
        format!(
            "{{\"event_id\":\"1\",\"sent_at\":\"x\"}}\n{{\"type\":\"event\"}}\n{event}\n{{\"type\":\"x\"}}\nx"
        )
    };
    assert_eq!(read(&envelope(&event)), (2, 0, 0));
    assert_eq!(rewritten(&envelope(&event)), envelope(&rewritten(&event)));
}

/// The lines of a report have one format.
#[test]
fn frames_of_another_format_in_a_text_are_counted() {
    let unread = |text: &str| {
        let report = Report::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
        (report.format_name(), report.unread_frames())
    };
    let apples = crash("0   App  0x100001010 0x100000000 + 4112\n", "arm64");
    assert_eq!(unread(&apples), ("apple-crash", 0));
    let lldb = "frame #0: 0x100001010 App`f + 1\nframe #1: 0x100001020 App`g + 1\n";
    assert_eq!(unread(&format!("{lldb}{apples}")), ("apple-crash", 2));
    let map = "App 0x100001010 0x100000000\n";
    assert_eq!(unread(&format!("{lldb}{map}{map}{map}")), ("lldb", 3));
    // Registers and images are no frames, whatever their lines look like.
    let images = "\nBinary Images:\nApp 0x100001010 0x100000000\n1: 0x1000 - a\n\n\
                  Thread 0 crashed with ARM Thread State:\nx0 0x100001010 0x100000000\n";
    assert_eq!(unread(&format!("0   App  0x100001010 0x100000000 + 4112\n{images}")), ("apple-crash", 0));
}

/// Only the first event of a file is read. What follows it is counted from the next event or envelope.
#[test]
fn further_events_of_an_envelope_are_counted() {
    let event = crate::common::samples::SENTRY.replace("%ID", APP);
    let header = "{\"event_id\":\"1\",\"sent_at\":\"x\"}\n";
    let item = format!("{{\"type\":\"event\"}}\n{event}\n");
    let one = format!("{header}{item}");
    let lone = event.replacen('{', "{\"event_id\":\"2\",\"type\":\"error\",", 1);
    // Other items can look like events.
    let others = "{\"type\":\"user_report\"}\n{\"event_id\":\"1\",\"comments\":\"x\"}\n\
                  {\"type\":\"profile\",\"platform\":\"cocoa\"}\n{\"debug_meta\":{},\n\"platform\":\"cocoa\"}\n\
                  {\"type\":\"attachment\",\"length\":31}\n{\"event_id\":\"2\"}\n{\"threads\":[]\n\n\
                  {\"type\":\"attachment\",\"length\":99}\n\u{93} no JSON\n\
                  {\"type\":\"attachment\",\"length\":0}\n\n\
                  {\"type\":\"session\"}\n{}\n";
    assert_eq!(read(&format!("{one}{others}")), (2, 0, 0));
    assert_eq!(read(&format!("{header}{others}{item}{others}")), (2, 0, 0));
    let cut = |text: &'_ str| text[..text.len() / 2].to_owned();
    for next in [&one, &item, &lone, &format!("{item}{others}"), &cut(&one), &cut(&lone)] {
        for before in ["", others] {
            let text = format!("{one}{before}{next}");
            assert_eq!(read(&text), (2, 0, next.len() as u64), "{text}");
            assert_eq!(rewritten(&text), format!("{}{before}{next}", rewritten(&one)), "{text}");
        }
    }
    // An envelope without an event stands before one.
    let session = "{\"sent_at\":\"x\"}\n{\"type\":\"session\"}\n{\"sid\":\"1\"}\n";
    assert_eq!(read(&format!("{session}{one}")), (2, 0, 0));
    assert_eq!(read(&format!("{session}{one}{session}{one}")), (2, 0, one.len() as u64));
}

/// The lines of other formats can be such as Apple's text has.
#[test]
fn only_lines_of_apples_text_state_their_image() {
    let name = |text: &str| {
        let report = Report::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
        let frame = &report.threads().last().expect("a stack").frames[0];
        let stated = report.stated_image(frame).map(|name| name.into_owned());
        (report.format_name(), stated, frame.image().is_some())
    };
    let frame = "  3 f 0x10 g  (in App)  load address 0x100000000 + 0x1030  [0x100001030]";
    let tree = crate::common::samples::SAMPLE.replace("%ID", APP);
    let tree = tree.replace("+ 3 f (in App) (a.c:1) [0x100001030]", frame);
    assert_eq!(name(&tree), ("apple-call-tree", Some("App".to_owned()), true));
    let line = "0   b   0x180000010 f + 4";
    let stated = Some("b".to_owned());
    assert_eq!(name(&crash(&format!("{line}\n"), "arm64")), ("apple-crash", stated.clone(), false));
    let strings = format!("\"asiBacktraces\":[\"{}\"],\"version\"", line.replace("   ", "\\t"));
    assert_eq!(name(&ips("").replace("\"version\"", &strings)), ("apple-ips", stated, false));
}

#[test]
fn files_beside_reports_are_named() {
    for (text, what) in [
        (r#"{"version":1,"crashedLastLaunch":false,"sessionsSinceLastCrash":10}"#, "KSCrash or Sentry keeps"),
        (r#"{"app":{"machoUUID":"x","debuggerIsActive":false},"device":{}}"#, "Bugsnag keeps"),
        ("MDMP\u{93}", "minidump-stackwalk --json"),
    ] {
        let error = Report::parse(text.as_bytes()).err();
        assert!(
            matches!(&error, Some(Error::Unsupported { what: found }) if found.contains(what)),
            "{error:?}"
        );
    }
}

#[test]
fn an_unknown_text_lists_the_nearest_formats() {
    let near = |text: &str| match Report::parse(text.as_bytes()) {
        Err(Error::UnknownFormat { near }) => near,
        other => panic!("{other:?}"),
    };
    let cut = "Incident Identifier: 1\nException Type: EXC_CRASH\nThread 0 Crashed:\nno frames here\n";
    let formats = near(cut);
    assert_eq!(formats[0].name, "apple-crash");
    assert_eq!(formats[0].missing, ["Binary Images:"]);
    let message = Report::parse(cut.as_bytes()).err().map(|error| error.to_string());
    assert_eq!(
        message.as_deref(),
        Some(
            "not a crash report of a known format; nearest: apple-crash (has `Incident Identifier:`, \
             `Exception Type:`, `Crashed:`; lacks `Binary Images:`)"
        )
    );
    let many: String = formats_with_marks();
    assert_eq!(near(&many).len(), 3);
    assert_eq!(near("nothing of this kind"), []);
}

/// A text with a mark of several formats and a frame of none.
fn formats_with_marks() -> String {
    "backtrace:\ngoroutine 1\npanicked at x\nCall graph:\nCrash reason: y\n".to_owned()
}

/// glibc states the distance from an exported function, and no load address.
#[test]
fn functions_of_glibc_stand_for_their_image() {
    let text = "./lib.so(f+0xc) [0x7f010c]\n./lib.so(f+0x1c) [0x7f011c]\n./lib.so(g+0x4) [0x7f0204]\n\
                ./app(+0x12) [0x5012]\n./app(main+0x2) [0x5102]\n";
    let report = Report::parse(text.as_bytes()).expect("a report");
    let images: Vec<_> = report
        .images()
        .iter()
        .map(|image| (image.path.as_str(), image.base, image.function.as_str(), image.load_address))
        .collect();
    assert_eq!(
        images,
        [
            ("./app", Base::Image, "", 0x5000),
            ("./lib.so", Base::Function, "f", 0x7f0100),
            ("./lib.so", Base::Function, "g", 0x7f0200),
        ]
    );
    let frames = report.threads().iter().flat_map(|thread| &thread.frames);
    assert_eq!(frames.map(|frame| frame.image()).collect::<Vec<_>>(), [1, 1, 2, 0, 0].map(Some));
    let many: String = (0..100).map(|n| format!("l.so(f{n}+0x1) [{:#x}]\n", 0x1000 + n)).collect();
    let report = Report::parse(many.as_bytes()).expect("a report");
    assert_eq!((report.images().len(), report.threads()[0].frames.len()), (64, 100), "searches are bounded");
    assert_eq!(report.threads()[0].frames.iter().filter(|frame| frame.image().is_none()).count(), 36);
    assert_eq!(report.unread_frames(), 36);
    let few: String = many.lines().take(64).map(|line| format!("{line}\n").repeat(2)).collect();
    assert_eq!(Report::parse(few.as_bytes()).expect("a report").unread_frames(), 0);
}
