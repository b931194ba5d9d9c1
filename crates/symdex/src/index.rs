//! An open index: its sections, and how a chunk or a string is read from them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::LoadedChunk;
use crate::chunk::{Answers, LocalStrings, Structure, decode_structure};
use crate::error::Error;
use crate::format::{
    Block, Decompressor, Directory, FrameKey, Header, Metadata, PoolInfo, SectionKind, Table, Trailer,
    dictionary_bytes,
};
use crate::image::ImageId;
use crate::names::{Layout, NameReader, PageChecks, PageReader, pages_size};

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
    /// Bytes of the four directories; see [`directory_sizes`].
    directories: [u64; 4],
    /// Where the names lie; none in version 1, where they are blocks.
    names: Option<(Layout, PageChecks)>,
    serial: u64,
}

/// The frames A and B of a chunk, as they are stored.
pub(crate) type ChunkFrames<'a> = (&'a [u8], &'a [u8]);

/// The two string pools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        // Not the digest, which is whatever the file says it is: with it, one index could pass for another.
        static NEXT_SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        let mut index = Self { bytes, header, metadata, trailer, directories, names: None, serial };
        if index.header.version > 1 {
            let checked = PageChecks::new(index.names_section());
            let layout = Layout::decode(&index.name_pages(&checked), index.metadata.names)?;
            index.names = Some((layout, checked));
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
            ("dictionary", header.dictionary),
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

    /// How many bytes the two frames of chunk `index` of `table` take, the structure and what its numbers mean; `None` for
    /// an empty chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] where the directory is damaged.
    pub fn chunk_size(&self, table: Table, index: u64) -> Result<Option<(usize, usize)>, Error> {
        Ok(self.frames(table, index)?.map(|(structure, strings)| (structure.len(), strings.len())))
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

    /// The section of the dictionary that version 1 compresses names with.
    pub(crate) fn dictionary_section(&self) -> &[u8] {
        self.header.dictionary.of(self.as_bytes()).unwrap_or_default()
    }

    /// The dictionary of that section; empty where there is none.
    pub(crate) fn dictionary(&self) -> Result<&[u8], Error> {
        dictionary_bytes(&self.header.id, self.dictionary_section())
    }

    /// What reads single names; `None` in version 1.
    pub(crate) fn names(&self) -> Option<NameReader<'_>> {
        let (layout, checked) = self.names.as_ref()?;
        Some(NameReader { layout, pages: self.name_pages(checked), serial: self.serial })
    }

    fn name_pages<'s>(&'s self, checked: &'s PageChecks) -> PageReader<'s> {
        let checksums = self.directory(SectionKind::NamesDirectory).blocks;
        PageReader { id: &self.header.id, section: self.names_section(), checksums, checked }
    }

    fn names_section(&self) -> &[u8] {
        self.header.names.of(self.as_bytes()).unwrap_or_default()
    }

    /// Chunk `index` of `table`, decompressed; `None` for an empty one.
    pub(crate) fn load_chunk(
        &self,
        table: Table,
        index: u64,
        plain: &mut Decompressor<'_>,
    ) -> Result<Option<LoadedChunk>, Error> {
        let Some((frame_a, frame_b)) = self.frames(table, index)? else { return Ok(None) };
        let answers = if self.header.version == 1 { Answers::Apart } else { Answers::Together };
        let structure: Structure = decode_structure(&self.metadata, table, index, frame_a, answers, plain)?;
        let key = self.key(table.strings(), index);
        let strings = LocalStrings::decode(&plain.payload(key, frame_b)?);
        let strings = strings.ok_or_else(|| key.malformed("its numbers do not decode"))?;
        if strings.lens() != structure.lens() {
            return Err(key.malformed("it does not explain the numbers of its structure"));
        }
        Ok(Some(LoadedChunk { structure, strings }))
    }

    /// The frames A and B of a chunk; `None` where the table has no such chunk or an empty one.
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

    /// Checks that the directories have all of the chunks', the names' and the files' sections filled with frames.
    pub(crate) fn verify_directories(&self) -> Result<(), Error> {
        let metadata = &self.metadata;
        let [dwarf, symbols] = Table::ALL.map(|table| metadata.chunk_len(table));
        let verify = |section, len, offset| self.directory(section).verify(len, offset);
        let dwarf_end = verify(SectionKind::DwarfDirectory, dwarf, 0)?;
        let names_end = match &self.names {
            Some(_) if self.header.dictionary.size != 0 => {
                return Err(self.key(SectionKind::Header, 0).malformed("a dictionary that nothing needs"));
            }
            Some(_) => self.header.names.size,
            None => verify(SectionKind::NamesDirectory, metadata.names.blocks(), 0)?,
        };
        let ends = [
            verify(SectionKind::SymbolDirectory, symbols, dwarf_end)?,
            names_end,
            verify(SectionKind::FilesDirectory, metadata.files.blocks(), 0)?,
        ];
        if ends != [self.header.chunks.size, self.header.names.size, self.header.files.size] {
            return Err(self.key(SectionKind::Header, 0).malformed("frames do not fill their section"));
        }
        Ok(())
    }

    fn directory(&self, section: SectionKind) -> Directory<'_> {
        let [dwarf, symbols, names, files] = self.directories;
        let (before, size) = match section {
            SectionKind::DwarfDirectory => (0, dwarf),
            SectionKind::SymbolDirectory => (dwarf, symbols),
            SectionKind::NamesDirectory => (dwarf + symbols, names),
            _ => (dwarf + symbols + names, files),
        };
        let all = self.header.directory.of(self.as_bytes()).unwrap_or_default();
        let start = usize::try_from(before).unwrap_or(usize::MAX);
        let blocks = all.get(start..).and_then(|rest| rest.get(..usize::try_from(size).ok()?));
        Directory { id: &self.header.id, section, blocks: blocks.unwrap_or_default() }
    }
}

/// Bytes of the four directories, in file order: dwarf chunks, symbol_table chunks, names, file blocks.
fn directory_sizes(header: &Header, metadata: &Metadata) -> Option<[u64; 4]> {
    let [dwarf, symbols] = Table::ALL.map(|table| Directory::size_of(metadata.chunk_len(table)));
    let names = match header.version {
        1 => Directory::size_of(metadata.names.blocks()),
        _ => Some(pages_size(header.names.size)),
    };
    Some([dwarf?, symbols?, names?, Directory::size_of(metadata.files.blocks())?])
}
