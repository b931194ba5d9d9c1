//! The records of an index file. `docs/FORMAT.md` is the specification.
//!
//! This module has the limits of the format. The writer rejects more; the reader reports more as damage.
//!
//! A forged file can have valid checksums. Each number that decides how much is allocated or how long a lookup takes
//! is checked against a limit. Real images stay far below each limit.

mod bits;
mod counts;
mod grade;
pub(crate) mod header;
pub(crate) mod metadata;
pub(crate) mod pages;
mod segments;

pub(crate) use bits::{BitReader, Cursor, Rows, unzigzag};
pub use counts::{Counts, Partial, Seen};
pub use grade::Grade;
pub use header::MAGIC;
pub(crate) use header::{FileSection, Header, VERSION};
pub use metadata::{Metadata, Table};
pub(crate) use pages::{Checksums, PageChecks, PageReader, checksums_size};
pub use segments::Segment;

pub use crate::error::SectionKind;

/// The most bytes of the metadata's fields.
pub(crate) const MAX_METADATA: usize = 1 << 20;
/// The longest name or file path, in bytes; the writer rejects longer ones.
pub const MAX_STRING: usize = 64 << 10;
/// The most bytes of address space that a chunk covers.
pub(crate) const MAX_CHUNK_SPAN: u32 = 1 << 20;
/// The most chunks of a table, empty ones included. Without a limit, two functions far apart would give an index with
/// an entry for each of many empty chunks.
pub(crate) const MAX_CHUNKS: u64 = 1 << 22;
/// The most inline frames that the blocks of a chunk define together, and the most source locations of a chunk. A
/// symbol can take 0 bits, so the chunk's size does not bound them.
pub(crate) const MAX_CHUNK_FRAMES: usize = 1 << 22;
/// The most executable segments of an image.
pub(crate) const MAX_SEGMENTS: usize = 64;
/// The most frames of an answer.
pub(crate) const MAX_FRAMES: u32 = 1024;
