//! The sequences of a line program, and their rows.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

use gimli::{ColumnType, FileEntry, IncompleteLineProgram, LineInstruction, LineProgramHeader, LineRow};
use symdex::write::NonMaxU32;

use super::instances::StatedSequence;
use super::rows::{Registers, Row, SequenceEnd, column, file};
use crate::flatten::{Interval, flatten};
use crate::image::{Image, Reader, short};
use crate::keyed::KeyedMap;
use crate::limits::{self, Deadline};
use crate::memory::Share;
use crate::report::Problems;

/// A sequence: its address range and the indexes of its rows.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    start: u64,
    end: u64,
    rows: Range<usize>,
    /// The offset of its first opcode in `.debug_line`, if it is known.
    offset: Option<u64>,
}

/// The problem reported for a sequence that leaves the address space.
const BACKWARDS: &str = "line sequences that end before they start";

/// Collects rows into sequences.
pub(super) struct SequenceReader<'a, 'd> {
    image: &'a Image<'d>,
    /// The rows of all sequences, the current one included. In the current sequence a row ends where the next one
    /// begins, and the last row is empty.
    pub(super) rows: Vec<Row>,
    /// How many rows belong to finished sequences.
    finished: usize,
    /// Whether the rows of the current sequence are in address order.
    in_order: bool,
    /// The lowest SVMA of the current sequence's rows.
    lowest: u64,
    /// Whether the current sequence has left the address space. Its other rows are then meaningless.
    pub(super) overflows: bool,
    /// Whether the last set_address states a tombstone. The rows after a tombstone belong to code that the linker
    /// dropped.
    pub(super) is_tombstone: bool,
    pub(super) sequences: Vec<Sequence>,
    /// The offset of the current sequence's first opcode in `.debug_line`. `None` if gimli runs the program.
    pub(super) offset: Option<u64>,
    pub(super) ends: Vec<SequenceEnd>,
    pub(super) problems: Problems,
    /// The number of rows read in sequences that have an end.
    pub(super) read: usize,
    /// For how many rows, and for how many sequences, memory was taken.
    taken: (usize, usize),
    share: &'a Share<'a>,
    deadline: Deadline,
    /// How many files the program has defined.
    defined_files: usize,
    /// The limit that the program exceeds.
    pub(super) exceeded: Option<Exceeded>,
}

/// A limit that a line program exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exceeded {
    Rows,
    Files,
    /// The time or the memory of the whole build.
    Build,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows => write!(f, "it has more than {} rows", limits::ROWS),
            Self::Files => write!(f, "it defines more than {} files", limits::FILES),
            Self::Build => f.write_str("the time or the memory is exhausted"),
        }
    }
}

impl<'a, 'd> SequenceReader<'a, 'd> {
    pub(super) fn new(image: &'a Image<'d>, deadline: Deadline, share: &'a Share<'a>) -> Self {
        Self {
            image,
            taken: (0, 0),
            share,
            deadline,
            rows: Vec::new(),
            finished: 0,
            in_order: true,
            lowest: u64::MAX,
            overflows: false,
            is_tombstone: false,
            sequences: Vec::new(),
            offset: None,
            ends: Vec::new(),
            problems: Problems::default(),
            read: 0,
            defined_files: 0,
            exceeded: None,
        }
    }

    /// Runs `program` with gimli until its end or an error. Returns its header, with the files that the program itself
    /// defines.
    pub(super) fn run(
        &mut self,
        mut program: IncompleteLineProgram<Reader<'d>>,
    ) -> (LineProgramHeader<Reader<'d>>, gimli::Result<()>) {
        let mut instructions = program.header().instructions();
        let mut row = LineRow::new(program.header());
        let mut steps = 0u32;
        let result = loop {
            steps = steps.wrapping_add(1);
            if self.exceeded.is_some() || steps.is_multiple_of(1 << 16) && self.is_too_late() {
                break Ok(());
            }
            match instructions.next_instruction(program.header()) {
                Ok(Some(instruction)) => self.execute(instruction, &mut row, &mut program),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        (program.header().clone(), result)
    }

    fn execute(
        &mut self,
        instruction: LineInstruction<Reader<'d>>,
        row: &mut LineRow,
        program: &mut IncompleteLineProgram<Reader<'d>>,
    ) {
        if let LineInstruction::DefineFile(_) = instruction {
            self.defined_files += 1;
            let is_taken = self.share.take(2 * size_of::<FileEntry<Reader<'_>>>());
            if self.defined_files > limits::FILES || !is_taken {
                self.exceeded = Some(Exceeded::Files);
                return;
            }
        }
        if let LineInstruction::SetAddress(address) = instruction {
            if address < row.address() && self.is_code(address) {
                *row = at_address_zero(row, program);
            }
            let executed = row.execute(instruction, program);
            // gimli keeps the old address if the new one is lower, -1 or -2.
            self.is_tombstone = row.address() != address;
            self.overflows |= executed.is_err();
            return;
        }
        match row.execute(instruction, program) {
            Ok(false) => {}
            Ok(true) => {
                let (address, file) = (row.address(), file(row.file_index()));
                let line = row.line().map_or(0, std::num::NonZeroU64::get);
                if row.end_sequence() {
                    self.end_sequence(address, file, line);
                } else {
                    let (column, is_stmt) = (column(stated_column(row)), row.is_stmt());
                    self.row(Registers { address, file, line, column, is_stmt });
                }
                row.reset(program.header());
            }
            // The advance leaves the address space, for example if a sequence ends below its start.
            Err(_) => self.overflows = true,
        }
    }
}

impl SequenceReader<'_, '_> {
    /// Adds a row to the current sequence.
    #[inline]
    pub(super) fn row(&mut self, row: Registers) {
        if self.is_tombstone {
            return;
        }
        if self.rows.len() >= self.taken.0 && !self.may_grow() {
            return;
        }
        self.lowest = self.lowest.min(row.address);
        let start = short(row.address.wrapping_sub(self.image.info.base));
        let Registers { file, line, column, is_stmt, .. } = row;
        let line = NonMaxU32::new(line);
        let sequence = u32::try_from(self.sequences.len()).unwrap_or(u32::MAX);
        let new = Row { start, end: start, file, line, is_stmt, column, sequence };
        self.in_order &= push_row(&mut self.rows, self.finished, new);
    }

    /// Whether the deadline has passed. The program is then given up.
    pub(super) fn is_too_late(&mut self) -> bool {
        if self.deadline.is_over() {
            self.exceeded.get_or_insert(Exceeded::Build);
        }
        self.deadline.is_over()
    }

    /// Reserves room for `rows` rows, if there is enough memory.
    pub(super) fn reserve(&mut self, rows: usize) {
        if self.share.take(rows * size_of::<Row>()) && self.rows.try_reserve_exact(rows).is_ok() {
            self.taken.0 = rows;
        }
    }

    /// Takes memory for more rows. If there are too many rows, or too little memory or time is left, all rows are
    /// dropped, and the result is `false`.
    #[cold]
    fn may_grow(&mut self) -> bool {
        const ROWS_AT_A_TIME: usize = 1 << 12;
        let more = self.taken.0.clamp(ROWS_AT_A_TIME, ROWS_AT_A_TIME << 6).min(limits::ROWS - self.taken.0);
        if more == 0 {
            self.exceeded.get_or_insert(Exceeded::Rows);
        } else if self.exceeded.is_none() {
            // A growing vector is copied.
            if !self.deadline.is_over() && self.share.take(2 * more * size_of::<Row>()) {
                self.taken.0 += more;
                return true;
            } else {
                self.exceeded = Some(Exceeded::Build);
            }
        }
        (self.rows, self.finished, self.taken.0) = (Vec::new(), 0, 0);
        false
    }

    /// Takes memory for more sequences.
    #[cold]
    fn may_have_more_sequences(&mut self) -> bool {
        const SEQUENCES_AT_A_TIME: usize = 1 << 10;
        const SIZE: usize = 2 * (size_of::<Sequence>() + size_of::<SequenceEnd>());
        if self.exceeded.is_some() || self.deadline.is_over() || !self.share.take(SEQUENCES_AT_A_TIME * SIZE)
        {
            self.exceeded.get_or_insert(Exceeded::Build);
            return false;
        }
        self.taken.1 += SEQUENCES_AT_A_TIME;
        true
    }

    /// Ends the current sequence.
    pub(super) fn end_sequence(&mut self, address: u64, file: u32, line: u64) {
        self.finish(address, file, NonMaxU32::new(line));
        self.end();
        (self.overflows, self.is_tombstone, self.in_order) = (false, false, true);
        self.lowest = u64::MAX;
    }

    /// Drops the rows of a sequence without an end. Nothing states its end address, or whether the linker dropped its
    /// code.
    pub(super) fn end(&mut self) {
        self.rows.truncate(self.finished);
    }

    fn finish(&mut self, address: u64, file: u32, line: Option<NonMaxU32>) {
        let SequenceReader { image, finished, .. } = *self;
        self.read += self.rows.len() - finished;
        if self.overflows {
            return self.problems.add(BACKWARDS, 1);
        }
        // Units without code have a single end_sequence row.
        let first = self.lowest;
        if self.rows.len() == finished || first == address {
            return self.problems.dropped("empty line sequences", 1);
        }
        let Some((start, end)) = image.executable_part(first, address) else {
            if self.is_code(first) {
                return self.problems.add(BACKWARDS, 1);
            }
            // Dropped code has the address 0, 1, -1 or -2.
            return self.problems.dropped("line sequences outside of the executable sections", 1);
        };
        finish_rows(&mut self.rows, finished, self.in_order, short(end));
        if self.sequences.len() >= self.taken.1 && !self.may_have_more_sequences() {
            return;
        }
        self.finished = self.rows.len();
        self.sequences.push(Sequence { start, end, rows: finished..self.finished, offset: self.offset });
        self.ends.push(SequenceEnd { at: short(end), file, line });
    }

    /// Whether code lies at an SVMA.
    pub(super) fn is_code(&self, address: u64) -> bool {
        self.image.executable_part(address, address.saturating_add(1)).is_some()
    }
}

/// The column of a row, or 0.
fn stated_column(row: &LineRow) -> u64 {
    match row.column() {
        ColumnType::LeftEdge => 0,
        ColumnType::Column(column) => column.get(),
    }
}

/// A row with the file, line, column and flag of `row`, at address 0. gimli treats a set_address that goes backwards as
/// a tombstone. From address 0, every set_address goes forward.
fn at_address_zero<'d>(row: &LineRow, program: &mut IncompleteLineProgram<Reader<'d>>) -> LineRow {
    let mut moved = LineRow::new(program.header());
    let line = row.line().map_or(0, std::num::NonZeroU64::get);
    // No real row has a line that does not fit.
    let advance = i64::try_from(line).map_or(i64::MAX, |line| line - 1);
    let is_stmt_differs = row.is_stmt() != moved.is_stmt();
    let mut execute = |instruction: LineInstruction<Reader<'d>>| moved.execute(instruction, program);
    // None of these fails.
    let _ = execute(LineInstruction::SetFile(row.file_index()));
    let _ = execute(LineInstruction::AdvanceLine(advance));
    let _ = execute(LineInstruction::SetColumn(stated_column(row)));
    if is_stmt_differs {
        let _ = execute(LineInstruction::NegateStatement);
    }
    moved
}

/// Adds a row to the sequence whose rows begin at index `first`. It replaces the last row if both have the same
/// address. Returns `false` if the new row is below the last one.
#[inline]
fn push_row(rows: &mut Vec<Row>, first: usize, new: Row) -> bool {
    let mut in_order = true;
    if rows.len() > first
        && let Some(last) = rows.last_mut()
    {
        if last.start == new.start {
            *last = new;
            return true;
        }
        in_order = last.start < new.start;
        last.end = new.start;
    }
    rows.push(new);
    in_order
}

/// Finishes the sequence that ends at image offset `end`, whose rows begin at index `first`. Sorts the rows by address,
/// keeps one row for each address, and sets their ends. In most programs the rows are in order already.
fn finish_rows(rows: &mut Vec<Row>, first: usize, in_order: bool, end: u32) {
    if let Some(last) = rows.last_mut().filter(|last| in_order && last.start < end) {
        last.end = end;
        return;
    }
    // An advance or a set_address may go backwards. The sort is stable, because program order decides between rows at
    // one address.
    rows[first..].sort_by_key(|row| row.start);
    let sorted = rows.split_off(first);
    for row in sorted.into_iter().take_while(|row| row.start < end) {
        push_row(rows, first, row);
    }
    if let [.., last] = &mut rows[first..] {
        last.end = end;
    }
}

/// The rows of all sequences in address order. If sequences overlap, the one that `stated` has for the code wins, if it
/// covers the code. Otherwise the one that starts last wins. If they start at one address, the shortest wins.
///
/// Sequences overlap if the linker merged functions. Each function states its own sequence.
pub(super) fn in_address_order(
    mut sequences: Vec<Sequence>,
    rows: Vec<Row>,
    stated: &[StatedSequence],
    share: &Share<'_>,
) -> Vec<Row> {
    if sequences.is_sorted_by(|a, b| a.end <= b.start) {
        return rows;
    }
    // The rows are copied. The unit is given up if there is too little memory for them.
    if !share.take(size_of_val(&rows[..])) {
        return Vec::new();
    }
    sequences.sort_by_key(|sequence| (sequence.start, sequence.end));
    if sequences.is_sorted_by(|a, b| a.end <= b.start) {
        return sequences.into_iter().flat_map(|sequence| rows[sequence.rows].iter().copied()).collect();
    }
    if !share.take((sequences.len() + stated.len()) * 2 * size_of::<Claim<'_>>()) {
        return Vec::new();
    }
    let mut ordered = Vec::new();
    let claims = claims(&sequences, stated);
    for stretch in flatten(claims.iter().map(|(interval, _)| *interval)) {
        let of = &rows[claims[stretch.owner].1.rows.clone()];
        let (start, end) = (short(stretch.start), short(stretch.end));
        let first = of.partition_point(|row| row.end <= start);
        let clipped = of[first..].iter().take_while(|row| row.start < end);
        ordered.extend(clipped.map(|row| Row { start: row.start.max(start), end: row.end.min(end), ..*row }));
    }
    ordered
}

/// Code, and a sequence with rows for it. A stated sequence has priority.
type Claim<'s> = (Interval<(bool, u64, Reverse<u64>)>, &'s Sequence);

/// The claims of overlapping sequences, sorted by start: each claims its own code, and the code that states it.
fn claims<'s>(sequences: &'s [Sequence], stated: &[StatedSequence]) -> Vec<Claim<'s>> {
    let claim = |start, end, is_stated| Interval { start, end, priority: (is_stated, start, Reverse(end)) };
    let mut claims: Vec<_> =
        sequences.iter().map(|sequence| (claim(sequence.start, sequence.end, false), sequence)).collect();
    let by_offset: KeyedMap<u64, &Sequence> =
        sequences.iter().filter_map(|sequence| Some((sequence.offset?, sequence))).collect();
    claims.extend(stated.iter().filter_map(|code| {
        let sequence = *by_offset.get(&code.sequence)?;
        let (start, end) = (code.start.max(sequence.start), code.end.min(sequence.end));
        (start < end).then(|| (claim(start, end, true), sequence))
    }));
    claims.sort_by_key(|(interval, _)| interval.start);
    claims
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    fn row(start: u32, line: u64) -> Row {
        Row { start, end: 0, file: 1, line: NonMaxU32::new(line), is_stmt: true, column: 0, sequence: 0 }
    }

    fn text(rows: &[Row]) -> String {
        let row = |row: &Row| format!("{}-{}:{:?}", row.start, row.end, row.line.expect("has a line"));
        rows.iter().map(row).collect::<Vec<_>>().join(" ")
    }

    fn finished(rows: Vec<Row>, end: u32) -> Vec<Row> {
        let mut finished = Vec::new();
        let mut in_order = true;
        for row in rows {
            in_order &= push_row(&mut finished, 0, row);
        }
        finish_rows(&mut finished, 0, in_order, end);
        finished
    }

    #[test]
    fn of_rows_at_one_address_the_last_counts() {
        let rows = vec![row(0, 1), row(4, 2), row(4, 3), row(8, 4)];
        assert_eq!(text(&finished(rows, 12)), "0-4:1 4-8:3 8-12:4");
    }

    #[test]
    fn rows_that_go_backwards_are_sorted_and_rows_behind_the_end_dropped() {
        let rows = vec![row(8, 1), row(0, 2), row(4, 3), row(20, 4)];
        assert_eq!(text(&finished(rows, 12)), "0-4:2 4-8:3 8-12:1");
        let rows = vec![row(4, 1), row(8, 2), row(4, 3), row(12, 4)];
        assert_eq!(text(&finished(rows, 12)), "4-8:3 8-12:2");
    }

    #[test]
    fn of_overlapping_sequences_the_stated_or_inner_one_wins_and_the_outer_resumes() {
        let rows = [(8, 12, 7), (0, 10, 1), (10, 20, 2)];
        let rows = rows.map(|(start, end, line)| Row { end, ..row(start, line) }).to_vec();
        let inner = Sequence { start: 8, end: 12, rows: 0..1, offset: Some(30) };
        let outer = Sequence { start: 0, end: 20, rows: 1..3, offset: Some(50) };
        let ordered = |stated: &[(u64, u64, u64)]| {
            let stated = stated.iter().map(|&(start, end, sequence)| StatedSequence { start, end, sequence });
            let stated: Vec<_> = stated.collect();
            let sequences = vec![inner.clone(), outer.clone()];
            text(&in_address_order(sequences, rows.clone(), &stated, &Share::new(&Memory::new(1 << 20))))
        };
        assert_eq!(ordered(&[]), "0-8:1 8-12:7 12-20:2");
        assert_eq!(ordered(&[(8, 11, 50)]), "0-8:1 8-10:1 10-11:2 11-12:7 12-20:2");
        // No such sequence, and one that does not cover all of the code.
        assert_eq!(ordered(&[(0, 9, 31), (9, 20, 30)]), "0-8:1 8-9:7 9-12:7 12-20:2");
    }
}
