//! Chunks as an index file has them since version 2: bits that are read from where they lie.
//!
//! A lookup decodes the one run that holds its address, up to its range, and of triples, names and origins what a chain needs, from the
//! start of a group on. Nothing has to be decompressed before, and nothing kept afterwards. Numbers are written in codes of the
//! index's own (see [`codes`]), each in the context that tells most of it (see [`contexts`]).
//!
//! Consecutive ranges of one function make a *run* of at most [`RUN_LEN`] ranges; what lies between functions is a run
//! without ranges, a gap. A *triple* is a distinct (name, file, line) of the chunk, and a loc is a triple and the loc it is inlined into.
//! An *origin* is the file and the line of the first triple of a name in the whole index: most triples stand there or close by.
//!
//! [`chunk`] has the layout of a chunk, [`shared`] that of what all chunks share.

mod bits;
mod body;
mod chunk;
mod codes;
mod contexts;
mod encode;
mod groups;
mod origins;
mod shared;
#[cfg(test)]
mod tests;
mod tokens;
mod triples;
mod write;

pub(crate) use self::encode::{Buffers, Draft, draft};
pub(crate) use self::shared::{ChunkReader, Shared};
pub(crate) use self::write::{Packed, PackedWriter};

/// Working memory of reading chunks.
#[derive(Default)]
pub(crate) struct PackedScratch {
    run: body::RunState,
    groups: groups::Groups,
}

/// The most ranges a run is given: a lookup decodes one run, so this bounds its work.
const RUN_LEN: usize = 96;
/// The most locs a run of several ranges may define.
const RUN_LOCS: usize = 4096;
/// The most locs a run defines: those of one range, which may be two chains, are never too many.
const MAX_LOCS: usize = RUN_LOCS + 2 * crate::format::MAX_FRAMES as usize;
/// The most parents a link goes up.
const MAX_STEPS: usize = 255;
/// Locs that a run remembers.
const RECENT: usize = 255;
/// Runs, triples, names and origins that are read from the first of them on.
const RUN_GROUP: usize = 16;
const TRIPLE_GROUP: usize = 64;
const NAME_GROUP: usize = 32;
const ORIGIN_GROUP: usize = 16;
