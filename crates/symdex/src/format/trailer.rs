//! The fixed trailer: the last 32 bytes of a file.
//!
//! ```text
//!  0  8  size of the file in bytes, trailer included
//!  8 16  digest: XXH3-128 (low half first) of every byte before the trailer
//! 24  8  magic: "XEDMYS\n\x89"
//! ```
//!
//! The digest distinguishes two indexes of one image. `verify` checks it; opening a file does not.

use xxhash_rust::xxh3::xxh3_128;

use super::{Cursor, SectionKind};
use crate::error::{Error, ErrorLocation};

/// Bytes of a trailer.
pub(crate) const TRAILER_SIZE: usize = 32;
pub(crate) const MAGIC: [u8; 8] = *b"XEDMYS\n\x89";

/// The trailer's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub(crate) file_size: u64,
    pub(crate) digest: [u8; 16],
}

impl Trailer {
    /// The trailer of a file with this `body`, which is everything before the trailer.
    pub(crate) fn of(body: &[u8]) -> Self {
        Self { file_size: (body.len() + TRAILER_SIZE) as u64, digest: xxh3_128(body).to_le_bytes() }
    }

    /// The trailer at the end of `file`; its digest is not checked.
    pub(crate) fn decode(file: &[u8]) -> Result<Self, Error> {
        Self::decode_end(file, file.len() as u64)
    }

    /// The trailer at the end of a file of `size` bytes, of which `file` has the last ones.
    pub(crate) fn decode_end(file: &[u8], size: u64) -> Result<Self, Error> {
        let malformed = |what| Error::Malformed { location: LOCATION, what };
        let short = || malformed("too short");
        let (_, trailer) = file.split_last_chunk::<TRAILER_SIZE>().ok_or_else(short)?;
        let mut cursor = Cursor::new(trailer);
        let file_size = cursor.u64().ok_or_else(short)?;
        let digest = cursor.array().ok_or_else(short)?;
        if cursor.array() != Some(MAGIC) {
            return Err(malformed("the file does not end as an index does"));
        }
        if file_size != size {
            return Err(malformed("it states another file size"));
        }
        Ok(Self { file_size, digest })
    }

    /// Checks the digest against the bytes of `file` before the trailer.
    pub(crate) fn verify(self, file: &[u8]) -> Result<(), Error> {
        let body = file.split_last_chunk::<TRAILER_SIZE>().map(|(body, _)| body);
        let is_intact = body.is_some_and(|body| Self::of(body) == self);
        if is_intact { Ok(()) } else { Err(Error::Checksum { location: LOCATION }) }
    }
}

const LOCATION: ErrorLocation = ErrorLocation { section: SectionKind::Trailer, index: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_round_trips_and_its_digest_covers_the_body() {
        let mut file = b"everything before the trailer".to_vec();
        let trailer = Trailer::of(&file);
        file.extend(trailer.encode());
        assert_eq!(Trailer::decode(&file).expect("as written"), trailer);
        trailer.verify(&file).expect("nothing changed");
        file[3] ^= 1;
        assert!(matches!(trailer.verify(&file), Err(Error::Checksum { .. })));
        assert!(Trailer::decode(&file[..file.len() - 1]).is_err());
    }
}
