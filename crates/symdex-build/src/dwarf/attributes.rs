//! The attributes of one function's entry.

use gimli::{AttributeSpecification, AttributeValue, Dwarf, EntriesRaw, Section as _};

use super::lists::each_of_list;
use super::shapes::{Step, Then, leb, sized};
use super::slots::{Class, SLOTS, Slot};
use crate::image::Reader;
use crate::symbols::name_at;

/// The attributes that a build needs of a `DW_TAG_subprogram` or a `DW_TAG_inlined_subroutine` (DWARF 5, 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Attributes<'d> {
    /// The class of each attribute's value, by slot.
    classes: [Class; SLOTS],
    /// The values, by slot.
    numbers: [u64; SLOTS],
    /// The name and the linkage name, if the entry itself holds the text.
    name: &'d [u8],
    linkage_name: &'d [u8],
}

impl<'d> Attributes<'d> {
    /// Reads the attributes of the entry at the position of `entries`.
    pub(crate) fn read(
        entries: &mut EntriesRaw<'_, Reader<'d>>,
        specifications: &[AttributeSpecification],
    ) -> gimli::Result<Self> {
        let mut attributes = Self::default();
        for specification in specifications {
            let attribute = entries.read_attribute(*specification)?;
            if let Some(slot) = Slot::of(attribute.name()) {
                attributes.set(slot, attribute.value());
            }
        }
        Ok(attributes)
    }

    /// Replaces these attributes by those at `at`, and sets `at` to their end. Returns `None` if gimli has to read
    /// them, for example because they are damaged.
    pub(crate) fn read_steps(&mut self, steps: &[Step], bytes: &[u8], at: &mut usize) -> Option<()> {
        *self = Self::default();
        let mut rest = bytes.get(*at..)?;
        for step in steps {
            match step.then {
                Then::Sized(slot, class, spare) => {
                    self.put(slot, class, sized(spare, rest, step.skip as usize)?);
                }
                Then::End => rest = rest.get(step.skip as usize..)?,
                _ => rest = self.read_odd(step, rest)?,
            }
        }
        *at = bytes.len() - rest.len();
        Some(())
    }

    /// Takes an uncommon step. Returns the bytes from which the next step starts. It is a separate function so that
    /// the common steps need few registers.
    #[inline(never)]
    fn read_odd<'b>(&mut self, step: &Step, rest: &'b [u8]) -> Option<&'b [u8]> {
        let mut at = step.skip as usize;
        match step.then {
            Then::Const(slot, number) => {
                self.put(slot, Class::Constant, u64::from(number));
                return Some(rest);
            }
            Then::Leb(slot, class) => {
                let number = leb(rest, &mut at)?;
                self.put(slot, class, number);
            }
            Then::Skip(varying) => at = varying.end(rest, at)?,
            // `read_steps` takes these itself.
            Then::Sized(..) | Then::End => {}
        }
        rest.get(at..)
    }

    #[inline]
    fn put(&mut self, slot: Slot, class: Class, number: u64) {
        self.classes[slot as usize] = class;
        self.numbers[slot as usize] = number;
    }

    /// Sets an attribute to a value that gimli has read.
    pub(crate) fn set(&mut self, slot: Slot, value: AttributeValue<Reader<'d>>) {
        let (class, number) = match value {
            AttributeValue::String(text) => {
                let own = if slot == Slot::Name { &mut self.name } else { &mut self.linkage_name };
                *own = text.slice();
                (Class::Inline, 0)
            }
            value => Class::of(&value),
        };
        self.put(slot, class, number);
    }

    /// An attribute as gimli's value. A value of an unexpected class becomes a flag.
    pub(crate) fn get(&self, slot: Slot) -> Option<AttributeValue<Reader<'d>>> {
        let inline = if slot == Slot::Name { self.name } else { self.linkage_name };
        match self.classes[slot as usize] {
            Class::None => None,
            Class::Inline => Some(AttributeValue::String(Reader::new(inline, gimli::LittleEndian))),
            class => class.value(self.numbers[slot as usize]),
        }
    }

    /// The reference to the abstract origin or the specification, which has the other attributes.
    pub(crate) fn origin(&self) -> Option<AttributeValue<Reader<'d>>> {
        self.get(Slot::Origin).or_else(|| self.get(Slot::Specification))
    }

    /// A number for the reference of [`Self::origin`]. References to different entries have different numbers.
    #[inline]
    pub(crate) fn origin_key(&self) -> Option<u64> {
        let is_stated = self.classes[Slot::Origin as usize] != Class::None;
        let slot = if is_stated { Slot::Origin } else { Slot::Specification };
        let kind = match self.classes[slot as usize] {
            Class::InUnit => 0,
            Class::InFile => 1,
            Class::InSup => 2,
            _ => return None,
        };
        Some(self.numbers[slot as usize].checked_mul(4)? + kind)
    }

    /// The range of an entry that states only a start address and a size, as most entries do. It equals the range of
    /// [`Self::each_range`].
    #[inline]
    pub(crate) fn plain_range(&self) -> Option<(u64, u64)> {
        let class = |slot| self.classes[slot as usize];
        let is_plain = class(Slot::Ranges) == Class::None && class(Slot::LowPc) == Class::Address;
        let size = self.constant(Slot::HighPc).filter(|_| is_plain)?;
        let low = self.numbers[Slot::LowPc as usize];
        Some((low, low.checked_add(size)?))
    }

    /// The value of an attribute, if it is a constant.
    pub(crate) fn constant(&self, slot: Slot) -> Option<u64> {
        let is_constant = self.classes[slot as usize] == Class::Constant;
        is_constant.then_some(self.numbers[slot as usize])
    }

    /// The offset in `.debug_line` of the sequence that has the rows of a function.
    pub(super) fn line_sequence(&self) -> Option<u64> {
        let is_offset =
            matches!(self.classes[Slot::LineSequence as usize], Class::LineOffset | Class::Constant);
        is_offset.then_some(self.numbers[Slot::LineSequence as usize])
    }

    /// Calls `each` with the entry's ranges as the file states them, in SVMAs. Returns the same as [`each_of_list`]. If
    /// an entry has both `DW_AT_ranges` and `DW_AT_low_pc`, `DW_AT_ranges` states its code.
    pub(crate) fn each_range(
        &self,
        dwarf: &Dwarf<Reader<'d>>,
        unit: &gimli::Unit<Reader<'d>>,
        left: &mut u64,
        mut each: impl FnMut(u64, u64),
    ) -> gimli::Result<u64> {
        if let Some(ranges) = self.get(Slot::Ranges) {
            let list = dwarf.attr_ranges_offset(unit, ranges)?;
            return list.map_or(Ok(0), |list| each_of_list(dwarf, unit, list, left, each));
        }
        let address = |slot| self.get(slot).map_or(Ok(None), |value| dwarf.attr_address(unit, value));
        let Some(low) = address(Slot::LowPc)? else { return Ok(0) };
        // A constant is a size, an address is an address (DWARF 5, 2.17.2).
        match self.constant(Slot::HighPc) {
            // A range that leaves the address space becomes an inverted range, which the caller counts.
            Some(size) => each(low, low.checked_add(size).unwrap_or(0)),
            None => address(Slot::HighPc)?.into_iter().for_each(|high| each(low, high)),
        }
        Ok(0)
    }

    /// The SVMA at which a call enters the function, or `None` if it is unknown. `first` is the start of the first
    /// range that [`Self::each_range`] passes on.
    ///
    /// It is `DW_AT_entry_pc`: an address, or a distance from the base address (DWARF 5, 2.18). Without it, it is the
    /// base address: `DW_AT_low_pc`, else the first listed range (2.17). It need not be the lowest address: GCC lists
    /// `f` before `f.cold`, which may lie below.
    pub(crate) fn entry(
        &self,
        dwarf: &Dwarf<Reader<'d>>,
        unit: &gimli::Unit<Reader<'d>>,
        first: Option<u64>,
    ) -> Option<u64> {
        let address = |slot| dwarf.attr_address(unit, self.get(slot)?).ok().flatten();
        let base = || address(Slot::LowPc).or(first);
        match self.constant(Slot::EntryPc) {
            Some(distance) => base()?.checked_add(distance),
            None => address(Slot::EntryPc).or_else(base),
        }
    }
}

/// The text of an attribute. Returns `None` if the value is not text or the text is unterminated. Text that is longer
/// than an index may hold is cut: in a hostile file every function may have the same gigabyte as its name, and
/// `Dwarf::attr_string` would read it each time.
pub(super) fn text<'d>(
    dwarf: &Dwarf<Reader<'d>>,
    unit: &gimli::Unit<Reader<'d>>,
    value: AttributeValue<Reader<'d>>,
) -> Option<&'d [u8]> {
    let (section, offset) = match value {
        AttributeValue::String(string) => return Some(string.slice()),
        AttributeValue::DebugStrRef(offset) => (dwarf.debug_str.reader(), offset.0),
        AttributeValue::DebugStrOffsetsIndex(index) => {
            (dwarf.debug_str.reader(), dwarf.string_offset(unit, index).ok()?.0)
        }
        AttributeValue::DebugStrRefSup(offset) => (dwarf.sup()?.debug_str.reader(), offset.0),
        AttributeValue::DebugLineStrRef(offset) => (dwarf.debug_line_str.reader(), offset.0),
        _ => return None,
    };
    name_at(section.slice(), offset)
}
