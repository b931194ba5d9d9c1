//! Apple's `.ips` reports: a JSON header on the first line, then the report as one JSON object (bug type 309 and
//! similar).
//!
//! An `.ips` with a text report after the header is read by [`crate::formats::apple_text`] (bug type 109) or by
//! [`crate::formats::call_tree`] (202, 142 and similar).

mod backtraces;
pub(crate) mod info;
pub(crate) mod stackshot;

use std::borrow::Cow;

use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::Resolution;
use crate::error::Error;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::{Edits, Format};
use crate::formats::frame_object::{FrameObject, InlinedObjects, Part};
use crate::formats::json::{Json, Value};
use crate::formats::json_images;
use crate::report::{AddressKind, Base, Frame, Parsed, Report, ReportImage, Span, Thread};
use crate::text::{has, is_object};

/// The format of Apple's JSON reports.
pub(crate) const FORMAT: Format = Format {
    name: "apple-ips",
    description: "Apple's `.ips` files since iOS 15 and macOS 12",
    example: concat!(
        r#"{"usedImages":[{"base":4372774912,"uuid":"6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0"}],"#,
        r#""threads":[{"frames":[{"imageOffset":976,"imageIndex":0}]}]}"#,
    ),
    marks: &[r#""bug_type""#, r#""usedImages""#, r#""threads""#, r#""imageOffset""#],
    recognises,
    parse,
    existing_symbols: Some(existing_symbols),
    stated_image: backtraces::stated_image,
    edits: Edits::Frames(replacement),
    openings: &[r#"{"threads":[{"frames":["#, r#"{"threads":["#, r#"{"usedImages":["#],
    ..Format::JSON
};

fn recognises(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let (first, rest) = text.split_at(memchr::memchr(b'\n', text).unwrap_or(text.len()));
    if !is_object(text) || stackshot::recognises(text) {
        return false;
    }
    // An `.ips` can lack the header, for example if the body was copied from another file.
    has(first, "\"bug_type\"") && is_object(rest) || has(text, "\"usedImages\"")
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let header = Json::parse(text, 0)?;
    let separate = match header.root().get("usedImages") {
        Some(_) => None,
        None => {
            let body = Json::parse(text, header.end())?;
            check_kind(header.root(), body.root())?;
            Some(body)
        }
    };
    let document = separate.as_ref().unwrap_or(&header);
    let body = document.root();
    let images = body.get("usedImages").into_iter().flat_map(Value::elements);
    let limit = ReadLimit::of(text.len());
    let images: Vec<_> = images.take_while(|_| limit.take_image()).map(image).collect();
    let faulting = body.get("faultingThread").and_then(Value::number);
    let threads = body.get("threads").into_iter().flat_map(Value::elements);
    let stack = |(number, thread)| stack(thread, number, faulting, &images, &limit);
    let mut threads: Vec<_> =
        threads.take_while(|_| limit.has_room()).enumerate().filter_map(stack).collect();
    if let Some(exception) = body.get("lastExceptionBacktrace") {
        let kind = AddressKind::ReturnAddress;
        let frames = limit
            .stack(exception.elements().filter_map(|object| limit.read(frame(object, kind, &images), true)));
        threads.push(Thread { name: "Last Exception Backtrace".to_owned(), frames, ..Thread::default() });
    }
    let backtraces = body.get("asiBacktraces").into_iter().flat_map(Value::elements);
    let backtraces = backtraces.take_while(|_| limit.has_room()).enumerate();
    threads.extend(backtraces.map(|(number, string)| backtraces::stack(string, number, &limit)));
    // Reports of a Mac end with its hardware. Another report can follow.
    let tail = text.get(document.end()..).unwrap_or_default().trim_ascii_start();
    let rest = match memchr::memmem::find(tail, b"\n{").filter(|_| tail.starts_with(b"Model: ")) {
        Some(next) => (tail.len() - next - 1) as u64,
        None if tail.starts_with(b"Model: ") => 0,
        None => document.rest(),
    };
    let extent = limit.extent(rest);
    Ok(Parsed { images, threads, info: info::info(header.root(), body), extent })
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    report.map_frames(|frame| match report.text().get(frame.site.start()) {
        Some(b'{') => Json::parse(report.text(), frame.site.start())
            .map(|json| FRAME.existing_symbol(json.root(), frame.address))
            .unwrap_or_default(),
        _ => backtraces::existing_symbol(report.text(), &frame.site.span()).unwrap_or_default(),
    })
}

/// The members of a frame.
pub(crate) const FRAME: FrameObject = FrameObject {
    address: &[],
    members: &[
        (&["inline"], Part::Inlined),
        (&["imageOffset", "imageIndex"], Part::Copied),
        (&["symbol"], Part::Function),
        (&["symbolLocation"], Part::Offset),
        (&["sourceFile"], Part::FileName),
        (&["sourceLine"], Part::LineOfSource),
    ],
    inlined: InlinedObjects::Before,
};

/// Fails for a report without stacks. Other kinds of reports have the same header.
fn check_kind(header: Value<'_>, body: Value<'_>) -> Result<(), Error> {
    if body.get("usedImages").is_some() && body.get("threads").is_some() {
        return Ok(());
    }
    let kind = header.get("bug_type").and_then(Value::text).unwrap_or_default();
    let what = format!(
        "an .ips of bug type {kind:?} without threads and images; expected a crash report (309 or 109)"
    );
    Err(Error::Unsupported { what })
}

fn image(object: Value<'_>) -> ReportImage {
    let base = match object.get("source").map(Value::unescaped) {
        Some(b"A") => Base::Absolute,
        Some(b"T") => Base::TextExec,
        _ => Base::Image,
    };
    let image = json_images::image(object, Value::number);
    // The entry for addresses in no image has an id of zeros.
    ReportImage { id: image.id.clone().filter(|_| base != Base::Absolute), base, ..image }
}

fn stack(
    thread: Value<'_>,
    number: usize,
    faulting: Option<u64>,
    images: &[ReportImage],
    limit: &ReadLimit,
) -> Option<Thread> {
    let crashed = thread.get("triggered").is_some_and(Value::is_true) || faulting == Some(number as u64);
    let frames = thread.get("frames")?.elements().enumerate();
    let kind = |depth| if depth == 0 { AddressKind::ProgramCounter } else { AddressKind::ReturnAddress };
    let frames = limit
        .stack(frames.filter_map(|(depth, object)| limit.read(frame(object, kind(depth), images), true)));
    let text = |key: &str| thread.get(key).and_then(Value::text).filter(|text| !text.is_empty());
    Some(Thread {
        name: format!("Thread {number}"),
        crashed,
        id: thread.get("id").and_then(Value::number),
        label: text("name").map(Cow::into_owned),
        queue: text("queue").map(Cow::into_owned),
        registers: thread.get("threadState").map(info::registers).unwrap_or_default(),
        frames,
        ..Thread::default()
    })
}

/// Reads a frame. `None` if its offset is not stated, or if its offset or the position of its image is malformed.
fn frame(object: Value<'_>, kind: AddressKind, images: &[ReportImage]) -> Option<Frame> {
    let [image, offset] = object.get_each(["imageIndex", "imageOffset"]);
    let image = match image {
        Some(index) => Some(usize::try_from(index.number()?).ok().filter(|index| *index < images.len())?),
        None => None,
    };
    let base = image.and_then(|index| images.get(index)).map_or(0, |image| image.load_address);
    let address = base.wrapping_add(offset?.number()?);
    Some(Frame { kind, ..FRAME.frame_at(address, object, image) })
}

/// The frame's object with its answer, after new objects for the functions inlined into it. A frame of a backtrace is a
/// line in a string.
fn replacement(text: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    if text.get(site.start) != Some(&b'{') {
        return backtraces::replacement(text, site, resolution);
    }
    FRAME.replacement(text, site, resolution)
}
