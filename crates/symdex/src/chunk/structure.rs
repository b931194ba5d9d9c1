//! Frame A of a chunk: its ranges and locs, and nothing that depends on where the chunk is kept.
//!
//! Consecutive ranges of one function make a *run* of at most [`RUN_LEN`] ranges; what lies between functions is a run
//! without ranges, a gap. A lookup finds the run by its start and decodes that run alone. A *triple* is a distinct
//! (name, file, line) of the chunk, and a loc is a triple and the loc it is inlined into.
//!
//! ```text
//! 7 varints: runs, triples, names, files; sizes in bytes of the run columns together, the triple columns together
//!            and the bodies together
//! run columns, one number for each run, column after column:
//!   span      bytes of address space; the first run starts at the chunk's start, each other where the one before it ends
//!   function  0: a gap; 1: line rows without a function; 2: the function of the last run that was no gap;
//!             k: a function that starts k - 3 bytes before this run
//!   ranges    ranges in the run (0 for a gap)
//!   body      bytes of the run's body (0 for a gap)
//!   triples   triples that the run's body is the first to use
//! triple columns, one number for each triple, column after column:
//!   name      0: the next number no triple before this one has; k: k - 1 with its sign unfolded, plus the number in
//!             the triple before (0 in the first)
//!   file      likewise, but 0 and 1 stand for: 0: the file of the last triple of the same name, or, where the name is new, of the
//!             triple before (0 in the first); 1: the next number no triple before this one has;
//!             k: k - 1 with its sign unfolded, plus the number that 0 stands for
//!   line      0: no line; k: k - 1 with its sign unfolded, plus the line of the last triple of the same name, if that has
//!             the same file and a line, else of the last triple of the same file that has one, else 0
//! bodies, run after run; a body has, for each of its ranges:
//!   length    bytes of address space (left out for the last range, which ends where the run does)
//!   answer    under `exact`
//!   answer    under `statement`, if the first says that it is another
//! an answer is:
//!   head      2 x (locs it defines) + (1: the `statement` answer is another and follows)
//!   link      the loc it is or, where it defines locs, the parent of the first: 0: none; 2k: the k-th last loc of this
//!             run; 2k + 1: the answer before, or what is k parents above it (k is at most 255)
//!   triple    for each loc it defines: 0: the next triple no loc before this one has; k: k - 1 with its sign unfolded, plus
//!             one, plus the triple of the loc defined before this one (0 before there is one in the run)
//! ```
//!
//! What is inlined often is written alike each time: links and triples are counted from their neighbours, not from the start of the
//! chunk, so that zstd finds the repetition. (On DuckDB's C++ this makes frame A a third smaller than distances from the next
//! new triple do.)
//!
//! An answer that defines locs defines a chain: each loc's parent is the one defined before it, and the answer is the last.
//! So a parent always comes before its children, and no chain can be longer than the bytes it was read from.

use rustc_hash::FxHashMap;

use super::{ChunkRanges, Loc, Range};
use crate::format::{Cursor, MAX_FRAMES, MAX_RUN_RANGES, put_varint, unzigzag, zigzag};
use crate::id32::Id32;

/// The most ranges a run holds: a lookup decodes one run, so this bounds its work.
const RUN_LEN: usize = 96;
const _: () = assert!(RUN_LEN <= MAX_RUN_RANGES as usize);
/// The most parents a link goes up, so that the work of an answer is bounded too.
const MAX_STEPS: usize = 255;

/// A distinct (name, file, line), by numbers of the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Triple {
    name: u32,
    file: u32,
    line: Option<Id32>,
}

/// Frame A's payload for the ranges of the chunk that starts at `chunk_start`, and which pool ids its numbers of names and
/// files stand for.
pub(crate) fn encode_structure(chunk_start: u64, chunk: &ChunkRanges) -> EncodedStructure {
    let mut encoder = Encoder::default();
    let mut at = chunk_start;
    for run in runs(&chunk.ranges) {
        let [first, ..] = run else { continue };
        if first.start > at {
            encoder.gap(first.start - at);
        }
        at = run.last().map_or(at, |range| range.end);
        encoder.run(chunk, run, at - first.start);
    }
    encoder.finish()
}

/// What [`encode_structure`] makes.
pub(crate) struct EncodedStructure {
    pub(crate) payload: Vec<u8>,
    pub(crate) names: Vec<Option<Id32>>,
    pub(crate) files: Vec<Option<Id32>>,
}

/// Consecutive ranges of one function without a gap, at most [`RUN_LEN`] at a time.
fn runs(ranges: &[Range]) -> impl Iterator<Item = &[Range]> {
    ranges
        .chunk_by(|a, b| a.end == b.start && a.function_start == b.function_start)
        .flat_map(|function| function.chunks(RUN_LEN))
}

/// Numbers given out in the order in which values are first seen.
#[derive(Default)]
struct Numbering {
    numbers: FxHashMap<Option<Id32>, u32>,
    values: Vec<Option<Id32>>,
}

impl Numbering {
    /// The number of `value`, and whether it is new.
    fn number(&mut self, value: Option<Id32>) -> (u32, bool) {
        // No more than the chunk's locs, which have numbers of 32 bits themselves; likewise the triples.
        let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(value).or_insert(next);
        if number == next {
            self.values.push(value);
        }
        (number, number == next)
    }
}

/// What the numbers of the next triple are guessed from; the encoder and the decoder keep it alike.
#[derive(Default)]
struct Guess {
    name: u32,
    file: u32,
    /// For each name the file and line of its last triple.
    by_name: Vec<(u32, Option<i64>)>,
    /// For each file the last line.
    by_file: Vec<i64>,
}

impl Guess {
    /// The file that a triple of `name` most likely has.
    fn file(&self, name: u32) -> u32 {
        self.by_name.get(name as usize).map_or(self.file, |(file, _)| *file)
    }

    /// The line that one of `name` and `file` is likely close to.
    fn line(&self, name: u32, file: u32) -> i64 {
        let of_file = || self.by_file.get(file as usize).copied().unwrap_or(0);
        match self.by_name.get(name as usize) {
            Some((last_file, Some(line))) if *last_file == file => *line,
            _ => of_file(),
        }
    }

    /// Remembers a triple. Numbers are given out in order, so a new one is at most the length of its list.
    fn learn(&mut self, name: u32, file: u32, line: Option<i64>) {
        (self.name, self.file) = (name, file);
        if self.by_file.len() <= file as usize {
            self.by_file.push(0);
        }
        if let (Some(slot), Some(line)) = (self.by_file.get_mut(file as usize), line) {
            *slot = line;
        }
        match self.by_name.get_mut(name as usize) {
            Some(slot) => *slot = (file, line),
            None => self.by_name.push((file, line)),
        }
    }
}

#[derive(Default)]
struct Encoder {
    runs: u64,
    run_columns: [Vec<u8>; 5],
    triple_columns: [Vec<u8>; 3],
    bodies: Vec<u8>,
    /// By name, file and line.
    triples: FxHashMap<[Option<Id32>; 3], u32>,
    next_triple: u32,
    names: Numbering,
    files: Numbering,
    guess: Guess,
    function_start: Option<u64>,
    /// For each loc of the chunk the run that defined it last, and its number there.
    defined: Vec<(u64, u32)>,
    locs_in_run: u32,
    /// The last answer of the run, and the triple of the last loc it defined.
    last_answer: Option<u32>,
    last_triple: u32,
}

impl Encoder {
    fn push_run(&mut self, columns: [u64; 5]) {
        self.runs += 1;
        self.run_columns.iter_mut().zip(columns).for_each(|(column, value)| put_varint(column, value));
    }

    fn gap(&mut self, span: u64) {
        self.push_run([span, 0, 0, 0, 0]);
    }

    fn run(&mut self, chunk: &ChunkRanges, run: &[Range], span: u64) {
        let [first, ..] = run else { return };
        let function = match first.function_start {
            None => 1,
            same if same == self.function_start => 2,
            Some(start) => first.start.saturating_sub(start) + 3,
        };
        self.function_start = first.function_start;
        let (body_before, triples_before) = (self.bodies.len(), self.next_triple);
        self.defined.resize(chunk.locs.len(), (0, 0));
        (self.locs_in_run, self.last_answer, self.last_triple) = (0, None, 0);
        for (index, range) in run.iter().enumerate() {
            if index + 1 < run.len() {
                put_varint(&mut self.bodies, range.end - range.start);
            }
            let differs = range.statement != range.exact;
            self.answer(&chunk.locs, range.exact, differs);
            if differs {
                self.answer(&chunk.locs, range.statement, false);
            }
        }
        let body = (self.bodies.len() - body_before) as u64;
        let triples = u64::from(self.next_triple - triples_before);
        self.push_run([span, function, run.len() as u64, body, triples]);
    }

    /// The number of `loc` in this run, if the run has defined it.
    fn number(&self, loc: u32) -> Option<u32> {
        self.defined.get(loc as usize).filter(|(run, _)| *run == self.runs + 1).map(|(_, number)| *number)
    }

    fn answer(&mut self, locs: &[Loc], answer: u32, statement_follows: bool) {
        let mut chain = Vec::new();
        let mut next = Some(answer);
        while let Some(loc) = next.filter(|loc| self.number(*loc).is_none()) {
            chain.push(loc);
            next = locs.get(loc as usize).and_then(|loc| loc.parent).map(Id32::get);
        }
        put_varint(&mut self.bodies, 2 * chain.len() as u64 + u64::from(statement_follows));
        let link = self.link(locs, next);
        put_varint(&mut self.bodies, link);
        self.last_answer = Some(answer);
        for loc in chain.into_iter().rev() {
            if let Some(slot) = self.defined.get_mut(loc as usize) {
                *slot = (self.runs + 1, self.locs_in_run);
            }
            self.locs_in_run += 1;
            if let Some(loc) = locs.get(loc as usize) {
                self.triple(loc);
            }
        }
    }

    /// What says that an answer is, or starts from, `loc`.
    fn link(&self, locs: &[Loc], loc: Option<u32>) -> u64 {
        let Some((loc, number)) = loc.and_then(|loc| Some((loc, self.number(loc)?))) else { return 0 };
        let parent = |loc: &u32| locs.get(*loc as usize).and_then(|loc| loc.parent).map(Id32::get);
        let mut ancestors = std::iter::successors(self.last_answer, parent).take(MAX_STEPS + 1);
        let steps = ancestors.position(|ancestor| ancestor == loc);
        match steps {
            Some(steps) => 2 * steps as u64 + 1,
            None => 2 * u64::from(self.locs_in_run - number),
        }
    }

    fn triple(&mut self, loc: &Loc) {
        let next = self.next_triple;
        let number = *self.triples.entry([loc.name, loc.file, loc.line]).or_insert(next);
        let step = zigzag(i64::from(number) - i64::from(self.last_triple) - 1) + 1;
        put_varint(&mut self.bodies, if number == next { 0 } else { step });
        self.last_triple = number;
        if number < next {
            return;
        }
        self.next_triple += 1;
        let [names, files, lines] = &mut self.triple_columns;
        let (name, new_name) = self.names.number(loc.name);
        let (file, new_file) = self.files.number(loc.file);
        let line = loc.line.map(|line| i64::from(line.get()));
        let step = zigzag(i64::from(name) - i64::from(self.guess.name)) + 1;
        put_varint(names, if new_name { 0 } else { step });
        let guess = self.guess.file(name);
        let step = zigzag(i64::from(file) - i64::from(guess)) + 1;
        // A new file can be the guess as well: in the first triple.
        put_varint(
            files,
            if new_file {
                1
            } else if file == guess {
                0
            } else {
                step
            },
        );
        put_varint(lines, line.map_or(0, |line| zigzag(line - self.guess.line(name, file)) + 1));
        self.guess.learn(name, file, line);
    }

    fn finish(self) -> EncodedStructure {
        let mut payload = Vec::new();
        let size = |columns: &[Vec<u8>]| columns.iter().map(|column| column.len() as u64).sum::<u64>();
        let lens = [self.runs, u64::from(self.next_triple), self.names.values.len() as u64];
        lens.into_iter().for_each(|len| put_varint(&mut payload, len));
        put_varint(&mut payload, self.files.values.len() as u64);
        put_varint(&mut payload, size(&self.run_columns));
        put_varint(&mut payload, size(&self.triple_columns));
        put_varint(&mut payload, self.bodies.len() as u64);
        self.run_columns
            .iter()
            .chain(&self.triple_columns)
            .for_each(|column| payload.extend_from_slice(column));
        payload.extend_from_slice(&self.bodies);
        EncodedStructure { payload, names: self.names.values, files: self.files.values }
    }
}

/// One run that is no gap.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
    function_start: Option<u64>,
    ranges: u32,
    /// Where the run's body lies in the payload.
    body: (u32, u32),
    /// The triples that the run's body is the first to use.
    new_triples: (u32, u32),
}

/// A frame by the chunk's own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalFrame {
    pub(crate) name: u32,
    pub(crate) file: u32,
    pub(crate) line: Option<Id32>,
    pub(crate) function_start: Option<u64>,
}

/// Frame A, with the runs and the triples decoded and the bodies as they are stored.
#[derive(Debug)]
pub(crate) struct Structure {
    payload: Vec<u8>,
    runs: Vec<Run>,
    triples: Vec<Triple>,
    names: usize,
    files: usize,
}

impl Structure {
    /// The structure of the chunk that covers `span` bytes from `chunk_start`; `None` where the payload is not one.
    pub(crate) fn decode(payload: Vec<u8>, chunk_start: u64, span: u32) -> Option<Self> {
        let at_most = payload.len();
        let mut cursor = Cursor::new(&payload);
        let [run_len, triple_len, names, files] = counts(&mut cursor, at_most)?;
        let [run_size, triple_size, body_size] = counts(&mut cursor, at_most)?;
        let run_columns = cursor.bytes(run_size)?;
        let triple_columns = cursor.bytes(triple_size)?;
        let body_start = at_most.checked_sub(body_size)?;
        cursor.bytes(body_size)?;
        if !cursor.is_empty() {
            return None;
        }
        let layout = Layout { chunk_start, span, body_start, body_size, triple_len };
        let runs = decode_runs(run_columns, run_len, &layout)?;
        let triples = decode_triples(triple_columns, triple_len, names, files)?;
        Some(Self { payload, runs, triples, names, files })
    }

    /// How many numbers of names and of files there are.
    pub(crate) fn lens(&self) -> (usize, usize) {
        (self.names, self.files)
    }

    /// Bytes of memory the structure takes.
    pub(crate) fn memory(&self) -> usize {
        self.payload.len() + self.runs.len() * size_of::<Run>() + self.triples.len() * size_of::<Triple>()
    }

    /// Appends the frames at `offset`, innermost first. `Some(false)` for a gap, `None` where the bytes are damaged.
    pub(crate) fn find(
        &self,
        offset: u64,
        statement: bool,
        locs: &mut Vec<RunLoc>,
        frames: &mut Vec<LocalFrame>,
    ) -> Option<bool> {
        let after = self.runs.partition_point(|run| run.start <= offset);
        let Some(run) = after.checked_sub(1).and_then(|index| self.runs.get(index)) else {
            return Some(false);
        };
        if offset >= run.end {
            return Some(false);
        }
        let mut body = self.body(run, locs)?;
        while let Some(answer) = body.next_range(locs)? {
            if offset < answer.end {
                let mut next = Some(if statement { answer.statement } else { answer.exact });
                while let Some(index) = next {
                    let loc = locs.get(index as usize)?;
                    let triple = self.triples.get(loc.triple as usize)?;
                    let Triple { name, file, line } = *triple;
                    frames.push(LocalFrame { name, file, line, function_start: run.function_start });
                    next = loc.parent.map(Id32::get);
                }
                return Some(true);
            }
        }
        None
    }

    /// Every range of the chunk, names and files by the chunk's own numbers; `None` where the bytes are damaged.
    pub(crate) fn ranges(&self) -> Option<ChunkRanges> {
        let mut all = ChunkRanges::default();
        let mut locs = Vec::new();
        for run in &self.runs {
            let first = all.locs.len() as u64;
            let mut body = self.body(run, &mut locs)?;
            let mut start = run.start;
            while let Some(answer) = body.next_range(&mut locs)? {
                let number = |loc: u32| u32::try_from(first + u64::from(loc)).ok();
                let (exact, statement) = (number(answer.exact)?, number(answer.statement)?);
                let (end, function_start) = (answer.end, run.function_start);
                all.ranges.push(Range { start, end, function_start, exact, statement });
                start = end;
            }
            for loc in &locs {
                let Triple { name, file, line } = *self.triples.get(loc.triple as usize)?;
                let parent = match loc.parent {
                    Some(parent) => Some(Id32::new(first + u64::from(parent.get()))?),
                    None => None,
                };
                let (name, file) = (Id32::new(u64::from(name)), Id32::new(u64::from(file)));
                all.locs.push(Loc { parent, name, file, line });
            }
        }
        Some(all)
    }

    fn body(&self, run: &Run, locs: &mut Vec<RunLoc>) -> Option<Body<'_>> {
        locs.clear();
        let bytes = self.payload.get(run.body.0 as usize..run.body.1 as usize)?;
        Some(Body {
            cursor: Cursor::new(bytes),
            left: run.ranges,
            at: run.start,
            end: run.end,
            new_triples: run.new_triples,
            last_triple: 0,
            last_answer: None,
        })
    }
}

fn counts<const N: usize>(cursor: &mut Cursor<'_>, at_most: usize) -> Option<[usize; N]> {
    let mut counts = [0; N];
    for count in &mut counts {
        *count = cursor.count(at_most)?;
    }
    Some(counts)
}

/// What the run columns are checked against.
struct Layout {
    chunk_start: u64,
    span: u32,
    body_start: usize,
    body_size: usize,
    triple_len: usize,
}

fn decode_runs(columns: &[u8], len: usize, layout: &Layout) -> Option<Vec<Run>> {
    // Each run covers at least a byte.
    if len as u64 > u64::from(layout.span) {
        return None;
    }
    let [mut spans, mut functions, mut ranges, mut bodies, mut triples] = split_columns(columns, len)?;
    let mut runs: Vec<Run> = Vec::with_capacity(len);
    let (mut at, mut body, mut first_triple) = (layout.chunk_start, layout.body_start, 0u32);
    for _ in 0..len {
        let (start, end) = (at, at.checked_add(spans.varint()?)?);
        at = end;
        let body_start = body;
        body = body.checked_add(usize::try_from(bodies.varint()?).ok()?)?;
        let (function, ranges, new_triples) = (functions.varint()?, ranges.varint32()?, triples.varint32()?);
        let function_start = match function {
            0 if start < end && (ranges, new_triples) == (0, 0) && body == body_start => continue,
            0 => return None,
            1 => None,
            2 => runs.last()?.function_start,
            back => Some(start.checked_sub(back - 3)?),
        };
        if ranges == 0 || ranges > MAX_RUN_RANGES || start == end {
            return None;
        }
        let body = (u32::try_from(body_start).ok()?, u32::try_from(body).ok()?);
        let new_triples = (first_triple, first_triple.checked_add(new_triples)?);
        first_triple = new_triples.1;
        runs.push(Run { start, end, function_start, ranges, body, new_triples });
    }
    let whole = at <= layout.chunk_start.checked_add(u64::from(layout.span))?
        && body == layout.body_start + layout.body_size
        && first_triple as usize == layout.triple_len;
    whole.then_some(runs)
}

fn decode_triples(columns: &[u8], len: usize, names: usize, files: usize) -> Option<Vec<Triple>> {
    let [mut name_column, mut file_column, mut line_column] = split_columns(columns, len)?;
    let mut triples = Vec::with_capacity(len);
    let (mut next_name, mut next_file) = (0u32, 0u32);
    let mut guess = Guess::default();
    for _ in 0..len {
        let name = match name_column.varint()?.checked_sub(1) {
            None => new_number(&mut next_name)?,
            Some(step) => stepped(guess.name, step, next_name)?,
        };
        let file = match file_column.varint()? {
            1 => new_number(&mut next_file)?,
            0 => stepped(guess.file(name), 0, next_file)?,
            step => stepped(guess.file(name), step - 1, next_file)?,
        };
        let line = match line_column.varint()?.checked_sub(1) {
            None => None,
            Some(step) => Some(guess.line(name, file).checked_add(unzigzag(step))?),
        };
        guess.learn(name, file, line);
        let line = match line {
            None => None,
            Some(line) => Some(Id32::new(u64::try_from(line).ok()?)?),
        };
        triples.push(Triple { name, file, line });
    }
    (next_name as usize == names && next_file as usize == files).then_some(triples)
}

/// The next number that was not given out yet.
fn new_number(next: &mut u32) -> Option<u32> {
    let number = *next;
    *next = next.checked_add(1)?;
    Some(number)
}

/// The number `step` (with its sign folded) away from `from`, if it is below `end`.
fn stepped(from: u32, step: u64, end: u32) -> Option<u32> {
    let number = i64::from(from).checked_add(unzigzag(step))?;
    u32::try_from(number).ok().filter(|number| *number < end)
}

/// Columns of `len` varints each that together make up all of `bytes`.
fn split_columns<const N: usize>(bytes: &[u8], len: usize) -> Option<[Cursor<'_>; N]> {
    let mut rest = bytes;
    let mut columns = [const { Cursor::new(&[]) }; N];
    for column in &mut columns {
        let (taken, left) = rest.split_at_checked(size_of_varints(rest, len)?)?;
        *column = Cursor::new(taken);
        rest = left;
    }
    rest.is_empty().then_some(columns)
}

/// How many bytes the first `len` varints take; `None` where there are fewer.
fn size_of_varints(bytes: &[u8], len: usize) -> Option<usize> {
    const TOP_BITS: u64 = 0x8080_8080_8080_8080;
    let mut left = len;
    let mut size = 0;
    // The last byte of a varint is the one whose top bit is clear: eight bytes at a time, as long as all of them are wanted.
    for word in bytes.as_chunks::<8>().0 {
        let ends = (!u64::from_le_bytes(*word) & TOP_BITS).count_ones() as usize;
        if ends >= left {
            break;
        }
        left -= ends;
        size += 8;
    }
    while left != 0 {
        left -= usize::from(*bytes.get(size)? < 0x80);
        size += 1;
    }
    Some(size)
}

/// A loc by its number in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLoc {
    parent: Option<Id32>,
    triple: u32,
    /// Frames from here to the concrete function, both included.
    depth: u32,
}

/// Decodes a run's body, range after range.
struct Body<'a> {
    cursor: Cursor<'a>,
    left: u32,
    at: u64,
    end: u64,
    /// The next triple that no loc has, and the end of those that are the run's.
    new_triples: (u32, u32),
    last_triple: u32,
    last_answer: Option<u32>,
}

/// Where a range ends and which locs of the run it stands for.
struct RangeAnswer {
    end: u64,
    exact: u32,
    statement: u32,
}

impl Body<'_> {
    /// The next range; `Some(None)` behind the last, `None` where the bytes are damaged.
    fn next_range(&mut self, locs: &mut Vec<RunLoc>) -> Option<Option<RangeAnswer>> {
        let Some(left) = self.left.checked_sub(1) else {
            let whole = self.cursor.is_empty() && self.new_triples.0 == self.new_triples.1;
            return whole.then_some(None);
        };
        self.left = left;
        let end = if left == 0 { self.end } else { self.at.checked_add(self.cursor.varint()?)? };
        if end <= self.at || end > self.end {
            return None;
        }
        self.at = end;
        let (exact, differs) = self.answer(locs)?;
        let statement = match differs {
            false => exact,
            true => match self.answer(locs)? {
                (statement, false) => statement,
                (_, true) => return None,
            },
        };
        Some(Some(RangeAnswer { end, exact, statement }))
    }

    fn answer(&mut self, locs: &mut Vec<RunLoc>) -> Option<(u32, bool)> {
        let head = self.cursor.varint()?;
        let link = self.cursor.varint32()?;
        let mut answer = match (link / 2, link % 2) {
            (0, 0) => None,
            (back, 0) => Some(u32::try_from(locs.len()).ok()?.checked_sub(back)?),
            (steps, _) => Some(self.ancestor(locs, steps)?),
        };
        let mut depth = answer.and_then(|loc| locs.get(loc as usize)).map_or(0, |loc| loc.depth);
        for _ in 0..head / 2 {
            let triple = match self.cursor.varint()?.checked_sub(1) {
                None => new_number(&mut self.new_triples.0).filter(|triple| *triple < self.new_triples.1)?,
                Some(step) => stepped(self.last_triple.checked_add(1)?, step, self.new_triples.0)?,
            };
            self.last_triple = triple;
            let parent = answer.and_then(|parent| Id32::new(u64::from(parent)));
            depth += 1;
            if depth > MAX_FRAMES {
                return None;
            }
            answer = u32::try_from(locs.len()).ok();
            locs.push(RunLoc { parent, triple, depth });
        }
        self.last_answer = answer;
        Some((answer?, head & 1 == 1))
    }

    /// The loc `steps` parents above the last answer.
    fn ancestor(&self, locs: &[RunLoc], steps: u32) -> Option<u32> {
        if steps as usize > MAX_STEPS {
            return None;
        }
        let mut loc = self.last_answer?;
        for _ in 0..steps {
            loc = locs.get(loc as usize)?.parent?.get();
        }
        Some(loc)
    }
}

#[cfg(test)]
mod tests;
