//! Writing an index: chunks and string blocks are encoded one by one, on any thread, and put together in order.
//!
//! The caller gives chunks in ascending order, `dwarf` before `symbol_table`, and numbers strings in the order in which the chunks
//! first need them; [`Writer::finish`] lays the file out. The bytes depend on what is given and on nothing else.

mod pools;

use std::io::{self, Read, Seek, Write};

use xxhash_rust::xxh3::Xxh3Default;

pub use pools::{EncodedFiles, EncodedNames};

pub use crate::chunk::{ChunkRanges, Loc, Range};
use crate::chunk::{encode_pool_ids, encode_structure};
use crate::error::Error;
pub use crate::format::MAX_STRING;
use crate::format::{
    BuildOptions, Compressor, Counts, Entry, FrameKey, Header, MAX_CHUNKS, Metadata, Partial, RowRule,
    SectionKind, Table, TableInfo, Trailer, encode_directory,
};
pub use crate::id32::Id32;
use crate::image::{Arch, ImageId};
use crate::names::page_checksums;

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
        names: &EncodedNames,
        files: &EncodedFiles,
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
        let directory = directories(&id, &tables, names, files);
        let size = |bytes: &Vec<u8>| bytes.len() as u64;
        let (names, files) = (&names.section, &files.section);
        let sizes = [size(&metadata), chunks_size, 0, size(names), size(files), size(&directory)];
        let header = Header::lay_out(id, has_aliases, sizes);
        let mut out = Digested { out, digest: Xxh3Default::new() };
        out.write_all(&header.encode())?;
        out.write_all(&metadata)?;
        chunks.rewind()?;
        if io::copy(&mut chunks, &mut out)? != chunks_size {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        out.write_all(names)?;
        out.write_all(files)?;
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
    names: &EncodedNames,
    files: &EncodedFiles,
) -> Vec<u8> {
    let mut out = Vec::new();
    let [dwarf, symbols] = tables;
    for (section, table) in [(SectionKind::DwarfDirectory, dwarf), (SectionKind::SymbolDirectory, symbols)] {
        encode_directory(&mut out, id, section, table.offset, &table.entries);
    }
    out.extend(page_checksums(id, &names.section));
    encode_directory(&mut out, id, SectionKind::FilesDirectory, 0, &files.entries);
    out
}
