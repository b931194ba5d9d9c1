//! The body of a run, decoded range after range.

use super::MAX_STEPS;
use super::triples::{new_number, stepped};
use crate::format::{Cursor, MAX_FRAMES};
use crate::id32::Id32;

/// A loc by its number in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLoc {
    pub(super) parent: Option<Id32>,
    pub(super) triple: u32,
    /// Frames from here to the concrete function, both included.
    pub(super) depth: u32,
}

/// How an answer says how many locs it defines and what it is linked to: the one thing in which the versions' frames A differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Two numbers, in version 1.
    Apart,
    /// One number, since version 2: three answers in four take one byte less.
    Together,
}

/// Values of the head that stand in the code itself.
pub(super) const HEADS: u64 = 8;

/// Decodes a run's body, range after range.
pub(super) struct Body<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) answers: Answers,
    pub(super) left: u32,
    /// Where the next range starts and the run ends, counted from the chunk's start.
    pub(super) at: u32,
    pub(super) end: u32,
    /// The next triple that no loc has, and the end of those that are the run's.
    pub(super) new_triples: (u32, u32),
    pub(super) last_triple: u32,
    pub(super) last_answer: Option<u32>,
}

/// Where a range ends, counted from the chunk's start, and which locs of the run it stands for.
pub(super) struct RangeAnswer {
    pub(super) end: u32,
    pub(super) exact: u32,
    pub(super) statement: u32,
}

impl Body<'_> {
    /// The range that holds `offset`, which lies in the run; `None` where the bytes are damaged.
    pub(super) fn find(&mut self, offset: u32, locs: &mut Vec<RunLoc>) -> Option<RangeAnswer> {
        loop {
            let answer = self.next_range(locs)??;
            if offset < answer.end {
                return Some(answer);
            }
        }
    }

    /// The next range; `Some(None)` behind the last, `None` where the bytes are damaged.
    pub(super) fn next_range(&mut self, locs: &mut Vec<RunLoc>) -> Option<Option<RangeAnswer>> {
        let Some(left) = self.left.checked_sub(1) else {
            let whole = self.cursor.is_empty() && self.new_triples.0 == self.new_triples.1;
            return whole.then_some(None);
        };
        self.left = left;
        let end = if left == 0 { self.end } else { self.at.checked_add(self.cursor.varint32()?)? };
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
        let (head, link) = self.head_and_link()?;
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

    #[inline]
    fn head_and_link(&mut self) -> Option<(u64, u32)> {
        if self.answers == Answers::Apart {
            return Some((self.cursor.varint()?, self.cursor.varint32()?));
        }
        let code = self.cursor.varint()?;
        let head = match code % HEADS {
            head if head < HEADS - 1 => head,
            least => self.cursor.varint()?.checked_add(least)?,
        };
        Some((head, u32::try_from(code / HEADS).ok()?))
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
