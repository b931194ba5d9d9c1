//! A function as a symbol file states it.

use std::ops::Range;

use crate::limits::{STRING_BYTES, STRING_BYTES_PER_BYTE};

/// A function with its inlined calls and lines. Addresses are image offsets.
#[derive(Debug, Default)]
pub struct Function<'d> {
    pub(crate) range: Range<u64>,
    /// Its name; `None` if it is not known.
    pub name: Option<&'d [u8]>,
    /// In any order.
    pub calls: Vec<InlinedCall>,
    /// The ranges of all calls, each with the place of its call in `calls`. A range of no call is ignored.
    pub call_ranges: Vec<(Range<u64>, u32)>,
    /// The lines of the innermost functions, in any order. Of two that overlap, the one that starts last counts.
    pub lines: Vec<Line>,
    /// Whether calls are missing, so that lines may be those of functions that are called.
    pub are_calls_lost: bool,
}

/// A call that is inlined.
#[derive(Debug)]
pub struct InlinedCall {
    /// 0 for a call by the function itself. At each address, a call is inlined into the call of the next lower depth.
    pub depth: u32,
    /// The function that is called, by the number that the file has for its name.
    pub name: u64,
    /// The file of the call, by the number that the symbol file has for it. `None` if only the line is stated: the file
    /// is that of the function with the call.
    pub file: Option<u64>,
    /// The line of the call.
    pub line: u32,
}

/// Addresses of one line.
#[derive(Clone, Debug)]
pub struct Line {
    /// What is outside of the function is ignored.
    pub range: Range<u64>,
    /// By the number that the symbol file has for it.
    pub file: u64,
    /// The line; 0 is line zero.
    pub line: u32,
}

/// How many bytes of names and paths may still be read. Records may share them.
#[derive(Debug)]
pub(super) struct TextsLeft(u64);

impl TextsLeft {
    /// The limit for records of `size` bytes.
    pub(super) fn of_records(size: u64) -> Self {
        Self(STRING_BYTES + STRING_BYTES_PER_BYTE.saturating_mul(size))
    }

    /// Counts a text, which `read` returns. Returns `None`, and does not call `read` again, once there are too many.
    pub(super) fn take<T: AsRef<[u8]>>(&mut self, read: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.is_used_up() {
            return None;
        }
        let text = read()?;
        self.0 = self.0.saturating_sub(text.as_ref().len() as u64);
        Some(text).filter(|_| !self.is_used_up())
    }

    /// Whether texts were left out.
    pub(super) fn is_used_up(&self) -> bool {
        self.0 == 0
    }
}

impl Function<'_> {
    /// Its code, as image offsets.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Empties it, for the function with the code `range`, and keeps its buffers.
    pub(super) fn begin(&mut self, range: Range<u64>) {
        (self.range, self.name) = (range, None);
        self.calls.clear();
        self.call_ranges.clear();
        self.lines.clear();
        self.are_calls_lost = false;
    }

    /// Sorts the lines, cuts each at the start of the next one, and drops what is outside of the function.
    pub(super) fn sort_lines(&mut self) {
        let Range { start, end } = self.range;
        self.lines.sort_by_key(|line| line.range.start);
        let mut next = end;
        for line in self.lines.iter_mut().rev() {
            line.range = line.range.start.max(start)..line.range.end.min(next);
            // Of several lines at one address, the last one counts.
            next = next.min(line.range.start);
        }
        self.lines.retain(|line| !line.range.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_the_next_one_starts() {
        let line = |start, end, line| Line { range: start..end, file: 1, line };
        let lines = vec![line(30, 90, 4), line(0, 25, 1), line(20, 40, 2), line(20, 30, 3)];
        let mut function = Function { range: 10..50, lines, ..Function::default() };
        function.sort_lines();
        let lines: Vec<_> = function.lines.iter().map(|line| (line.range.clone(), line.line)).collect();
        assert_eq!(lines, [(10..20, 1), (20..30, 3), (30..50, 4)]);
    }
}
