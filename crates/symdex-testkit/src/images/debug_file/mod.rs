//! Mach-O and ELF files with DWARF 2 to 5, written byte by byte, so that they can state anything, valid or not.

mod dwarf;
mod elf;
mod macho;
mod on_disk;
mod split;
mod supplementary;
mod unit;

use gimli::constants::{self as dw, DwAt, DwForm, DwTag};

pub use self::dwarf::{AddressSet, aranges};
pub use self::elf::{Elf, ElfSection, ElfSymbol};
pub use self::macho::{CODE_FLAGS, MachO, Section, Symbol};
pub use self::on_disk::{ID, image, number, object, write};
pub use self::split::{
    debug_addr, library_and_package, of_skeleton, of_split, package, rnglists, split_unit,
};
pub use self::supplementary::{debug_sup, referring, referring_to, supplementary, supplementary_units};
pub use self::unit::Unit;

/// The address of `__TEXT`, from which image offsets count. In files with 32-bit addresses it is 0.
pub const BASE: u64 = 0x1_0000_0000;
/// The image offsets of the code.
pub const CODE: std::ops::Range<u64> = 0x1000..0x3000;

/// All of the code.
pub fn whole() -> (u64, u64) {
    (CODE.start, CODE.end)
}

/// The debug file of `units`, with `symbols` (without Mach-O's underscore) at image offsets.
pub fn debug_file(units: &[Unit], symbols: &[(&str, u64)]) -> Vec<u8> {
    macho(units, symbols).bytes()
}

/// The same, as a [`MachO`].
pub fn macho(units: &[Unit], symbols: &[(&str, u64)]) -> MachO {
    let symbols = symbols.iter().map(|(name, offset)| Symbol::function(name, BASE + offset)).collect();
    MachO { debug: dwarf::sections(units).0, symbols, ..MachO::default() }
}

/// The debug sections of `units`, under the names that Mach-O has for them.
pub fn debug_sections(units: &[Unit]) -> Vec<(&'static str, Vec<u8>)> {
    dwarf::sections(units).0
}

/// The offset of each unit's header in `.debug_info`.
pub fn unit_offsets(units: &[Unit]) -> Vec<u64> {
    dwarf::sections(units).1
}

/// The offset of the DIE with this label in `.debug_info`.
pub fn die_offset(units: &[Unit], label: &str) -> u64 {
    dwarf::labels(units).iter().find(|(known, _)| *known == label).expect("a label").1
}

/// A debugging information entry.
pub struct Die {
    tag: DwTag,
    label: &'static str,
    attributes: Vec<(DwAt, Value)>,
    children: Vec<Die>,
    /// How often the entry stands in the unit, one after the other.
    copies: usize,
}

pub enum Value {
    Text(&'static str),
    /// The string at this offset of `.debug_str`, which has one string of 30,000 `x`.
    TextAt(u32),
    Bytes(&'static [u8]),
    Address(u64),
    Number(u64),
    /// The DIE with this label, in any unit.
    Die(&'static str),
    /// The DIE with this label in the same unit.
    DieOfUnit(&'static str),
    /// This offset of `.debug_info`.
    DieAt(u64),
    /// The line program of the unit.
    Lines,
    /// Ranges, as SVMAs.
    Ranges(Vec<(u64, u64)>),
    /// Ranges counted from the unit's `DW_AT_low_pc`.
    RelativeRanges(Vec<(u64, u64)>),
    /// The ranges stated at this offset of `.debug_ranges`.
    RangesAt(u32),
    /// These bytes, in this form.
    Form(DwForm, Vec<u8>),
}

impl Die {
    pub fn new(tag: DwTag) -> Self {
        Self { tag, label: "", attributes: Vec::new(), children: Vec::new(), copies: 1 }
    }

    /// A subprogram at these image offsets.
    pub fn function(name: &'static str, range: (u64, u64)) -> Self {
        Self::new(dw::DW_TAG_subprogram).name(name).range(range)
    }

    /// An inlined subroutine of the function labelled `origin`, called in line `line` of file 1.
    pub fn inlined(origin: &'static str, line: u64) -> Self {
        let die = Self::new(dw::DW_TAG_inlined_subroutine).refers(dw::DW_AT_abstract_origin, origin);
        die.with(dw::DW_AT_call_file, Value::Number(1)).with(dw::DW_AT_call_line, Value::Number(line))
    }

    pub fn label(mut self, label: &'static str) -> Self {
        self.label = label;
        self
    }

    pub fn name(self, name: &'static str) -> Self {
        self.with(dw::DW_AT_name, Value::Text(name))
    }

    pub fn linkage_name(self, name: &'static str) -> Self {
        self.with(dw::DW_AT_linkage_name, Value::Text(name))
    }

    pub fn refers(self, attribute: DwAt, label: &'static str) -> Self {
        self.with(attribute, Value::Die(label))
    }

    pub fn range(self, (start, end): (u64, u64)) -> Self {
        self.svma_and_size(BASE + start, end.wrapping_sub(start))
    }

    /// With `DW_AT_low_pc` as an address and `DW_AT_high_pc` as a size, valid or not.
    pub fn svma_and_size(self, low: u64, size: u64) -> Self {
        self.with(dw::DW_AT_low_pc, Value::Address(low)).with(dw::DW_AT_high_pc, Value::Number(size))
    }

    /// With `DW_AT_low_pc` and `DW_AT_high_pc` as addresses, valid or not.
    pub fn with_end(self, low: u64, high: u64) -> Self {
        self.with(dw::DW_AT_low_pc, Value::Address(low)).with(dw::DW_AT_high_pc, Value::Address(high))
    }

    pub fn ranges(self, ranges: &[(u64, u64)]) -> Self {
        let svmas = ranges.iter().map(|(start, end)| (BASE + start, BASE + end)).collect();
        self.with(dw::DW_AT_ranges, Value::Ranges(svmas))
    }

    pub fn child(mut self, child: Die) -> Self {
        self.children.push(child);
        self
    }

    /// The entry `copies` times, one after the other, with one abbreviation. It must have no children.
    pub fn copies(self, copies: usize) -> Self {
        Self { copies, ..self }
    }

    pub fn with(mut self, attribute: DwAt, value: Value) -> Self {
        self.attributes.push((attribute, value));
        self
    }
}
