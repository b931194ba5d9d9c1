//! A block: consecutive ranges, decoded from the first one on.

use super::codes::{self, Caller, Codes, FUNCTION, GAP, MORE_HEAD};
use super::{MAX_BLOCK_FRAMES, MAX_BLOCK_RANGES, MAX_STEPS, RECENT};
use crate::format::{BitReader, MAX_FRAMES, unzigzag};

/// How many values the flag in a head has. The flag states a range's answer under `statement`: 0 for the answer under
/// `exact`, 1 for the `statement` answer of the range before, 2 for an answer that is written next.
pub(crate) const FLAGS: u64 = 3;
/// How many heads an answer's code can hold. The last one says that the rest of a larger head follows as a number.
pub(crate) const HEADS: u64 = 12;
/// The code of a gap.
pub(crate) const GAP_CODE: u64 = 0;
/// The code before the first range of another function.
pub(crate) const FUNCTION_CODE: u64 = 1;

/// The number of an inline frame in its block, plus one. 0 is no inline frame.
pub(crate) type Link = u32;

/// An inline frame of a block: a source location and its caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockFrame {
    pub(crate) caller: Link,
    pub(crate) source: u32,
    /// The source location of the last defined inline frame whose caller is this one, plus one. 0 if there is none yet.
    callee: u32,
}

/// The state of reading or writing a block. It is reused for later blocks to keep its memory.
#[derive(Debug, Default)]
pub(crate) struct BlockState {
    pub(crate) frames: Vec<BlockFrame>,
    /// The recency list: inline frames in the order of their last use as an answer or of their definition, the most
    /// recent one last. It lacks the ones defined since the last call of [`Self::recent`].
    recent: Vec<Link>,
    /// How many inline frames the block had at the last call of [`Self::recent`].
    listed: u32,
    pub(crate) last_code: u64,
    pub(crate) last_answer: Link,
    /// The source location of the last inline frame without a caller.
    last_root: u32,
}

impl BlockState {
    /// Begins a block. `source` is the first source location that no earlier block of the chunk uses.
    pub(crate) fn begin(&mut self, source: u32) {
        self.frames.clear();
        self.recent.clear();
        (self.listed, self.last_code, self.last_answer, self.last_root) = (0, 0, 0, source);
    }

    /// Returns how the source location of a new inline frame with this caller is written: the context of the number,
    /// and the source location that the number is relative to. `last` is the number of the inline frame before, if the
    /// same answer defines it.
    #[inline(always)]
    pub(crate) fn expected(&self, caller: Link, last: Option<u64>) -> (u8, u32) {
        let (kind, base) = match frame(&self.frames, caller) {
            None => (Caller::None, self.last_root),
            Some(BlockFrame { callee: 0, source, .. }) => (Caller::New, *source),
            Some(BlockFrame { callee, .. }) => (Caller::Again, callee - 1),
        };
        (codes::source_context(last, kind), base)
    }

    /// Defines an inline frame. Returns its link.
    #[inline(always)]
    pub(crate) fn define(&mut self, caller: Link, source: u32) -> Option<Link> {
        match self.frames.get_mut((caller as usize).wrapping_sub(1)) {
            None => self.last_root = source,
            Some(caller) => caller.callee = source + 1,
        }
        self.frames.push(BlockFrame { caller, source, callee: 0 });
        u32::try_from(self.frames.len()).ok()
    }

    /// The inline frames that the block remembers, the most recent one last.
    pub(crate) fn recent(&mut self) -> &mut [Link] {
        // The list is updated only here, because most ranges do not use it.
        // The number of frames fits: `define` has returned it.
        let defined = u32::try_from(self.frames.len()).unwrap_or(self.listed);
        self.recent.extend(self.listed + 1..=defined);
        self.listed = defined;
        self.recent.drain(..self.recent.len().saturating_sub(RECENT));
        &mut self.recent
    }

    /// Makes a remembered inline frame the most recent one. Returns `None` if the inline frame is not remembered. The
    /// recency list is then stale.
    pub(crate) fn used(&mut self, link: Link) -> Option<()> {
        let mut later = link;
        for recent in self.recent().iter_mut().rev() {
            std::mem::swap(recent, &mut later);
            if later == link {
                return Some(());
            }
        }
        None
    }
}

/// What a chunk states about one of its blocks.
pub(super) struct BlockBounds {
    /// Where the chunk starts in the image.
    pub(super) chunk_start: u64,
    /// Where the block starts and ends, in bytes from the chunk's start.
    pub(super) start: u32,
    pub(super) end: u32,
    /// The first source location that no earlier block of the chunk uses.
    pub(super) source: u32,
    /// How many source locations the chunk has.
    pub(super) sources: u32,
}

/// Reads a block, range after range.
pub(super) struct Block<'a> {
    codes: &'a Codes,
    pub(super) reader: BitReader<'a>,
    bounds: BlockBounds,
    /// Where the last range ends and the next one starts, in bytes from the chunk's start.
    pub(super) at: u32,
    pub(super) next_source: u32,
    /// Where the function of the last range starts.
    pub(super) function_start: Option<u64>,
    /// The inline frames of the last range under `exact` and `statement`; [0, 0] for a gap.
    pub(super) answers: [Link; 2],
    ranges: usize,
    last_statement: Link,
    pub(super) state: &'a mut BlockState,
}

impl<'a> Block<'a> {
    /// The block that begins at the position of `reader`.
    pub(super) fn new(
        codes: &'a Codes,
        reader: BitReader<'a>,
        bounds: BlockBounds,
        state: &'a mut BlockState,
    ) -> Self {
        state.begin(bounds.source);
        let (at, next_source) = (bounds.start, bounds.source);
        let (function_start, answers, ranges, last_statement) = (None, [0; 2], 0, 0);
        Self {
            codes,
            reader,
            bounds,
            at,
            next_source,
            function_start,
            answers,
            ranges,
            last_statement,
            state,
        }
    }

    /// Where the block ends, in bytes from the chunk's start.
    pub(super) fn end(&self) -> u32 {
        self.bounds.end
    }

    /// Reads the next range. The block must have one. Returns `None` if the bytes are invalid.
    pub(super) fn next(&mut self) -> Option<()> {
        self.read_to(self.at)
    }

    /// Reads ranges until one ends after `at`, which lies in the block. Returns `None` if the bytes are invalid.
    pub(super) fn read_to(&mut self, at: u32) -> Option<()> {
        // A local copy stays in registers.
        let mut reader = self.reader;
        while self.at <= at {
            self.range(&mut reader)?;
        }
        self.reader = reader;
        Some(())
    }

    #[inline(always)]
    fn range(&mut self, reader: &mut BitReader<'a>) -> Option<()> {
        reader.fill();
        let mut code = self.code(reader)?;
        if code == FUNCTION_CODE {
            let context = FUNCTION + u8::from(self.ranges != 0);
            let at = self.bounds.chunk_start + u64::from(self.at);
            self.function_start = match self.codes.number(reader, context)? {
                0 => Some(at),
                1 => None,
                distance => Some(at.checked_sub(distance - 1)?),
            };
            code = self.code(reader)?;
        }
        let length = match code {
            GAP_CODE => {
                self.answers = [0; 2];
                self.codes.number(reader, GAP)?
            }
            _ => {
                let (exact, defines, statement) = self.answer(reader, code)?;
                let (statement, defines) = match statement {
                    0 => (exact, defines),
                    1 => (self.last_statement, defines),
                    _ => {
                        let answer;
                        (answer, *reader) = self.statement(*reader)?;
                        answer
                    }
                };
                if exact == 0 || statement == 0 {
                    return None;
                }
                self.last_statement = statement;
                self.answers = [exact, statement];
                self.codes.number(reader, codes::length_context(defines))?
            }
        };
        self.ranges += 1;
        let length = u32::try_from(length).ok().filter(|_| self.ranges <= MAX_BLOCK_RANGES)?;
        self.at = self.at.checked_add(length).filter(|end| *end > self.at && *end <= self.bounds.end)?;
        Some(())
    }

    #[inline(always)]
    fn code(&mut self, reader: &mut BitReader<'a>) -> Option<u64> {
        let code = self.codes.number(reader, codes::answer_context(self.state.last_code))?;
        self.state.last_code = code;
        Some(code)
    }

    /// Reads an answer under `statement` that follows the answer under `exact`. Returns the answer, how many inline
    /// frames it defines, and the reader after it.
    #[inline(never)]
    fn statement(&mut self, mut reader: BitReader<'a>) -> Option<((Link, u64), BitReader<'a>)> {
        let code = self.code(&mut reader)?;
        let (answer, defines, _) = self.answer(&mut reader, code).filter(|(.., flag)| *flag == 0)?;
        Some(((answer, defines), reader))
    }

    /// Reads the rest of the answer with this code. Returns the answer, how many inline frames it defines, and its
    /// flag; see [`FLAGS`].
    #[inline(always)]
    fn answer(&mut self, reader: &mut BitReader<'a>, code: u64) -> Option<(Link, u64, u64)> {
        let (link, mut head) = (code / HEADS, code % HEADS);
        if head == HEADS - 1 {
            head = head.checked_add(self.codes.number(reader, MORE_HEAD)?)?;
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
                // This bounds the loop. The size of the block does not, because a symbol can take 0 bits.
                if defines > MAX_FRAMES.into() {
                    return None;
                }
                let mut last = None;
                answer = self.define(reader, answer, &mut last)?;
                for _ in 1..defines {
                    answer = self.define(reader, answer, &mut last)?;
                }
            }
        }
        self.state.last_answer = answer;
        Some((answer, defines, statement))
    }

    /// The inline frame `steps` callers above the last answer.
    #[inline(always)]
    fn ancestor(&self, steps: u64) -> Option<Link> {
        if steps > MAX_STEPS as u64 {
            return None;
        }
        let caller = |link, _| frame(&self.state.frames, link).map(|frame| frame.caller);
        (0..steps).try_fold(self.state.last_answer, caller)
    }

    /// The remembered inline frame with exactly `later` more recent ones.
    #[inline]
    fn recent(&mut self, later: u64) -> Option<Link> {
        self.state.recent().iter().rev().nth(usize::try_from(later).ok()?).copied()
    }

    /// Reads the source location of an inline frame with this caller, and defines the inline frame. Returns its link.
    #[inline(always)]
    fn define(&mut self, reader: &mut BitReader<'a>, caller: Link, last: &mut Option<u64>) -> Option<Link> {
        let (context, base) = self.state.expected(caller, *last);
        let number = self.codes.number(reader, context)?;
        *last = Some(number);
        let source = match number {
            0 => {
                let source = self.next_source;
                self.next_source = source.checked_add(1).filter(|next| *next <= self.bounds.sources)?;
                source
            }
            step => moved(base.checked_add(1)?, step - 1).filter(|source| *source < self.next_source)?,
        };
        if self.state.frames.len() >= MAX_BLOCK_FRAMES {
            return None;
        }
        self.state.define(caller, source)
    }
}

/// Adds the folded signed number `step` to `from`. Returns `None` if the sum does not fit 32 bits.
#[inline]
pub(super) fn moved(from: u32, step: u64) -> Option<u32> {
    u32::try_from(i64::from(from).checked_add(unzigzag(step))?).ok()
}

/// The inline frame with this link. Returns `None` if the link is 0 or the block has no such inline frame.
#[inline]
pub(crate) fn frame(frames: &[BlockFrame], link: Link) -> Option<&BlockFrame> {
    frames.get(link.checked_sub(1)? as usize)
}

/// The source locations of a chain, innermost first. A chain that is longer than the format allows ends with `None`.
pub(super) fn chain(frames: &[BlockFrame], link: Link) -> impl Iterator<Item = Option<u32>> {
    let mut link = link;
    let mut left = MAX_FRAMES + 1;
    std::iter::from_fn(move || {
        let BlockFrame { caller, source, .. } = *frame(frames, link)?;
        link = caller;
        left -= 1;
        Some((left != 0).then_some(source))
    })
}
