//! Making frame A.

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::body::HEADS;
use super::{MAX_STEPS, RUN_LEN};
use crate::chunk::{ChunkRanges, Loc, Range};
use crate::format::{put_varint, zigzag};
use crate::id32::Id32;

/// Frame A's payload for the ranges of the chunk that starts at `chunk_start`, and which pool ids its numbers of names and
/// files stand for.
pub(crate) fn encode_structure(chunk_start: u64, chunk: &ChunkRanges) -> EncodedStructure {
    // Most locs are triples of their own.
    let triples = FxHashMap::with_capacity_and_hasher(chunk.locs.len(), FxBuildHasher);
    let defined = vec![(0, 0); chunk.locs.len()];
    let mut encoder = Encoder { triples, defined, ..Encoder::default() };
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
    /// By how the values are stored, which takes half as long to hash.
    numbers: FxHashMap<u32, u32>,
    values: Vec<Option<Id32>>,
}

impl Numbering {
    /// The number of `value`, and whether it is new.
    fn number(&mut self, value: Option<Id32>) -> (u32, bool) {
        // No more than the chunk's locs, which have numbers of 32 bits themselves; likewise the triples.
        let next = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(Id32::stored(value)).or_insert(next);
        if number == next {
            self.values.push(value);
        }
        (number, number == next)
    }
}

/// What the numbers of the next triple are guessed from; decoders keep the same.
#[derive(Default)]
struct Guess {
    name: u32,
    file: u32,
    /// For each name the file and line of its last triple.
    by_name: Vec<(u32, Option<Id32>)>,
    /// For each file the last line.
    by_file: Vec<u32>,
}

impl Guess {
    /// The file that a triple of `name` most likely has.
    fn file(&self, name: u32) -> u32 {
        self.by_name.get(name as usize).map_or(self.file, |(file, _)| *file)
    }

    /// The line that one of `name` and `file` is likely close to.
    fn line(&self, name: u32, file: u32) -> i64 {
        let line = match self.by_name.get(name as usize) {
            Some((last_file, Some(line))) if *last_file == file => line.get(),
            _ => self.by_file.get(file as usize).copied().unwrap_or(0),
        };
        i64::from(line)
    }

    /// Remembers a triple. Numbers are given out in order, so a new one is at most the length of its list.
    fn learn(&mut self, name: u32, file: u32, line: Option<Id32>) {
        (self.name, self.file) = (name, file);
        if self.by_file.len() <= file as usize {
            self.by_file.push(0);
        }
        if let (Some(slot), Some(line)) = (self.by_file.get_mut(file as usize), line) {
            *slot = line.get();
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
    /// By name and file, and line, as they are stored.
    triples: FxHashMap<(u64, u32), u32>,
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
    /// Empty between answers: what an answer defines, kept for its memory.
    chain: Vec<u32>,
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
        let mut chain = std::mem::take(&mut self.chain);
        let mut next = Some(answer);
        while let Some(loc) = next.filter(|loc| self.number(*loc).is_none()) {
            chain.push(loc);
            next = locs.get(loc as usize).and_then(|loc| loc.parent).map(Id32::get);
        }
        let head = 2 * chain.len() as u64 + u64::from(statement_follows);
        let link = self.link(locs, next);
        put_varint(&mut self.bodies, link * HEADS + head.min(HEADS - 1));
        if let Some(more) = head.checked_sub(HEADS - 1) {
            put_varint(&mut self.bodies, more);
        }
        self.last_answer = Some(answer);
        for loc in chain.drain(..).rev() {
            if let Some(slot) = self.defined.get_mut(loc as usize) {
                *slot = (self.runs + 1, self.locs_in_run);
            }
            self.locs_in_run += 1;
            if let Some(loc) = locs.get(loc as usize) {
                self.triple(loc);
            }
        }
        self.chain = chain;
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
        let [name, file, line] = [loc.name, loc.file, loc.line].map(Id32::stored);
        let key = (u64::from(name) << 32 | u64::from(file), line);
        let number = *self.triples.entry(key).or_insert(next);
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
        let guess = self.guess.line(name, file);
        put_varint(lines, loc.line.map_or(0, |line| zigzag(i64::from(line.get()) - guess) + 1));
        self.guess.learn(name, file, loc.line);
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
