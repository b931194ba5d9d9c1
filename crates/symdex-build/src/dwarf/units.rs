//! The units of an image, and the order in which they are read.
//!
//! Each unit knows the file that it is read from ([`UnitEntry::dwarf`]). A split unit takes the place of its skeleton
//! in the order of `.debug_info`. The units of the supplementary file come after all others, because they have no code.
//! They are read because entries refer to them. References from split units and supplementary files to further files
//! are not followed, so files cannot form a cycle.

use std::sync::Arc;

use gimli::{
    AttributeValue, DebugLineOffset, DwLang, Dwarf, EntriesRaw, Reader as _, Section as _, UnitHeader,
    UnitOffset,
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::attributes::Attributes;
use super::roots::{HeaderError, Headers, Root, headers, offset_of};
use super::tables::{Table, TableRef, UnitTable, tables};
use crate::error::Error;
use crate::image::{Image, Reader, Split};
use crate::limits::UnitLimits;
use crate::report::Problems;

/// A unit. Its line program is read later, because the header alone can be large. Its abbreviations are in `table`.
pub(crate) struct UnitEntry<'d> {
    pub(crate) unit: gimli::Unit<Reader<'d>>,
    /// The file that has the unit: the image's own, its supplementary file, or a file of split units.
    pub(crate) dwarf: Arc<Dwarf<Reader<'d>>>,
    /// The number of that file: [`OWN`], [`SUPPLEMENTARY`], or from [`FIRST_SPLIT`] on.
    file: u32,
    /// The offset of the unit's header in `.debug_info`; for a split unit, that of its skeleton.
    pub(crate) offset: usize,
    /// The size in bytes of all units before it, split units included. It orders the entries of all units.
    pub(crate) before: usize,
    /// The skeleton of a split unit, in the image's own file.
    skeleton: Option<Box<gimli::Unit<Reader<'d>>>>,
    /// `DW_AT_stmt_list`; for a split unit, that of its skeleton.
    pub(crate) lines: Option<DebugLineOffset>,
    pub(crate) language: Option<DwLang>,
    /// The attributes of its root entry that state its code; for a split unit, those of its skeleton.
    pub(super) code: Attributes<'d>,
    /// The lowest image offset stated for its code, if any.
    pub(crate) low: Option<u64>,
    /// Its abbreviation table. `unit` has an empty one.
    pub(super) table: UnitTable,
}

impl<'d> UnitEntry<'d> {
    /// A unit of the supplementary file, which has no code.
    pub(crate) fn of_supplementary(
        dwarf: &Arc<Dwarf<Reader<'d>>>,
        unit: gimli::Unit<Reader<'d>>,
        language: Option<DwLang>,
        table: UnitTable,
    ) -> Self {
        Self {
            dwarf: Arc::clone(dwarf),
            file: SUPPLEMENTARY,
            offset: offset_of(&unit.header),
            before: 0,
            unit,
            skeleton: None,
            lines: None,
            language,
            code: Attributes::default(),
            low: None,
            table,
        }
    }

    /// The unit that the line table belongs to. It is always in the image's own file.
    pub(crate) fn line_unit(&self) -> &gimli::Unit<Reader<'d>> {
        self.skeleton.as_deref().unwrap_or(&self.unit)
    }

    /// Its abbreviation table, which is read now if it is not kept.
    pub(super) fn table(&self) -> gimli::Result<TableRef<'_>> {
        self.table.get(&self.dwarf, &self.unit.header)
    }

    /// Its entries from `offset` on, or from the root entry on. `table` is its abbreviation table.
    pub(super) fn entries<'t>(
        &self,
        table: &'t Table,
        offset: Option<UnitOffset>,
    ) -> gimli::Result<EntriesRaw<'t, Reader<'d>>> {
        self.unit.header.entries_raw(&table.abbreviations, offset)
    }
}

/// An entry: the number of its unit and its offset in that unit.
pub(crate) type EntryId = (usize, UnitOffset);

/// How many bytes of memory a unit takes while root entries are read: its entry, and its places in lists.
const UNIT: usize = size_of::<UnitEntry<'_>>() + 128;
/// How many bytes the abbreviation tables of single units may take that are kept. It does not depend on the limit of
/// memory, so that no answer does.
const KEPT_TABLES: usize = 16 << 20;
/// How many root entries are read at a time.
const READ_AT_A_TIME: usize = 1 << 12;

/// Every unit of an image.
pub(crate) struct Units<'d> {
    /// The units of `.debug_info` in file order, then those of the supplementary file.
    pub(crate) all: Vec<UnitEntry<'d>>,
    /// How many units of `all` are in `.debug_info`. The others have no code; entries refer to them.
    pub(crate) own: usize,
    /// How many type units `.debug_info` has. They are not read.
    pub(crate) types: u64,
    /// The file number, the header offset, and the index in `all` of each unit, sorted.
    by_offset: Vec<(u32, usize, usize)>,
    /// The number of units with code that `.debug_aranges` does not list.
    pub(crate) not_in_aranges: u64,
    /// Whether the files of ranges have columns, too. An index never has them.
    pub(crate) with_columns: bool,
}

impl<'d> Units<'d> {
    /// Reads the unit headers and the root entry of each. Units that cannot be read are counted in `problems`. The
    /// result takes its share of `memory`.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] and [`Error::TooSlow`].
    pub(crate) fn read(
        image: &Image<'d>,
        limits: UnitLimits<'_>,
        problems: &mut Problems,
    ) -> Result<Self, Error> {
        let UnitLimits { deadline, memory, .. } = limits;
        let too_large = || Error::TooLarge { limit: memory.limit(), what: "its list of units" };
        let take = |bytes: usize| if memory.take(bytes) { Ok(()) } else { Err(too_large()) };
        let Headers { units: headers, types, error } = headers(&image.dwarf);
        take(headers.len() * (size_of::<UnitHeader<Reader<'_>>>() + UNIT))?;
        deadline.check()?;
        let tables = tables(&image.dwarf, &headers, KEPT_TABLES, problems);
        take(tables.size)?;
        deadline.check()?;
        match error {
            Some((offset, error @ HeaderError::TooMany(_))) => {
                problems.unit_limit(offset, &error.to_string())
            }
            Some((offset, error)) => problems.unit(offset, &error.to_string()),
            None => {}
        }
        let in_aranges = lowest_in_aranges(image, &headers);
        // Any number of units may share a range list, so each unit gets an equal part of the budget.
        let range_budget = image.range_budget() / headers.len().max(1) as u64 + 256;
        let read = |(header, in_aranges): (&UnitHeader<Reader<'d>>, &Option<u64>)| {
            let table = tables.of(header)?;
            let entry = entry(image, *header, table, *in_aranges, range_budget);
            let entry = entry.map_err(|error| (offset_of(header), error));
            Some((in_aranges.is_some(), entry))
        };
        let mut all = Vec::with_capacity(headers.len());
        let mut not_in_aranges = 0;
        // Entries are large. Batches keep few of them in memory twice.
        let batches = headers.chunks(READ_AT_A_TIME).zip(in_aranges.chunks(READ_AT_A_TIME));
        let entries = batches.flat_map(|(headers, in_aranges)| {
            headers.par_iter().zip(in_aranges).filter_map(read).collect::<Vec<_>>()
        });
        for (listed, entry) in entries {
            if all.len().is_multiple_of(READ_AT_A_TIME) {
                deadline.check()?;
            }
            match entry {
                Ok(None) => {}
                Ok(Some(entry)) => {
                    not_in_aranges += u64::from(entry.low.is_some() && !listed);
                    all.push(entry);
                }
                Err((offset, error)) => problems.unit(offset, &error.to_string()),
            }
        }
        let mut before = 0;
        for unit in &mut all {
            unit.before = before;
            before = before.saturating_add(unit.unit.header.length_including_self());
        }
        limit_line_programs(image, &mut all, problems);
        let own = all.len();
        if let Some(sup) = &image.dwarf.sup {
            all.extend(supplementary(sup, problems));
            take((all.len() - own) * UNIT)?;
        }
        deadline.check()?;
        let place =
            |(index, entry): (usize, &UnitEntry<'d>)| (entry.file, offset_of(&entry.unit.header), index);
        let mut by_offset: Vec<_> = all.iter().enumerate().map(place).collect();
        by_offset.sort_unstable();
        Ok(Self { all, own, types, by_offset, not_in_aranges, with_columns: false })
    }

    /// The lowest image offset that is stated for unit number `unit`, or 0. Units are merged in this order. If several
    /// units have line rows without a function at one address, the row of the first unit wins.
    pub(crate) fn low(&self, unit: usize) -> u64 {
        self.all[unit].low.unwrap_or(0)
    }

    /// How many bytes of debug information unit number `unit` has.
    pub(crate) fn size(&self, unit: usize) -> usize {
        self.all[unit].unit.header.length_including_self()
    }

    /// How many bytes of debug information all units of `.debug_info` have.
    pub(crate) fn own_size(&self) -> usize {
        (0..self.own).map(|unit| self.size(unit)).sum()
    }

    /// The entry that a reference in unit number `from` refers to.
    pub(crate) fn entry(&self, from: usize, reference: AttributeValue<Reader<'d>>) -> Option<EntryId> {
        match reference {
            AttributeValue::UnitRef(offset) => Some((from, offset)),
            AttributeValue::DebugInfoRef(offset) => self.containing(from, offset.0),
            AttributeValue::DebugInfoRefSup(offset) => self.in_file(SUPPLEMENTARY, offset.0),
            _ => None,
        }
    }

    /// Finds the entry at `offset` in `.debug_info` of the file that has unit number `from`.
    fn containing(&self, from: usize, offset: usize) -> Option<EntryId> {
        let UnitEntry { unit, file, .. } = &self.all[from];
        // Most such references refer to their own unit.
        match offset.checked_sub(offset_of(&unit.header)) {
            Some(in_unit) if in_unit < unit.header.length_including_self() => {
                Some((from, UnitOffset(in_unit)))
            }
            _ => self.in_file(*file, offset),
        }
    }

    fn in_file(&self, file: u32, offset: usize) -> Option<EntryId> {
        let after = self.by_offset.partition_point(|unit| (unit.0, unit.1) <= (file, offset));
        let (of, start, index) = self.by_offset[after.checked_sub(1)?];
        let in_unit = offset.checked_sub(start)?;
        let is_in = of == file && in_unit < self.all[index].unit.header.length_including_self();
        is_in.then_some((index, UnitOffset(in_unit)))
    }
}

/// Numbers of files: the image's own, its supplementary one, and the first of those that hold split units.
const OWN: u32 = 0;
const SUPPLEMENTARY: u32 = 1;
const FIRST_SPLIT: u32 = 2;

/// The lowest image offset that `.debug_aranges` states for each unit.
fn lowest_in_aranges(image: &Image<'_>, headers: &[UnitHeader<Reader<'_>>]) -> Vec<Option<u64>> {
    let mut lowest = vec![None; headers.len()];
    each_in_aranges(image, headers.iter(), |unit, start, end| {
        note_lowest(&mut lowest[unit], image, start, end);
    });
    lowest
}

/// Calls `each` with the ranges (SVMAs) in `.debug_aranges` of the units with these headers. Its first argument is the
/// index of the unit's header.
///
/// A set states the offset of its unit's header; some producers write the offset of the root entry instead.
pub(super) fn each_in_aranges<'h, 'd: 'h>(
    image: &Image<'d>,
    headers: impl Iterator<Item = &'h UnitHeader<Reader<'d>>>,
    mut each: impl FnMut(usize, u64, u64),
) {
    let mut by_offset = FxHashMap::default();
    for (unit, header) in headers.enumerate() {
        let offset = offset_of(header);
        by_offset.insert(offset, unit);
        by_offset.entry(offset + header.root_offset().0).or_insert(unit);
    }
    let mut sets = image.dwarf.debug_aranges.headers();
    while let Ok(Some(set)) = sets.next() {
        let Some(&unit) = by_offset.get(&set.debug_info_offset().0) else { continue };
        let mut entries = set.entries();
        while let Ok(Some(entry)) = entries.next() {
            each(unit, entry.address(), entry.address().saturating_add(entry.length()));
        }
    }
}

fn note_lowest(lowest: &mut Option<u64>, image: &Image<'_>, start: u64, end: u64) {
    if let Some((start, _)) = image.executable_part(start, end) {
        *lowest = Some(lowest.map_or(start, |lowest| lowest.min(start)));
    }
}

/// Reads a unit's root entry and, if the unit is a skeleton, that of its split unit. Returns `None` for a unit without
/// entries.
fn entry<'d>(
    image: &Image<'d>,
    header: UnitHeader<Reader<'d>>,
    table: UnitTable,
    in_aranges: Option<u64>,
    mut range_budget: u64,
) -> gimli::Result<Option<UnitEntry<'d>>> {
    let abbreviations = &table.get(&image.dwarf, &header)?.abbreviations;
    let Some(root) = Root::read(&image.dwarf, header, abbreviations)? else { return Ok(None) };
    let mut low = in_aranges;
    // Ranges that cannot be read here cost memory, because the unit is merged later. They do not change answers.
    let _entries = root.code.each_range(&image.dwarf, &root.unit, &mut range_budget, |start, end| {
        note_lowest(&mut low, image, start, end);
    });
    let offset = offset_of(&header);
    let Root { unit, lines, language, code, .. } = root;
    let own = UnitEntry {
        unit,
        dwarf: Arc::clone(&image.dwarf),
        file: OWN,
        offset,
        before: 0,
        skeleton: None,
        lines,
        language,
        code,
        low,
        table,
    };
    match image.splits.get(&offset) {
        Some(split) => with_split(own, split).map(Some),
        None => Ok(Some(own)),
    }
}

/// Turns the entry of a skeleton unit into the entry of its split unit (DWARF 5, 3.1.3).
fn with_split<'d>(skeleton: UnitEntry<'d>, split: &Split<'d>) -> gimli::Result<UnitEntry<'d>> {
    let root = Root::read(&split.dwarf, split.header, &split.table.abbreviations)?;
    let Root { mut unit, language, .. } = root.ok_or(gimli::Error::MissingUnitDie)?;
    unit.copy_relocated_attributes(&skeleton.unit);
    let mut line_unit = skeleton.unit;
    // Only the split unit has the name of the line table's file 0.
    line_unit.name = line_unit.name.or(unit.name);
    line_unit.comp_dir = line_unit.comp_dir.or(unit.comp_dir);
    Ok(UnitEntry {
        unit,
        dwarf: Arc::clone(&split.dwarf),
        file: split.file.saturating_add(FIRST_SPLIT),
        skeleton: Some(Box::new(line_unit)),
        language: language.or(skeleton.language),
        table: UnitTable::Kept(Arc::clone(&split.table)),
        ..skeleton
    })
}

/// The units of the supplementary file.
fn supplementary<'d>(sup: &Arc<Dwarf<Reader<'d>>>, problems: &mut Problems) -> Vec<UnitEntry<'d>> {
    let Headers { units: headers, error, .. } = headers(sup);
    let mut lost = Problems::default();
    let tables = tables(sup, &headers, usize::MAX, &mut lost);
    let read = |header: &UnitHeader<Reader<'d>>| {
        let table = tables.of(header);
        let table = table.ok_or(gimli::Error::OffsetOutOfBounds(header.debug_abbrev_offset().0 as u64))?;
        let root = Root::read(sup, *header, &table.get(sup, header)?.abbreviations)?;
        Ok(root.map(|root| UnitEntry::of_supplementary(sup, root.unit, root.language, table)))
    };
    let units: Vec<gimli::Result<_>> = headers.par_iter().map(read).collect();
    let unreadable = units.iter().filter(|unit| unit.is_err()).count() + usize::from(error.is_some());
    problems.add("units of the supplementary file that cannot be read", unreadable as u64);
    units.into_iter().filter_map(|unit| unit.ok().flatten()).collect()
}

/// Limits the total size of line programs to a few times the size of the section. Units that exceed the limit lose
/// their line programs. Units may share a program, and each unit reads it, so a small file could otherwise take any
/// amount of time.
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
                problems.limit("units without lines: too many share a line program", 1);
            }
        }
    }
}
