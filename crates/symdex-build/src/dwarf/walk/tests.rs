//! The walk beside gimli, on made-up units and on real ones.

use std::sync::Arc;

use gimli::{DwAt, DwForm, Dwarf, constants};

use super::super::roots::{Root, headers};
use super::super::tables::UnitTable;
use super::super::units::Units;
use super::*;
use crate::limits::UnitLimits;
use crate::memory::Memory;
use crate::random::Random;
use crate::report::Problems;
use crate::{Companions, Image};

/// A function with code: offset, depth, enclosing function with code, whether it is a subprogram, attributes.
type Seen<'d> = (usize, isize, Option<usize>, bool, Option<Attributes<'d>>);
/// The functions that a walk finds, and the error that ends it.
type Walked<'d> = (Vec<Seen<'d>>, Option<String>);

fn walked<'d>(unit: &UnitEntry<'d>) -> Walked<'d> {
    let (mut all, mut open) = (Vec::new(), Vec::<(isize, Option<usize>)>::new());
    let table = unit.table().expect("read");
    let mut walker = Walker::new(unit, &table).expect("has a root entry");
    loop {
        let found = match walker.next() {
            Ok(Some(found)) => found,
            Ok(None) => return (all, None),
            Err(error) => return (all, Some(error.to_string())),
        };
        while open.pop_if(|(opened, _)| *opened >= found.ended).is_some() {}
        let attributes = found.states_code.then(|| *walker.attributes());
        let around = open.last().filter(|(depth, _)| !found.is_hidden_from(*depth));
        let around = around.and_then(|(_, offset)| *offset);
        if found.states_code {
            all.push((found.offset.0, found.depth, around, found.is_subprogram, attributes));
        }
        if found.has_children {
            open.push((found.depth, found.states_code.then_some(found.offset.0)));
        }
    }
}

/// The result of a walk with gimli alone, entry by entry.
fn by_gimli<'d>(unit: &UnitEntry<'d>) -> Walked<'d> {
    let (mut all, mut open) = (Vec::new(), Vec::<(isize, Option<usize>)>::new());
    let table = unit.table().expect("read");
    let mut entries = unit.entries(&table, None).expect("has a root entry");
    let mut next = || -> gimli::Result<()> {
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            while open.pop_if(|(opened, _)| *opened >= depth).is_some() {}
            let is_subprogram = abbreviation.tag() == constants::DW_TAG_subprogram;
            let attributes = if Shape::unknown(abbreviation).states_code {
                Some(Attributes::read(&mut entries, abbreviation.attributes())?)
            } else {
                entries.skip_attributes(abbreviation.attributes()).map(|()| None)?
            };
            let around = open.last().and_then(|(_, offset)| *offset);
            let states_code = attributes.is_some();
            if states_code {
                all.push((offset.0, depth, around, is_subprogram, attributes));
            }
            // The children of an inlined subroutine without code belong to the function around it.
            if abbreviation.has_children() && (is_subprogram || states_code) {
                open.push((depth, states_code.then_some(offset.0)));
            }
        }
        Ok(())
    };
    let error = next().err();
    (all, error.map(|error| error.to_string()))
}

/// How a made-up unit is encoded.
#[derive(Clone, Copy, Debug)]
struct Made {
    version: u16,
    is_64: bool,
    address_size: u8,
}

impl Made {
    /// A unit with these bytes after its header.
    fn unit(self, entries: &[u8]) -> Vec<u8> {
        let offset = |value: usize| {
            if self.is_64 {
                (value as u64).to_le_bytes().to_vec()
            } else {
                u32::try_from(value).expect("small").to_le_bytes().to_vec()
            }
        };
        let mut rest = self.version.to_le_bytes().to_vec();
        match self.version {
            5 => rest.extend([vec![constants::DW_UT_compile.0, self.address_size], offset(0)].concat()),
            _ => rest.extend([offset(0), vec![self.address_size]].concat()),
        }
        rest.extend(entries);
        let escape = if self.is_64 { vec![0xff; 4] } else { Vec::new() };
        [escape, offset(rest.len()), rest].concat()
    }
}

/// An abbreviation: code, tag, whether it has children, attributes.
type Abbreviation<'a> = (u16, gimli::DwTag, u16, &'a [(DwAt, DwForm)]);

fn leb(value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    gimli::leb128::write::unsigned(&mut bytes, value).expect("a Vec takes all");
    bytes
}

fn table<'a>(abbreviations: impl IntoIterator<Item = Abbreviation<'a>>) -> Vec<u8> {
    let mut table = Vec::new();
    let mut push = |value: u16| table.extend(leb(value.into()));
    for (code, tag, has_children, attributes) in abbreviations {
        [code, tag.0, has_children].into_iter().for_each(&mut push);
        for (name, form) in attributes {
            [name.0, form.0].into_iter().for_each(&mut push);
            if *form == constants::DW_FORM_implicit_const {
                push(0x7f);
            }
        }
        [0, 0].into_iter().for_each(&mut push);
    }
    push(0);
    table
}

/// Abbreviations 1 to 5 and 7: functions and a variable with the same attributes, and functions without any.
fn abbreviations(attributes: &[(DwAt, DwForm)]) -> Vec<u8> {
    table([
        (1, constants::DW_TAG_subprogram, 1, attributes),
        (2, constants::DW_TAG_inlined_subroutine, 1, attributes),
        (3, constants::DW_TAG_variable, 0, attributes),
        (4, constants::DW_TAG_subprogram, 1, &[]),
        (5, constants::DW_TAG_inlined_subroutine, 1, &[]),
        (7, constants::DW_TAG_inlined_subroutine, 0, attributes),
    ])
}

/// Walks through a made-up unit in both ways. Returns the number of its functions, and whether it is valid.
fn compare(made: Made, attributes: &[(DwAt, DwForm)], entries: &[u8]) -> (usize, bool) {
    compare_of(made, &abbreviations(attributes), entries)
}

/// [`compare`] for a unit with these abbreviations.
fn compare_of(made: Made, abbreviations: &[u8], entries: &[u8]) -> (usize, bool) {
    let info = made.unit(entries);
    let sections = |id| match id {
        gimli::SectionId::DebugInfo => &info[..],
        gimli::SectionId::DebugAbbrev => abbreviations,
        _ => &[],
    };
    let load = |id| Ok::<_, gimli::Error>(Reader::new(sections(id), gimli::LittleEndian));
    let dwarf = Arc::new(Dwarf::load(load).expect("cannot fail"));
    let header = headers(&dwarf).units[0];
    let table = Table::new(dwarf.abbreviations(&header).expect("a table"), header.encoding());
    // A unit with a damaged root entry is not read.
    let Ok(Some(Root { unit, .. })) = Root::read(&dwarf, header, &table.abbreviations) else {
        return (0, false);
    };
    let unit = UnitEntry::of_supplementary(&dwarf, unit, None, UnitTable::Kept(Arc::new(table)));
    let walked = walked(&unit);
    assert_eq!(walked, by_gimli(&unit), "{made:?} {abbreviations:?} {entries:?}");
    for (offset, .., attributes) in walked.0.iter().filter(|seen| seen.4.is_some()) {
        let mut reads = Reads::of_unit(0);
        let table = unit.table().expect("read");
        assert_eq!(attributes_at(&unit, &table, UnitOffset(*offset), &mut reads).ok(), *attributes);
    }
    (walked.0.len(), walked.1.is_none())
}

fn random(generator: &mut Random, below: u64) -> usize {
    usize::try_from(generator.below(below)).expect("small")
}

#[test]
fn every_form_of_every_attribute_is_read_as_by_gimli() {
    let names = [
        constants::DW_AT_low_pc,
        constants::DW_AT_high_pc,
        constants::DW_AT_entry_pc,
        constants::DW_AT_ranges,
        constants::DW_AT_name,
        constants::DW_AT_linkage_name,
        constants::DW_AT_MIPS_linkage_name,
        constants::DW_AT_abstract_origin,
        constants::DW_AT_specification,
        constants::DW_AT_call_file,
        constants::DW_AT_call_line,
        constants::DW_AT_location,
    ];
    let forms = (0..0x30).chain([0x1f01, 0x1f02, 0x1f20, 0x1f21]).map(DwForm);
    let first = (constants::DW_AT_decl_line, constants::DW_FORM_data1);
    let low_pc = (constants::DW_AT_low_pc, constants::DW_FORM_udata);
    let (mut state, mut functions, mut whole) = (Random(1), 0, 0);
    for (form, name) in forms.flat_map(|form| names.map(|name| (form, name))).filter(|(form, _)| form.0 != 0)
    {
        for version in [2, 3, 4, 5] {
            for (is_64, address_size) in [(false, 4), (false, 8), (true, 8), (false, 2)] {
                let made = Made { version, is_64, address_size };
                // If all bytes are codes of abbreviations or null, any sequence of them is valid.
                let bytes: Vec<u8> =
                    (0..60).map(|_| [1, 2, 3, 4, 5, 7, 0, 0][random(&mut state, 8)]).collect();
                let bytes = [&[1], &bytes[..]].concat();
                for attributes in [&[first, (name, form), low_pc, first][..], &[(name, form)]] {
                    let (found, is_whole) = compare(made, attributes, &bytes);
                    (functions, whole) = (functions + found, whole + usize::from(is_whole));
                }
            }
        }
    }
    assert!(functions > 20_000 && whole > 1000, "{functions} {whole}");
}

#[test]
fn deep_functions_are_seen_as_by_gimli() {
    let attributes = [(constants::DW_AT_low_pc, constants::DW_FORM_udata)];
    let (mut state, mut functions) = (Random(5), 0);
    for _ in 0..500 {
        let made = Made { version: 4, is_64: false, address_size: 8 };
        // Goes down to a depth of about 100, up a few levels, down again, and so on.
        let mut entries = vec![1, 0];
        for number in 0..400 {
            match random(&mut state, if number % 160 < 110 { 12 } else { 40 }) {
                0..=2 => entries.extend([2, 0]),
                3 => entries.extend([1, 0]),
                4..=6 => entries.push(4),
                7 => entries.push(5),
                8 => entries.extend([3, 0]),
                9 => entries.extend([7, 0]),
                _ => entries.push(0),
            }
        }
        functions += compare(made, &attributes, &entries).0;
    }
    assert!(functions > 20_000, "{functions}");
}

#[test]
fn any_bytes_are_read_as_by_gimli() {
    let attributes = [
        (constants::DW_AT_location, constants::DW_FORM_exprloc),
        (constants::DW_AT_low_pc, constants::DW_FORM_udata),
        (constants::DW_AT_high_pc, constants::DW_FORM_data2),
        (constants::DW_AT_abstract_origin, constants::DW_FORM_ref_udata),
        (constants::DW_AT_decl_line, constants::DW_FORM_indirect),
        (constants::DW_AT_call_line, constants::DW_FORM_data1),
    ];
    let (mut state, mut functions) = (Random(7), 0);
    for _ in 0..20_000 {
        let made = Made { version: 4, is_64: false, address_size: 8 };
        let chosen = &attributes[random(&mut state, 6)..];
        let wild = random(&mut state, 20) as u64;
        let byte = |_| match random(&mut state, 20) as u64 {
            choice if choice < wild => random(&mut state, 256),
            _ => random(&mut state, 6),
        };
        let bytes: Vec<u8> = (0..80).map(byte).map(|byte| u8::try_from(byte).expect("a byte")).collect();
        functions += compare(made, chosen, &[&[1], &bytes[..]].concat()).0;
    }
    assert!(functions > 1000, "{functions}");
}

/// A number as LEB128, sometimes in more bytes than necessary.
fn number(state: &mut Random, number: usize) -> Vec<u8> {
    match (&leb(number as u64)[..], random(state, 30)) {
        ([one], 0) => vec![one | 0x80, 0],
        (bytes, _) => bytes.to_vec(),
    }
}

#[test]
fn codes_of_one_byte_and_of_two_are_passed_as_by_gimli() {
    let (line, low_pc) = (constants::DW_AT_decl_line, constants::DW_AT_low_pc);
    let value = (constants::DW_AT_const_value, constants::DW_FORM_udata);
    let location = (constants::DW_AT_location, constants::DW_FORM_exprloc);
    let block = (constants::DW_AT_location, constants::DW_FORM_block1);
    let kinds: [(_, _, &[(DwAt, DwForm)]); 9] = [
        (constants::DW_TAG_subprogram, 1, &[(low_pc, constants::DW_FORM_udata)]),
        (constants::DW_TAG_inlined_subroutine, 1, &[location, (low_pc, constants::DW_FORM_udata)]),
        (constants::DW_TAG_subprogram, 1, &[]),
        (constants::DW_TAG_lexical_block, 1, &[(line, constants::DW_FORM_data2)]),
        (constants::DW_TAG_variable, 0, &[(line, constants::DW_FORM_data1)]),
        (
            constants::DW_TAG_variable,
            0,
            &[(line, constants::DW_FORM_data1), block, (line, constants::DW_FORM_data2)],
        ),
        (constants::DW_TAG_variable, 0, &[value, (line, constants::DW_FORM_data1), location]),
        (constants::DW_TAG_variable, 0, &[location, location]),
        (constants::DW_TAG_variable, 0, &[value, value, value]),
    ];
    let kinds_of = (1..400).zip(kinds.iter().cycle());
    let abbreviations = table(
        kinds_of.map(|(code, (tag, has_children, attributes))| (code, *tag, *has_children, *attributes)),
    );
    let (mut state, mut functions, mut whole) = (Random(3), 0, 0);
    for _ in 0..500 {
        let mut entries = vec![1, 0];
        for _ in 0..100 {
            let codes = [0, 1, 127, 128, 1 + random(&mut state, 127), 1 + random(&mut state, 399)];
            let code = codes[random(&mut state, 6)];
            entries.extend(number(&mut state, code));
            for (_, form) in code.checked_sub(1).map_or(&[][..], |code| kinds[code % kinds.len()].2) {
                let size = [0, 1, 3, 130][random(&mut state, 4)];
                match *form {
                    constants::DW_FORM_data1 => entries.push(7),
                    constants::DW_FORM_data2 => entries.extend([7, 7]),
                    constants::DW_FORM_block1 => {
                        entries.extend(vec![u8::try_from(size).expect("small"); size + 1])
                    }
                    constants::DW_FORM_exprloc => {
                        entries.extend([number(&mut state, size), vec![7; size]].concat());
                    }
                    _ => entries.extend(number(&mut state, size)),
                }
            }
        }
        let made = Made { version: 4, is_64: false, address_size: 8 };
        let (found, is_whole) = compare_of(made, &abbreviations, &entries);
        (functions, whole) = (functions + found, whole + usize::from(is_whole));
    }
    assert!(functions > 5000 && whole > 100, "{functions} {whole}");
}

#[test]
fn real_units_are_read_as_by_gimli() {
    let testdata = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let (mut functions, companions) = (0, Companions::default());
    for path in crate::find(&testdata).into_iter().flatten() {
        let bytes = std::fs::read(&path).expect("readable");
        for slice in crate::slices(&bytes).expect("a debug file") {
            let image = Image::load(&slice, &path, &companions).expect("loads");
            let memory = Memory::new(usize::MAX);
            let limits = UnitLimits::without_deadline(&image, &memory);
            for unit in &Units::read(&image, limits, &mut Problems::default()).expect("small").all {
                let walked = walked(unit);
                assert_eq!(walked, by_gimli(unit), "{}", path.display());
                functions += walked.0.len();
            }
        }
    }
    assert!(functions > 500, "{functions}");
}
