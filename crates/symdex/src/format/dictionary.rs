//! The dictionary that strings of chunk values are compressed with: what many names share.
//!
//! ```text
//! 0  8  checksum, as a frame has it
//! 8  .  a zero byte, and what names use most, the most useful last: zstd calls that a raw dictionary
//! ```
//!
//! It is made when an index is exported to a key-value store. An index of version 1 has a section of it, as its names are compressed
//! with it as well, and there a dictionary in zstd's own format stands behind the checksum: 37 a4 30 ec, its id (u32, not 0), tables and
//! content. Nothing in a frame tells which raw dictionary it was made with; so chunk values say that themselves.

use zstd::dict::{DecoderDictionary, EncoderDictionary};

use super::{Cursor, FrameKey, SectionKind, limits};
use crate::error::{Error, Place};
use crate::image::ImageId;

const MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];
/// The first byte of raw dictionaries.
const RAW: u8 = 0;

/// What the strings of an image's chunk values are compressed with; most images have one, small ones have none.
pub struct Dictionary {
    prepared: Option<DecoderDictionary<'static>>,
    checksum: u64,
}

impl Dictionary {
    /// The dictionary of an image that has none.
    #[must_use]
    pub fn none() -> Self {
        Self { prepared: None, checksum: 0 }
    }

    /// The dictionary of the image `id` from its value, [`crate::Values::dictionary`]; from no bytes, none.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] where the value changed or belongs to another image, [`Error::Malformed`] where it is no dictionary.
    pub fn decode(id: &ImageId, value: &[u8]) -> Result<Self, Error> {
        match checked(id, value)? {
            [] => Ok(Self::none()),
            bytes if is_dictionary(bytes) || bytes.first() == Some(&RAW) => {
                let prepared = DecoderDictionary::try_copy(bytes).map_err(|_| unusable_dictionary())?;
                Ok(Self { prepared: Some(prepared), checksum: value_checksum(value) })
            }
            _ => Err(unusable_dictionary()),
        }
    }

    pub(crate) fn prepared(&self) -> Option<&DecoderDictionary<'static>> {
        self.prepared.as_ref()
    }

    /// The checksum of the value it was decoded from, 0 for none.
    pub(crate) fn checksum(&self) -> u64 {
        self.checksum
    }
}

/// The value of `dictionary`, which may be empty.
pub(crate) fn encode_dictionary(id: &ImageId, dictionary: &[u8]) -> Vec<u8> {
    let mut stored = Vec::new();
    if !dictionary.is_empty() {
        key(id).append(&mut stored, dictionary);
    }
    stored
}

/// What stands at the front of a value of a dictionary, its checksum; 0 for an empty one.
pub(crate) fn value_checksum(value: &[u8]) -> u64 {
    value.first_chunk().map_or(0, |checksum| u64::from_le_bytes(*checksum))
}

/// `content` as a raw dictionary, with a byte before it by which zstd cannot take it for one in its own format; empty from nothing.
pub(crate) fn raw_dictionary(content: &[u8]) -> Vec<u8> {
    if content.is_empty() { Vec::new() } else { [&[RAW], content].concat() }
}

/// The dictionary in a section of version 1, whose checksum is checked; empty where the section is.
pub(crate) fn dictionary_bytes<'s>(id: &ImageId, section: &'s [u8]) -> Result<&'s [u8], Error> {
    let bytes = checked(id, section)?;
    if bytes.is_empty() || is_dictionary(bytes) { Ok(bytes) } else { Err(unusable_dictionary()) }
}

fn checked<'s>(id: &ImageId, value: &'s [u8]) -> Result<&'s [u8], Error> {
    match value.len() {
        0 => Ok(value),
        len if len > limits::MAX_PAYLOAD => Err(key(id).malformed("larger than the format allows")),
        _ => key(id).checked(value),
    }
}

/// `dictionary` made ready to compress with; an empty one is none.
pub(crate) fn prepare(dictionary: &[u8], level: i32) -> Result<EncoderDictionary<'static>, Error> {
    let unusable = |_| Error::Unwritable { what: "the dictionary is not one of zstd's" };
    EncoderDictionary::try_copy(dictionary, level).map_err(unusable)
}

fn is_dictionary(bytes: &[u8]) -> bool {
    let mut cursor = Cursor::new(bytes);
    cursor.array() == Some(MAGIC) && cursor.u32().is_some_and(|id| id != 0)
}

pub(crate) fn unusable_dictionary() -> Error {
    Error::Malformed {
        place: Place { section: SectionKind::Dictionary, index: 0 },
        what: "not a dictionary of zstd's",
    }
}

fn key(id: &ImageId) -> FrameKey<'_> {
    FrameKey { id, section: SectionKind::Dictionary, index: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_dictionary_is_refused_and_not_a_panic() {
        let id = ImageId::new(&[7; 16]).expect("16 bytes are an id");
        assert!(Dictionary::decode(&id, &[]).expect("none").prepared().is_none());
        // zstd's magic and an id, and then no tables.
        let broken = [MAGIC, [1, 0, 0, 0], [0xff; 4]].concat();
        for bytes in [b"raw content, 8 bytes or more".as_slice(), &MAGIC, &broken] {
            let error = Dictionary::decode(&id, &encode_dictionary(&id, bytes)).err().expect("no dictionary");
            assert!(matches!(error, Error::Malformed { .. }), "{error}");
            assert!(dictionary_bytes(&id, &encode_dictionary(&id, bytes)).is_err() || bytes == broken);
        }
        let raw = encode_dictionary(&id, &raw_dictionary(b"what names share"));
        let decoded = Dictionary::decode(&id, &raw).expect("raw content");
        assert!(decoded.prepared().is_some() && decoded.checksum() == value_checksum(&raw));
        assert!(dictionary_bytes(&id, &raw).is_err(), "not in a file");
        let mut stored = encode_dictionary(&id, &broken);
        stored[12] ^= 1;
        assert!(matches!(Dictionary::decode(&id, &stored), Err(Error::Checksum { .. })));
    }
}
