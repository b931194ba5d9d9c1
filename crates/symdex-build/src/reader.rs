//! The type that gimli reads debug sections from.

use gimli::{EndianSlice, LittleEndian};

/// Bytes in memory. Every architecture that crash reports come from is little-endian.
pub(crate) type Reader<'d> = EndianSlice<'d, LittleEndian>;
