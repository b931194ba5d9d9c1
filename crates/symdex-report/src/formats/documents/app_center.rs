//! The logs that App Center's clients for Apple's systems send.

use super::Document;
use crate::formats::format::{Edits, Format};
use crate::formats::frame_object::{FrameObject, InlinedObjects, Part};
use crate::formats::json::Json;
use crate::report::AddressKind;
use crate::text::{has, is_json};

/// The format of App Center's logs.
pub(crate) const FORMAT: Format = Format {
    name: "app-center",
    description: "Error logs that App Center's clients for Apple's systems send",
    example: concat!(
        r#"{"logs":[{"type":"appleError","threads":[{"id":0,"frames":[{"address":"0x0000000104a343d0"}]}],"#,
        r#""binaries":[{"id":"6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0","startAddress":"0x0000000104a34000"}]}]}"#,
    ),
    marks: &[r#""appleError""#, r#""binaries""#, r#""startAddress""#, r#""primaryArchitectureId""#],
    recognises,
    parse: |text| Ok(DOCUMENT.parse(&Json::parse(text, 0)?, text.len())),
    existing_symbols: Some(|report| DOCUMENT.frame.existing_symbols(report)),
    edits: Edits::Frames(|text, site, resolution| DOCUMENT.frame.replacement(text, site, resolution)),
    ..Format::JSON
};

const DOCUMENT: Document = Document {
    images: "binaries",
    kinds: |owner| {
        // An exception has return addresses only.
        let is_exception = owner.get("type").is_some();
        Box::new(move |number, _| AddressKind::of(number == 0 && !is_exception))
    },
    frame: FrameObject {
        address: &["address"],
        members: &[
            (&["address"], Part::Copied),
            (&["methodName"], Part::Function),
            (&["fileName"], Part::FileName),
            (&["lineNumber"], Part::Line),
            (&["inlined"], Part::Inlined),
        ],
        inlined: InlinedObjects::Before,
    },
};

fn recognises(text: &[u8]) -> bool {
    is_json(text) && has(text, "\"frames\"") && has(text, "\"binaries\"") && has(text, "\"startAddress\"")
}
