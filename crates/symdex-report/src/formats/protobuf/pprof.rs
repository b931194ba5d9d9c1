//! Profiles of pprof.

use symdex::build_id;

use super::profile::Layout;
use crate::formats::format::{Edits, Format};

/// The format of pprof's profiles.
pub(crate) const FORMAT: Format = Format {
    name: "pprof",
    description: "Profiles of pprof, with the build ids of their mappings",
    recognises: |text| LAYOUT.recognises(text),
    parse: |text| Ok(LAYOUT.parse(text)),
    existing_symbols: Some(|report| LAYOUT.existing_symbols(report)),
    edits: Edits::All(|symbolicated| LAYOUT.edits(symbolicated)),
    ..Format::BINARY
};

/// The field of a mapping with its build id.
const BUILD_ID: u64 = 6;

/// Of `proto/profile.proto` of pprof.
static LAYOUT: Layout = Layout {
    tables: None,
    mappings: 3,
    locations: 4,
    functions: 5,
    strings: 6,
    attributes: None,
    id: Some(1),
    mapping: [2, 3, 4, 5],
    flags: &[7, 8, 9, 10],
    location: [2, 3, 4],
    function: [2, 3, 4],
    build_id: |tables, mapping| build_id::parse(&tables.string_of(mapping, BUILD_ID)),
    is_code: |_, _| true,
};
