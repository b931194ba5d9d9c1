//! Fetches debug files from folders, symbol servers and object stores.
//!
//! [`DebugSources`] finds the debug file of an image by its id, in the [`Layout`]s of several kinds of symbol servers.
//! A file is streamed to a temporary file, decompressed, with limits. [`Misses`] does so once for each image that has
//! no index, in the background, and remembers the outcome. [`FetchingSource`] puts both before a
//! [`Source`](symdex_report::Source) of answers.
//!
//! This module does not read debug files: the code that builds the index of a file has to check that it is of the
//! wanted image.
//!
//! ```
//! use symdex_answer::fetch::{DebugSources, FetchOptions, Verdict, WantedImage};
//!
//! # let folder = tempfile::tempdir()?;
//! # let url = folder.path().to_str().ok_or("UTF-8")?;
//! # std::fs::create_dir_all(folder.path().join("01"))?;
//! # std::fs::write(folder.path().join("01/23456789abcdef0123456789abcdef01234567.debug"), b"\x7fELF...")?;
//! let sources = DebugSources::open(&[format!("gdb+{url}").parse()?], &FetchOptions::new())?;
//! let wanted = WantedImage::new("0123456789abcdef0123456789abcdef01234567".parse()?);
//! // Reads the file while it is there.
//! let size = sources.fetch(&wanted, |file| Verdict::Used(std::fs::read(file.path()).map(|bytes| bytes.len())))?;
//! assert_eq!(size.transpose()?, Some(7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without the feature `remote`, folders are the only sources.

mod debug_sources;
mod decode;
mod error;
mod layout;
mod misses;
mod options;
#[cfg(feature = "remote")]
mod reach;
mod source;
mod url;
#[cfg(feature = "remote")]
mod web;

pub use self::debug_sources::{DebugSource, DebugSources, FetchedFile, Verdict};
pub use self::error::FetchError;
pub use self::layout::{FileKind, Layout, WantedImage};
pub use self::misses::{FetchOutcome, MissOptions, Misses};
pub use self::options::FetchOptions;
pub use self::source::FetchingSource;
pub use self::url::SourceUrl;
#[cfg(feature = "remote")]
#[doc(hidden)]
pub use self::web::client_error_text;
