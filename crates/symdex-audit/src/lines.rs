//! The lines of a unit: the valid sequences, the row that covers an address, and the paths of files.

use gimli::{FileEntry, LineProgramHeader, Section as _, UnitRef};
use symdex_build::Image;

use crate::budget::{Budget, TooMuch};
use crate::image::{Reader, executable_part, resolve};
use crate::intervals::{Interval, Intervals};
use crate::rows::{RawSequence, Row, for_each_sequence};

/// A part of a line row: the file and line that `statement` answers from `start` up to the next part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) file: u32,
    pub(crate) line: u32,
}

/// The line program of a unit. Addresses are image offsets, files are numbers of [`Lines::files`].
#[derive(Default)]
pub(crate) struct Lines {
    pub(crate) rows: Vec<Row>,
    /// The answers of the `statement` policy for each part of a row, in address order.
    pub(crate) pieces: Vec<Piece>,
    /// For each sequence with code in the image, its rows as an index range of `rows`: sorted by address, then in
    /// program order.
    pub(crate) sequences: Vec<std::ops::Range<usize>>,
    /// The offset of each of them in `.debug_line`.
    offsets: Vec<Option<u64>>,
    /// The sequences in which a set_address decreases the address, and those that follow them. addr2line treats such an
    /// address as dropped code, and then also drops the end of the sequence.
    pub(crate) backward: Vec<u32>,
    /// Whether addresses decrease in the last sequence that was read.
    last_is_backward: bool,
    /// Each sequence from its lowest row to its end_sequence row, or to the end of the section.
    pub(crate) by_address: Intervals,
    /// The end_sequence rows of `sequences`, sorted by address, then in program order.
    pub(crate) ends: Vec<Row>,
    /// The offset of the program's first instruction in `.debug_line`.
    program_offset: u64,
    /// The SVMA of every row and every end_sequence row of the program.
    pub(crate) addresses: Vec<u64>,
    /// Whether a sequence exceeds the address space.
    pub(crate) overflows: bool,
    /// Paths by file number; `None` for an invalid number.
    pub(crate) files: Vec<Option<Vec<u8>>>,
    /// Whether the path of a listed file cannot be read.
    pub(crate) has_bad_paths: bool,
    /// The error at which the reading of the program stopped.
    pub(crate) error: Option<String>,
}

impl Lines {
    /// Reads the line program of `unit`, if it has one.
    pub(crate) fn read<'d>(
        unit: UnitRef<'_, Reader<'d>>,
        image: &Image<'d>,
        budget: &Budget,
    ) -> Result<Self, TooMuch> {
        let mut lines = Self::default();
        let Some(program) = &unit.line_program else { return Ok(lines) };
        let header = program.header();
        let section = *unit.dwarf.debug_line.reader();
        lines.program_offset = header.raw_program_buf().offset_from(section) as u64;
        let (mut defined, mut covered, mut within_budget) = (Vec::new(), Vec::new(), Ok(()));
        let is_code = |svma: u64| executable_part(image, svma, svma.saturating_add(1)).is_some();
        let read = for_each_sequence(header, is_code, &mut defined, |sequence| {
            within_budget = budget.take(sequence.rows.len());
            covered.extend(lines.add(sequence, image));
            within_budget.is_ok()
        });
        within_budget?;
        lines.error = read.err().map(|error| error.to_string());
        lines.by_address = Intervals::new(covered);
        lines.ends.sort_by_key(|row| row.address);
        lines.addresses.sort_unstable();
        lines.addresses.dedup();
        lines.files = files(unit, image, header, &defined, budget)?;
        // Up to DWARF 4, file 0 is not listed.
        let unlisted = usize::from(header.version() <= 4);
        lines.has_bad_paths = lines.files.iter().skip(unlisted).any(Option::is_none);
        Ok(lines)
    }

    /// Adds a sequence if its code is in the image. Returns the addresses that it covers.
    fn add(&mut self, sequence: RawSequence, image: &Image<'_>) -> Option<Interval> {
        let RawSequence { mut rows, end, overflow, is_backward, begin } = sequence;
        let is_backward = std::mem::replace(&mut self.last_is_backward, is_backward) || is_backward;
        self.addresses.extend(rows.iter().chain([&end]).map(|row| row.address));
        rows.sort_by_key(|row| row.address);
        let lowest = rows.first()?.address;
        self.overflows |= overflow;
        if overflow || end.address <= lowest {
            return None;
        }
        let (start, covered_end) = executable_part(image, lowest, end.address)?;
        let offset = |row: &Row| Row { address: row.address - image.info().base, ..*row };
        let first = self.rows.len();
        self.rows.extend(rows.iter().map(offset));
        self.ends.push(offset(&end));
        let item = u32::try_from(self.sequences.len()).ok()?;
        self.sequences.push(first..self.rows.len());
        self.offsets.push(begin.map(|begin| self.program_offset + begin as u64));
        self.backward.extend(is_backward.then_some(item));
        Some(Interval { start, end: covered_end, item })
    }

    /// The rows of sequence `sequence` at the greatest address up to `offset`, as an index range in program order.
    pub(crate) fn rows_at(&self, sequence: u32, offset: u64) -> std::ops::Range<usize> {
        let all = &self.sequences[sequence as usize];
        let rows = &self.rows[all.clone()];
        let end = rows.partition_point(|row| row.address <= offset);
        let address = end.checked_sub(1).map_or(0, |last| rows[last].address);
        let start = rows.partition_point(|row| row.address < address).min(end);
        all.start + start..all.start + end
    }

    /// The index of the row that covers `offset`, and of its sequence; `None` if no sequence does. Of several sequences
    /// the one at `stated` in `.debug_line` counts, if it is among them. `covering` is overwritten.
    pub(crate) fn row_at(
        &self,
        offset: u64,
        stated: Option<u64>,
        covering: &mut Vec<Interval>,
    ) -> Option<(usize, u32)> {
        self.by_address.covering(offset, covering);
        let is_stated = |one: &&Interval| stated.is_some() && self.offsets[one.item as usize] == stated;
        let sequence = covering.iter().find(is_stated).or(covering.first())?.item;
        Some((self.rows_at(sequence, offset).next_back()?, sequence))
    }

    /// The end_sequence row with the greatest address up to `offset`.
    pub(crate) fn end_before(&self, offset: u64) -> Option<Row> {
        let end = self.ends.partition_point(|row| row.address <= offset);
        self.ends[..end].last().copied()
    }

    /// The path of file `number`.
    pub(crate) fn file(&self, number: u64) -> Option<&[u8]> {
        self.files.get(usize::try_from(number).ok()?)?.as_deref()
    }

    /// The answer of the `statement` policy at `offset`, which a row must cover.
    pub(crate) fn piece_at(&self, offset: u64) -> Option<Piece> {
        let end = self.pieces.partition_point(|piece| piece.start <= offset);
        self.pieces[..end].last().copied()
    }
}

/// The paths of a program, by file number.
fn files<'d>(
    unit: UnitRef<'_, Reader<'d>>,
    image: &Image<'d>,
    header: &LineProgramHeader<Reader<'d>>,
    defined: &[FileEntry<Reader<'d>>],
    budget: &Budget,
) -> Result<Vec<Option<Vec<u8>>>, TooMuch> {
    let path = |file| {
        let path = path(unit, image, header, file);
        budget.take_memory(64 + path.as_ref().map_or(0, Vec::len) as u64)?;
        Ok(path)
    };
    let stated = header.file_names().iter().chain(defined).map(path);
    // Up to DWARF 4, numbers begin at 1 and 0 is the unit's own file. From DWARF 5 on they begin at 0.
    let own = header.file(0).map(path).transpose().map(Option::unwrap_or_default);
    let own = if header.version() <= 4 { Some(own) } else { None };
    own.into_iter().chain(stated).collect()
}

/// comp_dir, directory and name, joined. An absolute part replaces those before it.
fn path<'d>(
    unit: UnitRef<'_, Reader<'d>>,
    image: &Image<'d>,
    header: &LineProgramHeader<Reader<'d>>,
    file: &FileEntry<Reader<'d>>,
) -> Option<Vec<u8>> {
    let string = |value| unit.attr_string(value).ok().map(|string| resolve(image, string.slice()));
    let name = string(file.path_name())?;
    let directory = match file.directory_index() {
        // comp_dir, which is listed from DWARF 5 on only.
        0 => None,
        _ => file.directory(header).and_then(string),
    };
    // Swift's name for the file of generated code names nothing in comp_dir.
    let comp_dir = unit.comp_dir.filter(|_| name != b"<compiler-generated>");
    let mut path = Vec::new();
    let parts = [comp_dir.map(|dir| resolve(image, dir.slice())), directory, Some(name)];
    for part in parts.into_iter().flatten() {
        let separator = if is_windows_root(&path) { b'\\' } else { b'/' };
        if part.starts_with(b"/") || is_windows_root(part) || part.get(1..3) == Some(b":/") {
            path.clear();
        } else if path.last().is_some_and(|last| *last != separator) {
            path.push(separator);
        }
        path.extend_from_slice(part);
    }
    Some(path)
}

fn is_windows_root(path: &[u8]) -> bool {
    path.starts_with(b"\\") || path.get(1..3) == Some(b":\\")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pieces::pieces;

    /// One sequence of these rows (address, line, is_stmt) that ends at 100.
    fn lines(rows: &[(u64, u32, bool)]) -> Lines {
        let row = |&(address, line, is_stmt): &(u64, u32, bool)| Row { address, file: 1, line, is_stmt };
        let rows: Vec<Row> = rows.iter().map(row).collect();
        let by_address = Intervals::new(vec![Interval { start: rows[0].address, end: 100, item: 0 }]);
        let ends = vec![row(&(40, 8, true)), row(&(100, 9, true)), row(&(100, 10, true))];
        let sequences = std::iter::once(0..rows.len()).collect();
        Lines { rows, sequences, offsets: vec![None], by_address, ends, ..Lines::default() }
    }

    #[test]
    fn of_rows_at_one_address_the_last_counts() {
        let lines = lines(&[(10, 1, true), (20, 2, true), (20, 3, false), (30, 4, true)]);
        let line = |offset| lines.row_at(offset, None, &mut Vec::new()).map(|(row, _)| lines.rows[row].line);
        let at = [9, 10, 19, 20, 29, 30, 99, 100];
        let last = [None, Some(1), Some(1), Some(3), Some(3), Some(4), Some(4), None];
        assert_eq!(at.map(line), last);
    }

    #[test]
    fn a_tail_takes_the_end_before_it() {
        let lines = lines(&[(10, 1, true)]);
        let end = |offset| lines.end_before(offset).map(|row| row.line);
        assert_eq!([39, 40, 99, 100, 200].map(end), [None, Some(8), Some(8), Some(10), Some(10)]);
    }

    #[test]
    fn a_piece_without_a_line_answers_as_the_last_statement_in_its_instance() {
        let rows =
            [(10, 1, true), (20, 3, true), (20, 2, true), (25, 4, false), (30, 0, false), (40, 0, true)];
        let lines = lines(&[&rows[..], &[(50, 6, true), (60, 0, false)]].concat());
        let answers = |instance: fn(u64) -> Option<u64>| {
            let pieces = pieces(&lines, [35, 70].into_iter(), |offset| (instance(offset), None));
            pieces.iter().map(|piece| (piece.start, piece.line)).collect::<Vec<_>>()
        };
        // The first row at 20 does not count.
        let one = [(10, 1), (20, 2), (25, 4), (30, 2), (35, 2), (40, 2), (50, 6), (60, 6), (70, 6)];
        assert_eq!(answers(|_| Some(0)), one);
        // The instance changes within the row at 30, and within the one at 60.
        let changed = [(10, 1), (20, 2), (25, 4), (30, 2), (35, 0), (40, 0), (50, 6), (60, 6), (70, 2)];
        assert_eq!(answers(|offset| Some(u64::from((35..70).contains(&offset)))), changed);
        let none = [(10, 1), (20, 2), (25, 4), (30, 0), (35, 0), (40, 0), (50, 6), (60, 0), (70, 0)];
        assert_eq!(answers(|_| None), none);
    }
}
