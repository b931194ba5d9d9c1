//! The records of functions: names, files, lines, and inlined calls.

use std::borrow::Cow;
use std::ops::Range;

use super::{GoTables, Header, Layout, u32_at, word_at};
use crate::keyed::KeyedMap;
use crate::limits::DEPTH;
use crate::report::Problems;
use crate::symbol_file::{Function, InlinedCall, Line, Records};
use crate::symbols::name_at;
use crate::unwind::Section;

/// How many bytes of memory a byte of code may take. A row of one byte has a line and two ranges.
const MEMORY_OF_BYTE: usize = 64;

/// The reason that counts functions whose tree is not in the file, or is not found.
const LOST_CALLS: &str = "functions of Go whose inlined calls are not found";

/// What a record states of a function. Tables are offsets in [`Header::values`]; 0 is no table.
pub(super) struct Record {
    name: u32,
    /// The table of the number of the file at each address.
    files: u32,
    lines: u32,
    /// The table of the number of the innermost inlined call.
    calls: u32,
    /// The unit's part of the lists of files.
    unit: u32,
    /// The place of the tree of inlined calls: an offset or, in Go 1.16 and 1.17, an address.
    pub(super) tree: Option<u64>,
}

/// The numbers of the inlined calls among the tables, and of their tree among the other data.
const CALLS: usize = 2;
const TREE: usize = 3;

impl Record {
    /// The record at `at` in the list of functions: the address, and nine or (since Go 1.20) ten further fields of 4
    /// bytes, of which the last ends with the number of data. The tables and the data follow.
    pub(super) fn read(header: &Header<'_>, at: usize) -> Option<Self> {
        let bytes = header.functions.get(at..)?;
        let first = header.entry_size();
        let field = |number: usize| u32_at(bytes, first + 4 * number);
        let last = if header.layout == Layout::Go120 { 9 } else { 8 };
        let (tables, end) = (usize::try_from(field(6)?).ok()?, first + 4 * last + 4);
        let data_count = usize::from(*bytes.get(end - 1)?);
        let calls = if CALLS < tables { u32_at(bytes, end + 4 * CALLS)? } else { 0 };
        let data = end.checked_add(tables.checked_mul(4)?)?;
        let tree = match header.layout {
            _ if TREE >= data_count => None,
            Layout::Go116 => {
                let size = header.word_size;
                let data = (at.checked_add(data)?).checked_next_multiple_of(size)?.checked_sub(at)?;
                word_at(bytes, data.checked_add(TREE * size)?, size).filter(|address| *address != 0)
            }
            _ => {
                u32_at(bytes, data.checked_add(4 * TREE)?).filter(|offset| *offset != u32::MAX).map(u64::from)
            }
        };
        Some(Self { name: field(0)?, files: field(4)?, lines: field(5)?, calls, unit: field(7)?, tree })
    }
}

/// An entry of a tree of inlined calls.
#[derive(Clone, Copy)]
pub(super) struct TreeEntry {
    /// The offset of the name of the function that is called.
    pub(super) name: u32,
    /// The offset in the code of the function of an instruction whose file and line are those of the call.
    pub(super) call: u32,
}

impl TreeEntry {
    /// Entry `number` of `tree`.
    pub(super) fn read(header: &Header<'_>, tree: &[u8], number: u32) -> Option<Self> {
        let (size, name) = if header.layout == Layout::Go120 { (16, 4) } else { (20, 12) };
        let at = size * number as usize;
        Some(Self { name: u32_at(tree, at + name)?, call: u32_at(tree, at + name + 4)? })
    }
}

/// The rows of a table: the end of the code that each holds for, counted from the start of the function, and a number.
///
/// A row is the difference to the number of the row before, -1 at first, and the size of its code in the smallest
/// instructions. Both are in LEB128; differences have their sign in the lowest bit. A difference of 0 ends the table.
struct Values<'d> {
    rest: &'d [u8],
    quantum: u64,
    at: u64,
    value: i32,
    /// The size of the code of the function.
    size: u64,
}

impl<'d> Values<'d> {
    fn new(header: &Header<'d>, table: u32, size: u64) -> Self {
        let rest = header.values.get(table as usize..).filter(|_| table != 0).unwrap_or_default();
        Self { rest, quantum: header.quantum, at: 0, value: -1, size }
    }
}

impl Iterator for Values<'_> {
    type Item = (u64, i32);

    fn next(&mut self) -> Option<Self::Item> {
        let difference = leb128(&mut self.rest).filter(|difference| *difference != 0 || self.at == 0)?;
        let size = self.quantum * u64::from(leb128(&mut self.rest)?);
        if self.at >= self.size || size == 0 {
            return None;
        }
        self.value =
            self.value.wrapping_add((difference >> 1).cast_signed() ^ -(difference & 1).cast_signed());
        self.at = self.at.saturating_add(size).min(self.size);
        Some((self.at, self.value))
    }
}

/// Reads a number of at most 32 bits.
fn leb128(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in [0, 7, 14, 21, 28] {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The functions of a Go program.
pub(super) struct GoRecords<'d> {
    pub(super) header: Header<'d>,
    pub(super) tables: GoTables<'d>,
}

impl<'d> Records<'d> for GoRecords<'d> {
    /// Reads the record that `records` begins at. The function ends where its table of lines ends; padding follows.
    fn function(&self, records: Range<usize>, function: &mut Function<'d>, problems: &mut Problems) {
        let Some(record) = Record::read(&self.header, records.start) else {
            return problems.add("functions of Go whose records cannot be read", 1);
        };
        function.name = self.name(record.name.into());
        let size = function.range.end - function.range.start;
        let rows = |table| Values::new(&self.header, table, size).collect::<Rows>();
        let (files, lines) = (Files { rows: rows(record.files), unit: record.unit }, rows(record.lines));
        if let Some((end, _)) = lines.last() {
            function.range.end = function.range.start + end;
        }
        let calls = rows(record.calls);
        let address = record.tree.zip(self.tables.trees).and_then(|(tree, base)| base.checked_add(tree));
        let tree = address.and_then(|address| self.tables.from(address));
        let is_lost = tree.is_none() && calls.iter().any(|(_, call)| *call >= 0);
        problems.add(LOST_CALLS, is_lost.into());
        self.lines(&files, &lines, if is_lost { &calls } else { &[] }, function);
        let Some(tree) = tree else { return };
        let (known, callers) = (KeyedMap::default(), Vec::new());
        let tree = Tree { records: self, tree, files: &files, lines: &lines, calls: &calls, known, callers };
        tree.read(function, problems);
    }

    /// `number` is the offset of the name.
    fn name(&self, number: u64) -> Option<&'d [u8]> {
        name_at(self.header.names, usize::try_from(number).ok()?)
    }

    /// `number` is the offset of the path.
    fn file(&self, number: u64) -> Option<Cow<'d, [u8]>> {
        name_at(self.header.paths, usize::try_from(number).ok()?).map(Cow::Borrowed)
    }

    fn memory(&self) -> usize {
        self.tables.data.iter().count() * size_of::<Section<'_>>()
    }

    fn memory_of_byte(&self) -> usize {
        MEMORY_OF_BYTE
    }
}

/// The rows of a table.
type Rows = Vec<(u64, i32)>;

/// The number in `rows` for the instruction at `at`.
fn value_at(rows: &[(u64, i32)], at: u64) -> Option<u32> {
    let (_, value) = rows.get(rows.partition_point(|(end, _)| *end <= at))?;
    u32::try_from(*value).ok()
}

/// The numbers of the files of a function, and the unit that numbers them.
struct Files {
    rows: Rows,
    unit: u32,
}

impl GoRecords<'_> {
    /// The offset of the path of file `file` of `unit`.
    fn path(&self, unit: u32, file: u32) -> Option<u64> {
        let at = (unit as usize).checked_add(file as usize)?.checked_mul(4)?;
        u32_at(self.header.file_lists, at).filter(|offset| *offset != u32::MAX).map(u64::from)
    }

    /// Adds the lines of `function`: the rows of both tables, cut where a row of the other begins. Code of the calls
    /// in `lost` has the lines of unknown functions.
    fn lines(&self, files: &Files, lines: &Rows, lost: &[(u64, i32)], function: &mut Function<'_>) {
        let (mut at, mut files_left, mut lost_left) =
            (0, files.rows.iter().peekable(), lost.iter().peekable());
        for (end, line) in lines {
            while at < *end {
                while files_left.next_if(|(file_end, _)| *file_end <= at).is_some() {}
                while lost_left.next_if(|(call_end, _)| *call_end <= at).is_some() {}
                let Some((file_end, file)) = files_left.peek() else { return };
                let (call_end, call) = lost_left.peek().copied().unwrap_or(&(u64::MAX, -1));
                let start = std::mem::replace(&mut at, *file_end.min(end).min(call_end));
                let file = u32::try_from(*file).ok().and_then(|file| self.path(files.unit, file));
                let is_own = *call < 0;
                if let (true, Some(file), Ok(line)) = (is_own, file, u32::try_from(*line)) {
                    let range = function.range.start + start..function.range.start + at;
                    function.lines.push(Line { range, file, line });
                }
            }
        }
    }
}

/// Reads the tree of inlined calls of a function.
struct Tree<'r, 'd> {
    records: &'r GoRecords<'d>,
    tree: &'d [u8],
    files: &'r Files,
    lines: &'r Rows,
    /// The rows with the numbers of the innermost calls.
    calls: &'r Rows,
    /// The place among the function's calls, by the number of the entry.
    known: KeyedMap<u32, u32>,
    /// For each of the function's calls, the one that it is inlined into.
    callers: Vec<Option<u32>>,
}

impl Tree<'_, '_> {
    fn read(mut self, function: &mut Function<'_>, problems: &mut Problems) {
        // Each row begins and ends as many calls as it has callers. In a tree of a compiler they are few.
        let mut left = 64 + 16 * self.calls.len();
        let (mut open, mut chain): (Vec<(u32, u64)>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut start = function.range.start;
        let end_of_code = (function.range.end, -1);
        let rows = self.calls.iter().map(|(end, number)| (function.range.start + end, *number));
        for (end, number) in rows.chain([end_of_code]).collect::<Rows>() {
            chain.clear();
            let innermost =
                u32::try_from(number).ok().and_then(|number| self.call(number, function, problems));
            chain.extend(std::iter::successors(innermost, |call| self.callers[*call as usize]));
            chain.reverse();
            let common = open.iter().zip(&chain).take_while(|((call, _), next)| call == *next).count();
            let ended = open.drain(common..).filter(|(_, begun)| *begun < start);
            function.call_ranges.extend(ended.map(|(call, begun)| (begun..start, call)));
            let begun = &chain[common..];
            let Some(rest) = usize::checked_sub(left, begun.len()) else {
                problems.limit("inlined calls left out: they overlap too much", 1);
                function.are_calls_lost = true;
                return;
            };
            left = rest;
            open.extend(begun.iter().map(|call| (*call, start)));
            start = end;
        }
    }

    /// The place among the function's calls of entry `number` of the tree. The entry and its callers are added to them.
    fn call(&mut self, number: u32, function: &mut Function<'_>, problems: &mut Problems) -> Option<u32> {
        let (mut next, mut new, mut caller) = (Some(number), Vec::new(), None);
        while let Some(number) = next {
            caller = self.known.get(&number).copied();
            if caller.is_some() {
                break;
            }
            let entry = TreeEntry::read(&self.records.header, self.tree, number);
            // Compilers number the callers first.
            let is_nested =
                new.last().is_none_or(|(called, _)| number < *called) && new.len() < DEPTH as usize;
            let Some(entry) = entry.filter(|_| is_nested) else {
                problems.add("inlined calls of Go that cannot be read", 1);
                break;
            };
            new.push((number, entry));
            next = value_at(self.calls, entry.call.into());
        }
        let depth_of = |caller: u32, function: &Function<'_>| function.calls[caller as usize].depth + 1;
        let depth = caller.map_or(0, |caller| depth_of(caller, function));
        if depth as usize + new.len() > DEPTH as usize {
            problems.add("inlined calls of Go that cannot be read", 1);
            return caller;
        }
        for (number, entry) in new.into_iter().rev() {
            let depth = caller.map_or(0, |caller| depth_of(caller, function));
            let file = value_at(&self.files.rows, entry.call.into())
                .and_then(|file| self.records.path(self.files.unit, file));
            let line = value_at(self.lines, entry.call.into()).unwrap_or(0);
            let place = u32::try_from(function.calls.len()).ok()?;
            function.calls.push(InlinedCall { depth, name: entry.name.into(), file, line });
            self.callers.push(caller);
            self.known.insert(number, place);
            caller = Some(place);
        }
        caller
    }
}
