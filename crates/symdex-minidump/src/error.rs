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
    /// Whether the file is damaged. Otherwise it is not supported.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::TooLarge { .. })
    }
}
