//! The causes of errors.

use std::io;

use serde::{Deserialize, Serialize};

/// Why something failed. Every error of symdex has one. Exit codes, words in JSON and the kinds of errors of other
/// languages are tables over it.
///
/// The least grave cause comes first. If several things failed, the gravest cause decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Everything could be read, but it does not have what was asked for, such as an address or an architecture.
    NotFound,
    /// An argument is wrong.
    Usage,
    /// Any other failure, for example a folder that cannot be written.
    Other,
    /// A store or server cannot be reached or is overloaded. The same call may succeed later.
    Unavailable,
    /// A limit of memory, time or size is exceeded.
    Limit,
    /// A file that was named, or that is needed, does not exist.
    Missing,
    /// A file is of a kind or version that symdex does not read.
    Unsupported,
    /// A store has lost an index, or a part of it. Putting the index into the store again helps.
    Lost,
    /// A file, an index or a report is damaged. Copying or building it again helps.
    Damaged,
}

impl Cause {
    /// The word in JSON: `not_found`, `usage`, `other`, `unavailable`, `limit`, `missing`, `unsupported`, `lost` or
    /// `damaged`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Usage => "usage",
            Self::Other => "other",
            Self::Unavailable => "unavailable",
            Self::Limit => "limit",
            Self::Missing => "missing",
            Self::Unsupported => "unsupported",
            Self::Lost => "lost",
            Self::Damaged => "damaged",
        }
    }

    /// Whether an index is damaged or partly lost, so that building or copying it again helps.
    #[must_use]
    pub fn is_damage(self) -> bool {
        matches!(self, Self::Lost | Self::Damaged)
    }

    /// The cause of an error of reading a file.
    #[must_use]
    pub fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            _ => Self::Other,
        }
    }
}
