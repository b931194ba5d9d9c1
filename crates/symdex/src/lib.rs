//! symdex turns a debug file into a small index once, and answers crash addresses from the index in microseconds.
//!
//! This crate is the index: its format, [its writer](mod@write) and its reader, [`Index`]. It knows nothing of DWARF; the crate
//! `symdex-build` makes indexes from debug files. The format is specified in `docs/FORMAT.md`.
//!
//! Offsets are counted from the start of the image ([`ImageOffset`]), so that a lookup needs neither the debug file nor its
//! base address. Whatever the bytes of an index, the reader does not panic, loop, or allocate by an unchecked number: "nothing
//! here" is `Ok(None)`, damage is an [`Error`].

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

mod address;
mod answer;
mod chunk;
#[cfg(feature = "demangle")]
mod demangle;
mod error;
mod format;
mod id32;
mod image;
mod index;
mod lookup;
#[cfg(feature = "mmap")]
#[expect(unsafe_code, reason = "mapping a file cannot be safe: others may change it")]
mod mmap;
mod scratch;
mod walk;
pub mod write;

pub use address::{FrameAddress, ImageOffset, Svma};
pub use answer::{Frame, Frames, LinePolicy};
pub use chunk::Chunk;
#[cfg(feature = "demangle")]
pub use demangle::demangle;
pub use error::{Error, Place};
pub use format::{BuildOptions, Counts, Dictionary, Metadata, Partial, RowRule, SectionKind, Table};
pub use image::{Arch, ImageId, ParseImageIdError};
pub use index::Index;
#[cfg(feature = "mmap")]
pub use mmap::map_file;
pub use scratch::Scratch;
pub use walk::{ChunkContents, StringReader, Verified};

// The tests' generator of images speaks of this crate by its name.
#[cfg(test)]
extern crate self as symdex;
#[cfg(test)]
#[path = "../tests/generator/mod.rs"]
mod generator;
