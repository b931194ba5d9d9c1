//! Encodes the ranges of a chunk as a symbol stream.

use super::bits::zigzag;
use super::random_key;
use super::sources;
use super::symbol_stream::{BLOCK, FIRST_SOURCE, SymbolStream};
use crate::format::MAX_FRAMES;
use crate::packed::block::{self, BlockState, FLAGS, FUNCTION_CODE, GAP_CODE, HEADS, Link};
use crate::packed::codes::{self, FUNCTION, GAP, MORE_HEAD};
use crate::packed::{MAX_BLOCK_FRAMES, MAX_GROUP_BITS, MAX_STEPS, RECENT};
use crate::ranges::NonMaxU32;
use crate::ranges::{ChunkRanges, CodeRange, InlineFrame};

/// The size of a small image in bytes. Indexes of small images have shorter blocks and groups, which take more space
/// and are read faster.
const SMALL_IMAGE: u64 = 4 << 20;
/// The most ranges of a block of a small image, and of a larger one, gaps included.
pub(crate) const BLOCK_LENS: [usize; 2] = [16, 52];
/// The most inline frames of a block of several ranges. The margin below the limit of the format is two chains, as many
/// as one range can have.
pub(crate) const BLOCK_FRAMES: usize = MAX_BLOCK_FRAMES - 2 * MAX_FRAMES as usize;

/// How long blocks and groups are. A lookup decodes half a block or group on average.
#[derive(Clone, Copy)]
pub(super) struct PartSizes {
    /// The most ranges of a block, gaps included. A block that has at least half as many ends at the end of a function.
    block: usize,
    /// A group has 2^`group_bits` source locations.
    pub(super) group_bits: u8,
}

impl PartSizes {
    /// The sizes for an image of `image_size` bytes.
    pub(super) fn of(image_size: u64) -> Self {
        let [of_small, of_large] = BLOCK_LENS;
        match image_size {
            ..=SMALL_IMAGE => Self { block: of_small, group_bits: MAX_GROUP_BITS - 1 },
            _ => Self { block: of_large, group_bits: MAX_GROUP_BITS },
        }
    }
}

/// A range's answer under `statement`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Statement {
    /// The answer under `exact`.
    Same = 0,
    /// The answer of the range before.
    Last = 1,
    /// The answer that follows.
    Follows = 2,
}

/// The symbols of a chunk.
pub(super) struct ChunkSymbols {
    pub(super) stream: SymbolStream,
    /// How many source locations the chunk has.
    pub(super) sources: usize,
    /// How many inline frames the blocks of the chunk define together.
    pub(super) frames: usize,
}

/// Buffers that are reused for every chunk.
#[derive(Default)]
pub(super) struct Buffers {
    numbers: SourceInterner,
    /// For each inline frame of the chunk: the last block that defined it, counted from 1, and its link in that block.
    in_block: Vec<(u32, Link)>,
    /// The chunk's source locations, each a name, a file and a line as they are stored.
    sources: Vec<[u32; 3]>,
    /// The inline frames that an answer defines; empty between answers.
    chain: Vec<u32>,
    block: BlockState,
}

/// The numbers of a chunk's source locations.
struct SourceInterner {
    /// A random factor of the hash, so that no input can be forged whose hashes collide.
    key: u64,
    /// For each hash: the last source location with this hash, plus one; 0 if there is none.
    last: Vec<u32>,
    /// For each source location: the one before it with the same hash, plus one; 0 if there is none.
    before: Vec<u32>,
}

impl Default for SourceInterner {
    fn default() -> Self {
        Self { key: random_key() | 1, last: Vec::new(), before: Vec::new() }
    }
}

impl SourceInterner {
    /// Begins a chunk of `frames` inline frames.
    fn begin(&mut self, frames: usize) {
        self.last.clear();
        self.last.resize(frames.next_power_of_two(), 0);
        self.before.clear();
        // Growing the vector step by step fragments the heap by 5 MB.
        self.before.reserve(frames);
    }

    /// Returns the number of `source` in `sources`. A new source location is appended.
    fn number(&mut self, sources: &mut Vec<[u32; 3]>, source: [u32; 3]) -> Option<u32> {
        let [name, file, line] = source;
        let names = (u64::from(name) << 32 | u64::from(file)).wrapping_mul(self.key);
        let hash = (names.rotate_left(32) ^ u64::from(line)).wrapping_mul(self.key) >> 32;
        let slot = usize::try_from(hash & (self.last.len() as u64 - 1)).ok()?;
        let last = self.last.get_mut(slot)?;
        let mut same = *last;
        while let Some(number) = same.checked_sub(1) {
            if *sources.get(number as usize)? == source {
                return Some(number);
            }
            same = *self.before.get(number as usize)?;
        }
        self.before.push(*last);
        sources.push(source);
        *last = u32::try_from(sources.len()).ok()?;
        Some(*last - 1)
    }
}

/// The symbols of the chunk that covers the image from `start` to `end`. `depths` has the length of each inline frame's
/// chain.
pub(super) fn symbols_of(
    sizes: PartSizes,
    [start, end]: [u64; 2],
    has_files: bool,
    chunk: &ChunkRanges,
    depths: &[u32],
    buffers: &mut Buffers,
) -> ChunkSymbols {
    let Buffers { numbers, in_block, sources, chain, block } = buffers;
    numbers.begin(chunk.frames.len());
    sources.clear();
    in_block.clear();
    in_block.resize(chunk.frames.len(), (0, 0));
    // Slightly more than most chunks need.
    let stream = SymbolStream(Vec::with_capacity(3 * (chunk.ranges.len() + chunk.frames.len())));
    let (blocks, ranges, last_statement, function_start) = (0, 0, None, None);
    let mut symbolizer = ChunkSymbolizer {
        start,
        frames: &chunk.frames,
        stream,
        numbers,
        in_block,
        sources,
        chain,
        block,
        blocks,
        ranges,
        last_statement,
        function_start,
    };
    let mut defined = 0;
    let mut cut = BlockLimit { most: sizes.block, ranges: sizes.block, frames: 0 };
    let mut at = start;
    for range in &chunk.ranges {
        let gap = range.start - at;
        let depth = |frame: u32| depths.get(frame as usize).copied().unwrap_or(0) as usize;
        if cut.ends_before(symbolizer.function_start != range.function_start || gap > 0, {
            depth(range.exact) + depth(range.statement)
        }) {
            defined += symbolizer.block.frames.len();
            symbolizer.begin(at);
        }
        if gap > 0 {
            symbolizer.gap(gap);
            cut.ranges += 1;
        }
        symbolizer.range(range);
        cut.ranges += 1;
        at = range.end;
    }
    if at < end && !chunk.ranges.is_empty() {
        symbolizer.gap(end - at);
    }
    defined += symbolizer.block.frames.len();
    let mut stream = symbolizer.stream;
    sources::append(&mut stream, sources, sizes.group_bits, has_files);
    ChunkSymbols { stream, sources: sources.len(), frames: defined }
}

/// Decides where a block ends.
struct BlockLimit {
    /// The most ranges of a block.
    most: usize,
    /// Ranges of the block, gaps included.
    ranges: usize,
    /// The inline frames of the chains of all its ranges. The block defines at most this many.
    frames: usize,
}

impl BlockLimit {
    /// Counts the next range, whose chains have `frames` inline frames. Returns whether it begins a block.
    fn ends_before(&mut self, is_other_function: bool, frames: usize) -> bool {
        self.frames += frames;
        let most = if is_other_function { self.most / 2 } else { self.most };
        let ends = self.ranges >= most || self.frames > BLOCK_FRAMES;
        if ends {
            *self = Self { ranges: 0, frames, ..*self };
        }
        ends
    }
}

struct ChunkSymbolizer<'c> {
    /// Where the chunk starts in the image.
    start: u64,
    frames: &'c [InlineFrame],
    stream: SymbolStream,
    numbers: &'c mut SourceInterner,
    in_block: &'c mut [(u32, Link)],
    sources: &'c mut Vec<[u32; 3]>,
    chain: &'c mut Vec<u32>,
    block: &'c mut BlockState,
    blocks: u32,
    /// Ranges of the block, gaps included.
    ranges: usize,
    /// The answer under `statement` of the range before.
    last_statement: Option<u32>,
    function_start: Option<u64>,
}

impl ChunkSymbolizer<'_> {
    fn put(&mut self, context: u8, number: u64) {
        self.stream.number(context, number);
    }

    fn code(&mut self, code: u64) {
        self.put(codes::answer_context(self.block.last_code), code);
        self.block.last_code = code;
    }

    /// Begins a block at `at`.
    fn begin(&mut self, at: u64) {
        // There are no more source locations than numbers.
        let source = u32::try_from(self.sources.len()).unwrap_or(u32::MAX);
        self.put(BLOCK, at - self.start);
        self.put(FIRST_SOURCE, source.into());
        self.block.begin(source);
        (self.ranges, self.last_statement, self.function_start) = (0, None, None);
        self.blocks += 1;
    }

    fn gap(&mut self, len: u64) {
        self.code(GAP_CODE);
        self.put(GAP, len);
        self.ranges += 1;
    }

    fn range(&mut self, range: &CodeRange) {
        if range.function_start != self.function_start {
            self.code(FUNCTION_CODE);
            let number = match range.function_start {
                None => 1,
                Some(start) if start == range.start => 0,
                Some(start) => range.start - start + 1,
            };
            self.put(FUNCTION + u8::from(self.ranges != 0), number);
            self.function_start = range.function_start;
        }
        let statement = match range.statement {
            same if same == range.exact => Statement::Same,
            last if Some(last) == self.last_statement => Statement::Last,
            _ => Statement::Follows,
        };
        self.last_statement = Some(range.statement);
        let mut defines = self.answer(range.exact, statement);
        if statement == Statement::Follows {
            defines = self.answer(range.statement, Statement::Same);
        }
        self.put(codes::length_context(defines), range.end - range.start);
        self.ranges += 1;
    }

    /// Appends an answer. Returns how many inline frames it defines.
    fn answer(&mut self, answer: u32, statement: Statement) -> u64 {
        let (mut next, mut known) = (Some(answer), None);
        while let Some(frame) = next {
            known = self.known(frame);
            if known.is_some() {
                break;
            }
            self.chain.push(frame);
            next = self.frames.get(frame as usize).and_then(|frame| frame.parent).map(NonMaxU32::get);
        }
        let defines = self.chain.len() as u64;
        let head = FLAGS * defines + statement as u64;
        let link = known.map_or(0, |link| self.link(link));
        self.code(HEADS * link + head.min(HEADS - 1));
        if let Some(more) = head.checked_sub(HEADS - 1) {
            self.put(MORE_HEAD, more);
        }
        if let (Some(link), 0) = (known, defines) {
            self.block.used(link);
        }
        self.block.last_answer = known.unwrap_or(0);
        let mut last = None;
        while let Some(frame) = self.chain.pop() {
            last = self.define(frame, last);
        }
        defines
    }

    /// The link of `frame`. Returns `None` if the block has not defined `frame`, or no longer remembers it.
    fn known(&mut self, frame: u32) -> Option<Link> {
        let (block, link) = *self.in_block.get(frame as usize)?;
        // A block with fewer inline frames than that remembers all of them.
        let mut is_remembered = || self.block.frames.len() < RECENT || self.block.recent().contains(&link);
        (block == self.blocks && is_remembered()).then_some(link)
    }

    /// The number that stands for inline frame `link` in a code: the steps from the last answer to it, or its position
    /// in the recency list.
    fn link(&mut self, link: Link) -> u64 {
        // The link of a caller is smaller than the links of the inline frames that have this caller.
        let (mut ancestor, mut steps) = (self.block.last_answer, 0);
        while ancestor > link {
            ancestor = block::frame(&self.block.frames, ancestor).map_or(0, |frame| frame.caller);
            steps += 1;
        }
        if ancestor == link && steps <= MAX_STEPS {
            return 2 * steps as u64 + 1;
        }
        let later = self.block.recent().iter().rev().position(|recent| *recent == link);
        2 * later.unwrap_or(0) as u64 + 2
    }

    /// Defines `frame`, whose caller is the last answer, and appends the number of its source location. `last` is the
    /// number of the inline frame before, if the same answer defines it. Returns the appended number.
    fn define(&mut self, frame: u32, last: Option<u64>) -> Option<u64> {
        let InlineFrame { name, file, line, .. } = *self.frames.get(frame as usize)?;
        let next = u32::try_from(self.sources.len()).ok()?;
        let source = self.numbers.number(self.sources, [name, file, line].map(NonMaxU32::stored))?;
        let (context, base) = self.block.expected(self.block.last_answer, last);
        let number = match source {
            new if new == next => 0,
            _ => zigzag(i64::from(source) - i64::from(base) - 1) + 1,
        };
        self.put(context, number);
        let link = self.block.define(self.block.last_answer, source)?;
        self.block.last_answer = link;
        *self.in_block.get_mut(frame as usize)? = (self.blocks, link);
        Some(number)
    }
}
