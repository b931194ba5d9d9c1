//! Taking a chunk's ranges apart.

use rustc_hash::FxHashMap;

use super::body::{self, FLAGS, HEADS, Link, RunState, Statement};
use super::contexts::{self, FUNCTION, GAP_SPAN, MORE_HEAD, NEW_TRIPLES, RANGES, RUN_SPAN};
use super::tokens::{self, BODY, FIRST_TRIPLE, RUN, Tokens};
use super::{MAX_STEPS, RUN_GROUP, RUN_LEN, RUN_LOCS};
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
    /// How many locs each chain has.
    depths: Vec<u32>,
    /// Triples by name and file, and line, as they are stored.
    numbers: FxHashMap<(u64, u32), u32>,
    /// For each loc of the chunk the run that defined it last, counted from 1, and its link there.
    in_run: Vec<(u32, Link)>,
    state: State,
}

/// Takes the ranges of the chunk that starts at `chunk_start` apart.
pub(crate) fn draft(chunk_start: u64, chunk: &ChunkRanges, buffers: &mut Buffers) -> Draft {
    let Buffers { depths, numbers, in_run, state } = buffers;
    set_depths(depths, &chunk.locs);
    numbers.clear();
    // Most locs are triples of their own.
    numbers.reserve(chunk.locs.len());
    in_run.clear();
    in_run.resize(chunk.locs.len(), (0, 0));
    let draft = Draft { tokens: Tokens::default(), triples: Vec::new(), locs: 0 };
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

fn set_depths(depths: &mut Vec<u32>, locs: &[Loc]) {
    depths.clear();
    depths.reserve(locs.len());
    for loc in locs {
        let above = loc.parent.and_then(|parent| depths.get(parent.index())).copied().unwrap_or(0);
        depths.push(above + 1);
    }
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
    numbers: &'c mut FxHashMap<(u64, u32), u32>,
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
    }

    fn answer(&mut self, state: &mut State, answer: u32, statement: Statement) {
        let mut chain = std::mem::take(&mut state.chain);
        let (mut next, mut known) = (Some(answer), None);
        while let Some(loc) = next {
            known = self.known(state, loc);
            if known.is_some() {
                break;
            }
            chain.push(loc);
            next = self.chunk.locs.get(loc as usize).and_then(|loc| loc.parent).map(Id32::get);
        }
        let head = FLAGS * chain.len() as u64 + statement as u64;
        let code = HEADS * known.map_or(0, |(link, rank)| state.link(link, rank)) + head.min(HEADS - 1);
        self.put(contexts::answer(state.run.last_code), code);
        if let Some(more) = head.checked_sub(HEADS - 1) {
            self.put(MORE_HEAD, more);
        }
        state.run.last_code = code;
        if let (Some((_, rank)), true) = (known, chain.is_empty()) {
            state.run.used(rank);
        }
        state.run.last_answer = known.map_or(0, |(link, _)| link);
        let mut last = None;
        for loc in chain.drain(..).rev() {
            last = self.define(state, loc, last);
        }
        state.chain = chain;
    }

    /// The link of `loc`, and how many recent locs are behind it; `None` where the run does not know it, or not any more.
    fn known(&self, state: &State, loc: u32) -> Option<(Link, usize)> {
        let (run, link) = *self.in_run.get(loc as usize)?;
        if run != self.runs {
            return None;
        }
        let rank = state.run.recent.iter().rev().position(|recent| *recent == link)?;
        Some((link, rank))
    }

    /// Defines `loc`, inlined into the last answer; `last` is what said the triple of the loc defined before it in this answer. What said
    /// this one's.
    fn define(&mut self, state: &mut State, loc: u32, last: Option<u64>) -> Option<u64> {
        let Loc { name, file, line, .. } = *self.chunk.locs.get(loc as usize)?;
        let next = u32::try_from(self.draft.triples.len()).ok()?;
        let stored @ [name, file, line] = [name, file, line].map(Id32::stored);
        let triple = *self.numbers.entry((u64::from(name) << 32 | u64::from(file), line)).or_insert(next);
        let (context, base) = state.run.expected(state.run.last_answer, last);
        let number = match triple {
            new if new == next => 0,
            _ => zigzag(i64::from(triple) - i64::from(base) - 1) + 1,
        };
        self.put(context, number);
        if triple == next {
            self.draft.triples.push(stored);
        }
        self.draft.locs += 1;
        let link = state.run.define(state.run.last_answer, triple)?;
        state.run.last_answer = link;
        *self.in_run.get_mut(loc as usize)? = (self.runs, link);
        Some(number)
    }
}

impl State {
    /// What says that an answer is, or starts from, `link`, which has `rank` recent ones behind it.
    fn link(&self, link: Link, rank: usize) -> u64 {
        let parent = |link: &Link| body::loc(&self.run.locs, *link).map(|loc| loc.parent);
        let mut ancestors = std::iter::successors(Some(self.run.last_answer), parent).take(MAX_STEPS + 1);
        match ancestors.position(|ancestor| ancestor == link) {
            Some(steps) => 2 * steps as u64 + 1,
            None => 2 * rank as u64 + 2,
        }
    }
}
