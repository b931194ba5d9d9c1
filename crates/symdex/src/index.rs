//! An open index: its sections, and how a chunk or a string is read from them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::format::{
    Header, Location, Metadata, PageChecks, PageReader, Section, SectionKind, Table, Trailer, VERSION,
    checksums_size,
};
use crate::image::ImageId;
use crate::names::{Layout, NameReader};
use crate::packed::{ChunkReader, Codes};

/// An index over bytes of any kind: a `Vec`, a slice, a memory map. A value of a store is an index, too.
///
/// Opening reads the header, the metadata, the codes and the trailer, whatever the index's size. Everything else is checked when it is
/// read, so a lookup in a damaged index either answers right or fails. Share it between threads; each brings its own
/// [`crate::Scratch`].
///
/// ```
/// # fn demo(bytes: Vec<u8>) -> Result<(), symdex::Error> {
/// use symdex::{ImageOffset, Index, LinePolicy, Scratch};
///
/// let index = Index::open(bytes)?;
/// let mut scratch = Scratch::default();
/// if let Some(frames) = index.lookup(ImageOffset(0x1234), LinePolicy::Statement, &mut scratch)? {
///     for frame in frames.iter() {
///         println!("{}", String::from_utf8_lossy(frame.name.unwrap_or(b"??")));
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Index<B> {
    bytes: B,
    header: Header,
    metadata: Metadata,
    trailer: Trailer,
    codes: Codes,
    names: Layout,
    files: Layout,
    paged: PagedSections,
    serial: u64,
}

/// A section that is read in pages.
struct Paged {
    kind: SectionKind,
    section: Section,
    /// Where the checksums of its pages lie.
    checksums: Section,
    /// Which of its pages were found intact.
    checked: PageChecks,
}

impl Paged {
    #[inline]
    fn reader<'s>(&'s self, file: &'s [u8], id: &'s ImageId) -> PageReader<'s> {
        let [section, checksums] =
            [self.section, self.checksums].map(|part| part.of(file).unwrap_or_default());
        PageReader { id, kind: self.kind, section, checksums, checked: &self.checked }
    }
}

/// The sections that are read in pages.
struct PagedSections {
    codes: Paged,
    chunks: Paged,
    names: Paged,
    files: Paged,
}

impl PagedSections {
    fn new(header: &Header) -> Result<Self, Error> {
        let mut end = header.checksums.offset;
        let mut paged = |kind, section: Section| {
            let checksums = Section { offset: end, size: checksums_size(section.size) };
            end = end.saturating_add(checksums.size);
            Paged { kind, section, checksums, checked: PageChecks::new(section.size) }
        };
        let sections = Self {
            codes: paged(SectionKind::CodePage, header.codes),
            chunks: paged(SectionKind::ChunkPage, header.chunks),
            names: paged(SectionKind::NamePage, header.names),
            files: paged(SectionKind::FilePage, header.files),
        };
        if end != header.checksums.offset + header.checksums.size {
            let what = "its sections have another number of pages than there are checksums";
            return Err(Location { id: &header.id, section: SectionKind::Header, index: 0 }.malformed(what));
        }
        Ok(sections)
    }
}

/// The two string pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pool {
    Names,
    Files,
}

impl<B: AsRef<[u8]>> Index<B> {
    /// Opens the index in `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::NotAnIndex`], [`Error::UnsupportedVersion`], [`Error::DevelopmentVersion`] or [`Error::UnsupportedFeature`] for a file
    /// that this reader cannot read; [`Error::WrongSize`] for one that was cut; [`Error::Checksum`] or [`Error::Malformed`] where the
    /// header, the metadata, the codes or the trailer is damaged.
    pub fn open(bytes: B) -> Result<Self, Error> {
        let file = bytes.as_ref();
        let header = Header::decode(file)?;
        let trailer = Trailer::decode(file)?;
        let metadata = Metadata::decode(&header.id, header.metadata.of(file).unwrap_or_default())?;
        let paged = PagedSections::new(&header)?;
        let codes = Codes::decode(&paged.codes.reader(file, &header.id), &metadata)?;
        let names = Layout::decode(&paged.names.reader(file, &header.id), metadata.counts.names)?;
        let files = Layout::decode(&paged.files.reader(file, &header.id), metadata.counts.files)?;
        // Not the digest: a forged file can state the digest of another.
        static NEXT_SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        Ok(Self { bytes, header, metadata, trailer, codes, names, files, paged, serial })
    }

    /// What the index says of its image and of how it was built.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The image's id.
    #[must_use]
    pub fn id(&self) -> &ImageId {
        &self.header.id
    }

    /// XXH3-128 of everything before the trailer, low half first, as the trailer states it: equal for equal indexes.
    #[must_use]
    pub fn digest(&self) -> [u8; 16] {
        self.trailer.digest
    }

    /// The index's sections in file order, as (name, offset, size), in bytes.
    #[must_use]
    pub fn sections(&self) -> [(&'static str, u64, u64); 6] {
        let [metadata, codes, chunks, names, files, checksums] =
            self.header.sections().map(|section| (section.offset, section.size));
        let named = |name, (offset, size)| (name, offset, size);
        [
            named("metadata", metadata),
            named("codes", codes),
            named("chunks", chunks),
            named("names", names),
            named("files", files),
            named("checksums", checksums),
        ]
    }

    /// The version of the format that the index is written in.
    #[must_use]
    pub fn format_version(&self) -> u16 {
        VERSION
    }

    /// How many bytes chunk `index` of `table` takes; `None` for an empty chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] where the place of the chunk is damaged.
    pub fn chunk_size(&self, table: Table, index: u64) -> Result<Option<usize>, Error> {
        Ok(self.chunk_reader().bytes_of(table, index)?.map(|bytes| bytes.len()))
    }

    /// The index's own bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Whether the header says that functions of the `symbol_table` may have other names.
    pub(crate) fn has_aliases(&self) -> bool {
        self.header.aliases
    }

    pub(crate) fn trailer(&self) -> Trailer {
        self.trailer
    }

    /// A number that no other index opened by this process has. A scratch space knows its index by it.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// Reads single strings of `pool`.
    #[inline]
    pub(crate) fn strings_of(&self, pool: Pool) -> NameReader<'_> {
        let (layout, paged) = match pool {
            Pool::Names => (&self.names, &self.paged.names),
            Pool::Files => (&self.files, &self.paged.files),
        };
        NameReader { layout, pages: self.pages(paged) }
    }

    /// Reads chunks.
    #[inline]
    pub(crate) fn chunk_reader(&self) -> ChunkReader<'_> {
        ChunkReader {
            metadata: &self.metadata,
            codes: &self.codes,
            places: self.pages(&self.paged.codes),
            pages: self.pages(&self.paged.chunks),
            serial: self.serial,
        }
    }

    #[inline]
    fn pages<'s>(&'s self, paged: &'s Paged) -> PageReader<'s> {
        paged.reader(self.as_bytes(), &self.header.id)
    }

    pub(crate) fn chunk_location(&self, table: Table, index: u64) -> Location<'_> {
        Location { id: &self.header.id, section: table.chunk(), index }
    }
}
