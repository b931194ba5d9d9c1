//! Sentry's events, as its clients for Apple's systems send them: JSON with hexadecimal addresses, and with the
//! outermost frame first.

mod info;

use crate::engine::limits::ReadLimit;
use crate::error::Error;
use crate::formats::documents::sentry_profile;
use crate::formats::format::{Edits, Format};
use crate::formats::frame_object::{self, FrameObject, InlinedObjects, Part, member};
use crate::formats::json::{Json, Value};
use crate::formats::json_images::image;
use crate::report::{AddressKind, Frame, Parsed, ReportImage, Thread};
use crate::text::{has, is_object};

/// The format of Sentry's events.
pub(crate) const FORMAT: Format = Format {
    name: "sentry-event",
    description: "Events that Sentry's clients send",
    example: concat!(
        r#"{"debug_meta":{"images":[{"image_addr":"0x104a34000","debug_id":"6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0"}]},"#,
        r#""threads":{"values":[{"stacktrace":{"frames":[{"instruction_addr":"0x104a343d0"}]}}]}}"#,
    ),
    marks: &[r#""event_id""#, r#""debug_meta""#, r#""stacktrace""#, r#""instruction_addr""#],
    recognises,
    parse,
    existing_symbols: Some(|report| FRAME.existing_symbols(report)),
    stated_image: |object| member(object, "package"),
    edits: Edits::Frames(|text, site, resolution| FRAME.replacement(text, site, resolution)),
    ..Format::JSON
};

fn recognises(text: &[u8]) -> bool {
    let is_event =
        has(text, "\"debug_meta\"") && has(text, "\"instruction_addr\"") || is_without_addresses(text);
    is_object(text) && is_event && !(sentry_profile::FORMAT.recognises)(text)
}

/// Whether `text` is an event or an envelope whose frames have no addresses, such as a transaction or an event of a
/// language that is not compiled.
fn is_without_addresses(text: &[u8]) -> bool {
    if !has(text, "\"event_id\"") {
        return false;
    }
    let Ok(json) = Json::parse(text, 0) else { return false };
    let has = |key: &&str| json.root().get(key).is_some();
    has(&"event_id") && (IN_EVENTS.iter().any(has) || IN_HEADERS.iter().any(has))
}

/// The members of which every event has one, and those of which the header of every envelope has one.
const IN_EVENTS: [&str; 5] = ["debug_meta", "exception", "platform", "spans", "threads"];
const IN_HEADERS: [&str; 4] = ["dsn", "sdk", "sent_at", "trace"];

/// The types of the items of an envelope that are events.
const EVENT_TYPES: [&[u8]; 2] = [b"event", b"transaction"];

/// Returns the event in `text` and the number of bytes after it that are not read. In an envelope, items follow the
/// header of the envelope: each is a header with a type, and a payload. The bytes begin at the next event, or at
/// the header of its envelope; other items do not count.
fn event(text: &[u8]) -> Result<(Json<'_>, u64), Error> {
    let has = |json: &Json<'_>, key: &str| json.root().get(key).is_some();
    let is_event = |json: &Json<'_>| IN_EVENTS.iter().any(|key| has(json, key));
    let header = Json::parse(text, 0)?;
    if is_event(&header) {
        let rest = header.rest();
        return Ok((header, rest));
    }
    let mut event = None;
    let mut at = header.end();
    while let Ok(json) = Json::parse(text, at) {
        // A bare event has an id, and can have a type, too.
        let kind = json.root().get("type").filter(|_| !has(&json, "event_id")).map(Value::unescaped);
        let is_next = match kind {
            Some(kind) => EVENT_TYPES.contains(&kind),
            None => is_event(&json) || has(&json, "event_id"),
        };
        if let Some(event) = event.take_if(|_| is_next) {
            return Ok((event, (text.len() - json.root().span().start) as u64));
        }
        if kind.is_none() {
            at = json.end();
            event = event.or_else(|| is_event(&json).then_some(json));
        } else if is_next {
            let Ok(item) = Json::parse(text, json.end()) else { break };
            at = item.end();
            event = Some(item);
        } else {
            let Some(end) = item_end(text, &json) else { break };
            at = end;
        }
    }
    // A truncated item or event counts, too.
    let rest = text.get(at..).unwrap_or_default().trim_ascii_start();
    let rest = if event.is_some() && rest.starts_with(b"{") { rest.len() } else { 0 };
    Ok((event.unwrap_or(header), rest as u64))
}

/// Returns the end of the item with this header, which is not an event. The header can state the length of what the
/// item contains; otherwise it is an object or a line. `None` if it is an object that is damaged.
fn item_end(text: &[u8], header: &Json<'_>) -> Option<usize> {
    let line_end = |at: usize| Some(at + memchr::memchr(b'\n', text.get(at..)?)?);
    let Some(start) = line_end(header.end()).map(|end| end + 1) else { return Some(text.len()) };
    let length = header.root().get("length").and_then(Value::number);
    let end = length.and_then(|length| start.checked_add(usize::try_from(length).ok()?));
    // A tool can have changed the ends of lines.
    let is_end = |end: &usize| *end == text.len() || matches!(text.get(*end), Some(b'\r' | b'\n'));
    if let Some(end) = end.filter(is_end) {
        return Some(end);
    }
    match text.get(start) {
        Some(b'{') => Json::parse(text, start).ok().map(|json| json.end()),
        _ => Some(line_end(start).unwrap_or(text.len())),
    }
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let (json, rest) = self::event(text)?;
    let event = json.root();
    let images = event.get("debug_meta").and_then(|meta| meta.get("images"));
    let limit = ReadLimit::of(text.len());
    let images = images.into_iter().flat_map(Value::elements);
    let images = images.take_while(|_| limit.take_image()).map(|object| image(object, Value::number));
    let images: Vec<_> = images.collect();
    let values = |key| event.get(key).and_then(|list: Value<'_>| list.get("values").or(Some(list)));
    let stacks = |key| values(key).into_iter().flat_map(Value::elements);
    let stacks = stacks("threads").chain(stacks("exception")).take_while(|_| limit.has_room());
    let threads = stacks.filter_map(|value| stack(value, &images, &limit)).collect();
    Ok(Parsed { images, threads, info: info::info(event), extent: limit.extent(rest) })
}

/// The members of a frame.
pub(crate) const FRAME: FrameObject = FrameObject {
    address: &["instruction_addr"],
    members: &[
        (&["instruction_addr", "addr_mode", "image_addr", "package"], Part::Copied),
        (&["symbol_addr"], Part::OldStart),
        (&["function"], Part::Function),
        (&["symbol"], Part::LinkageName),
        (&["filename"], Part::FileName),
        (&["abs_path"], Part::File),
        (&["lineno"], Part::Line),
    ],
    inlined: InlinedObjects::After,
};

/// Reads the address of a frame, and the position of its image if the address is an offset: `"addr_mode": "rel:2"`.
fn address(object: Value<'_>, images: &[ReportImage]) -> Option<(u64, Option<usize>)> {
    let address = object.get("instruction_addr")?.number()?;
    let mode = object.get("addr_mode").and_then(Value::text);
    let Some(number) = mode.as_deref().and_then(|mode| mode.strip_prefix("rel:")) else {
        return Some((address, None));
    };
    let number: usize = number.parse().ok()?;
    Some((images.get(number)?.load_address.checked_add(address)?, Some(number)))
}

/// Reads the frames of a thread or an exception, innermost first.
fn stack(value: Value<'_>, images: &[ReportImage], limit: &ReadLimit) -> Option<Thread> {
    let stack = value.get("stacktrace")?;
    let objects = stack.get("frames")?.list().reversed().enumerate();
    let registers = stack.get("registers");
    let instruction = ["pc", "rip", "eip"].iter().find_map(|name| registers?.get(name)?.number());
    let read = |(depth, object): (usize, Value<'_>)| {
        // If execution left all images, the innermost frame has a return address.
        let (address, image) = address(object, images)?;
        let is_instruction =
            depth == 0 && instruction.is_none_or(|instruction| instruction | 1 == address | 1);
        Some(Frame { kind: AddressKind::of(is_instruction), ..FRAME.frame_at(address, object, image) })
    };
    // Frames of other languages state no addresses.
    let is_stated = |object: Value<'_>| object.get("instruction_addr").is_some();
    let frame = |(depth, object)| limit.read(read((depth, object)), is_stated(object));
    let text = |key: &str| value.get(key).and_then(Value::text).unwrap_or_default().into_owned();
    Some(Thread {
        name: [text("name"), text("type")].into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
        crashed: value.get("crashed").is_some_and(Value::is_true),
        id: value.get("id").or_else(|| value.get("thread_id")).and_then(Value::number),
        label: Some(text("name")).filter(|name| !name.is_empty()),
        registers: frame_object::registers(registers, limit),
        frames: limit.stack(objects.filter_map(frame)),
        ..Thread::default()
    })
}
