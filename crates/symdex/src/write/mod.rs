//! The writer of indexes.
//!
//! 1. [`ChunkEncoder::encode`] encodes chunks, on any number of threads.
//! 2. [`Writer::push`] takes the encoded chunks in ascending order, those of `dwarf` before those of `symbol_table`.
//! 3. [`EncodedStrings`] encodes the names and the files. Their ids count from 0, in the order in which the chunks
//!    first use them.
//!    [`EncodedReadableNames`] encodes the readable forms of names, an option, and [`EncodedUnwindRows`] unwind rows,
//!    another one.
//! 4. [`SealedWriter::finish`] writes the file. Its bytes depend on the input only.
//!
//! ```
//! use std::io::Cursor;
//! use symdex::write::{
//!     ChunkEncoder, ChunkRanges, CodeRange, EncodedStrings, ImageInfo, InlineFrame, NonMaxU32, Writer,
//! };
//! use symdex::{Arch, Counts, ImageId, ImageOffset, Index, LinePolicy, Scratch, Table};
//!
//! // A function `main` from 0x100 to 0x140, in line 7 of `main.c`.
//! let frame =
//!     InlineFrame { parent: None, name: NonMaxU32::new(0), file: NonMaxU32::new(0), line: NonMaxU32::new(7) };
//! let range = CodeRange { start: 0x100, end: 0x140, function_start: Some(0x100), exact: 0, statement: 0 };
//! let chunk = ChunkRanges { ranges: vec![range], frames: vec![frame] };
//!
//! let (id, arch) = (ImageId::new(&[7; 16]).ok_or("no id")?, Arch::from_name("arm64").ok_or("no arch")?);
//! let mut image = ImageInfo::new(id, "demo", arch);
//! image.image_size = 0x140;
//! image.executable = vec![(0x100, 0x140)];
//! let (chunk_span, image_size) = (0x1000, image.image_size);
//! let mut writer = Writer::new(image, chunk_span, Cursor::new(Vec::new()));
//! writer.push(ChunkEncoder::new(chunk_span, image_size).encode(Table::Dwarf, 0, &chunk)?)?;
//! let (names, files) = (EncodedStrings::new(&["main"])?, EncodedStrings::new(&["main.c"])?);
//! let mut bytes = Vec::new();
//! writer.seal()?.finish(&names, &files, Counts::default(), Vec::new(), &mut bytes)?;
//!
//! let mut scratch = Scratch::default();
//! let index = Index::open(bytes)?;
//! let frames = index.lookup(ImageOffset(0x120), LinePolicy::Exact, &mut scratch)?.ok_or("a gap")?;
//! assert_eq!(frames.iter().next().and_then(|frame| frame.line), Some(7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod bits;
mod chunk;
mod huffman;
mod interner;
mod names;
pub(crate) mod page_sums;
mod readable;
mod records;
mod sources;
mod split;
mod spool;
mod strings;
mod symbol_stream;
mod unwind;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Seek, Write};

use self::chunk::{Buffers, ChunkSymbols, PartSizes, symbols_of};
use self::page_sums::PageSums;
pub use self::readable::EncodedReadableNames;
pub use self::split::{Split, Value, split};
use self::spool::{EncodedChunks, Spool};
pub use self::strings::EncodedStrings;
pub use self::unwind::{EncodedUnwindRows, UnwindRange, UnwindRules, UnwindTable, is_unwind_expression};
#[cfg(test)]
pub(crate) use self::{
    chunk::{BLOCK_FRAMES, BLOCK_LENS},
    names::{encode_names, encode_names_until},
};
use crate::error::Error;
pub use crate::format::MAX_STRING;
use crate::format::header::{READABLE_NAMES, UNWIND_ROWS};
use crate::format::metadata::TableInfo;
use crate::format::{
    Counts, Header, MAX_CHUNK_FRAMES, MAX_CHUNKS, Metadata, Partial, SectionKind, Segment, Table,
};
use crate::image::{Arch, ImageId};
pub use crate::ranges::{ChunkRanges, CodeRange, InlineFrame, NonMaxU32};

/// A key for the hash function of one table. With a fixed hash function, an input could have many keys with the same
/// hash.
fn random_key() -> u64 {
    RandomState::new().hash_one(0)
}

/// The image of an index.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImageInfo {
    /// The image's id.
    pub id: ImageId,
    /// The debug file's own file name.
    pub image_name: String,
    /// The architecture.
    pub arch: Arch,
    /// The address in the debug file that image offsets count from.
    pub base: u64,
    /// Bytes from the base to the end of the last executable section.
    pub image_size: u64,
    /// Executable sections as half-open ranges of image offsets, sorted, none overlapping.
    pub executable: Vec<(u64, u64)>,
    /// The address of `__TEXT_EXEC` in the debug file, if there is one.
    pub text_exec_base: Option<u64>,
    /// As [`Metadata::segments`].
    pub segments: Option<Vec<Segment>>,
}

impl ImageInfo {
    /// Returns an image without code at base 0. The caller sets the other fields.
    #[must_use]
    pub fn new(id: ImageId, image_name: impl Into<String>, arch: Arch) -> Self {
        let (image_name, executable) = (image_name.into(), Vec::new());
        let (base, image_size, text_exec_base, segments) = (0, 0, None, None);
        Self { id, image_name, arch, base, image_size, executable, text_exec_base, segments }
    }
}

/// Encodes chunks. Each thread has one, for any number of chunks.
pub struct ChunkEncoder {
    chunk_span: u32,
    sizes: PartSizes,
    buffers: Buffers,
}

/// A chunk for [`Writer::push`].
pub struct EncodedChunk {
    table: Table,
    index: u64,
    has_aliases: bool,
    group_bits: u8,
    symbols: ChunkSymbols,
}

impl ChunkEncoder {
    /// An encoder for chunks of `chunk_span` bytes of an image of [`ImageInfo::image_size`] bytes. Chunks of small
    /// images take more space and less time to look up.
    #[must_use]
    pub fn new(chunk_span: u32, image_size: u64) -> Self {
        Self { chunk_span, sizes: PartSizes::of(image_size), buffers: Buffers::default() }
    }

    /// Chunk `index` of `table`.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] if the ranges are not as [`ChunkRanges`] describes, or too many for the format.
    pub fn encode(&mut self, table: Table, index: u64, chunk: &ChunkRanges) -> Result<EncodedChunk, Error> {
        let start = index.checked_mul(u64::from(self.chunk_span));
        let ends = start.and_then(|start| Some((start, start.checked_add(u64::from(self.chunk_span))?)));
        let (start, end) = ends.ok_or(Error::Unwritable { what: "a chunk beyond the address space" })?;
        let depths = chunk.depths(start, end).map_err(|what| Error::Unwritable { what })?;
        let symbols =
            symbols_of(self.sizes, [start, end], table == Table::Dwarf, chunk, &depths, &mut self.buffers);
        if symbols.frames > MAX_CHUNK_FRAMES {
            return Err(Error::Unwritable {
                what: "a chunk of more inlined functions than the format allows",
            });
        }
        let (has_aliases, group_bits) = (chunk.has_aliases(table), self.sizes.group_bits);
        Ok(EncodedChunk { table, index, has_aliases, group_bits, symbols })
    }
}

/// Collects the chunks of an index file.
pub struct Writer<S> {
    image: ImageInfo,
    chunk_span: u32,
    chunks: Spool<S>,
    has_aliases: bool,
    tables: [TableInfo; 2],
    input_digest: Option<[u8; 16]>,
}

impl<S: Read + Write + Seek> Writer<S> {
    /// A writer of an index whose chunks span `chunk_span` bytes. The chunks are stored in `chunks` until their codes
    /// are known. `chunks` is empty at first: a `Cursor` over bytes, or a temporary file.
    #[must_use]
    pub fn new(image: ImageInfo, chunk_span: u32, chunks: S) -> Self {
        let chunks = Spool::new(chunks, PartSizes::of(image.image_size).group_bits);
        let tables = [TableInfo::default(); 2];
        Self { image, chunk_span, chunks, has_aliases: false, tables, input_digest: None }
    }

    /// States what the index is built from; see [`Metadata::input_digest`].
    pub fn set_input_digest(&mut self, digest: [u8; 16]) {
        self.input_digest = Some(digest);
    }

    /// Adds the next chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] if the chunk does not follow the ones added before it, is too far after the first, or was
    /// encoded for an image of another size. [`Error::Io`] if the chunk cannot be stored.
    pub fn push(&mut self, chunk: EncodedChunk) -> Result<(), Error> {
        let EncodedChunk { table, index, has_aliases, group_bits, symbols: stream } = chunk;
        if group_bits != self.chunks.group_bits {
            return Err(Error::Unwritable { what: "a chunk that was encoded for an image of another size" });
        }
        let [dwarf, symbols] = &mut self.tables;
        let of_table = match table {
            Table::Dwarf if symbols.chunks == 0 => dwarf,
            Table::Dwarf => {
                return Err(Error::Unwritable { what: "a dwarf chunk after symbol_table chunks" });
            }
            Table::SymbolTable => symbols,
        };
        if of_table.chunks == 0 {
            of_table.first_chunk = index;
        }
        let at = index.checked_sub(of_table.first_chunk).filter(|at| *at >= of_table.chunks);
        let at = at.ok_or(Error::Unwritable { what: "chunks out of order" })?;
        if at >= MAX_CHUNKS {
            return Err(Error::Unwritable {
                what: "code that is spread over more chunks than the format allows",
            });
        }
        self.chunks.skip(at - of_table.chunks);
        of_table.chunks = at + 1;
        self.has_aliases |= has_aliases;
        Ok(self.chunks.push(stream)?)
    }

    /// Encodes the chunks. No chunk can be added afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] if something would be too large for the format, [`Error::Io`] if the stored chunks cannot
    /// be read or written.
    pub fn seal(self) -> Result<SealedWriter<S>, Error> {
        let Self { image, chunk_span, chunks, has_aliases, tables, input_digest } = self;
        let chunks = chunks.finish(&image.id)?;
        let (readable, unwind) = (None, None);
        Ok(SealedWriter { image, chunk_span, chunks, has_aliases, tables, input_digest, readable, unwind })
    }
}

/// An index whose chunks are encoded. Its names and files can be encoded at the same time.
pub struct SealedWriter<S> {
    image: ImageInfo,
    chunk_span: u32,
    chunks: EncodedChunks<S>,
    has_aliases: bool,
    tables: [TableInfo; 2],
    input_digest: Option<[u8; 16]>,
    readable: Option<EncodedReadableNames>,
    unwind: Option<EncodedUnwindRows>,
}

impl<S: Read> SealedWriter<S> {
    /// Adds readable names to the index. There is one, or `None`, for each of the names that [`Self::finish`] takes.
    pub fn set_readable_names(&mut self, names: EncodedReadableNames) {
        self.readable = Some(names);
    }

    /// Adds unwind rows to the index.
    pub fn set_unwind_rows(&mut self, rows: EncodedUnwindRows) {
        self.unwind = Some(rows);
    }

    /// Writes the whole file to `out`. `counts.names` and `counts.files` are filled in here.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] if the metadata is invalid or something would be too large for the format; [`Error::Io`]
    /// if `out` cannot be written or the stored chunks cannot be read.
    pub fn finish(
        self,
        names: &EncodedStrings,
        files: &EncodedStrings,
        counts: Counts,
        partial: Vec<Partial>,
        mut out: impl Write,
    ) -> Result<(), Error> {
        let Self { image, chunk_span, chunks, has_aliases, tables, input_digest, readable, unwind } = self;
        if readable.as_ref().is_some_and(|readable| readable.names != names.len) {
            return Err(Error::Unwritable { what: "readable names of other names than those of the index" });
        }
        let id = image.id.clone();
        let metadata = Metadata {
            id: image.id,
            image_name: image.image_name,
            arch: image.arch,
            base: image.base,
            image_size: image.image_size,
            executable: image.executable,
            text_exec_base: image.text_exec_base,
            segments: image.segments,
            chunk_span,
            counts: Counts { names: names.len, files: files.len, ..counts },
            partial,
            builder: env!("CARGO_PKG_VERSION").to_owned(),
            input_digest,
            tables,
        }
        .encode()?;
        let EncodedChunks { mut chunks, chunks_size, checksums: of_chunks, mut digest, codes } = chunks;
        let (names, files) = (&names.section, &files.section);
        let mut checksums = PageSums::of(&id, SectionKind::CodePage, &codes);
        checksums.extend(PageSums::of(&id, SectionKind::FilePage, files));
        checksums.extend(PageSums::of(&id, SectionKind::NamePage, names));
        checksums.extend(of_chunks);
        let size = |bytes: &Vec<u8>| bytes.len() as u64;
        let sizes = [size(&metadata), size(&codes), size(files), size(&checksums), size(names), chunks_size];
        // In the order of their bits.
        let sections = [
            readable.map(|names| (READABLE_NAMES, SectionKind::ReadableNamePage, names.section)),
            unwind.map(|rows| (UNWIND_ROWS, SectionKind::UnwindPage, rows.section)),
        ];
        let (mut optional, mut features) = (Vec::new(), 0);
        for (feature, kind, section) in sections.into_iter().flatten() {
            features |= 1 << feature;
            optional.extend_from_slice(&size(&section).to_le_bytes());
            optional.extend_from_slice(&section);
            optional.extend(PageSums::of(&id, kind, &section));
        }
        let header = Header::lay_out(id, has_aliases, sizes, features, size(&optional));
        let mut header = header.ok_or(Error::Unwritable { what: "an index of more than 2^64 bytes" })?;
        let before_chunks = [&metadata, &codes, files, &checksums, names];
        digest.update(&header.encode_fields());
        before_chunks.into_iter().chain([&optional]).for_each(|part| digest.update(part));
        header.digest = digest.digest128().to_le_bytes();
        out.write_all(&header.encode())?;
        before_chunks.into_iter().try_for_each(|part| out.write_all(part))?;
        if io::copy(&mut chunks, &mut out)? != chunks_size {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        out.write_all(&optional)?;
        Ok(out.flush()?)
    }
}
