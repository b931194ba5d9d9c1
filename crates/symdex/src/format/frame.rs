//! A stored frame: eight bytes of checksum, then the payload as one zstd frame.
//!
//! ```text
//! 0  8  XXH3-64 of: image id padded to 32 bytes | section number (u32) | index (u64) | the bytes from 8 on
//! 8  .  one zstd frame that states its content size
//! ```
//!
//! The id, the section and the index are hashed so that an intact frame in the wrong place fails as well.

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64, xxh3_64_with_seed};
use zstd::dict::DecoderDictionary;
use zstd::{bulk, zstd_safe};

use super::dictionary::unusable_dictionary;
use super::{Cursor, SectionKind};
use crate::error::{Error, Place};
use crate::image::ImageId;

/// Bytes of checksum before each payload.
pub(crate) const CHECKSUM_SIZE: usize = 8;

/// What a frame is and where it stands: the part of its checksum that is not its bytes.
#[derive(Clone, Copy)]
pub(crate) struct FrameKey<'a> {
    pub(crate) id: &'a ImageId,
    pub(crate) section: SectionKind,
    pub(crate) index: u64,
}

impl FrameKey<'_> {
    pub(crate) fn place(&self) -> Place {
        Place { section: self.section, index: self.index }
    }

    pub(crate) fn malformed(&self, what: &'static str) -> Error {
        Error::Malformed { place: self.place(), what }
    }

    /// The checksum of `stored`, which is whatever follows the checksum on disk.
    pub(crate) fn checksum(&self, stored: &[u8]) -> u64 {
        let mut hash = Xxh3Default::new();
        hash.update(self.id.padded());
        hash.update(&(self.section as u32).to_le_bytes());
        hash.update(&self.index.to_le_bytes());
        hash.update(stored);
        hash.digest()
    }

    /// The checksum of a page: XXH3-64 of its bytes, with XXH3-64 of: image id padded to 32 bytes | section number (u32) | index (u64) for a
    /// seed.
    pub(crate) fn page_checksum(&self, page: &[u8]) -> u64 {
        let mut place = [0; ImageId::MAX_LEN + 12];
        let (id, number) = place.split_at_mut(ImageId::MAX_LEN);
        let (section, index) = number.split_at_mut(4);
        id.copy_from_slice(self.id.padded());
        section.copy_from_slice(&(self.section as u32).to_le_bytes());
        index.copy_from_slice(&self.index.to_le_bytes());
        xxh3_64_with_seed(page, xxh3_64(&place))
    }

    /// The bytes behind the checksum at the front of `frame`, once that matches.
    pub(crate) fn checked<'f>(&self, frame: &'f [u8]) -> Result<&'f [u8], Error> {
        let mut cursor = Cursor::new(frame);
        let expected = cursor.u64().ok_or_else(|| self.malformed("shorter than a checksum"))?;
        let stored = frame.get(CHECKSUM_SIZE..).unwrap_or_default();
        if self.checksum(stored) != expected {
            return Err(Error::Checksum { place: self.place() });
        }
        Ok(stored)
    }

    /// Appends `stored` with its checksum before it.
    pub(crate) fn append(&self, out: &mut Vec<u8>, stored: &[u8]) {
        out.extend_from_slice(&self.checksum(stored).to_le_bytes());
        out.extend_from_slice(stored);
    }
}

/// Compresses payloads into frames; made once and used for many, as zstd's own set-up is not free.
pub(crate) struct Compressor<'d> {
    zstd: bulk::Compressor<'d>,
}

impl<'d> Compressor<'d> {
    /// A compressor at zstd's `level`.
    pub(crate) fn new(level: i32) -> Result<Self, Error> {
        Ok(Self { zstd: bulk::Compressor::new(level)? })
    }

    /// A compressor that makes use of a prepared dictionary.
    pub(crate) fn with_dictionary(dictionary: &'d zstd::dict::EncoderDictionary<'d>) -> Result<Self, Error> {
        Ok(Self { zstd: bulk::Compressor::with_prepared_dictionary(dictionary)? })
    }

    /// `payload` as a stored frame.
    pub(crate) fn frame(&mut self, key: FrameKey<'_>, payload: &[u8]) -> Result<Vec<u8>, Error> {
        if payload.len() > key.section.max_payload() {
            return Err(Error::Unwritable {
                what: "a chunk or a string block is larger than the format allows",
            });
        }
        let compressed = self.zstd.compress(payload)?;
        let mut frame = Vec::with_capacity(CHECKSUM_SIZE + compressed.len());
        key.append(&mut frame, &compressed);
        Ok(frame)
    }
}

/// Checks and decompresses frames.
pub(crate) struct Decompressor<'d> {
    zstd: bulk::Decompressor<'d>,
}

impl Decompressor<'static> {
    /// A decompressor for frames made without a dictionary.
    pub(crate) fn plain() -> Result<Self, Error> {
        Ok(Self { zstd: bulk::Decompressor::new()? })
    }

    /// A decompressor for frames made with `dictionary`, which it copies; an empty one is none.
    pub(crate) fn with_dictionary(dictionary: &[u8]) -> Result<Self, Error> {
        let zstd = bulk::Decompressor::with_dictionary(dictionary);
        Ok(Self { zstd: zstd.map_err(|_| unusable_dictionary())? })
    }
}

impl<'d> Decompressor<'d> {
    /// A decompressor for frames made with a dictionary that is prepared already.
    pub(crate) fn with_prepared(dictionary: &'d DecoderDictionary<'static>) -> Result<Self, Error> {
        Ok(Self { zstd: bulk::Decompressor::with_prepared_dictionary(dictionary)? })
    }

    /// The payload of a stored frame.
    pub(crate) fn payload(&mut self, key: FrameKey<'_>, frame: &[u8]) -> Result<Vec<u8>, Error> {
        let max_payload = key.section.max_payload();
        // Before the checksum, which takes time in proportion.
        if frame.len() > CHECKSUM_SIZE + zstd_safe::compress_bound(max_payload) {
            return Err(key.malformed("larger than the format allows"));
        }
        let stored = key.checked(frame)?;
        let size = match zstd_safe::get_frame_content_size(stored) {
            Ok(Some(size)) => size,
            _ => return Err(key.malformed("not a zstd frame that states its content size")),
        };
        let size = usize::try_from(size).ok().filter(|size| *size <= max_payload);
        let size = size.ok_or_else(|| key.malformed("claims a larger payload than the format allows"))?;
        let payload =
            self.zstd.decompress(stored, size).map_err(|_| key.malformed("zstd cannot decompress it"))?;
        if payload.len() != size {
            return Err(key.malformed("its payload is shorter than it claims"));
        }
        Ok(payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_round_trips_and_only_in_its_own_place() {
        let id = ImageId::new(&[7; 16]).expect("16 bytes are an id");
        let key = FrameKey { id: &id, section: SectionKind::Names, index: 3 };
        let mut compressor = Compressor::new(3).expect("zstd has level 3");
        let frame = compressor.frame(key, b"payload payload payload").expect("small enough");
        let mut decompressor = Decompressor::plain().expect("memory for a decompressor");
        assert_eq!(decompressor.payload(key, &frame).expect("intact"), b"payload payload payload");

        let other_id = ImageId::new(&[8; 16]).expect("16 bytes are an id");
        for wrong in [
            FrameKey { index: 4, ..key },
            FrameKey { section: SectionKind::Files, ..key },
            FrameKey { id: &other_id, ..key },
        ] {
            assert!(matches!(decompressor.payload(wrong, &frame), Err(Error::Checksum { .. })));
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_noticed() {
        let id = ImageId::new(&[7; 20]).expect("20 bytes are an id");
        let key = FrameKey { id: &id, section: SectionKind::DwarfStructure, index: 0 };
        let frame = Compressor::new(3).expect("level 3").frame(key, &[42; 100]).expect("small enough");
        let mut decompressor = Decompressor::plain().expect("memory for a decompressor");
        for len in 0..frame.len() {
            assert!(decompressor.payload(key, &frame[..len]).is_err_and(|error| error.is_damage()));
        }
        for at in 0..frame.len() {
            let mut changed = frame.clone();
            changed[at] ^= 1;
            assert!(matches!(decompressor.payload(key, &changed), Err(Error::Checksum { .. })));
        }
    }

    #[test]
    fn a_payload_that_claims_too_much_is_refused_before_it_is_allocated() {
        let id = ImageId::new(&[7; 16]).expect("16 bytes are an id");
        let key = FrameKey { id: &id, section: SectionKind::Names, index: 0 };
        // A zstd frame header with an 8-byte content size of 1 TiB and no blocks.
        let bomb = [0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0];
        let mut frame = Vec::new();
        key.append(&mut frame, &bomb);
        let error = Decompressor::plain()
            .expect("memory for a decompressor")
            .payload(key, &frame)
            .expect_err("a bomb");
        assert!(error.to_string().contains("claims a larger payload"), "{error}");
    }
}
