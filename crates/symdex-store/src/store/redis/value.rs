//! A value of an image in Redis: a part of its index.
//!
//! A value is an index of a part of the image, as one zstd frame that states its size, with a
//! [checksum](super::seal) over the image id, the digest of the whole index and the number of the value. So it can be
//! copied to another generation of the same index.

use symdex::{Cause, ImageId, Index};

use super::record::Record;
use super::seal::{seal, unseal};
use crate::buffer::IndexBytes;
use crate::error::{Error, cause_of_stored};

/// No value has more bytes, compressed or not. The largest of a real image has less than 1 MiB.
const MAX_SIZE: usize = 64 << 20;

/// Identifies a value.
#[derive(Clone, Copy)]
pub(super) struct ValueName<'i> {
    pub(super) id: &'i ImageId,
    pub(super) digest: [u8; 16],
    pub(super) number: u64,
}

impl<'i> ValueName<'i> {
    pub(super) fn new(record: &'i Record, number: u64) -> Self {
        Self { id: &record.metadata.id, digest: record.digest, number }
    }

    /// Compresses `index`, a part of the image.
    pub(super) fn compress(self, index: &[u8], level: i32) -> std::io::Result<Vec<u8>> {
        if index.len() > MAX_SIZE {
            return Err(std::io::Error::other("a part of the index takes more than 64 MiB"));
        }
        Ok(seal(&self.text(), &zstd::bulk::compress(index, level)?))
    }

    /// The compressed bytes in `value`; `None` if they are damaged or those of another value.
    pub(super) fn frame(self, value: &[u8]) -> Option<&[u8]> {
        unseal(&self.text(), value)
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
        if index.id() == self.id { Ok(index) } else { Err(damaged("it is of another image")) }
    }

    fn text(self) -> String {
        format!("{}/{:032x}/{}", self.id, u128::from_be_bytes(self.digest), self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_indexes;

    #[test]
    fn a_value_opens_as_compressed_and_only_at_its_place() {
        let index = test_indexes::index(0xab, 3, 4, "x");
        let name = ValueName { id: index.id(), digest: [1; 16], number: 2 };
        let value = name.compress(index.as_bytes(), 19).expect("compressed");
        assert!(value.len() < index.as_bytes().len());
        assert_eq!(name.open(&value, "here").expect("as written").digest(), index.digest());
        let id = ImageId::new(&[1]).expect("an id");
        let others = [
            ValueName { id: &id, ..name },
            ValueName { digest: [2; 16], ..name },
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
        let name = ValueName { id: index.id(), digest: [1; 16], number: 2 };
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
        let name = ValueName { id: index.id(), digest: [1; 16], number: 2 };
        let seal = |frame: Vec<u8>| seal(&name.text(), &frame);
        let bomb = seal(zstd::bulk::compress(&vec![0; MAX_SIZE + 1], 1).expect("compressed"));
        let error = name.open(&bomb, "here").expect_err("too large");
        assert!(error.to_string().contains("64 MiB"), "{error}");
        let wrong = seal(zstd::bulk::compress(b"no index", 1).expect("compressed"));
        assert!(name.open(&wrong, "here").expect_err("no index").cause().is_damage());
    }
}
