//! The functions of a unit: its subprograms with code and, below each, the tree of inlined subroutines.

mod inlined;

use std::borrow::Cow;

use gimli::UnitOffset;
use symdex::write::NonMaxU32;

use super::attributes::Attributes;
use super::names::{Name, Names};
use super::slots::Slot;
use super::units::{EntryId, UnitEntry, Units};
use super::walk::Walker;
use crate::flatten::join;
use crate::image::Image;
use crate::keyed::KeyedMap;
use crate::limits::{UnitError, UnitLimits};
use crate::memory::Share;
use crate::pools::{Hashed, StringTable};
use crate::report::Problems;

/// The number of steps between two checks of the time and the memory.
const CHECKED: u64 = 1 << 10;
/// How many inlined subroutines wait until their names are found together.
const NAMES_AT_A_TIME: usize = 64;
/// About how many bytes of memory a node takes here and in the next stages, beside its ranges.
const NODE: usize = size_of::<Node>() + 64;
/// About how many bytes of memory a range of a node takes here and in the next stages.
const RANGE: usize = 128;

/// A subprogram or an inlined subroutine with code: one inline instance.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The node it is inlined into; `None` for a subprogram.
    pub(crate) parent: Option<NonMaxU32>,
    /// 0 for a subprogram.
    pub(crate) depth: u32,
    /// The number of its name in [`Functions::names`].
    pub(crate) name: Option<NonMaxU32>,
    /// The file of the call, as an index into the unit's line table.
    pub(crate) call_file: Option<NonMaxU32>,
    /// The line of the call.
    pub(crate) call_line: Option<NonMaxU32>,
    /// The offset of its entry in the unit, or `u32::MAX` if it does not fit.
    pub(crate) entry: u32,
    /// The indexes of its ranges in [`Functions::ranges`].
    ranges: std::ops::Range<u32>,
}

/// The functions of one unit.
#[derive(Default)]
pub(crate) struct Functions<'d> {
    /// Parents come before their children. The nodes of a subprogram come before those of the next one, unless one is
    /// nested in the other.
    pub(crate) nodes: Vec<Node>,
    /// The position of each subprogram's entry in the debug information of all units.
    pub(crate) places: Vec<usize>,
    /// The numbers of the functions that state the sequence with their line rows, and its offset in `.debug_line`.
    pub(super) line_sequences: Vec<(u32, u64)>,
    /// Image offsets.
    ranges: Vec<(u64, u64)>,
    /// The inlined nodes with code outside of their parents, in their order, and where their ranges end in
    /// `ranges_outside`.
    outside: Vec<(u32, usize)>,
    /// This code, as image offsets.
    ranges_outside: Vec<(u64, u64)>,
    pub(crate) names: Vec<Hashed<'d>>,
    /// How many range-list entries were read.
    pub(crate) range_entries: u64,
    /// How much work was done, in counted steps: functions, attributes that were read one by one, range-list entries.
    pub(crate) steps: u64,
    /// How many functions state code that is not in the image.
    pub(crate) functions_outside: u64,
    pub(crate) problems: Problems,
}

impl Functions<'_> {
    /// The ranges of a node as image offsets, sorted, disjoint, and inside those of its parent.
    pub(crate) fn ranges(&self, node: &Node) -> &[(u64, u64)] {
        &self.ranges[node.ranges.start as usize..node.ranges.end as usize]
    }

    /// The ranges of node `number` that are not inside those of its parent, but inside those of its function, as image
    /// offsets, sorted and disjoint. Few files have any.
    pub(crate) fn outside(&self, number: u32) -> &[(u64, u64)] {
        let Ok(at) = self.outside.binary_search_by_key(&number, |outside| outside.0) else { return &[] };
        let start = at.checked_sub(1).map_or(0, |before| self.outside[before].1);
        &self.ranges_outside[start..self.outside[at].1]
    }

    /// How many ranges all nodes have.
    pub(crate) fn ranges_len(&self) -> usize {
        self.ranges.len() + self.ranges_outside.len()
    }
}

/// Reads the functions of unit number `unit`. At most as many entries of range lists are read as `limits` states,
/// because any number of functions can share a list.
pub(crate) fn functions<'d>(
    image: &Image<'d>,
    units: &Units<'d>,
    unit: usize,
    limits: UnitLimits<'_>,
    share: &Share<'_>,
) -> Functions<'d> {
    // C++ and Rust have one function in about a hundred bytes.
    let about = (units.all[unit].unit.header.length_including_self() / 64).min(1 << 16);
    let mut walk = Walk::new(image, units, unit, limits, share, about);
    let mut all = || {
        let table = walk.entry.table()?;
        walk.all(&mut Walker::new(walk.entry, &table)?, isize::MIN)
    };
    let result = all();
    walk.finish(result.map(|_| ()))
}

/// Reads the functions of unit number `unit` with entries at these offsets, which are sorted. The second number of each
/// pair is the depth of the entry.
pub(super) fn functions_at<'d>(
    image: &Image<'d>,
    units: &Units<'d>,
    unit: usize,
    limits: UnitLimits<'_>,
    share: &Share<'_>,
    functions: &[(UnitOffset, isize)],
) -> Functions<'d> {
    let mut walk = Walk::new(image, units, unit, limits, share, 0);
    let mut read_until = UnitOffset(0);
    // The limit of attributes is one of the whole unit.
    let mut reads = None;
    let mut each = || {
        let table = walk.entry.table()?;
        for (offset, depth) in functions {
            // A function inside another one is read with it.
            if *offset >= read_until {
                walk.open.clear();
                let mut entries = Walker::at(walk.entry, &table, *offset, *depth)?;
                entries.reads = reads.unwrap_or(entries.reads);
                let end = walk.all(&mut entries, *depth);
                reads = Some(entries.reads);
                read_until = end?;
            }
        }
        Ok(())
    };
    let result = each();
    walk.finish(result)
}

struct Walk<'a, 'd> {
    image: &'a Image<'d>,
    entry: &'a UnitEntry<'d>,
    unit: usize,
    limits: UnitLimits<'a>,
    share: &'a Share<'a>,
    /// How much work was done, in counted steps.
    steps: u64,
    names: Names<'a, 'd>,
    functions: Functions<'d>,
    /// Numbers in `inlined` by abstract origins; see [`Attributes::origin_key`].
    by_origin: KeyedMap<u64, NonMaxU32>,
    /// The numbers of the names of inlined subroutines. Until the walk ends, nodes refer to these.
    inlined: Vec<Option<NonMaxU32>>,
    /// The inlined subroutines that are next in `inlined`. Their names are found together.
    unnamed: Vec<(EntryId, Attributes<'d>)>,
    /// Finds the numbers of names.
    numbers: StringTable,
    /// How many bytes of names do not borrow from the debug file.
    text: usize,
    /// The functions that enclose the current entry: the depth and the node of each. The node is `None` for a function
    /// without code.
    open: Vec<(isize, Option<NonMaxU32>)>,
    /// The ranges of the current entry in executable sections, as image offsets, sorted and disjoint.
    stated: Vec<(u64, u64)>,
    /// The parts of `stated` that lie in the enclosing node.
    within: Vec<(u64, u64)>,
    too_deep: u64,
    bad_ranges: u64,
}

impl<'a, 'd> Walk<'a, 'd> {
    /// Starts to read a unit that has about `about` functions.
    fn new(
        image: &'a Image<'d>,
        units: &'a Units<'d>,
        unit: usize,
        limits: UnitLimits<'a>,
        share: &'a Share<'a>,
        about: usize,
    ) -> Self {
        let functions = Functions {
            nodes: Vec::with_capacity(about),
            ranges: Vec::with_capacity(about),
            ..Functions::default()
        };
        Self {
            image,
            entry: &units.all[unit],
            unit,
            limits,
            share,
            steps: 0,
            names: Names::new(image, units, unit),
            functions,
            by_origin: KeyedMap::default(),
            inlined: Vec::new(),
            unnamed: Vec::new(),
            numbers: StringTable::default(),
            text: 0,
            open: Vec::new(),
            stated: Vec::new(),
            within: Vec::new(),
            too_deep: 0,
            bad_ranges: 0,
        }
    }

    /// The functions that were found, and what went wrong.
    fn finish(mut self, result: Result<(), UnitError>) -> Functions<'d> {
        self.name_inlined();
        let result = result.and_then(|()| self.check());
        let file_size = self.image.debug_size;
        let Walk { mut functions, names, entry, too_deep, bad_ranges, steps, inlined, .. } = self;
        for node in functions.nodes.iter_mut().filter(|node| node.parent.is_some()) {
            node.name = node.name.and_then(|number| inlined[number.index()]);
        }
        functions.steps = steps + names.reads.done + names.steps + functions.range_entries;
        match result {
            Ok(()) => {}
            Err(UnitError::TooManyReads) => {
                functions.problems.unit_limit(entry.offset, &UnitError::TooManyReads.to_string());
            }
            Err(error) => functions.problems.unit(entry.offset, &error.to_string()),
        }
        functions.problems.limit("inlined subroutines nested too deeply", too_deep);
        functions.problems.add("unreadable range lists of functions", bad_ranges);
        if names.cut.get() > file_size {
            functions.problems.exceeds("more bytes of names longer than the limit than the file has");
        }
        functions.problems.add("names whose origins form a circle or a long chain", names.too_long);
        functions
    }

    /// Reads the first entry and the entries after it that are deeper than `depth`. Returns the offset of the next
    /// entry.
    fn all(&mut self, entries: &mut Walker<'_, 'd>, depth: isize) -> Result<UnitOffset, UnitError> {
        let before = entries.reads.done;
        let result = self.all_of(entries, depth);
        self.steps += entries.reads.done - before;
        result
    }

    fn all_of(&mut self, entries: &mut Walker<'_, 'd>, depth: isize) -> Result<UnitOffset, UnitError> {
        let mut is_first = true;
        while let Some(found) = entries.next()? {
            self.steps += 1;
            if self.steps.is_multiple_of(CHECKED) {
                self.check()?;
            }
            if found.depth <= depth && !std::mem::take(&mut is_first) {
                return Ok(found.offset);
            }
            while self.open.pop_if(|(opened, _)| *opened >= found.ended).is_some() {}
            let entry = (self.unit, found.offset);
            let node = match (found.is_subprogram, found.states_code) {
                (true, true) => self.subprogram(entry, entries.attributes()),
                (false, true) => {
                    let around = self.open.last().filter(|(depth, _)| !found.is_hidden_from(*depth));
                    let around = around.and_then(|(_, node)| *node);
                    // An inlined subroutine without code around it is part of an abstract function.
                    around.and_then(|parent| self.inlined(entry, entries.attributes(), parent))
                }
                // A declaration or an abstract function.
                (_, false) => None,
            };
            if found.has_children {
                self.open.push((found.depth, node));
            }
        }
        Ok(UnitOffset(usize::MAX))
    }

    /// Checks the time, and takes memory for what was read.
    fn check(&self) -> Result<(), UnitError> {
        let Functions { nodes, ranges, names, .. } = &self.functions;
        let size = nodes.len() * NODE
            + (ranges.len() + self.functions.ranges_outside.len()) * RANGE
            + names.len() * 2 * size_of::<Hashed<'_>>()
            + self.by_origin.len() * 32
            + size_of_val(&self.inlined[..])
            + self.names.size()
            + self.text;
        if !self.limits.deadline.is_over() && self.share.take_up_to(size) {
            return Ok(());
        }
        Err(UnitError::GivenUp)
    }

    fn subprogram(&mut self, entry: EntryId, attributes: &Attributes<'d>) -> Option<NonMaxU32> {
        let first = self.read_ranges(attributes);
        if self.stated.is_empty() {
            self.functions.functions_outside += u64::from(first.is_some());
            return None;
        }
        let UnitEntry { dwarf, unit, .. } = self.entry;
        let start = attributes.entry(dwarf, unit, first);
        let start = start.and_then(|start| start.checked_sub(self.image.info.base));
        let stated = self.names.stated_name(entry, attributes);
        let name = self.names.concrete(stated, start);
        let name = self.number(name);
        let first = self.functions.ranges.len();
        self.functions.ranges.extend_from_slice(&self.stated);
        self.push(entry, None, 0, name, attributes, first)
    }

    /// The number of a name in this unit.
    fn number(&mut self, name: Option<Name<'d>>) -> Option<NonMaxU32> {
        let name = Hashed::new(name?);
        let names = &mut self.functions.names;
        if let Some(number) = self.numbers.find(&name, |number| &names[number as usize].string) {
            return NonMaxU32::new(number.into());
        }
        let number = NonMaxU32::new(names.len() as u64)?;
        self.numbers.insert(&name, number.get());
        self.text += if let Cow::Owned(text) = &name.string { text.len() } else { 0 };
        names.push(name);
        Some(number)
    }

    fn push(
        &mut self,
        entry: EntryId,
        parent: Option<NonMaxU32>,
        depth: u32,
        name: Option<NonMaxU32>,
        attributes: &Attributes<'d>,
        first_range: usize,
    ) -> Option<NonMaxU32> {
        let ranges = u32::try_from(first_range).ok()?..u32::try_from(self.functions.ranges.len()).ok()?;
        let number = NonMaxU32::new(self.functions.nodes.len() as u64)?;
        let call_file = attributes.constant(Slot::CallFile).and_then(NonMaxU32::new);
        let call_line = attributes.constant(Slot::CallLine).and_then(NonMaxU32::new);
        let offset = u32::try_from(entry.1.0).unwrap_or(u32::MAX);
        if parent.is_none() {
            if let Some(sequence) = attributes.line_sequence() {
                let function = u32::try_from(self.functions.places.len()).ok()?;
                self.functions.line_sequences.push((function, sequence));
            }
            self.functions.places.push(self.entry.before.saturating_add(entry.1.0));
        }
        self.functions.nodes.push(Node { parent, depth, name, call_file, call_line, entry: offset, ranges });
        Some(number)
    }

    /// Sets `stated` to the ranges of an entry. Returns the SVMA at which the first listed range starts.
    fn read_ranges(&mut self, attributes: &Attributes<'d>) -> Option<u64> {
        let Self { image, functions: Functions { problems, .. }, stated: ranges, .. } = self;
        ranges.clear();
        let mut first = None;
        let mut left = self.limits.ranges;
        let result = attributes.each_range(&self.entry.dwarf, &self.entry.unit, &mut left, |start, end| {
            first.get_or_insert(start);
            match image.executable_part(start, end) {
                Some(part) => ranges.push(part),
                None if start > end => problems.dropped("inverted ranges of functions", 1),
                None if start == end => problems.dropped("empty ranges of functions", 1),
                // Linkers set the addresses of dropped code to 0, 1, -1 or -2.
                None => problems.dropped("ranges of functions outside of the executable sections", 1),
            }
        });
        self.functions.range_entries += self.limits.ranges - left;
        self.limits.ranges = left;
        match result {
            Ok(passed_over) => problems.dropped("range-list entries that state no code", passed_over),
            Err(_) => self.bad_ranges += 1,
        }
        if self.stated.len() > 1 {
            join(&mut self.stated);
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use gimli::constants as dw;
    use symdex_testkit::images::debug_file::{Die, Unit, Value, debug_file};

    use super::*;
    use crate::memory::Memory;

    #[test]
    fn functions_that_are_read_one_by_one_share_the_units_limit_of_attributes() {
        let flag =
            |die: Die, _| die.with(dw::DW_AT_external, Value::Form(dw::DW_FORM_flag_present, Vec::new()));
        let function = (0..1000).fold(Die::function("f", (0x1000, 0x1100)), flag);
        let file = debug_file(&[Unit::new((0x1000, 0x1100)).child(function.copies(1000))], &[]);
        let companions = crate::Companions::default();
        let slice = crate::slices(&file).expect("a Mach-O file").remove(0);
        let image = Image::load(&slice, "made-up", &companions).expect("loads");
        let memory = Memory::new(usize::MAX);
        let limits = UnitLimits::without_deadline(&image, &memory);
        let units = Units::read(&image, limits, &mut Problems::default()).expect("small");
        let table = units.all[0].table().expect("read");
        let mut entries = Walker::new(&units.all[0], &table).expect("has entries");
        let mut next = || entries.next().expect("within the limit").expect("a function");
        let (first, second) = (next(), next());
        let size = second.offset.0 - first.offset.0;
        let at = |number| (UnitOffset(first.offset.0 + number * size), first.depth);
        let errors = |count: usize| {
            let all: Vec<_> = (0..count).map(at).collect();
            let functions = functions_at(&image, &units, 0, limits, &Share::new(&memory), &all);
            functions.problems.lost().keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(errors(100), [""; 0]);
        assert_eq!(errors(1000), [format!("unit at 0x0: {}", UnitError::TooManyReads)]);
    }
}
