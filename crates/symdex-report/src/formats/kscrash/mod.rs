//! KSCrash's reports: JSON with decimal addresses, and with the innermost frame first.
//!
//! If KSCrash itself crashed while it wrote a report, the new report contains the incomplete first one as
//! `recrash_report`. Both describe one process, so the images of both are used for both.

mod info;

use std::borrow::Cow;
use std::collections::HashSet;

use crate::engine::limits::ReadLimit;
use crate::error::Error;
use crate::formats::format::{Edits, Format};
use crate::formats::frame_object::{FrameObject, InlinedObjects, Part, member};
use crate::formats::json::{Json, Value};
use crate::formats::json_images::image;
use crate::report::{AddressKind, Frame, Parsed, Thread};
use crate::text::{has, is_object};

/// The format of KSCrash's reports.
pub(crate) const FORMAT: Format = Format {
    name: "kscrash",
    description: "KSCrash's reports",
    example: concat!(
        r#"{"binary_images":[{"image_addr":4372774912,"uuid":"6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0"}],"#,
        r#""crash":{"threads":[{"backtrace":{"contents":[{"instruction_addr":4372775888}]}}]}}"#,
    ),
    marks: &[r#""binary_images""#, r#""crash""#, r#""backtrace""#, r#""instruction_addr""#],
    recognises,
    parse,
    existing_symbols: Some(|report| FRAME.existing_symbols(report)),
    stated_image: |object| member(object, "object_name"),
    edits: Edits::Frames(|text, site, resolution| FRAME.replacement(text, site, resolution)),
    ..Format::JSON
};

fn recognises(text: &[u8]) -> bool {
    let is_whole = || has(text, "\"binary_images\"") && has(text, "\"crash\"");
    is_object(text) && (is_whole() || has(text, "\"recrash_report\"") || is_without_stacks(text))
}

/// Whether `text` is a report without the stacks of a crash. KSCrash writes one if the system ended the process, for
/// example because it used too much memory.
fn is_without_stacks(text: &[u8]) -> bool {
    if !has(text, "\"report\"") || !(has(text, "\"crash\"") || has(text, "\"binary_images\"")) {
        return false;
    }
    let Ok(json) = Json::parse(text, 0) else { return false };
    let report = json.root().get("report");
    report.is_some_and(|report| ["id", "type", "version"].iter().all(|key| report.get(key).is_some()))
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let limit = ReadLimit::of(text.len());
    let json = Json::parse(text, 0)?;
    let reports: Vec<_> =
        std::iter::successors(Some(json.root()), |report| report.get("recrash_report")).collect();
    let listed = reports.iter().filter_map(|report| report.get("binary_images"));
    let images = listed.flat_map(Value::elements).take_while(|_| limit.take_image());
    let images = images.map(|object| image(object, Value::number));
    let mut known = HashSet::new();
    let images = images.filter(|image| known.insert((image.load_address, image.id.clone())));
    Ok(Parsed {
        images: images.collect(),
        threads: reports.iter().flat_map(|report| stacks(*report, &limit)).collect(),
        extent: limit.extent(json.rest()),
        info: info::info(json.root()),
    })
}

/// The members of a frame.
const FRAME: FrameObject = FrameObject {
    address: &["instruction_addr"],
    members: &[
        (&["instruction_addr", "object_addr", "object_name"], Part::Copied),
        (&["symbol_addr"], Part::Start),
        (&["symbol_name"], Part::Function),
        (&["source_file"], Part::FileName),
        (&["source_line"], Part::Line),
        (&["inlined"], Part::Inlined),
    ],
    inlined: InlinedObjects::Before,
};

/// The stacks of one report: those of its threads, and of the last exception that was deallocated.
fn stacks(report: Value<'_>, limit: &ReadLimit) -> Vec<Thread> {
    let crash = report.get("crash");
    let kind = crash.and_then(|crash| crash.get("error")?.get("type")?.text()).unwrap_or_default();
    let is_thrown = matches!(kind.as_ref(), "nsexception" | "cpp_exception" | "user");
    let threads = crash.and_then(|crash| crash.get("threads")).into_iter().flat_map(Value::elements);
    // A minimal report has only the crashed thread.
    let threads = threads.chain(crash.and_then(|crash| crash.get("crashed_thread")));
    let exception = || report.get("process")?.get("last_dealloced_nsexception")?.get("backtrace");
    let exception = exception().map(|backtrace| Thread {
        name: "Last Deallocated Exception Backtrace".to_owned(),
        frames: frames(backtrace, limit, |_| false),
        ..Thread::default()
    });
    threads
        .take_while(|_| limit.has_room())
        .filter_map(|thread| stack(thread, is_thrown, limit))
        .chain(exception)
        .collect()
}

/// Reads the stack of a thread. `is_thrown` says whether an exception caused the crash. The stack of the crashed thread
/// is then the one that the exception was thrown from.
fn stack(thread: Value<'_>, is_thrown: bool, limit: &ReadLimit) -> Option<Thread> {
    let crashed = thread.get("crashed").is_some_and(Value::is_true);
    let registers = thread.get("registers").and_then(|registers| registers.get("basic"));
    let instruction = ["pc", "rip", "eip"].iter().find_map(|name| registers?.get(name)?.number());
    let is_instruction = |address: u64| match instruction {
        Some(instruction) => instruction | 1 == address | 1,
        None => !(crashed && is_thrown),
    };
    let number = thread.get("index").and_then(Value::number).map_or_else(String::new, |n| format!(" {n}"));
    let frames = frames(thread.get("backtrace")?, limit, is_instruction);
    let text = |key: &str| thread.get(key).and_then(Value::text).filter(|text| !text.is_empty());
    Some(Thread {
        name: format!("Thread{number}"),
        crashed,
        label: text("name").map(Cow::into_owned),
        queue: text("dispatch_queue").map(Cow::into_owned),
        registers: thread.get("registers").map(info::registers).unwrap_or_default(),
        frames,
        ..Thread::default()
    })
}

/// Reads the frames of a backtrace. The innermost frame has the address of an instruction if `is_instruction` returns
/// true for it.
fn frames(backtrace: Value<'_>, limit: &ReadLimit, is_instruction: impl Fn(u64) -> bool) -> Vec<Frame> {
    let kind = |depth, object: Value<'_>| {
        AddressKind::of(depth == 0 && FRAME.address(object).is_some_and(&is_instruction))
    };
    FRAME.stack(backtrace.get("contents").unwrap_or(backtrace), limit, kind, |_| None)
}
