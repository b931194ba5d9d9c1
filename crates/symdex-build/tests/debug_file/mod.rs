//! Debug files made up in memory: a Mach-O file with DWARF 4, byte by byte, so that they may state anything.

use gimli::constants::{self as dw, DwAt, DwForm, DwTag};

/// Where `__TEXT` begins, and what image offsets count from.
pub(crate) const BASE: u64 = 0x1_0000_0000;
/// The image offsets of the code.
pub(crate) const CODE: std::ops::Range<u64> = 0x1000..0x3000;

/// A debugging information entry.
pub(crate) struct Die {
    tag: DwTag,
    label: &'static str,
    attributes: Vec<(DwAt, Value)>,
    children: Vec<Die>,
}

enum Value {
    Text(&'static str),
    Address(u64),
    Number(u64),
    /// The DIE with this label, in whatever unit.
    Die(&'static str),
    /// The line program of the unit.
    Lines,
    /// Ranges, as SVMAs.
    Ranges(Vec<(u64, u64)>),
}

impl Die {
    pub(crate) fn new(tag: DwTag) -> Self {
        Self { tag, label: "", attributes: Vec::new(), children: Vec::new() }
    }

    /// A subprogram at these image offsets.
    pub(crate) fn function(name: &'static str, range: (u64, u64)) -> Self {
        Self::new(dw::DW_TAG_subprogram).name(name).range(range)
    }

    /// An inlined subroutine of the function labelled `origin`, called in line `line` of file 1.
    pub(crate) fn inlined(origin: &'static str, line: u64) -> Self {
        let die = Self::new(dw::DW_TAG_inlined_subroutine).refers(dw::DW_AT_abstract_origin, origin);
        die.with(dw::DW_AT_call_file, Value::Number(1)).with(dw::DW_AT_call_line, Value::Number(line))
    }

    pub(crate) fn label(mut self, label: &'static str) -> Self {
        self.label = label;
        self
    }

    pub(crate) fn name(self, name: &'static str) -> Self {
        self.with(dw::DW_AT_name, Value::Text(name))
    }

    pub(crate) fn linkage_name(self, name: &'static str) -> Self {
        self.with(dw::DW_AT_linkage_name, Value::Text(name))
    }

    pub(crate) fn refers(self, attribute: DwAt, label: &'static str) -> Self {
        self.with(attribute, Value::Die(label))
    }

    pub(crate) fn range(self, (start, end): (u64, u64)) -> Self {
        self.svma_and_size(BASE + start, end.wrapping_sub(start))
    }

    /// `DW_AT_low_pc` as an address and `DW_AT_high_pc` as a size, whatever they are.
    pub(crate) fn svma_and_size(self, low: u64, size: u64) -> Self {
        self.with(dw::DW_AT_low_pc, Value::Address(low)).with(dw::DW_AT_high_pc, Value::Number(size))
    }

    pub(crate) fn ranges(self, ranges: &[(u64, u64)]) -> Self {
        let svmas = ranges.iter().map(|(start, end)| (BASE + start, BASE + end)).collect();
        self.with(dw::DW_AT_ranges, Value::Ranges(svmas))
    }

    pub(crate) fn child(mut self, child: Die) -> Self {
        self.children.push(child);
        self
    }

    fn with(mut self, attribute: DwAt, value: Value) -> Self {
        self.attributes.push((attribute, value));
        self
    }
}

/// A compile unit: its DIE and its line program.
pub(crate) struct Unit {
    die: Die,
    line_program: Vec<u8>,
}

impl Unit {
    /// A unit that declares this range of image offsets, and whose files are `a.c` and `b.h` in `/src`.
    pub(crate) fn new(range: (u64, u64)) -> Self {
        let die = Die::new(dw::DW_TAG_compile_unit).name("a.c");
        let die = die.with(dw::DW_AT_comp_dir, Value::Text("/src")).with(dw::DW_AT_stmt_list, Value::Lines);
        Self { die: die.range(range), line_program: Vec::new() }
    }

    pub(crate) fn child(mut self, child: Die) -> Self {
        self.die = self.die.child(child);
        self
    }

    /// A sequence of rows (image offset, file, line, is_stmt) that ends at image offset `end`.
    pub(crate) fn sequence(mut self, rows: &[(u64, u64, i64, bool)], end: u64) -> Self {
        self.rows(rows);
        self.set_address(end);
        self.line_program.extend([0, 1, dw::DW_LNE_end_sequence.0]);
        self
    }

    /// A sequence that ends `back` bytes below its last row, as a wrapped DW_LNS_advance_pc.
    pub(crate) fn sequence_that_ends_below(mut self, rows: &[(u64, u64, i64, bool)], back: u64) -> Self {
        self.rows(rows);
        self.line_program.push(dw::DW_LNS_advance_pc.0);
        uleb(&mut self.line_program, back.wrapping_neg());
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
        self.line_program.extend([0, 9, dw::DW_LNE_set_address.0]);
        // Offset 0 is what a linker leaves of dead code: no address at all.
        let svma = if offset == 0 { 0 } else { BASE + offset };
        self.line_program.extend(svma.to_le_bytes());
    }
}

/// The sections of a debug file as they are written.
#[derive(Default)]
struct Sections {
    abbrev: Vec<u8>,
    abbrevs: u64,
    info: Vec<u8>,
    line: Vec<u8>,
    ranges: Vec<u8>,
    labels: Vec<(&'static str, u32)>,
    references: Vec<(usize, &'static str)>,
}

/// The debug file of `units`, with `symbols` (without Mach-O's underscore) at image offsets.
pub(crate) fn debug_file(units: &[Unit], symbols: &[(&str, u64)]) -> Vec<u8> {
    let mut sections = Sections::default();
    units.iter().for_each(|unit| sections.unit(unit));
    sections.abbrev.push(0);
    for (at, label) in &sections.references {
        let (_, offset) = sections.labels.iter().find(|(known, _)| known == label).expect("a label");
        sections.info[*at..*at + 4].copy_from_slice(&offset.to_le_bytes());
    }
    macho(
        &[
            ("__debug_abbrev", &sections.abbrev),
            ("__debug_info", &sections.info),
            ("__debug_line", &sections.line),
            ("__debug_ranges", &sections.ranges),
        ],
        symbols,
    )
}

impl Sections {
    fn unit(&mut self, unit: &Unit) {
        let start = self.info.len();
        self.info.extend([0; 4]);
        self.info.extend([4, 0, 0, 0, 0, 0, 8]);
        let lines = self.line.len() as u32;
        self.die(&unit.die, lines);
        let size = (self.info.len() - start - 4) as u32;
        self.info[start..start + 4].copy_from_slice(&size.to_le_bytes());
        self.line_program(&unit.line_program);
    }

    fn die(&mut self, die: &Die, lines: u32) {
        self.labels.push((die.label, self.info.len() as u32));
        self.abbrevs += 1;
        uleb(&mut self.abbrev, self.abbrevs);
        uleb(&mut self.info, self.abbrevs);
        uleb(&mut self.abbrev, die.tag.0.into());
        self.abbrev.push(u8::from(!die.children.is_empty()));
        for (attribute, value) in &die.attributes {
            uleb(&mut self.abbrev, attribute.0.into());
            let form = self.value(value, lines);
            uleb(&mut self.abbrev, form.0.into());
        }
        self.abbrev.extend([0, 0]);
        die.children.iter().for_each(|child| self.die(child, lines));
        if !die.children.is_empty() {
            self.info.push(0);
        }
    }

    fn value(&mut self, value: &Value, lines: u32) -> DwForm {
        match value {
            Value::Text(text) => {
                self.info.extend(text.as_bytes());
                self.info.push(0);
                dw::DW_FORM_string
            }
            Value::Address(address) => {
                self.info.extend(address.to_le_bytes());
                dw::DW_FORM_addr
            }
            Value::Number(number) => {
                self.info.extend(number.to_le_bytes());
                dw::DW_FORM_data8
            }
            Value::Die(label) => {
                self.references.push((self.info.len(), label));
                self.info.extend([0; 4]);
                dw::DW_FORM_ref_addr
            }
            Value::Lines => {
                self.info.extend(lines.to_le_bytes());
                dw::DW_FORM_sec_offset
            }
            Value::Ranges(ranges) => {
                self.info.extend((self.ranges.len() as u32).to_le_bytes());
                // A base of 0 first, so that the addresses stand as they are.
                let stated = ranges.iter().flat_map(|(start, end)| [*start, *end]);
                let numbers = [u64::MAX, 0].into_iter().chain(stated).chain([0, 0]);
                self.ranges.extend(numbers.flat_map(u64::to_le_bytes));
                dw::DW_FORM_sec_offset
            }
        }
    }

    fn line_program(&mut self, program: &[u8]) {
        let mut header = vec![1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0];
        header.extend(b"a.c\0\0\0\0b.h\0\0\0\0\0");
        let size = 2 + 4 + header.len() + program.len();
        self.line.extend((size as u32).to_le_bytes());
        self.line.extend([4, 0]);
        self.line.extend((header.len() as u32).to_le_bytes());
        self.line.extend(header);
        self.line.extend(program);
    }
}

/// A 64-bit arm64 Mach-O file with a `__TEXT` that is not there, as in dSYMs, and these sections in `__DWARF`.
fn macho(sections: &[(&str, &Vec<u8>)], symbols: &[(&str, u64)]) -> Vec<u8> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let name = |name: &str| {
        let mut bytes = name.as_bytes().to_vec();
        bytes.resize(16, 0);
        bytes
    };
    let commands_size = (72 + 80) + (72 + 80 * sections.len()) + 24;
    let mut data_offset = 32 + commands_size;
    let (mut out, mut data) = (Vec::new(), Vec::new());
    out.extend(words(&[0xfeed_facf, 0x0100_000c, 0, 10, 3, commands_size as u32, 0, 0]));
    let segment = |segment: &str, address: u64, size: u64, file: (usize, usize), sections: usize| {
        let mut command = words(&[0x19, (72 + 80 * sections) as u32]);
        command.extend(name(segment));
        command.extend([address, size, file.0 as u64, file.1 as u64].iter().flat_map(|n| n.to_le_bytes()));
        command.extend(words(&[7, 7, sections as u32, 0]));
        command
    };
    let section = |section: &str, segment: &str, address: u64, size: u64, offset: usize, flags: u32| {
        let mut command = [name(section), name(segment)].concat();
        command.extend([address, size].iter().flat_map(|n| n.to_le_bytes()));
        command.extend(words(&[offset as u32, 0, 0, 0, flags, 0, 0, 0]));
        command
    };
    out.extend(segment("__TEXT", BASE, 0x4000, (0, 0), 1));
    out.extend(section("__text", "__TEXT", BASE + CODE.start, CODE.end - CODE.start, 0, 0x8000_0400));
    let size = sections.iter().map(|(_, bytes)| bytes.len()).sum();
    out.extend(segment("__DWARF", BASE + 0x8000, 0x10_0000, (data_offset, size), sections.len()));
    for (title, bytes) in sections {
        let address = BASE + 0x8000 + data.len() as u64;
        out.extend(section(title, "__DWARF", address, bytes.len() as u64, data_offset, 0x0200_0000));
        data.extend(*bytes);
        data_offset += bytes.len();
    }
    let (mut table, mut strings) = (Vec::new(), vec![0]);
    for (symbol, offset) in symbols {
        table.extend((strings.len() as u32).to_le_bytes());
        table.extend([0x0f, 1, 0, 0]);
        table.extend((BASE + offset).to_le_bytes());
        strings.extend([b"_", symbol.as_bytes(), &[0]].concat());
    }
    let strings_offset = data_offset + table.len();
    out.extend(words(&[2, 24, data_offset as u32, symbols.len() as u32]));
    out.extend(words(&[strings_offset as u32, strings.len() as u32]));
    [out, data, table, strings].concat()
}

fn uleb(out: &mut Vec<u8>, mut value: u64) {
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
