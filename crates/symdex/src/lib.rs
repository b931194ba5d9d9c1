//! Reads symdex indexes: files that map the addresses of an image to functions, files and lines.
//!
//! An index answers a crash address in microseconds. The crate `symdex-build` builds indexes from debug files; this
//! crate knows nothing about DWARF. `docs/FORMAT.md` specifies the bytes of an index.
//!
//! # First steps
//!
//! 1. [`Index::open`] opens an index in memory, for example one that [`read_index_file`] has read. With the feature
//!    `mmap`, `Index::open_file` maps a file. Map only files that nobody else can change.
//! 2. [`FrameAddress::image_offset`] turns an address of a stack into an [`ImageOffset`], which counts bytes from the
//!    start of the image.
//! 3. [`Index::frames`] returns the frames at an offset, the innermost inlined function first.
//! 4. For many addresses, [`Index::lookup`] answers without allocating, from the cache of a [`Scratch`];
//!    [`Index::lookup_many`] answers a whole stack, and [`Index::lookup_ascending`] any number of ascending offsets,
//!    each block read once.
//!
//! ```
//! use symdex::{FrameAddress, Index, LinePolicy};
//!
//! # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
//! let index = Index::open(std::fs::read(path)?)?;
//! // From a stack: the address to return to, and where the image was loaded.
//! let address = FrameAddress::ReturnAddress(0x1_04a3_43d0);
//! let offset = address.image_offset(0x1_04a3_4000, &index.metadata().arch).ok_or("not in the image")?;
//! let frames = index.frames(offset, LinePolicy::Statement)?;
//! let lines = frames.iter().map(|frame| (frame.name_lossy().unwrap_or_default(), frame.line.unwrap_or_default()));
//! let expected = [("cell", 9), ("row", 16), ("mip", 6), ("pyramid", 11)];
//! assert!(lines.eq(expected.map(|(name, line)| (name.into(), line))));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Index::function_names`] returns all names of a folded function. [`Index::metadata`] describes the image and the
//! build. [`Index::unwind_row`] leads from the registers of a frame to those of its caller, if the index has unwind
//! rows. [`Index::verify`] checks a whole index. [`Index::chunks`] and [`Index::strings`] list everything in it.
//! `examples/service.rs` is a service that answers over TCP.
//!
//! # Threads
//!
//! An [`Index`] can be shared between threads without a lock, for example in an `Arc`. Each thread has its own
//! [`Scratch`], which serves any number of indexes and caches their answers.
//!
//! # Errors
//!
//! `Ok(None)` means that the index has no code at the offset. An [`Error`] has a [`Cause`]: the index is damaged, of an
//! unknown version, or its file cannot be read, for example.
//! Opening checks the parts that every lookup needs. A lookup checks the other parts when it first reads them, so
//! a damaged index either returns the right answer or fails. The reader does not panic, whatever the bytes are. Limits
//! bound the time and the memory of each lookup.
//!
//! # Features
//!
//! * `mmap`: `Index::open_file` and `MappedFile`, with the crate memmap2. It has the only `unsafe` code.
//! * `write`: the module `write`, the writer. `write::split` splits an index into values for a key-value store.
//!
//! Without features, the crate depends on serde, bincode, thiserror and xxhash-rust, and on no C code. Names are
//! mangled, as linkers see them; the crate `symdex-demangle` makes them readable.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::cast_possible_truncation
    )
)]

mod answer;
mod answer_cache;
pub mod build_id;
mod by_name;
mod cause;
pub mod debug_id;
mod error;
mod file;
mod format;
mod image;
mod index;
mod lookup;
#[cfg(feature = "mmap")]
#[expect(unsafe_code, reason = "mapping a file cannot be safe: others may change it")]
mod mmap;
mod names;
mod packed;
mod ranges;
mod recent_strings;
mod sorted;
mod unwind;
mod walk;
#[cfg(feature = "write")]
pub mod write;

pub use answer::{Frame, Frames, LinePolicy, OwnedFrame};
pub use cause::Cause;
// For the other crates of symdex.
#[doc(hidden)]
pub use error::guess_file_kind;
pub use error::{Error, ErrorLocation};
pub use file::{MAX_READ_SIZE, read_index_file};
#[doc(hidden)]
pub use file::{open_regular_file, read_digest};
#[doc(hidden)]
pub use format::MAGIC as INDEX_MAGIC;
pub use format::{Counts, Grade, MAX_STRING, Metadata, Partial, SectionKind, Seen, Segment, Table};
pub use image::{Arch, FrameAddress, ImageId, ImageOffset, ParseImageIdError};
pub use index::Index;
#[doc(hidden)]
pub use index::SectionInfo;
pub use lookup::Scratch;
#[cfg(feature = "mmap")]
pub use mmap::{MappedFile, map_file, map_file_part, map_open_file};
pub use ranges::{ChunkRanges, CodeRange, InlineFrame, NonMaxU32};
pub use unwind::{FrameState, OwnedUnwindRow, UnwindCounts, UnwindRow, UnwindRule, UnwindValue};
pub use walk::{StringReader, VerifiedCounts};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
