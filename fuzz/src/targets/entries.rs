//! Abbreviations and entries of a unit of any version, after a valid header.

use std::path::Path;

use symdex_testkit::images::debug_file::{
    Die, MachO, Unit, debug_addr, debug_sections, macho, rnglists, whole,
};

use crate::{checks, input};

pub fn run(data: &[u8]) {
    let (version, data) = input::choice(data);
    let [abbreviations, ranges, entries] = input::parts(data);
    let header = match version % 4 + 2 {
        5 => vec![5, 0, 1, 8, 0, 0, 0, 0],
        version => vec![version, 0, 0, 0, 0, 0, 8],
    };
    let length = u32::try_from(header.len() + entries.len()).unwrap_or(u32::MAX).to_le_bytes();
    let lines =
        debug_sections(&[Unit::new(whole()).sequence(&[(0x1000, 1, 5, true)], 0x2000)]).swap_remove(2).1;
    let debug = vec![
        ("__debug_abbrev", abbreviations.to_vec()),
        ("__debug_info", [&length, &header[..], entries].concat()),
        ("__debug_line", lines),
        ("__debug_ranges", ranges.to_vec()),
        ("__debug_rnglists", rnglists()),
        ("__debug_addr", debug_addr(&[0x1000])),
        ("__debug_str", b"name\0linkage\0".to_vec()),
    ];
    checks::debug_file(
        &MachO { debug, ..macho(&[], &[("s", 0x1800)]) }.bytes(),
        Path::new("/nonexistent/fuzzed"),
    );
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |version: u8| {
        let inlined = Die::inlined("g", 7);
        let inlined = match version {
            5 => inlined.range((0x1100, 0x1200)),
            _ => inlined.ranges(&[(0x1100, 0x1200), (0x1300, 0x1400)]),
        };
        let nested = inlined.child(Die::inlined("g", 9).range((0x1180, 0x11c0)));
        let declared = Die::new(gimli::DW_TAG_subprogram).name("g").linkage_name("_Z1gv").label("g");
        let unit = Unit::new(whole())
            .version(version.into())
            .child(declared)
            .child(Die::function("f", (0x1000, 0x1800)).child(nested));
        let sections = debug_sections(&[unit]);
        let header = if version == 5 { 12 } else { 11 };
        let joined =
            input::joined(&[&sections[0].1, &sections[3].1, &sections[1].1[header..]]).expect("small");
        [vec![version - 2], joined].concat()
    };
    [2, 3, 4, 5].map(seed).to_vec()
}
