//! The JSON of Swift's runtime (`SWIFT_BACKTRACE=format=json`), since Swift 6.2.

use super::Document;
use crate::formats::format::{Edits, Format};
use crate::formats::frame_object::{FrameObject, InlinedObjects, Part, member};
use crate::formats::json::{Json, Value};
use crate::info::set;
use crate::report::{AddressKind, Parsed};
use crate::text::{has, is_object};

/// The format of the JSON of Swift's runtime.
pub(crate) const FORMAT: Format = Format {
    name: "swift-json",
    description: "The JSON of Swift's runtime (`SWIFT_BACKTRACE=format=json`)",
    example: concat!(
        r#"{"threads":[{"frames":[{"kind":"programCounter","address":"0x0000000104a343d0"}]}],"images":["#,
        r#"{"name":"App","buildId":"6dcd4e9dd3b13a0e8dff6a5a4be1b1b0","baseAddress":"0x0000000104a34000"}]}"#,
    ),
    marks: &[r#""omittedImages""#, r#""images""#, r#""baseAddress""#, r#""programCounter""#],
    recognises,
    parse,
    existing_symbols: Some(|report| DOCUMENT.frame.existing_symbols(report)),
    stated_image: |object| member(object, "image"),
    edits: Edits::Frames(|text, site, resolution| DOCUMENT.frame.replacement(text, site, resolution)),
    ..Format::JSON
};

const DOCUMENT: Document = Document {
    images: "images",
    kinds: |_| {
        // A resume point is the address of an instruction.
        let is_return = |kind: Value<'_>| kind.unescaped() == b"returnAddress";
        Box::new(move |_, frame| AddressKind::of(!frame.get("kind").is_some_and(is_return)))
    },
    frame: FrameObject {
        address: &["address"],
        members: &[
            (&["kind", "address"], Part::Copied),
            (&["inlined"], Part::Inlined),
            (&["symbol"], Part::LinkageName),
            (&["offset"], Part::Offset),
            (&["description"], Part::Function),
            (&["image"], Part::Copied),
            (&["sourceLocation"], Part::Location),
        ],
        inlined: InlinedObjects::Before,
    },
};

fn recognises(text: &[u8]) -> bool {
    is_object(text)
        && has(text, "\"frames\"")
        && (has(text, "\"programCounter\"") || has(text, "\"returnAddress\""))
}

fn parse(text: &[u8]) -> Result<Parsed, crate::error::Error> {
    let json = Json::parse(text, 0)?;
    let mut parsed = DOCUMENT.parse(&json, text.len());
    let text = |key: &str| json.root().get(key).and_then(Value::text).unwrap_or_default();
    set(&mut parsed.info.time, text("timestamp"));
    set(&mut parsed.info.os, text("platform"));
    set(&mut parsed.info.code_type, text("architecture"));
    set(&mut parsed.info.exception().kind, text("description"));
    Ok(parsed)
}
