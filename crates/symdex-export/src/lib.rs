//! Writes what an index knows in the formats of other tools: Breakpad's symbol files, LLVM's GSYM, and JSON.
//!
//! All of them have functions, inlined calls and lines under one [`symdex::LinePolicy`]. Functions come in the order of
//! their addresses and do not overlap: a function with a hole, or with another function inside, becomes several.
//!
//! ```
//! use symdex::{Index, LinePolicy};
//!
//! # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
//! let index = Index::open(std::fs::read(path)?)?;
//! let mut symbols = Vec::new();
//! let raw = |name: &[u8]| name.to_vec();
//! symdex_export::breakpad(&index, LinePolicy::Statement, &raw, "Linux", &mut symbols)?;
//! assert!(symbols.starts_with(b"MODULE Linux "));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allowance;
mod breakpad;
mod function;
mod gsym;
mod json;
mod pieces;
mod stack_cfi;

use symdex::Cause;

pub use breakpad::breakpad;
pub use gsym::gsym;
pub use json::json;

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
