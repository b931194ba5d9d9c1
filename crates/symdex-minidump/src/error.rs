//! Why stacks cannot be walked.

use symdex::Cause;

/// Why the stacks of a file cannot be walked.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The minidump is damaged, or lacks a stream that is needed.
    #[error("damaged: {what}")]
    Damaged {
        /// What is wrong.
        what: String,
    },
    /// The processor or the kind of minidump is not supported.
    #[error("{what}")]
    Unsupported {
        /// What was found and what was expected.
        what: String,
    },
    /// Reading the file would take too much memory.
    #[error("this minidump has {count} {what}; the limit is {limit}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        count: usize,
        /// How much there may be.
        limit: usize,
    },
}

impl Error {
    /// The cause. No program writes a minidump that is too large, so such a file is damaged.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Damaged { .. } | Self::TooLarge { .. } => Cause::Damaged,
            Self::Unsupported { .. } => Cause::Unsupported,
        }
    }
}
