//! The attributes of functions that the build reads, and the classes of their values.

use gimli::{
    AttributeSpecification, AttributeValue, DebugAddrIndex, DebugInfoOffset, DebugLineStrOffset,
    DebugRngListsIndex, DebugStrOffset, DebugStrOffsetsIndex, DwAt, RawRangeListsOffset, UnitOffset,
    constants,
};

use crate::image::Reader;

/// An attribute of a function that the build reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    LowPc,
    HighPc,
    EntryPc,
    Ranges,
    Name,
    LinkageName,
    Origin,
    Specification,
    CallFile,
    CallLine,
    LineSequence,
}

/// The number of slots.
pub(super) const SLOTS: usize = Slot::LineSequence as usize + 1;
/// The offset in `.debug_line` of the sequence that has the function's rows. LLVM writes it from version 20 on.
const DW_AT_LLVM_STMT_SEQUENCE: DwAt = DwAt(0x3e0c);

impl Slot {
    pub(crate) fn of(name: DwAt) -> Option<Self> {
        Some(match name {
            constants::DW_AT_low_pc => Self::LowPc,
            constants::DW_AT_high_pc => Self::HighPc,
            constants::DW_AT_entry_pc => Self::EntryPc,
            constants::DW_AT_ranges => Self::Ranges,
            constants::DW_AT_name => Self::Name,
            constants::DW_AT_linkage_name | constants::DW_AT_MIPS_linkage_name => Self::LinkageName,
            constants::DW_AT_abstract_origin => Self::Origin,
            constants::DW_AT_specification => Self::Specification,
            constants::DW_AT_call_file => Self::CallFile,
            constants::DW_AT_call_line => Self::CallLine,
            DW_AT_LLVM_STMT_SEQUENCE => Self::LineSequence,
            _ => return None,
        })
    }

    /// Whether the attribute may have a value of this class (DWARF 5, table 7.5). Other values are read by gimli.
    pub(crate) fn takes(self, class: Class) -> bool {
        match self {
            Self::LowPc => matches!(class, Class::Address | Class::AddressIndex),
            Self::HighPc | Self::EntryPc => {
                matches!(class, Class::Address | Class::AddressIndex | Class::Constant)
            }
            Self::Ranges => matches!(class, Class::RangeList | Class::RangeListIndex),
            Self::Name | Self::LinkageName => {
                matches!(class, Class::Text | Class::TextIndex | Class::TextSup | Class::LineText)
            }
            Self::Origin | Self::Specification => {
                matches!(class, Class::InUnit | Class::InFile | Class::InSup)
            }
            Self::CallFile | Self::CallLine => matches!(class, Class::Constant),
            // Before DWARF 4 constants were the form of offsets.
            Self::LineSequence => matches!(class, Class::LineOffset | Class::Constant),
        }
    }
}

/// The class of an attribute's value, which is a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Class {
    /// There is no such attribute.
    #[default]
    None,
    Address,
    AddressIndex,
    Constant,
    RangeList,
    RangeListIndex,
    LineOffset,
    Text,
    TextIndex,
    TextSup,
    LineText,
    InUnit,
    InFile,
    InSup,
    /// The entry has the text itself.
    Inline,
    /// A class that the attribute cannot have.
    Other,
}

impl Class {
    /// The class of a value, and its number.
    pub(super) fn of(value: &AttributeValue<Reader<'_>>) -> (Self, u64) {
        match *value {
            AttributeValue::Addr(address) => (Self::Address, address),
            AttributeValue::DebugAddrIndex(index) => (Self::AddressIndex, index.0 as u64),
            AttributeValue::RangeListsRef(offset) => (Self::RangeList, offset.0 as u64),
            AttributeValue::DebugRngListsIndex(index) => (Self::RangeListIndex, index.0 as u64),
            AttributeValue::DebugStrRef(offset) => (Self::Text, offset.0 as u64),
            AttributeValue::DebugStrOffsetsIndex(index) => (Self::TextIndex, index.0 as u64),
            AttributeValue::DebugStrRefSup(offset) => (Self::TextSup, offset.0 as u64),
            AttributeValue::DebugLineStrRef(offset) => (Self::LineText, offset.0 as u64),
            AttributeValue::UnitRef(offset) => (Self::InUnit, offset.0 as u64),
            AttributeValue::DebugInfoRef(offset) => (Self::InFile, offset.0 as u64),
            AttributeValue::DebugInfoRefSup(offset) => (Self::InSup, offset.0 as u64),
            AttributeValue::FileIndex(index) => (Self::Constant, index),
            AttributeValue::SecOffset(offset) => (Self::LineOffset, offset as u64),
            ref other => other.udata_value().map_or((Self::Other, 0), |number| (Self::Constant, number)),
        }
    }

    /// The value of this class with `number`, as [`gimli::Attribute::value`] returns it. Returns `None` if it is too
    /// large for an offset on this machine.
    #[inline]
    pub(super) fn value<'d>(self, number: u64) -> Option<AttributeValue<Reader<'d>>> {
        let offset = || usize::try_from(number).ok();
        Some(match self {
            Self::Address => AttributeValue::Addr(number),
            Self::AddressIndex => AttributeValue::DebugAddrIndex(DebugAddrIndex(offset()?)),
            Self::Constant => AttributeValue::Udata(number),
            Self::RangeList => AttributeValue::RangeListsRef(RawRangeListsOffset(offset()?)),
            Self::RangeListIndex => AttributeValue::DebugRngListsIndex(DebugRngListsIndex(offset()?)),
            Self::LineOffset => AttributeValue::SecOffset(offset()?),
            Self::Text => AttributeValue::DebugStrRef(DebugStrOffset(offset()?)),
            Self::TextIndex => AttributeValue::DebugStrOffsetsIndex(DebugStrOffsetsIndex(offset()?)),
            Self::TextSup => AttributeValue::DebugStrRefSup(DebugStrOffset(offset()?)),
            Self::LineText => AttributeValue::DebugLineStrRef(DebugLineStrOffset(offset()?)),
            Self::InUnit => AttributeValue::UnitRef(UnitOffset(offset()?)),
            Self::InFile => AttributeValue::DebugInfoRef(DebugInfoOffset(offset()?)),
            Self::InSup => AttributeValue::DebugInfoRefSup(DebugInfoOffset(offset()?)),
            Self::None | Self::Inline | Self::Other => AttributeValue::Flag(true),
        })
    }
}

/// Whether an entry with these attributes states the addresses of its code.
pub(crate) fn states_code(specifications: &[AttributeSpecification]) -> bool {
    let stated = |name| matches!(name, constants::DW_AT_low_pc | constants::DW_AT_ranges);
    specifications.iter().any(|specification| stated(specification.name()))
}
