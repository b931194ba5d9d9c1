//! Reads the readable names of an index, an optional section.
//!
//! ```text
//!  0  4  number of readable names
//!  4 12  for each 64 names: how many names before them have a readable name, and a bit for each of the 64
//!  .     the readable names, in the form of the section of names
//! ```

use super::{NameLayout, NameReader};
use crate::error::Error;
use crate::format::PageReader;

/// How many names share an entry of the first table.
pub(crate) const RANKED: u32 = 64;
/// Bits of the count in such an entry.
pub(crate) const RANK_BITS: u32 = 32;
/// Bytes of such an entry.
pub(crate) const RANK_SIZE: usize = 12;
/// Where the entries begin.
const RANKS_AT: usize = 4;

/// The section's head, and values derived from it.
#[derive(Debug)]
pub(crate) struct ReadableLayout {
    /// The names of the index, with a readable name or without.
    names: u32,
    readable: NameLayout,
}

impl ReadableLayout {
    /// Reads the layout of the section of an index with this many names.
    pub(crate) fn decode(pages: &PageReader<'_>, names: u64) -> Result<Self, Error> {
        let malformed = |what| pages.malformed(0, what);
        let count = pages.bits(0, 0, RANK_BITS)?;
        let names = u32::try_from(names).map_err(|_| malformed("more names than the format allows"))?;
        if count > u64::from(names) {
            return Err(malformed("more readable names than names"));
        }
        let at = (names.div_ceil(RANKED) as usize).checked_mul(RANK_SIZE);
        let at = at.and_then(|size| size.checked_add(RANKS_AT));
        let at = at.ok_or_else(|| malformed("more names than memory can have"))?;
        Ok(Self { names, readable: NameLayout::decode(pages, at, count)? })
    }
}

/// The readable names of an index.
#[derive(Clone, Copy)]
pub(crate) struct ReadableReader<'a> {
    pub(crate) layout: &'a ReadableLayout,
    pub(crate) pages: PageReader<'a>,
}

impl<'a> ReadableReader<'a> {
    fn strings(&self) -> NameReader<'a> {
        NameReader { layout: &self.layout.readable, pages: self.pages }
    }

    /// Appends the readable name of name `id` to `out`. Returns false if the name has none.
    pub(crate) fn append(&self, id: u32, out: &mut Vec<u8>) -> Result<bool, Error> {
        let place = self.place(id)?;
        if let Some(place) = place {
            self.strings().append(place, out)?;
        }
        Ok(place.is_some())
    }

    /// The number of the readable name of name `id` among the readable names. `None` if the name has none.
    fn place(&self, id: u32) -> Result<Option<u32>, Error> {
        if id >= self.layout.names {
            return Err(self.pages.malformed(0, "a readable name of no name"));
        }
        let (before, bits) = self.group(id / RANKED)?;
        let here = bits << (id % RANKED);
        // In two steps, because a shift by 64 overflows.
        let earlier = bits >> 1 >> (RANKED - 1 - id % RANKED);
        let place = before.checked_add(earlier.count_ones());
        match (here >> (RANKED - 1), place) {
            (0, _) => Ok(None),
            (_, Some(place)) => Ok(Some(place)),
            (_, None) => Err(self.pages.malformed(0, "too many readable names")),
        }
    }

    /// The entry of `RANKED` names: how many readable names are before them, and a bit for each, the first one highest.
    fn group(&self, group: u32) -> Result<(u32, u64), Error> {
        let at = RANKS_AT + group as usize * RANK_SIZE;
        let bytes = self.pages.bytes(at..at + RANK_SIZE)?;
        let parts = bytes.split_first_chunk().and_then(|(before, bits)| Some((before, bits.first_chunk()?)));
        let (before, bits) = parts.ok_or_else(|| self.pages.malformed(at, "an entry is cut short"))?;
        Ok((u32::from_be_bytes(*before), u64::from_be_bytes(*bits)))
    }

    /// Checks all of the section. Returns how many pages it has.
    pub(crate) fn verify(&self) -> Result<u64, Error> {
        let pages = self.strings().verify()?;
        let mut count = 0;
        for group in 0..self.layout.names.div_ceil(RANKED) {
            let malformed = |what| {
                let at = RANKS_AT + group as usize * RANK_SIZE;
                Err(self.pages.malformed(at, what))
            };
            let (before, bits) = self.group(group)?;
            if before != count {
                return malformed("the readable names before some names are counted wrong");
            }
            let beyond = (group + 1).saturating_mul(RANKED).saturating_sub(self.layout.names);
            if beyond > bits.trailing_zeros() {
                return malformed("a readable name of no name");
            }
            count += bits.count_ones();
        }
        if count != self.layout.readable.names {
            return Err(self.pages.malformed(0, "readable names that belong to no name"));
        }
        Ok(pages)
    }
}
