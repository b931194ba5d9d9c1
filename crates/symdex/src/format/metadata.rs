//! The metadata block: eight bytes of checksum, then [`Fields`] in bincode 2's fixed-width little-endian encoding.
//!
//! An integer takes the bytes of its type. `usize` and lengths take 8 bytes, enums 4, and an option 1 byte before the
//! value. Fields are in the order of their declaration. A test pins the bytes, so that replacing the crate cannot
//! change the format.

use serde::{Deserialize, Serialize};

use super::counts::{Counts, Partial};
use super::header::{READABLE_NAMES, UNWIND_ROWS};
use super::pages::{CHECKSUM_SIZE, Checksums};
use super::{Grade, Header, MAX_CHUNK_SPAN, MAX_CHUNKS, MAX_METADATA, SectionKind, Segment};
use crate::error::{Error, ErrorLocation};
use crate::image::ImageOffset;
use crate::image::{Arch, ImageId};

/// How many chunks a store value has. Fewer chunks make each value smaller, and all values together larger.
pub(crate) const CHUNKS_PER_VALUE: u64 = 4;

/// What an index states about its image and its build.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// The image's id.
    pub id: ImageId,
    /// The debug file's own file name: for a dSYM the binary's name.
    pub image_name: String,
    /// The architecture.
    pub arch: Arch,
    /// The address in the debug file that image offsets count from: that of `__TEXT` in Mach-O files.
    pub base: u64,
    /// Bytes from the base to the end of the last executable section.
    pub image_size: u64,
    /// Executable sections as half-open ranges of image offsets, sorted, none overlapping.
    pub executable: Vec<(u64, u64)>,
    /// The address of `__TEXT_EXEC` in the debug file. Kernel images keep their code in that segment.
    pub text_exec_base: Option<u64>,
    /// Bytes of address space one chunk covers; a chunk's index is an image offset divided by it.
    pub chunk_span: u32,
    /// The numbers of units, functions, ranges and strings.
    pub counts: Counts,
    /// What could not be indexed, by reason; empty for a whole index.
    pub partial: Vec<Partial>,
    /// The version of symdex that wrote the index.
    pub builder: String,
    /// XXH3-128 of what the index was built from. A builder compares it to skip an image whose index is up to date.
    /// `None` if the index does not say; such an index is never up to date.
    pub input_digest: Option<[u8; 16]>,
    pub(crate) tables: [TableInfo; 2],
    /// The executable segments of an ELF file, sorted, none overlapping. Empty if the index was built of a debug file
    /// without code, whose program headers do not state where the code was. `None` if the image is not from an ELF
    /// file, or an older version of symdex wrote the index.
    pub segments: Option<Vec<Segment>>,
}

/// The fields of [`Metadata`] as they are stored. `Metadata` itself cannot be deserialized, so every value that a
/// reader has was checked.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Metadata")]
struct Fields {
    id: ImageId,
    image_name: String,
    arch: Arch,
    base: u64,
    image_size: u64,
    executable: Vec<(u64, u64)>,
    text_exec_base: Option<u64>,
    chunk_span: u32,
    counts: Counts,
    partial: Vec<Partial>,
    builder: String,
    input_digest: Option<[u8; 16]>,
    tables: [TableInfo; 2],
    /// It follows the other fields only if there is one, so that other indexes do not grow.
    #[serde(skip)]
    segments: Option<Vec<Segment>>,
}

/// Metadata that is encoded, or decoded but not yet checked.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Stored(#[serde(with = "Fields")] pub(crate) Metadata);

/// Which of an index's two tables an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Table {
    /// Ranges from debug information: functions, inlining, files and lines.
    Dwarf,
    /// Ranges from the symbol table: names only.
    SymbolTable,
}

impl Table {
    /// Both, in the order a lookup asks them.
    pub const ALL: &[Table] = &[Table::Dwarf, Table::SymbolTable];

    /// `dwarf` or `symbol_table`, as answers print it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Table::Dwarf => "dwarf",
            Table::SymbolTable => "symbol_table",
        }
    }

    /// The location that errors state for chunk `index` of the table.
    pub(crate) fn location_of(self, index: u64) -> ErrorLocation {
        let section = match self {
            Table::Dwarf => SectionKind::DwarfChunk,
            Table::SymbolTable => SectionKind::SymbolChunk,
        };
        ErrorLocation { section, index }
    }
}

/// The chunks of one table: their indexes run from `first_chunk`, without a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TableInfo {
    pub(crate) first_chunk: u64,
    pub(crate) chunks: u64,
}

pub(crate) fn config() -> impl bincode::config::Config {
    bincode::config::standard().with_little_endian().with_fixed_int_encoding().with_limit::<MAX_METADATA>()
}

impl Metadata {
    /// The most bytes of a metadata block.
    pub(crate) const MAX_BLOCK_SIZE: usize = CHECKSUM_SIZE + MAX_METADATA;

    /// The metadata of the index file that begins with `prefix`, which has at least the header and the metadata. The
    /// metadata is the first of [`Index::sections`](crate::Index::sections).
    ///
    /// ```
    /// use symdex::{Index, Metadata};
    ///
    /// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
    /// let index = Index::open(std::fs::read(path)?)?;
    /// let metadata = &index.sections()[0];
    /// let end = usize::try_from(metadata.offset + metadata.size)?;
    /// assert_eq!(&Metadata::from_prefix(&index.as_bytes()[..end])?, index.metadata());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Index::open`](crate::Index::open) for the header and the metadata.
    pub fn from_prefix(prefix: &[u8]) -> Result<Self, Error> {
        let header = Header::decode_prefix(prefix)?;
        let [section, ..] = header.sections;
        let too_short = Error::WrongSize {
            found: prefix.len() as u64,
            expected: section.offset.saturating_add(section.size),
        };
        Self::decode(&header.id, section.of(prefix).ok_or(too_short)?)
    }

    /// Returns how many of the first bytes of an index file [`from_prefix`](Self::from_prefix) needs: the header and
    /// the metadata.
    ///
    /// # Errors
    ///
    /// The errors of [`Index::open`](crate::Index::open) for the header.
    pub fn prefix_size(prefix: &[u8]) -> Result<u64, Error> {
        let [section, ..] = Header::decode_prefix(prefix)?.sections;
        Ok(section.offset.saturating_add(section.size))
    }

    /// Whether the index file that begins with `prefix` has readable names; as
    /// [`Index::has_readable_names`](crate::Index::has_readable_names).
    ///
    /// # Errors
    ///
    /// The errors of [`Index::open`](crate::Index::open) for the header.
    pub fn prefix_has_readable_names(prefix: &[u8]) -> Result<bool, Error> {
        Ok(Header::decode_prefix(prefix)?.optional.features >> READABLE_NAMES & 1 == 1)
    }

    /// Whether the index file that begins with `prefix` has unwind rows; as
    /// [`Index::has_unwind_rows`](crate::Index::has_unwind_rows).
    ///
    /// # Errors
    ///
    /// The errors of [`Index::open`](crate::Index::open) for the header.
    pub fn prefix_has_unwind_rows(prefix: &[u8]) -> Result<bool, Error> {
        Ok(Header::decode_prefix(prefix)?.optional.features >> UNWIND_ROWS & 1 == 1)
    }

    /// The most that the index answers, by its [counts](Self::counts): lines if it has files, names if it has names,
    /// and bounds if it has functions. Single addresses may have less.
    #[must_use]
    pub fn grade(&self) -> Grade {
        match self.counts {
            Counts { files: 1.., .. } => Grade::Lines,
            Counts { names: 1.., .. } => Grade::Names,
            Counts { functions: 0, ranges: 0, symbols: 0, .. } => Grade::Nothing,
            _ => Grade::Bounds,
        }
    }

    /// How many chunks `table` has, empty ones included.
    #[must_use]
    pub fn chunk_len(&self, table: Table) -> u64 {
        self.table(table).chunks
    }

    /// The indexes of `table`'s chunks, half-open.
    #[must_use]
    pub fn chunks(&self, table: Table) -> std::ops::Range<u64> {
        let info = self.table(table);
        info.first_chunk..info.first_chunk.saturating_add(info.chunks)
    }

    /// The number of the store value that answers `offset`.
    #[must_use]
    pub fn value_number(&self, offset: ImageOffset) -> u64 {
        offset.0 / u64::from(self.chunk_span) / CHUNKS_PER_VALUE
    }

    /// The numbers of the store values of the index: one or two ranges, sorted.
    #[must_use]
    pub fn value_numbers(&self) -> Vec<std::ops::Range<u64>> {
        let values = |chunks: std::ops::Range<u64>| {
            chunks.start / CHUNKS_PER_VALUE..chunks.end.div_ceil(CHUNKS_PER_VALUE)
        };
        let mut all: Vec<_> = Table::ALL.iter().map(|table| self.chunks(*table)).collect();
        all.retain(|chunks| !chunks.is_empty());
        all.sort_by_key(|chunks| chunks.start);
        match all.as_slice() {
            [a, b] if values(b.clone()).start <= values(a.clone()).end => {
                vec![values(a.start..a.end.max(b.end))]
            }
            all => all.iter().cloned().map(values).collect(),
        }
    }

    pub(crate) fn table(&self, table: Table) -> TableInfo {
        let [dwarf, symbol_table] = self.tables;
        match table {
            Table::Dwarf => dwarf,
            Table::SymbolTable => symbol_table,
        }
    }

    /// The metadata block of the image `id`.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] if the bytes changed or belong to another image, [`Error::Malformed`] if they are invalid.
    pub(crate) fn decode(id: &ImageId, block: &[u8]) -> Result<Self, Error> {
        let location = ErrorLocation { section: SectionKind::Metadata, index: 0 };
        if block.len() > Self::MAX_BLOCK_SIZE {
            return Err(location.malformed("larger than the format allows"));
        }
        let parts = block.split_first_chunk();
        let (checksum, body) = parts.ok_or_else(|| location.malformed("shorter than a checksum"))?;
        if Checksums::new(id, SectionKind::Metadata).of(0, body) != *checksum {
            return Err(Error::Checksum { location });
        }
        let undecodable = |_| location.malformed("its fields do not decode");
        let (Stored(mut metadata), read) =
            bincode::serde::decode_from_slice(body, config()).map_err(undecodable)?;
        if let Some(rest @ [_, ..]) = body.get(read..) {
            let (segments, read) = bincode::serde::decode_from_slice(rest, config()).map_err(undecodable)?;
            if read != rest.len() {
                return Err(location.malformed("bytes remain after its fields"));
            }
            metadata.segments = Some(segments);
        }
        if metadata.id != *id {
            return Err(location.malformed("it names another image"));
        }
        metadata.first_wrong().map_or(Ok(metadata), |what| Err(location.malformed(what)))
    }

    /// Returns the first thing that is invalid, or `None` if all fields are valid.
    pub(crate) fn first_wrong(&self) -> Option<&'static str> {
        if !(1..=MAX_CHUNK_SPAN).contains(&self.chunk_span) {
            return Some("its chunks span nothing, or too much");
        }
        // The last chunk ends at a number of 64 bits, so that arithmetic on offsets within chunks cannot overflow.
        let last = u64::MAX / u64::from(self.chunk_span);
        let end = |table: &TableInfo| table.first_chunk.checked_add(table.chunks);
        let fits = |table: &TableInfo| end(table).is_some_and(|end| end <= last);
        if !self.tables.iter().all(|table| table.chunks <= MAX_CHUNKS && fits(table)) {
            return Some("a table has too many chunks, or chunks beyond the address space");
        }
        if self.counts.names.max(self.counts.files) >= u64::from(u32::MAX) {
            return Some("it has too many names or files");
        }
        let mut covered = 0;
        for (start, end) in &self.executable {
            if *start < covered || end <= start || *end > self.image_size {
                return Some("executable ranges are empty, out of order or outside the image");
            }
            covered = *end;
        }
        if self.segments.as_ref().is_some_and(|segments| Self::sorted_segments(segments.clone()) != *segments)
        {
            return Some("executable segments are empty, out of order, overlapping or too many");
        }
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::format::{MAX_SEGMENTS, Seen};

    pub(crate) fn sample() -> Metadata {
        Metadata {
            id: ImageId::new(&[0xab, 0xcd]).expect("2 bytes are an id"),
            image_name: "Demo".to_owned(),
            arch: Arch::from_macho(0x0100_000c, 2),
            base: 0x1_0000_0000,
            image_size: 0x4000,
            executable: vec![(0x1000, 0x4000)],
            text_exec_base: None,
            chunk_span: 0x1_0000,
            counts: Counts {
                units: 1,
                functions: 2,
                ranges: 3,
                symbols: 4,
                names: 5,
                files: 6,
                seen: Seen {
                    functions: 8,
                    inlined: 9,
                    rows: 10,
                    symbols: 11,
                    functions_outside: 12,
                    symbols_outside: 13,
                },
            },
            partial: vec![Partial { reason: "x".to_owned(), count: 7 }],
            builder: "0".to_owned(),
            input_digest: Some([0xd1; 16]),
            tables: [TableInfo { first_chunk: 0, chunks: 1 }, TableInfo::default()],
            segments: None,
        }
    }

    fn block(id: &ImageId, body: &[u8]) -> Vec<u8> {
        [&Checksums::new(id, SectionKind::Metadata).of(0, body)[..], body].concat()
    }

    #[test]
    fn the_bytes_are_pinned() {
        let expected = "\
            00 0200000000000000 abcd 0400000000000000 44656d6f 0600000000000000 61726d363465 0c000001 02000000 \
            0000000001000000 0040000000000000 0100000000000000 0010000000000000 0040000000000000 00 00000100 \
            0100000000000000 0200000000000000 0300000000000000 0400000000000000 \
            0500000000000000 0600000000000000 0800000000000000 0900000000000000 0a00000000000000 \
            0b00000000000000 0c00000000000000 0d00000000000000 0100000000000000 0100000000000000 78 0700000000000000 \
            0100000000000000 30 01 d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1 \
            0000000000000000 0100000000000000 0000000000000000 0000000000000000";
        let block = sample().encode().expect("small");
        let hex: String = block[CHECKSUM_SIZE..].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected.replace(' ', ""));
        assert_eq!(Metadata::decode(&sample().id, &block).expect("as written"), sample());
        for (segments, more) in [
            (vec![], "0000000000000000"),
            (
                vec![[0x900, 0x1900, 0x20]],
                "0100000000000000 0009000000000000 0019000000000000 2000000000000000",
            ),
        ] {
            let with_segments = Metadata { segments: Some(segments), ..sample() };
            let block = with_segments.encode().expect("small");
            let hex: String = block[CHECKSUM_SIZE..].iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, (expected.to_owned() + more).replace(' ', ""));
            assert_eq!(Metadata::decode(&sample().id, &block).expect("as written"), with_segments);
        }
    }

    #[test]
    fn the_counts_decide_the_grade() {
        let grade = |counts| Metadata { counts, ..sample() }.grade();
        let none = Counts::default();
        let symbols = Counts { symbols: 4, ..none };
        assert_eq!(grade(none), Grade::Nothing);
        assert_eq!(
            grade(Counts { units: 3, ..none }),
            Grade::Nothing,
            "units without functions answer nothing"
        );
        assert_eq!(grade(symbols), Grade::Bounds);
        assert_eq!(grade(Counts { functions: 1, ranges: 1, ..none }), Grade::Bounds);
        assert_eq!(grade(Counts { names: 1, ..symbols }), Grade::Names);
        assert_eq!(grade(Counts { names: 1, files: 1, ..symbols }), Grade::Lines);
        let words = Grade::ALL.map(|grade| grade.to_string());
        assert_eq!(words, ["nothing", "bounds", "names", "lines"]);
        assert!(Grade::ALL.is_sorted());
    }

    #[test]
    fn every_cut_every_change_and_every_other_image_is_refused() {
        let block = sample().encode().expect("small");
        for len in 0..block.len() {
            assert!(Metadata::decode(&sample().id, &block[..len]).is_err());
        }
        let body = [&sample().encode().expect("small")[CHECKSUM_SIZE..], &[0; 9]].concat();
        for len in body.len() - 8..=body.len() {
            let is_option = len == body.len() - 1;
            let with_rest = super::tests::block(&sample().id, &body[..len]);
            assert_eq!(Metadata::decode(&sample().id, &with_rest).is_ok(), is_option, "{len}");
        }
        for at in 0..block.len() {
            let mut changed = block.clone();
            changed[at] ^= 1;
            assert!(Metadata::decode(&sample().id, &changed).is_err());
        }
        let other = ImageId::new(&[1]).expect("one byte is an id");
        assert!(matches!(Metadata::decode(&other, &block), Err(Error::Checksum { .. })));
    }

    #[test]
    fn a_prefix_that_is_cut_or_changed_is_refused() {
        let golden = std::fs::read("../../testdata/golden/v1/inline-dwarf4-1.symdex").expect("there");
        let section = Header::decode(&golden, golden.len() as u64).expect("an index").sections[0];
        let prefix = &golden[..usize::try_from(section.offset + section.size).expect("small")];
        Metadata::from_prefix(prefix).expect("whole");
        for len in 0..prefix.len() {
            assert!(Metadata::from_prefix(&prefix[..len]).is_err(), "{len}");
        }
        for at in 0..prefix.len() {
            let mut changed = prefix.to_vec();
            changed[at] ^= 1;
            assert!(Metadata::from_prefix(&changed).is_err(), "{at}");
        }
    }

    #[test]
    fn numbers_that_make_no_sense_are_neither_written_nor_read() {
        type Spoil = fn(&mut Metadata);
        let spoilt: [(Spoil, &str); 15] = [
            (|m| m.chunk_span = 0, "span nothing"),
            (|m| m.chunk_span = MAX_CHUNK_SPAN + 1, "span nothing"),
            (|m| m.tables[0].chunks = MAX_CHUNKS + 1, "too many chunks"),
            (|m| m.tables[1].first_chunk = u64::MAX, "too many chunks"),
            (|m| m.tables[0].first_chunk = u64::MAX / 0x1_0000, "too many chunks"),
            (|m| m.counts.files = 1 << 32, "too many names"),
            (|m| m.counts.names = u64::from(u32::MAX), "too many names"),
            (|m| m.executable = vec![(0x1000, 0x1000)], "executable"),
            (|m| m.executable = vec![(0x1000, 0x2000), (0x1fff, 0x3000)], "executable"),
            (|m| m.image_size = 0x3fff, "executable"),
            (|m| m.segments = Some(vec![[0, 0x1000, 0]]), "segments"),
            (|m| m.segments = Some(vec![[0, 0x1000, 0x11], [0x11, 0x1010, 1]]), "segments"),
            (|m| m.segments = Some(vec![[0, u64::MAX, 1]]), "segments"),
            (|m| m.segments = Some(vec![[u64::MAX, 0, 1]]), "segments"),
            (|m| m.segments = Some((0..=MAX_SEGMENTS as u64).map(|at| [at, at, 1]).collect()), "segments"),
        ];
        for (spoil, expected) in spoilt {
            let mut metadata = sample();
            spoil(&mut metadata);
            let refused = metadata.encode().expect_err(expected).to_string();
            assert!(refused.contains(expected), "{refused}");
            // Written nevertheless, with a matching checksum.
            let block = block(&metadata.id, &metadata.encode_fields().expect("encodes"));
            let refused = Metadata::decode(&metadata.id, &block).expect_err(expected).to_string();
            assert!(refused.contains(expected), "{refused}");
        }
    }

    #[test]
    fn lengths_beyond_the_limit_are_neither_written_nor_allocated() {
        let mut metadata = sample();
        metadata.image_name = "x".repeat(MAX_METADATA);
        assert!(metadata.encode().is_err_and(|error| error.to_string().contains("1 MiB")));
        let large = vec![0; CHECKSUM_SIZE + MAX_METADATA + 1];
        assert!(
            Metadata::decode(&metadata.id, &large).is_err_and(|error| error.to_string().contains("larger"))
        );
        // An id and a name of 2^60 bytes.
        let mut body = 2u64.to_le_bytes().to_vec();
        body.extend([0xab, 0xcd]);
        body.extend((1u64 << 60).to_le_bytes());
        let block = block(&metadata.id, &body);
        assert!(
            Metadata::decode(&metadata.id, &block).is_err_and(|error| error.to_string().contains("decode"))
        );
    }
}
