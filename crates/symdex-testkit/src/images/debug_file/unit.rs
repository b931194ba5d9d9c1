//! Compile units: their entries and their line programs.

use gimli::constants as dw;

use super::{BASE, Die, Value};

/// A compile unit: its DIE and its line program.
pub struct Unit {
    pub(crate) die: Die,
    pub(crate) line_program: Vec<u8>,
    pub(crate) version: u16,
    pub(crate) address_size: u8,
    pub(crate) is_64_bit: bool,
    pub(crate) files: Vec<&'static str>,
    /// The directory of the files in the line table; `None` if it is that of the unit.
    pub(crate) file_directory: Option<&'static str>,
    pub(crate) min_instruction_size: u8,
    pub(crate) max_operations: u8,
    /// The number of the unit whose abbreviations, or whose line program, this unit shares.
    pub(crate) abbreviations_of: Option<usize>,
    pub(crate) lines_of: Option<usize>,
    /// The kind of unit in a DWARF 5 header, and the fields that such a unit adds to the header.
    pub(crate) kind: (dw::DwUt, Vec<u8>),
}

impl Unit {
    /// A unit that declares this range of image offsets, and whose files are `a.c` and `b.h` in `/src`.
    pub fn new(range: (u64, u64)) -> Self {
        let unit = Self::bare();
        Self { die: unit.die.range(range), ..unit }
    }

    /// A unit that declares no addresses.
    pub fn bare() -> Self {
        let die = Die::new(dw::DW_TAG_compile_unit).name("a.c");
        let die = die.with(dw::DW_AT_comp_dir, Value::Text("/src")).with(dw::DW_AT_stmt_list, Value::Lines);
        Self {
            die,
            line_program: Vec::new(),
            version: 4,
            address_size: 8,
            is_64_bit: false,
            files: vec!["a.c", "b.h"],
            file_directory: None,
            min_instruction_size: 1,
            max_operations: 1,
            abbreviations_of: None,
            lines_of: None,
            kind: (dw::DW_UT_compile, Vec::new()),
        }
    }

    /// A unit with gaps: `DW_AT_low_pc` and `DW_AT_ranges`, which count from it.
    pub fn with_gaps(low: u64, ranges: &[(u64, u64)]) -> Self {
        let unit = Self::bare();
        let relative = ranges.iter().map(|(start, end)| (start - low, end - low)).collect();
        let die = unit.die.with(dw::DW_AT_low_pc, Value::Address(BASE + low));
        Self { die: die.with(dw::DW_AT_ranges, Value::RelativeRanges(relative)), ..unit }
    }

    /// The unit with one more attribute in its root DIE.
    pub fn root(mut self, attribute: gimli::DwAt, value: Value) -> Self {
        self.die = self.die.with(attribute, value);
        self
    }

    /// The unit with another value for an attribute of its root DIE.
    pub fn replace(mut self, attribute: gimli::DwAt, value: Value) -> Self {
        self.die.attributes.retain(|(known, _)| *known != attribute);
        self.root(attribute, value)
    }

    /// A unit of another kind than a compile unit.
    pub fn kind(mut self, tag: gimli::DwTag, kind: dw::DwUt, id: &[u8]) -> Self {
        self.die.tag = tag;
        Self { kind: (kind, id.to_vec()), ..self }
    }

    /// DWARF of another version than 4.
    pub fn version(self, version: u16) -> Self {
        Self { version, ..self }
    }

    pub fn address_size(self, address_size: u8) -> Self {
        Self { address_size, ..self }
    }

    /// Offsets of 64 bits.
    pub fn dwarf64(self) -> Self {
        Self { is_64_bit: true, ..self }
    }

    /// The folder of the unit, instead of `/src`.
    pub fn directory(self, directory: &'static str) -> Self {
        self.replace(dw::DW_AT_comp_dir, Value::Text(directory))
    }

    /// The files, numbered from 1, or from 0 in DWARF 5.
    pub fn files(self, files: &[&'static str]) -> Self {
        Self { files: files.to_vec(), ..self }
    }

    /// A directory that the line table lists and that the files are in, instead of that of the unit.
    pub fn file_directory(self, directory: &'static str) -> Self {
        Self { file_directory: Some(directory), ..self }
    }

    /// The minimum size of an instruction, and the maximum number of operations in each.
    pub fn instructions(self, min_instruction_size: u8, max_operations: u8) -> Self {
        Self { min_instruction_size, max_operations, ..self }
    }

    pub fn language(self, language: gimli::DwLang) -> Self {
        self.root(dw::DW_AT_language, Value::Number(language.0.into()))
    }

    /// A partial unit, which others import.
    pub fn partial(mut self) -> Self {
        self.die.tag = dw::DW_TAG_partial_unit;
        self
    }

    /// Takes the line program of an earlier unit, by number.
    pub fn lines_of(self, unit: usize) -> Self {
        Self { lines_of: Some(unit), ..self }
    }

    /// Takes the abbreviations of an earlier unit, which has the same entries, by number.
    pub fn abbreviations_of(self, unit: usize) -> Self {
        Self { abbreviations_of: Some(unit), ..self }
    }

    pub fn child(mut self, child: Die) -> Self {
        self.die = self.die.child(child);
        self
    }

    /// A sequence of rows (image offset, file, line, is_stmt) that ends at image offset `end`.
    pub fn sequence(mut self, rows: &[(u64, u64, i64, bool)], end: u64) -> Self {
        self.rows(rows);
        self.set_address(end);
        self.end_sequence()
    }

    /// Rows and some more bytes, without an end_sequence.
    pub fn rows_without_end(mut self, rows: &[(u64, u64, i64, bool)], more: &[u8]) -> Self {
        self.rows(rows);
        self.line_program.extend_from_slice(more);
        self
    }

    /// A sequence that ends `back` bytes below its last row, as a wrapped DW_LNS_advance_pc.
    pub fn sequence_that_ends_below(mut self, rows: &[(u64, u64, i64, bool)], back: u64) -> Self {
        self.rows(rows);
        self.line_program.push(dw::DW_LNS_advance_pc.0);
        uleb(&mut self.line_program, back.wrapping_neg());
        self.end_sequence()
    }

    /// A sequence with a row for line 1 of file 1 at image offset `start`, followed by these opcodes.
    pub fn sequence_of_bytes(mut self, start: u64, program: &[u8]) -> Self {
        self.rows(&[(start, 1, 1, true)]);
        self.line_program.extend_from_slice(program);
        self.end_sequence()
    }

    fn end_sequence(mut self) -> Self {
        self.line_program.extend([0, 1, dw::DW_LNE_end_sequence.0]);
        self
    }

    fn rows(&mut self, rows: &[(u64, u64, i64, bool)]) {
        let (mut last_line, mut last_stmt) = (1, true);
        for &(offset, file, line, stmt) in rows {
            self.set_address(offset);
            let program = &mut self.line_program;
            program.push(dw::DW_LNS_set_file.0);
            uleb(program, file);
            program.push(dw::DW_LNS_advance_line.0);
            sleb(program, line - last_line);
            if stmt != last_stmt {
                program.push(dw::DW_LNS_negate_stmt.0);
            }
            program.push(dw::DW_LNS_copy.0);
            (last_line, last_stmt) = (line, stmt);
        }
    }

    fn set_address(&mut self, offset: u64) {
        self.line_program.extend([0, 1 + self.address_size, dw::DW_LNE_set_address.0]);
        // Offset 0 stands for address 0, to which linkers set dead code.
        let svma = if offset == 0 { 0 } else { BASE.wrapping_add(offset) };
        self.line_program.extend(&svma.to_le_bytes()[..usize::from(self.address_size)]);
    }
}

pub(crate) fn uleb(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn sleb(out: &mut Vec<u8>, mut value: i64) {
    while !(-64..64).contains(&value) {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}
