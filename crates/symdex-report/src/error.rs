//! The errors of reading a report.

use symdex::Cause;

/// Why a report could not be read.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No format recognises the text.
    #[error("not a crash report of a known format{}", listed(near))]
    UnknownFormat {
        /// The formats that the text matches in part, the nearest first; at most three.
        near: Vec<NearFormat>,
    },
    /// The format is known, but a report of this kind has no stacks.
    #[error("{what}")]
    Unsupported {
        /// What was found and what was expected.
        what: String,
    },
    /// The format is known, but the text is broken or truncated.
    #[error("damaged report: {what} at byte {at}")]
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

/// A format that a text matches in part.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearFormat {
    /// As [`Format::name`](crate::Format::name).
    pub name: &'static str,
    /// The marks that the text has: titles of lines, keys of members. At least one.
    pub found: Vec<&'static str>,
    /// The marks that it does not have.
    pub missing: Vec<&'static str>,
}

/// `` ; nearest: kscrash (has `"crash"`; lacks `"backtrace"`) ``. Empty if no format is near.
fn listed(near: &[NearFormat]) -> String {
    let quoted = |marks: &[&str]| {
        let marks: Vec<_> = marks.iter().map(|mark| format!("`{}`", mark.trim())).collect();
        marks.join(", ")
    };
    let described = |NearFormat { name, found, missing }: &NearFormat| {
        let lacks = if missing.is_empty() { "a frame".to_owned() } else { quoted(missing) };
        format!("{name} (has {}; lacks {lacks})", quoted(found))
    };
    let near: Vec<_> = near.iter().map(described).collect();
    if near.is_empty() { String::new() } else { format!("; nearest: {}", near.join(", ")) }
}

impl Error {
    /// The cause.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Malformed { .. } => Cause::Damaged,
            Self::UnknownFormat { .. } | Self::Unsupported { .. } | Self::TooLarge { .. } => {
                Cause::Unsupported
            }
        }
    }

    /// The error for a text of which the first `len` bytes were left out.
    pub(crate) fn after(self, len: usize) -> Self {
        match self {
            Self::Malformed { what, at } => Self::Malformed { what, at: at + len },
            error => error,
        }
    }
}
