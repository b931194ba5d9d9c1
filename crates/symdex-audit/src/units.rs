//! The units of a debug file, each with its DIEs and its lines.

use std::fmt;
use std::sync::Arc;

use gimli::{
    AttributeValue, DebugInfo, DebugInfoOffset, Dwarf, LittleEndian, RangeLists, Section as _, UnitHeader,
    UnitOffset, UnitRef, UnitType,
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use symdex_build::Image;
use symdex_build::audit_access::{SplitUnit, dwarf, split_units};

use crate::budget::{Budget, TooMuch};
use crate::dies::{self, Dies};
use crate::image::Reader;
use crate::lines::Lines;

/// A unit with its DIEs and lines.
pub struct Unit<'d> {
    /// The unit that has the line program: the unit itself or, for a split unit, its skeleton.
    pub(crate) unit: gimli::Unit<Reader<'d>>,
    /// The split unit, if `unit` is a skeleton.
    pub(crate) split: Option<Box<gimli::Unit<Reader<'d>>>>,
    /// The file that the DIEs are in.
    pub(crate) file: DwarfFile<'d>,
    pub(crate) dies: Dies<'d>,
    pub(crate) lines: Lines,
}

/// A file with DIEs: the image's own, its supplementary file, or one with split units.
#[derive(Clone)]
pub(crate) struct DwarfFile<'d> {
    pub(crate) dwarf: Arc<Dwarf<Reader<'d>>>,
    /// The number of its first byte of `.debug_info`. DIEs are numbered as if the `.debug_info` of all files were
    /// joined.
    pub(crate) base: usize,
}

impl DwarfFile<'_> {
    /// The number of the DIE at `offset` in this file's `.debug_info`; `None` past its end.
    pub(crate) fn die(&self, offset: usize) -> Option<usize> {
        (offset < self.dwarf.debug_info.reader().len()).then_some(self.base + offset)
    }
}

impl fmt::Debug for Unit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unit({:#x})", self.number())
    }
}

impl<'d> Unit<'d> {
    /// The unit's ranges (SVMAs) as its root DIE states them.
    #[must_use]
    pub fn ranges_in_root(&self) -> &[(u64, u64)] {
        &self.dies.in_root
    }

    /// The unit's ranges (SVMAs) as `.debug_aranges` states them.
    #[must_use]
    pub fn ranges_in_aranges(&self) -> &[(u64, u64)] {
        &self.dies.in_aranges
    }

    /// The unit that has the DIEs.
    pub(crate) fn with_dies(&self) -> UnitRef<'_, Reader<'d>> {
        self.split.as_deref().unwrap_or(&self.unit).unit_ref(&self.file.dwarf)
    }

    /// The number of its header, which is below that of any of its DIEs.
    pub(crate) fn number(&self) -> usize {
        let offset = self.with_dies().header.debug_info_offset().map_or(0, |offset| offset.0);
        self.file.base + offset
    }

    /// Where in the unit the DIE of this number is.
    pub(crate) fn offset_of(&self, die: usize) -> Option<UnitOffset> {
        let offset = die.checked_sub(self.file.base)?;
        DebugInfoOffset(offset).to_unit_offset(&self.with_dies().header)
    }
}

/// The units of `image`, and its supplementary file. `own` has the sections of the image. The units are in file order.
/// Split units take the places of their skeletons, and the units of the supplementary file come last.
pub(crate) fn read<'d>(
    image: &Image<'d>,
    own: &Arc<Dwarf<Reader<'d>>>,
    budget: &Budget,
) -> Result<(Vec<Unit<'d>>, Option<DwarfFile<'d>>), TooMuch> {
    let aranges = aranges(image);
    let files = Files::of(image, own);
    let read = |header| read_unit(image, &files, &aranges, header, budget).transpose();
    let units: Result<Vec<Unit<'d>>, TooMuch> = headers(own).into_par_iter().filter_map(read).collect();
    let mut units = units?;
    if let Some(file) = &files.supplementary {
        let read = |header| read_supplementary(image, file, header, budget).transpose();
        let more: Result<Vec<Unit<'d>>, TooMuch> =
            headers(&file.dwarf).into_par_iter().filter_map(read).collect();
        units.extend(more?);
    }
    Ok((units, files.supplementary))
}

/// Headers of the units that may hold code or names. An error ends the list, because the next header cannot be found.
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

/// Ranges (SVMAs) of `.debug_aranges`, by the offset of the unit.
fn aranges(image: &Image<'_>) -> FxHashMap<usize, Vec<(u64, u64)>> {
    let mut aranges = FxHashMap::<usize, Vec<(u64, u64)>>::default();
    let mut headers = dwarf(image).debug_aranges.headers();
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
    own: Arc<Dwarf<Reader<'d>>>,
    supplementary: Option<DwarfFile<'d>>,
    /// By the offset of the skeleton's header: the file of the split unit, and its header.
    split: FxHashMap<usize, (DwarfFile<'d>, UnitHeader<Reader<'d>>)>,
}

impl<'d> Files<'d> {
    fn of(image: &Image<'d>, own: &Arc<Dwarf<Reader<'d>>>) -> Self {
        let mut end = dwarf(image).debug_info.reader().len();
        let mut append = |dwarf: &Arc<Dwarf<Reader<'d>>>| {
            let file = DwarfFile { dwarf: Arc::clone(dwarf), base: end };
            end += dwarf.debug_info.reader().len();
            file
        };
        let supplementary = dwarf(image).sup.as_ref().map(&mut append);
        let mut splits: Vec<SplitUnit<'d>> = split_units(image).collect();
        splits.sort_unstable_by_key(|split| (split.file, split.skeleton));
        let mut split = FxHashMap::default();
        for of_file in splits.chunk_by(|a, b| a.file == b.file) {
            let file = append(&of_file[0].dwarf);
            split.extend(of_file.iter().map(|unit| (unit.skeleton, (file.clone(), unit.header))));
        }
        Self { own: Arc::clone(own), supplementary, split }
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
    budget.take_unit()?;
    let Some((mut unit, error)) = gimli_unit(&files.own, header) else { return Ok(None) };
    let own = DwarfFile { dwarf: Arc::clone(&files.own), base: 0 };
    let mut dies = dies::read(unit.unit_ref(&own.dwarf), own.base, image, budget)?;
    let (mut split, mut file) = (None, own);
    if let Some((split_file, header)) = files.split.get(&offset.0)
        && let Some((mut other, _)) = gimli_unit(&split_file.dwarf, *header)
    {
        other.copy_relocated_attributes(&unit);
        name_as(&mut unit, &other, &files.own);
        file = split_file.clone();
        dies = dies::read(other.unit_ref(&file.dwarf), file.base, image, budget)?.with_skeleton(dies);
        split = Some(Box::new(other));
    }
    dies.in_aranges = aranges.get(&offset.0).map_or_else(Vec::new, Vec::clone);
    let mut lines = Lines::read(unit.unit_ref(&files.own), image, budget)?;
    lines.error = lines.error.or(error);
    Ok(Some(Unit { unit, split, file, dies, lines }))
}

/// A unit of the supplementary file. Only its names are used: code in it would belong to another image.
fn read_supplementary<'d>(
    image: &Image<'d>,
    file: &DwarfFile<'d>,
    header: UnitHeader<Reader<'d>>,
    budget: &Budget,
) -> Result<Option<Unit<'d>>, TooMuch> {
    budget.take_unit()?;
    let Some((unit, _)) = gimli_unit(&file.dwarf, header) else { return Ok(None) };
    let dies = dies::read(unit.unit_ref(&file.dwarf), file.base, image, budget)?.without_code();
    Ok(Some(Unit { unit, split: None, file: file.clone(), dies, lines: Lines::default() }))
}

/// The unit of `header`. If the header of its line program is damaged, the unit is read without lines, and the error is
/// returned.
fn gimli_unit<'d>(
    dwarf: &Dwarf<Reader<'d>>,
    header: UnitHeader<Reader<'d>>,
) -> Option<(gimli::Unit<Reader<'d>>, Option<String>)> {
    match dwarf.unit(header) {
        Ok(unit) => Some((unit, None)),
        Err(error) => Some((unit_without_lines(dwarf, header).ok()?, Some(error.to_string()))),
    }
}

/// Copies the name and the folder of `split` to `skeleton` and to its line program, if the skeleton has none.
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
        // The same header was read before, so this does not fail.
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
    // The bases come first, because the other attributes count from them.
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

/// A file of each split unit, by the id of the unit, for addr2line. The file has only this unit, because addr2line
/// takes the first.
pub(crate) fn split_files<'d>(units: &[Unit<'d>]) -> FxHashMap<u64, Arc<Dwarf<Reader<'d>>>> {
    let split = |unit: &Unit<'d>| {
        let split = unit.split.as_ref()?;
        Some((split.dwo_id?.0, alone(&unit.file.dwarf, split)))
    };
    units.iter().filter_map(split).collect()
}

/// `dwarf` with `unit` as its only unit.
fn alone<'d>(dwarf: &Arc<Dwarf<Reader<'d>>>, unit: &gimli::Unit<Reader<'d>>) -> Arc<Dwarf<Reader<'d>>> {
    let start = unit.header.debug_info_offset().map_or(0, |offset| offset.0);
    let (all, len) = (dwarf.debug_info.reader().slice(), unit.header.length_including_self());
    if (start, len) == (0, all.len()) {
        return Arc::clone(dwarf);
    }
    let info = all.get(start..start.saturating_add(len)).unwrap_or_default();
    Arc::new(Dwarf {
        debug_abbrev: dwarf.debug_abbrev,
        debug_addr: dwarf.debug_addr,
        debug_info: DebugInfo::new(info, LittleEndian),
        debug_line: dwarf.debug_line,
        debug_line_str: dwarf.debug_line_str,
        debug_str: dwarf.debug_str,
        debug_str_offsets: dwarf.debug_str_offsets,
        ranges: RangeLists::new(*dwarf.ranges.debug_ranges(), *dwarf.ranges.debug_rnglists()),
        file_type: dwarf.file_type,
        sup: dwarf.sup.clone(),
        ..Dwarf::default()
    })
}
