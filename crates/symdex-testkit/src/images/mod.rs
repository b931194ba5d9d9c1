//! Synthetic images, debug files and shared caches for the tests and benchmarks of the workspace.
//!
//! * [`Image`]: the tables of an index with random contents, and the answers of a linear scan of them.
//! * [`debug_file`]: Mach-O and ELF files with DWARF, valid or not.
//! * [`go`]: Go programs with the tables of the Go runtime.
//! * [`archive`]: zip and tar archives, valid or not.
//! * [`shared_cache`]: dyld shared caches.
//! * [`seal`]: correct checksums for changed indexes.

#![allow(clippy::cast_possible_truncation, reason = "the numbers in tests are small")]

pub mod archive;
pub mod debug_file;
pub mod go;
mod image;
pub mod seal;
pub mod shared_cache;

pub use image::{Image, Random, ScannedFrame, cut};
/// The types of an image's tables.
pub use symdex::write::{ChunkRanges, CodeRange, InlineFrame, NonMaxU32};
