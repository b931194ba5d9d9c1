//! A block: consecutive ranges, decoded from the first one on.

use super::codes::{self, Caller, Codes, FUNCTION, GAP, MORE_HEAD};
use super::{MAX_BLOCK_FRAMES, MAX_BLOCK_RANGES, MAX_STEPS, RECENT};
use crate::format::{BitReader, MAX_FRAMES, unzigzag};

/// How many values the flag in a head has. The flag states a range's answer under `statement`: 0 for the answer under
/// `exact`, 1 for the `statement` answer of the range before, 2 for an answer that is written next.
pub(crate) const FLAGS: u64 = 3;
const SAME: u64 = 0;
const LAST: u64 = 1;
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

    /// The remembered inline frame with exactly `later` more recent ones. Returns `None` if there is none.
    #[inline]
    fn nth_recent(&mut self, later: u64) -> Option<Link> {
        self.recent().iter().rev().nth(usize::try_from(later).ok()?).copied()
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
#[derive(Clone, Copy)]
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
pub(super) struct Block<'a, 's> {
    pub(super) open: OpenBlock<'a>,
    pub(super) state: &'s mut BlockState,
}

/// A block and how far it was read. Its inline frames are in a [`BlockState`].
#[derive(Clone, Copy)]
pub(super) struct OpenBlock<'a> {
    codes: &'a Codes,
    bounds: BlockBounds,
    pub(super) progress: Progress<'a>,
}

impl OpenBlock<'_> {
    /// Whether the range with `at` can be read next, or was read last.
    pub(super) fn can_continue_to(&self, at: u32) -> bool {
        (self.progress.start..self.bounds.end).contains(&at)
    }
}

/// Where the reading of a block is, and what it read last. Reading works on a copy, which stays in registers.
#[derive(Clone, Copy)]
pub(super) struct Progress<'a> {
    pub(super) reader: BitReader<'a>,
    /// Where the last range starts, in bytes from the chunk's start.
    pub(super) start: u32,
    /// Where the last range ends and the next one starts.
    pub(super) at: u32,
    pub(super) next_source: u32,
    /// Where the function of the last range starts.
    pub(super) function_start: Option<u64>,
    /// The inline frames of the last range under `exact` and `statement`; [0, 0] for a gap.
    pub(super) answers: [Link; 2],
    ranges: usize,
    last_statement: Link,
    last_code: u64,
    last_answer: Link,
}

impl<'a, 's> Block<'a, 's> {
    /// The block that begins at the position of `reader`.
    pub(super) fn new(
        codes: &'a Codes,
        reader: BitReader<'a>,
        bounds: BlockBounds,
        state: &'s mut BlockState,
    ) -> Self {
        state.begin(bounds.source);
        let progress = Progress {
            reader,
            start: bounds.start,
            at: bounds.start,
            next_source: bounds.source,
            function_start: None,
            answers: [0; 2],
            ranges: 0,
            last_statement: 0,
            last_code: 0,
            last_answer: 0,
        };
        Self { open: OpenBlock { codes, bounds, progress }, state }
    }

    /// Where the block ends, in bytes from the chunk's start.
    pub(super) fn end(&self) -> u32 {
        self.open.bounds.end
    }

    /// Reads the next range. The block must have one. Returns `None` if the bytes are invalid.
    pub(super) fn next(&mut self) -> Option<()> {
        self.read_to(self.open.progress.at)
    }

    /// Reads ranges until one ends after `at`, which lies in the block. Returns `None` if the bytes are invalid.
    pub(super) fn read_to(&mut self, at: u32) -> Option<()> {
        let mut progress = self.open.progress;
        while progress.at <= at {
            self.range(&mut progress)?;
        }
        self.open.progress = progress;
        Some(())
    }

    #[inline(always)]
    fn range(&mut self, progress: &mut Progress<'a>) -> Option<()> {
        progress.reader.fill();
        let mut code = self.code(progress)?;
        if code == FUNCTION_CODE {
            let context = FUNCTION + u8::from(progress.ranges != 0);
            let at = self.open.bounds.chunk_start + u64::from(progress.at);
            progress.function_start = match self.open.codes.number(&mut progress.reader, context)? {
                0 => Some(at),
                1 => None,
                distance => Some(at.checked_sub(distance - 1)?),
            };
            code = self.code(progress)?;
        }
        let context = if code == GAP_CODE {
            progress.answers = [0; 2];
            GAP
        } else {
            let (defines, statement) = self.answer(progress, code)?;
            let exact = progress.last_answer;
            let defines = match statement {
                SAME => {
                    progress.last_statement = exact;
                    defines
                }
                LAST => defines,
                _ => {
                    let defines;
                    (*progress, defines) = self.statement(*progress)?;
                    progress.last_statement = progress.last_answer;
                    defines
                }
            };
            if exact == 0 || progress.last_statement == 0 {
                return None;
            }
            progress.answers = [exact, progress.last_statement];
            codes::length_context(defines)
        };
        let length = self.open.codes.number(&mut progress.reader, context)?;
        progress.ranges += 1;
        let left = self.open.bounds.end.checked_sub(progress.at)?;
        let length = u32::try_from(length).ok().filter(|length| (1..=left).contains(length))?;
        (progress.start, progress.at) = (progress.at, progress.at + length);
        (progress.ranges <= MAX_BLOCK_RANGES).then_some(())
    }

    #[inline(always)]
    fn code(&self, progress: &mut Progress<'a>) -> Option<u64> {
        let code = self.open.codes.number(&mut progress.reader, codes::answer_context(progress.last_code))?;
        progress.last_code = code;
        Some(code)
    }

    /// Reads an answer under `statement` that follows the answer under `exact`. Returns the progress after it, whose
    /// last answer it is, and how many inline frames it defines.
    #[inline(never)]
    fn statement(&mut self, mut progress: Progress<'a>) -> Option<(Progress<'a>, u64)> {
        let code = self.code(&mut progress)?;
        let (defines, _) = self.answer(&mut progress, code).filter(|(_, flag)| *flag == SAME)?;
        Some((progress, defines))
    }

    /// Reads the rest of the answer with this code, which becomes the last answer. Returns how many inline frames it
    /// defines, and its flag; see [`FLAGS`].
    #[inline(always)]
    fn answer(&mut self, progress: &mut Progress<'a>, code: u64) -> Option<(u64, u64)> {
        let (link, mut head) = (code / HEADS, code % HEADS);
        if head == HEADS - 1 {
            head = head.checked_add(self.open.codes.number(&mut progress.reader, MORE_HEAD)?)?;
        }
        let (defines, statement) = (head / FLAGS, head % FLAGS);
        let answer = match link {
            0 => 0,
            _ if link % 2 == 1 => self.ancestor(progress.last_answer, link / 2)?,
            _ => self.state.nth_recent(link / 2 - 1)?,
        };
        progress.last_answer = match defines {
            0 => {
                self.state.used(answer)?;
                answer
            }
            _ => self.define(progress, answer, defines)?,
        };
        Some((defines, statement))
    }

    /// The inline frame `steps` callers above `link`.
    #[inline(always)]
    fn ancestor(&self, mut link: Link, steps: u64) -> Option<Link> {
        if steps > MAX_STEPS as u64 {
            return None;
        }
        for _ in 0..steps {
            link = frame(&self.state.frames, link)?.caller;
        }
        Some(link)
    }

    /// Reads the source locations of `count` inline frames, at least one, and defines these inline frames: the first
    /// with this caller, and each other one with the one before as its caller. Returns the link of the last one.
    #[inline(always)]
    fn define(&mut self, progress: &mut Progress<'a>, caller: Link, count: u64) -> Option<Link> {
        // This bounds the loop. The size of the block does not, because a symbol can take 0 bits.
        let left = MAX_BLOCK_FRAMES.checked_sub(self.state.frames.len())? as u64;
        if count > left.min(MAX_FRAMES.into()) {
            return None;
        }
        let (context, base) = self.state.expected(caller, None);
        let mut number = self.open.codes.number(&mut progress.reader, context)?;
        let mut source = self.source(progress, base, number)?;
        let mut link = self.state.define(caller, source)?;
        for _ in 1..count {
            let context = codes::source_context(Some(number), codes::Caller::New);
            number = self.open.codes.number(&mut progress.reader, context)?;
            // The inline frame before has no other one in it.
            source = self.source(progress, source, number)?;
            link = self.state.define(link, source)?;
        }
        Some(link)
    }

    /// The source location that `number` stands for, relative to `base`.
    #[inline(always)]
    fn source(&self, progress: &mut Progress<'a>, base: u32, number: u64) -> Option<u32> {
        match number.checked_sub(1) {
            None => {
                let source = progress.next_source;
                progress.next_source += 1;
                (source < self.open.bounds.sources).then_some(source)
            }
            Some(step) => moved(base.checked_add(1)?, step).filter(|source| *source < progress.next_source),
        }
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
