//! The functions of a Go program by the rules: a naive reading of the tables of the runtime. Where they are, and what
//! their addresses count from, are as the builder found them.

use std::borrow::Cow;

use symdex::Table;
use symdex_build::Image;
use symdex_build::audit_access::{GoTables, go_tables};

use crate::expected::{Expected, Frame};
use crate::image::executable_part;

/// The numbers of the tables and data of a function that concern inlined calls.
const CALLS: usize = 2;
const TREE: usize = 3;

/// A function: its code as image offsets, and the place of its record.
#[derive(Clone, Copy)]
struct Function {
    start: u64,
    end: u64,
    record: usize,
}

/// The tables of a Go program, and its functions by address.
pub(crate) struct Go<'d> {
    tables: GoTables<'d>,
    base: u64,
    functions: Vec<Function>,
}

/// The offsets of the tables of a function.
struct Record {
    name: usize,
    files: usize,
    lines: usize,
    calls: usize,
    unit: usize,
    tree: Option<u64>,
}

impl<'d> Go<'d> {
    pub(crate) fn read(image: &Image<'d>) -> Option<Self> {
        let tables = go_tables(image)?.clone();
        let mut go = Self { tables, base: image.info().base, functions: Vec::new() };
        let (list, entry) = (go.table(4)?, go.entry_size());
        let count = usize::try_from(go.word(8)?).ok()?;
        for number in 0..count {
            let at = |field: usize| number_at(list, (2 * number + field) * entry, entry);
            let (Some(start), Some(record), Some(end)) = (at(0), at(1), at(2)) else { break };
            let code = |address: u64| go.tables.text.checked_add(address);
            let Some((start, end)) =
                code(start).zip(code(end)).and_then(|(start, end)| executable_part(image, start, end))
            else {
                continue;
            };
            if go.functions.last().is_none_or(|last| last.end <= start) {
                go.functions.push(Function { start, end, record: usize::try_from(record).ok()? });
            }
        }
        Some(go)
    }

    /// The SVMAs at which answers change.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.functions.iter().flat_map(|function| {
            let record = self.record(function.record);
            let tables = record.iter().flat_map(|record| [record.files, record.lines, record.calls]);
            let rows = tables.flat_map(|table| self.rows(table, function.end - function.start));
            let ends = rows.map(|(end, _)| function.start + end).chain([function.start, function.end]);
            ends.map(|offset| self.base + offset).collect::<Vec<_>>()
        })
    }

    /// The answer for `offset`. `None` if no function has it.
    pub(crate) fn expected(&self, offset: u64) -> Option<Expected<'d>> {
        let after = self.functions.partition_point(|function| function.start <= offset);
        let function = self.functions.get(after.checked_sub(1)?).filter(|function| offset < function.end)?;
        let Some(record) = self.record(function.record) else {
            let frames = vec![Frame::default()];
            return Some(Expected { frames, function_start: Some(function.start), table: Table::Dwarf });
        };
        let size = function.end - function.start;
        let at = offset - function.start;
        let value = |table: usize, at: u64| {
            let (_, value) = self.rows(table, size).find(|(end, _)| at < *end)?;
            usize::try_from(value).ok()
        };
        if self.rows(record.lines, size).last().is_some_and(|(end, _)| end <= at) {
            return None;
        }
        let place = |at: u64| {
            let file = value(record.files, at).and_then(|file| self.path(record.unit + file));
            (file, value(record.lines, at).and_then(|line| u32::try_from(line).ok()))
        };
        let tree = record.tree.and_then(|tree| self.tables.from(self.tables.trees?.checked_add(tree)?));
        let (mut frames, mut at, mut call) = (Vec::new(), at, value(record.calls, at));
        let is_lost = call.is_some() && tree.is_none();
        let mut is_innermost = true;
        loop {
            let entry = call.zip(tree).and_then(|(call, tree)| self.entry(tree, call));
            let (file, line) = place(at);
            let (file, line) = match (is_innermost, file, line) {
                // A line of an unknown function, or without a file, is not stated.
                (true, Some(file), Some(line)) if !is_lost => (Some(file), Some(line)),
                (true, ..) => (None, None),
                (false, None, line) => (None, line.filter(|line| *line != 0)),
                (false, file, line) => (file, Some(line.unwrap_or(0))),
            };
            let name = self.text(0, entry.map_or(record.name, |(name, _)| name));
            frames.push(Frame { name: name.map(Cow::Borrowed), file: file.map(Cow::Borrowed), line });
            let Some((_, caller)) = entry else { break };
            (at, is_innermost) = (caller, false);
            call = value(record.calls, caller).filter(|caller| Some(*caller) < call);
        }
        Some(Expected { frames, function_start: Some(function.start), table: Table::Dwarf })
    }

    /// The record at this place.
    fn record(&self, at: usize) -> Option<Record> {
        let bytes = self.table(4)?.get(at..)?;
        let first = self.entry_size();
        let number = |place: usize| usize::try_from(number_at(bytes, place, 4)?).ok();
        let tables = number(first + 24)?;
        let end = first + if self.tables.bytes.first() == Some(&0xf1) { 40 } else { 36 };
        let tree = || {
            let data = end + 4 * tables;
            if usize::from(*bytes.get(end - 1)?) <= TREE {
                return None;
            }
            if !self.is_absolute() {
                return number_at(bytes, data + 4 * TREE, 4).filter(|tree| *tree != u64::from(u32::MAX));
            }
            let padding = (at + data).next_multiple_of(first) - (at + data);
            number_at(bytes, data + padding + first * TREE, first).filter(|tree| *tree != 0)
        };
        Some(Record {
            name: number(first)?,
            files: number(first + 16)?,
            lines: number(first + 20)?,
            calls: if tables > CALLS { number(end + 4 * CALLS)? } else { 0 },
            unit: number(first + 28)?,
            tree: tree(),
        })
    }

    /// The name of a function in a tree, and the place of its call in the code.
    fn entry(&self, tree: &[u8], number: usize) -> Option<(usize, u64)> {
        let is_newest = self.tables.bytes.first() == Some(&0xf1);
        let at = if is_newest { 16 * number + 4 } else { 20 * number + 12 };
        Some((usize::try_from(number_at(tree, at, 4)?).ok()?, number_at(tree, at + 4, 4)?))
    }

    /// The rows of a table: where each ends in a function of this size, and its value.
    fn rows(&self, table: usize, size: u64) -> impl Iterator<Item = (u64, i64)> + use<'_, 'd> {
        let mut rest = if table == 0 { None } else { self.table(3).and_then(|all| all.get(table..)) };
        let quantum = self.tables.bytes.get(6).copied().unwrap_or(1);
        let (mut end, mut value) = (0, -1);
        std::iter::from_fn(move || {
            let rest = rest.as_mut()?;
            let step = leb128(rest).filter(|step| *step != 0 || end == 0)?;
            let code = leb128(rest).filter(|code| *code != 0 && end < size)? * u64::from(quantum);
            let step = i64::try_from(step).ok()?;
            value += if step & 1 == 0 { step >> 1 } else { -(step >> 1) - 1 };
            end = size.min(end + code);
            Some((end, value))
        })
    }

    /// The path of file number `file` of all lists of files.
    fn path(&self, file: usize) -> Option<&'d [u8]> {
        let at = number_at(self.table(1)?, 4 * file, 4).filter(|at| *at != u64::from(u32::MAX))?;
        self.text(2, usize::try_from(at).ok()?)
    }

    /// The text at `at` in a table. Unknown ones are left out.
    fn text(&self, table: usize, at: usize) -> Option<&'d [u8]> {
        let text = self.table(table)?.get(at..)?.split(|byte| *byte == 0).next()?;
        Some(text).filter(|text| !text.is_empty() && *text != b"??")
    }

    /// The bytes from the start of a table on: names, lists of files, paths, values, functions.
    fn table(&self, number: usize) -> Option<&'d [u8]> {
        let word_size = usize::from(*self.tables.bytes.get(7)?);
        let first = if self.is_absolute() { 2 } else { 3 };
        self.tables.bytes.get(usize::try_from(self.word(8 + (first + number) * word_size)?).ok()?..)
    }

    fn word(&self, at: usize) -> Option<u64> {
        number_at(self.tables.bytes, at, usize::from(*self.tables.bytes.get(7)?))
    }

    /// Whether addresses are absolute, as in Go 1.16 and 1.17.
    fn is_absolute(&self) -> bool {
        self.tables.bytes.first() == Some(&0xfa)
    }

    fn entry_size(&self) -> usize {
        if self.is_absolute() { self.tables.bytes.get(7).map_or(8, |size| usize::from(*size)) } else { 4 }
    }
}

/// The little-endian number of `size` bytes at `at`.
fn number_at(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut number = [0; 8];
    number.get_mut(..size)?.copy_from_slice(bytes.get(at..)?.get(..size)?);
    Some(u64::from_le_bytes(number))
}

fn leb128(bytes: &mut &[u8]) -> Option<u64> {
    let len = bytes.iter().position(|byte| byte & 0x80 == 0).filter(|len| *len < 5)? + 1;
    let (number, rest) = bytes.split_at(len);
    *bytes = rest;
    Some(number.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f)))
}
