//! Chunks: the ranges of one table within one stretch of the image, written in prefix codes.
//!
//! A lookup decodes one *block* of ranges up to its address. For each frame it decodes a part of one or two groups of
//! *source locations*. It reads both in place, from the bytes of the file. Each number is written in the prefix code of
//! its context ([`codes`]). Each index has its own codes.

pub(crate) mod block;
mod chunk;
pub(crate) mod codes;
mod sequence;
mod sources;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use chunk::{ChunkReader, TableAnswer};
pub(crate) use codes::Codes;
pub(crate) use sequence::TableReader;
pub(crate) use sources::SourceLocation;

/// Working memory of reading chunks.
pub(crate) struct PackedScratch {
    block: block::BlockState,
    sources: sources::SourceCache,
}

impl Default for PackedScratch {
    /// For lookups here and there, which seldom share a group of source locations.
    fn default() -> Self {
        Self { block: block::BlockState::default(), sources: sources::SourceCache::new(3) }
    }
}

impl PackedScratch {
    /// For reading many neighbouring answers, which share groups of source locations.
    fn for_many() -> Self {
        Self { sources: sources::SourceCache::new(9), ..Self::default() }
    }
}

/// The most ranges of a block, gaps included. A lookup decodes half a block on average.
pub(crate) const MAX_BLOCK_RANGES: usize = 255;
/// The most inline frames that a block defines.
pub(crate) const MAX_BLOCK_FRAMES: usize = 6144;
/// The most callers that a link goes up.
pub(crate) const MAX_STEPS: usize = 255;
/// Inline frames that a block remembers.
pub(crate) const RECENT: usize = 255;
/// A group has at most 2^`MAX_GROUP_BITS` source locations.
pub(crate) const MAX_GROUP_BITS: u8 = 4;
