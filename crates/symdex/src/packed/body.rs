//! The body of a run: its ranges, and the locs they stand for.

use super::bits::BitReader;
use super::codes::Codes;
use super::contexts::{self, MORE_HEAD, Parent};
use super::origins::moved;
use super::{MAX_LOCS, MAX_STEPS, RECENT};
use crate::format::MAX_FRAMES;

/// How many values the flag of a head has; see [`Statement`].
pub(super) const FLAGS: u64 = 3;
/// Values of a head that stand in the code itself, the last one for all that do not.
pub(super) const HEADS: u64 = 12;

/// What a range's answer is under `statement`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Statement {
    /// That under `exact`.
    Same = 0,
    /// That of the range before.
    Last = 1,
    /// The one that follows.
    Follows = 2,
}

/// A loc by its number in the run plus one; 0 for none.
pub(super) type Link = u32;

/// A loc of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunLoc {
    pub(super) parent: Link,
    pub(super) triple: u32,
    /// The triple of the last loc inlined into it, plus one; 0 before there is one.
    child: u32,
}

/// What is known of a run while it is read or written; kept for its memory.
#[derive(Debug, Default)]
pub(crate) struct RunState {
    pub(super) locs: Vec<RunLoc>,
    /// Locs that were defined or an answer, the last one last.
    pub(super) recent: Vec<Link>,
    pub(super) last_code: u64,
    pub(super) last_answer: Link,
    last_triple: u32,
    /// The triple of the last loc that is inlined into none.
    last_root: u32,
}

impl RunState {
    /// Begins a run.
    pub(super) fn begin(&mut self) {
        let Self { mut locs, mut recent, .. } = std::mem::take(self);
        locs.clear();
        recent.clear();
        (self.locs, self.recent) = (locs, recent);
    }

    /// The context that says the triple of a loc inlined into `parent`, and what that triple is counted from; `last` is the number that
    /// said the triple of the loc defined before it in this answer.
    #[inline]
    pub(super) fn expected(&self, parent: Link, last: Option<u64>) -> (u8, u32) {
        let (kind, base) = match loc(&self.locs, parent) {
            None => (Parent::None, self.last_root),
            Some(RunLoc { child: 0, triple, .. }) => (Parent::New, *triple),
            Some(RunLoc { child, .. }) => (Parent::Again, child - 1),
        };
        (contexts::triple(last, kind, base == self.last_triple), base)
    }

    /// Defines a loc of `triple` inlined into `parent`; its link.
    #[inline]
    pub(super) fn define(&mut self, parent: Link, triple: u32) -> Option<Link> {
        match self.locs.get_mut((parent as usize).wrapping_sub(1)) {
            None => self.last_root = triple,
            Some(parent) => parent.child = triple + 1,
        }
        self.last_triple = triple;
        self.locs.push(RunLoc { parent, triple, child: 0 });
        let link = u32::try_from(self.locs.len()).ok()?;
        if self.recent.len() == RECENT {
            self.recent.remove(0);
        }
        self.recent.push(link);
        Some(link)
    }

    /// Makes a recent loc the most recent one; `None`, and the recent ones are not to be used any more, where it is none.
    #[inline]
    pub(super) fn used(&mut self, link: Link) -> Option<()> {
        let mut later = link;
        for recent in self.recent.iter_mut().rev() {
            std::mem::swap(recent, &mut later);
            if later == link {
                return Some(());
            }
        }
        None
    }
}

/// Where a range ends, counted from the chunk's start, and which locs of the run it stands for; never none.
pub(super) struct RangeAnswer {
    pub(super) end: u32,
    pub(super) exact: Link,
    pub(super) statement: Link,
}

/// Reads a run's body, range after range.
pub(super) struct Body<'a> {
    codes: Codes<'a>,
    reader: BitReader<'a>,
    ranges: u32,
    at: u32,
    end: u32,
    next_triple: u32,
    end_of_triples: u32,
    state: &'a mut RunState,
    last_statement: Link,
}

/// What the runs of a chunk say of a body.
pub(super) struct BodyOf {
    pub(super) ranges: u32,
    /// Where it starts and ends, counted from the chunk's start.
    pub(super) start: u32,
    pub(super) end: u32,
    /// The triples that it is the first to use.
    pub(super) new_triples: std::ops::Range<u32>,
}

impl<'a> Body<'a> {
    /// The body that `reader` is at.
    pub(super) fn new(codes: Codes<'a>, reader: BitReader<'a>, of: BodyOf, state: &'a mut RunState) -> Self {
        state.begin();
        let BodyOf { ranges, start, end, new_triples } = of;
        Self {
            codes,
            reader,
            ranges,
            at: start,
            end,
            next_triple: new_triples.start,
            end_of_triples: new_triples.end,
            state,
            last_statement: 0,
        }
    }

    /// The range that holds `offset`, which lies in the run; `None` where the bytes are damaged.
    pub(super) fn find(&mut self, offset: u32) -> Option<RangeAnswer> {
        loop {
            let answer = self.next_range()??;
            if offset < answer.end {
                return (!self.reader.overran()).then_some(answer);
            }
        }
    }

    /// The next range; `Some(None)` behind the last, `None` where the bytes are damaged.
    pub(super) fn next_range(&mut self) -> Option<Option<RangeAnswer>> {
        let Some(left) = self.ranges.checked_sub(1) else {
            let whole = self.next_triple == self.end_of_triples && !self.reader.overran();
            return whole.then_some(None);
        };
        self.ranges = left;
        let end = match left {
            0 => self.end,
            _ => {
                let length = self.number(contexts::length(self.state.last_code))?;
                self.at.checked_add(u32::try_from(length).ok()?)?
            }
        };
        if end <= self.at || end > self.end {
            return None;
        }
        self.at = end;
        let (exact, statement) = self.answer()?;
        let statement = match statement {
            0 => exact,
            1 => self.last_statement,
            _ => self.answer().filter(|(_, then)| *then == 0)?.0,
        };
        self.last_statement = statement;
        (statement != 0).then_some(Some(RangeAnswer { end, exact, statement }))
    }

    #[inline]
    fn number(&mut self, context: u8) -> Option<u64> {
        self.codes.number(&mut self.reader, context)
    }

    /// The next answer, and the number of its [`Statement`].
    fn answer(&mut self) -> Option<(Link, u64)> {
        let code = self.number(contexts::answer(self.state.last_code))?;
        self.state.last_code = code;
        let (link, mut head) = (code / HEADS, code % HEADS);
        if head == HEADS - 1 {
            head = head.checked_add(self.number(MORE_HEAD)?)?;
        }
        let (defines, statement) = (head / FLAGS, head % FLAGS);
        let mut answer = match link {
            0 => 0,
            _ if link % 2 == 1 => self.ancestor(link / 2)?,
            _ => self.recent(link / 2 - 1)?,
        };
        match defines {
            0 => self.state.used(answer)?,
            _ => {
                // No chain of an answer is longer, and no run has more locs: a symbol may take no bits.
                if defines > MAX_FRAMES.into() {
                    return None;
                }
                let mut last = None;
                for _ in 0..defines {
                    answer = self.define(answer, &mut last)?;
                }
            }
        }
        self.state.last_answer = answer;
        Some((answer, statement))
    }

    /// The loc `steps` parents above the last answer.
    fn ancestor(&self, steps: u64) -> Option<Link> {
        if steps > MAX_STEPS as u64 {
            return None;
        }
        (0..steps)
            .try_fold(self.state.last_answer, |link, _| loc(&self.state.locs, link).map(|loc| loc.parent))
    }

    /// The recent loc with `later` ones behind it.
    fn recent(&self, later: u64) -> Option<Link> {
        let at = self.state.recent.len().checked_sub(1)?.checked_sub(usize::try_from(later).ok()?)?;
        self.state.recent.get(at).copied()
    }

    /// Defines a loc inlined into `parent`.
    #[inline]
    fn define(&mut self, parent: Link, last: &mut Option<u64>) -> Option<Link> {
        let (context, base) = self.state.expected(parent, *last);
        let number = self.codes.number(&mut self.reader, context)?;
        *last = Some(number);
        let triple = match number {
            0 => {
                let triple = self.next_triple;
                self.next_triple = triple.checked_add(1).filter(|next| *next <= self.end_of_triples)?;
                triple
            }
            step => moved(base.checked_add(1)?, step - 1).filter(|triple| *triple < self.next_triple)?,
        };
        if self.state.locs.len() >= MAX_LOCS {
            return None;
        }
        self.state.define(parent, triple)
    }
}

/// The loc that `link` says; `None` where it says none, or one that is not there.
#[inline]
pub(super) fn loc(locs: &[RunLoc], link: Link) -> Option<&RunLoc> {
    locs.get(link.checked_sub(1)? as usize)
}

/// The triples of a chain, innermost first; a chain that is longer than the format allows ends with `None`.
pub(super) fn chain(locs: &[RunLoc], link: Link) -> impl Iterator<Item = Option<u32>> {
    let mut link = link;
    let mut left = MAX_FRAMES + 1;
    std::iter::from_fn(move || {
        let RunLoc { parent, triple, .. } = *loc(locs, link)?;
        link = parent;
        left -= 1;
        Some((left != 0).then_some(triple))
    })
}
