//! An open index: its sections, and how a chunk or a string is read from them.

use crate::chunk::{LocalStrings, Structure, decode_structure, encode_strings, encode_value};
use crate::error::Error;
use crate::format::{
    Block, Compressor, Decompressor, Directory, FrameKey, Header, Metadata, PoolInfo, SectionKind, Table,
    Trailer, VERSION,
};
use crate::id32::Id32;
use crate::image::ImageId;
use crate::scratch::LoadedChunk;

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
}

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
        let directories = directory_sizes(&metadata)
            .and_then(|sizes| sizes.iter().try_fold(0u64, |a, b| a.checked_add(*b)));
        if directories != Some(header.directory.size) {
            let key = FrameKey { id: &header.id, section: SectionKind::Metadata, index: 0 };
            return Err(key.malformed("its counts do not fit the directory"));
        }
        Ok(Self { bytes, header, metadata, trailer })
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
        VERSION
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

    pub(crate) fn trailer(&self) -> Trailer {
        self.trailer
    }

    /// What the strings of this index's chunk values are compressed with; empty for none.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] where it is damaged.
    pub fn dictionary(&self) -> Result<&[u8], Error> {
        match self.header.dictionary.of(self.as_bytes()).unwrap_or_default() {
            [] => Ok(&[]),
            stored => self.key(SectionKind::Dictionary, 0).checked(stored),
        }
    }

    /// The value that a key-value store keeps of chunk `index` of `table`; `None` for an empty chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] where the chunk or its strings are damaged.
    pub fn chunk_value(&self, table: Table, index: u64) -> Result<Option<Vec<u8>>, Error> {
        let Some((frame_a, _)) = self.frames(table, index)? else { return Ok(None) };
        let Some(chunk) = self.load_chunk(table, index, &mut Decompressor::new(&[])?)? else {
            return Ok(None);
        };
        let dictionary = self.dictionary()?;
        let LocalStrings::PoolIds { names, files } = &chunk.strings else {
            return Err(self.key(table.strings(), index).malformed("its strings are no pool ids"));
        };
        let mut strings = crate::lookup::Strings::new(self);
        let mut own = |pool, ids: &[Option<Id32>]| -> Result<Vec<Option<Vec<u8>>>, Error> {
            let string =
                |id: &Option<Id32>| id.map(|id| strings.get(pool, id).map(<[u8]>::to_vec)).transpose();
            ids.iter().map(string).collect()
        };
        let (names, files) = (own(Pool::Names, names)?, own(Pool::Files, files)?);
        let level = self.metadata.options.compression_level;
        let encoder = zstd::dict::EncoderDictionary::copy(dictionary, level);
        let key = self.key(table.strings(), index);
        let frame_b = Compressor::with_dictionary(&encoder)?.frame(key, &encode_strings(&names, &files))?;
        encode_value(frame_a, &frame_b).map(Some)
    }

    /// Chunk `index` of `table`, decompressed; `None` for an empty one.
    pub(crate) fn load_chunk(
        &self,
        table: Table,
        index: u64,
        plain: &mut Decompressor,
    ) -> Result<Option<LoadedChunk>, Error> {
        let Some((frame_a, frame_b)) = self.frames(table, index)? else { return Ok(None) };
        let structure: Structure = decode_structure(&self.metadata, table, index, frame_a, plain)?;
        let key = self.key(table.strings(), index);
        let strings = LocalStrings::decode(&plain.payload(key, frame_b)?);
        let strings = strings.ok_or_else(|| key.malformed("its numbers do not decode"))?;
        if strings.lens() != structure.lens() {
            return Err(key.malformed("it does not explain the numbers of its structure"));
        }
        Ok(Some(LoadedChunk { structure, strings }))
    }

    /// The frames A and B of a chunk; `None` where the table has no such chunk or an empty one.
    fn frames(&self, table: Table, index: u64) -> Result<Option<(&[u8], &[u8])>, Error> {
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
        decompressor: &mut Decompressor,
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

    fn directory(&self, section: SectionKind) -> Directory<'_> {
        let [dwarf, symbols, names, files] = directory_sizes(&self.metadata).unwrap_or_default();
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

/// Bytes of the four directories, in file order: dwarf chunks, symbol_table chunks, name blocks, file blocks.
fn directory_sizes(metadata: &Metadata) -> Option<[u64; 4]> {
    let [dwarf, symbols] = Table::ALL.map(|table| Directory::size_of(metadata.chunk_len(table)));
    let [names, files] = [metadata.names, metadata.files].map(|pool| Directory::size_of(pool.blocks()));
    Some([dwarf?, symbols?, names?, files?])
}
