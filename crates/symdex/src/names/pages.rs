//! Bytes that are read here and there: each page is checked before it is read for the first time.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::error::Error;
use crate::format::{FrameKey, SectionKind};
use crate::image::ImageId;

/// Bytes of a page; the last one may have less. Smaller ones are checked faster, and their checksums take more space.
const PAGE_SIZE: usize = 1 << 10;
const CHECKSUM_SIZE: usize = 8;

/// Bytes that the checksums of a section of `size` bytes take.
pub(crate) fn pages_size(size: u64) -> u64 {
    size.div_ceil(PAGE_SIZE as u64) * CHECKSUM_SIZE as u64
}

/// Makes the checksums of the pages of a section of this kind, which comes in parts of any size.
pub(crate) struct PageSums<'a> {
    id: &'a ImageId,
    kind: SectionKind,
    /// The page that is not full yet.
    page: Vec<u8>,
    checksums: Vec<u8>,
}

impl<'a> PageSums<'a> {
    pub(crate) fn new(id: &'a ImageId, kind: SectionKind) -> Self {
        Self { id, kind, page: Vec::with_capacity(PAGE_SIZE), checksums: Vec::new() }
    }

    /// The checksums of a section that is there as a whole.
    pub(crate) fn of(id: &'a ImageId, kind: SectionKind, section: &[u8]) -> Vec<u8> {
        let mut sums = Self::new(id, kind);
        sums.add(section);
        sums.finish()
    }

    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PAGE_SIZE - self.page.len()));
            self.page.extend_from_slice(now);
            if self.page.len() == PAGE_SIZE {
                self.close();
            }
            bytes = later;
        }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        if !self.page.is_empty() {
            self.close();
        }
        self.checksums
    }

    fn close(&mut self) {
        let index = (self.checksums.len() / CHECKSUM_SIZE) as u64;
        let key = FrameKey { id: self.id, section: self.kind, index };
        self.checksums.extend(key.page_checksum(&self.page).to_le_bytes());
        self.page.clear();
    }
}

/// Which pages were found to be intact, a bit for each. Threads that check one page at the same time find the same.
#[derive(Debug)]
pub(crate) struct PageChecks {
    bits: Vec<AtomicU64>,
    /// Pages that are not found intact yet: readers that have read all of them need not look at the bits.
    left: AtomicUsize,
}

impl PageChecks {
    /// No page of a section of `size` bytes, all of which are there, is checked yet.
    pub(crate) fn new(size: u64) -> Self {
        let pages = usize::try_from(size.div_ceil(PAGE_SIZE as u64)).unwrap_or(usize::MAX);
        let bits = std::iter::repeat_with(AtomicU64::default).take(pages.div_ceil(64)).collect();
        Self { bits, left: AtomicUsize::new(pages) }
    }
}

/// A section, and what it takes to check its pages.
#[derive(Clone, Copy)]
pub(crate) struct PageReader<'a> {
    pub(crate) id: &'a ImageId,
    pub(crate) kind: SectionKind,
    pub(crate) section: &'a [u8],
    pub(crate) checksums: &'a [u8],
    pub(crate) checked: &'a PageChecks,
}

impl<'a> PageReader<'a> {
    /// The bytes of `range`, whose pages are intact.
    #[inline]
    pub(crate) fn bytes(&self, range: Range<usize>) -> Result<&'a [u8], Error> {
        // What is empty lies in no page, and may lie behind the last.
        if range.end > range.start {
            self.check(range.start)?;
            self.check(range.end - 1)?;
            // Nearly all are shorter than a page, and counting steps divides.
            if range.len() > PAGE_SIZE {
                (range.start + PAGE_SIZE..range.end).step_by(PAGE_SIZE).try_for_each(|at| self.check(at))?;
            }
        }
        self.section.get(range.clone()).ok_or_else(|| self.malformed(range.start, "it ends too early"))
    }

    /// Appends the `len` bytes at `start`, at most a page of them, to `out`.
    #[inline]
    pub(crate) fn append(&self, start: usize, len: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        if let Some(bytes) = self.intact::<16>(start).filter(|_| len <= 16) {
            // Sixteen bytes are copied faster than a few.
            let before = out.len();
            out.extend_from_slice(bytes);
            out.truncate(before + len);
        } else {
            out.extend_from_slice(self.bytes(start..start + len)?);
        }
        Ok(())
    }

    /// The bits from bit `at` of the bytes from `start` on, lowest first: the first `count`, at most 56, are intact.
    #[inline]
    pub(crate) fn bits(&self, start: usize, at: u64, count: u32) -> Result<u64, Error> {
        let first = start.saturating_add(usize::try_from(at / 8).unwrap_or(usize::MAX));
        let skip = at % 8;
        match self.intact(first) {
            Some(bytes) => Ok(u64::from_le_bytes(*bytes) >> skip),
            None => self.word(first, (skip + u64::from(count)).div_ceil(8)).map(|word| word >> skip),
        }
    }

    /// The `LEN` bytes at `start`, if there are so many and all of them are known to be intact.
    #[inline]
    fn intact<const LEN: usize>(&self, start: usize) -> Option<&'a [u8; LEN]> {
        let bytes = self.section.get(start..)?.first_chunk()?;
        let is_intact = self.is_checked(start)
            && (start % PAGE_SIZE <= PAGE_SIZE - LEN || self.is_checked(start + LEN - 1));
        is_intact.then_some(bytes)
    }

    /// The `count` bytes from `first` on, at most eight, as a number.
    #[cold]
    fn word(&self, first: usize, count: u64) -> Result<u64, Error> {
        let end = first.saturating_add(usize::try_from(count).unwrap_or(usize::MAX));
        Ok(self.bytes(first..end)?.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
    }

    /// Checks all pages, and says how many there are.
    pub(crate) fn verify(&self) -> Result<u64, Error> {
        let pages = self.section.len().div_ceil(PAGE_SIZE);
        (0..pages).try_for_each(|page| self.check_page(page)).map(|()| pages as u64)
    }

    #[cold]
    pub(crate) fn malformed(&self, at: usize, what: &'static str) -> Error {
        self.key((at / PAGE_SIZE) as u64).malformed(what)
    }

    fn key(&self, index: u64) -> FrameKey<'a> {
        FrameKey { id: self.id, section: self.kind, index }
    }

    /// Checks the page that holds byte `at`, unless that was done before.
    #[inline]
    fn check(&self, at: usize) -> Result<(), Error> {
        if self.is_checked(at) { Ok(()) } else { self.check_page(at / PAGE_SIZE) }
    }

    /// Whether byte `at` is known to be intact, or is not there.
    #[inline]
    fn is_checked(&self, at: usize) -> bool {
        let page = at / PAGE_SIZE;
        // What lies behind the last page, no slice gives.
        self.checked.left.load(Ordering::Relaxed) == 0
            || self
                .checked
                .bits
                .get(page / 64)
                .is_some_and(|word| word.load(Ordering::Relaxed) >> (page % 64) & 1 != 0)
    }

    #[cold]
    fn check_page(&self, page: usize) -> Result<(), Error> {
        let start = page.saturating_mul(PAGE_SIZE);
        let bytes = self.section.get(start..).filter(|rest| !rest.is_empty());
        let bytes = bytes.ok_or_else(|| self.malformed(start, "it ends too early"))?;
        let key = self.key(page as u64);
        let stored = self.checksums.chunks_exact(CHECKSUM_SIZE).nth(page).and_then(<[u8]>::first_chunk);
        let stored = stored.ok_or_else(|| key.malformed("it has no checksum"))?;
        if key.page_checksum(bytes.get(..PAGE_SIZE).unwrap_or(bytes)) != u64::from_le_bytes(*stored) {
            return Err(Error::Checksum { place: key.place() });
        }
        if let Some(word) = self.checked.bits.get(page / 64) {
            let bit = 1 << (page % 64);
            if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
                self.checked.left.fetch_sub(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}
