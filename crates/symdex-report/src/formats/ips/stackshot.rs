//! Stackshots of all processes: `.ips` files of bug types 288 (stackshot), 210 (kernel panic), 151 and similar.
//!
//! A frame is an array: `[imageIndex, imageOffset]`. An answer is an object that is appended to the array, with the
//! members of a crash report's frame. The arrays of inlined functions are inserted before the array of the function
//! that contains them.

use symdex::ImageId;

use super::{FRAME, info};
use crate::engine::function::Function;
use crate::engine::limits::ReadLimit;
use crate::engine::symbolicate::Resolution;
use crate::error::Error;
use crate::formats::existing::ExistingSymbol;
use crate::formats::format::{Edits, Format};
use crate::formats::json::{Json, Value};
use crate::report::{AddressKind, Base, Frame, Parsed, Report, ReportImage, Span, Thread};
use crate::text::{has, is_object};

/// The format of stackshots.
pub(crate) const FORMAT: Format = Format {
    name: "apple-stackshot",
    description: "Apple's `.ips` files of all processes: stackshots (288), kernel panics (210), 151",
    example: concat!(
        r#"{"binaryImages":[["6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0",4372774912,"P"]],"#,
        r#""processByPid":{"42":{"procname":"App","threadById":{"7":{"userFrames":[[0,976]]}}}}}"#,
    ),
    marks: &[r#""processByPid""#, r#""binaryImages""#, r#""threadById""#],
    recognises,
    parse,
    existing_symbols: Some(existing_symbols),
    edits: Edits::Frames(replacement),
    ..Format::JSON
};

/// The member that stackshots have and crash reports do not.
const PROCESSES: &str = "\"processByPid\"";

/// Whether `text`, which begins with a JSON object, is a stackshot.
pub(super) fn recognises(text: &[u8]) -> bool {
    is_object(text) && has(text, PROCESSES)
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let header = Json::parse(text, 0)?;
    let separate = match header.root().get("processByPid") {
        Some(_) => None,
        None => Some(Json::parse(text, header.end())?),
    };
    let document = separate.as_ref().unwrap_or(&header);
    let body = document.root();
    let images = body.get("binaryImages").into_iter().flat_map(Value::elements);
    let limit = ReadLimit::of(text.len());
    let images: Vec<_> = images.take_while(|_| limit.take_image()).map(image).collect();
    let mut threads = Vec::new();
    for (pid, process) in body.get("processByPid").into_iter().flat_map(Value::members) {
        for (id, thread) in process.get("threadById").into_iter().flat_map(Value::members) {
            for (kind, key) in [("Kernel", "kernelFrames"), ("User", "userFrames")] {
                let Some(frames) = thread.get(key).filter(|_| limit.has_room()) else { continue };
                threads.push(stack((pid, process), (id, thread), (kind, frames), &images, &limit));
            }
        }
    }
    let extent = limit.extent(document.rest());
    Ok(Parsed { images, threads, info: info::info(header.root(), body), extent })
}

/// Reads an image: `[uuid, base, source]`.
fn image(array: Value<'_>) -> ReportImage {
    let mut elements = array.elements();
    let id = elements.next().and_then(Value::text);
    let load_address = elements.next().and_then(Value::number).unwrap_or_default();
    let source = elements.next().and_then(Value::text);
    let base = match source.as_deref() {
        Some("A") => Base::Absolute,
        Some("T") => Base::TextExec,
        _ => Base::Image,
    };
    let id: Option<ImageId> = id.as_deref().and_then(|id| id.parse().ok());
    let id = id.filter(|_| base != Base::Absolute);
    // Frames have no other name for the image.
    let name = id.as_ref().map_or_else(String::new, ToString::to_string);
    ReportImage { name, id, load_address, base, ..ReportImage::default() }
}

fn stack(
    (pid, process): (Value<'_>, Value<'_>),
    (id, thread): (Value<'_>, Value<'_>),
    (kind, frames): (&str, Value<'_>),
    images: &[ReportImage],
    limit: &ReadLimit,
) -> Thread {
    let text = |value: Option<Value<'_>>| value.and_then(Value::text).unwrap_or_default().into_owned();
    let [pid, id, process] = [text(Some(pid)), text(Some(id)), text(process.get("procname"))];
    let frame = |(depth, array): (usize, Value<'_>)| {
        limit.read(frame(array, AddressKind::of(depth == 0), images), true)
    };
    Thread {
        name: format!("{process} [{pid}] Thread {id} {kind}"),
        id: id.parse().ok(),
        label: Some(text(thread.get("name"))).filter(|name| !name.is_empty()),
        frames: limit.stack(frames.elements().enumerate().filter_map(frame)),
        ..Thread::default()
    }
}

fn frame(array: Value<'_>, kind: AddressKind, images: &[ReportImage]) -> Option<Frame> {
    let mut elements = array.elements();
    let index = usize::try_from(elements.next()?.number()?).ok();
    let offset = elements.next()?.number()?;
    let base = index.and_then(|index| images.get(index)).map_or(0, |image| image.load_address);
    let address = base.wrapping_add(offset);
    // Without a symbol, the array itself has none of the members of one.
    let frame = FRAME.frame_at(address, elements.next().unwrap_or(array), index);
    Some(Frame { kind, site: array.span().into(), ..frame })
}

fn existing_symbols(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    report.map_frames(|frame| {
        let json = Json::parse(report.text(), frame.site.start()).ok();
        let symbol = json.as_ref().and_then(|json| json.root().elements().nth(2));
        symbol.map(|symbol| FRAME.existing_symbol(symbol, frame.address)).unwrap_or_default()
    })
}

/// The frame's array with its answer, after arrays for the functions inlined into it.
fn replacement(text: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    let json = Json::parse(text, site.start).ok()?;
    let offset = json.root().elements().nth(1)?;
    // An earlier answer without a line is replaced.
    let address = text.get(site.start..offset.span().end)?;
    let rest = json.root().elements().nth(2).map_or(offset.span().end, |symbol| symbol.span().end);
    let end = text.get(rest..site.end)?;
    let array = |resolved: &Function| {
        let members: serde_json::Map<_, _> = FRAME
            .answer(resolved, json.root(), resolution)
            .into_iter()
            .map(|(key, value)| (key.to_owned(), serde_json::json!(value)))
            .collect();
        [address, b",", serde_json::Value::from(members).to_string().as_bytes(), end].concat()
    };
    let arrays: Vec<_> = resolution.frames.iter().map(array).collect();
    Some(arrays.join(&b","[..]))
}
