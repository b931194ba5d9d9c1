//! From a debug file to an index.
//!
//! Data flows one way: [`find`] finds debug files, [`slices`] splits one by architecture, [`Image::load`] reads a
//! slice's headers, and [`build()`] makes the index. The crate `symdex-store` publishes it where readers look for it.
//! [`debug_files`] works on whole files and folders of them.

mod build;
mod cache;
mod chunk_job;
mod chunker;
mod companions;
pub mod debug_files;
mod direct;
mod dwarf;
mod error;
mod excerpt;
mod flatten;
mod image;
mod input;
mod limits;
mod merge;
mod pending;
mod pools;
mod queue;
#[cfg(test)]
mod random;
mod reader;
mod report;
mod slice;
mod spill;
#[doc(hidden)]
pub mod stages;
mod symbol_map;
mod symbol_ranges;
mod symbols;
mod unit_ranges;
mod up_to_date;

pub use build::{Built, Options, build, build_into};
pub use cache::{Cache, CachedImage};
pub use companions::Companions;
pub use direct::DirectLookup;
pub use error::Error;
pub use image::{Identity, Image, ImageKind, SplitUnit};
pub use input::{Found, find, search};
pub use report::{BuildReport, TextCoverage, meaning_of};
pub use slice::{Slice, slices, slices_for};
pub use symbol_map::{SymbolMap, SymbolMaps};
pub use symbols::FunctionSymbol;
pub use up_to_date::up_to_date;
