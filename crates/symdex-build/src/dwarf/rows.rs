//! Line rows, and the registers of a line program that they are made of.

use symdex::write::NonMaxU32;

/// A row and its address range, as image offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Index into the unit's file table, or any number above its length.
    pub(crate) file: u32,
    /// The line, which may be 0. `None` if it does not fit.
    pub(crate) line: Option<NonMaxU32>,
    pub(crate) is_stmt: bool,
    /// The column; 0 if it is not stated.
    pub(crate) column: u16,
    /// The number of its sequence in the unit.
    pub(crate) sequence: u32,
}

/// The end of a sequence, with the file and line of its `end_sequence` row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SequenceEnd {
    pub(crate) at: u32,
    pub(crate) file: u32,
    pub(crate) line: Option<NonMaxU32>,
}

/// The registers that rows are made of (DWARF 5, 6.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    /// An SVMA.
    pub(crate) address: u64,
    /// The file index, or `u32::MAX` if it does not fit.
    pub(crate) file: u32,
    pub(crate) line: u64,
    pub(crate) column: u16,
    pub(crate) is_stmt: bool,
}

/// A column as rows have it: the lowest 16 bits of the stated one, as in llvm-symbolizer.
pub(crate) fn column(stated: u64) -> u16 {
    let [low, high, ..] = stated.to_le_bytes();
    u16::from_le_bytes([low, high])
}

/// A file index as rows have it. An index that does not fit becomes `u32::MAX`; no file table is that long.
pub(crate) fn file(index: u64) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
