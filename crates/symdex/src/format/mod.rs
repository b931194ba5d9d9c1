//! The records of an index file, one per module: each with its layout, its encoding and its decoding.
//!
//! `docs/FORMAT.md` is the specification; the modules follow its sections.

mod dictionary;
mod directory;
mod frame;
mod header;
mod limits;
mod metadata;
mod pool;
mod trailer;
mod varint;

pub use dictionary::Dictionary;
pub(crate) use dictionary::{dictionary_bytes, encode_dictionary, prepare, raw_dictionary, value_checksum};
pub(crate) use directory::Directory;
use frame::CHECKSUM_SIZE;
pub(crate) use frame::{Compressor, Decompressor, FrameKey};
pub(crate) use header::{Header, Section};
pub use limits::MAX_STRING;
pub(crate) use limits::{
    MAX_CHUNK_LOCS, MAX_CHUNK_SPAN, MAX_CHUNKS, MAX_FRAMES, MAX_PAYLOAD, MAX_RUN_RANGES,
};
pub use metadata::{BuildOptions, Counts, Metadata, Partial, RowRule};
pub(crate) use metadata::{PoolInfo, TableInfo};
pub(crate) use pool::Block;
pub(crate) use trailer::{TRAILER_SIZE, Trailer};
pub(crate) use varint::{Cursor, put_varint, unzigzag, zigzag};

use serde::{Deserialize, Serialize};

/// What a stored frame belongs to; its number is part of the frame's checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SectionKind {
    /// The fixed header.
    Header = 0,
    /// The metadata block.
    Metadata = 1,
    /// Frame A of a chunk of the `dwarf` table: its structure.
    DwarfStructure = 2,
    /// Frame B of a chunk of the `dwarf` table: what its numbers mean.
    DwarfStrings = 3,
    /// Frame A of a chunk of the `symbol_table` table.
    SymbolStructure = 4,
    /// Frame B of a chunk of the `symbol_table` table.
    SymbolStrings = 5,
    /// The dictionary that name blocks are compressed with.
    Dictionary = 6,
    /// A block of names.
    Names = 7,
    /// A block of file paths.
    Files = 8,
    /// A block of the `dwarf` table's chunk directory.
    DwarfDirectory = 9,
    /// A block of the `symbol_table` table's chunk directory.
    SymbolDirectory = 10,
    /// A block of the name blocks' directory.
    NamesDirectory = 11,
    /// A block of the file blocks' directory.
    FilesDirectory = 12,
    /// The fixed trailer.
    Trailer = 13,
    /// A page of names.
    NamePage = 14,
    /// A page of file paths.
    FilePage = 15,
    /// A page of chunks.
    ChunkPage = 16,
    /// A page of what chunks share.
    SharedPage = 17,
}

impl SectionKind {
    /// The most bytes that a frame of this section may hold once it is decompressed.
    fn max_payload(self) -> usize {
        match self {
            SectionKind::Names | SectionKind::Files => limits::MAX_BLOCK,
            _ => limits::MAX_PAYLOAD,
        }
    }

    /// The section's name, as error messages and `symdex inspect` print it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SectionKind::Header => "header",
            SectionKind::Metadata => "metadata",
            SectionKind::DwarfStructure => "dwarf chunk",
            SectionKind::DwarfStrings => "strings of dwarf chunk",
            SectionKind::SymbolStructure => "symbol_table chunk",
            SectionKind::SymbolStrings => "strings of symbol_table chunk",
            SectionKind::Dictionary => "dictionary",
            SectionKind::Names => "name block",
            SectionKind::Files => "file block",
            SectionKind::DwarfDirectory => "dwarf directory block",
            SectionKind::SymbolDirectory => "symbol_table directory block",
            SectionKind::NamesDirectory => "name directory block",
            SectionKind::FilesDirectory => "file directory block",
            SectionKind::Trailer => "trailer",
            SectionKind::NamePage => "name page",
            SectionKind::FilePage => "file page",
            SectionKind::ChunkPage => "chunk page",
            SectionKind::SharedPage => "shared page",
        }
    }
}

/// Which of an index's two tables an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Table {
    /// Ranges from debug information: functions, inlining, files and lines.
    Dwarf,
    /// Ranges from the symbol table: names only.
    SymbolTable,
}

impl Table {
    /// Both, in the order a lookup asks them.
    pub const ALL: [Table; 2] = [Table::Dwarf, Table::SymbolTable];

    /// `dwarf` or `symbol_table`, as answers print it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Table::Dwarf => "dwarf",
            Table::SymbolTable => "symbol_table",
        }
    }

    pub(crate) fn structure(self) -> SectionKind {
        match self {
            Table::Dwarf => SectionKind::DwarfStructure,
            Table::SymbolTable => SectionKind::SymbolStructure,
        }
    }

    pub(crate) fn strings(self) -> SectionKind {
        match self {
            Table::Dwarf => SectionKind::DwarfStrings,
            Table::SymbolTable => SectionKind::SymbolStrings,
        }
    }
}
