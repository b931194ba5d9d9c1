//! Reads and writes the formats of other tools: Breakpad's symbol files and LLVM's GSYM. Reads the symbols of Linux
//! kernels, and writes JSON.
//!
//! All but kernels have functions, inlined calls and lines under one [`symdex::LinePolicy`]. [`read`] returns a
//! [`SymbolFile`], which [`BuildOptions::build_symbol_file_into`](symdex_build::BuildOptions::build_symbol_file_into)
//! makes an index of. [`write_breakpad`], [`write_gsym`] and [`write_json`] write an index: its functions in the order
//! of their addresses, without overlap. A function with a hole, or with another function inside, becomes several.
//!
//! ```
//! use symdex::{Index, LinePolicy};
//! use symdex_build::BuildOptions;
//!
//! # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
//! let index = Index::open(std::fs::read(path)?)?;
//! let mut symbols = Vec::new();
//! let raw = |name: &[u8]| name.to_vec();
//! symdex_symbol_files::write_breakpad(&index, LinePolicy::Statement, &raw, "Linux", &mut symbols)?;
//! assert!(symbols.starts_with(b"MODULE Linux "));
//!
//! let file = symdex_symbol_files::read(&symbols)?;
//! let again = Index::open(BuildOptions::new().build_symbol_file_into(&file, Vec::new())?.bytes)?;
//! assert_eq!(again.metadata().counts.functions, index.metadata().counts.functions);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod breakpad;
mod function;
mod gsym;
mod json;
mod kallsyms;
mod limits;
mod pieces;
mod strings;

use symdex::Cause;
use symdex_build::symbol_file::SymbolFile;

pub use breakpad::write_breakpad;
pub use gsym::write_gsym;
pub use json::write_json;

/// What a symbol file has in place of a name or a path that is not known.
const UNKNOWN: &str = "??";

/// Finds the functions of a symbol file. `bytes` is the whole file. Its content says which format it has.
///
/// # Errors
///
/// [`NotASymbolFile`](symdex_build::Error::NotASymbolFile) if it is of no format that is read,
/// [`Unsupported`](symdex_build::Error::Unsupported) for another version of GSYM and for kernels without addresses,
/// [`Truncated`](symdex_build::Error::Truncated) and [`Malformed`](symdex_build::Error::Malformed) if the header of
/// GSYM does not describe the file.
pub fn read(bytes: &[u8]) -> Result<SymbolFile<'_>, symdex_build::Error> {
    if bytes.strip_prefix(breakpad::MODULE.as_bytes()).is_some_and(|rest| rest.starts_with(b" ")) {
        return Ok(breakpad::read(bytes));
    }
    let mut magic_numbers = [gsym::MAGIC.to_le_bytes(), gsym::MAGIC.to_be_bytes()].into_iter();
    if magic_numbers.any(|magic| bytes.starts_with(&magic)) {
        return gsym::read(bytes);
    }
    if kallsyms::is_one(bytes) {
        return kallsyms::read(bytes);
    }
    Err(symdex_build::Error::NotASymbolFile { found: symdex_build::describe(bytes) })
}

/// Writes a raw name of the index as the output is to have it: raw or readable.
pub type Demangler<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

/// Why an index cannot be exported.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The index is damaged.
    #[error(transparent)]
    Index(#[from] symdex::Error),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] std::io::Error),
    /// The index has more than the format can say.
    #[error("{what}; {format} has at most {limit}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// The format.
        format: &'static str,
        /// The most that it can have.
        limit: u64,
    },
    /// The index is small, and makes far more output than any index of a real image.
    #[error(
        "its names, paths and inlined calls take more than {limit} bytes, the limit for an index of its size; no debug \
         file is known that makes so many, so the index may have been made to fill the memory or the disk"
    )]
    Expands {
        /// How many bytes they may take.
        limit: u64,
    },
}

impl Error {
    /// The cause. What the format cannot express, or what makes too much output, is not supported.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Index(error) => error.cause(),
            Self::Output(_) => Cause::Other,
            Self::TooLarge { .. } | Self::Expands { .. } => Cause::Unsupported,
        }
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
