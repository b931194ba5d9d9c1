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

mod body;
mod columns;
mod encode;
mod runs;
#[cfg(test)]
mod tests;
mod triples;

use self::body::Body;
pub(crate) use self::body::RunLoc;
pub(crate) use self::encode::encode_structure;
use self::runs::{Layout, Run, decode_runs};
use self::triples::{Triple, decode_triples};
use super::{ChunkRanges, Loc, Range};
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
