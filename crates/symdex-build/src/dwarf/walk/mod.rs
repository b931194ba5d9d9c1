//! A walk through the entries of a unit. It stops at functions, or at the scopes of functions.

use gimli::{Abbreviation, EntriesRaw, UnitOffset};

use super::attributes::Attributes;
use super::shapes::{Of, Passes, Shape, Shapes, leb};
use super::tables::Table;
use super::units::UnitEntry;
use crate::image::Reader;
use crate::limits::{Reads, UnitError};

/// Reads a unit's entries by their shapes. gimli reads entries that have no shape or are damaged.
pub(crate) struct Walker<'a, 'd> {
    unit: &'a UnitEntry<'d>,
    table: &'a Table,
    shapes: &'a Shapes,
    /// The bytes of the unit from its root entry on.
    bytes: &'d [u8],
    /// The position of the next entry in these bytes.
    at: usize,
    /// The depth of the next entry.
    depth: isize,
    /// The lowest depth since the last stop.
    lowest: isize,
    /// One bit for each ancestor of the next entry: whether the ancestor hides its children. The lowest bit is the
    /// parent's. Entries at depth [`MAX_HIDING`] or deeper have no bit.
    hides: u64,
    /// The attributes of the last function that states code, or of the last scope.
    attributes: Attributes<'d>,
    /// Counts the attributes that gimli reads.
    pub(crate) reads: Reads,
}

/// An entry at which a walk stops.
pub(crate) struct WalkedEntry {
    pub(crate) offset: UnitOffset,
    pub(crate) depth: isize,
    /// Entries at this depth or deeper have ended.
    pub(crate) ended: isize,
    pub(crate) is_subprogram: bool,
    pub(crate) is_namespace: bool,
    pub(crate) has_children: bool,
    pub(crate) states_code: bool,
    /// The value of [`Walker::hides`] before this entry.
    hides: u64,
}

/// The walk passes over subprograms without code only at depths less than this.
const MAX_HIDING: isize = 64;

impl WalkedEntry {
    /// Whether a subprogram without code lies between this entry and its ancestor at `depth`.
    pub(crate) fn is_hidden_from(&self, depth: isize) -> bool {
        let between = self.depth.min(MAX_HIDING) - 1 - depth.max(-1);
        between > 0 && self.hides << (MAX_HIDING - between) != 0
    }
}

impl<'a, 'd> Walker<'a, 'd> {
    /// A walker before the root entry of a unit with this table.
    pub(crate) fn new(unit: &'a UnitEntry<'d>, table: &'a Table) -> gimli::Result<Self> {
        let header = &unit.unit.header;
        let shapes = table.shapes(header.encoding());
        let bytes = header.range_from(header.root_offset()..)?.slice();
        let (attributes, reads) = (Attributes::default(), Reads::of_unit(bytes.len()));
        Ok(Self { unit, table, shapes, bytes, at: 0, depth: 0, lowest: 0, hides: 0, attributes, reads })
    }

    /// A walker before the entry at `offset`, which has this depth. It does not know whether ancestors of that entry
    /// hide their children.
    pub(crate) fn at(
        unit: &'a UnitEntry<'d>,
        table: &'a Table,
        offset: UnitOffset,
        depth: isize,
    ) -> gimli::Result<Self> {
        let mut walker = Self::new(unit, table)?;
        (walker.at, walker.depth, walker.lowest) = (walker.at_of(offset), depth, depth);
        Ok(walker)
    }

    /// The attributes of the last function that states code, or of the last scope.
    pub(crate) fn attributes(&self) -> &Attributes<'d> {
        &self.attributes
    }

    /// The next subprogram or inlined subroutine that states code. At depth [`MAX_HIDING`] or deeper, subprograms with
    /// children but without code are returned as well.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<WalkedEntry>, UnitError> {
        let deep = |shape: &Shape, depth| shape.hides() && !(0..MAX_HIDING).contains(&depth);
        let stops = |shape: &Shape, depth| shape.states_code || deep(shape, depth);
        self.next_of(&self.shapes.functions, stops, |shape| shape.states_code)
    }

    /// The next namespace, type or subprogram.
    pub(crate) fn next_in_scopes(&mut self) -> Result<Option<WalkedEntry>, UnitError> {
        let stops = |shape: &Shape, _| shape.is_scope_or_in_one();
        self.next_of(&self.shapes.scopes, stops, Shape::is_scope)
    }

    /// The next entry at which the walk stops. The walk stops at every entry whose attributes are read.
    #[inline]
    fn next_of(
        &mut self,
        passes: &Passes,
        stops: impl Fn(&Shape, isize) -> bool,
        reads: impl Fn(&Shape) -> bool,
    ) -> Result<Option<WalkedEntry>, UnitError> {
        let shapes = self.shapes;
        loop {
            self.pass(passes);
            if self.at == self.bytes.len() {
                return Ok(None);
            }
            let (start, depth, hides) = (self.at, self.depth, self.hides);
            let code = leb(self.bytes, &mut self.at);
            if code == Some(0) {
                self.end_children();
                continue;
            }
            let unknown;
            let shape = match code.and_then(|code| shapes.get(code)) {
                Some(shape) => shape,
                None => {
                    unknown = Shape::unknown(self.entry(start)?.0);
                    &unknown
                }
            };
            if shape.has_children {
                self.begin_children(shape);
            }
            if reads(shape) {
                self.read(shape, start)?;
            } else {
                match shapes.end(shape, self.bytes, self.at) {
                    Some(end) => self.at = end,
                    None => self.skip(start)?,
                }
                if !stops(shape, depth) {
                    continue;
                }
            }
            return Ok(Some(WalkedEntry {
                offset: self.offset_of(start),
                depth,
                ended: std::mem::replace(&mut self.lowest, self.depth).min(depth),
                is_subprogram: shape.of == Of::Subprogram,
                is_namespace: shape.of == Of::Namespace,
                has_children: shape.has_children,
                states_code: shape.states_code,
                hides,
            }));
        }
    }

    /// Passes over common entries at which the walk does not stop. Most of a walk's time is spent here. It is a
    /// separate function so that all its variables stay in registers.
    #[inline(never)]
    fn pass(&mut self, passes: &Passes) {
        if !(0..MAX_HIDING - 1).contains(&self.depth) {
            return;
        }
        let bytes = self.bytes;
        // An entry that begins in these bytes and is passed by its size alone ends in the unit.
        let sure = &bytes[..bytes.len().saturating_sub(passes.longest)];
        let mut at = self.at;
        // The bits of `hides` and, above them, one more bit that marks the depth. So the path of a lower depth is less
        // than that of a greater one. At depth -1 the path is 0, and at depth `MAX_HIDING - 1` its top bit is set.
        let mut path = self.hides | 1 << self.depth;
        let mut lowest = path;
        while path.cast_signed() > 0
            && let Some(first) = sure.get(at)
        {
            let (pass, size) = match passes.first(*first) {
                Some(pass) => (pass, usize::from(pass.size)),
                None => match passes.odd(bytes, at) {
                    Some(odd) => odd,
                    None => break,
                },
            };
            at += size;
            path = (path << 1 | u64::from(pass.hides)) >> pass.up;
            lowest = lowest.min(path);
        }
        let depth_of = |path: u64| MAX_HIDING - 1 - path.leading_zeros() as isize;
        self.at = at;
        (self.depth, self.lowest) = (depth_of(path), self.lowest.min(depth_of(lowest)));
        self.hides = path.checked_ilog2().map_or(0, |mark| path & !(1 << mark));
    }

    /// Descends to the children of the last entry, whose shape is `shape`.
    fn begin_children(&mut self, shape: &Shape) {
        if (0..MAX_HIDING).contains(&self.depth) {
            self.hides = self.hides << 1 | u64::from(shape.hides());
        }
        self.depth += 1;
    }

    fn end_children(&mut self) {
        self.depth -= 1;
        self.lowest = self.lowest.min(self.depth);
        if (0..MAX_HIDING).contains(&self.depth) {
            self.hides >>= 1;
        }
    }

    /// Reads the attributes of the entry at `start`. The walker is at the first attribute.
    #[inline]
    fn read(&mut self, shape: &Shape, start: usize) -> Result<(), UnitError> {
        let steps = self.shapes.steps(shape);
        match steps.and_then(|steps| self.attributes.read_steps(steps, self.bytes, &mut self.at)) {
            Some(()) => Ok(()),
            None => self.read_by_gimli(start),
        }
    }

    #[cold]
    fn read_by_gimli(&mut self, start: usize) -> Result<(), UnitError> {
        let (abbreviation, mut entries) = self.entry(start)?;
        self.reads.add(abbreviation.attributes().len())?;
        self.attributes = Attributes::read(&mut entries, abbreviation.attributes())?;
        self.at = self.at_of(entries.next_offset());
        Ok(())
    }

    /// Skips the entry at `start` with gimli.
    #[cold]
    fn skip(&mut self, start: usize) -> Result<(), UnitError> {
        let (abbreviation, mut entries) = self.entry(start)?;
        self.reads.add(abbreviation.attributes().len())?;
        entries.skip_attributes(abbreviation.attributes())?;
        self.at = self.at_of(entries.next_offset());
        Ok(())
    }

    /// The entry at `start`, by [`entry_at`].
    fn entry(&self, start: usize) -> gimli::Result<(&'a Abbreviation, EntriesRaw<'a, Reader<'d>>)> {
        entry_at(self.unit, self.table, self.offset_of(start))
    }

    /// The unit offset of position `at`.
    fn offset_of(&self, at: usize) -> UnitOffset {
        UnitOffset(self.unit.unit.header.root_offset().0 + at)
    }

    /// The position of a unit offset.
    fn at_of(&self, offset: UnitOffset) -> usize {
        offset.0 - self.unit.unit.header.root_offset().0
    }
}

/// The entry at `offset` of a unit with this table as gimli sees it: its abbreviation, and a reader of its attributes.
fn entry_at<'t, 'd>(
    unit: &UnitEntry<'d>,
    table: &'t Table,
    offset: UnitOffset,
) -> gimli::Result<(&'t Abbreviation, EntriesRaw<'t, Reader<'d>>)> {
    let mut entries = unit.entries(table, Some(offset))?;
    let abbreviation = entries.read_abbreviation()?.ok_or(gimli::Error::InvalidAbbreviationCode(0))?;
    Ok((abbreviation, entries))
}

/// The attributes of the function at `offset` of a unit with this table. `reads` counts those that gimli reads.
pub(crate) fn attributes_at<'d>(
    unit: &UnitEntry<'d>,
    table: &Table,
    offset: UnitOffset,
    reads: &mut Reads,
) -> Result<Attributes<'d>, UnitError> {
    let (bytes, mut at) = (unit.unit.header.range_from(offset..)?.slice(), 0);
    let shapes = table.shapes(unit.unit.header.encoding());
    let shape = leb(bytes, &mut at).and_then(|code| shapes.get(code));
    let mut attributes = Attributes::default();
    let steps = shape.and_then(|shape| shapes.steps(shape));
    if steps.and_then(|steps| attributes.read_steps(steps, bytes, &mut at)).is_some() {
        return Ok(attributes);
    }
    let (abbreviation, mut entries) = entry_at(unit, table, offset)?;
    reads.add(abbreviation.attributes().len())?;
    Ok(Attributes::read(&mut entries, abbreviation.attributes())?)
}

#[cfg(test)]
mod tests;
