//! Checksums of stored bytes, which include the place of the bytes: intact bytes in a wrong place fail as well.

use xxhash_rust::xxh3::xxh3_64;

use super::{Cursor, SectionKind};
use crate::error::{Error, Place};
use crate::image::ImageId;

/// Bytes of the checksum before the metadata.
pub(crate) const CHECKSUM_SIZE: usize = 8;

/// Where stored bytes belong.
#[derive(Clone, Copy)]
pub(crate) struct Location<'a> {
    pub(crate) id: &'a ImageId,
    pub(crate) section: SectionKind,
    pub(crate) index: u64,
}

impl Location<'_> {
    pub(crate) fn place(&self) -> Place {
        Place { section: self.section, index: self.index }
    }

    pub(crate) fn malformed(&self, what: &'static str) -> Error {
        Error::Malformed { place: self.place(), what }
    }

    /// XXH3-64 of `stored`, xored with XXH3-64 of the location: image id padded to 32 bytes, section number (u32), index (u64).
    pub(crate) fn checksum(&self, stored: &[u8]) -> u64 {
        let mut location = [0; ImageId::MAX_LEN + 12];
        let (id, number) = location.split_at_mut(ImageId::MAX_LEN);
        let (section, index) = number.split_at_mut(4);
        id.copy_from_slice(self.id.padded());
        section.copy_from_slice(&(self.section as u32).to_le_bytes());
        index.copy_from_slice(&self.index.to_le_bytes());
        xxh3_64(stored) ^ xxh3_64(&location)
    }

    /// The bytes behind the checksum at the front of `block`.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] where they do not match it, [`Error::Malformed`] where there is no checksum.
    pub(crate) fn checked<'b>(&self, block: &'b [u8]) -> Result<&'b [u8], Error> {
        let mut cursor = Cursor::new(block);
        let expected = cursor.u64().ok_or_else(|| self.malformed("shorter than a checksum"))?;
        let stored = block.get(CHECKSUM_SIZE..).unwrap_or_default();
        if self.checksum(stored) != expected {
            return Err(Error::Checksum { place: self.place() });
        }
        Ok(stored)
    }

    /// Appends the checksum of `stored`, then `stored`.
    pub(crate) fn append(&self, out: &mut Vec<u8>, stored: &[u8]) {
        out.extend_from_slice(&self.checksum(stored).to_le_bytes());
        out.extend_from_slice(stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_accepted_in_its_own_place_only() {
        let id = ImageId::new(&[7; 16]).expect("16 bytes are an id");
        let other_id = ImageId::new(&[8; 16]).expect("16 bytes are an id");
        let location = Location { id: &id, section: SectionKind::Metadata, index: 3 };
        let mut block = Vec::new();
        location.append(&mut block, b"payload");
        assert_eq!(location.checked(&block).expect("intact"), b"payload");
        for wrong in [
            Location { index: 4, ..location },
            Location { section: SectionKind::FilePage, ..location },
            Location { id: &other_id, ..location },
        ] {
            assert!(matches!(wrong.checked(&block), Err(Error::Checksum { .. })));
        }
        for at in 0..block.len() {
            assert!(location.checked(&block[..at]).is_err_and(|error| error.is_damage()));
            let mut changed = block.clone();
            changed[at] ^= 1;
            assert!(matches!(location.checked(&changed), Err(Error::Checksum { .. })));
        }
    }
}
