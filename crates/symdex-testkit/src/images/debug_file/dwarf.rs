//! Units as the sections of a debug file.

use gimli::constants::{self as dw, DwForm};

use super::unit::uleb;
use super::{BASE, Die, Unit, Value};

/// The contents of `.debug_str`: one string, of which each suffix is a string, too.
pub(crate) fn debug_str() -> Vec<u8> {
    let mut text = b"x".repeat(30_000);
    text.push(0);
    text
}

/// The sections of `units`, by their Mach-O names, and where the header of each unit lies in `.debug_info`.
pub(crate) fn sections(units: &[Unit]) -> (Vec<(&'static str, Vec<u8>)>, Vec<u64>) {
    let mut sections = Sections::default();
    units.iter().for_each(|unit| sections.unit(unit));
    sections.abbrev.push(0);
    for reference in &sections.references {
        let (_, offset) =
            sections.labels.iter().find(|(known, _)| *known == reference.label).expect("a label");
        let value = (offset - reference.from).to_le_bytes();
        let at = reference.at..reference.at + reference.size;
        sections.info[at].copy_from_slice(&value[..reference.size]);
    }
    let Sections { abbrev, info, line, ranges, units, .. } = sections;
    let mut all = vec![
        ("__debug_abbrev", abbrev),
        ("__debug_info", info),
        ("__debug_line", line),
        ("__debug_ranges", ranges),
    ];
    if sections.has_strings {
        all.push(("__debug_str", debug_str()));
    }
    (all, units.iter().map(|unit| unit.offset).collect())
}

/// Where the DIEs lie in `.debug_info`, by label.
pub(crate) fn labels(units: &[Unit]) -> Vec<(&'static str, u64)> {
    let mut sections = Sections::default();
    units.iter().for_each(|unit| sections.unit(unit));
    sections.labels
}

/// The sections of a debug file as they are written.
#[derive(Default)]
struct Sections {
    abbrev: Vec<u8>,
    /// The last abbreviation code.
    abbrevs: u64,
    info: Vec<u8>,
    line: Vec<u8>,
    ranges: Vec<u8>,
    labels: Vec<(&'static str, u64)>,
    references: Vec<Reference>,
    units: Vec<Written>,
    has_strings: bool,
}

/// A reference to a DIE, which can come later.
struct Reference {
    at: usize,
    size: usize,
    label: &'static str,
    /// The offset that the reference counts from.
    from: u64,
}

/// Where the parts of a unit were written.
struct Written {
    offset: u64,
    abbreviations: u64,
    lines: u64,
}

/// How numbers are written in a unit.
#[derive(Clone, Copy)]
struct Format {
    version: u16,
    address_size: u8,
    is_64_bit: bool,
    /// Where the unit and its line program begin.
    unit: u64,
    lines: u64,
}

impl Format {
    /// A length or an offset.
    fn offset(self, out: &mut Vec<u8>, offset: u64) {
        out.extend(&offset.to_le_bytes()[..if self.is_64_bit { 8 } else { 4 }]);
    }

    fn address(self, out: &mut Vec<u8>, address: u64) {
        out.extend(&address.to_le_bytes()[..usize::from(self.address_size)]);
    }

    /// Writes the size of `part`, and `part`.
    fn sized(self, out: &mut Vec<u8>, part: &[u8]) {
        if self.is_64_bit {
            out.extend([0xff; 4]);
        }
        self.offset(out, part.len() as u64);
        out.extend(part);
    }

    fn section_offset(self) -> DwForm {
        match (self.version, self.is_64_bit) {
            (..=3, false) => dw::DW_FORM_data4,
            (..=3, true) => dw::DW_FORM_data8,
            _ => dw::DW_FORM_sec_offset,
        }
    }
}

impl Sections {
    fn unit(&mut self, unit: &Unit) {
        let written = self.abbrev.len();
        let abbreviations =
            unit.abbreviations_of.map_or(written as u64, |unit| self.units[unit].abbreviations);
        self.abbrevs = 0;
        let lines = unit.lines_of.map_or(self.line.len() as u64, |unit| self.units[unit].lines);
        let offset = self.info.len() as u64;
        let Unit { version, address_size, is_64_bit, .. } = *unit;
        let format = Format { version, address_size, is_64_bit, unit: offset, lines };
        self.units.push(Written { offset, abbreviations, lines });
        let mut header = version.to_le_bytes().to_vec();
        if version >= 5 {
            header.extend([unit.kind.0.0, address_size]);
            format.offset(&mut header, abbreviations);
            header.extend(&unit.kind.1);
        } else {
            format.offset(&mut header, abbreviations);
            header.push(address_size);
        }
        // The size is known once the DIEs are written.
        format.sized(&mut self.info, &header);
        self.die(&unit.die, format);
        let before = if is_64_bit { 12 } else { 4 };
        let start = offset as usize + before;
        let size = (self.info.len() - start).to_le_bytes();
        let width = if is_64_bit { 8 } else { 4 };
        self.info[start - width..start].copy_from_slice(&size[..width]);
        match unit.abbreviations_of {
            Some(_) => self.abbrev.truncate(written),
            // The next unit's codes begin at 1 again.
            None => self.abbrev.push(0),
        }
        if unit.lines_of.is_none() {
            self.line_program(unit, format);
        }
    }

    fn die(&mut self, die: &Die, format: Format) {
        self.labels.push((die.label, self.info.len() as u64));
        self.abbrevs += 1;
        uleb(&mut self.abbrev, self.abbrevs);
        uleb(&mut self.info, self.abbrevs);
        uleb(&mut self.abbrev, die.tag.0.into());
        self.abbrev.push(u8::from(!die.children.is_empty()));
        for (attribute, value) in &die.attributes {
            uleb(&mut self.abbrev, attribute.0.into());
            let form = self.value(value, format);
            uleb(&mut self.abbrev, form.0.into());
        }
        self.abbrev.extend([0, 0]);
        let code = self.abbrevs;
        for _ in 1..die.copies {
            uleb(&mut self.info, code);
            for (_, value) in &die.attributes {
                self.value(value, format);
            }
        }
        die.children.iter().for_each(|child| self.die(child, format));
        if !die.children.is_empty() {
            self.info.push(0);
        }
    }

    fn value(&mut self, value: &Value, format: Format) -> DwForm {
        match value {
            Value::Text(text) => self.text(text.as_bytes()),
            Value::Bytes(text) => self.text(text),
            Value::TextAt(offset) => {
                self.has_strings = true;
                format.offset(&mut self.info, (*offset).into());
                dw::DW_FORM_strp
            }
            Value::Address(address) => {
                format.address(&mut self.info, *address);
                dw::DW_FORM_addr
            }
            Value::Number(number) => {
                self.info.extend(number.to_le_bytes());
                dw::DW_FORM_data8
            }
            Value::Die(label) => {
                // In DWARF 2 a reference across units is as wide as an address.
                let size = match (format.version, format.is_64_bit) {
                    (2, _) => usize::from(format.address_size),
                    (_, true) => 8,
                    _ => 4,
                };
                self.reference(label, size, 0);
                dw::DW_FORM_ref_addr
            }
            Value::DieAt(offset) => {
                format.offset(&mut self.info, *offset);
                dw::DW_FORM_ref_addr
            }
            Value::DieOfUnit(label) => {
                self.reference(label, 4, format.unit);
                dw::DW_FORM_ref4
            }
            Value::Lines => {
                format.offset(&mut self.info, format.lines);
                format.section_offset()
            }
            // Base 0 makes the following addresses absolute.
            Value::Ranges(ranges) => self.ranges(&[(u64::MAX, 0)], ranges, format),
            Value::RelativeRanges(ranges) => self.ranges(&[], ranges, format),
            Value::Form(form, bytes) => {
                self.info.extend(bytes);
                *form
            }
            Value::RangesAt(offset) => {
                format.offset(&mut self.info, (*offset).into());
                format.section_offset()
            }
        }
    }

    fn text(&mut self, text: &[u8]) -> DwForm {
        self.info.extend(text);
        self.info.push(0);
        dw::DW_FORM_string
    }

    fn reference(&mut self, label: &'static str, size: usize, from: u64) {
        self.references.push(Reference { at: self.info.len(), size, label, from });
        self.info.extend(vec![0; size]);
    }

    fn ranges(&mut self, base: &[(u64, u64)], ranges: &[(u64, u64)], format: Format) -> DwForm {
        assert!(format.version < 5, "DWARF 5 keeps ranges elsewhere");
        let offset = self.ranges.len() as u64;
        format.offset(&mut self.info, offset);
        for (start, end) in base.iter().chain(ranges).chain(&[(0, 0)]) {
            format.address(&mut self.ranges, *start);
            format.address(&mut self.ranges, *end);
        }
        format.section_offset()
    }

    fn line_program(&mut self, unit: &Unit, format: Format) {
        let mut header = vec![unit.min_instruction_size];
        if unit.version >= 4 {
            header.push(unit.max_operations);
        }
        // is_stmt by default, line base, line range, opcode base and how many operands the standard opcodes have.
        header.extend([1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
        let listed =
            unit.file_directory.map(|directory| [directory.as_bytes(), &[0]].concat()).unwrap_or_default();
        if unit.version >= 5 {
            let (path, directory) = (dw::DW_LNCT_path.0 as u8, dw::DW_LNCT_directory_index.0 as u8);
            let (string, udata) = (dw::DW_FORM_string.0 as u8, dw::DW_FORM_udata.0 as u8);
            header.extend([1, path, string, 1 + u8::from(unit.file_directory.is_some())]);
            header.extend(b"/src\0");
            header.extend(listed);
            header.extend([2, path, string, directory, udata, unit.files.len() as u8]);
        } else {
            header.extend(listed);
            header.push(0);
        }
        let directory_index = u8::from(unit.file_directory.is_some());
        for file in &unit.files {
            header.extend(file.as_bytes());
            header.extend([0, directory_index]);
            header.extend(if unit.version >= 5 { &[][..] } else { &[0, 0] });
        }
        if unit.version < 5 {
            header.push(0);
        }
        let mut part = unit.version.to_le_bytes().to_vec();
        if unit.version >= 5 {
            part.extend([unit.address_size, 0]);
        }
        format.offset(&mut part, header.len() as u64);
        part.extend(header);
        part.extend(&unit.line_program);
        format.sized(&mut self.line, &part);
    }
}

/// A set of `.debug_aranges`: an offset in `.debug_info`, and ranges of image offsets.
pub type AddressSet<'a> = (u64, &'a [(u64, u64)]);

/// `.debug_aranges` of these sets.
pub fn aranges(sets: &[AddressSet<'_>]) -> Vec<u8> {
    let mut all = Vec::new();
    for (unit, ranges) in sets {
        let mut set = vec![2, 0];
        set.extend((*unit as u32).to_le_bytes());
        set.extend([8, 0, 0, 0, 0, 0]);
        let tuples = ranges.iter().map(|(start, end)| [BASE + start, end - start]).chain([[0, 0]]);
        set.extend(tuples.flatten().flat_map(u64::to_le_bytes));
        all.extend((set.len() as u32).to_le_bytes());
        all.extend(set);
    }
    all
}
