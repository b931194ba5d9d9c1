//! The body of a run, decoded range after range.

use super::MAX_STEPS;
use super::triples::{moved, new_number};
use crate::format::{Cursor, MAX_FRAMES};

/// A loc by its number in a run, or none: 0 for none, else the number plus one.
pub(super) type Link = u32;

/// A loc of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLoc {
    pub(super) parent: Link,
    pub(super) triple: u32,
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

/// Decodes a run's body, range after range. A lookup spends its time here: it decodes every range of the run up to its own.
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
    pub(super) last_answer: Link,
}

/// Where a range ends, counted from the chunk's start, and which locs of the run it stands for; never none.
pub(super) struct RangeAnswer {
    pub(super) end: u32,
    pub(super) exact: Link,
    pub(super) statement: Link,
}

impl Body<'_> {
    /// The range that holds `offset`, which lies in the run; `None` where the bytes are damaged.
    pub(super) fn find(self, offset: u32, locs: &mut Vec<RunLoc>) -> Option<RangeAnswer> {
        // All of the state in registers, and the locs' length.
        let mut body = self;
        loop {
            let answer = body.next_range(locs)??;
            if offset < answer.end {
                return Some(answer);
            }
        }
    }

    /// The next range; `Some(None)` behind the last, `None` where the bytes are damaged.
    #[inline(always)]
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
        let (exact, mut differs) = self.answer(locs)?;
        let mut statement = exact;
        if differs {
            (statement, differs) = self.answer(locs)?;
        }
        (!differs).then_some(Some(RangeAnswer { end, exact, statement }))
    }

    /// The next answer, and whether that under `statement` follows.
    #[inline(always)]
    fn answer(&mut self, locs: &mut Vec<RunLoc>) -> Option<(Link, bool)> {
        let (head, link) = self.head_and_link()?;
        // No more locs than a body has bytes, which 32 bits count.
        let len = u32::try_from(locs.len()).ok()?;
        let mut answer = match link % 2 {
            0 if link == 0 => 0,
            0 => (len + 1).checked_sub(link / 2).filter(|answer| *answer != 0)?,
            _ => self.ancestor(locs, link / 2)?,
        };
        for number in 0..head / 2 {
            let triple = match self.cursor.varint()? {
                0 => new_number(&mut self.new_triples.0).filter(|triple| *triple < self.new_triples.1)?,
                step => Some(moved(self.last_triple.wrapping_add(1), step - 1))
                    .filter(|t| *t < self.new_triples.0)?,
            };
            self.last_triple = triple;
            locs.push(RunLoc { parent: answer, triple });
            answer = len.checked_add(number)?.checked_add(1)?;
        }
        self.last_answer = answer;
        (answer != 0).then_some((answer, head % 2 == 1))
    }

    #[inline(always)]
    fn head_and_link(&mut self) -> Option<(u32, u32)> {
        if self.answers == Answers::Apart {
            return Some((self.cursor.varint32()?, self.cursor.varint32()?));
        }
        let code = self.cursor.varint()?;
        let head = match code % HEADS {
            head if head < HEADS - 1 => head,
            least => self.cursor.varint()?.checked_add(least)?,
        };
        Some((u32::try_from(head).ok()?, u32::try_from(code / HEADS).ok()?))
    }

    /// The loc `steps` parents above the last answer.
    #[inline(always)]
    fn ancestor(&self, locs: &[RunLoc], steps: u32) -> Option<Link> {
        if steps as usize > MAX_STEPS {
            return None;
        }
        let mut link = self.last_answer;
        for _ in 0..steps {
            link = loc(locs, link)?.parent;
        }
        (link != 0).then_some(link)
    }
}

/// The loc that `link` says; `None` where it says none, or one that is not there.
#[inline]
pub(super) fn loc(locs: &[RunLoc], link: Link) -> Option<&RunLoc> {
    locs.get(link.checked_sub(1)? as usize)
}

/// The triples of a chain, innermost first, given to `each`; `None` where it is longer than the format allows, or `each` says so.
pub(super) fn each_of_chain(
    locs: &[RunLoc],
    mut link: Link,
    mut each: impl FnMut(u32) -> Option<()>,
) -> Option<()> {
    for _ in 0..MAX_FRAMES {
        let Some(RunLoc { parent, triple }) = loc(locs, link) else { return Some(()) };
        each(*triple)?;
        link = *parent;
    }
    (link == 0).then_some(())
}
