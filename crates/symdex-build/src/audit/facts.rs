//! What a debug file states of its units, read once and kept as it stands: functions, inlined subroutines, lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use gimli::{
    AttributeValue, DebugInfoOffset, Dwarf, Section as _, UnitHeader, UnitOffset, UnitRef, UnitType,
};
use object::{Object as _, ObjectSection as _};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::dies::{self, Dies};
use super::intervals::{Interval, Intervals};
use super::lines::Lines;
use super::symbol_table::{self, TableFunction};
use super::symbols::{self, Symbol};
use super::{names, peers, statements};
use crate::error::Error;
use crate::image::{Image, Reader};

/// How many more rows and ranges may be read. Each takes at least a byte of an honest file; hostile ones make many of few.
pub(super) struct Budget(AtomicI64);

/// There are more rows and ranges than the file has bytes.
pub(super) struct TooMuch;

impl Budget {
    pub(super) fn take(&self, count: usize) -> Result<(), TooMuch> {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if self.0.fetch_sub(count, Ordering::Relaxed) < count { Err(TooMuch) } else { Ok(()) }
    }
}

impl From<TooMuch> for Error {
    fn from(TooMuch: TooMuch) -> Self {
        Error::Malformed { what: "it states more line rows and address ranges than it has bytes".to_owned() }
    }
}

/// A unit and what it states.
pub(super) struct Unit<'d> {
    /// What the lines are of: the unit itself, of a split unit its skeleton.
    pub(super) unit: gimli::Unit<Reader<'d>>,
    /// The split unit that it is the skeleton of.
    pub(super) split: Option<Box<gimli::Unit<Reader<'d>>>>,
    /// The file that the DIEs are in.
    pub(super) file: File<'d>,
    pub(super) dies: Dies<'d>,
    pub(super) lines: Lines,
}

/// A file with DIEs: the image's own, its supplementary file, or one with split units.
#[derive(Clone)]
pub(super) struct File<'d> {
    pub(super) dwarf: Arc<Dwarf<Reader<'d>>>,
    /// Where its `.debug_info` begins, if those of all files lie behind each other. DIEs are numbered so.
    pub(super) base: usize,
}

impl File<'_> {
    /// The number of the DIE at `offset` in this file's `.debug_info`; `None` behind its end.
    pub(super) fn die(&self, offset: usize) -> Option<usize> {
        (offset < self.dwarf.debug_info.reader().len()).then_some(self.base + offset)
    }
}

impl<'d> Unit<'d> {
    /// The unit that has the DIEs.
    pub(super) fn with_dies(&self) -> UnitRef<'_, Reader<'d>> {
        self.split.as_deref().unwrap_or(&self.unit).unit_ref(&self.file.dwarf)
    }

    /// The number of its header, which is below that of any of its DIEs.
    pub(super) fn number(&self) -> usize {
        let offset = self.with_dies().header.debug_info_offset().map_or(0, |offset| offset.0);
        self.file.base + offset
    }

    /// Where in the unit the DIE of this number is.
    pub(super) fn offset_of(&self, die: usize) -> Option<UnitOffset> {
        let offset = die.checked_sub(self.file.base)?;
        DebugInfoOffset(offset).to_unit_offset(&self.with_dies().header)
    }
}

/// A function, by the numbers of its unit and of itself in [`Dies::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FunctionId {
    pub(super) unit: u32,
    pub(super) function: u32,
}

/// All that a debug file states, as far as the audit needs it.
pub(super) struct Facts<'a, 'd> {
    pub(super) image: &'a Image<'d>,
    /// In file order, split units where their skeletons are, and behind them those of the supplementary file.
    pub(super) units: Vec<Unit<'d>>,
    /// By [`Unit::number`], which they are sorted by: the units' numbers here.
    by_die: Vec<(usize, u32)>,
    /// The supplementary file.
    pub(super) supplementary: Option<File<'d>>,
    /// The ranges of every function, by number in `function_ids`.
    pub(super) functions: Intervals,
    pub(super) function_ids: Vec<FunctionId>,
    /// The sequences of every unit, by number of the unit.
    pub(super) sequences: Intervals,
    /// Those that units name that are parts of others.
    pub(super) sequences_of_parts: Intervals,
    /// What addr2line has to be given to read split units, by their ids.
    pub(super) for_addr2line: FxHashMap<u64, Arc<Dwarf<Reader<'d>>>>,
    /// Whether sections are compressed in the way of GNU (`.zdebug_info`).
    pub(super) has_zdebug: bool,
    /// The functions of the symbol table, sorted by address.
    pub(super) table: Vec<TableFunction<'d>>,
    /// Their ranges, by number in `table`.
    pub(super) table_ranges: Intervals,
    /// As llvm-symbolizer reads the symbol table; sorted by address.
    pub(super) llvm_symbols: Vec<Symbol<'d>>,
}

impl<'a, 'd> Facts<'a, 'd> {
    /// Reads `image`, on the threads of the rayon pool it is called in.
    pub(super) fn read(image: &'a Image<'d>) -> Result<Self, Error> {
        let size = i64::try_from(image.debug_size).unwrap_or(i64::MAX);
        let budget = Budget(AtomicI64::new(size));
        let aranges = aranges(image);
        let files = Files::of(image);
        let read = |header| read_unit(image, &files, &aranges, header, &budget).transpose();
        let units: Result<Vec<Unit<'d>>, TooMuch> =
            headers(&image.dwarf).into_par_iter().filter_map(read).collect();
        let mut units = units?;
        if let Some(file) = &files.supplementary {
            let read = |header| read_supplementary(image, file, header, &budget).transpose();
            let more: Result<Vec<Unit<'d>>, TooMuch> =
                headers(&file.dwarf).into_par_iter().filter_map(read).collect();
            units.extend(more?);
        }
        let mut by_die: Vec<(usize, u32)> = units.iter().map(Unit::number).zip(0..).collect();
        by_die.sort_unstable();
        let table = symbol_table::read(image);
        let range = |(item, function): (u32, &TableFunction<'_>)| Interval {
            start: function.start,
            end: function.end,
            item,
        };
        let mut facts = Self {
            image,
            for_addr2line: peers::for_addr2line(&units),
            units,
            by_die,
            supplementary: files.supplementary,
            functions: Intervals::default(),
            function_ids: Vec::new(),
            sequences: Intervals::default(),
            sequences_of_parts: Intervals::default(),
            has_zdebug: image.files.iter().any(|file| has_zdebug(file)),
            table_ranges: Intervals::new((0..).zip(&table).map(range).collect()),
            table,
            llvm_symbols: image.files.first().map_or(Vec::new(), |file| symbols::read(file)),
        };
        facts.join();
        names::resolve(&mut facts);
        facts.resolve_statements();
        Ok(facts)
    }

    /// Puts the functions and sequences of all units into one order.
    fn join(&mut self) {
        let (mut functions, mut sequences, mut of_parts) = (Vec::new(), Vec::new(), Vec::new());
        for (number, unit) in (0u32..).zip(&self.units) {
            let numbered = |interval: &Interval| Interval { item: number, ..*interval };
            let of = if unit.dies.is_part { &mut of_parts } else { &mut sequences };
            of.extend(unit.lines.by_address.all().iter().map(numbered));
            for (function, stated) in (0u32..).zip(&unit.dies.functions) {
                let item = u32::try_from(self.function_ids.len()).unwrap_or(u32::MAX);
                self.function_ids.push(FunctionId { unit: number, function });
                functions.extend(stated.ranges.iter().map(|&(start, end)| Interval { start, end, item }));
            }
        }
        self.functions = Intervals::new(functions);
        self.sequences = Intervals::new(sequences);
        self.sequences_of_parts = Intervals::new(of_parts);
    }

    /// Finds out what each piece of a line row answers under the `statement` policy.
    fn resolve_statements(&mut self) {
        let facts = &*self;
        let (base, rule) = (facts.image.info.base, facts.image.info.row_rule);
        let of_unit = |(number, unit): (u32, &Unit<'d>)| {
            let mut scratch = Default::default();
            let instance = |offset| facts.instance(number, offset, &mut scratch);
            let borders = unit.dies.addresses.iter().filter_map(|svma| svma.checked_sub(base));
            statements::pieces(&unit.lines, borders, rule, instance)
        };
        let numbered: Vec<_> = (0u32..).zip(&facts.units).collect();
        let pieces: Vec<_> = numbered.into_par_iter().map(of_unit).collect();
        self.units.iter_mut().zip(pieces).for_each(|(unit, pieces)| unit.lines.pieces = pieces);
    }

    /// The unit that holds the DIE of this number, and its own.
    pub(super) fn unit_of(&self, die: usize) -> Option<(u32, &Unit<'d>)> {
        let before = self.by_die.partition_point(|unit| unit.0 <= die).checked_sub(1)?;
        let number = self.by_die[before].1;
        Some((number, &self.units[number as usize]))
    }
}

fn has_zdebug(file: &[u8]) -> bool {
    let is_such = |section: object::Section<'_, '_>| {
        section.name_bytes().is_ok_and(|name| name.starts_with(b".zdebug_"))
    };
    object::File::parse(file).is_ok_and(|file| file.sections().any(is_such))
}

/// Headers of the units that may hold code or names; an error ends the list, as nothing says where the next one begins.
fn headers<'d>(dwarf: &Dwarf<Reader<'d>>) -> Vec<UnitHeader<Reader<'d>>> {
    let mut headers = Vec::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        if !matches!(header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. }) {
            headers.push(header);
        }
    }
    headers
}

/// Ranges (SVMAs) of `.debug_aranges`, by the unit offset their set gives.
fn aranges(image: &Image<'_>) -> FxHashMap<usize, Vec<(u64, u64)>> {
    let mut aranges = FxHashMap::<usize, Vec<(u64, u64)>>::default();
    let mut headers = image.dwarf.debug_aranges.headers();
    while let Ok(Some(header)) = headers.next() {
        let mut entries = header.entries();
        let ranges = aranges.entry(header.debug_info_offset().0).or_default();
        while let Some(entry) = entries.next().transpose() {
            let range = entry.map(|entry| entry.range());
            ranges.extend(range.iter().filter(|range| range.begin < range.end).map(|r| (r.begin, r.end)));
        }
    }
    aranges
}

/// The files of an image that have DIEs.
struct Files<'d> {
    supplementary: Option<File<'d>>,
    /// By the offset of the skeleton's header.
    split: FxHashMap<usize, File<'d>>,
}

impl<'d> Files<'d> {
    fn of(image: &Image<'d>) -> Self {
        let mut end = image.dwarf.debug_info.reader().len();
        let mut behind = |dwarf: &Arc<Dwarf<Reader<'d>>>| {
            let file = File { dwarf: Arc::clone(dwarf), base: end };
            end += dwarf.debug_info.reader().len();
            file
        };
        let supplementary = image.dwarf.sup.as_ref().map(&mut behind);
        let mut splits: Vec<_> = image.splits.iter().collect();
        splits.sort_unstable_by_key(|(skeleton, split)| (split.file, **skeleton));
        let mut split = FxHashMap::default();
        for of_file in splits.chunk_by(|a, b| a.1.file == b.1.file) {
            let file = behind(&of_file[0].1.dwarf);
            split.extend(of_file.iter().map(|(skeleton, _)| (**skeleton, file.clone())));
        }
        Self { supplementary, split }
    }
}

fn read_unit<'d>(
    image: &Image<'d>,
    files: &Files<'d>,
    aranges: &FxHashMap<usize, Vec<(u64, u64)>>,
    header: UnitHeader<Reader<'d>>,
    budget: &Budget,
) -> Result<Option<Unit<'d>>, TooMuch> {
    let Some(offset) = header.debug_info_offset() else { return Ok(None) };
    let Some((mut unit, error)) = gimli_unit(&image.dwarf, header) else { return Ok(None) };
    let own = File { dwarf: Arc::clone(&image.dwarf), base: 0 };
    let mut dies = dies::read(unit.unit_ref(&own.dwarf), own.base, image, budget)?;
    let (mut split, mut file) = (None, own);
    if let Some(other) = image.splits.get(&offset.0)
        && let Some((mut other, _)) = gimli_unit(&other.dwarf, other.header)
    {
        other.copy_relocated_attributes(&unit);
        name_as(&mut unit, &other, &image.dwarf);
        file = files.split[&offset.0].clone();
        dies = dies::read(other.unit_ref(&file.dwarf), file.base, image, budget)?.behind(dies);
        split = Some(Box::new(other));
    }
    dies.in_aranges = aranges.get(&offset.0).map_or_else(Vec::new, Vec::clone);
    let mut lines = Lines::read(unit.unit_ref(&image.dwarf), image, budget)?;
    lines.error = lines.error.or(error);
    Ok(Some(Unit { unit, split, file, dies, lines }))
}

/// A unit of the supplementary file: others refer to its names; its code would be of another image.
fn read_supplementary<'d>(
    image: &Image<'d>,
    file: &File<'d>,
    header: UnitHeader<Reader<'d>>,
    budget: &Budget,
) -> Result<Option<Unit<'d>>, TooMuch> {
    let Some((unit, _)) = gimli_unit(&file.dwarf, header) else { return Ok(None) };
    let dies = dies::read(unit.unit_ref(&file.dwarf), file.base, image, budget)?.without_code();
    Ok(Some(Unit { unit, split: None, file: file.clone(), dies, lines: Lines::default() }))
}

/// The unit of `header`, and why it lacks its line program: one whose very header is damaged costs the unit its lines.
fn gimli_unit<'d>(
    dwarf: &Dwarf<Reader<'d>>,
    header: UnitHeader<Reader<'d>>,
) -> Option<(gimli::Unit<Reader<'d>>, Option<String>)> {
    match dwarf.unit(header) {
        Ok(unit) => Some((unit, None)),
        Err(error) => Some((unit_without_lines(dwarf, header).ok()?, Some(error.to_string()))),
    }
}

/// Gives `skeleton`, and its line program, the name and the folder that `split` alone has.
fn name_as<'d>(
    skeleton: &mut gimli::Unit<Reader<'d>>,
    split: &gimli::Unit<Reader<'d>>,
    dwarf: &Dwarf<Reader<'d>>,
) {
    skeleton.name = skeleton.name.or(split.name);
    skeleton.comp_dir = skeleton.comp_dir.or(split.comp_dir);
    if let Some(program) = &skeleton.line_program {
        let header = program.header();
        let (offset, size) = (header.offset(), header.address_size());
        let named = dwarf.debug_line.program(offset, size, skeleton.comp_dir, skeleton.name);
        // It has been read before.
        skeleton.line_program = named.ok();
    }
}

/// The unit as gimli would read it if its root DIE named no line program.
fn unit_without_lines<'d>(
    dwarf: &Dwarf<Reader<'d>>,
    header: UnitHeader<Reader<'d>>,
) -> gimli::Result<gimli::Unit<Reader<'d>>> {
    let (encoding, file) = (header.encoding(), dwarf.file_type);
    let mut unit = gimli::Unit {
        header,
        abbreviations: dwarf.abbreviations(&header)?,
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
    };
    let mut attributes = Vec::new();
    let mut root = unit.entries_raw(None)?;
    let abbreviation = root.read_abbreviation()?.ok_or(gimli::Error::MissingUnitDie)?;
    for spec in abbreviation.attributes() {
        attributes.push(root.read_attribute(*spec)?);
    }
    // What the others are counted from comes first.
    for attribute in &attributes {
        match attribute.value() {
            AttributeValue::DebugStrOffsetsBase(base) => unit.str_offsets_base = base,
            AttributeValue::DebugAddrBase(base) => unit.addr_base = base,
            AttributeValue::DebugRngListsBase(base) => unit.rnglists_base = base,
            AttributeValue::DwoId(id) => unit.dwo_id = Some(id),
            _ => {}
        }
    }
    for attribute in &attributes {
        match attribute.name() {
            gimli::DW_AT_name => unit.name = dwarf.attr_string(&unit, attribute.value()).ok(),
            gimli::DW_AT_comp_dir => unit.comp_dir = dwarf.attr_string(&unit, attribute.value()).ok(),
            gimli::DW_AT_low_pc => {
                unit.low_pc = dwarf.attr_address(&unit, attribute.value())?.unwrap_or_default();
            }
            _ => {}
        }
    }
    Ok(unit)
}
