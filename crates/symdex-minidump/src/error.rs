//! Why stacks cannot be walked.

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
    /// Reading the file would take more memory than its size allows.
    #[error(
        "the {what} of this minidump take {size} bytes, which is more than the limit of {limit} for its size"
    )]
    TooLarge {
        /// The part that is too large.
        what: &'static str,
        /// The bytes that it takes.
        size: u64,
        /// The bytes that it may take.
        limit: u64,
    },
}

impl Error {
    /// Whether the file is damaged. Otherwise it is not supported.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::TooLarge { .. })
    }
}
