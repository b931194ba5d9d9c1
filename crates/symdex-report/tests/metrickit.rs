//! MetricKit's diagnostics: which addresses are looked up, and what is written.

use crate::common::{APP, App, rewritten, rewritten_with};
use symdex_report::{Options, Report, symbolicate};

/// A frame. `more` is appended to its members, which have MetricKit's order.
fn frame(offset: u64, inner: &str, more: &str) -> String {
    let inner = if inner.is_empty() { String::new() } else { format!(r#","subFrames":[{inner}]"#) };
    let address = 0x1_0000_0000 + offset;
    let first = format!(r#""binaryUUID":"{APP}","offsetIntoBinaryTextSegment":{offset},"sampleCount":3"#);
    format!(r#"{{{first}{inner},"binaryName":"App","address":{address}{more}}}"#)
}

fn system(name: &str, inner: &str) -> String {
    let frame = frame(16, if inner.is_empty() { "" } else { "INNER" }, "");
    let frame =
        frame.replace(APP, "C4BEB94C-B831-3889-A403-4B7A4AA4DCDF").replace("\"App\"", &format!("\"{name}\""));
    frame.replace("4294967312", "6442450960").replace("INNER", inner)
}

fn tree(per_thread: bool, frames: &str) -> String {
    format!(
        r#"{{"callStackPerThread":{per_thread},
"callStacks":[{{"threadAttributed":true,"callStackRootFrames":[{frames}]}}]}}"#
    )
}

/// A payload with one diagnostic.
fn payload(kind: &str, tree: &str) -> String {
    format!(
        "{{\n  \"timeStampEnd\" : \"2026-01-01\",\n  \"{kind}Diagnostics\" : \
         [{{\"version\":\"1.0.0\",\"callStackTree\":{tree},\
         \"diagnosticMetaData\":{{\"platformArchitecture\":\"arm64e\"}}}}]\n}}\n"
    )
}

fn asked(text: &str) -> Vec<u64> {
    crate::common::asked(text, &Options::new())
}

/// The members that an answer adds to a frame.
fn outer(distance: u64, line: u64) -> String {
    format!(r#","symbol":"outer","symbolLocation":{distance},"sourceFile":"main.c","sourceLine":{line}"#)
}

fn inner(line: u64) -> String {
    format!(r#","symbol":"app::inner()","sourceFile":"main.c","sourceLine":{line},"inline":true"#)
}

/// An inlined frame. Its `subFrames` are the last member.
fn inlined(offset: u64, line: u64, below: &str) -> String {
    let frame = frame(offset, "", &inner(line));
    if below.is_empty() {
        frame
    } else {
        format!(r#"{},"subFrames":{below}}}"#, frame.strip_suffix('}').expect("an object"))
    }
}

#[test]
fn samples_begin_with_the_outermost_frame() {
    let leaves = [frame(0x1041, "", ""), frame(0x1051, "", "")].join(",");
    let before = payload("hang", &tree(true, &frame(0x1021, &leaves, "")));
    assert_eq!(asked(&before), [0x1020, 0x1041, 0x1051]);
    let leaves = [
        frame(0x1041, "", &format!(r#"{},"subFrames":[{}]"#, outer(65, 7), inlined(0x1041, 260, ""))),
        frame(0x1051, "", &outer(81, 261)),
    ]
    .join(",");
    let below = inlined(0x1021, 258, &format!("[{leaves}]"));
    let expected = payload("hang", &tree(true, &frame(0x1021, &below, &outer(33, 7))));
    assert_eq!(rewritten(&before), expected);
    assert_eq!(rewritten(&expected), expected);
    assert_eq!(asked(&expected), Vec::<u64>::new());
    let plain = rewritten_with(&before, &Options::new().inlines(false));
    assert!(!plain.contains("inline") && plain.matches("outer").count() == 3, "{plain}");
}

#[test]
fn crashes_can_begin_with_the_innermost_frame() {
    let stack = frame(0x1041, &frame(0x1021, &system("libdyld.dylib", ""), ""), "");
    let before = payload("crash", &tree(true, &stack));
    assert_eq!(asked(&before), [0x1020, 0x1041]);
    let caller = frame(0x1021, &system("libdyld.dylib", ""), &outer(33, 7));
    let caller = inlined(0x1021, 258, &format!("[{caller}]"));
    let stack = inlined(0x1041, 260, &format!("[{}]", frame(0x1041, &caller, &outer(65, 7))));
    let expected = payload("crash", &tree(true, &stack));
    assert_eq!(rewritten(&before), expected);
    assert_eq!(rewritten(&expected), expected);
    let report = Report::parse(before.as_bytes()).expect("a report");
    let thread = &report.threads()[0];
    assert_eq!((thread.name.as_str(), thread.crashed), ("crash 0 Thread 0", true));
    assert_eq!(report.images()[0].arch.as_ref().map(|arch| arch.name.as_str()), Some("arm64e"));
    // An image without a path is a library of the system if it lies in the shared cache.
    assert_eq!(
        report.images().iter().map(symdex_report::ReportImage::is_app).collect::<Vec<_>>(),
        [true, false]
    );
}

/// The binary in which threads start is the outermost frame. Without it, a stack for each thread has the innermost
/// frame first, as the first versions write crashes.
#[test]
fn the_binaries_at_both_ends_tell_the_innermost_frame() {
    let two = frame(0x1041, &frame(0x1021, "", ""), "");
    let begun = |name: &str| system(name, &two);
    for (per_thread, root, expected) in [
        (true, two.clone(), [0x1020, 0x1041]),
        (false, two.clone(), [0x1021, 0x1040]),
        (true, begun("dyld"), [0x1021, 0x1040]),
        (true, begun("libsystem_pthread.dylib"), [0x1021, 0x1040]),
        (false, begun("UIKitCore"), [0x1021, 0x1040]),
        (true, begun("libsystem_kernel.dylib"), [0x1020, 0x1040]),
    ] {
        assert_eq!(asked(&payload("crash", &tree(per_thread, &root))), expected, "{root}");
        assert_eq!(asked(&tree(per_thread, &root)), expected, "a tree alone: {root}");
    }
    let payloads =
        format!("[{},{}]", payload("crash", &tree(true, &two)), payload("hang", &tree(true, &two)));
    let report = Report::parse(payloads.as_bytes()).expect("a report");
    let names: Vec<_> =
        report.threads().iter().map(|thread| (thread.name.as_str(), thread.crashed)).collect();
    assert_eq!(names, [("crash 0 Thread 0", true), ("hang 0 Thread 0", false)]);
}

/// On iOS 14, iOS 15 and macOS 12 the offset is the load address.
#[test]
fn a_large_offset_is_the_load_address() {
    let old = frame(0x1041, "", "").replace("Segment\":4161", "Segment\":4294967296");
    let before = payload("crash", &tree(true, &old));
    assert_eq!(asked(&before), [0x1041]);
    let expected = frame(0x1041, "", "")
        .replace("Segment\":4161", "Segment\":4294967296")
        .replace('}', &format!("{}}}", outer(65, 7)));
    assert_eq!(
        rewritten_with(&before, &Options::new().inlines(false)),
        payload("crash", &tree(true, &expected))
    );
    let report = Report::parse(before.as_bytes()).expect("a report");
    assert_eq!(
        (report.images()[0].load_address, report.threads()[0].frames[0].address),
        (0x1_0000_0000, 0x1_0000_1041)
    );
}

#[test]
fn existing_members_are_replaced_and_white_space_is_kept() {
    let frame = r#"{ "symbol" : "old",
  "binaryUUID" : "ID",
  "address" : 4294971408,
  "offsetIntoBinaryTextSegment" : 4112,
  "x" : [1.0]
}"#;
    let before = tree(true, &frame.replace("\"ID\"", &format!("\"{APP}\"")));
    let after = before.replace("\"old\"", "\"outer\"").replace(
        "4294971408,",
        "4294971408,\n  \"symbolLocation\" : 16,\n  \"sourceFile\" : \"main.c\",\n  \"sourceLine\" : 257,",
    );
    assert_eq!(rewritten(&before), after);
    assert_eq!(rewritten_with(&before, &Options::new().only_missing(true)), before);
}

#[test]
fn a_deep_tree_is_read_without_recursion() {
    let depth = 10_000;
    let open = format!(
        r#"{{"binaryUUID":"{APP}","offsetIntoBinaryTextSegment":4112,"address":4294971408,"subFrames":["#
    );
    let text = tree(false, &(open.repeat(depth) + &frame(0x1021, "", "") + &"]}".repeat(depth)));
    let report = Report::parse(text.as_bytes()).expect("a report");
    assert_eq!(report.threads()[0].frames.len(), depth + 1);
    let mut out = Vec::new();
    symbolicate(&report, &mut App { asked: Vec::new() }, &Options::new()).write(&mut out).expect("memory");
    assert_eq!(String::from_utf8(out).expect("text").matches("\"outer\"").count(), depth + 1);
}

/// The innermost frame is looked up at its address, the others one byte before.
#[test]
fn where_no_frame_tells_the_roots_are_innermost_in_crashes_only() {
    let frames = frame(0x1010, &frame(0x1030, "", ""), "");
    let (root_is_innermost, leaf_is_innermost) = ([0x1010, 0x102f], [0x100f, 0x1030]);
    for per_thread in [true, false] {
        let tree = tree(per_thread, &frames);
        // A tree alone has no kind. Only a crash has a stack for each thread and no more.
        let of_crash = if per_thread { root_is_innermost } else { leaf_is_innermost };
        assert_eq!(asked(&payload("crash", &tree)), of_crash);
        assert_eq!(asked(&tree), of_crash);
        for kind in ["hang", "cpuException", "diskWriteException", "appLaunch"] {
            assert_eq!(asked(&payload(kind, &tree)), leaf_is_innermost, "{kind}");
        }
    }
}
