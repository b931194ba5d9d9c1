//! The units of an image, and the order they are walked in.

use std::sync::Arc;

use gimli::{
    Abbreviations, AttributeValue, DebugLineOffset, DwLang, Reader as _, Section as _, UnitHeader,
    UnitOffset, constants,
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::attributes::Attributes;
use crate::image::{Image, Reader};
use crate::report::Problems;

/// A unit as everything needs it: without its line program, whose header alone can be large.
pub(crate) struct UnitEntry<'d> {
    pub(crate) unit: gimli::Unit<Reader<'d>>,
    /// Where the unit's header lies in `.debug_info`.
    pub(crate) offset: usize,
    /// `DW_AT_stmt_list`.
    pub(crate) lines: Option<DebugLineOffset>,
    pub(crate) language: Option<DwLang>,
    /// The lowest image offset its code is said to have; `None` where nothing is said.
    pub(crate) low: Option<u64>,
}

/// Every unit of `.debug_info`, in file order.
pub(crate) struct Units<'d> {
    pub(crate) all: Vec<UnitEntry<'d>>,
    /// How many units with code `.debug_aranges` does not list.
    pub(crate) not_in_aranges: u64,
}

impl<'d> Units<'d> {
    /// Reads the unit headers and the root entry of each. Units that cannot be read are counted in `problems`.
    pub(crate) fn read(image: &Image<'d>, problems: &mut Problems) -> Self {
        let headers = headers(image, problems);
        let abbreviations = Abbreviation::tables(image, &headers, problems);
        let in_aranges = lowest_in_aranges(image, &headers);
        // Any number of units may share a range list: each gets its part, and so does any number of threads.
        let range_budget = image.range_budget() / headers.len().max(1) as u64 + 256;
        let read = |(index, header): (usize, &UnitHeader<Reader<'d>>)| {
            let table = abbreviations.get(&header.debug_abbrev_offset().0)?;
            let entry = entry(image, *header, Arc::clone(table), in_aranges[index], range_budget);
            let entry =
                entry.map_err(|error| (header.debug_info_offset().map_or(0, |offset| offset.0), error));
            Some((in_aranges[index].is_some(), entry))
        };
        let entries: Vec<_> = headers.par_iter().enumerate().filter_map(read).collect();
        let mut all = Vec::with_capacity(entries.len());
        let mut not_in_aranges = 0;
        for (listed, entry) in entries {
            match entry {
                Ok(None) => {}
                Ok(Some(entry)) => {
                    not_in_aranges += u64::from(entry.low.is_some() && !listed);
                    all.push(entry);
                }
                Err((offset, error)) => problems.unit(offset, &error.to_string()),
            }
        }
        limit_line_programs(image, &mut all, problems);
        Self { all, not_in_aranges }
    }

    /// The unit that holds the entry at `offset` in `.debug_info`, by its number, and the entry's offset in it.
    pub(crate) fn containing(&self, offset: usize) -> Option<(usize, UnitOffset)> {
        let after = self.all.partition_point(|unit| unit.offset <= offset);
        let index = after.checked_sub(1)?;
        let unit = &self.all[index];
        let in_unit = offset - unit.offset;
        (in_unit < unit.unit.header.length_including_self()).then_some((index, UnitOffset(in_unit)))
    }
}

/// The headers of all units, as far as they can be read: a header with a wrong length costs those behind it.
fn headers<'d>(image: &Image<'d>, problems: &mut Problems) -> Vec<UnitHeader<Reader<'d>>> {
    let mut headers = Vec::new();
    let mut iterator = image.dwarf.units();
    loop {
        match iterator.next() {
            Ok(Some(header)) => headers.push(header),
            Ok(None) => return headers,
            Err(error) => {
                let next = headers.last().map_or(0, |last: &UnitHeader<Reader<'d>>| {
                    last.debug_info_offset().map_or(0, |offset| offset.0) + last.length_including_self()
                });
                problems.unit(next, &error.to_string());
                return headers;
            }
        }
    }
}

/// Abbreviation tables.
struct Abbreviation;

impl Abbreviation {
    /// Every table that a unit refers to, read once. Tables may overlap, so that a small file can state more of them than
    /// memory holds: once they have grown to a few times the section, the rest is left out, and so are their units.
    fn tables<'d>(
        image: &Image<'d>,
        headers: &[UnitHeader<Reader<'d>>],
        problems: &mut Problems,
    ) -> FxHashMap<usize, Arc<Abbreviations>> {
        let mut tables = FxHashMap::default();
        let section = image.dwarf.debug_abbrev.reader();
        let mut budget = 4 * section.len() + (1 << 20);
        for header in headers {
            let offset = header.debug_abbrev_offset().0;
            if tables.contains_key(&offset) {
                continue;
            }
            let unit = header.debug_info_offset().map_or(0, |offset| offset.0);
            // Damaged tables take time to read, too.
            budget -= table_size(section.slice().get(offset..).unwrap_or_default(), budget);
            if budget == 0 {
                problems.unit(unit, "its abbreviations overlap too many others");
                continue;
            }
            match image.dwarf.abbreviations(header) {
                Ok(table) => {
                    tables.insert(offset, table);
                }
                Err(error) => problems.unit(unit, &error.to_string()),
            }
        }
        tables
    }
}

/// How many bytes the abbreviation table at the beginning of `bytes` has, or can be read of it (DWARF 5, 7.5.3); at most `limit`.
fn table_size(bytes: &[u8], limit: usize) -> usize {
    let bytes = &bytes[..bytes.len().min(limit)];
    let mut rest = Reader::new(bytes, gimli::LittleEndian);
    let _end = skip_table(&mut rest);
    bytes.len() - rest.len()
}

fn skip_table(table: &mut Reader<'_>) -> gimli::Result<()> {
    while table.read_uleb128()? != 0 {
        let (_tag, _has_children) = (table.read_uleb128()?, table.read_u8()?);
        loop {
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

/// For each unit the lowest image offset that `.debug_aranges` gives it.
///
/// A set names its unit by the offset of the header; some producers write that of the root entry instead.
fn lowest_in_aranges(image: &Image<'_>, headers: &[UnitHeader<Reader<'_>>]) -> Vec<Option<u64>> {
    let mut by_offset = FxHashMap::default();
    for (index, header) in headers.iter().enumerate() {
        let Some(offset) = header.debug_info_offset() else { continue };
        by_offset.insert(offset.0, index);
        by_offset.entry(offset.0 + header.root_offset().0).or_insert(index);
    }
    let mut lowest = vec![None; headers.len()];
    let mut sets = image.aranges.headers();
    while let Ok(Some(set)) = sets.next() {
        let Some(&index) = by_offset.get(&set.debug_info_offset().0) else { continue };
        let mut entries = set.entries();
        while let Ok(Some(entry)) = entries.next() {
            let end = entry.address().saturating_add(entry.length());
            note_lowest(&mut lowest[index], image, entry.address(), end);
        }
    }
    lowest
}

fn note_lowest(lowest: &mut Option<u64>, image: &Image<'_>, start: u64, end: u64) {
    if let Some((start, _)) = image.executable_part(start, end) {
        *lowest = Some(lowest.map_or(start, |lowest| lowest.min(start)));
    }
}

/// Reads a unit's root entry; `None` for a unit without any entries. (`gimli::Unit::new` would parse the line program's header with it, which any number of units may
/// share and which may take any time.)
fn entry<'d>(
    image: &Image<'d>,
    header: UnitHeader<Reader<'d>>,
    abbreviations: Arc<Abbreviations>,
    in_aranges: Option<u64>,
    mut range_budget: u64,
) -> gimli::Result<Option<UnitEntry<'d>>> {
    let dwarf = &image.dwarf;
    let mut unit = empty_unit(header, abbreviations);
    let (mut name, mut comp_dir, mut code) = (None, None, Attributes::default());
    let (mut lines, mut language) = (None, None);
    let table = Arc::clone(&unit.abbreviations);
    if header.root_offset().0 == header.length_including_self() {
        // Some dSYMs have units without a single entry; there is nothing to lose in them.
        return Ok(None);
    }
    let mut entries = header.entries_raw(&table, None)?;
    let root = entries.read_abbreviation()?.ok_or(gimli::Error::MissingUnitDie)?;
    for specification in root.attributes() {
        let attribute = entries.read_attribute(*specification)?;
        match (attribute.name(), attribute.value()) {
            (constants::DW_AT_name, value) => name = Some(value),
            (constants::DW_AT_comp_dir, value) => comp_dir = Some(value),
            (constants::DW_AT_low_pc, value) => code.low_pc = Some(value),
            (constants::DW_AT_high_pc, value) => code.high_pc = Some(value),
            (constants::DW_AT_ranges, value) => code.ranges = Some(value),
            (constants::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) => lines = Some(offset),
            (constants::DW_AT_language, AttributeValue::Language(value)) => language = Some(value),
            (_, AttributeValue::DebugStrOffsetsBase(base)) => unit.str_offsets_base = base,
            (_, AttributeValue::DebugAddrBase(base)) => unit.addr_base = base,
            (_, AttributeValue::DebugRngListsBase(base)) => unit.rnglists_base = base,
            _ => {}
        }
    }
    // These may need the bases, which may come behind them.
    unit.name = name.and_then(|name| dwarf.attr_string(&unit, name).ok());
    unit.comp_dir = comp_dir.and_then(|comp_dir| dwarf.attr_string(&unit, comp_dir).ok());
    unit.low_pc = code.low_pc.and_then(|low| dwarf.attr_address(&unit, low).ok().flatten()).unwrap_or(0);
    let mut low = in_aranges;
    // What cannot be read costs order, and so memory, but no answer.
    let _entries = code.each_range(image, &unit, &mut range_budget, |start, end| {
        note_lowest(&mut low, image, start, end);
    });
    let offset = header.debug_info_offset().map_or(0, |offset| offset.0);
    Ok(Some(UnitEntry { unit, offset, lines, language, low }))
}

fn empty_unit(header: UnitHeader<Reader<'_>>, abbreviations: Arc<Abbreviations>) -> gimli::Unit<Reader<'_>> {
    let (encoding, file) = (header.encoding(), gimli::DwarfFileType::Main);
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
        dwo_id: None,
    }
}

/// Takes the line programs from the units behind the point where programs that units share add up to a few times the section: each
/// unit reads its own, so that a small file could make it any number of times its size.
fn limit_line_programs(image: &Image<'_>, units: &mut [UnitEntry<'_>], problems: &mut Problems) {
    let section = image.dwarf.debug_line.reader();
    let mut budget = 4 * section.len() + (1 << 20);
    for unit in units {
        let Some(offset) = unit.lines else { continue };
        let mut program = *section;
        let size =
            program.skip(offset.0).and_then(|()| program.read_initial_length()).map(|(length, _)| length);
        match budget.checked_sub(size.unwrap_or(0).min(section.len())) {
            Some(left) => budget = left,
            None => {
                unit.lines = None;
                problems.add("units without lines: too many share a line program", 1);
            }
        }
    }
}
