//! Unit headers, abbreviation tables, and root entries.

use std::sync::Arc;

use gimli::{
    Abbreviations, AttributeValue, DebugLineOffset, DwLang, Dwarf, Reader as _, Section as _, UnitHeader,
    UnitType, constants,
};
use rustc_hash::FxHashMap;

use super::attributes::{Attributes, text};
use super::slots::Slot;
use crate::keyed::KeyedMap;
use crate::limits;
use crate::reader::Reader;
use crate::report::Problems;

/// The unit headers before the first unreadable one, and the offset and error of the unreadable one. Headers beyond the
/// limit of [`limits::units`] count as unreadable.
pub(crate) fn headers<'d>(
    dwarf: &Dwarf<Reader<'d>>,
) -> (Vec<UnitHeader<Reader<'d>>>, Option<(usize, String)>) {
    let limit = limits::units(dwarf.debug_info.reader().len());
    let mut headers = Vec::new();
    let mut iterator = dwarf.units();
    loop {
        match iterator.next() {
            Ok(Some(header)) if headers.len() >= limit => {
                let error = format!("the limit is {limit} units; those from here on are left out");
                return (headers, Some((offset_of(&header), error)));
            }
            Ok(Some(header)) => headers.push(header),
            Ok(None) => return (headers, None),
            Err(error) => {
                let after = |last: &UnitHeader<_>| offset_of(last) + last.length_including_self();
                let next = headers.last().map_or(0, after);
                return (headers, Some((next, error.to_string())));
            }
        }
    }
}

/// The offset of the header in `.debug_info`.
pub(crate) fn offset_of(header: &UnitHeader<Reader<'_>>) -> usize {
    header.debug_info_offset().map_or(0, |offset| offset.0)
}

/// Reads abbreviation tables. A table that units share is read once.
///
/// Tables may overlap, so a small file could take any amount of memory. Once the tables read have a few times the size
/// of their section, all further tables are rejected. Units with a rejected table are left out.
pub(crate) struct TableReader {
    /// How many bytes of tables may still be read.
    left: usize,
    /// The tables by section address, section size, and table offset. Units of a package may have separate sections.
    tables: KeyedMap<(usize, usize, usize), Arc<Abbreviations>>,
}

impl TableReader {
    /// A reader for tables in a section or file of `size` bytes.
    pub(crate) fn new(size: usize) -> Self {
        Self { left: size.saturating_mul(4).saturating_add(1 << 20), tables: KeyedMap::default() }
    }

    /// The table that the unit of `header` refers to.
    pub(crate) fn read<'d>(
        &mut self,
        dwarf: &Dwarf<Reader<'d>>,
        header: &UnitHeader<Reader<'d>>,
    ) -> Result<Arc<Abbreviations>, String> {
        let (section, offset) = (dwarf.debug_abbrev.reader().slice(), header.debug_abbrev_offset().0);
        let place = (section.as_ptr().addr(), section.len(), offset);
        if let Some(table) = self.tables.get(&place) {
            return Ok(Arc::clone(table));
        }
        // A damaged table counts too, because reading it takes time.
        let (size, most) = table_size(section.get(offset..).unwrap_or_default(), self.left);
        self.left -= size;
        if self.left == 0 {
            return Err("its abbreviations overlap too many others".to_owned());
        }
        if most > limits::ATTRIBUTES {
            return Err(format!(
                "an abbreviation has {most} attributes, the limit is {}",
                limits::ATTRIBUTES
            ));
        }
        let table = dwarf.abbreviations(header).map_err(|error| error.to_string())?;
        self.tables.insert(place, Arc::clone(&table));
        Ok(table)
    }
}

/// The abbreviation tables of units with these headers, by their offsets.
pub(crate) fn tables<'d>(
    dwarf: &Dwarf<Reader<'d>>,
    headers: &[UnitHeader<Reader<'d>>],
    problems: &mut Problems,
) -> FxHashMap<usize, Arc<Abbreviations>> {
    let mut tables = FxHashMap::default();
    let mut reader = TableReader::new(dwarf.debug_abbrev.reader().len());
    for header in headers {
        match reader.read(dwarf, header) {
            Ok(table) => {
                tables.insert(header.debug_abbrev_offset().0, table);
            }
            Err(error) => problems.unit(offset_of(header), &error),
        }
    }
    tables
}

/// The size of the abbreviation table at the beginning of `bytes`, at most `limit`, and the greatest number of
/// attributes of an abbreviation (DWARF 5, 7.5.3). For a damaged table, these are the values of its readable part.
fn table_size(bytes: &[u8], limit: usize) -> (usize, usize) {
    let bytes = &bytes[..bytes.len().min(limit)];
    let (mut rest, mut most) = (Reader::new(bytes, gimli::LittleEndian), 0);
    let _end = skip_table(&mut rest, &mut most);
    (bytes.len() - rest.len(), most)
}

fn skip_table(table: &mut Reader<'_>, most: &mut usize) -> gimli::Result<()> {
    while table.read_uleb128()? != 0 {
        let (_tag, _has_children) = (table.read_uleb128()?, table.read_u8()?);
        for attributes in 0.. {
            *most = attributes.max(*most);
            let (attribute, form) = (table.read_uleb128()?, table.read_uleb128()?);
            if (attribute, form) == (0, 0) {
                break;
            }
            if form == u64::from(constants::DW_FORM_implicit_const.0) {
                table.read_sleb128()?;
            }
        }
    }
    Ok(())
}

/// A unit without its line program, and other attributes of its root entry. The line program is left out because its
/// header can be large.
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
        abbreviations: Arc<Abbreviations>,
    ) -> gimli::Result<Option<Self>> {
        let mut unit = empty_unit(header, abbreviations, dwarf.file_type);
        let (mut name, mut comp_dir, mut dwo_name, mut code) = (None, None, None, Attributes::default());
        let (mut lines, mut language) = (None, None);
        let table = Arc::clone(&unit.abbreviations);
        if header.root_offset().0 == header.length_including_self() {
            // Some dSYMs have units without an entry.
            return Ok(None);
        }
        let mut entries = header.entries_raw(&table, None)?;
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

fn empty_unit(
    header: UnitHeader<Reader<'_>>,
    abbreviations: Arc<Abbreviations>,
    file: gimli::DwarfFileType,
) -> gimli::Unit<Reader<'_>> {
    let encoding = header.encoding();
    gimli::Unit {
        header,
        abbreviations,
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
            let (headers, error) = headers(&dwarf);
            (headers.len(), error)
        };
        assert_eq!(headers_of(limits::UNITS), (limits::UNITS, None));
        let limit = limits::units(12 * 100_000);
        let error = format!("the limit is {limit} units; those from here on are left out");
        assert_eq!(headers_of(100_000), (limit, Some((12 * limit, error))));
    }
}
