//! What the metadata counts: items of the index, what its builder found, and what is missing.

use serde::{Deserialize, Serialize};

/// The number of items in an index, and of what it was made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct Counts {
    /// Compile units that were read.
    pub units: u64,
    /// Functions that own at least one range of the `dwarf` table.
    pub functions: u64,
    /// Ranges of the `dwarf` table, each counted once however many chunks it touches.
    pub ranges: u64,
    /// Ranges of the `symbol_table` table, each counted once however many chunks it touches.
    pub symbols: u64,
    /// Distinct names.
    pub names: u64,
    /// Distinct file paths.
    pub files: u64,
    /// What the builder found in the debug file.
    pub seen: Seen,
}

/// What a builder found in a debug file. It fails if it found functions, inlined calls, line rows or symbols of the
/// image and the index has none. Zero if an index is not of a whole debug file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct Seen {
    /// Functions of the debug information with code in the image. Of functions with the same code, the index has one.
    pub functions: u64,
    /// Inlined calls with code in the image.
    pub inlined: u64,
    /// Line rows with code in the image, after those of equal addresses are joined.
    pub rows: u64,
    /// Functions of the symbol table and of unwind information with code in the image.
    pub symbols: u64,
    /// Functions of the debug information whose code is not in the image: linkers drop functions and leave their debug
    /// information.
    pub functions_outside: u64,
    /// Function symbols outside of the image's code.
    pub symbols_outside: u64,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.functions += other.functions;
        self.inlined += other.inlined;
        self.rows += other.rows;
        self.symbols += other.symbols;
        self.functions_outside += other.functions_outside;
        self.symbols_outside += other.symbols_outside;
    }
}

/// One reason why an index is incomplete, and how often it occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Partial {
    /// The reason, in words.
    pub reason: String,
    /// How often.
    pub count: u64,
}

impl Partial {
    /// `reason` came up `count` times.
    #[must_use]
    pub fn new(reason: impl Into<String>, count: u64) -> Self {
        Self { reason: reason.into(), count }
    }
}
