//! Builds symdex indexes from debug files, and answers addresses directly from a debug file.
//!
//! # What to call first
//!
//! | you have | call |
//! | --- | --- |
//! | an entry of an archive | [`may_be_debug_file`], then [`debug_files::InputFiles::add_unpacked`] |
//! | a file or a folder that may hold debug files | [`find`]; [`search`] also returns indexes and archives |
//! | the bytes of a debug file | [`slices`], then [`Image::load`] for each architecture |
//! | an image | [`build()`]; [`BuildOptions`] limits memory, shows progress, and writes to a file |
//! | an image, and a few addresses | [`DirectLookup`]: no index is built |
//! | an image, and its old index | [`built_before()`]; without debug information, [`up_to_date()`] |
//! | a dyld shared cache | [`SharedCache::open`], then [`SharedCacheImage::load`] |
//! | functions as another tool states them | [`symbol_file`], then [`BuildOptions::build_symbol_file_into`] |
//! | an address relative to a section | [`sections()`] |
//! | names such as `__hidden#12_` | [`SymbolMaps`] |
//! | images whose symbols are in several files | [`debug_files::find_image`] |
//!
//! [`Companions`] owns the bytes that an image borrows in addition to its own file: decompressed sections, and files
//! to which the debug file refers. It also has the folders to search for such files.
//!
//! The crate `symdex` reads indexes, and `symdex-store` publishes them where readers look for them.
//! `symdex-symbol-files` reads symbol files of Breakpad and GSYM.
//!
//! # Example
//!
//! ```
//! # use std::path::Path;
//! use symdex_build::{Companions, Image, build, find, slices};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let input = &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/demo");
//! # let temporary = tempfile::tempdir()?;
//! # let indexes = temporary.path();
//! for debug_file in find(input) {
//!     let path = debug_file?;
//!     let bytes = symdex::map_file(&path)?;
//!     let companions = Companions::default();
//!     for slice in slices(&bytes)? {
//!         let image = Image::load(&slice, &path, &companions)?;
//!         let built = build(&image)?;
//!         std::fs::write(indexes.join(format!("{}.symdex", image.info().id)), built.bytes)?;
//!     }
//! }
//! # assert_eq!(indexes.read_dir()?.count(), 3);
//! # Ok(())
//! # }
//! ```

#![warn(missing_debug_implementations)]

#[doc(hidden)]
pub mod audit_access;
mod build;
mod built_before;
mod chunk_job;
mod chunker;
mod companions;
pub mod debug_files;
mod direct;
mod dwarf;
mod embedded;
mod error;
mod excerpt;
mod file_symbols;
mod flatten;
mod go;
mod image;
mod input;
mod keyed;
mod limits;
mod memory;
mod merge;
mod options;
mod pending;
mod pools;
mod queue;
#[cfg(test)]
mod random;
mod readable;
mod report;
mod sections;
mod shared_cache;
mod slice;
mod spill;
mod spool;
pub mod symbol_file;
mod symbol_map;
mod symbol_ranges;
mod symbols;
mod unit_ranges;
mod unwind;
mod up_to_date;

pub use built_before::built_before;
pub use companions::Companions;
pub use direct::{DirectLookup, split_column};
pub use dwarf::{Declaration, Variables};
pub use embedded::{carrier_digest, index_section, is_carrier, with_index_section};
pub use error::Error;
pub use file_symbols::{DataSymbol, FileSymbols};
pub use image::{Identity, Image, ImageKind};
pub use input::{FoundFiles, SpecialFiles, find, is_in_bundle, may_be_debug_file, search};
pub use limits::StopFlag;
pub use options::{BuildOptions, Built, build};
pub use readable::Demangle;
pub use report::{BuildReport, TextCoverage, can_be_avoided, meaning_of};
pub use sections::{Section, sections};
pub use shared_cache::{SharedCache, SharedCacheImage};
pub use slice::{Slice, describe, slices, slices_for};
pub use symbol_map::{NotASymbolMap, SymbolMap, SymbolMaps};
pub use symbols::{FunctionSymbol, FunctionSymbols};
pub use up_to_date::up_to_date;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
