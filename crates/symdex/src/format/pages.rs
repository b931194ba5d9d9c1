//! Pages: a section is read in small parts, and the checksum of a part is verified before its first read.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::SectionKind;
use crate::error::{Error, ErrorLocation};
use crate::image::ImageId;
use crate::names::low_half;

/// Bytes of a checksum.
pub(crate) const CHECKSUM_SIZE: usize = 4;

/// Computes the checksums of one section of one image's index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checksums {
    /// The CRC-32 of the image id, padded to 32 bytes, and the number of the section (u32).
    section: u32,
}

impl Checksums {
    pub(crate) fn new(id: &ImageId, section: SectionKind) -> Self {
        let mut crc = crc32fast::Hasher::new();
        crc.update(id.padded());
        crc.update(&(section as u32).to_le_bytes());
        Self { section: crc.finalize() }
    }

    /// The CRC-32 of `stored`, xored with that of id and section, and with the lower half of `index`. So intact bytes
    /// in another place fail, too.
    pub(crate) fn of(self, index: u64, stored: &[u8]) -> [u8; CHECKSUM_SIZE] {
        (crc32fast::hash(stored) ^ self.section ^ low_half(index)).to_le_bytes()
    }
}

/// Bytes of a page; the last one may have fewer. Smaller pages are checked faster, and their checksums take more of
/// the file.
pub(crate) const PAGE_SIZE: usize = 1 << 9;

/// Bytes that the checksums of a section of `size` bytes take.
pub(crate) fn checksums_size(size: u64) -> u64 {
    size.div_ceil(PAGE_SIZE as u64) * CHECKSUM_SIZE as u64
}

/// The intact pages, one bit each. Two threads that check one page at the same time get the same result.
#[derive(Debug)]
pub(crate) struct PageChecks {
    bits: Vec<AtomicU64>,
}

impl PageChecks {
    /// The checks of a section of `size` bytes before any page is checked. All bytes of the section are in memory. If
    /// there were more pages than memory can have, none would be remembered.
    pub(crate) fn new(size: u64) -> Self {
        let pages = usize::try_from(size.div_ceil(PAGE_SIZE as u64)).unwrap_or(0);
        let bits = std::iter::repeat_with(AtomicU64::default).take(pages.div_ceil(64)).collect();
        Self { bits }
    }
}

/// A section, and what it takes to check its pages.
#[derive(Clone, Copy)]
pub(crate) struct PageReader<'a> {
    pub(crate) kind: SectionKind,
    pub(crate) section: &'a [u8],
    pub(crate) sums: Checksums,
    pub(crate) checksums: &'a [u8],
    pub(crate) checked: &'a PageChecks,
}

impl<'a> PageReader<'a> {
    /// The bytes of `range`, whose pages are intact.
    #[inline]
    pub(crate) fn bytes(&self, range: Range<usize>) -> Result<&'a [u8], Error> {
        self.check_range(range.clone())?;
        self.section.get(range.clone()).ok_or_else(|| self.malformed(range.start, "it ends too early"))
    }

    /// Checks the pages of `range`, which lies in the section.
    #[inline]
    pub(crate) fn check_range(&self, range: Range<usize>) -> Result<(), Error> {
        // An empty range lies in no page.
        if range.end <= range.start {
            return Ok(());
        }
        let (first, last) = (range.start / PAGE_SIZE, (range.end - 1) / PAGE_SIZE);
        if self.is_checked(first) && (first == last || self.is_checked(last) && last == first + 1) {
            return Ok(());
        }
        self.check_pages(first, last)
    }

    /// The `LEN` bytes at `start`. Returns `None` if there are fewer or a page of them was not checked yet.
    #[inline(always)]
    pub(crate) fn checked<const LEN: usize>(&self, start: usize) -> Option<&'a [u8; LEN]> {
        let bytes = self.section.get(start..)?.first_chunk()?;
        let page = start / PAGE_SIZE;
        let is_checked =
            self.is_checked(page) && (start % PAGE_SIZE <= PAGE_SIZE - LEN || self.is_checked(page + 1));
        is_checked.then_some(bytes)
    }

    /// Reads `count` bits, at most 56, from `at` bits after the start of byte `start` on.
    #[inline(always)]
    pub(crate) fn bits(&self, start: usize, at: u64, count: u32) -> Result<u64, Error> {
        // Beyond the address space is beyond the section, which is an error below.
        let first = start.saturating_add(usize::try_from(at / 8).unwrap_or(usize::MAX));
        let word = match self.checked(first) {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => self.word(first, (at % 8 + u64::from(count)).div_ceil(8))?,
        };
        Ok(word << (at % 8) >> 1 >> (63 - count))
    }

    /// Reads the `count` bytes from `first` on, at most eight, as the highest bytes of a number.
    #[cold]
    fn word(&self, first: usize, count: u64) -> Result<u64, Error> {
        // As in `bits`.
        let end = first.saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
        let mut word = [0; 8];
        word.iter_mut().zip(self.bytes(first..end)?).for_each(|(to, from)| *to = *from);
        Ok(u64::from_be_bytes(word))
    }

    /// Checks all pages. Returns how many there are.
    pub(crate) fn verify(&self) -> Result<u64, Error> {
        let pages = self.section.len().div_ceil(PAGE_SIZE);
        (0..pages).try_for_each(|page| self.check_page(page)).map(|()| pages as u64)
    }

    /// The error for the page with byte `at`.
    #[cold]
    pub(crate) fn malformed(&self, at: usize, what: &'static str) -> Error {
        self.location(at / PAGE_SIZE).malformed(what)
    }

    fn location(&self, page: usize) -> ErrorLocation {
        ErrorLocation { section: self.kind, index: page as u64 }
    }

    /// Whether a page was found intact before.
    #[inline(always)]
    fn is_checked(&self, page: usize) -> bool {
        let word = self.checked.bits.get(page / 64);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (page % 64) & 1 != 0)
    }

    #[cold]
    fn check_pages(&self, first: usize, last: usize) -> Result<(), Error> {
        let mut pages = (first..=last).filter(|page| !self.is_checked(*page));
        pages.try_for_each(|page| self.check_page(page))
    }

    fn check_page(&self, page: usize) -> Result<(), Error> {
        let start = page.saturating_mul(PAGE_SIZE);
        let bytes = self.section.get(start..).filter(|rest| !rest.is_empty());
        let bytes = bytes.ok_or_else(|| self.malformed(start, "it ends too early"))?;
        let location = self.location(page);
        let stored = self.checksums.get(page * CHECKSUM_SIZE..).and_then(<[u8]>::first_chunk);
        let stored = *stored.ok_or_else(|| location.malformed("it has no checksum"))?;
        if self.sums.of(location.index, bytes.get(..PAGE_SIZE).unwrap_or(bytes)) != stored {
            return Err(Error::Checksum { location });
        }
        if let Some(word) = self.checked.bits.get(page / 64) {
            word.fetch_or(1 << (page % 64), Ordering::Relaxed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_accepted_in_their_own_place_only() {
        let [id, other_id] = [[7; 16], [8; 16]].map(|id| ImageId::new(&id).expect("16 bytes are an id"));
        let sums = Checksums::new(&id, SectionKind::NamePage);
        // As Python's zlib.crc32 computes it.
        let expected = 0xdbe5_49a0_u32.to_le_bytes();
        assert_eq!(sums.of(3, b"payload"), expected);
        let wrong = [
            sums.of(4, b"payload"),
            sums.of(3, b"paxload"),
            sums.of(3, b"payloa"),
            Checksums::new(&id, SectionKind::FilePage).of(3, b"payload"),
            Checksums::new(&other_id, SectionKind::NamePage).of(3, b"payload"),
        ];
        assert!(wrong.iter().all(|wrong| *wrong != expected), "{wrong:?}");
    }
}
