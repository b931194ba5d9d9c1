//! An open index: its sections, and how a chunk or a string is read from them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::LoadedChunk;
use crate::chunk::{Answers, LocalStrings, Structure, decode_structure, encode_strings, encode_value};
use crate::error::Error;
use crate::format::{
    Block, Compressor, Decompressor, Directory, FrameKey, Header, MAX_PAYLOAD, Metadata, PoolInfo,
    SectionKind, Table, Trailer, dictionary_bytes, prepare,
};
use crate::id32::Id32;
use crate::image::ImageId;

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
    serial: u64,
}

/// The frames A and B of a chunk, as they are stored.
type ChunkFrames<'a> = (&'a [u8], &'a [u8]);

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
        // Not the digest, which is whatever the file says it is: with it, one index could pass for another.
        static NEXT_SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = NEXT_SERIAL.fetch_add(1, Ordering::Relaxed);
        Ok(Self { bytes, header, metadata, trailer, serial })
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

    /// The value that a key-value store keeps of the metadata; [`Metadata::decode`] reads it.
    #[must_use]
    pub fn metadata_value(&self) -> &[u8] {
        self.header.metadata.of(self.as_bytes()).unwrap_or_default()
    }

    /// The value that a key-value store keeps of the dictionary, which most chunk values need; empty where there is none.
    /// [`crate::Dictionary::decode`] reads it.
    #[must_use]
    pub fn dictionary_value(&self) -> &[u8] {
        self.header.dictionary.of(self.as_bytes()).unwrap_or_default()
    }

    /// The dictionary itself; empty where there is none.
    pub(crate) fn dictionary(&self) -> Result<&[u8], Error> {
        dictionary_bytes(&self.header.id, self.dictionary_value())
    }

    /// The value that a key-value store keeps of chunk `index` of `table`; `None` for an empty chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] where the chunk or its strings are damaged; [`Error::Unwritable`] where the
    /// strings are too large for one value.
    pub fn chunk_value(&self, table: Table, index: u64) -> Result<Option<Vec<u8>>, Error> {
        let Some((frame_a, _)) = self.frames(table, index)? else { return Ok(None) };
        let Some(chunk) = self.load_chunk(table, index, &mut Decompressor::plain()?)? else {
            return Ok(None);
        };
        let LocalStrings::PoolIds { names, files } = &chunk.strings else {
            return Err(self.key(table.strings(), index).malformed("its strings are no pool ids"));
        };
        let strings = encode_strings(&self.own(Pool::Names, names)?, &self.own(Pool::Files, files)?);
        let dictionary = prepare(self.dictionary()?, self.metadata.options.compression_level)?;
        let key = self.key(table.strings(), index);
        let frame_b = Compressor::with_dictionary(&dictionary)?.frame(key, &strings)?;
        encode_value(frame_a, &frame_b).map(Some)
    }

    /// The strings with these ids.
    fn own(&self, pool: Pool, ids: &[Option<Id32>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut strings = crate::lookup::Strings::new(self);
        let mut own = vec![None; ids.len()];
        let mut size = 0;
        // In the order of the pool, so that no block is read twice.
        let mut order: Vec<_> =
            ids.iter().zip(&mut own).filter_map(|(id, own)| Some(((*id)?, own))).collect();
        order.sort_by_key(|(id, _)| *id);
        for (id, own) in order {
            let string = strings.get(pool, id)?;
            size += string.len();
            if size > MAX_PAYLOAD {
                return Err(Error::Unwritable {
                    what: "the strings of one chunk are larger than the format allows",
                });
            }
            *own = Some(string.to_vec());
        }
        Ok(own)
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
    fn frames(&self, table: Table, index: u64) -> Result<Option<ChunkFrames<'_>>, Error> {
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
