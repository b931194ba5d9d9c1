//! How much an index knows.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The most that an index answers ([`Metadata::grade`](crate::Metadata::grade)), or what an answer for one address has.
/// A greater grade knows more. Lookups ask further sources of an image while the grade is below [`Grade::Lines`], and a
/// store keeps the index of the greater grade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub enum Grade {
    /// No function.
    #[default]
    Nothing,
    /// Where functions start and end, without names, as most functions of a stripped binary.
    Bounds,
    /// Names of functions, without lines, as from a symbol table.
    Names,
    /// Names, files and lines, as from debug information.
    Lines,
}

impl Grade {
    /// All grades, the smallest first.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Bounds, Self::Names, Self::Lines];

    /// The word in JSON and in texts: `nothing`, `bounds`, `names` or `lines`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Bounds => "bounds",
            Self::Names => "names",
            Self::Lines => "lines",
        }
    }
}

/// The same word as [`Grade::name`].
impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
