//! Debug files made up in memory: Mach-O and ELF files with DWARF 2 to 5, byte by byte, so that they may state anything.
#![allow(dead_code, reason = "each test file uses some of it")]

mod answers;
mod dwarf;
mod elf;
mod macho;
mod on_disk;
pub(crate) mod same_answers;
mod split;
mod unit;

use gimli::constants::{self as dw, DwAt, DwForm, DwTag};

#[allow(unused_imports, reason = "each test file uses some of them")]
pub(crate) use answers::{answers, built, found, image_answers, peer};
#[allow(unused_imports, reason = "each test file uses some of them")]
pub(crate) use dwarf::{AddressSet, aranges};
#[allow(unused_imports, reason = "each test file uses some of them")]
pub(crate) use elf::{Elf, ElfSection, ElfSymbol};
#[allow(unused_imports, reason = "each test file uses some of them")]
pub(crate) use macho::{CODE_FLAGS, MachO, Section, Symbol};
#[allow(unused_imports, reason = "each test file uses some of them")]
pub(crate) use on_disk::{ID, all, classes, image, index, number, object, write};
#[allow(unused_imports, reason = "each test file uses some of them")]
pub(crate) use split::{debug_addr, of_skeleton, of_split, rnglists, split_unit};
pub(crate) use unit::Unit;

/// Where `__TEXT` begins, and what image offsets count from. Files with addresses of 32 bits have none of it: they begin at 0.
pub(crate) const BASE: u64 = 0x1_0000_0000;
/// The image offsets of the code.
pub(crate) const CODE: std::ops::Range<u64> = 0x1000..0x3000;

/// All of the code.
pub(crate) fn whole() -> (u64, u64) {
    (CODE.start, CODE.end)
}

/// The debug file of `units`, with `symbols` (without Mach-O's underscore) at image offsets.
pub(crate) fn debug_file(units: &[Unit], symbols: &[(&str, u64)]) -> Vec<u8> {
    macho(units, symbols).bytes()
}

/// The same, before it is written.
pub(crate) fn macho(units: &[Unit], symbols: &[(&str, u64)]) -> MachO {
    let symbols = symbols.iter().map(|(name, offset)| Symbol::function(name, BASE + offset)).collect();
    MachO { debug: dwarf::sections(units).0, symbols, ..MachO::default() }
}

/// The debug sections of `units`, under the names that Mach-O has for them.
pub(crate) fn debug_sections(units: &[Unit]) -> Vec<(&'static str, Vec<u8>)> {
    dwarf::sections(units).0
}

/// Where the header of each unit lies in `.debug_info`.
pub(crate) fn unit_offsets(units: &[Unit]) -> Vec<u64> {
    dwarf::sections(units).1
}

/// Where the DIE with this label lies in `.debug_info`.
pub(crate) fn die_offset(units: &[Unit], label: &str) -> u64 {
    dwarf::labels(units).iter().find(|(known, _)| *known == label).expect("a label").1
}

/// A debugging information entry.
pub(crate) struct Die {
    tag: DwTag,
    label: &'static str,
    attributes: Vec<(DwAt, Value)>,
    children: Vec<Die>,
}

pub(crate) enum Value {
    Text(&'static str),
    /// A string from this offset on of a section `.debug_str` that has [`debug_str`] alone.
    TextAt(u32),
    Bytes(&'static [u8]),
    Address(u64),
    Number(u64),
    /// The DIE with this label, in whatever unit.
    Die(&'static str),
    /// The DIE with this label in the same unit.
    DieOfUnit(&'static str),
    /// Whatever is at this offset of `.debug_info`.
    DieAt(u64),
    /// The line program of the unit.
    Lines,
    /// Ranges, as SVMAs.
    Ranges(Vec<(u64, u64)>),
    /// Ranges counted from the unit's `DW_AT_low_pc`.
    RelativeRanges(Vec<(u64, u64)>),
    /// The ranges stated at this offset of `.debug_ranges`.
    RangesAt(u32),
    /// Bytes in whatever form.
    Form(DwForm, Vec<u8>),
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

    /// `DW_AT_low_pc` and `DW_AT_high_pc` as addresses, whatever they are.
    pub(crate) fn with_end(self, low: u64, high: u64) -> Self {
        self.with(dw::DW_AT_low_pc, Value::Address(low)).with(dw::DW_AT_high_pc, Value::Address(high))
    }

    pub(crate) fn ranges(self, ranges: &[(u64, u64)]) -> Self {
        let svmas = ranges.iter().map(|(start, end)| (BASE + start, BASE + end)).collect();
        self.with(dw::DW_AT_ranges, Value::Ranges(svmas))
    }

    pub(crate) fn child(mut self, child: Die) -> Self {
        self.children.push(child);
        self
    }

    pub(crate) fn with(mut self, attribute: DwAt, value: Value) -> Self {
        self.attributes.push((attribute, value));
        self
    }
}
