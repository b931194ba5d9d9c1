//! Functions of a symbol file as the ranges of units.

use std::cmp::Reverse;

use symdex::Seen;
use symdex::write::NonMaxU32;

use super::function::{Function, InlinedCall, Line, TextsLeft};
use super::{NAMES_LEFT_OUT, Records, cut, is_known};
use crate::dwarf::{Callee, InlineFrames};
use crate::image::short;
use crate::keyed::KeyedMap;
use crate::limits::{CALLED_CODE, DEPTH, NAME, PATH};
use crate::pools::Hashed;
use crate::report::Problems;
use crate::unit_ranges::{FunctionRange, UnitRange, UnitRanges};

/// Makes units of functions. The functions of one unit do not overlap.
pub(super) struct UnitMaker<'f, 'd> {
    records: &'f dyn Records<'d>,
    texts: TextsLeft,
    out: Vec<UnitRanges<'d>>,
    unit: Unit<'d>,
    problems: Problems,
    /// A buffer for the chain of calls.
    chain: Chain,
}

/// The unit that is being made.
struct Unit<'d> {
    ranges: Vec<UnitRange>,
    function_ranges: Vec<FunctionRange>,
    frames: InlineFrames,
    names: Vec<Hashed<'d>>,
    files: Vec<Vec<u8>>,
    /// The numbers in `names` and `files` of what the symbol file has by these numbers.
    name_numbers: KeyedMap<u64, Option<NonMaxU32>>,
    file_numbers: KeyedMap<u64, Option<NonMaxU32>>,
    /// The end of its last function.
    end: u64,
    seen: Seen,
}

impl Default for Unit<'_> {
    fn default() -> Self {
        Self {
            ranges: Vec::new(),
            function_ranges: Vec::new(),
            frames: InlineFrames::with_capacity(0),
            names: Vec::new(),
            files: Vec::new(),
            name_numbers: KeyedMap::default(),
            file_numbers: KeyedMap::default(),
            end: 0,
            seen: Seen::default(),
        }
    }
}

/// The calls that are inlined at the current address.
#[derive(Default)]
struct Chain {
    /// By depth: the number of the call.
    active: Vec<Option<u32>>,
    /// The function itself, then those of the active calls that are known already, down to the first depth without one.
    callees: Vec<Callee>,
    /// How many of the calls in `active` there are.
    open: usize,
    /// How many calls that are nested too deeply are at the current address.
    too_deep: usize,
    /// The file of the function's own lines.
    file: Option<u64>,
    /// How many frames of calls may still be made for the function.
    left: usize,
}

impl<'f, 'd> UnitMaker<'f, 'd> {
    /// Makes units of functions whose records take `size` bytes of the file.
    pub(super) fn new(records: &'f dyn Records<'d>, size: u64) -> Self {
        Self {
            records,
            texts: TextsLeft::of_records(size),
            out: Vec::new(),
            unit: Unit::default(),
            problems: Problems::default(),
            chain: Chain::default(),
        }
    }

    /// Counts what is lost.
    pub(super) fn problems(&mut self) -> &mut Problems {
        &mut self.problems
    }

    /// Adds a function. It does not start before those that were added before.
    pub(super) fn add(&mut self, function: &mut Function<'d>) {
        if function.range.is_empty() {
            return;
        }
        if function.range.start < self.unit.end {
            self.finish_unit();
        }
        let starts_and_ends = self.borders(function);
        if function.are_calls_lost {
            // Some are lines of the functions that are called.
            function.lines.clear();
        }
        function.sort_lines();
        self.unit.seen.functions += 1;
        self.unit.seen.inlined += starts_and_ends.len() as u64 / 2;
        self.unit.seen.rows += function.lines.len() as u64;
        let name = self.texts.take(|| Some(cut(function.name?, NAME))).filter(|name| is_known(name));
        let name =
            name.map(|name| Hashed::new(name.into())).and_then(|name| push(&mut self.unit.names, name));
        let (start, end) = (function.range.start, function.range.end);
        let number = u32::try_from(self.unit.function_ranges.len()).unwrap_or(u32::MAX);
        let rank = (start, Reverse(end - start), false, Reverse(0));
        self.unit.function_ranges.push(FunctionRange { start, end, function: number, rank, entry: None });
        self.unit.end = end;
        let left = 64 + 8 * (function.call_ranges.len() + function.lines.len());
        self.chain.start(left, own_file(function, &starts_and_ends), Callee { caller: None, name });
        self.pieces(function, &starts_and_ends, NonMaxU32::new(number.into()));
    }

    /// The units.
    pub(super) fn finish(mut self) -> Vec<UnitRanges<'d>> {
        self.finish_unit();
        self.problems.limit(NAMES_LEFT_OUT, self.texts.is_used_up().into());
        if !self.problems.lost().is_empty() {
            self.out.push(UnitRanges { problems: self.problems, ..UnitRanges::default() });
        }
        self.out
    }

    fn finish_unit(&mut self) {
        let Unit { ranges, function_ranges, frames, names, files, seen, .. } = std::mem::take(&mut self.unit);
        if ranges.is_empty() {
            return;
        }
        let functions = u32::try_from(function_ranges.len()).unwrap_or(u32::MAX);
        let frames = frames.frames;
        let none = UnitRanges::default();
        let unit = UnitRanges { ranges, function_ranges, frames, names, files, functions, seen, ..none };
        self.out.push(unit);
    }

    /// Where inlined calls begin and end within the function, in address order; at one address, ends come first.
    fn borders(&mut self, function: &mut Function<'_>) -> Vec<Border> {
        let mut borders = Vec::new();
        let size = function.range.end - function.range.start;
        if size > CALLED_CODE && !function.calls.is_empty() {
            self.problems
                .limit("inlined calls left out: their function is too large", function.calls.len() as u64);
            function.are_calls_lost = true;
            return borders;
        }
        let mut too_deep = 0;
        for (range, call) in &function.call_ranges {
            let Some(depth) = function.calls.get(*call as usize).map(|call| call.depth) else { continue };
            let at = range.start.max(function.range.start);
            let end = range.end.min(function.range.end);
            too_deep += u64::from(depth >= DEPTH);
            if at < end {
                borders.push(Border { at, begins: true, call: *call });
                borders.push(Border { at: end, begins: false, call: *call });
            }
        }
        self.problems.limit("inlined subroutines nested too deeply", too_deep);
        borders.sort_by_key(|border| (border.at, border.begins));
        borders
    }

    /// Adds the ranges of a function, cut where a line or an inlined call begins or ends.
    fn pieces(&mut self, function: &Function<'d>, borders: &[Border], range: Option<NonMaxU32>) {
        let (mut borders, mut lines) = (borders.iter().peekable(), function.lines.iter().peekable());
        let mut at = function.range.start;
        while at < function.range.end {
            while let Some(border) = borders.next_if(|border| border.at <= at) {
                self.chain.pass(border, &function.calls);
            }
            while lines.next_if(|line| line.range.end <= at).is_some() {}
            let mut end = borders.peek().map_or(function.range.end, |border| border.at);
            let line = match lines.peek() {
                Some(Line { range, .. }) if range.start > at => {
                    end = end.min(range.start);
                    None
                }
                Some(line) => {
                    end = end.min(line.range.end);
                    Some(*line)
                }
                None => None,
            };
            let (callee, is_innermost) = self.callee(&function.calls);
            // The line of a function that is left out is no line of its caller. A line without a file says nothing.
            let place = line
                .filter(|_| is_innermost)
                .and_then(|line| Some((self.file(line.file)?, NonMaxU32::new(line.line.into()))));
            let frame = match place {
                Some((file, line)) => self.unit.frames.number(callee, Some(file), line),
                None => self.unit.frames.number(callee, None, None),
            };
            let (start, next) = (short(at), short(end));
            self.push(UnitRange { start, end: next, function_range: range, exact: frame, statement: frame });
            at = end;
        }
    }

    fn push(&mut self, range: UnitRange) {
        match self.unit.ranges.last_mut() {
            Some(last) if *last == (UnitRange { start: last.start, end: range.start, ..range }) => {
                last.end = range.end;
            }
            _ => self.unit.ranges.push(range),
        }
    }

    /// The innermost function at the current address, and whether no function inlined into it is left out.
    fn callee(&mut self, calls: &[InlinedCall]) -> (Callee, bool) {
        loop {
            let depth = self.chain.callees.len() - 1;
            let outer = self.chain.callees[depth];
            let Some(call) = self.chain.active.get(depth).copied().flatten() else {
                let is_orphan = self.chain.open > depth;
                self.problems
                    .add("inlined calls without the call that they are inlined into", is_orphan.into());
                return (outer, !is_orphan && self.chain.too_deep == 0);
            };
            let InlinedCall { name, file, line, .. } = calls[call as usize];
            let file = file.or_else(|| match depth.checked_sub(1) {
                None => self.chain.file,
                Some(outer) => {
                    let caller = self.chain.active.get(outer).copied().flatten()?;
                    self.records.file_of_name(calls[caller as usize].name)
                }
            });
            let Some(left) = self.chain.left.checked_sub(1) else {
                self.problems.limit("inlined calls left out: they overlap too much", 1);
                return (outer, false);
            };
            self.chain.left = left;
            let (name, file) = (self.name(name), file.and_then(|file| self.file(file)));
            // Line 0 without a file is how symbol files state that there is neither.
            let line = NonMaxU32::new(line.into()).filter(|line| file.is_some() || line.get() != 0);
            let caller = self.unit.frames.number(outer, file, line);
            self.chain.callees.push(Callee { caller: NonMaxU32::new(caller.into()), name });
        }
    }

    /// The number in the unit of a name that the symbol file has by the number `key`.
    fn name(&mut self, key: u64) -> Option<NonMaxU32> {
        if let Some(known) = self.unit.name_numbers.get(&key) {
            return *known;
        }
        let name = self.texts.take(|| Some(cut(self.records.name(key)?, NAME))).filter(|name| is_known(name));
        let number =
            name.map(|name| Hashed::new(name.into())).and_then(|name| push(&mut self.unit.names, name));
        self.unit.name_numbers.insert(key, number);
        number
    }

    /// The number in the unit of a file that the symbol file has by the number `key`.
    fn file(&mut self, key: u64) -> Option<NonMaxU32> {
        if let Some(known) = self.unit.file_numbers.get(&key) {
            return *known;
        }
        let path = self.texts.take(|| Some(cut(&self.records.file(key)?, PATH).to_vec()));
        let number = path.filter(|path| is_known(path)).and_then(|path| push(&mut self.unit.files, path));
        self.unit.file_numbers.insert(key, number);
        number
    }
}

/// Where the code of an inlined call begins or ends.
struct Border {
    at: u64,
    begins: bool,
    call: u32,
}

/// The file of the first line of `function` that is not a line of an inlined call. The lines are sorted.
fn own_file(function: &Function<'_>, borders: &[Border]) -> Option<u64> {
    let (mut borders, mut open) = (borders.iter().peekable(), 0usize);
    let own = function.lines.iter().find(|line| {
        while let Some(border) = borders.next_if(|border| border.at <= line.range.start) {
            open = if border.begins { open + 1 } else { open.saturating_sub(1) };
        }
        open == 0
    });
    own.map(|line| line.file)
}

impl Chain {
    /// Begins with the code of `function`, whose own lines are of `file`. `left` frames of calls may be made for it.
    fn start(&mut self, left: usize, file: Option<u64>, function: Callee) {
        (self.left, self.file, self.open, self.too_deep) = (left, file, 0, 0);
        self.active.clear();
        self.callees.clear();
        self.callees.push(function);
    }

    fn pass(&mut self, border: &Border, calls: &[InlinedCall]) {
        let depth = calls[border.call as usize].depth;
        if depth >= DEPTH {
            let too_deep = self.too_deep;
            self.too_deep = if border.begins { too_deep + 1 } else { too_deep.saturating_sub(1) };
            return;
        }
        let depth = depth as usize;
        if self.active.len() <= depth {
            self.active.resize(depth + 1, None);
        }
        // Of two calls of one depth at one address, the one that starts last counts.
        let active = &mut self.active[depth];
        if border.begins {
            self.open += usize::from(active.is_none());
            *active = Some(border.call);
        } else if *active == Some(border.call) {
            self.open -= 1;
            *active = None;
        }
        self.callees.truncate(depth + 1);
    }
}

/// Adds an element, and returns its number.
fn push<T>(list: &mut Vec<T>, element: T) -> Option<NonMaxU32> {
    list.push(element);
    NonMaxU32::new(list.len() as u64 - 1)
}
