//! Answers crash reports from stores and folders of indexes, and from debug files.
//!
//! Call [`Symbolicator::open`] first, with [`SymbolicatorOptions`] that name the sources. All threads share the
//! symbolicator. Each thread answers reports with a [`Session`] of its own, which is a
//! [`Source`](symdex_report::Source) for [`symdex_report::symbolicate`]:
//!
//! ```
//! use symdex_report::{Options, Report, symbolicate};
//! use symdex_answer::{Symbolicator, SymbolicatorOptions};
//!
//! let options = SymbolicatorOptions::new().debug_files("../../testdata/dsyms/inline-dwarf4.dSYM");
//! let symbolicator = Symbolicator::open(&options, &mut |skipped| eprintln!("skipped: {skipped}"))?;
//!
//! let id = &symbolicator.known()[0].id;
//! let text = format!(
//!     "Thread 0 Crashed:\n\
//!      0   App   0x0000000104a343cf 0x104a34000 + 975\n\
//!      \n\
//!      Binary Images:\n\
//!      0x104a34000 - 0x104a37fff App arm64  <{id}> /var/App.app/App\n"
//! );
//! let report = Report::parse(text.as_bytes())?;
//! let mut session = symbolicator.session(&|_event| ());
//! let mut out = Vec::new();
//! symbolicate(&report, &mut session, &Options::default()).write(&mut out)?;
//! assert!(String::from_utf8(out)?.contains("cell (grid.h:9) [inlined]"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Symbolicator::resolve`] answers many addresses of images that no report has, as columns.
//!
//! # Order of sources
//!
//! The sources of an image are asked in this order until one answers every address: single indexes, folders of indexes,
//! the stores in their order, debug files. A source that is damaged or cannot be read is reported, and the next one is
//! asked. A damaged index in the first store is replaced by a new index of the debug file. An index that a store has
//! lost, in whole or in parts, and that a later store has, is copied to the first one in the background. An index
//! without debug information is asked last if there is a debug file that has some.
//!
//! Several debug files of one image, such as a stripped binary and its dSYM, are joined. A file that cannot be read is
//! reported, and the others answer.
//!
//! Up to 200 addresses of an image are answered from its debug file directly. For more addresses, its index is built
//! and put into the first store that can be written. If that fails, the index is kept in memory.
//!
//! A caller can get debug files of images that no source has ([`symdex_report::Unanswered::Missing`]), and have their
//! indexes built with [`Symbolicator::build_fetched`]. The module [`fetch`] gets them.

mod assumption;
mod debug_files;
pub mod fetch;
mod found;
mod healing;
mod known;
mod matching;
mod options;
pub mod resolve;
mod session;
mod symbolicator;
mod unwind;
mod wanted;

use std::path::{Path, PathBuf};

use symdex::{Cause, ImageId};
use symdex_build::SpecialFiles;
use symdex_build::debug_files::FileError;
use symdex_report::{KnownImage, Unanswered};

use symdex_store::IdPrefix;

pub use self::assumption::{Assumption, AssumptionTarget, ParseAssumptionError};
pub use self::healing::Refill;
pub use self::matching::Matching;
pub use self::options::SymbolicatorOptions;
pub use self::session::Session;
pub use self::symbolicator::Symbolicator;

/// An event while reports are answered. Events can come from any thread.
#[non_exhaustive]
#[derive(Debug)]
pub enum Event<'e> {
    /// The index of an image is being built. The last event of each build has `done` equal to `total`, even if the
    /// build fails.
    Building {
        /// The image.
        id: &'e ImageId,
        /// The size of its debug files, in bytes.
        size: u64,
        /// The amount of debug information that is read.
        done: u64,
        /// The amount of all debug information, in the unit of `done`.
        total: u64,
    },
    /// The index that a debug file carries is not used. The debug file answers.
    NotUsed {
        /// The debug file, and what is wrong.
        why: &'e str,
    },
    /// A new index cannot be stored and is kept in memory. A symbolicator sends this event once, for the first such
    /// index.
    NotStored {
        /// Why the store cannot be written; `None` if there is no store.
        error: Option<&'e symdex_store::Error>,
    },
}

/// A note for the caller after all reports are answered.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Not all indexes were opened in the search for the name of an image.
    NotAllOpened {
        /// How many were opened.
        opened: usize,
    },
    /// A folder was not searched completely, because it is too large or too deep.
    FolderCut {
        /// The folder.
        folder: PathBuf,
    },
    /// No report has a frame to answer in the image of an assumption.
    AssumptionUnused {
        /// The image's name.
        name: String,
    },
}

/// Why a source of answers cannot be used.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// An index cannot be opened, or a folder cannot be read.
    #[error(transparent)]
    Index(#[from] symdex_store::Error),
    /// A debug file cannot be read.
    #[error(transparent)]
    DebugFile(#[from] FileError),
    /// The file is a shared cache, which is not searched. Build indexes of its images first.
    #[error("{}: this is a dyld shared cache; build indexes of its images first", path.display())]
    SharedCache {
        /// The cache's main file.
        path: PathBuf,
    },
    /// FIFOs, sockets and devices in folders of debug files are skipped. That is not a failure.
    #[error("{0}")]
    Special(SpecialFiles),
    /// No source has the image of an [`Assumption`].
    #[error("no image with the id {id} to assume for {name}")]
    UnknownId {
        /// The name that the assumption is for.
        name: String,
        /// The id, or its first digits.
        id: IdPrefix,
    },
    /// Several ids begin with the digits of an [`Assumption`].
    #[error("{} ids begin with {id}, to be assumed for {name}; give more digits", images.len())]
    AmbiguousId {
        /// The name that the assumption is for.
        name: String,
        /// The first digits of the id.
        id: IdPrefix,
        /// The images whose ids begin with them.
        images: Vec<KnownImage>,
    },
}

impl SourceError {
    /// The cause.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Index(error) => error.cause(),
            Self::DebugFile(error) => error.error().cause(),
            Self::SharedCache { .. } => Cause::Unsupported,
            Self::UnknownId { .. } => Cause::Missing,
            Self::AmbiguousId { .. } => Cause::Usage,
            Self::Special(_) => Cause::Other,
        }
    }
}

/// The error as the reason why an image is not answered.
fn unanswered(error: &SourceError) -> Unanswered {
    failed(error.cause(), error.to_string())
}

/// The reason why an image is not answered, if reading a file of it has failed by `cause`.
fn failed(cause: Cause, message: String) -> Unanswered {
    match cause {
        Cause::Damaged | Cause::Lost | Cause::Unsupported | Cause::Limit => {
            Unanswered::Failed(cause, message)
        }
        _ => Unanswered::Failed(Cause::Other, message),
    }
}

/// The error of a store as the reason why an image is not answered. A store that fails may have the image.
fn unanswered_by_store(error: symdex_store::Error) -> Unanswered {
    let cause = match error.cause() {
        cause @ (Cause::Damaged | Cause::Lost | Cause::Unsupported) => cause,
        // The store has another image in its place.
        Cause::NotFound => Cause::Other,
        _ => Cause::Unavailable,
    };
    Unanswered::Failed(cause, error.to_string())
}

/// The last part of `path`, for names of images.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The public types can be shared and sent between threads.
#[cfg(test)]
mod threads {
    use super::*;

    const fn are_shared<T: Send + Sync>() {}
    // A session is used by one thread at a time.
    const fn is_sent<T: Send>() {}

    const _: () = {
        are_shared::<Assumption>();
        are_shared::<Event<'_>>();
        are_shared::<Note>();
        are_shared::<SourceError>();
        are_shared::<Symbolicator>();
        are_shared::<SymbolicatorOptions>();
        is_sent::<Session<'_>>();
    };
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
