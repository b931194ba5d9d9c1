//! Symbol files of Breakpad, as its documentation of symbol files describes them: texts with a record in each line.

use std::ops::Range;

use super::function::{Function, InlinedCall, Line};
use super::unit::is_known;
use super::{Contents, Place};
use crate::keyed::KeyedMap;
use crate::limits::{NAME, PATH};
use crate::report::Problems;
use crate::symbols::Start;

/// How the first line begins.
pub(super) const BEGIN: &[u8] = b"MODULE ";

/// How records of unwind rows begin: `STACK CFI INIT` and `STACK CFI`.
pub(super) const STACK: &[u8] = b"STACK";
pub(super) const CFI: &[u8] = b"CFI";
pub(super) const INIT: &[u8] = b"INIT";

/// What counts a line that is no record.
const NO_RECORD: &str = "lines of the symbol file that are not records of Breakpad";

/// The first line, and the id of the code.
#[derive(Debug, Default)]
pub(super) struct Module<'d> {
    pub(super) os: &'d [u8],
    pub(super) arch: &'d [u8],
    /// A GUID and an age, in hexadecimal digits.
    pub(super) debug_id: &'d [u8],
    pub(super) name: &'d [u8],
    /// The build id of an ELF image, in hexadecimal digits.
    pub(super) code_id: &'d [u8],
}

/// Names of inlined functions, and files, by their numbers.
#[derive(Debug, Default)]
pub(super) struct BreakpadStrings<'d> {
    names: KeyedMap<u64, &'d [u8]>,
    files: KeyedMap<u64, &'d [u8]>,
}

/// Reads the lines of a symbol file. Lines, inlined calls and names of functions are read later, with [`function`].
pub(super) fn read<'d>(text: &'d [u8]) -> (Module<'d>, BreakpadStrings<'d>, Contents<'d>) {
    let mut read = Reading::default();
    let mut lines = Lines::new(text);
    if let Some((_, line)) = lines.next()
        && let Some(rest) = line.strip_prefix(BEGIN)
    {
        let mut fields = Fields::new(rest);
        let [os, arch, debug_id] = [(); 3].map(|()| fields.word());
        read.module = Module { os, arch, debug_id, name: fields.rest(), code_id: b"" };
    }
    for (at, line) in lines {
        if read.line(at..at + line.len(), line).is_none() {
            read.contents.problems.add(NO_RECORD, 1);
        }
    }
    if text.last().is_some_and(|last| *last != b'\n') {
        read.contents.problems.add("the symbol file ends within a line: it may be cut short", 1);
    }
    read.finish(text.len());
    read.contents.unwind.extend(read.unwind.take());
    (read.module, read.strings, read.contents)
}

/// What was read so far.
#[derive(Default)]
struct Reading<'d> {
    module: Module<'d>,
    strings: BreakpadStrings<'d>,
    contents: Contents<'d>,
    /// The last function, unless another record followed it.
    function: Option<OpenFunction<'d>>,
    /// The last record `STACK CFI INIT` and the records `STACK` after it.
    unwind: Option<Place>,
}

struct OpenFunction<'d> {
    range: Range<u64>,
    name: &'d [u8],
    /// The place of its record in the file.
    at: usize,
    /// Whether it has lines or inlined calls.
    has_lines: bool,
}

impl<'d> Reading<'d> {
    /// Reads the line at this place. Returns `None` if it is no record.
    fn line(&mut self, at: Range<usize>, line: &'d [u8]) -> Option<()> {
        let mut fields = Fields::new(line);
        match fields.word() {
            b"" => {}
            b"INLINE" => self.function.as_mut()?.has_lines = true,
            word if is_keyword(word) => {
                self.finish(at.start);
                self.record(at, word, fields)?;
            }
            word => {
                hexadecimal(word)?;
                self.function.as_mut()?.has_lines = true;
            }
        }
        Some(())
    }

    /// Reads a record that does not belong to a function.
    fn record(&mut self, place: Range<usize>, word: &[u8], mut fields: Fields<'d>) -> Option<()> {
        let Range { start: at, end } = place;
        if word != STACK {
            self.contents.unwind.extend(self.unwind.take());
        }
        match word {
            b"FUNC" => {
                let [start, size, _] = fields.numbers(true)?;
                let range = start..start.checked_add(size)?;
                self.function = Some(OpenFunction { range, name: fields.rest(), at, has_lines: false });
            }
            b"PUBLIC" => {
                let [start, _] = fields.numbers(true)?;
                let name = Some(cut(fields.rest(), NAME)).filter(|name| is_known(name));
                self.contents.symbols.push(Start { start, rank: 1, name, end: None });
            }
            b"FILE" => {
                let number = decimal(fields.word())?;
                self.strings.files.insert(number, cut(fields.rest(), PATH));
            }
            b"INLINE_ORIGIN" => {
                let number = decimal(fields.word())?;
                self.strings.names.insert(number, cut(fields.rest(), NAME));
            }
            b"INFO" => {
                if fields.word() == b"CODE_ID" {
                    self.module.code_id = fields.word();
                }
            }
            STACK => {
                let is_cfi = fields.word() == CFI;
                if is_cfi && fields.word() == INIT {
                    self.contents.unwind.extend(self.unwind.take());
                    let [start, size] = fields.numbers(false)?;
                    let code_end = start.checked_add(size)?;
                    self.contents.symbols.push(Start { end: Some(code_end), ..Start::nameless(start) });
                    self.unwind = Some(Place { start, end: code_end, at, size: 0 });
                }
                match &mut self.unwind {
                    // Records that change the rules follow.
                    Some(unwind) => unwind.size = end - unwind.at,
                    None if is_cfi => return None,
                    None => {}
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Ends the last function, whose records reach to the place `end` in the file.
    fn finish(&mut self, end: usize) {
        let Some(OpenFunction { range, name, at, has_lines }) = self.function.take() else { return };
        if has_lines {
            self.contents.functions.push(Place { start: range.start, end: range.end, at, size: end - at });
        } else {
            let name = Some(cut(name, NAME)).filter(|name| is_known(name));
            self.contents.symbols.push(Start { start: range.start, rank: 0, name, end: Some(range.end) });
        }
    }
}

impl<'d> BreakpadStrings<'d> {
    pub(super) fn name(&self, number: u64) -> Option<&'d [u8]> {
        self.names.get(&number).copied()
    }

    pub(super) fn file(&self, number: u64) -> Option<&'d [u8]> {
        self.files.get(&number).copied()
    }

    /// About how many bytes of memory they take.
    pub(super) fn memory(&self) -> usize {
        (self.names.capacity() + self.files.capacity()) * size_of::<(u64, &[u8], u64)>()
    }
}

/// Reads the records of a function with the code `range` into `function`.
pub(super) fn function<'d>(
    records: &'d [u8],
    range: Range<u64>,
    function: &mut Function<'d>,
    problems: &mut Problems,
) {
    function.range = range;
    let mut lines = Lines::new(records);
    if let Some((_, line)) = lines.next() {
        let mut fields = Fields::new(line);
        // The word, and the numbers that were read before.
        fields.word();
        let numbers: Option<[u64; 3]> = fields.numbers(true);
        function.name = numbers.map(|_| cut(fields.rest(), NAME));
    }
    for (_, line) in lines {
        let mut fields = Fields::new(line);
        let is_read = match line {
            [] => Some(()),
            [b'I', ..] => inlined_call(&mut fields, function),
            _ => source_line(&mut fields, function),
        };
        if is_read.is_none() {
            problems.add(NO_RECORD, 1);
        }
    }
}

/// Reads `INLINE depth line file name (address size)+`.
fn inlined_call(fields: &mut Fields<'_>, function: &mut Function<'_>) -> Option<()> {
    fields.word();
    let [depth, line, file, name] = [(); 4].map(|()| decimal(fields.word()));
    let (depth, line) = (u32::try_from(depth?).ok()?, u32::try_from(line?).ok()?);
    let number = u32::try_from(function.calls.len()).ok()?;
    function.calls.push(InlinedCall { depth, name: name?, file: file?, line });
    while !fields.is_empty() {
        let [start, size] = fields.numbers(false)?;
        function.call_ranges.push((start..start.saturating_add(size), number));
    }
    Some(())
}

/// Reads `address size line file`.
fn source_line(fields: &mut Fields<'_>, function: &mut Function<'_>) -> Option<()> {
    let [start, size] = fields.numbers(false)?;
    let [line, file] = [(); 2].map(|()| decimal(fields.word()));
    let line = u32::try_from(line?).ok()?;
    function.lines.push(Line { range: start..start.saturating_add(size), file: file?, line });
    Some(())
}

/// The lines of a text with their places, without the characters that end them.
pub(super) struct Lines<'d> {
    text: &'d [u8],
    at: usize,
}

impl<'d> Lines<'d> {
    pub(super) fn new(text: &'d [u8]) -> Self {
        Self { text, at: 0 }
    }
}

impl<'d> Iterator for Lines<'d> {
    type Item = (usize, &'d [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let (at, size) = (self.at, memchr::memchr(b'\n', rest).unwrap_or(rest.len()));
        self.at += size + 1;
        let line = &rest[..size];
        Some((at, line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

/// The rest of a record, whose fields are separated by spaces.
pub(super) struct Fields<'d>(&'d [u8]);

impl<'d> Fields<'d> {
    pub(super) fn new(record: &'d [u8]) -> Self {
        Self(record)
    }

    /// The next field; empty if there is none.
    pub(super) fn word(&mut self) -> &'d [u8] {
        let rest = self.0;
        let size = memchr::memchr(b' ', rest).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(size);
        self.0 = rest.trim_ascii_start();
        word
    }

    /// The next fields as hexadecimal numbers, after an `m` if `may_be_marked`. Breakpad marks a function or symbol
    /// with `m` if others have the same address.
    fn numbers<const N: usize>(&mut self, may_be_marked: bool) -> Option<[u64; N]> {
        if may_be_marked && self.0.starts_with(b"m ") {
            self.word();
        }
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = hexadecimal(self.word())?;
        }
        Some(numbers)
    }

    /// All that is left, as one field.
    pub(super) fn rest(&mut self) -> &'d [u8] {
        std::mem::take(&mut self.0)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether a line begins with a word, and not with the address of a line of a function.
fn is_keyword(word: &[u8]) -> bool {
    word.first().is_some_and(u8::is_ascii_uppercase) && hexadecimal(word).is_none()
}

/// The first `limit` bytes.
fn cut(text: &[u8], limit: usize) -> &[u8] {
    &text[..text.len().min(limit)]
}

pub(super) fn hexadecimal(word: &[u8]) -> Option<u64> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16).map(u64::from);
    (1..=16).contains(&word.len()).then_some(())?;
    word.iter().try_fold(0, |number, next| Some(number << 4 | digit(next)?))
}

fn decimal(word: &[u8]) -> Option<u64> {
    (!word.is_empty()).then_some(())?;
    word.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
