//! The parts of an image that a second reading of its debug information starts from.

use std::sync::Arc;

use gimli::{Dwarf, UnitHeader};

use super::{Image, Reader};
use crate::symbol_map::SymbolMap;

/// A split unit: one whose debug information is in a file of its own, or in a package of such files.
pub struct SplitUnit<'d> {
    /// Where the header of its skeleton lies in the image's `.debug_info`.
    pub skeleton: usize,
    /// The sections of its file; if that is a package, those of the unit.
    pub dwarf: Arc<Dwarf<Reader<'d>>>,
    /// Its header.
    pub header: UnitHeader<Reader<'d>, usize>,
    /// The number of its file. Units with the same number share `dwarf`.
    pub file: u32,
}

impl<'d> Image<'d> {
    /// The bytes of the slice, and then those of the other files that the image was joined of. Empty for an image in a
    /// shared cache.
    #[must_use]
    pub fn files(&self) -> &[&'d [u8]] {
        &self.files
    }

    /// The split units that were found, in no particular order.
    pub fn split_units(&self) -> impl Iterator<Item = SplitUnit<'d>> {
        self.splits.iter().map(|(skeleton, split)| SplitUnit {
            skeleton: *skeleton,
            dwarf: Arc::clone(&split.dwarf),
            header: split.header,
            file: split.file,
        })
    }

    /// The map of hidden names, if the image has one.
    #[must_use]
    pub fn symbol_map(&self) -> Option<&'d SymbolMap> {
        self.symbol_map
    }
}
