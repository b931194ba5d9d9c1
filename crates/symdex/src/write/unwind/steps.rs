//! Steps: which rule follows another one, and how long its range is.
//!
//! The rules of neighbouring rows follow each other in patterns: a function pushes its registers one by one, each with
//! an instruction of one or two bytes. So a rule has a list of steps: the rules that often follow it, with the lengths
//! of their ranges, the most frequent ones first. A range is written as the number of a step.

use std::cmp::Reverse;

use super::rows::Run;
use crate::unwind::{AFTER_GAP, LENGTH, RULE, align_up, step_context};
use crate::write::interner::Interner;
use crate::write::symbol_stream::{BLOCK, SymbolStream};

/// How often a length has to follow a rule for a step of its own. A step takes about three bytes.
const OWN_STEP: u64 = 4;
/// How often a rule has to follow another one, with any other length, for a step without a length.
const STATED_STEP: u64 = 2;

/// The length of a step whose range states its length itself.
const STATED: u64 = 0;
/// The length of a step whose range ends at the next multiple of 16.
const ALIGNED: u64 = 1;
/// The longest length that a step has.
const LONGEST: u64 = 254;

/// The steps of all rules.
pub(super) struct Steps {
    /// Each key that occurs: the rule before, the rule, and the length of the step.
    keys: Interner,
    /// For each key: the number of its step among those of the rule before, plus 1, or 0 if it has none.
    numbers: Vec<u64>,
    /// The number of the key of each range, in the order of the blocks.
    ranges: Vec<u32>,
    /// The rule and the length of each step.
    rows: Vec<[u64; 2]>,
    /// Where the steps of each rule begin, and the end of those of the last one.
    firsts: Vec<u64>,
}

/// A step and how often it occurs.
struct Counted {
    before: u64,
    count: u64,
    rule: u64,
    length: u64,
}

impl Steps {
    /// The steps of `blocks`, which have `rules` rules.
    pub(super) fn of<'r>(blocks: impl Iterator<Item = &'r [Run]>, rules: usize) -> Self {
        let (mut keys, mut counts, mut ranges) = (Interner::new(), Vec::new(), Vec::new());
        for (before, run) in blocks.flat_map(with_before) {
            let (number, is_new) = keys.number(key(before, run.rule, length(run)).as_flattened());
            if is_new {
                counts.push(0);
            }
            counts.get_mut(number as usize).into_iter().for_each(|count| *count += 1);
            ranges.push(number);
        }
        let mut steps = chosen(&keys, &counts);
        steps.sort_unstable_by_key(|step| (step.before, Reverse(step.count), step.rule, step.length));
        let (rows, firsts) = (Vec::new(), Vec::new());
        let mut all = Self { keys, numbers: vec![0; counts.len()], ranges, rows, firsts };
        for step in steps {
            all.begin(step.before);
            let first = all.firsts.last().copied().unwrap_or_default();
            all.rows.push([step.rule, step.length]);
            let number =
                all.keys.number(key_of([step.before, step.rule, step.length]).as_flattened()).0 as usize;
            // A step without a length may be a key that did not occur before.
            all.numbers.resize(all.numbers.len().max(number + 1), 0);
            all.numbers.get_mut(number).into_iter().for_each(|own| *own = all.rows.len() as u64 - first);
        }
        all.begin(rules as u64);
        all
    }

    /// Ends the steps of the rules before `rule`.
    fn begin(&mut self, rule: u64) {
        while (self.firsts.len() as u64) <= rule {
            self.firsts.push(self.rows.len() as u64);
        }
    }

    /// The rule and the length of each step.
    pub(super) fn rows(&self) -> &[[u64; 2]] {
        &self.rows
    }

    /// For each rule: its first step.
    pub(super) fn firsts(&self) -> impl Iterator<Item = u64> {
        self.firsts.iter().copied()
    }

    /// Appends the blocks, each with its mark. They are those of [`Self::of`].
    pub(super) fn write<'r>(&self, blocks: impl Iterator<Item = &'r [Run]>, out: &mut SymbolStream) {
        let mut keys = self.ranges.iter();
        for block in blocks {
            out.number(BLOCK, block.first().map_or(0, |run| run.start));
            for ((before, run), key) in with_before(block).zip(keys.by_ref()) {
                self.write_range(before, run, *key, out);
            }
        }
    }

    /// Appends a range whose key has the number `key`.
    fn write_range(&self, before: u32, run: Run, key: u32, out: &mut SymbolStream) {
        let firsts = self.firsts.get(before as usize..).and_then(<[u64]>::first_chunk);
        let context = step_context(firsts.map_or(0, |[first, next]| next - first));
        let own_step = self.step(key);
        let stated = || self.keys.find(self::key(before, run.rule, STATED).as_flattened());
        let step = if own_step != 0 { own_step } else { stated().map_or(0, |key| self.step(key)) };
        out.number(context, step);
        if step == 0 {
            out.number(RULE, run.rule.into());
        }
        if own_step == 0 || length(run) == STATED {
            let is_after_gap = run.rule == 0 || before == 0;
            out.number(if is_after_gap { AFTER_GAP } else { LENGTH }, run.end - run.start);
        }
    }

    /// The number of the step of a key plus 1, or 0 if there is none.
    fn step(&self, key: u32) -> u64 {
        self.numbers.get(key as usize).copied().unwrap_or_default()
    }
}

/// The ranges of a block, each with the rule before it.
fn with_before(block: &[Run]) -> impl Iterator<Item = (u32, Run)> {
    let before = std::iter::once(0).chain(block.iter().map(|run| run.rule));
    before.zip(block.iter().copied())
}

/// The length that a step for this range has.
fn length(run: Run) -> u64 {
    match run.end - run.start {
        length if run.rule == 0 && length == align_up(run.start) => ALIGNED,
        length if length <= LONGEST => length + 1,
        _ => STATED,
    }
}

fn key(before: u32, rule: u32, length: u64) -> [[u8; 8]; 3] {
    key_of([before.into(), rule.into(), length])
}

fn key_of(numbers: [u64; 3]) -> [[u8; 8]; 3] {
    numbers.map(u64::to_le_bytes)
}

/// The steps that are worth their place, from the keys that occur and how often each does.
fn chosen(keys: &Interner, counts: &[u64]) -> Vec<Counted> {
    let mut all: Vec<([u64; 3], u64)> = Vec::with_capacity(counts.len());
    for (number, count) in (0..).zip(counts) {
        let (words, _) = keys.text(number).unwrap_or_default().as_chunks();
        if let [before, rule, length] = words {
            all.push(([before, rule, length].map(|word| u64::from_le_bytes(*word)), *count));
        }
    }
    all.sort_unstable();
    let mut steps = Vec::new();
    for group in all.chunk_by(|([a, b, _], _), ([c, d, _], _)| (a, b) == (c, d)) {
        let is_own = |length: u64, count: u64| length != STATED && count >= OWN_STEP;
        let mut others = 0;
        for ([before, rule, length], count) in group.iter().copied() {
            if is_own(length, count) {
                steps.push(Counted { before, count, rule, length });
            } else {
                others += count;
            }
        }
        if let Some(([before, rule, _], _)) = group.first().copied().filter(|_| others >= STATED_STEP) {
            steps.push(Counted { before, count: others, rule, length: STATED });
        }
    }
    steps
}
