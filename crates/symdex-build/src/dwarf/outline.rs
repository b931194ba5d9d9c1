//! The code of a unit: as the debug information states it for the whole unit, and as its functions and line rows state
//! it. Also the ranges of a unit at a few addresses.

use std::ops::Range;

use gimli::UnitOffset;

use super::functions::functions_at;
use super::instances::{instances, stated_sequences};
use super::lines::Lines;
use super::ranges::joined;
use super::units::{UnitEntry, Units, each_in_aranges};
use super::walk::Walker;
use crate::flatten::join;
use crate::image::Image;
use crate::limits::{UnitError, UnitLimits};
use crate::memory::Share;
use crate::report::Problems;
use crate::unit_ranges::UnitRanges;

/// Half-open ranges of image offsets.
pub(crate) type Code = Vec<(u64, u64)>;

/// The code of each unit as `.debug_aranges` and its root entry state it, sorted and disjoint. An element is `None` if
/// the root entry states no range or cannot be read, because `.debug_aranges` alone may be incomplete.
pub(crate) fn stated<'d>(image: &Image<'d>, units: &Units<'d>) -> Vec<Option<Code>> {
    let own = &units.all[..units.own];
    let mut stated: Vec<Option<Code>> = own.iter().map(|unit| stated_by_root(image, unit)).collect();
    let headers = own.iter().map(|unit| &unit.line_unit().header);
    each_in_aranges(image, headers, |unit, start, end| {
        if let Some(code) = &mut stated[unit] {
            code.extend(image.executable_part(start, end));
        }
    });
    stated.iter_mut().flatten().for_each(join);
    stated
}

fn stated_by_root<'d>(image: &Image<'d>, unit: &UnitEntry<'d>) -> Option<Code> {
    let (mut code, mut is_stated) = (Code::new(), false);
    let mut left = image.range_budget();
    let result = unit.code.each_range(&image.dwarf, unit.line_unit(), &mut left, |start, end| {
        is_stated = true;
        code.extend(image.executable_part(start, end));
    });
    result.ok().filter(|_| is_stated).map(|_| code)
}

/// The addresses that the functions and line rows of unit number `unit` cover, sorted and disjoint.
///
/// Reads the ranges of subprograms and the line program, but no names and no inlined subroutines.
pub(crate) fn outline<'d>(image: &Image<'d>, units: &Units<'d>, unit: usize, limits: UnitLimits<'_>) -> Code {
    let entry = &units.all[unit];
    let share = Share::new(limits.memory);
    let lines = Lines::read(image, entry, &[], limits.deadline, &share, &mut Problems::default());
    Subprograms::read(image, entry).code_with(&lines)
}

/// The ranges of a unit at some addresses.
pub(crate) struct Part<'d> {
    /// The ranges are correct at these addresses. They may be wrong elsewhere.
    pub(crate) ranges: UnitRanges<'d>,
    /// The code of all functions of the unit.
    pub(crate) functions: Code,
    /// The result of [`outline`] for the unit.
    pub(crate) code: Code,
}

/// The ranges of unit number `unit` at `offsets`, which are sorted. They equal those of
/// [`unit_ranges`](super::unit_ranges), but names and inlined subroutines are read only for functions that can affect
/// these addresses. Returns `None` if too little memory is left.
pub(crate) fn unit_ranges_at<'d>(
    image: &Image<'d>,
    units: &Units<'d>,
    unit: usize,
    limits: UnitLimits<'_>,
    offsets: &[u64],
) -> Option<Part<'d>> {
    let entry = &units.all[unit];
    let share = Share::new(limits.memory);
    let subprograms = Subprograms::read(image, entry);
    let points: Code = offsets.iter().map(|offset| (*offset, offset + 1)).collect();
    // The `statement` answer for a row depends on earlier rows of its function, and therefore on every function that
    // overlaps that function.
    let mut decisive: Code =
        subprograms.overlapping(&points).flat_map(|one| subprograms.ranges(one)).copied().collect();
    join(&mut decisive);
    let needed: Vec<_> = subprograms.overlapping(&decisive).map(|one| (one.offset, one.depth)).collect();
    let mut functions = functions_at(image, units, unit, limits, &share, &needed);
    if share.is_exceeded() {
        return None;
    }
    let (function_ranges, instances) = instances(image, &functions);
    let stated = stated_sequences(&functions, &function_ranges, &instances);
    let mut lines = Lines::read(image, entry, &stated, limits.deadline, &share, &mut functions.problems);
    let code = subprograms.code_with(&lines);
    decisive.extend(points);
    join(&mut decisive);
    lines.rows.retain(|row| overlaps(&decisive, (row.start.into(), row.end.into())));
    let ranges = joined(image, units, unit, functions, (function_ranges, instances), &lines, &share)?;
    Some(Part { ranges, functions: subprograms.ranges, code })
}

/// The subprograms of a unit that have code.
#[derive(Default)]
struct Subprograms {
    all: Vec<Subprogram>,
    ranges: Code,
}

/// A subprogram's entry.
struct Subprogram {
    offset: UnitOffset,
    depth: isize,
    /// The indexes of its ranges in [`Subprograms::ranges`].
    ranges: Range<usize>,
}

impl Subprograms {
    fn read<'d>(image: &Image<'d>, unit: &UnitEntry<'d>) -> Self {
        let mut read = Self::default();
        // The build ignores entries after damage, too.
        let _damage = read.read_all(image, unit);
        read
    }

    fn read_all<'d>(&mut self, image: &Image<'d>, unit: &UnitEntry<'d>) -> Result<(), UnitError> {
        let mut left = image.range_budget();
        let table = unit.table()?;
        let mut entries = Walker::new(unit, &table)?;
        while let Some(found) = entries.next()? {
            if !(found.is_subprogram && found.states_code) {
                continue;
            }
            let first = self.ranges.len();
            // If a list is damaged, the ranges before the damage are kept.
            let _damage =
                entries.attributes().each_range(&unit.dwarf, &unit.unit, &mut left, |start, end| {
                    self.ranges.extend(image.executable_part(start, end));
                });
            let (offset, depth, ranges) = (found.offset, found.depth, first..self.ranges.len());
            self.all.push(Subprogram { offset, depth, ranges });
        }
        Ok(())
    }

    fn ranges(&self, one: &Subprogram) -> &[(u64, u64)] {
        &self.ranges[one.ranges.clone()]
    }

    /// The subprograms that overlap `code`, which is sorted and disjoint.
    fn overlapping(&self, code: &[(u64, u64)]) -> impl Iterator<Item = &Subprogram> {
        self.all.iter().filter(|one| self.ranges(one).iter().any(|range| overlaps(code, *range)))
    }

    /// The code of the subprograms and of the rows of `lines`.
    fn code_with(&self, lines: &Lines<'_>) -> Code {
        let mut code = self.ranges.clone();
        // Rows are sorted, and most begin at the end of the row before.
        code.extend(lines.rows.chunk_by(|a, b| a.end == b.start).filter_map(|rows| match rows {
            [first, .., last] | [first @ last] => Some((first.start.into(), last.end.into())),
            [] => None,
        }));
        join(&mut code);
        code.shrink_to_fit();
        code
    }
}

/// Whether a range overlaps `code`, which is sorted and disjoint.
fn overlaps(code: &[(u64, u64)], (start, end): (u64, u64)) -> bool {
    let first_behind = code.get(code.partition_point(|range| range.1 <= start));
    first_behind.is_some_and(|range| range.0 < end)
}
