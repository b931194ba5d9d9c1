//! Writing an index: chunks and string blocks are encoded one by one, on any thread, and put together in order.
//!
//! The caller gives chunks in ascending order, `dwarf` before `symbol_table`, and numbers strings in the order in which the chunks
//! first need them; [`Writer::finish`] lays the file out. The bytes depend on what is given and on nothing else.

use std::io::{self, Read, Seek, Write};

use xxhash_rust::xxh3::Xxh3Default;
use zstd::dict::EncoderDictionary;

pub use crate::chunk::{ChunkRanges, Loc, Range};
use crate::chunk::{encode_pool_ids, encode_structure};
use crate::error::Error;
pub use crate::format::MAX_STRING;
use crate::format::{
    BuildOptions, Compressor, Counts, Entry, FrameKey, Header, MAX_CHUNKS, Metadata, Partial, PoolInfo,
    RowRule, SectionKind, Table, TableInfo, Trailer, encode_block, encode_dictionary, encode_directory,
    prepare, strings_per_block,
};
pub use crate::id32::Id32;
use crate::image::{Arch, ImageId};

/// What an index says of its image.
#[derive(Clone, Debug)]
pub struct ImageInfo {
    /// The image's id.
    pub id: ImageId,
    /// The debug file's own file name.
    pub image_name: String,
    /// The architecture.
    pub arch: Arch,
    /// The SVMA that image offsets count from.
    pub base: u64,
    /// Bytes from the base to the end of the last executable section.
    pub image_size: u64,
    /// Executable sections as half-open ranges of image offsets, sorted, none overlapping.
    pub executable: Vec<(u64, u64)>,
    /// The SVMA of `__TEXT_EXEC`, if there is one.
    pub text_exec_base: Option<u64>,
    /// Which of several line rows at one address counts.
    pub row_rule: RowRule,
}

/// Encodes chunks; one for each thread, used for many.
pub struct ChunkEncoder {
    id: ImageId,
    chunk_span: u32,
    compressor: Compressor<'static>,
}

/// A chunk ready to be put into a file.
pub struct EncodedChunk {
    table: Table,
    index: u64,
    has_aliases: bool,
    a: Vec<u8>,
    b: Vec<u8>,
}

impl ChunkEncoder {
    /// An encoder for chunks of the image `id`, each of `chunk_span` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] where zstd refuses the compression level.
    pub fn new(id: &ImageId, chunk_span: u32, options: BuildOptions) -> Result<Self, Error> {
        Ok(Self { id: id.clone(), chunk_span, compressor: Compressor::new(options.compression_level)? })
    }

    /// Chunk `index` of `table`. `new_names` and `new_files` are how many names and files the chunks before it used.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] where the ranges are not as [`ChunkRanges`] asks for, or too many for the format.
    pub fn encode(
        &mut self,
        table: Table,
        index: u64,
        chunk: &ChunkRanges,
        new_names: u32,
        new_files: u32,
    ) -> Result<EncodedChunk, Error> {
        let start = index.checked_mul(u64::from(self.chunk_span));
        let ends = start.and_then(|start| Some((start, start.checked_add(u64::from(self.chunk_span))?)));
        let (start, end) = ends.ok_or(Error::Unwritable { what: "a chunk beyond the address space" })?;
        if let Some(what) = chunk.first_wrong(start, end) {
            return Err(Error::Unwritable { what });
        }
        let structure = encode_structure(start, chunk);
        let strings = encode_pool_ids(&structure.names, new_names, &structure.files, new_files);
        let key = |section| FrameKey { id: &self.id, section, index };
        let a = self.compressor.frame(key(table.structure()), &structure.payload)?;
        let b = self.compressor.frame(key(table.strings()), &strings)?;
        Ok(EncodedChunk { table, index, has_aliases: chunk.has_aliases(table), a, b })
    }
}

/// Encodes one of the two string pools, block by block.
pub struct PoolEncoder<'s, S> {
    id: ImageId,
    section: SectionKind,
    strings: &'s [S],
    info: PoolInfo,
    dictionary: &'s [u8],
    prepared: EncoderDictionary<'static>,
}

/// The blocks of a pool, ready to be put into a file.
pub struct EncodedPool {
    info: PoolInfo,
    /// The section of the dictionary that the blocks were compressed with.
    dictionary: Vec<u8>,
    blocks: Vec<Vec<u8>>,
}

impl<'s, S: AsRef<[u8]>> PoolEncoder<'s, S> {
    /// The pool of `names`, in the order of their ids, compressed with `dictionary` (empty for none).
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] where a name is longer than [`MAX_STRING`], or zstd cannot use the dictionary.
    pub fn names(
        id: &ImageId,
        names: &'s [S],
        dictionary: &'s [u8],
        options: BuildOptions,
    ) -> Result<Self, Error> {
        Self::new(id, SectionKind::Names, names, dictionary, options)
    }

    /// The pool of file paths, in the order of their ids.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] where a path is longer than [`MAX_STRING`].
    pub fn files(id: &ImageId, files: &'s [S], options: BuildOptions) -> Result<Self, Error> {
        Self::new(id, SectionKind::Files, files, &[], options)
    }

    fn new(
        id: &ImageId,
        section: SectionKind,
        strings: &'s [S],
        dictionary: &'s [u8],
        options: BuildOptions,
    ) -> Result<Self, Error> {
        if strings.iter().any(|string| string.as_ref().len() > MAX_STRING) {
            return Err(Error::Unwritable { what: "a name or a file path of more than 64 KiB" });
        }
        Ok(Self {
            id: id.clone(),
            section,
            strings,
            info: PoolInfo { strings: strings.len() as u64, strings_per_block: strings_per_block(strings) },
            dictionary,
            prepared: prepare(dictionary, options.compression_level)?,
        })
    }

    /// How many blocks there are.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.info.blocks()
    }

    /// Blocks `blocks`, one frame each; what one thread does at a time.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] where a block would be too large for the format.
    pub fn encode(&self, blocks: std::ops::Range<u64>) -> Result<Vec<Vec<u8>>, Error> {
        let mut compressor = Compressor::with_dictionary(&self.prepared)?;
        let per_block = self.info.strings_per_block as usize;
        let skip = usize::try_from(blocks.start).unwrap_or(usize::MAX);
        blocks
            .zip(self.strings.chunks(per_block).skip(skip))
            .map(|(index, strings)| {
                let payload = encode_block(strings.iter().map(AsRef::as_ref));
                compressor.frame(FrameKey { id: &self.id, section: self.section, index }, &payload)
            })
            .collect()
    }

    /// The whole pool, from all its blocks in order.
    #[must_use]
    pub fn finish(&self, blocks: Vec<Vec<u8>>) -> EncodedPool {
        EncodedPool { info: self.info, dictionary: encode_dictionary(&self.id, self.dictionary), blocks }
    }
}

/// Puts chunks and pools together into an index file.
pub struct Writer<S> {
    image: ImageInfo,
    chunk_span: u32,
    options: BuildOptions,
    /// The chunks so far: what a file has before them is known last.
    chunks: S,
    chunks_size: u64,
    has_aliases: bool,
    tables: [TableChunks; 2],
}

/// The directory entries of a table, from its first chunk on.
#[derive(Default)]
struct TableChunks {
    first: u64,
    offset: u64,
    entries: Vec<Entry>,
}

impl<S: Read + Write + Seek> Writer<S> {
    /// A writer of an index whose chunks span `chunk_span` bytes. Until all is known they are kept in `chunks`, which is empty: a
    /// `Cursor` over bytes, or a temporary file.
    #[must_use]
    pub fn new(image: ImageInfo, chunk_span: u32, options: BuildOptions, chunks: S) -> Self {
        let tables = Default::default();
        Self { image, chunk_span, options, chunks, chunks_size: 0, has_aliases: false, tables }
    }

    /// Adds the next chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] where the chunk is not behind the ones added before it, or too far behind the first, [`Error::Io`] where
    /// it cannot be kept.
    pub fn push(&mut self, chunk: EncodedChunk) -> Result<(), Error> {
        let [dwarf, symbols] = &mut self.tables;
        let table = match chunk.table {
            Table::Dwarf if symbols.entries.is_empty() => dwarf,
            Table::Dwarf => {
                return Err(Error::Unwritable { what: "a dwarf chunk behind symbol_table chunks" });
            }
            Table::SymbolTable => symbols,
        };
        if table.entries.is_empty() {
            (table.first, table.offset) = (chunk.index, self.chunks_size);
        }
        let size = |bytes: &[u8]| u32::try_from(bytes.len());
        let (Ok(a_size), Ok(b_size)) = (size(&chunk.a), size(&chunk.b)) else {
            return Err(Error::Unwritable { what: "a chunk of over 4 GiB" });
        };
        let at = chunk.index.checked_sub(table.first).and_then(|at| usize::try_from(at).ok());
        let Some(at) = at.filter(|at| *at >= table.entries.len()) else {
            return Err(Error::Unwritable { what: "chunks out of order" });
        };
        if at as u64 >= MAX_CHUNKS {
            return Err(Error::Unwritable {
                what: "code that is spread over more chunks than the format allows",
            });
        }
        table.entries.resize(at, Entry::default());
        table.entries.push(Entry { a_size, b_size });
        self.has_aliases |= chunk.has_aliases;
        self.chunks_size += u64::from(a_size) + u64::from(b_size);
        self.chunks.write_all(&chunk.a)?;
        self.chunks.write_all(&chunk.b)?;
        Ok(())
    }

    /// Writes the whole file to `out`. `counts.names` and `counts.files` are filled in here.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] where the metadata does not make sense or something would be too large for the format, [`Error::Io`]
    /// where `out` or what the chunks are kept in fails.
    pub fn finish(
        self,
        names: &EncodedPool,
        files: &EncodedPool,
        counts: Counts,
        partial: Vec<Partial>,
        out: impl Write,
    ) -> Result<(), Error> {
        let Self { image, chunk_span, options, mut chunks, chunks_size, has_aliases, tables } = self;
        let id = image.id.clone();
        let metadata = Metadata {
            id: image.id,
            image_name: image.image_name,
            arch: image.arch,
            base: image.base,
            image_size: image.image_size,
            executable: image.executable,
            text_exec_base: image.text_exec_base,
            chunk_span,
            row_rule: image.row_rule,
            options,
            counts: Counts { names: names.info.strings, files: files.info.strings, ..counts },
            partial,
            builder: env!("CARGO_PKG_VERSION").to_owned(),
            tables: tables
                .each_ref()
                .map(|table| TableInfo { first_chunk: table.first, chunks: table.entries.len() as u64 }),
            names: names.info,
            files: files.info,
        }
        .encode()?;
        let directory = directories(&id, &tables, names, files)?;
        let dictionary = &names.dictionary;
        let size = |bytes: &Vec<u8>| bytes.len() as u64;
        let [name_blocks, file_blocks] = [names, files].map(|pool| pool.blocks.iter().map(size).sum());
        let sizes =
            [size(&metadata), chunks_size, size(dictionary), name_blocks, file_blocks, size(&directory)];
        let header = Header::lay_out(id, has_aliases, sizes);
        let mut out = Digested { out, digest: Xxh3Default::new() };
        out.write_all(&header.encode())?;
        out.write_all(&metadata)?;
        chunks.rewind()?;
        if io::copy(&mut chunks, &mut out)? != chunks_size {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        out.write_all(dictionary)?;
        names.blocks.iter().chain(&files.blocks).try_for_each(|block| out.write_all(block))?;
        out.write_all(&directory)?;
        let Digested { mut out, digest } = out;
        let trailer = Trailer { file_size: header.file_size, digest: digest.digest128().to_le_bytes() };
        out.write_all(&trailer.encode())?;
        Ok(out.flush()?)
    }
}

/// Writes to `out`, and digests what is written.
struct Digested<W> {
    out: W,
    digest: Xxh3Default,
}

impl<W: Write> Write for Digested<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.digest.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn directories(
    id: &ImageId,
    tables: &[TableChunks; 2],
    names: &EncodedPool,
    files: &EncodedPool,
) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    let [dwarf, symbols] = tables;
    for (section, table) in [(SectionKind::DwarfDirectory, dwarf), (SectionKind::SymbolDirectory, symbols)] {
        encode_directory(&mut out, id, section, table.offset, &table.entries);
    }
    for (section, pool) in [(SectionKind::NamesDirectory, names), (SectionKind::FilesDirectory, files)] {
        let entry = |block: &Vec<u8>| u32::try_from(block.len()).map(|a_size| Entry { a_size, b_size: 0 });
        let entries: Result<Vec<_>, _> = pool.blocks.iter().map(entry).collect();
        let entries = entries.map_err(|_| Error::Unwritable { what: "a string block of over 4 GiB" })?;
        encode_directory(&mut out, id, section, 0, &entries);
    }
    Ok(out)
}
