//! Unit headers and root entries.

use std::fmt;
use std::sync::Arc;

use gimli::{
    Abbreviations, AttributeValue, DebugLineOffset, DwLang, Dwarf, Section as _, UnitHeader, UnitType,
    constants,
};

use super::attributes::{Attributes, text};
use super::slots::Slot;
use crate::image::Reader;
use crate::limits;

/// The unit headers of a section.
#[derive(Default)]
pub(crate) struct Headers<'d> {
    /// Those of all units but type units, up to the first unreadable one. Headers beyond the limit of [`limits::units`]
    /// count as unreadable.
    pub(crate) units: Vec<UnitHeader<Reader<'d>>>,
    /// The number of type units. They have no code, and entries do not refer to them by offset.
    pub(crate) types: u64,
    /// The offset and the error of the unreadable header.
    pub(crate) error: Option<(usize, HeaderError)>,
}

/// Why a header, and all headers after it, are not read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    Damaged(gimli::Error),
    /// There are more units than this limit.
    TooMany(usize),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(error) => error.fmt(f),
            Self::TooMany(limit) => write!(f, "the limit is {limit} units; those from here on are left out"),
        }
    }
}

/// The unit headers of `dwarf`.
pub(crate) fn headers<'d>(dwarf: &Dwarf<Reader<'d>>) -> Headers<'d> {
    let limit = limits::units(dwarf.debug_info.reader().len());
    let mut headers = Headers::default();
    let (mut iterator, mut end) = (dwarf.units(), 0);
    loop {
        let header = match iterator.next() {
            Ok(Some(header)) => header,
            Ok(None) => return headers,
            Err(error) => {
                headers.error = Some((end, HeaderError::Damaged(error)));
                return headers;
            }
        };
        end = offset_of(&header) + header.length_including_self();
        if matches!(header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. }) {
            headers.types += 1;
        } else if headers.units.len() < limit {
            headers.units.push(header);
        } else {
            headers.error = Some((offset_of(&header), HeaderError::TooMany(limit)));
            return headers;
        }
    }
}

/// The offset of the header in `.debug_info`.
pub(crate) fn offset_of(header: &UnitHeader<Reader<'_>>) -> usize {
    header.debug_info_offset().map_or(0, |offset| offset.0)
}

/// A unit without its line program and its abbreviations, and other attributes of its root entry. These are left out
/// because they can be large.
pub(crate) struct Root<'d> {
    pub(crate) unit: gimli::Unit<Reader<'d>>,
    /// The attributes that state its code.
    pub(crate) code: Attributes<'d>,
    /// `DW_AT_stmt_list`. It is `None` for partial units and type units, which have no code.
    pub(crate) lines: Option<DebugLineOffset>,
    pub(crate) language: Option<DwLang>,
    /// For a skeleton unit, the name of the file with its split unit.
    pub(crate) dwo_name: Option<&'d [u8]>,
}

impl<'d> Root<'d> {
    /// Reads a unit's root entry. Returns `None` for a unit without entries. (`gimli::Unit::new` also parses the header
    /// of the line program, which can be large and which any number of units may share.)
    pub(crate) fn read(
        dwarf: &Dwarf<Reader<'d>>,
        header: UnitHeader<Reader<'d>>,
        abbreviations: &Abbreviations,
    ) -> gimli::Result<Option<Self>> {
        let mut unit = empty_unit(header, dwarf.file_type);
        let (mut name, mut comp_dir, mut dwo_name, mut code) = (None, None, None, Attributes::default());
        let (mut lines, mut language) = (None, None);
        if header.root_offset().0 == header.length_including_self() {
            // Some dSYMs have units without an entry.
            return Ok(None);
        }
        let mut entries = header.entries_raw(abbreviations, None)?;
        let root = entries.read_abbreviation()?.ok_or(gimli::Error::MissingUnitDie)?;
        let has_code = !matches!(root.tag(), constants::DW_TAG_partial_unit | constants::DW_TAG_type_unit);
        for specification in root.attributes() {
            let attribute = entries.read_attribute(*specification)?;
            match (attribute.name(), attribute.value()) {
                (constants::DW_AT_name, value) => name = Some(value),
                (constants::DW_AT_comp_dir, value) => comp_dir = Some(value),
                (constants::DW_AT_low_pc, value) => code.set(Slot::LowPc, value),
                (constants::DW_AT_high_pc, value) => code.set(Slot::HighPc, value),
                (constants::DW_AT_ranges, value) => code.set(Slot::Ranges, value),
                (constants::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) if has_code => {
                    lines = Some(offset);
                }
                (constants::DW_AT_language, AttributeValue::Language(value)) => language = Some(value),
                (constants::DW_AT_dwo_name | constants::DW_AT_GNU_dwo_name, value) => dwo_name = Some(value),
                (_, AttributeValue::DwoId(id)) => unit.dwo_id = unit.dwo_id.or(Some(id)),
                (_, AttributeValue::DebugStrOffsetsBase(base)) => unit.str_offsets_base = base,
                (_, AttributeValue::DebugAddrBase(base)) => unit.addr_base = base,
                (_, AttributeValue::DebugRngListsBase(base)) => unit.rnglists_base = base,
                (_, AttributeValue::DebugLocListsBase(base)) => unit.loclists_base = base,
                _ => {}
            }
        }
        // These values need the base attributes, which may come after them.
        let string = |value: Option<_>| value.and_then(|value| text(dwarf, &unit, value));
        let (name, comp_dir, dwo_name) = (string(name), string(comp_dir), string(dwo_name));
        let low = code.get(Slot::LowPc).and_then(|low| dwarf.attr_address(&unit, low).ok().flatten());
        let reader = |text| Reader::new(text, gimli::LittleEndian);
        (unit.name, unit.comp_dir, unit.low_pc) = (name.map(reader), comp_dir.map(reader), low.unwrap_or(0));
        Ok(Some(Self { unit, code, lines, language, dwo_name }))
    }
}

fn empty_unit(header: UnitHeader<Reader<'_>>, file: gimli::DwarfFileType) -> gimli::Unit<Reader<'_>> {
    let encoding = header.encoding();
    gimli::Unit {
        header,
        abbreviations: Arc::default(),
        name: None,
        comp_dir: None,
        low_pc: 0,
        str_offsets_base: gimli::DebugStrOffsetsBase::default_for_encoding_and_file(encoding, file),
        addr_base: gimli::DebugAddrBase(0),
        loclists_base: gimli::DebugLocListsBase::default_for_encoding_and_file(encoding, file),
        rnglists_base: gimli::DebugRngListsBase::default_for_encoding_and_file(encoding, file),
        line_program: None,
        dwo_id: match header.type_() {
            UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_past_the_limit_are_left_out_with_a_reason() {
        // The length of the rest, version 4, the offset of the abbreviations, the address size, and an entry.
        let unit = [8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 1];
        let headers_of = |count: usize| {
            let info = unit.repeat(count);
            let debug_info = gimli::DebugInfo::new(&info, gimli::LittleEndian);
            let dwarf = Dwarf::<Reader<'_>> { debug_info, ..Dwarf::default() };
            let Headers { units, error, .. } = headers(&dwarf);
            (units.len(), error)
        };
        assert_eq!(headers_of(limits::UNITS), (limits::UNITS, None));
        let limit = limits::units(12 * 100_000);
        assert_eq!(headers_of(100_000), (limit, Some((12 * limit, HeaderError::TooMany(limit)))));
    }

    #[test]
    fn type_units_do_not_count_as_units() {
        // The length of the rest, version 5, DW_UT_type or DW_UT_compile, the address size, the offset of the
        // abbreviations, the signature and the offset of the type, and an entry.
        let type_unit = [&[21, 0, 0, 0, 5, 0, 2, 8, 0, 0, 0, 0][..], &[7; 8], &[24, 0, 0, 0], &[1]].concat();
        let unit = [9, 0, 0, 0, 5, 0, 1, 8, 0, 0, 0, 0, 1];
        let types = 2 * limits::units(0);
        let info = [&unit[..], &type_unit.repeat(types), &unit].concat();
        let debug_info = gimli::DebugInfo::new(&info, gimli::LittleEndian);
        let dwarf = Dwarf::<Reader<'_>> { debug_info, ..Dwarf::default() };
        let Headers { units, types: found, error } = headers(&dwarf);
        assert_eq!((units.len(), found, error), (2, types as u64, None));
        assert_eq!(offset_of(&units[1]), 13 + types * type_unit.len());
    }
}
