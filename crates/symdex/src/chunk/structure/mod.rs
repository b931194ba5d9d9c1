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
//!   code      8 x link + the lesser of head and 7, where head is 2 x (locs it defines) + (1: the `statement` answer is another and
//!             follows)
//!   head      head - 7, if that is not negative
//!   (version 1 has the two numbers head and link instead of these)
//! its parts are:
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

mod body;
mod columns;
mod encode;
mod runs;
#[cfg(test)]
mod tests;
mod triples;

pub(crate) use self::body::{Answers, RunLoc};
use self::body::{Body, each_of_chain};
pub(crate) use self::encode::{EncodedStructure, encode_structure};
use self::runs::{Layout, Run, decode_runs};
use self::triples::{Triple, decode_triples};
use super::{ChunkRanges, Loc};
use crate::format::{Cursor, MAX_RUN_RANGES};
use crate::id32::Id32;

/// The most ranges a run holds: a lookup decodes one run, so this bounds its work.
const RUN_LEN: usize = 96;
const _: () = assert!(RUN_LEN <= MAX_RUN_RANGES as usize);
/// The most parents a link goes up, so that the work of an answer is bounded too.
const MAX_STEPS: usize = 255;

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
    chunk_start: u64,
    runs: Vec<Run>,
    triples: Vec<Triple>,
    bodies: Box<[u8]>,
    names: usize,
    files: usize,
    answers: Answers,
}

impl Structure {
    /// The structure of the chunk that covers `span` bytes from `chunk_start`; `None` where the payload is not one.
    pub(crate) fn decode(payload: &[u8], chunk_start: u64, span: u32, answers: Answers) -> Option<Self> {
        let at_most = payload.len();
        let mut cursor = Cursor::new(payload);
        let [run_len, triple_len, names, files] = counts(&mut cursor, at_most)?;
        let [run_size, triple_size, body_size] = counts(&mut cursor, at_most)?;
        let run_columns = cursor.bytes(run_size)?;
        let triple_columns = cursor.bytes(triple_size)?;
        let bodies = Box::from(cursor.bytes(body_size)?);
        if !cursor.is_empty() {
            return None;
        }
        let layout = Layout { chunk_start, span, body_size, triple_len };
        let runs = decode_runs(run_columns, run_len, &layout)?;
        let triples = decode_triples(triple_columns, triple_len, names, files)?;
        Some(Self { chunk_start, runs, triples, bodies, names, files, answers })
    }

    /// How many numbers of names and of files there are.
    pub(crate) fn lens(&self) -> (usize, usize) {
        (self.names, self.files)
    }

    /// Appends the frames at `offset`, innermost first. `Some(false)` for a gap, `None` where the bytes are damaged.
    pub(crate) fn find(
        &self,
        offset: u64,
        statement: bool,
        locs: &mut Vec<RunLoc>,
        frames: &mut Vec<LocalFrame>,
    ) -> Option<bool> {
        let Some(at) = offset.checked_sub(self.chunk_start).and_then(|at| u32::try_from(at).ok()) else {
            return Some(false);
        };
        let after = self.runs.partition_point(|run| run.start <= at);
        let run = after.checked_sub(1).and_then(|index| Some([self.runs.get(index)?, self.runs.get(after)?]));
        // Behind the last run, or in a gap.
        let Some([run, next]) = run.filter(|[run, _]| run.ranges != 0) else { return Some(false) };
        let answer = self.body(run, next, locs)?.find(at, locs)?;
        let function_start = run.function_start();
        each_of_chain(locs, if statement { answer.statement } else { answer.exact }, |triple| {
            let Triple { name, file, line } = *self.triples.get(triple as usize)?;
            frames.push(LocalFrame { name, file, line, function_start });
            Some(())
        })?;
        Some(true)
    }

    /// Every range of the chunk, names and files by the chunk's own numbers; `None` where the bytes are damaged.
    pub(crate) fn ranges(&self) -> Option<ChunkRanges> {
        let mut all = ChunkRanges::default();
        let mut locs = Vec::new();
        for pair in self.runs.windows(2) {
            let [run, next] = pair else { continue };
            let mut body = self.body(run, next, &mut locs)?;
            let mut start = self.chunk_start + u64::from(run.start);
            while let Some(answer) = body.next_range(&mut locs)? {
                let (end, function_start) = (self.chunk_start + u64::from(answer.end), run.function_start());
                all.push_range(start..end, function_start, [answer.exact, answer.statement])?;
                start = end;
            }
            let loc = |loc: &RunLoc| {
                let Triple { name, file, line } = *self.triples.get(loc.triple as usize)?;
                let (name, file) = (Id32::new(u64::from(name)), Id32::new(u64::from(file)));
                Some((loc.parent, Loc { parent: None, name, file, line }))
            };
            all.push_locs(locs.iter().map(loc))?;
        }
        Some(all)
    }

    fn body(&self, run: &Run, next: &Run, locs: &mut Vec<RunLoc>) -> Option<Body<'_>> {
        locs.clear();
        let bytes = self.bodies.get(run.body as usize..next.body as usize)?;
        Some(Body {
            cursor: Cursor::new(bytes),
            answers: self.answers,
            left: run.ranges,
            at: run.start,
            end: next.start,
            new_triples: (run.first_triple, next.first_triple),
            last_triple: 0,
            last_answer: 0,
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
