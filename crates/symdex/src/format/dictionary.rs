//! The dictionary that names are compressed with: what many of them share, learned from them.
//!
//! ```text
//! 0  8  checksum, as a frame has it
//! 8  .  a dictionary in zstd's own format: 37 a4 30 ec, its id (u32, not 0), tables and content
//! ```
//!
//! The section is empty where an image has no dictionary. A dictionary without zstd's magic would work as well, but then
//! nothing would tell that a frame was made with another one.

use zstd::dict::{DecoderDictionary, EncoderDictionary};

use super::{Cursor, FrameKey, SectionKind, limits};
use crate::error::{Error, Place};
use crate::image::ImageId;

const MAGIC: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];

/// What the strings of an image's chunk values are compressed with; most images have one, small ones have none.
pub struct Dictionary(Option<DecoderDictionary<'static>>);

impl Dictionary {
    /// The dictionary of an image that has none.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// The dictionary of the image `id` from its value, [`crate::Index::dictionary_value`]; from no bytes, none.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] where the value changed or belongs to another image, [`Error::Malformed`] where it is no dictionary.
    pub fn decode(id: &ImageId, value: &[u8]) -> Result<Self, Error> {
        match dictionary_bytes(id, value)? {
            [] => Ok(Self::none()),
            bytes => {
                DecoderDictionary::try_copy(bytes).map(Some).map(Self).map_err(|_| unusable_dictionary())
            }
        }
    }

    pub(crate) fn prepared(&self) -> Option<&DecoderDictionary<'static>> {
        self.0.as_ref()
    }
}

/// The section of `dictionary`, which may be empty.
pub(crate) fn encode_dictionary(id: &ImageId, dictionary: &[u8]) -> Vec<u8> {
    let mut stored = Vec::new();
    if !dictionary.is_empty() {
        key(id).append(&mut stored, dictionary);
    }
    stored
}

/// The dictionary in its section, whose checksum is checked; empty where the section is.
pub(crate) fn dictionary_bytes<'s>(id: &ImageId, section: &'s [u8]) -> Result<&'s [u8], Error> {
    if section.is_empty() {
        return Ok(&[]);
    }
    if section.len() > limits::MAX_PAYLOAD {
        return Err(key(id).malformed("larger than the format allows"));
    }
    let bytes = key(id).checked(section)?;
    if is_dictionary(bytes) { Ok(bytes) } else { Err(unusable_dictionary()) }
}

/// `dictionary` made ready to compress with; an empty one is none.
pub(crate) fn prepare(dictionary: &[u8], level: i32) -> Result<EncoderDictionary<'static>, Error> {
    let unusable = || Error::Unwritable { what: "the dictionary is not one of zstd's" };
    if !(dictionary.is_empty() || is_dictionary(dictionary) && dictionary.len() < limits::MAX_PAYLOAD) {
        return Err(unusable());
    }
    EncoderDictionary::try_copy(dictionary, level).map_err(|_| unusable())
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
            assert!(matches!(prepare(bytes, 3), Err(Error::Unwritable { .. })));
        }
        let mut stored = encode_dictionary(&id, &broken);
        stored[12] ^= 1;
        assert!(matches!(Dictionary::decode(&id, &stored), Err(Error::Checksum { .. })));
    }
}
