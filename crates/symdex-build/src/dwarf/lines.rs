//! The line table of a unit: rows with their ends, in address order, and the paths of its files.

use gimli::{AttributeValue, IncompleteLineProgram, LineInstruction, LineProgramHeader, LineRow};
use rustc_hash::FxHashMap;
use symdex::RowRule;
use symdex::write::Id32;

use super::attributes::text;
use super::ranges::Instance;
use super::units::UnitEntry;
use crate::flatten::{Interval, flatten};
use crate::image::{Image, Reader};
use crate::report::Problems;

/// A row and how far it reaches, as image offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Index into the unit's file table.
    pub(crate) file: u64,
    /// The line, 0 included.
    pub(crate) line: Option<Id32>,
    pub(crate) is_stmt: bool,
    /// File and line of the row that it stands for under the `statement` policy.
    pub(crate) statement: (u64, Option<Id32>),
}

/// Where a sequence ends, and the file and line its `end_sequence` row states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SequenceEnd {
    pub(crate) at: u64,
    pub(crate) file: u64,
    pub(crate) line: Option<Id32>,
}

/// A unit's line table.
#[derive(Default)]
pub(crate) struct Lines<'d> {
    /// Sorted, none empty, none overlapping.
    pub(crate) rows: Vec<Row>,
    /// Sorted; of several at one address the one that comes first in the program.
    pub(crate) ends: Vec<SequenceEnd>,
    header: Option<LineProgramHeader<Reader<'d>>>,
}

/// One sequence as the program has it.
struct Sequence {
    start: u64,
    end: u64,
    rows: Vec<Row>,
}

impl<'d> Lines<'d> {
    /// Runs the unit's line program, whose code lies in `instances`. What cannot be read of it is counted in `problems`.
    pub(crate) fn read(
        image: &Image<'d>,
        unit: &UnitEntry<'d>,
        instances: &[Instance],
        problems: &mut Problems,
    ) -> Self {
        let Some(offset) = unit.lines else { return Self::default() };
        let line_unit = unit.line_unit();
        let (address_size, comp_dir, name) =
            (line_unit.header.address_size(), line_unit.comp_dir, line_unit.name);
        let program = match image.dwarf.debug_line.program(offset, address_size, comp_dir, name) {
            Ok(program) => program,
            Err(error) => {
                problems.unit(unit.offset, &format!("its line table: {error}"));
                return Self::default();
            }
        };
        let mut reader = SequenceReader {
            image,
            pending: Vec::new(),
            overflows: false,
            is_tombstone: false,
            sequences: Vec::new(),
            ends: Vec::new(),
            problems,
        };
        let (header, result) = reader.run(program);
        if let Err(error) = result {
            reader.problems.unit(unit.offset, &format!("its line table: {error}"));
        }
        let SequenceReader { mut sequences, mut ends, .. } = reader;
        resolve_statements(&mut sequences, instances);
        ends.sort_by_key(|end| end.at);
        ends.dedup_by_key(|end| end.at);
        Self { rows: in_address_order(sequences), ends, header: Some(header) }
    }

    /// A number above all indexes that a file of the unit can have.
    pub(crate) fn files(&self) -> usize {
        self.header.as_ref().map_or(0, |header| header.file_names().len() + 1)
    }

    /// The path of file `index` of the unit: comp_dir, directory and name joined as they stand.
    ///
    /// `..` stays, and `<compiler-generated>`, Swift's file for code that nobody wrote, stands alone. `None` where there is
    /// no such file.
    pub(crate) fn path(&self, image: &Image<'d>, unit: &UnitEntry<'d>, index: u64) -> Option<Vec<u8>> {
        let header = self.header.as_ref()?;
        let file = header.file(index)?;
        let string = |value: AttributeValue<Reader<'d>>| {
            text(&image.dwarf, unit.line_unit(), value).map(|string| image.resolve(string))
        };
        let name = string(file.path_name())?;
        if name == b"<compiler-generated>" {
            return Some(name.to_vec());
        }
        let comp_dir = unit.line_unit().comp_dir.map(|comp_dir| image.resolve(comp_dir.slice()));
        let mut path = comp_dir.map(<[u8]>::to_vec).unwrap_or_default();
        // Directory 0 is comp_dir: implied up to DWARF 4, listed in 5.
        if file.directory_index() != 0
            && let Some(directory) = file.directory(header).and_then(string)
        {
            push(&mut path, directory);
        }
        push(&mut path, name);
        path.truncate(MAX_PATH);
        Some(path)
    }
}

/// The longest path that is kept, in bytes; what is longer is cut.
const MAX_PATH: usize = 64 << 10;

/// Appends `part` to `path`, or replaces it where `part` starts at a root, of Unix or of Windows.
fn push(path: &mut Vec<u8>, part: &[u8]) {
    let drive_root = |path: &[u8], separator| path.get(1..3) == Some(&[b':', separator]);
    let windows = |path: &[u8]| path.starts_with(b"\\") || drive_root(path, b'\\');
    if part.starts_with(b"/") || drive_root(part, b'/') || windows(part) {
        path.clear();
    }
    let separator = if windows(path) { b'\\' } else { b'/' };
    if path.last().is_some_and(|last| *last != separator) {
        path.push(separator);
    }
    path.extend_from_slice(part);
}

/// Why the rows of a sequence are lost: it leaves the address space, or wraps in it.
const BACKWARDS: &str = "line sequences that end before they start";

/// Collects rows into sequences.
struct SequenceReader<'a, 'p, 'd> {
    image: &'a Image<'d>,
    /// Rows of the sequence being read; `start` is still an SVMA.
    pending: Vec<Row>,
    /// Whether it left the address space, so that the rows that follow in it mean nothing.
    overflows: bool,
    /// Whether the last set_address names no place in the image: what follows was code that the linker dropped.
    is_tombstone: bool,
    sequences: Vec<Sequence>,
    ends: Vec<SequenceEnd>,
    problems: &'p mut Problems,
}

impl<'d> SequenceReader<'_, '_, 'd> {
    /// Runs `program` as far as it can be read; its header, with the files that the program itself defines.
    fn run(
        &mut self,
        mut program: IncompleteLineProgram<Reader<'d>>,
    ) -> (LineProgramHeader<Reader<'d>>, gimli::Result<()>) {
        let mut instructions = program.header().instructions();
        let mut row = LineRow::new(program.header());
        let result = loop {
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
        if let LineInstruction::SetAddress(address) = instruction {
            let in_image = || self.image.executable_part(address, address.saturating_add(1)).is_some();
            if address < row.address() && in_image() {
                *row = at_address_zero(row, program);
            }
            let executed = row.execute(instruction, program);
            // gimli leaves the address as it was where the new one is -1, -2 or lower.
            self.is_tombstone = row.address() != address;
            self.overflows |= executed.is_err();
            return;
        }
        match row.execute(instruction, program) {
            Ok(false) => {}
            Ok(true) => {
                if !self.is_tombstone || row.end_sequence() {
                    self.row(row);
                }
                self.is_tombstone &= !row.end_sequence();
                row.reset(program.header());
            }
            // An advance below zero, as where a sequence ends below its start.
            Err(_) => self.overflows = true,
        }
    }

    fn row(&mut self, row: &LineRow) {
        let (file, line) = (row.file_index(), Id32::new(row.line().map_or(0, std::num::NonZeroU64::get)));
        if !row.end_sequence() {
            let (start, is_stmt) = (row.address(), row.is_stmt());
            let statement = (file, line);
            self.pending.push(Row { start, end: start, file, line, is_stmt, statement });
            return;
        }
        let rows = std::mem::take(&mut self.pending);
        if std::mem::take(&mut self.overflows) {
            return self.problems.add(BACKWARDS, 1);
        }
        // Units without code keep a lone end_sequence row.
        let Some(first) = rows.iter().map(|row| row.start).min().filter(|first| *first != row.address())
        else {
            return self.problems.dropped("empty line sequences", 1);
        };
        let Some((start, end)) = self.image.executable_part(first, row.address()) else {
            return match self.image.executable_part(first, first.saturating_add(1)) {
                Some(_) => self.problems.add(BACKWARDS, 1),
                // Code that was dropped lies at 0, 1, -1 or -2.
                None => self.problems.dropped("line sequences outside of the executable sections", 1),
            };
        };
        let rows = finish_rows(rows, self.image.info.base, end, self.image.info.row_rule);
        self.sequences.push(Sequence { start, end, rows });
        self.ends.push(SequenceEnd { at: end, file, line });
    }
}

/// A row like `row`, as far as rows are kept, from which any set_address goes forward: gimli takes one that goes backwards for the
/// mark of dropped code.
fn at_address_zero<'d>(row: &LineRow, program: &mut IncompleteLineProgram<Reader<'d>>) -> LineRow {
    let mut moved = LineRow::new(program.header());
    let line = row.line().map_or(0, std::num::NonZeroU64::get);
    // A line that does not fit is none that a row can have.
    let advance = i64::try_from(line).map_or(i64::MAX, |line| line - 1);
    let is_stmt_differs = row.is_stmt() != moved.is_stmt();
    let mut execute = |instruction: LineInstruction<Reader<'d>>| moved.execute(instruction, program);
    // None of these fails.
    let _ = execute(LineInstruction::SetFile(row.file_index()));
    let _ = execute(LineInstruction::AdvanceLine(advance));
    if is_stmt_differs {
        let _ = execute(LineInstruction::NegateStatement);
    }
    moved
}

/// The rows of one sequence that ends at image offset `end`, in address order, one for each address, each with its end.
fn finish_rows(mut rows: Vec<Row>, base: u64, end: u64, rule: RowRule) -> Vec<Row> {
    // An advance or a set_address may go backwards; of one address, the order of the program decides.
    rows.sort_by_key(|row| row.start);
    rows.iter_mut().for_each(|row| row.start -= base);
    match rule {
        RowRule::First => rows.dedup_by_key(|row| row.start),
        RowRule::Last => rows.dedup_by(|next, last| {
            let same = next.start == last.start;
            if same {
                *last = *next;
            }
            same
        }),
    }
    rows.retain(|row| row.start < end);
    let mut next = end;
    for row in rows.iter_mut().rev() {
        row.end = next;
        next = row.start;
    }
    rows
}

/// Sets what each row stands for under the `statement` policy: the last row up to it that begins a statement, in its sequence and
/// in the instance that its own address lies in; itself where there is none, or no instance.
fn resolve_statements(sequences: &mut [Sequence], instances: &[Instance]) {
    let mut last: FxHashMap<u32, (u64, Option<Id32>)> = FxHashMap::default();
    for Sequence { start, rows, .. } in sequences {
        last.clear();
        let first = instances.partition_point(|instance| instance.end <= *start);
        let mut instances = instances[first..].iter().peekable();
        for row in rows {
            while instances.next_if(|instance| instance.end <= row.start).is_some() {}
            let Some(instance) = instances.peek().filter(|instance| instance.start <= row.start) else {
                continue;
            };
            if row.is_stmt {
                last.insert(instance.node, row.statement);
            } else if let Some(statement) = last.get(&instance.node) {
                row.statement = *statement;
            }
        }
    }
}

/// The rows of all sequences in address order. Where sequences overlap, the one that starts last wins, of those the shortest.
fn in_address_order(mut sequences: Vec<Sequence>) -> Vec<Row> {
    sequences.sort_by_key(|sequence| (sequence.start, sequence.end));
    if sequences.is_sorted_by(|a, b| a.end <= b.start) {
        return sequences.into_iter().flat_map(|sequence| sequence.rows).collect();
    }
    let interval = |sequence: &Sequence| Interval {
        start: sequence.start,
        end: sequence.end,
        priority: (sequence.start, std::cmp::Reverse(sequence.end)),
    };
    let intervals: Vec<_> = sequences.iter().map(interval).collect();
    let mut rows = Vec::new();
    for stretch in flatten(&intervals) {
        let of = &sequences[stretch.owner].rows;
        let first = of.partition_point(|row| row.end <= stretch.start);
        let clipped = of[first..].iter().take_while(|row| row.start < stretch.end);
        rows.extend(clipped.map(|row| Row {
            start: row.start.max(stretch.start),
            end: row.end.min(stretch.end),
            ..*row
        }));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(start: u64, line: u64) -> Row {
        Row { start, end: 0, file: 1, line: Id32::new(line), is_stmt: true, statement: (1, None) }
    }

    fn text(rows: &[Row]) -> String {
        let row = |row: &Row| format!("{}-{}:{:?}", row.start, row.end, row.line.expect("has a line"));
        rows.iter().map(row).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn of_two_rows_at_one_address_the_first_counts_in_mach_o_and_the_last_in_elf() {
        let rows = || vec![row(100, 1), row(104, 2), row(104, 3), row(108, 4)];
        assert_eq!(text(&finish_rows(rows(), 100, 12, RowRule::First)), "0-4:1 4-8:2 8-12:4");
        assert_eq!(text(&finish_rows(rows(), 100, 12, RowRule::Last)), "0-4:1 4-8:3 8-12:4");
    }

    #[test]
    fn rows_that_go_backwards_are_sorted_and_rows_behind_the_end_dropped() {
        let rows = vec![row(8, 1), row(0, 2), row(4, 3), row(20, 4)];
        assert_eq!(text(&finish_rows(rows, 0, 12, RowRule::First)), "0-4:2 4-8:3 8-12:1");
    }

    #[test]
    fn of_overlapping_sequences_the_inner_one_wins_and_the_outer_resumes() {
        let sequence = |start, end, rows: &[(u64, u64, u64)]| Sequence {
            start,
            end,
            rows: rows.iter().map(|&(start, end, line)| Row { end, ..row(start, line) }).collect(),
        };
        let inner = sequence(8, 12, &[(8, 12, 7)]);
        let outer = sequence(0, 20, &[(0, 10, 1), (10, 20, 2)]);
        assert_eq!(text(&in_address_order(vec![inner, outer])), "0-8:1 8-12:7 12-20:2");
    }

    #[test]
    fn paths_are_joined_as_they_stand() {
        let joined = |parts: &[&str]| {
            let mut path = Vec::new();
            parts.iter().for_each(|part| push(&mut path, part.as_bytes()));
            String::from_utf8(path).expect("made of UTF-8")
        };
        assert_eq!(joined(&["/src", "sub/..", "a.c"]), "/src/sub/../a.c");
        assert_eq!(joined(&["/src", "/abs", "a.c"]), "/abs/a.c");
        assert_eq!(joined(&["/src/", "./a.c"]), "/src/./a.c");
        assert_eq!(joined(&["C:\\src", "a.c"]), "C:\\src\\a.c");
        assert_eq!(joined(&["/src", "C:/x", "a.c"]), "C:/x/a.c");
    }
}
