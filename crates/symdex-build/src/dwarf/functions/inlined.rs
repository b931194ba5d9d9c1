//! Inlined subroutines: their code, inside of the code around them or outside of it, and their names.

use symdex::write::NonMaxU32;

use super::{NAMES_AT_A_TIME, Walk};
use crate::dwarf::attributes::Attributes;
use crate::dwarf::units::EntryId;
use crate::flatten::{intersect, subtract};
use crate::limits;

impl<'d> Walk<'_, 'd> {
    pub(super) fn inlined(
        &mut self,
        entry: EntryId,
        attributes: &Attributes<'d>,
        parent: NonMaxU32,
    ) -> Option<NonMaxU32> {
        let depth = self.functions.nodes[parent.index()].depth + 1;
        if depth > limits::DEPTH {
            self.too_deep += 1;
            return Some(parent);
        }
        let first = self.functions.ranges.len();
        let around = self.functions.ranges(&self.functions.nodes[parent.index()]);
        let lies_in = |one: &(u64, u64)| {
            let around = around.get(around.partition_point(|around| around.1 < one.1));
            around.is_some_and(|around| around.0 <= one.0)
        };
        let plain = attributes.plain_range().and_then(|(start, end)| self.image.offsets(start, end));
        // A range inside a range of the parent lies in one executable section, because each range of the parent does.
        if let Some(one) = plain.filter(lies_in) {
            self.functions.ranges.push(one);
        } else {
            self.read_ranges(attributes);
            if self.stated.is_empty() {
                // Its children have their own ranges, which may still be right.
                return Some(parent);
            }
            self.within.clear();
            let around = self.functions.ranges(&self.functions.nodes[parent.index()]);
            let first = self.stated.first().map_or(0, |first| first.0);
            let first = around.partition_point(|around| around.1 <= first);
            intersect(&self.stated, &around[first..], &mut self.within);
            self.count_more_than_stated();
            self.functions.ranges.extend_from_slice(&self.within);
            self.add_outside(parent);
        }
        let name = self.inlined_name(entry, attributes);
        self.push(entry, Some(parent), depth, name, attributes, first)
    }

    /// Adds the parts of `stated` that are outside of `parent`, the parent of the next node, but inside of its
    /// function. GCC writes them where it may state one range for each call alone.
    fn add_outside(&mut self, parent: NonMaxU32) {
        let functions = &mut self.functions;
        let node = |number: NonMaxU32| &functions.nodes[number.index()];
        let function = std::iter::successors(Some(parent), |number| node(*number).parent).last();
        let Some(function) = function.filter(|function| *function != parent) else { return };
        let size = |ranges: &[(u64, u64)]| ranges.iter().map(|(start, end)| end - start).sum::<u64>();
        if self.limits.ranges == 0 || size(&self.within) == size(&self.stated) {
            return;
        }
        let mut outside = Vec::new();
        subtract(&self.stated, functions.ranges(node(parent)), &mut outside);
        self.within.clear();
        let all = functions.ranges(node(function));
        for part in outside {
            let first = all.partition_point(|range| range.1 <= part.0);
            intersect(&[part], &all[first..], &mut self.within);
        }
        self.count_more_than_stated();
        if let (false, Ok(number)) = (self.within.is_empty(), u32::try_from(self.functions.nodes.len())) {
            self.functions.ranges_outside.extend_from_slice(&self.within);
            self.functions.outside.push((number, self.functions.ranges_outside.len()));
        }
    }

    /// The number in `inlined` of an inlined subroutine's name.
    fn inlined_name(&mut self, entry: EntryId, attributes: &Attributes<'d>) -> Option<NonMaxU32> {
        let origin = attributes.origin_key();
        if let Some(known) = origin.and_then(|origin| self.by_origin.get(&origin)) {
            return Some(*known);
        }
        if self.unnamed.len() >= NAMES_AT_A_TIME {
            self.name_inlined();
        }
        let number = NonMaxU32::new((self.inlined.len() + self.unnamed.len()) as u64)?;
        self.unnamed.push((entry, *attributes));
        let is_there = |origin| self.names.units.entry(self.unit, origin).is_some();
        if let Some(origin) = origin.filter(|_| attributes.origin().is_some_and(is_there)) {
            self.by_origin.insert(origin, number);
        }
        Some(number)
    }

    /// Finds the names of the inlined subroutines in `unnamed`.
    pub(super) fn name_inlined(&mut self) {
        let unnamed = std::mem::take(&mut self.unnamed);
        for stated in self.names.stated_names(&unnamed) {
            let name = self.names.inlined(stated);
            let number = self.number(name);
            self.inlined.push(number);
        }
    }

    /// Counts the ranges in `within` that the entry does not list against the limit of range-list entries. An entry
    /// with one range has as many ranges in `within` as its parent has in that range.
    fn count_more_than_stated(&mut self) {
        let more = self.within.len().saturating_sub(self.stated.len()) as u64;
        self.functions.range_entries += more.min(self.limits.ranges);
        match self.limits.ranges.checked_sub(more) {
            Some(left) => self.limits.ranges = left,
            None => {
                self.limits.ranges = 0;
                self.bad_ranges += 1;
                self.within.clear();
            }
        }
    }
}
