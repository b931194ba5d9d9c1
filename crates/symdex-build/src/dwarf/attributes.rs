//! The one place where attributes of functions are matched.

use gimli::{
    AttributeSpecification, AttributeValue, DebugAddrIndex, DebugInfoOffset, DebugLineStrOffset,
    DebugRngListsIndex, DebugStrOffset, DebugStrOffsetsIndex, DwAt, Dwarf, EntriesRaw, RangeListsOffset,
    RawRangeListsOffset, RawRngListEntry, Section as _, UnitOffset, constants,
};

use super::shapes::{Step, Then};
use crate::image::Reader;
use crate::symbols::name_at;

/// What the builder wants to know of a `DW_TAG_subprogram` or a `DW_TAG_inlined_subroutine` (DWARF 5, 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Attributes<'d> {
    pub(crate) low_pc: Option<AttributeValue<Reader<'d>>>,
    pub(crate) high_pc: Option<AttributeValue<Reader<'d>>>,
    pub(crate) ranges: Option<AttributeValue<Reader<'d>>>,
    pub(crate) name: Option<AttributeValue<Reader<'d>>>,
    pub(crate) linkage_name: Option<AttributeValue<Reader<'d>>>,
    /// `DW_AT_abstract_origin`, else `DW_AT_specification`: where the rest is said.
    pub(crate) origin: Option<AttributeValue<Reader<'d>>>,
    pub(crate) call_file: Option<u64>,
    pub(crate) call_line: Option<u64>,
}

impl<'d> Attributes<'d> {
    /// Reads the attributes that `entries` stands before.
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

    /// Reads the attributes at `at`, which goes behind them, in place of those that are here; `None` where gimli has to, or knows
    /// what is wrong.
    pub(crate) fn read_steps(&mut self, steps: &[Step], bytes: &[u8], at: &mut usize) -> Option<()> {
        *self = Self::default();
        for step in steps {
            *at = at.saturating_add(step.skip as usize);
            match step.then {
                Then::Skip(varying) => *at = varying.behind(bytes, *at)?,
                Then::End => {}
                Then::Read(slot, number, class) => {
                    let number = number.read(bytes, at)?;
                    match slot {
                        Slot::CallFile => self.call_file = Some(number),
                        Slot::CallLine => self.call_line = Some(number),
                        slot => self.set(slot, class.value(number)?),
                    }
                }
            }
        }
        (*at <= bytes.len()).then_some(())
    }

    #[inline]
    fn set(&mut self, slot: Slot, value: AttributeValue<Reader<'d>>) {
        match slot {
            Slot::LowPc => self.low_pc = Some(value),
            Slot::HighPc => self.high_pc = Some(value),
            Slot::Ranges => self.ranges = Some(value),
            Slot::Name => self.name = Some(value),
            Slot::LinkageName => self.linkage_name = Some(value),
            Slot::Origin => self.origin = Some(value),
            Slot::Specification => self.origin = self.origin.or(Some(value)),
            Slot::CallFile => self.call_file = file_index(&value),
            Slot::CallLine => self.call_line = value.udata_value(),
        }
    }

    /// The entry's ranges as the file states them, in SVMAs, given to `each` one by one; what [`each_of_list`] gives beside
    /// them. `DW_AT_ranges` wins over `DW_AT_low_pc` where an entry has both, as the base of its ranges.
    pub(crate) fn each_range(
        &self,
        dwarf: &Dwarf<Reader<'d>>,
        unit: &gimli::Unit<Reader<'d>>,
        left: &mut u64,
        mut each: impl FnMut(u64, u64),
    ) -> gimli::Result<u64> {
        if let Some(ranges) = self.ranges {
            let list = dwarf.attr_ranges_offset(unit, ranges)?;
            return list.map_or(Ok(0), |list| each_of_list(dwarf, unit, list, left, each));
        }
        let Some(low) = self.low_pc.map(|low| dwarf.attr_address(unit, low)).transpose()?.flatten() else {
            return Ok(0);
        };
        let Some(high_pc) = self.high_pc else { return Ok(0) };
        // Of class constant it is a size, of class address an address (DWARF 5, 2.17.2).
        match high_pc.udata_value() {
            // One that leaves the address space is given as inverted, for the caller to count.
            Some(size) => each(low, low.checked_add(size).unwrap_or(0)),
            None => dwarf.attr_address(unit, high_pc)?.into_iter().for_each(|high| each(low, high)),
        }
        Ok(0)
    }
}

/// The attributes that are wanted of functions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    LowPc,
    HighPc,
    Ranges,
    Name,
    LinkageName,
    Origin,
    Specification,
    CallFile,
    CallLine,
}

impl Slot {
    pub(crate) fn of(name: DwAt) -> Option<Self> {
        Some(match name {
            constants::DW_AT_low_pc => Self::LowPc,
            constants::DW_AT_high_pc => Self::HighPc,
            constants::DW_AT_ranges => Self::Ranges,
            constants::DW_AT_name => Self::Name,
            constants::DW_AT_linkage_name | constants::DW_AT_MIPS_linkage_name => Self::LinkageName,
            constants::DW_AT_abstract_origin => Self::Origin,
            constants::DW_AT_specification => Self::Specification,
            constants::DW_AT_call_file => Self::CallFile,
            constants::DW_AT_call_line => Self::CallLine,
            _ => return None,
        })
    }

    /// Whether a value of this class is what the attribute has (DWARF 5, table 7.5). What else it may have, gimli reads.
    pub(crate) fn takes(self, class: Class) -> bool {
        match self {
            Self::LowPc => matches!(class, Class::Address | Class::AddressIndex),
            Self::HighPc => matches!(class, Class::Address | Class::AddressIndex | Class::Constant),
            Self::Ranges => matches!(class, Class::RangeList | Class::RangeListIndex),
            Self::Name | Self::LinkageName => {
                matches!(class, Class::Text | Class::TextIndex | Class::TextSup | Class::LineText)
            }
            Self::Origin | Self::Specification => {
                matches!(class, Class::InUnit | Class::InFile | Class::InSup)
            }
            Self::CallFile | Self::CallLine => matches!(class, Class::Constant),
        }
    }
}

/// What the number is that an attribute has.
#[derive(Clone, Copy)]
pub(crate) enum Class {
    Address,
    AddressIndex,
    Constant,
    RangeList,
    RangeListIndex,
    Text,
    TextIndex,
    TextSup,
    LineText,
    InUnit,
    InFile,
    InSup,
}

impl Class {
    /// `number` as gimli has it, after [`gimli::Attribute::value`]; `None` where it is no offset on this machine.
    #[inline]
    fn value<'d>(self, number: u64) -> Option<AttributeValue<Reader<'d>>> {
        let offset = || usize::try_from(number).ok();
        Some(match self {
            Self::Address => AttributeValue::Addr(number),
            Self::AddressIndex => AttributeValue::DebugAddrIndex(DebugAddrIndex(offset()?)),
            Self::Constant => AttributeValue::Udata(number),
            Self::RangeList => AttributeValue::RangeListsRef(RawRangeListsOffset(offset()?)),
            Self::RangeListIndex => AttributeValue::DebugRngListsIndex(DebugRngListsIndex(offset()?)),
            Self::Text => AttributeValue::DebugStrRef(DebugStrOffset(offset()?)),
            Self::TextIndex => AttributeValue::DebugStrOffsetsIndex(DebugStrOffsetsIndex(offset()?)),
            Self::TextSup => AttributeValue::DebugStrRefSup(DebugStrOffset(offset()?)),
            Self::LineText => AttributeValue::DebugLineStrRef(DebugLineStrOffset(offset()?)),
            Self::InUnit => AttributeValue::UnitRef(UnitOffset(offset()?)),
            Self::InFile => AttributeValue::DebugInfoRef(DebugInfoOffset(offset()?)),
            Self::InSup => AttributeValue::DebugInfoRefSup(DebugInfoOffset(offset()?)),
        })
    }
}

/// The ranges of a list in SVMAs, given to `each` one by one. How many more it has that state no code: empty ones, inverted ones,
/// and what linkers leave of dropped code.
///
/// None where the list has more than `left` entries, which it is lessened by: any number of entries may share a list.
pub(crate) fn each_of_list<'d>(
    dwarf: &Dwarf<Reader<'d>>,
    unit: &gimli::Unit<Reader<'d>>,
    list: RangeListsOffset,
    left: &mut u64,
    mut each: impl FnMut(u64, u64),
) -> gimli::Result<u64> {
    let mut entries = dwarf.raw_ranges(unit, list)?;
    let mut stated = 0u64;
    // An error comes up again below, behind the ranges before it.
    while let Ok(Some(entry)) = entries.next() {
        *left = left.checked_sub(1).ok_or(gimli::Error::OffsetOutOfBounds(list.0 as u64))?;
        let is_base =
            matches!(entry, RawRngListEntry::BaseAddress { .. } | RawRngListEntry::BaseAddressx { .. });
        stated += u64::from(!is_base);
    }
    let mut ranges = dwarf.ranges(unit, list)?;
    while let Some(range) = ranges.next()? {
        stated = stated.saturating_sub(1);
        each(range.begin, range.end);
    }
    Ok(stated)
}

/// Whether an entry with these attributes has code: it states where.
pub(crate) fn states_code(specifications: &[AttributeSpecification]) -> bool {
    let stated = |name| matches!(name, constants::DW_AT_low_pc | constants::DW_AT_ranges);
    specifications.iter().any(|specification| stated(specification.name()))
}

fn file_index(value: &AttributeValue<Reader<'_>>) -> Option<u64> {
    match value {
        AttributeValue::FileIndex(index) => Some(*index),
        other => other.udata_value(),
    }
}

/// The text of an attribute; `None` where it is none, or does not end. One that is longer than an index may hold is cut where that
/// is plain: in a hostile file every unit and function may be named by the same gigabyte, which `Dwarf::attr_string` reads each time.
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
