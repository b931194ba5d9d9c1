//! The checksums of pages, as a section is written.

use crate::format::pages::PAGE_SIZE;
use crate::format::{Checksums, SectionKind};
use crate::image::ImageId;

/// Computes the checksums of a section's pages. The section is added in parts of any size.
pub(crate) struct PageSums {
    sums: Checksums,
    /// The page that is not full yet.
    page: Vec<u8>,
    /// How many pages are full.
    pages: u64,
    checksums: Vec<u8>,
}

impl PageSums {
    pub(crate) fn new(id: &ImageId, kind: SectionKind) -> Self {
        Self {
            sums: Checksums::new(id, kind),
            page: Vec::with_capacity(PAGE_SIZE),
            pages: 0,
            checksums: Vec::new(),
        }
    }

    /// The checksums of a section that is in memory as a whole.
    pub(crate) fn of(id: &ImageId, kind: SectionKind, section: &[u8]) -> Vec<u8> {
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
        self.checksums.extend(self.sums.of(self.pages, &self.page));
        self.page.clear();
        self.pages += 1;
    }
}
