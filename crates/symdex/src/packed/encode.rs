//! Taking a chunk's ranges apart.

use std::hash::{BuildHasher, RandomState};

use super::body::{self, FLAGS, HEADS, Link, RunState, Statement};
use super::contexts::{self, FUNCTION, GAP_SPAN, MORE_HEAD, NEW_TRIPLES, RANGES, RUN_SPAN};
use super::tokens::{self, BODY, FIRST_TRIPLE, RUN, Tokens};
use super::{MAX_STEPS, RECENT, RUN_GROUP, RUN_LEN, RUN_LOCS};
use crate::chunk::{ChunkRanges, Loc, Range};
use crate::format::zigzag;
use crate::id32::Id32;

/// The runs of a chunk, and the triples they use in the order in which they first do: name, file and line as they are stored.
pub(crate) struct Draft {
    pub(super) tokens: Tokens,
    pub(super) triples: Vec<[u32; 3]>,
    /// How many locs the runs define together.
    pub(crate) locs: usize,
}

/// What chunk after chunk is taken apart with, kept for its memory.
#[derive(Default)]
pub(crate) struct Buffers {
    numbers: Numbers,
    /// For each loc of the chunk the run that defined it last, counted from 1, and its link there.
    in_run: Vec<(u32, Link)>,
    state: State,
}

/// The triples of a chunk by what they are.
struct Numbers {
    /// Of this table alone: no file can be made so that its triples have one hash, and all of them are gone through for each.
    key: u64,
    /// For each hash the last triple that has it, plus one; 0 for none.
    last: Vec<u32>,
    /// For each triple the one before it that has its hash, likewise.
    before: Vec<u32>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { key: RandomState::new().hash_one(0) | 1, last: Vec::new(), before: Vec::new() }
    }
}

impl Numbers {
    /// Begins a chunk of so many locs.
    fn begin(&mut self, locs: usize) {
        self.last.clear();
        self.last.resize(locs.next_power_of_two(), 0);
        self.before.clear();
        // Not grown between what drafts keep: that left holes of five MB together.
        self.before.reserve(locs);
    }

    /// The number of `triple`, which becomes the next of `triples` where it is none of them.
    fn number(&mut self, triples: &mut Vec<[u32; 3]>, triple: [u32; 3]) -> Option<u32> {
        let [name, file, line] = triple;
        let names = (u64::from(name) << 32 | u64::from(file)).wrapping_mul(self.key);
        let hash = (names.rotate_left(32) ^ u64::from(line)).wrapping_mul(self.key) >> 32;
        let slot = usize::try_from(hash & (self.last.len() as u64 - 1)).ok()?;
        let last = self.last.get_mut(slot)?;
        let mut same = *last;
        while let Some(number) = same.checked_sub(1) {
            if *triples.get(number as usize)? == triple {
                return Some(number);
            }
            same = *self.before.get(number as usize)?;
        }
        self.before.push(*last);
        triples.push(triple);
        *last = u32::try_from(triples.len()).ok()?;
        Some(*last - 1)
    }
}

/// Takes the ranges of the chunk that starts at `chunk_start` apart; `depths` are how many locs each chain has.
pub(crate) fn draft(chunk_start: u64, chunk: &ChunkRanges, depths: &[u32], buffers: &mut Buffers) -> Draft {
    let Buffers { numbers, in_run, state } = buffers;
    numbers.begin(chunk.locs.len());
    in_run.clear();
    in_run.resize(chunk.locs.len(), (0, 0));
    // Some more than most chunks have, those of the triples included.
    let tokens = Vec::with_capacity(3 * (chunk.ranges.len() + chunk.locs.len()));
    let draft = Draft { tokens: Tokens(tokens), triples: Vec::new(), locs: 0 };
    let mut drafter = Drafter { chunk_start, chunk, draft, numbers, in_run, runs: 0, function_start: None };
    // Where no chain is long, no run of ranges has too many locs.
    let deepest = depths.iter().max().copied().unwrap_or(0) as usize;
    let is_shallow = 2 * RUN_LEN * deepest <= RUN_LOCS;
    let mut at = chunk_start;
    for function in chunk.ranges.chunk_by(|a, b| a.end == b.start && a.function_start == b.function_start) {
        let mut rest = function;
        while let [first, ..] = rest {
            if first.start > at {
                drafter.gap(at, first.start - at);
            }
            let len = if is_shallow { rest.len().min(RUN_LEN) } else { run_len(rest, depths) };
            let (run, behind) = rest.split_at(len);
            at = run.last().map_or(at, |range| range.end);
            drafter.run(state, run, at - first.start);
            rest = behind;
        }
    }
    drafter.draft
}

/// How many of `ranges`, which are of one function, the next run takes: at most [`RUN_LEN`], and no more than may define [`RUN_LOCS`] locs.
fn run_len(ranges: &[Range], depths: &[u32]) -> usize {
    let mut locs = 0;
    let fits = |range: &&Range| {
        let depth = |loc: u32| depths.get(loc as usize).copied().unwrap_or(0) as usize;
        locs += depth(range.exact) + depth(range.statement);
        locs <= RUN_LOCS
    };
    ranges.iter().take(RUN_LEN).take_while(fits).count().max(1)
}

struct Drafter<'c> {
    chunk_start: u64,
    chunk: &'c ChunkRanges,
    draft: Draft,
    numbers: &'c mut Numbers,
    in_run: &'c mut [(u32, Link)],
    runs: u32,
    function_start: Option<u64>,
}

/// What a run's body is written by.
#[derive(Default)]
struct State {
    /// What readers keep, too.
    run: RunState,
    /// The answer of the range before under `statement`.
    last_statement: Option<u32>,
    /// Empty between answers: what an answer defines, kept for its memory.
    chain: Vec<u32>,
}

impl Drafter<'_> {
    fn put(&mut self, context: u8, number: u64) {
        self.draft.tokens.number(context, number);
    }

    /// Begins a run; every [`RUN_GROUP`]th can be read without those before it.
    fn begin(&mut self, at: u64) {
        if (self.runs as usize).is_multiple_of(RUN_GROUP) {
            self.function_start = None;
            self.put(tokens::RUN_GROUP, at - self.chunk_start);
            self.put(FIRST_TRIPLE, self.draft.triples.len() as u64);
        }
        self.runs += 1;
    }

    fn gap(&mut self, at: u64, span: u64) {
        self.begin(at);
        self.put(RUN, 0);
        self.put(FUNCTION, 0);
        self.put(GAP_SPAN, span);
    }

    fn run(&mut self, state: &mut State, run: &[Range], span: u64) {
        let [first, ..] = run else { return };
        self.begin(first.start);
        let function = match first.function_start {
            None => 1,
            same if same == self.function_start => 2,
            Some(start) => (first.start - start).saturating_add(3),
        };
        self.function_start = first.function_start;
        let triples = self.draft.triples.len();
        self.put(BODY, 0);
        self.body(state, run);
        self.put(RUN, 0);
        self.put(FUNCTION, function);
        self.put(RUN_SPAN, span);
        self.put(RANGES, run.len() as u64 - 1);
        self.put(NEW_TRIPLES, (self.draft.triples.len() - triples) as u64);
    }

    fn body(&mut self, state: &mut State, run: &[Range]) {
        state.run.begin();
        state.last_statement = None;
        for (index, range) in run.iter().enumerate() {
            if index + 1 < run.len() {
                self.put(contexts::length(state.run.last_code), range.end - range.start);
            }
            let statement = match range.statement {
                same if same == range.exact => Statement::Same,
                last if Some(last) == state.last_statement => Statement::Last,
                _ => Statement::Follows,
            };
            state.last_statement = Some(range.statement);
            self.answer(state, range.exact, statement);
            if statement == Statement::Follows {
                self.answer(state, range.statement, Statement::Same);
            }
        }
        self.draft.locs += state.run.locs.len();
    }

    fn answer(&mut self, state: &mut State, answer: u32, statement: Statement) {
        let (mut next, mut known) = (Some(answer), None);
        while let Some(loc) = next {
            known = self.known(state, loc);
            if known.is_some() {
                break;
            }
            state.chain.push(loc);
            next = self.chunk.locs.get(loc as usize).and_then(|loc| loc.parent).map(Id32::get);
        }
        let head = FLAGS * state.chain.len() as u64 + statement as u64;
        let code = HEADS * known.map_or(0, |link| state.link(link)) + head.min(HEADS - 1);
        self.put(contexts::answer(state.run.last_code), code);
        if let Some(more) = head.checked_sub(HEADS - 1) {
            self.put(MORE_HEAD, more);
        }
        state.run.last_code = code;
        if let (Some(link), true) = (known, state.chain.is_empty()) {
            state.run.used(link);
        }
        state.run.last_answer = known.unwrap_or(0);
        let mut last = None;
        while let Some(loc) = state.chain.pop() {
            last = self.define(state, loc, last);
        }
    }

    /// The link of `loc`; `None` where the run does not know it, or not any more.
    fn known(&self, state: &State, loc: u32) -> Option<Link> {
        let (run, link) = *self.in_run.get(loc as usize)?;
        // A run that is not full has forgotten nothing.
        let is_known = || state.run.recent.len() < RECENT || state.run.recent.contains(&link);
        (run == self.runs && is_known()).then_some(link)
    }

    /// Defines `loc`, inlined into the last answer; `last` is what said the triple of the loc defined before it in this answer. What said
    /// this one's.
    fn define(&mut self, state: &mut State, loc: u32, last: Option<u64>) -> Option<u64> {
        let Loc { name, file, line, .. } = *self.chunk.locs.get(loc as usize)?;
        let next = u32::try_from(self.draft.triples.len()).ok()?;
        let triple = self.numbers.number(&mut self.draft.triples, [name, file, line].map(Id32::stored))?;
        let (context, base) = state.run.expected(state.run.last_answer, last);
        let number = match triple {
            new if new == next => 0,
            _ => zigzag(i64::from(triple) - i64::from(base) - 1) + 1,
        };
        self.put(context, number);
        let link = state.run.define(state.run.last_answer, triple)?;
        state.run.last_answer = link;
        *self.in_run.get_mut(loc as usize)? = (self.runs, link);
        Some(number)
    }
}

impl State {
    /// What says that an answer is, or starts from, the recent loc `link`.
    fn link(&self, link: Link) -> u64 {
        // Parents have smaller links than their children.
        let (mut ancestor, mut steps) = (self.run.last_answer, 0);
        while ancestor > link {
            ancestor = body::loc(&self.run.locs, ancestor).map_or(0, |loc| loc.parent);
            steps += 1;
        }
        if ancestor == link && steps <= MAX_STEPS {
            return 2 * steps as u64 + 1;
        }
        let later = self.run.recent.iter().rev().position(|recent| *recent == link);
        2 * later.unwrap_or(0) as u64 + 2
    }
}
