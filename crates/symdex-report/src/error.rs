//! The errors of reading a report.

/// Why a report could not be read.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No format recognises the text.
    #[error("not a crash report of a known format; expected one of {}", names())]
    UnknownFormat,
    /// The format is known, but a report of this kind has no stacks.
    #[error("{what}")]
    Unsupported {
        /// What was found and what was expected.
        what: String,
    },
    /// The format is known, but the text is broken or cut.
    #[error("malformed report: {what} at byte {at}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
        /// The position in bytes from the start of the text.
        at: usize,
    },
    /// The text is longer than 4 GiB.
    #[error("the report has {size} bytes; 4 GiB are the most that is read")]
    TooLarge {
        /// The length of the text in bytes.
        size: usize,
    },
}

/// The names of all formats, with commas between them.
fn names() -> String {
    crate::formats().iter().map(crate::Format::name).collect::<Vec<_>>().join(", ")
}
