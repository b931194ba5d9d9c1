//! The answers for many addresses as columns: numbers, and each string once.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;
use symdex::{Frames, Grade, ImageOffset, Table};
use symdex_report::{Answer, Function};

use super::seen::SeenIds;

/// The number of a string that is not there.
pub(crate) const NONE: i32 = -1;
/// The line of a frame without a line.
pub(crate) const NO_LINE: u32 = u32::MAX;

/// The answers for a batch of addresses, in their order. [`Symbolicator::resolve`](crate::Symbolicator::resolve) makes
/// them.
#[non_exhaustive]
#[derive(Debug, Default)]
pub struct Resolved {
    /// For each address, the position of what became of it in [`outcomes`](Self::outcomes).
    pub outcome: Vec<i32>,
    /// For each address, where the function starts that is not inlined; `None` if it is unknown.
    pub function_start: Vec<Option<u64>>,
    /// For each address, the table that the frames come from; `None` without frames.
    pub table: Vec<Option<Table>>,
    /// For each address, the end of its rows in [`frames`](Self::frames). They start where those of the address before
    /// it end.
    pub ends: Vec<i32>,
    /// The frames of each address, innermost first.
    pub frames: FrameColumns,
    /// The linkage names of functions.
    pub names: Strings,
    /// The paths of source files.
    pub files: Strings,
    /// The outcomes of addresses.
    pub outcomes: Vec<Outcome>,
}

/// Frames as columns. All but the last frame of an address are inlined into the next one.
#[derive(Debug, Default)]
pub struct FrameColumns {
    /// The number in [`Resolved::names`]; -1 if the code has no name.
    pub name: Vec<i32>,
    /// The number in [`Resolved::files`]; -1 if there is no file.
    pub file: Vec<i32>,
    /// The line, 1-based; 0 for code that the compiler generated, `u32::MAX` if there is no line.
    pub line: Vec<u32>,
}

/// The outcome of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// `symbolicated`, `missing_symbol` (there is no function, or only one without a name), `damaged`, `lost` or
    /// `limit`; if the image has no answers, its status, such as `missing`.
    pub status: &'static str,
    /// Why there are no functions.
    pub reason: Option<String>,
}

/// Distinct strings, numbered in the order in which they were added. They need not be UTF-8.
#[derive(Debug, Default)]
pub struct Strings {
    text: Vec<u8>,
    ends: Vec<usize>,
    /// The readable forms that differ from the strings.
    readable: Vec<Option<Box<str>>>,
    /// The bytes of the readable forms.
    readable_size: usize,
    numbers: HashTable<i32>,
    hasher: RandomState,
}

impl Strings {
    /// The number of strings.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string with this number.
    #[must_use]
    pub fn get(&self, number: i32) -> Option<&[u8]> {
        string(&self.text, &self.ends, number)
    }

    /// All strings as text, in the order of their numbers.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = Cow<'_, str>> {
        (0..self.len()).map(|at| String::from_utf8_lossy(self.at(at)))
    }

    /// All strings, which are linkage names, in readable form: as the index states it, or demangled.
    pub fn readable(&self) -> impl ExactSizeIterator<Item = Cow<'_, str>> {
        let readable = |at: usize| match self.readable.get(at).and_then(Option::as_deref) {
            Some(readable) => Cow::Borrowed(readable),
            None => String::from_utf8_lossy(self.at(at)),
        };
        (0..self.len()).map(readable)
    }

    fn at(&self, at: usize) -> &[u8] {
        i32::try_from(at).ok().and_then(|number| self.get(number)).unwrap_or_default()
    }

    /// The number of a linkage name, which is added if it is new. Its readable form is `readable`, or else demangled.
    fn number_of_name(&mut self, name: Option<&[u8]>, readable: Option<&[u8]>) -> i32 {
        let count = self.len();
        let number = self.number(name);
        if let Some(name) = name.filter(|_| self.len() > count) {
            let readable = readable.map_or_else(
                || symdex_demangle::demangle(name),
                |readable| String::from_utf8_lossy(readable),
            );
            let readable = Some(readable).filter(|readable| readable.as_bytes() != name);
            self.readable_size += readable.as_ref().map_or(0, |readable| readable.len());
            self.readable.push(readable.map(|readable| readable.into()));
        }
        number
    }

    /// The bytes of all texts.
    fn size(&self) -> usize {
        self.text.len() + self.readable_size
    }

    /// The number of `string`, which is added if it is new; [`NONE`] for `None`.
    fn number(&mut self, string: Option<&[u8]>) -> i32 {
        let Some(string) = string else { return NONE };
        let Self { text, ends, numbers, hasher, .. } = self;
        let is_same = |number: &i32| self::string(text, ends, *number) == Some(string);
        let hash = hasher.hash_one(string);
        if let Some(number) = numbers.find(hash, is_same) {
            return *number;
        }
        // A batch has at most as many strings as frames: see `is_full`.
        let number = i32::try_from(ends.len()).unwrap_or(NONE);
        text.extend_from_slice(string);
        ends.push(text.len());
        let hash_of = |number: &i32| hasher.hash_one(self::string(text, ends, *number).unwrap_or_default());
        numbers.insert_unique(hash, number, hash_of);
        number
    }
}

fn string<'s>(text: &'s [u8], ends: &[usize], number: i32) -> Option<&'s [u8]> {
    let number = usize::try_from(number).ok()?;
    let start = number.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
    text.get(start..*ends.get(number)?)
}

/// Where the rows of an address are, and what the address has besides frames.
#[derive(Clone, Copy, Default)]
pub(super) struct Rows {
    start: usize,
    end: usize,
    pub(super) outcome: i32,
    function_start: Option<u64>,
    table: Option<Table>,
}

impl Rows {
    /// No rows, for an address of this outcome.
    pub(super) fn none(outcome: i32) -> Self {
        Self { outcome, ..Self::default() }
    }
}

/// The outcomes that every batch begins with.
const SYMBOLICATED: i32 = 0;
const MISSING_SYMBOL: i32 = 1;

impl Resolved {
    /// No answers yet for this many addresses.
    pub(super) fn new(addresses: usize) -> Self {
        let outcome = |status| Outcome { status, reason: None };
        let outcomes = vec![outcome("symbolicated"), outcome("missing_symbol")];
        let mut resolved = Self { outcomes, ..Self::default() };
        // C++ has about as many.
        resolved.frames.reserve(4 * addresses);
        resolved.outcome.reserve(addresses);
        resolved.function_start.reserve(addresses);
        resolved.table.reserve(addresses);
        resolved.ends.reserve(addresses);
        resolved
    }

    /// The number of addresses.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no addresses.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The rows of the address at this position.
    #[must_use]
    pub fn rows(&self, position: usize) -> std::ops::Range<usize> {
        let end = |position: usize| self.ends.get(position).and_then(|end| usize::try_from(*end).ok());
        position.checked_sub(1).and_then(end).unwrap_or(0)..end(position).unwrap_or(0)
    }

    /// The outcome of the address at this position.
    #[must_use]
    pub fn outcome_of(&self, position: usize) -> Option<&Outcome> {
        self.outcomes.get(usize::try_from(*self.outcome.get(position)?).ok()?)
    }

    /// About how many bytes it has in memory.
    #[must_use]
    pub fn size(&self) -> usize {
        let strings = |strings: &Strings| strings.size() + strings.len() * 64;
        self.len() * 40 + self.frames.len() * 12 + strings(&self.names) + strings(&self.files)
    }

    /// The number of this outcome.
    pub(super) fn outcome_number(&mut self, status: &'static str, reason: Option<String>) -> i32 {
        let outcome = Outcome { status, reason };
        // The newest first: neighbours have the same outcome.
        let known = self.outcomes.iter().rposition(|known| *known == outcome);
        let number = known.unwrap_or_else(|| {
            self.outcomes.push(outcome);
            self.outcomes.len() - 1
        });
        i32::try_from(number).unwrap_or(MISSING_SYMBOL)
    }

    /// Removes the rows from `start` on, which no address has.
    pub(super) fn truncate(&mut self, start: usize) {
        self.frames.name.truncate(start);
        self.frames.file.truncate(start);
        self.frames.line.truncate(start);
    }

    /// Adds the rows of an answer. `seen` has the strings of the same index.
    pub(super) fn add_frames(&mut self, frames: Option<Frames<'_>>, seen: &mut SeenIds) -> Rows {
        let Some(frames) = frames else { return Rows::none(MISSING_SYMBOL) };
        let start = self.frames.len();
        let (mut outcome, mut last) = (MISSING_SYMBOL, None);
        for ([name, file], frame) in frames.string_ids().zip(frames.iter()) {
            let name = seen.names.number(name, || self.names.number_of_name(frame.name, frame.readable));
            let file = seen.files.number(file, || self.files.number(frame.file));
            outcome = if name == NONE { outcome } else { SYMBOLICATED };
            self.frames.push(name, file, frame.line);
            last = Some(frame);
        }
        let function_start = last.and_then(|frame| Some(frame.function_start?.0));
        let table = last.map(|frame| frame.table);
        Rows { start, end: self.frames.len(), outcome, function_start, table }
    }

    /// Adds the rows of an answer for a report.
    pub(super) fn add_answer(&mut self, answer: &Answer) -> Rows {
        let functions: &[Function] = match answer {
            Answer::Functions(functions) => functions,
            Answer::Unreadable(cause, what) => {
                return Rows::none(self.outcome_number(cause.name(), Some(what.clone())));
            }
            _ => return Rows::none(MISSING_SYMBOL),
        };
        let start = self.frames.len();
        for function in functions {
            let readable = function.readable().filter(|readable| Some(*readable) != function.name());
            let [name, readable, file] =
                [function.name(), readable, function.file()].map(|text| text.map(str::as_bytes));
            let name = self.names.number_of_name(name, readable);
            let file = self.files.number(file);
            self.frames.push(name, file, function.line);
        }
        let outcome = if answer.grade() < Grade::Names { MISSING_SYMBOL } else { SYMBOLICATED };
        let last = functions.last();
        let function_start = last.and_then(|function| function.start).map(|ImageOffset(start)| start);
        Rows {
            start,
            end: self.frames.len(),
            outcome,
            function_start,
            table: last.map(|function| function.table),
        }
    }

    /// Whether the batch has as many frames or as much text as a batch may have.
    pub(super) fn is_full(&self) -> bool {
        self.frames.len() > MAX_FRAMES || self.names.size() + self.files.size() > MAX_TEXT
    }

    /// The same answers, of which those of each address are at `rows`.
    pub(super) fn in_order(mut self, rows: &[Rows]) -> Self {
        let mut end = 0;
        let is_in_order = rows.iter().all(|rows| {
            rows.start == rows.end || {
                let is_next = rows.start == end;
                end = rows.end;
                is_next
            }
        });
        if !is_in_order {
            let all = std::mem::take(&mut self.frames);
            self.frames.reserve(all.len());
            rows.iter().for_each(|rows| self.frames.extend(&all, rows));
        }
        let mut end = 0;
        for rows in rows {
            end += rows.end - rows.start;
            self.ends.push(i32::try_from(end).unwrap_or(i32::MAX));
            self.outcome.push(rows.outcome);
            self.function_start.push(rows.function_start);
            self.table.push(rows.table);
        }
        self
    }
}

/// The most frames and bytes of strings of a batch of more than one address.
const MAX_FRAMES: usize = 1 << 19;
const MAX_TEXT: usize = 8 << 20;

impl FrameColumns {
    /// The number of frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// Whether there are no frames.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// The line of the frame in this row; `None` if it has none.
    #[must_use]
    pub fn line_of(&self, row: usize) -> Option<u32> {
        self.line.get(row).copied().filter(|line| *line != NO_LINE)
    }

    fn reserve(&mut self, frames: usize) {
        self.name.reserve(frames);
        self.file.reserve(frames);
        self.line.reserve(frames);
    }

    fn push(&mut self, name: i32, file: i32, line: Option<u32>) {
        self.name.push(name);
        self.file.push(file);
        self.line.push(line.unwrap_or(NO_LINE));
    }

    /// Appends the rows of an address, which are in `all`.
    fn extend(&mut self, all: &Self, rows: &Rows) {
        let range = rows.start..rows.end;
        self.name.extend_from_slice(all.name.get(range.clone()).unwrap_or_default());
        self.file.extend_from_slice(all.file.get(range.clone()).unwrap_or_default());
        self.line.extend_from_slice(all.line.get(range).unwrap_or_default());
    }
}
