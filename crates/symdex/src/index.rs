//! An open index: its sections, and how a chunk or a string is read from them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::chunk::{Answers, LocalStrings, Structure, decode_structure};
use crate::error::Error;
use crate::format::{
    Block, Decompressor, Directory, FrameKey, Header, Metadata, PoolInfo, Section, SectionKind, Table,
    Trailer, dictionary_bytes,
};
use crate::image::ImageId;
use crate::names::{Layout, NameReader, PageChecks, PageReader, pages_size};
use crate::packed::{ChunkReader, Shared};

/// An index over bytes of any kind: a `Vec`, a slice, a memory map.
///
/// Opening reads the header, the metadata and the trailer, whatever the index's size. Everything else is checked when it is
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
    /// The parts of the directory; see [`directory_sizes`].
    directories: [Section; 4],
    /// What is read in pages; `None` in version 1, where everything is in frames.
    paged: Option<Paged>,
    serial: u64,
}

/// The sections that are read in pages, and which of their pages were found intact.
struct Paged {
    names: (Layout, PageChecks),
    files: (Layout, PageChecks),
    shared: (Shared, PageChecks),
    chunks: PageChecks,
}

/// A chunk of an index of version 1 as a lookup uses it.
pub(crate) struct LoadedChunk {
    pub(crate) structure: Structure,
    pub(crate) strings: LocalStrings,
}

/// The frames A and B of a chunk, as they are stored.
pub(crate) type ChunkFrames<'a> = (&'a [u8], &'a [u8]);

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
    /// [`Error::NotAnIndex`], [`Error::UnsupportedVersion`] or [`Error::UnsupportedFeature`] for what is no index this
    /// reader knows; [`Error::WrongSize`] for one that was cut; [`Error::Checksum`] or [`Error::Malformed`] where the header,
    /// the metadata or the trailer is damaged.
    pub fn open(bytes: B) -> Result<Self, Error> {
        let file = bytes.as_ref();
        let header = Header::decode(file)?;
        let trailer = Trailer::decode(file)?;
        let block = header.metadata.of(file).unwrap_or_default();
        let metadata = Metadata::decode(&header.id, block)?;
        let fill = |sizes: &[u64; 4]| {
            sizes.iter().try_fold(0u64, |a, b| a.checked_add(*b)) == Some(header.directory.size)
        };
        let directories = directory_sizes(&header, &metadata).filter(fill).ok_or_else(|| {
            let key = FrameKey { id: &header.id, section: SectionKind::Metadata, index: 0 };
            key.malformed("its counts do not fit the directory")
        })?;
        // They follow each other in the directory, which they fill.
        let mut offset = header.directory.offset;
        let directories = directories.map(|size| {
            let part = Section { offset, size };
            offset += size;
            part
        });
        // Not the digest, which is whatever the file says it is: with it, one index could pass for another.
        static NEXT_SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        let mut index = Self { bytes, header, metadata, trailer, directories, paged: None, serial };
        if index.header.version > 1 {
            let Header { names, files, shared, chunks, .. } = &index.header;
            let [names, files, shared, chunks] =
                [names, files, shared, chunks].map(|section| PageChecks::new(section.size));
            let name_layout =
                Layout::decode(&index.pages(SectionKind::NamePage, &names), index.metadata.names)?;
            let file_layout =
                Layout::decode(&index.pages(SectionKind::FilePage, &files), index.metadata.files)?;
            let layout = Shared::decode(&index.pages(SectionKind::SharedPage, &shared), &index.metadata)?;
            let (names, files, shared) = ((name_layout, names), (file_layout, files), (layout, shared));
            index.paged = Some(Paged { names, files, shared, chunks });
        }
        Ok(index)
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
        let header = &self.header;
        [
            ("metadata", header.metadata),
            ("chunks", header.chunks),
            (if header.version == 1 { "dictionary" } else { "shared" }, header.shared),
            ("names", header.names),
            ("files", header.files),
            ("directory", header.directory),
        ]
        .map(|(name, section)| (name, section.offset, section.size))
    }

    /// The version of the format that the index is written in.
    #[must_use]
    pub fn format_version(&self) -> u16 {
        self.header.version
    }

    /// How many bytes chunk `index` of `table` takes; `None` for an empty chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] where what says so is damaged.
    pub fn chunk_size(&self, table: Table, index: u64) -> Result<Option<usize>, Error> {
        Ok(match self.chunk_reader() {
            Some(reader) => reader.bytes(&self.metadata, table, index)?.map(|bytes| bytes.len()),
            None => self.frames(table, index)?.map(|(structure, strings)| structure.len() + strings.len()),
        })
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

    /// A number that no other index opened by this process has: what a scratch space knows its index by.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// The metadata's section.
    pub(crate) fn metadata_section(&self) -> &[u8] {
        self.header.metadata.of(self.as_bytes()).unwrap_or_default()
    }

    /// The section of the dictionary that version 1 compresses names with; since version 2 of what chunks share.
    pub(crate) fn dictionary_section(&self) -> &[u8] {
        self.header.shared.of(self.as_bytes()).unwrap_or_default()
    }

    /// The dictionary of that section; empty where there is none.
    pub(crate) fn dictionary(&self) -> Result<&[u8], Error> {
        dictionary_bytes(&self.header.id, self.dictionary_section())
    }

    /// What reads single strings of `pool`; `None` in version 1.
    pub(crate) fn strings_of(&self, pool: Pool) -> Option<NameReader<'_>> {
        let paged = self.paged.as_ref()?;
        let ((layout, checked), kind) = match pool {
            Pool::Names => (&paged.names, SectionKind::NamePage),
            Pool::Files => (&paged.files, SectionKind::FilePage),
        };
        Some(NameReader { layout, pages: self.pages(kind, checked), key: (self.serial, pool) })
    }

    /// What reads chunks; `None` in version 1.
    pub(crate) fn chunk_reader(&self) -> Option<ChunkReader<'_>> {
        let Paged { shared: (shared, checked), chunks, .. } = self.paged.as_ref()?;
        let pages = self.pages(SectionKind::SharedPage, checked);
        let chunks = self.pages(SectionKind::ChunkPage, chunks);
        Some(ChunkReader { shared, pages, chunks, serial: self.serial })
    }

    /// What reads the section whose pages are of this kind.
    fn pages<'s>(&'s self, kind: SectionKind, checked: &'s PageChecks) -> PageReader<'s> {
        let [chunks, shared, names, files] = self.directories;
        let (section, checksums) = match kind {
            SectionKind::ChunkPage => (self.header.chunks, chunks),
            SectionKind::SharedPage => (self.header.shared, shared),
            SectionKind::FilePage => (self.header.files, files),
            _ => (self.header.names, names),
        };
        let [section, checksums] =
            [section, checksums].map(|part| part.of(self.as_bytes()).unwrap_or_default());
        PageReader { id: &self.header.id, kind, section, checksums, checked }
    }

    /// Chunk `index` of `table` of an index of version 1, decompressed; `None` for an empty one.
    pub(crate) fn load_chunk(
        &self,
        table: Table,
        index: u64,
        plain: &mut Decompressor<'_>,
    ) -> Result<Option<LoadedChunk>, Error> {
        let Some((frame_a, frame_b)) = self.frames(table, index)? else { return Ok(None) };
        let structure: Structure =
            decode_structure(&self.metadata, table, index, frame_a, Answers::Apart, plain)?;
        let key = self.key(table.strings(), index);
        let strings = LocalStrings::decode(&plain.payload(key, frame_b)?);
        let strings = strings.ok_or_else(|| key.malformed("its numbers do not decode"))?;
        if strings.lens() != structure.lens() {
            return Err(key.malformed("it does not explain the numbers of its structure"));
        }
        Ok(Some(LoadedChunk { structure, strings }))
    }

    /// The frames A and B of a chunk of an index of version 1; `None` where the table has no such chunk or an empty one.
    pub(crate) fn frames(&self, table: Table, index: u64) -> Result<Option<ChunkFrames<'_>>, Error> {
        let chunks = self.metadata.chunks(table);
        if !chunks.contains(&index) {
            return Ok(None);
        }
        let section = match table {
            Table::Dwarf => SectionKind::DwarfDirectory,
            Table::SymbolTable => SectionKind::SymbolDirectory,
        };
        let chunk_bytes = self.header.chunks.of(self.as_bytes()).unwrap_or_default();
        let (a, b) = self.directory(section).frames(chunk_bytes, index - chunks.start)?;
        Ok((!a.is_empty()).then_some((a, b)))
    }

    pub(crate) fn pool(&self, pool: Pool) -> PoolInfo {
        match pool {
            Pool::Names => self.metadata.names,
            Pool::Files => self.metadata.files,
        }
    }

    /// Block `index` of `pool`, decompressed.
    pub(crate) fn load_block(
        &self,
        pool: Pool,
        index: u64,
        decompressor: &mut Decompressor<'_>,
    ) -> Result<Block, Error> {
        let (section, directory, bytes) = match pool {
            Pool::Names => (SectionKind::Names, SectionKind::NamesDirectory, self.header.names),
            Pool::Files => (SectionKind::Files, SectionKind::FilesDirectory, self.header.files),
        };
        let key = self.key(section, index);
        let info = self.pool(pool);
        let per_block = u64::from(info.strings_per_block);
        let before = index.checked_mul(per_block).and_then(|before| info.strings.checked_sub(before));
        let len =
            before.filter(|left| *left != 0).ok_or_else(|| key.malformed("no such block"))?.min(per_block);
        let bytes = bytes.of(self.as_bytes()).unwrap_or_default();
        let (frame, _) = self.directory(directory).frames(bytes, index)?;
        let payload = decompressor.payload(key, frame)?;
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        Block::decode(payload, len).ok_or_else(|| key.malformed("its strings do not decode"))
    }

    pub(crate) fn key(&self, section: SectionKind, index: u64) -> FrameKey<'_> {
        FrameKey { id: &self.header.id, section, index }
    }

    /// Checks that the directories of version 1 have all of the chunks', the names' and the files' sections filled with frames.
    pub(crate) fn verify_directories(&self) -> Result<(), Error> {
        if self.paged.is_some() {
            return Ok(());
        }
        let metadata = &self.metadata;
        let [dwarf, symbols] = Table::ALL.map(|table| metadata.chunk_len(table));
        let verify = |section, len, offset| self.directory(section).verify(len, offset);
        let dwarf_end = verify(SectionKind::DwarfDirectory, dwarf, 0)?;
        let ends = [
            verify(SectionKind::SymbolDirectory, symbols, dwarf_end)?,
            verify(SectionKind::NamesDirectory, metadata.names.blocks(), 0)?,
            verify(SectionKind::FilesDirectory, metadata.files.blocks(), 0)?,
        ];
        if ends != [self.header.chunks.size, self.header.names.size, self.header.files.size] {
            return Err(self.key(SectionKind::Header, 0).malformed("frames do not fill their section"));
        }
        Ok(())
    }

    fn directory(&self, section: SectionKind) -> Directory<'_> {
        let [dwarf, symbols, names, files] = self.directories;
        let blocks = match section {
            SectionKind::DwarfDirectory => dwarf,
            SectionKind::SymbolDirectory => symbols,
            SectionKind::NamesDirectory => names,
            _ => files,
        };
        let blocks = blocks.of(self.as_bytes()).unwrap_or_default();
        Directory { id: &self.header.id, section, blocks }
    }
}

/// Bytes of the four parts of the directory, in file order. In version 1: blocks of the `dwarf` chunks, of the `symbol_table` chunks, of
/// names, of files; since version 2: checksums of the pages of chunks, of what they share, of names, of files.
fn directory_sizes(header: &Header, metadata: &Metadata) -> Option<[u64; 4]> {
    if header.version > 1 {
        let Header { chunks, shared, names, files, .. } = header;
        return Some([chunks, shared, names, files].map(|section| pages_size(section.size)));
    }
    let [dwarf, symbols] = Table::ALL.map(|table| Directory::size_of(metadata.chunk_len(table)));
    let [names, files] = [metadata.names, metadata.files].map(|pool| Directory::size_of(pool.blocks()));
    Some([dwarf?, symbols?, names?, files?])
}
