//! The fixed header.
//!
//! ```text
//!   0   8  magic: 89 53 59 4d 44 45 58 0a ("\x89SYMDEX\n")
//!   8   2  format version, 2; 1 is still read
//!  10   2  header size with its checksum, 192
//!  12   1  length of the image id in bytes, 1 to 32
//!  13   1  0: the image's own id; 1: a hash of the image, which has none
//!  14   2  zero
//!  16   8  incompatible feature bits: a reader that does not know one refuses the file; bit 0: symbol_table has aliases
//!  24   8  compatible feature bits: a reader may pass over those it does not know
//!  32  32  image id, padded with zeros
//!  64   8  size of the file in bytes, trailer included
//!  72  96  six sections, each an offset (u64) and a size (u64): metadata, chunks, shared (in version 1: dictionary), names, files,
//!         directory
//! 168  16  zero
//! 184   8  XXH3-64 of bytes 0 to 183
//! ```
//!
//! Sections follow each other without a gap, in that order, from the header to the trailer.
//!
//! Every version, whatever else it changes, keeps the magic, the version and the header's size where they are, and ends the header with
//! the checksum of what is before: so a reader can tell a newer index from a damaged one.

use xxhash_rust::xxh3::xxh3_64;

use super::{Cursor, SectionKind, TRAILER_SIZE};
use crate::error::{Error, Place};
use crate::image::ImageId;

pub(crate) const MAGIC: [u8; 8] = *b"\x89SYMDEX\n";
/// The newest format version, and the one that is written.
pub(crate) const VERSION: u16 = 2;
/// The oldest version that is read.
const OLDEST: u16 = 1;
/// Bytes of a header.
pub(crate) const HEADER_SIZE: usize = 192;
/// Bytes of a header before its own checksum.
const CHECKED_SIZE: usize = HEADER_SIZE - 8;
/// The feature bit of an index whose `symbol_table` has aliases: where they are taken for callers, answers are wrong.
const ALIASES: u64 = 1;
/// The incompatible feature bits this reader knows.
const KNOWN_INCOMPATIBLE: u64 = ALIASES;
const SECTIONS: usize = 6;

/// Where a section lies in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Section {
    /// The section's bytes in `file`; `None` where it reaches out of it.
    pub(crate) fn of(self, file: &[u8]) -> Option<&[u8]> {
        let start = usize::try_from(self.offset).ok()?;
        file.get(start..start.checked_add(usize::try_from(self.size).ok()?)?)
    }
}

/// The header's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: u16,
    pub(crate) id: ImageId,
    /// Whether functions of the `symbol_table` may have aliases.
    pub(crate) aliases: bool,
    pub(crate) file_size: u64,
    pub(crate) metadata: Section,
    pub(crate) chunks: Section,
    /// What chunks share; in version 1 the dictionary of names.
    pub(crate) shared: Section,
    pub(crate) names: Section,
    pub(crate) files: Section,
    pub(crate) directory: Section,
}

impl Header {
    /// A header for sections of these sizes, laid out one behind the other, in the order of the table above.
    pub(crate) fn lay_out(id: ImageId, aliases: bool, sizes: [u64; SECTIONS]) -> Self {
        let mut offset = HEADER_SIZE as u64;
        let [metadata, chunks, shared, names, files, directory] = sizes.map(|size| {
            let section = Section { offset, size };
            offset += size;
            section
        });
        let file_size = offset + TRAILER_SIZE as u64;
        Self { version: VERSION, id, aliases, file_size, metadata, chunks, shared, names, files, directory }
    }

    fn sections(&self) -> [Section; SECTIONS] {
        [self.metadata, self.chunks, self.shared, self.names, self.files, self.directory]
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_SIZE);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(&[HEADER_SIZE.to_le_bytes()[0], HEADER_SIZE.to_le_bytes()[1]]);
        out.extend_from_slice(&[self.id.as_bytes().len().to_le_bytes()[0], self.id.kind(), 0, 0]);
        out.extend_from_slice(&(if self.aliases { ALIASES } else { 0 }).to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(self.id.padded());
        out.extend_from_slice(&self.file_size.to_le_bytes());
        for section in self.sections() {
            out.extend_from_slice(&section.offset.to_le_bytes());
            out.extend_from_slice(&section.size.to_le_bytes());
        }
        out.resize(CHECKED_SIZE, 0);
        let checksum = xxh3_64(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// The header at the front of `file`, checked against the file's size.
    pub(crate) fn decode(file: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(file);
        let not_an_index = || Error::NotAnIndex { found: file.get(..32).unwrap_or(file).to_vec() };
        if cursor.array() != Some(MAGIC) {
            return Err(not_an_index());
        }
        let cut = || Error::WrongSize { found: file.len() as u64, expected: HEADER_SIZE as u64 };
        let version = cursor.u16().ok_or_else(cut)?;
        let header_size = usize::from(cursor.u16().ok_or_else(cut)?);
        let (checked, stored) = file
            .get(..header_size)
            .ok_or(Error::WrongSize { found: file.len() as u64, expected: header_size as u64 })?
            .split_last_chunk::<8>()
            .ok_or(Error::Malformed { place: PLACE, what: "too short" })?;
        if xxh3_64(checked) != u64::from_le_bytes(*stored) {
            return Err(Error::Checksum { place: PLACE });
        }
        if !(OLDEST..=VERSION).contains(&version) {
            return Err(Error::UnsupportedVersion { found: version, newest: VERSION });
        }
        if header_size != HEADER_SIZE {
            return Err(Error::Malformed { place: PLACE, what: "it has another size than its version has" });
        }
        let header = Self::decode_checked(version, &mut Cursor::new(checked))?;
        if header.file_size != file.len() as u64 {
            return Err(Error::WrongSize { found: file.len() as u64, expected: header.file_size });
        }
        Ok(header)
    }

    fn decode_checked(version: u16, cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let malformed = |what| Error::Malformed { place: PLACE, what };
        let short = || malformed("too short");
        cursor.bytes(12).ok_or_else(short)?;
        let [id_len, id_kind, _, _] = cursor.array().ok_or_else(short)?;
        let incompatible = cursor.u64().ok_or_else(short)?;
        if incompatible & !KNOWN_INCOMPATIBLE != 0 {
            return Err(Error::UnsupportedFeature { unknown: incompatible & !KNOWN_INCOMPATIBLE });
        }
        let _compatible = cursor.u64().ok_or_else(short)?;
        let padded: [u8; ImageId::MAX_LEN] = cursor.array().ok_or_else(short)?;
        let id = padded.get(..usize::from(id_len)).and_then(|id| ImageId::with_kind(id_kind, id));
        let id = id.ok_or_else(|| malformed("the image id is not 1 to 32 bytes long"))?;
        let file_size = cursor.u64().ok_or_else(short)?;
        let mut sizes = [0; SECTIONS];
        let mut stated = [Section::default(); SECTIONS];
        for (size, section) in sizes.iter_mut().zip(&mut stated) {
            *section =
                Section { offset: cursor.u64().ok_or_else(short)?, size: cursor.u64().ok_or_else(short)? };
            *size = section.size;
        }
        let total =
            sizes.iter().try_fold((HEADER_SIZE + TRAILER_SIZE) as u64, |sum, size| sum.checked_add(*size));
        if total != Some(file_size) {
            return Err(malformed("its sections do not add up to the file's size"));
        }
        let header = Self { version, ..Self::lay_out(id, incompatible & ALIASES != 0, sizes) };
        if header.sections() != stated {
            return Err(malformed("its sections do not follow each other"));
        }
        Ok(header)
    }
}

const PLACE: Place = Place { section: SectionKind::Header, index: 0 };

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let id = ImageId::new(&[0xab; 16]).expect("16 bytes are an id");
        let header = Header::lay_out(id, false, [10, 20, 0, 30, 5, 8]);
        let mut file = header.encode();
        file.resize(usize::try_from(header.file_size).expect("small"), 0);
        file
    }

    #[test]
    fn a_header_round_trips() {
        let file = file();
        assert_eq!(&file[..8], &MAGIC);
        let header = Header::decode(&file).expect("as written");
        assert_eq!(header.encode(), &file[..HEADER_SIZE]);
        assert_eq!(header.names, Section { offset: 192 + 30, size: 30 });
        let aliases = Header { aliases: true, ..header.clone() }.encode();
        let differ = (0..HEADER_SIZE - 8).filter(|at| aliases[*at] != file[*at]).collect::<Vec<_>>();
        assert_eq!((differ, aliases[16]), (vec![16], 1), "a feature is a bit, and nothing else");
        let file = [&aliases[..], &file[HEADER_SIZE..]].concat();
        assert_eq!(Header::decode(&file).expect("as written"), Header { aliases: true, ..header });
    }

    #[test]
    fn every_cut_says_how_many_bytes_are_wanted() {
        let file = file();
        for len in 0..file.len() {
            let error = Header::decode(&file[..len]).expect_err("cut");
            assert!(matches!(error, Error::NotAnIndex { .. } | Error::WrongSize { .. }), "{len}: {error}");
        }
        let mut longer = file.clone();
        longer.push(0);
        assert!(matches!(Header::decode(&longer), Err(Error::WrongSize { found: 298, expected: 297, .. })));
    }

    #[test]
    fn unknown_features_and_versions_are_named() {
        let sealed = |mut file: Vec<u8>, size: usize| {
            let checksum = xxh3_64(&file[..size - 8]).to_le_bytes();
            file[size - 8..size].copy_from_slice(&checksum);
            file
        };
        let mut newer = file();
        newer[8] = 3;
        assert!(matches!(Header::decode(&newer), Err(Error::Checksum { .. })), "a flipped bit is damage");
        let newer = Header::decode(&sealed(newer, HEADER_SIZE));
        assert!(matches!(newer, Err(Error::UnsupportedVersion { found: 3, newest: 2 })));
        let mut longer = file();
        (longer[8], longer[10]) = (4, 208);
        let longer = Header::decode(&sealed(longer, 208));
        assert!(matches!(longer, Err(Error::UnsupportedVersion { found: 4, newest: 2 })), "of any size");
        for size in [0, 7, 191, 208, 255] {
            let mut other_size = file();
            other_size[10] = size;
            let sealed_at = usize::from(size).max(HEADER_SIZE);
            assert!(Header::decode(&sealed(other_size, sealed_at)).is_err_and(|e| e.is_damage()), "{size}");
        }
        let mut older = file();
        older[8] = 1;
        assert_eq!(Header::decode(&sealed(older, HEADER_SIZE)).expect("still read").version, 1);
        let mut feature = file();
        feature[16] = 4;
        let feature = sealed(feature, HEADER_SIZE);
        assert!(matches!(Header::decode(&feature), Err(Error::UnsupportedFeature { unknown: 4 })));
    }
}
