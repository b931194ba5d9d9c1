//! An open index: its sections, and how a chunk or a string is read from them.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, ErrorLocation};
use crate::format::header::{READABLE_NAMES, UNWIND_ROWS};
use crate::format::{
    Checksums, FileSection, Header, Metadata, PageChecks, PageReader, SectionKind, Table, VERSION,
    checksums_size,
};
use crate::image::ImageId;
use crate::names::readable::{ReadableLayout, ReadableReader};
use crate::names::{NameLayout, NameReader};
use crate::packed::{ChunkReader, Codes};
use crate::unwind::{UnwindReader, UnwindSection};

/// An open index, over bytes of any kind: a `Vec`, a slice, a memory map.
///
/// A value of a key-value store (`write::split`) is an index, too.
///
/// [`Index::open`] reads the header, the metadata, the codes (at most 10 kB) and the heads of the names and of the
/// files. This does not depend on the size of the index. The codes are decoded into tables, which do not change
/// afterwards. The other pages are checked when they are first read. The set of checked pages is the only state that
/// changes and that threads share.
///
/// ```
/// use symdex::{ImageOffset, Index, LinePolicy};
///
/// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
/// let index = Index::open(symdex::read_index_file(path.as_ref())?)?;
/// for frame in index.frames(ImageOffset(0x3cf), LinePolicy::Statement)? {
///     println!("{} {}", frame.name_lossy().unwrap_or_default(), frame.line.unwrap_or_default());
/// }
/// # Ok::<(), symdex::Error>(())
/// ```
pub struct Index<B> {
    bytes: B,
    pub(crate) header: Header,
    metadata: Metadata,
    codes: Codes,
    names: NameLayout,
    files: NameLayout,
    readable: Option<(ReadableLayout, Paged)>,
    /// The section of unwind rows. Its head is decoded when it is first read.
    unwind: Option<(OnceLock<UnwindSection>, Paged)>,
    code_pages: Paged,
    chunk_pages: Paged,
    name_pages: Paged,
    file_pages: Paged,
    /// A number that is unique among the indexes opened by this process. A scratch space identifies indexes by it.
    pub(crate) serial: u64,
}

impl<B: AsRef<[u8]>> fmt::Debug for Index<B> {
    /// Prints the id, the image's name and the size, not the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("id", self.id())
            .field("image_name", &self.metadata.image_name)
            .field("size", &self.as_bytes().len())
            .finish_non_exhaustive()
    }
}

/// Where a section of an index lies in its file; see [`Index::sections`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct SectionInfo {
    /// Its name in `docs/FORMAT.md`.
    pub name: &'static str,
    /// Bytes before it in the file.
    pub offset: u64,
    /// Bytes that it has.
    pub size: u64,
}

/// A section that is read in pages.
struct Paged {
    kind: SectionKind,
    section: FileSection,
    sums: Checksums,
    /// Where the checksums of its pages lie.
    checksums: FileSection,
    /// Its intact pages.
    checked: PageChecks,
}

impl Paged {
    /// The sections of codes, files, names and chunks.
    fn all(header: &Header) -> Result<[Self; 4], Error> {
        let [_, codes, files, all_checksums, names, chunks] = header.sections;
        let mut end = all_checksums.offset;
        let paged = [
            (SectionKind::CodePage, codes),
            (SectionKind::FilePage, files),
            (SectionKind::NamePage, names),
            (SectionKind::ChunkPage, chunks),
        ]
        .map(|(kind, section)| {
            let checksums = FileSection { offset: end, size: checksums_size(section.size) };
            end = end.saturating_add(checksums.size);
            Self::new(kind, [section, checksums], &header.id)
        });
        if end != all_checksums.offset + all_checksums.size {
            let what = "its sections have another number of pages than there are checksums";
            return Err(ErrorLocation { section: SectionKind::Header, index: 0 }.malformed(what));
        }
        Ok(paged)
    }

    /// The section of a compatible feature, if the index has it.
    fn optional(
        kind: SectionKind,
        feature: u32,
        header: &Header,
        file: &[u8],
    ) -> Result<Option<Self>, Error> {
        let parts = header.optional.find(feature, file)?;
        Ok(parts.map(|parts| Self::new(kind, parts, &header.id)))
    }

    fn new(kind: SectionKind, [section, checksums]: [FileSection; 2], id: &ImageId) -> Self {
        let (sums, checked) = (Checksums::new(id, kind), PageChecks::new(section.size));
        Self { kind, section, sums, checksums, checked }
    }

    /// Where an optional section lies in the file: its size, its contents and their checksums.
    fn whole(&self) -> FileSection {
        let offset = self.section.offset - 8;
        FileSection { offset, size: self.checksums.offset + self.checksums.size - offset }
    }

    #[inline]
    fn reader<'s>(&'s self, file: &'s [u8]) -> PageReader<'s> {
        let [section, checksums] = [self.section, self.checksums].map(|part| part.within(file));
        PageReader { kind: self.kind, section, sums: self.sums, checksums, checked: &self.checked }
    }
}

/// The two string pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StringPool {
    Names,
    Files,
}

impl<B: AsRef<[u8]>> Index<B> {
    /// Opens the index in `bytes`.
    ///
    /// # Errors
    ///
    /// [`Error::NotAnIndex`], [`Error::UnsupportedVersion`] or [`Error::UnsupportedFeature`] for a file that this
    /// reader cannot read; [`Error::WrongSize`] for one that was cut; [`Error::Checksum`] or [`Error::Malformed`] if
    /// the header, the metadata or the codes are damaged.
    pub fn open(bytes: B) -> Result<Self, Error> {
        let file = bytes.as_ref();
        let header = Header::decode(file, file.len() as u64)?;
        let metadata = Metadata::decode(&header.id, header.sections[0].within(file))?;
        let [code_pages, file_pages, name_pages, chunk_pages] = Paged::all(&header)?;
        let codes = Codes::decode(&code_pages.reader(file), &metadata)?;
        let names = NameLayout::decode(&name_pages.reader(file), 0, metadata.counts.names)?;
        let files = NameLayout::decode(&file_pages.reader(file), 0, metadata.counts.files)?;
        let readable = Paged::optional(SectionKind::ReadableNamePage, READABLE_NAMES, &header, file)?;
        let readable = readable.map(|paged| {
            let layout = ReadableLayout::decode(&paged.reader(file), metadata.counts.names)?;
            Ok::<_, Error>((layout, paged))
        });
        let readable = readable.transpose()?;
        let unwind = Paged::optional(SectionKind::UnwindPage, UNWIND_ROWS, &header, file)?;
        let unwind = unwind.map(|paged| (OnceLock::new(), paged));
        // The serial number identifies the index. The digest does not, because a forged file can state that of another.
        static NEXT_SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            bytes,
            header,
            metadata,
            codes,
            names,
            files,
            readable,
            unwind,
            code_pages,
            chunk_pages,
            name_pages,
            file_pages,
            serial,
        })
    }

    /// A number that no other index that this process has opened has, even of the same file. A cache of answers can
    /// identify the index by it.
    #[doc(hidden)]
    #[must_use]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// What the index states about its image and its build.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The image's id.
    #[must_use]
    pub fn id(&self) -> &ImageId {
        &self.header.id
    }

    /// XXH3-128, low half first, of the whole index, as its header states it: equal for equal indexes. Opening an index
    /// does not check it; [`Index::verify_digest`] does.
    #[must_use]
    pub fn digest(&self) -> [u8; 16] {
        self.header.digest
    }

    /// Whether the index has readable names; see [`Frame::readable`](crate::Frame::readable). They are an option of the
    /// build.
    #[must_use]
    pub fn has_readable_names(&self) -> bool {
        self.readable.is_some()
    }

    /// The sections of the index, in the order in which they lie in the file: the six that every index has, and the
    /// optional ones that this reader knows, with their sizes and checksums.
    #[doc(hidden)]
    #[must_use]
    pub fn sections(&self) -> Vec<SectionInfo> {
        let [metadata, codes, files, checksums, names, chunks] = self.header.sections;
        let info = |name, FileSection { offset, size }| SectionInfo { name, offset, size };
        let mut all = vec![
            info("metadata", metadata),
            info("codes", codes),
            info("files", files),
            info("checksums", checksums),
            info("names", names),
            info("chunks", chunks),
        ];
        let readable = self.readable.iter().map(|(_, paged)| ("readable names", paged));
        let unwind = self.unwind.iter().map(|(_, paged)| ("unwind rows", paged));
        all.extend(readable.chain(unwind).map(|(name, paged)| info(name, paged.whole())));
        all
    }

    /// The format version of the index.
    #[must_use]
    pub fn format_version(&self) -> u16 {
        VERSION
    }

    /// How many bytes chunk `index` of `table` takes. Returns `None` for an empty chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] if the stored place of the chunk is damaged.
    #[doc(hidden)]
    pub fn chunk_size(&self, table: Table, index: u64) -> Result<Option<usize>, Error> {
        Ok(self.chunk_reader().bytes_of(table, index)?.map(|bytes| bytes.len()))
    }

    /// What holds the bytes of the index.
    pub fn bytes(&self) -> &B {
        &self.bytes
    }

    /// The index's own bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Reads single strings of `pool`.
    #[inline]
    pub(crate) fn strings_of(&self, pool: StringPool) -> NameReader<'_> {
        let (layout, paged) = match pool {
            StringPool::Names => (&self.names, &self.name_pages),
            StringPool::Files => (&self.files, &self.file_pages),
        };
        NameReader { layout, pages: self.pages(paged) }
    }

    /// Reads readable names. `None` if the index has none.
    #[inline]
    pub(crate) fn readable(&self) -> Option<ReadableReader<'_>> {
        let (layout, paged) = self.readable.as_ref()?;
        Some(ReadableReader { layout, pages: self.pages(paged) })
    }

    /// The pages of unwind rows. `None` if the index has none.
    pub(crate) fn unwind_pages(&self) -> Option<PageReader<'_>> {
        self.unwind.as_ref().map(|(_, paged)| self.pages(paged))
    }

    /// Reads unwind rows. `None` if the index has none.
    pub(crate) fn unwind_reader(&self) -> Result<Option<UnwindReader<'_>>, Error> {
        let Some((section, paged)) = &self.unwind else { return Ok(None) };
        let pages = self.pages(paged);
        let section = match section.get() {
            Some(section) => section,
            // Two threads that decode it at the same time get the same result.
            None => {
                let decoded = UnwindSection::decode(&pages)?;
                section.get_or_init(|| decoded)
            }
        };
        let mask = if self.metadata.arch.is_32_bit() { u32::MAX.into() } else { u64::MAX };
        Ok(Some(UnwindReader { section, pages, mask }))
    }

    /// Reads chunks.
    #[inline]
    pub(crate) fn chunk_reader(&self) -> ChunkReader<'_> {
        ChunkReader {
            metadata: &self.metadata,
            codes: &self.codes,
            places: self.pages(&self.code_pages),
            pages: self.pages(&self.chunk_pages),
            serial: self.serial,
        }
    }

    #[inline]
    fn pages<'s>(&'s self, paged: &'s Paged) -> PageReader<'s> {
        paged.reader(self.as_bytes())
    }
}
