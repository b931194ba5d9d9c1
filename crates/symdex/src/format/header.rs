//! The fixed header: 140 bytes.
//!
//! In every version the magic, the version and the header's size have the same place, and the header ends with a
//! checksum of the bytes before it. So a reader can tell a newer index from a damaged one.

use xxhash_rust::xxh3::Xxh3Default;

use super::{Cursor, SectionKind, checksums_size};
use crate::error::{Error, ErrorLocation};
use crate::image::ImageId;

/// The first bytes of every index.
pub const MAGIC: [u8; 8] = *b"\x89SYMDEX\n";
pub(crate) const VERSION: u16 = 1;
/// Bytes of a header.
pub(crate) const HEADER_SIZE: usize = 140;
/// Bytes of a header before its digest and its checksum.
const FIELDS_SIZE: u64 = 120;
/// The feature bit of an index whose `symbol_table` has aliases. A reader that takes aliases for callers returns wrong
/// answers.
pub(crate) const ALIASES: u64 = 1;
/// The compatible feature bit of an index with readable names.
pub(crate) const READABLE_NAMES: u32 = 0;
/// The compatible feature bit of an index with unwind rows.
pub(crate) const UNWIND_ROWS: u32 = 1;
/// The compatible feature bits from 0 on that stand for an optional section. The others have none.
const OPTIONAL_SECTIONS: u32 = 32;
const SECTIONS: usize = 6;

/// Where a section lies in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileSection {
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl FileSection {
    /// The section's bytes in `file`. Returns `None` if the section reaches beyond the end of the file.
    pub(crate) fn of(self, file: &[u8]) -> Option<&[u8]> {
        let start = usize::try_from(self.offset).ok()?;
        file.get(start..start.checked_add(usize::try_from(self.size).ok()?)?)
    }

    /// As [`of`](Self::of), without bytes if the section reaches beyond the end of the file. Then each read of it is an
    /// error.
    pub(crate) fn within(self, file: &[u8]) -> &[u8] {
        self.of(file).unwrap_or_default()
    }
}

/// The header's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) id: ImageId,
    /// Whether functions of the `symbol_table` may have aliases.
    pub(crate) aliases: bool,
    pub(crate) file_size: u64,
    /// In file order: metadata, codes, files, the checksums of the pages of codes, files, names and chunks, names,
    /// chunks. What is read to open an index comes first, so that it lies in few pages of a mapped file.
    pub(crate) sections: [FileSection; SECTIONS],
    pub(crate) optional: OptionalSections,
    /// XXH3-128, low half first, of the chunks, the fields before this one, and all other sections in file order. It
    /// distinguishes two indexes of one image. `verify` checks it; opening a file does not.
    pub(crate) digest: [u8; 16],
}

/// The optional sections of an index, which follow the chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OptionalSections {
    /// The compatible feature bits of the index.
    pub(crate) features: u64,
    /// All optional sections together.
    pub(crate) all: FileSection,
}

impl OptionalSections {
    /// The bits that stand for a section, the lowest first.
    fn bits(self) -> impl Iterator<Item = u32> {
        (0..OPTIONAL_SECTIONS).filter(move |bit| self.features >> bit & 1 == 1)
    }

    /// Where the contents of the section of feature `wanted` and their checksums lie in `file`. Returns `None` if the
    /// index does not have the section.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the sizes of the optional sections do not add up.
    pub(crate) fn find(self, wanted: u32, file: &[u8]) -> Result<Option<[FileSection; 2]>, Error> {
        let (mut found, mut rest) = (None, self.all);
        for bit in self.bits() {
            let (parts, others) = Self::first(rest, file).ok_or(DO_NOT_ADD_UP)?;
            if bit == wanted {
                found = Some(parts);
            }
            rest = others;
        }
        if rest.size == 0 { Ok(found) } else { Err(DO_NOT_ADD_UP) }
    }

    /// The contents and the checksums of the first section of `rest`, and the other sections.
    fn first(rest: FileSection, file: &[u8]) -> Option<([FileSection; 2], FileSection)> {
        let size = u64::from_le_bytes(*rest.of(file)?.first_chunk()?);
        let end = rest.offset + rest.size;
        let contents = FileSection { offset: rest.offset + 8, size };
        let checksums =
            FileSection { offset: contents.offset.checked_add(size)?, size: checksums_size(size) };
        let offset = checksums.offset.checked_add(checksums.size)?;
        Some(([contents, checksums], FileSection { offset, size: end.checked_sub(offset)? }))
    }
}

impl Header {
    /// A header for sections of these sizes, which follow each other, and optional sections that take `optional_size`
    /// bytes. `features` has their bits. The digest is 0. Returns `None` if the sum of the sizes is too large.
    pub(crate) fn lay_out(
        id: ImageId,
        aliases: bool,
        sizes: [u64; SECTIONS],
        features: u64,
        optional_size: u64,
    ) -> Option<Self> {
        let end = sizes.iter().try_fold(HEADER_SIZE as u64, |end, size| end.checked_add(*size))?;
        let file_size = end.checked_add(optional_size)?;
        let all = FileSection { offset: end, size: optional_size };
        let mut offset = HEADER_SIZE as u64;
        let sections = sizes.map(|size| {
            let section = FileSection { offset, size };
            offset += size;
            section
        });
        let optional = OptionalSections { features, all };
        Some(Self { id, aliases, file_size, sections, optional, digest: [0; 16] })
    }

    /// Checks that the index `file` has the digest that the header states.
    pub(crate) fn verify_digest(&self, file: &[u8]) -> Result<(), Error> {
        let [.., chunks] = self.sections;
        let fields = FileSection { offset: 0, size: FIELDS_SIZE };
        let others = FileSection { offset: HEADER_SIZE as u64, size: chunks.offset - HEADER_SIZE as u64 };
        let mut digest = Xxh3Default::new();
        [chunks, fields, others, self.optional.all].iter().for_each(|part| digest.update(part.within(file)));
        let is_intact = digest.digest128().to_le_bytes() == self.digest;
        if is_intact { Ok(()) } else { Err(Error::Checksum { location: LOCATION }) }
    }

    /// The size of the header that `head`, the first bytes of a file, states. `None` if `head` ends before it.
    pub(crate) fn stated_size(head: &[u8]) -> Option<usize> {
        let mut cursor = Cursor::new(head);
        cursor.bytes(MAGIC.len() + size_of::<u16>())?;
        cursor.u16().map(usize::from)
    }

    /// The header in `head`, the first bytes of a file of `found` bytes, which is the size that it has to state.
    pub(crate) fn decode(head: &[u8], found: u64) -> Result<Self, Error> {
        let header = Self::decode_any(head, found)?;
        if header.file_size != found {
            return Err(Error::WrongSize { found, expected: header.file_size });
        }
        Ok(header)
    }

    /// The header in `head`, the first bytes of a file, whatever the size of the file.
    pub(crate) fn decode_prefix(head: &[u8]) -> Result<Self, Error> {
        Self::decode_any(head, head.len() as u64)
    }

    fn decode_any(head: &[u8], found: u64) -> Result<Self, Error> {
        let mut cursor = Cursor::new(head);
        let not_an_index = || Error::NotAnIndex { found: head.get(..32).unwrap_or(head).to_vec() };
        if cursor.array() != Some(MAGIC) {
            return Err(not_an_index());
        }
        let cut = || Error::WrongSize { found, expected: HEADER_SIZE as u64 };
        let version = cursor.u16().ok_or_else(cut)?;
        let header_size = usize::from(cursor.u16().ok_or_else(cut)?);
        let (checked, stored) = head
            .get(..header_size)
            .ok_or(Error::WrongSize { found, expected: header_size as u64 })?
            .split_last_chunk()
            .ok_or(Error::Malformed { location: LOCATION, what: "too short" })?;
        if crc32fast::hash(checked) != u32::from_le_bytes(*stored) {
            return Err(Error::Checksum { location: LOCATION });
        }
        if version != VERSION {
            return Err(Error::UnsupportedVersion { found: version, known: VERSION });
        }
        if header_size != HEADER_SIZE {
            return Err(Error::Malformed {
                location: LOCATION,
                what: "it has another size than its version has",
            });
        }
        Self::decode_checked(&mut Cursor::new(checked))
    }

    fn decode_checked(cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let malformed = |what| Error::Malformed { location: LOCATION, what };
        let short = || malformed("too short");
        cursor.bytes(12).ok_or_else(short)?;
        let [id_len, id_kind, _, _] = cursor.array().ok_or_else(short)?;
        let incompatible = cursor.u64().ok_or_else(short)?;
        if incompatible & !ALIASES != 0 {
            return Err(Error::UnsupportedFeature { unknown: incompatible & !ALIASES });
        }
        let features = cursor.u64().ok_or_else(short)?;
        let padded: [u8; ImageId::MAX_LEN] = cursor.array().ok_or_else(short)?;
        let id = padded.get(..usize::from(id_len)).and_then(|id| ImageId::with_kind(id_kind, id));
        let id = id.ok_or_else(|| malformed("the image id is not 1 to 32 bytes long"))?;
        let file_size = cursor.u64().ok_or_else(short)?;
        let mut sizes = [0; SECTIONS];
        for size in &mut sizes {
            *size = cursor.u64().ok_or_else(short)?;
        }
        let digest = cursor.array().ok_or_else(short)?;
        // Only optional sections leave room after the chunks.
        let aliases = incompatible & ALIASES != 0;
        let least = Self::lay_out(id.clone(), aliases, sizes, features, 0).ok_or(DO_NOT_ADD_UP)?;
        let optional_size = file_size.checked_sub(least.file_size);
        let optional_size = optional_size.filter(|size| *size == 0 || least.optional.bits().next().is_some());
        let header = Self::lay_out(id, aliases, sizes, features, optional_size.ok_or(DO_NOT_ADD_UP)?);
        Ok(Self { digest, ..header.ok_or(DO_NOT_ADD_UP)? })
    }
}

const LOCATION: ErrorLocation = ErrorLocation { section: SectionKind::Header, index: 0 };
const DO_NOT_ADD_UP: Error =
    Error::Malformed { location: LOCATION, what: "its sections do not add up to the file's size" };

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let id = ImageId::new(&[0xab; 16]).expect("16 bytes are an id");
        let header = Header::lay_out(id, false, [10, 20, 0, 30, 5, 8], 0, 0).expect("small");
        let mut file = header.encode();
        file.resize(usize::try_from(header.file_size).expect("small"), 0);
        file
    }

    fn sealed(mut file: Vec<u8>, size: usize) -> Vec<u8> {
        let checksum = crc32fast::hash(&file[..size - 4]).to_le_bytes();
        file[size - 4..size].copy_from_slice(&checksum);
        file
    }

    fn decode(file: &[u8]) -> Result<Header, Error> {
        Header::decode(file, file.len() as u64)
    }

    #[test]
    fn a_header_round_trips() {
        let file = file();
        assert_eq!(&file[..8], &MAGIC);
        let header = decode(&file).expect("as written");
        assert_eq!(header.encode(), &file[..HEADER_SIZE]);
        assert_eq!(header.sections[3], FileSection { offset: 140 + 30, size: 30 });
        let aliases = Header { aliases: true, ..header.clone() }.encode();
        let differ = (0..HEADER_SIZE - 4).filter(|at| aliases[*at] != file[*at]).collect::<Vec<_>>();
        assert_eq!((differ, file[16], aliases[16]), (vec![16], 0, 1), "a feature is a bit, and nothing else");
        let file = [&aliases[..], &file[HEADER_SIZE..]].concat();
        assert_eq!(decode(&file).expect("as written"), Header { aliases: true, ..header });
    }

    #[test]
    fn every_cut_says_how_many_bytes_are_wanted() {
        let file = file();
        for len in 0..file.len() {
            let error = decode(&file[..len]).expect_err("cut");
            assert!(matches!(error, Error::NotAnIndex { .. } | Error::WrongSize { .. }), "{len}: {error}");
        }
        let mut longer = file.clone();
        longer.push(0);
        assert!(matches!(decode(&longer), Err(Error::WrongSize { found: 214, expected: 213, .. })));
    }

    #[test]
    fn unknown_features_and_versions_are_named() {
        let mut newer = file();
        newer[8] = 3;
        assert!(matches!(decode(&newer), Err(Error::Checksum { .. })), "a flipped bit is damage");
        let newer = decode(&sealed(newer, HEADER_SIZE));
        assert!(matches!(newer, Err(Error::UnsupportedVersion { found: 3, known: 1 })));
        let mut longer = file();
        (longer[8], longer[10]) = (4, 208);
        let longer = decode(&sealed(longer, 208));
        assert!(matches!(longer, Err(Error::UnsupportedVersion { found: 4, known: 1 })), "of any size");
        for size in [0, 3, 127, 144, 208] {
            let mut other_size = file();
            other_size[10] = size;
            let sealed_at = usize::from(size).max(HEADER_SIZE);
            assert!(decode(&sealed(other_size, sealed_at)).is_err_and(|e| e.cause().is_damage()), "{size}");
        }
        let mut feature = file();
        feature[16] = 2;
        let feature = sealed(feature, HEADER_SIZE);
        assert!(matches!(decode(&feature), Err(Error::UnsupportedFeature { unknown: 2 })));
    }
}
