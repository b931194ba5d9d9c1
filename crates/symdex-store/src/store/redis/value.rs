//! A value of an image in Redis: a part of its index.
//!
//! Eight bytes are the XXH3-64, little-endian, of the image id as text, the generation, the number and the rest of the
//! value. The rest is an index of a part of the image, as one zstd frame that states its size.

use symdex::{Cause, ImageId, Index};
use xxhash_rust::xxh3::Xxh3;

use super::keys::Generation;
use crate::buffer::IndexBytes;
use crate::error::{Error, cause_of_stored};

/// No value has more bytes, compressed or not. The largest of a real image has less than 1 MiB.
const MAX_SIZE: usize = 64 << 20;
const CHECKSUM_SIZE: usize = 8;

/// Identifies a value.
#[derive(Clone, Copy)]
pub(super) struct ValueName<'i> {
    pub(super) id: &'i ImageId,
    pub(super) generation: Generation,
    pub(super) number: u64,
}

impl ValueName<'_> {
    /// Compresses `index`, a part of the image.
    pub(super) fn compress(self, index: &[u8], level: i32) -> std::io::Result<Vec<u8>> {
        if index.len() > MAX_SIZE {
            return Err(std::io::Error::other("a part of the index takes more than 64 MiB"));
        }
        Ok(self.seal(&zstd::bulk::compress(index, level)?))
    }

    /// The value whose compressed bytes are `frame`.
    pub(super) fn seal(self, frame: &[u8]) -> Vec<u8> {
        [&self.checksum(frame).to_le_bytes(), frame].concat()
    }

    /// The compressed bytes in `value`; `None` if they are damaged or those of another value.
    pub(super) fn frame(self, value: &[u8]) -> Option<&[u8]> {
        let (checksum, frame) = value.split_first_chunk::<CHECKSUM_SIZE>()?;
        (self.checksum(frame) == u64::from_le_bytes(*checksum)).then_some(frame)
    }

    /// Decompresses and opens `value`. `location` is for messages.
    pub(super) fn open(self, value: &[u8], location: &str) -> Result<Index<IndexBytes>, Error> {
        let damaged = |what: &str| {
            let what = format!("value {}: {what}", self.number);
            Error::DamagedObject { location: location.to_owned(), what }
        };
        let frame = self.frame(value).ok_or_else(|| damaged("the checksum does not match"))?;
        let size = zstd::bulk::Decompressor::upper_bound(frame).filter(|size| *size <= MAX_SIZE);
        let size = size.ok_or_else(|| damaged("it does not state its size, or states more than 64 MiB"))?;
        let bytes = zstd::bulk::decompress(frame, size).map_err(|_| damaged("it does not decompress"))?;
        let index = Index::open(IndexBytes::from(bytes)).map_err(|error| match cause_of_stored(&error) {
            Cause::Unsupported => Error::Index { path: location.into(), error },
            _ => damaged(&error.to_string()),
        })?;
        match index.id() == self.id {
            true => Ok(index),
            false => Err(damaged("it is of another image")),
        }
    }

    fn checksum(self, frame: &[u8]) -> u64 {
        let mut hash = Xxh3::new();
        hash.update(self.id.to_string().as_bytes());
        hash.update(&self.generation.0.to_le_bytes());
        hash.update(&self.number.to_le_bytes());
        hash.update(frame);
        hash.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_indexes;

    #[test]
    fn a_value_opens_as_compressed_and_only_at_its_place() {
        let index = test_indexes::index(0xab, 3, 4, "x");
        let name = ValueName { id: index.id(), generation: Generation(1), number: 2 };
        let value = name.compress(index.as_bytes(), 19).expect("compressed");
        assert!(value.len() < index.as_bytes().len());
        assert_eq!(name.open(&value, "here").expect("as written").digest(), index.digest());
        let id = ImageId::new(&[1]).expect("an id");
        let others = [
            ValueName { id: &id, ..name },
            ValueName { generation: Generation(2), ..name },
            ValueName { number: 3, ..name },
        ];
        for other in others {
            let error = other.open(&value, "here").expect_err("of another place");
            assert!(error.cause().is_damage() && error.to_string().starts_with("here: "), "{error}");
        }
    }

    #[test]
    fn every_cut_and_every_change_is_damage() {
        let index = test_indexes::index(0xab, 3, 4, "x");
        let name = ValueName { id: index.id(), generation: Generation(1), number: 2 };
        let value = name.compress(index.as_bytes(), 1).expect("compressed");
        let is_damaged = |value: &[u8]| name.open(value, "here").expect_err("damaged").cause().is_damage();
        assert!((0..value.len()).all(|len| is_damaged(&value[..len])));
        for at in 0..value.len() {
            let mut changed = value.clone();
            changed[at] ^= 1;
            assert!(is_damaged(&changed), "{at}");
        }
    }

    #[test]
    fn a_value_that_decompresses_to_too_much_is_damage() {
        let index = test_indexes::index(0xab, 3, 4, "x");
        let name = ValueName { id: index.id(), generation: Generation(1), number: 2 };
        let bomb = zstd::bulk::compress(&vec![0; MAX_SIZE + 1], 1).expect("compressed");
        let error = name.open(&name.seal(&bomb), "here").expect_err("too large");
        assert!(error.to_string().contains("64 MiB"), "{error}");
        let wrong = name.seal(&zstd::bulk::compress(b"no index", 1).expect("compressed"));
        assert!(name.open(&wrong, "here").expect_err("no index").cause().is_damage());
    }
}
