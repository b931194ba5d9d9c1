//! The ranges of a unit: its inline instances and its line rows, joined.

use gimli::{UnitOffset, constants};
use symdex::Seen;
use symdex::write::{InlineFrame, NonMaxU32};

use super::functions::{Functions, functions};
use super::inline_frames::{Callee, InlineFrames};
use super::instances::{Instance, instances, stated_sequences};
use super::lines::Lines;
use super::rows::Row;
use super::statements::Statements;
use super::tables::TableRef;
use super::units::{UnitEntry, Units};
use crate::direct::add_column;
use crate::image::Image;
use crate::keyed::KeyedMap;
use crate::limits::{Reads, UnitLimits};
use crate::memory::Share;
use crate::unit_ranges::{FunctionRange, UnitRange, UnitRanges};

/// The ranges of unit number `unit`, read within `limits`. After the deadline they are not complete; the build then
/// fails. Returns `None` if too little memory is left. Otherwise the result takes [`UnitRanges::size`] bytes of it.
pub(crate) fn unit_ranges<'d>(
    image: &Image<'d>,
    units: &Units<'d>,
    unit: usize,
    limits: UnitLimits<'_>,
) -> Option<UnitRanges<'d>> {
    if limits.deadline.is_over() {
        return Some(UnitRanges::default());
    }
    let share = Share::new(limits.memory);
    let mut functions = functions(image, units, unit, limits, &share);
    if share.is_exceeded() {
        return None;
    }
    let (function_ranges, instances) = instances(image, &functions);
    let entry = &units.all[unit];
    let stated = stated_sequences(&functions, &function_ranges, &instances);
    let lines = Lines::read(image, entry, &stated, limits.deadline, &share, &mut functions.problems);
    let joined = joined(image, units, unit, functions, (function_ranges, instances), &lines, &share)?;
    share.keep(joined.size());
    Some(joined)
}

/// Joins the functions of unit number `unit`, their function ranges and inline instances, and its line rows into
/// ranges. Returns `None` if too little memory is left.
pub(super) fn joined<'d>(
    image: &Image<'d>,
    units: &Units<'d>,
    unit: usize,
    functions: Functions<'d>,
    (function_ranges, instances): (Vec<FunctionRange>, Vec<Instance>),
    lines: &Lines<'d>,
    share: &Share<'_>,
) -> Option<UnitRanges<'d>> {
    let (rows, nodes, ranges) = (lines.rows.len(), functions.nodes.len(), lines.rows.len() + instances.len());
    // A row takes a frame and its place in the table of frames.
    const FRAME: usize = size_of::<InlineFrame>() + 8;
    let size = ranges * size_of::<UnitRange>() + (rows + nodes) * FRAME + lines.files() * 8;
    if share.is_exceeded() || !share.take(size) {
        return None;
    }
    let mut join = Join {
        image,
        unit: &units.all[unit],
        columns: units.with_columns.then(|| Columns::new(&units.all[unit])),
        functions: &functions,
        lines,
        share,
        callees: vec![None; functions.nodes.len()],
        chain: Vec::new(),
        statements: Statements::new(functions.nodes.len()),
        // More than half of the calls and rows have an inline frame of their own.
        frames: InlineFrames::with_capacity((functions.nodes.len() + lines.rows.len()) / 3 * 2),
        file_numbers: vec![None; lines.files()],
        out: UnitRanges {
            // Rows that instances cut into pieces are about as many as rows that are merged.
            ranges: Vec::with_capacity(lines.rows.len()),
            ..Default::default()
        },
    };
    join.run(&instances);
    let Join { frames, out, .. } = join;
    let seen = Seen {
        functions: functions.places.len() as u64,
        inlined: (functions.nodes.len() - functions.places.len()) as u64,
        rows: lines.rows.len() as u64,
        functions_outside: functions.functions_outside,
        ..Seen::default()
    };
    Some(UnitRanges {
        seen,
        function_ranges,
        functions: u32::try_from(functions.places.len()).unwrap_or(u32::MAX),
        range_entries: functions.range_entries,
        steps: functions.steps + lines.steps,
        problems: functions.problems,
        frames: frames.frames,
        names: functions.names,
        ..out
    })
    .filter(|_| !share.is_exceeded())
}

struct Join<'a, 'd> {
    image: &'a Image<'d>,
    unit: &'a UnitEntry<'d>,
    /// If columns are wanted.
    columns: Option<Columns<'a, 'd>>,
    functions: &'a Functions<'d>,
    lines: &'a Lines<'d>,
    share: &'a Share<'a>,
    /// The callee of each node. A callee is made when an address first needs it. Inline frames are therefore numbered
    /// in address order, the order in which chunks use them.
    callees: Vec<Option<Callee>>,
    /// A buffer for nodes that have no callee yet.
    chain: Vec<u32>,
    statements: Statements,
    frames: InlineFrames,
    /// The number of each file of the line table, once it is known.
    file_numbers: Vec<Option<Option<NonMaxU32>>>,
    out: UnitRanges<'d>,
}

impl Join<'_, '_> {
    fn run(&mut self, mut instances: &[Instance]) {
        let mut at = 0;
        for row in &self.lines.rows {
            if at < row.start {
                instances = self.uncovered(instances, at, row.start);
            }
            at = row.start;
            while at < row.end {
                while let [instance, rest @ ..] = instances
                    && instance.end <= at
                {
                    instances = rest;
                }
                let (of_instance, end) = match instances.first() {
                    Some(next) if next.start <= at => (Some((next.node, next.function_range)), next.end),
                    next => (None, next.map_or(u32::MAX, |next| next.start)),
                };
                let end = end.min(row.end);
                self.covered(at, end, of_instance, row);
                at = end;
            }
        }
        self.uncovered(instances, at, u32::MAX);
    }

    /// Adds code that `row` covers.
    fn covered(&mut self, start: u32, end: u32, instance: Option<(u32, NonMaxU32)>, row: &Row) {
        let (node, function_range) = instance.unzip();
        let file = self.file_and_column(row.file, row.column.into());
        let callee = self.callee(node);
        let exact = self.frames.number(callee, file, row.line);
        let own = (row.file, row.line);
        let statement = match node.map_or(own, |node| self.statements.next(node, row)) {
            statement if statement == own => exact,
            (file, line) => {
                let file = self.file(file);
                self.frames.number(callee, file, line)
            }
        };
        self.push(start, end, function_range, exact, statement);
    }

    /// Adds the code of functions between `at` and `until`. No row covers these addresses. Returns the instances that
    /// end after `until`.
    fn uncovered<'i>(&mut self, mut instances: &'i [Instance], mut at: u32, until: u32) -> &'i [Instance] {
        while let [instance, rest @ ..] = instances
            && instance.start < until
        {
            at = at.max(instance.start);
            while at < instance.end.min(until) {
                at = self.without_row(at, instance.end.min(until), *instance);
            }
            if instance.end > until {
                break;
            }
            instances = rest;
        }
        instances
    }

    /// Adds code of a function that no row covers, up to the first address with a different answer. Returns the end of
    /// the added code.
    fn without_row(&mut self, start: u32, end: u32, instance: Instance) -> u32 {
        let after = self.lines.ends.partition_point(|sequence| sequence.at <= start);
        let end = self.lines.ends.get(after).map_or(end, |sequence| sequence.at.min(end));
        let last = after.checked_sub(1).map(|index| self.lines.ends[index]);
        let (file, line) = last.map_or((None, None), |last| (self.file(last.file), last.line));
        let callee = self.callee(Some(instance.node));
        let (exact, statement) =
            (self.frames.number(callee, None, None), self.frames.number(callee, file, line));
        self.push(start, end, Some(instance.function_range), exact, statement);
        end
    }

    fn push(&mut self, start: u32, end: u32, function_range: Option<NonMaxU32>, exact: u32, statement: u32) {
        match self.out.ranges.last_mut() {
            Some(last)
                if (last.exact, last.statement, last.end, last.function_range)
                    == (exact, statement, start, function_range) =>
            {
                last.end = end;
            }
            _ => self.out.ranges.push(UnitRange { start, end, function_range, exact, statement }),
        }
    }

    /// The callee of a node. If `node` is `None`, the callee of line rows outside of functions.
    #[inline]
    fn callee(&mut self, node: Option<u32>) -> Callee {
        match node.map(|node| (node, self.callees[node as usize])) {
            Some((_, Some(callee))) => callee,
            Some((node, None)) => self.add_callee(node),
            None => Callee::default(),
        }
    }

    /// Makes the callees of a node and of the nodes around it, and the inline frames of their calls. Returns the node's
    /// callee.
    #[inline(never)]
    fn add_callee(&mut self, node: u32) -> Callee {
        let (mut next, mut outer) = (Some(node), None);
        while let Some(node) = next {
            outer = self.callees[node as usize];
            if outer.is_some() {
                break;
            }
            self.chain.push(node);
            next = self.functions.nodes[node as usize].parent.map(NonMaxU32::get);
        }
        while let Some(number) = self.chain.pop() {
            let node = &self.functions.nodes[number as usize];
            let caller = outer.and_then(|outer| {
                let file = node.call_file;
                let column = self.columns.as_mut().map_or(0, |columns| columns.of_call(node.entry));
                let file = file.and_then(|file| self.file_and_column(file.get(), column));
                NonMaxU32::new(u64::from(self.frames.number(outer, file, node.call_line)))
            });
            let callee = Callee { caller, name: node.name };
            self.callees[number as usize] = Some(callee);
            outer = Some(callee);
        }
        // The last callee made is the callee of the given node.
        outer.unwrap_or_default()
    }

    /// The number of a file of the unit's line table. Returns `None` if the table has no such file.
    #[inline]
    fn file(&mut self, index: u32) -> Option<NonMaxU32> {
        match *self.file_numbers.get(index as usize)? {
            Some(number) => number,
            None => self.add_file(index),
        }
    }

    fn add_file(&mut self, index: u32) -> Option<NonMaxU32> {
        let path = self.lines.path(self.image, self.unit, index.into());
        let number = path.and_then(|path| self.add_path(path));
        self.file_numbers[index as usize] = Some(number);
        number
    }

    fn add_path(&mut self, path: Vec<u8>) -> Option<NonMaxU32> {
        if !self.share.take(size_of_val(&path) + path.len()) {
            return None;
        }
        self.out.files.push(path);
        NonMaxU32::new(self.out.files.len() as u64 - 1)
    }

    /// As [`Self::file`]. If columns are wanted, the file has this column, too.
    #[inline]
    fn file_and_column(&mut self, index: u32, column: u32) -> Option<NonMaxU32> {
        if column != 0 && self.columns.is_some() { self.with_column(index, column) } else { self.file(index) }
    }

    #[inline(never)]
    fn with_column(&mut self, index: u32, column: u32) -> Option<NonMaxU32> {
        let known = self.columns.as_ref().and_then(|columns| columns.files.get(&(index, column)));
        if let Some(number) = known {
            return *number;
        }
        const PLACE: usize = 2 * size_of::<((u32, u32), Option<NonMaxU32>)>();
        let number = self.file(index).filter(|_| self.share.take(PLACE)).and_then(|file| {
            let mut path = self.out.files[file.index()].clone();
            add_column(&mut path, column);
            self.add_path(path)
        });
        self.columns.as_mut().map(|columns| columns.files.insert((index, column), number));
        number
    }
}

/// What is needed for columns.
struct Columns<'a, 'd> {
    unit: &'a UnitEntry<'d>,
    /// `None` if it cannot be read.
    table: Option<TableRef<'a>>,
    reads: Reads,
    /// The number of each file and column.
    files: KeyedMap<(u32, u32), Option<NonMaxU32>>,
}

impl<'a, 'd> Columns<'a, 'd> {
    fn new(unit: &'a UnitEntry<'d>) -> Self {
        let reads = Reads::of_unit(unit.unit.header.length_including_self());
        Self { unit, table: unit.table().ok(), reads, files: KeyedMap::default() }
    }

    /// The column of the call at the entry `offset`, or 0. A build does not read it, so it is not among the attributes
    /// of functions.
    fn of_call(&mut self, offset: u32) -> u32 {
        self.read_call(offset).unwrap_or(0)
    }

    fn read_call(&mut self, offset: u32) -> Option<u32> {
        let mut entries = self.unit.entries(self.table.as_ref()?, Some(UnitOffset(offset as usize))).ok()?;
        let specifications = entries.read_abbreviation().ok()??.attributes();
        self.reads.add(specifications.len()).ok()?;
        let mut attributes = specifications.iter().map_while(|one| entries.read_attribute(*one).ok());
        let column = attributes.find(|attribute| attribute.name() == constants::DW_AT_call_column)?;
        u32::try_from(column.udata_value()?).ok()
    }
}
