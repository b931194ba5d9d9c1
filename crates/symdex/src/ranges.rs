//! The ranges of a chunk, as the writer takes them and [`crate::Index::chunk`] returns them.

use std::num::NonZeroU32;

use crate::format::{MAX_FRAMES, Table};

/// A range starts fewer bytes than this after the start of its function, because codes have no larger numbers.
const MAX_FUNCTION_DISTANCE: u64 = 1 << 47;

/// A number from 0 to 2^32 - 2: the id of a string, the number of a frame, a line. `Option<NonMaxU32>` takes four
/// bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NonMaxU32(NonZeroU32);

impl NonMaxU32 {
    /// The number `value`. Returns `None` for 2^32 - 1 and more.
    #[must_use]
    pub fn new(value: u64) -> Option<Self> {
        u32::try_from(value.checked_add(1)?).ok().and_then(NonZeroU32::new).map(Self)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get() - 1
    }

    /// Reads an optional number as indexes store it: 0 for none, else the number plus one.
    pub(crate) fn from_stored(stored: u32) -> Option<Self> {
        NonZeroU32::new(stored).map(Self)
    }

    /// The number as an index into a slice.
    #[must_use]
    pub fn index(self) -> usize {
        self.get() as usize
    }
}

impl std::fmt::Debug for NonMaxU32 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

/// A half-open range of image offsets that have the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRange {
    /// The first image offset.
    pub start: u64,
    /// The end of the range, exclusive.
    pub end: u64,
    /// The start of the function, or of its part that contains the range. `None` for line rows that no
    /// function covers.
    pub function_start: Option<u64>,
    /// The innermost frame under [`crate::LinePolicy::Exact`], as an index into [`ChunkRanges::frames`].
    pub exact: u32,
    /// The innermost frame under [`crate::LinePolicy::Statement`], as an index into [`ChunkRanges::frames`].
    pub statement: u32,
}

/// A frame of a chain of inlined calls: a function, a file and a line in it, and the frame into which it is inlined.
/// In the `symbol_table`, it is one of the names of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InlineFrame {
    /// The number of the frame into which this one is inlined, which is smaller than its own; `None` for a concrete
    /// function. In the `symbol_table`, the next alias of the function; only the first range of a function needs its
    /// aliases.
    pub parent: Option<NonMaxU32>,
    /// The function's name, by id.
    pub name: Option<NonMaxU32>,
    /// The file's path, by id.
    pub file: Option<NonMaxU32>,
    /// The line, 0 included.
    pub line: Option<NonMaxU32>,
}

/// The ranges of one table within one chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkRanges {
    /// The ranges in address order. None is empty, none overlap, and all lie in the chunk.
    pub ranges: Vec<CodeRange>,
    /// The frames that the ranges refer to. A parent comes before its children.
    pub frames: Vec<InlineFrame>,
}

impl ChunkRanges {
    /// Whether a function of these ranges has aliases. `table` is the table of the ranges.
    pub(crate) fn has_aliases(&self, table: Table) -> bool {
        table == Table::SymbolTable && self.frames.iter().any(|frame| frame.parent.is_some())
    }

    /// Appends a range of a block. [`Self::push_frames`] appends the frames of the block afterwards. `answers` are
    /// the frames under `exact` and `statement`, by their links in the block. Returns `None` for an invalid link, and
    /// if there are too many frames.
    pub(crate) fn push_range(
        &mut self,
        range: std::ops::Range<u64>,
        function_start: Option<u64>,
        answers: [u32; 2],
    ) -> Option<()> {
        let first = self.frames.len() as u64;
        let [exact, statement] =
            answers.map(|link| u32::try_from(first + u64::from(link.checked_sub(1)?)).ok());
        let (exact, statement) = (exact?, statement?);
        self.ranges.push(CodeRange { start: range.start, end: range.end, function_start, exact, statement });
        Some(())
    }

    /// Appends the frames of a block, each with the link of its parent, 0 for none. Returns `None` if a frame is
    /// invalid, comes before its parent, or makes a chain longer than the format allows.
    pub(crate) fn push_frames(
        &mut self,
        frames: impl Iterator<Item = Option<(u32, InlineFrame)>>,
    ) -> Option<()> {
        let first = self.frames.len() as u64;
        let mut depths: Vec<u32> = Vec::with_capacity(frames.size_hint().0);
        for frame in frames {
            let (parent, frame) = frame?;
            depths.push(depth_below(parent.checked_sub(1).map(|parent| parent as usize), &depths).ok()?);
            let parent = match parent {
                0 => None,
                parent => Some(NonMaxU32::new(first + u64::from(parent - 1))?),
            };
            self.frames.push(InlineFrame { parent, ..frame });
        }
        Some(())
    }

    /// Returns the length of the chain of each frame, or what is wrong with the ranges of a chunk from `start` to
    /// `end`.
    pub(crate) fn depths(&self, start: u64, end: u64) -> Result<Vec<u32>, &'static str> {
        let mut at = start;
        for range in &self.ranges {
            if range.start < at || range.end <= range.start || range.end > end {
                return Err("a range is empty, out of order or outside the chunk");
            }
            if range.function_start.is_some_and(|function| function > range.start) {
                return Err("a range lies before the start of its function");
            }
            if range.exact.max(range.statement) as usize >= self.frames.len() {
                return Err("a range has an inline frame that is not there");
            }
            if range.function_start.is_some_and(|function| range.start - function >= MAX_FUNCTION_DISTANCE) {
                return Err("a range lies too far after the start of its function");
            }
            at = range.end;
        }
        if u32::try_from(self.frames.len()).is_err() {
            return Err("more inline frames than there are numbers");
        }
        let mut depths: Vec<u32> = Vec::with_capacity(self.frames.len());
        for frame in &self.frames {
            depths.push(depth_below(frame.parent.map(NonMaxU32::index), &depths)?);
        }
        Ok(depths)
    }
}

/// Returns the length of the chain of a frame below `parent`, or what is wrong with it. `depths` are the lengths of
/// the chains of the frames before it.
#[inline]
fn depth_below(parent: Option<usize>, depths: &[u32]) -> Result<u32, &'static str> {
    let above = parent.map_or(Some(&0), |parent| depths.get(parent));
    match above.ok_or("an inline frame comes before its parent")? + 1 {
        depth if depth > MAX_FRAMES => Err("a chain is longer than the format allows"),
        depth => Ok(depth),
    }
}
