//! symdex turns a debug file into a small index once, and answers crash addresses from the index in microseconds.
//!
//! This crate is the index: its format, [its writer](mod@write) and its reader, [`Index`]. It knows nothing of DWARF;
//! the crate `symdex-build` makes indexes from debug files. The format is specified in `docs/FORMAT.md`.
//!
//! ```
//! use symdex::{FrameAddress, Index, LinePolicy, Scratch};
//!
//! let index = Index::open(std::fs::read("../../testdata/golden/v1/inline-dwarf4-1.symdex")?)?;
//! let mut scratch = Scratch::default(); // one for each thread, kept between lookups
//! // From a stack: the address to return to, and where the image was loaded.
//! let address = FrameAddress::ReturnAddress(0x1_04a3_43d0);
//! let offset = address.image_offset(0x1_04a3_4000, &index.metadata().arch).ok_or("not in the image")?;
//! let frames = index.lookup(offset, LinePolicy::Statement, &mut scratch)?.ok_or("not known")?;
//! let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or(b"??")).into_owned();
//! let lines = frames.iter().map(|frame| format!("{} (line {:?})", text(frame.name), frame.line));
//! assert_eq!(
//!     lines.collect::<Vec<_>>(),
//!     ["cell (line Some(9))", "row (line Some(16))", "mip (line Some(6))", "pyramid (line Some(11))"]
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/service.rs` is a whole service. The feature `mmap` maps an index instead of reading it
//! (`Index::open_file`). The crate `symdex-demangle` demangles names. Without features this crate depends on serde,
//! bincode, thiserror and two hashes, and on no C code. A value of a key-value store is a small index of a part of
//! the image ([`write::split`]): [`Index::open`] opens it, too.
//!
//! Offsets are counted from the start of the image ([`ImageOffset`]), so that a lookup needs neither the debug file
//! nor its base address. Whatever the bytes of an index, the reader does not panic, loop, or allocate by an unchecked
//! number: "nothing here" is `Ok(None)`, damage is an [`Error`].

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
mod cache;
mod error;
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
mod walk;
#[cfg(feature = "write")]
pub mod write;

pub use answer::{Frame, Frames, LinePolicy, OwnedFrame};
pub use error::{Error, ErrorLocation, guess_file_kind};
pub use format::{Counts, MAX_STRING, Metadata, Partial, RowRule, SectionKind, Table};
pub use image::{Arch, FrameAddress, ImageId, ImageOffset, ParseImageIdError};
pub use index::{Index, SectionInfo};
pub use lookup::Scratch;
#[cfg(feature = "mmap")]
pub use mmap::{MappedFile, map_file, map_open_file};
pub use ranges::{ChunkRanges, CodeRange, InlineFrame, NonMaxU32};
pub use walk::{StringReader, VerifiedCounts};
