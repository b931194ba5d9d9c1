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
    checked: Checked,
    serial: u64,
}

/// Which pages of each section were found intact.
struct Checked {
    codes: PageChecks,
    chunks: PageChecks,
    names: PageChecks,
    files: PageChecks,
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
        let sizes = header.paged().map(|section| checksums_size(section.size));
        if sizes.iter().try_fold(0u64, |sum, size| sum.checked_add(*size)) != Some(header.checksums.size) {
            let what = "its sections have another number of pages than there are checksums";
            return Err(Location { id: &header.id, section: SectionKind::Header, index: 0 }.malformed(what));
        }
        let [codes, chunks, names, files] = header.paged().map(|section| PageChecks::new(section.size));
        let checked = Checked { codes, chunks, names, files };
        let pages = |kind| pages(file, &header, &checked, kind);
        let code_table = Codes::decode(&pages(SectionKind::CodePage), &metadata)?;
        let names = Layout::decode(&pages(SectionKind::NamePage), metadata.counts.names)?;
        let files = Layout::decode(&pages(SectionKind::FilePage), metadata.counts.files)?;
        // Not the digest: a forged file can state the digest of another.
        static NEXT_SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        Ok(Self { bytes, header, metadata, trailer, codes: code_table, names, files, checked, serial })
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
        let (layout, kind) = match pool {
            Pool::Names => (&self.names, SectionKind::NamePage),
            Pool::Files => (&self.files, SectionKind::FilePage),
        };
        NameReader { layout, pages: self.pages(kind) }
    }

    /// Reads chunks.
    #[inline]
    pub(crate) fn chunk_reader(&self) -> ChunkReader<'_> {
        ChunkReader {
            metadata: &self.metadata,
            codes: &self.codes,
            places: self.pages(SectionKind::CodePage),
            pages: self.pages(SectionKind::ChunkPage),
            serial: self.serial,
        }
    }

    fn pages(&self, kind: SectionKind) -> PageReader<'_> {
        pages(self.as_bytes(), &self.header, &self.checked, kind)
    }

    pub(crate) fn chunk_location(&self, table: Table, index: u64) -> Location<'_> {
        Location { id: &self.header.id, section: table.chunk(), index }
    }
}

/// Reads the section of `file` that has pages of this kind.
fn pages<'s>(file: &'s [u8], header: &'s Header, checked: &'s Checked, kind: SectionKind) -> PageReader<'s> {
    let [codes, chunks, names, files] = header.paged();
    let (before, section, checked): (&[Section], _, _) = match kind {
        SectionKind::CodePage => (&[], codes, &checked.codes),
        SectionKind::ChunkPage => (&[codes], chunks, &checked.chunks),
        SectionKind::NamePage => (&[codes, chunks], names, &checked.names),
        _ => (&[codes, chunks, names], files, &checked.files),
    };
    let before: u64 = before.iter().map(|section| checksums_size(section.size)).sum();
    let checksums = Section { offset: header.checksums.offset + before, size: checksums_size(section.size) };
    let [section, checksums] = [section, checksums].map(|part| part.of(file).unwrap_or_default());
    PageReader { id: &header.id, kind, section, checksums, checked }
}
