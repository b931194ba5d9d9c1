//! Profiles of OpenTelemetry, in the binary encoding of protocol 1.8 (`opentelemetry.proto.profiles.v1development`): a
//! `ProfilesData`, or the request that a profiler sends to a collector, which has the same fields.

use symdex::{ImageId, build_id};

use super::Message;
use super::profile::{Layout, Tables};
use crate::formats::format::{Edits, Format};

/// The format of OpenTelemetry's profiles.
pub(crate) const FORMAT: Format = Format {
    name: "otlp-profile",
    description: "Profiles of OpenTelemetry's protocol 1.8, with the build ids of their mappings",
    recognises: |text| LAYOUT.recognises(text),
    parse: |text| Ok(LAYOUT.parse(text)),
    existing_symbols: Some(|report| LAYOUT.existing_symbols(report)),
    edits: Edits::All(|symbolicated| LAYOUT.edits(symbolicated)),
    ..Format::BINARY
};

static LAYOUT: Layout = Layout {
    tables: Some(2),
    mappings: 1,
    locations: 2,
    functions: 3,
    strings: 5,
    attributes: Some(6),
    id: None,
    mapping: [1, 2, 3, 4],
    flags: &[],
    location: [1, 2, 3],
    function: [1, 2, 3],
    build_id,
    is_code,
};

/// The fields of mappings and of locations with positions in the table of attributes.
const OF_MAPPING: u64 = 5;
const OF_LOCATION: u64 = 4;

/// Longer texts are no ids. That of Go has 83 characters.
const LONGEST_ID: usize = 256;

/// The id in the semantic conventions of OpenTelemetry: that of the GNU linker, that of Go's, or a hash of the file.
fn build_id(tables: &Tables<'_>, mapping: &Message<'_>) -> Option<ImageId> {
    let of_kind = |kind: &str| {
        let key = format!("process.executable.build_id.{kind}");
        let mut attributes = tables.attributes(mapping, OF_MAPPING);
        let (_, text) = attributes.find(|(name, _)| *name == key.as_bytes())?;
        build_id::parse(std::str::from_utf8(text).ok().filter(|text| text.len() <= LONGEST_ID)?)
    };
    ["gnu", "go", "htlhash"].into_iter().find_map(of_kind)
}

/// Whether the type of the frame is that of machine code whose address counts in its mapping. Profilers name the frames
/// of interpreters and of Go themselves.
fn is_code(tables: &Tables<'_>, location: &Message<'_>) -> bool {
    let mut attributes = tables.attributes(location, OF_LOCATION);
    let kind = attributes.find(|(key, _)| *key == b"profile.frame.type");
    kind.is_none_or(|(_, kind)| matches!(kind, b"native" | b"kernel"))
}
