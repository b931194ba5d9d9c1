//! The records of an index file, one per module: each with its encoding and its decoding. `docs/FORMAT.md` is the specification.

mod bits;
mod checksum;
mod header;
mod limits;
mod metadata;
mod pages;
mod trailer;
mod varint;

pub(crate) use bits::{BitReader, Rows};
pub(crate) use checksum::{CHECKSUM_SIZE, Location};
pub(crate) use header::{Header, Section, VERSION};
pub use limits::MAX_STRING;
pub(crate) use limits::{MAX_CHUNK_LOCS, MAX_CHUNK_SPAN, MAX_CHUNKS, MAX_FRAMES};
pub(crate) use metadata::TableInfo;
pub use metadata::{Counts, Metadata, Partial, RowRule};
pub(crate) use pages::{PAGE_SIZE, PageChecks, PageReader, checksums_size, page_checksum};
pub(crate) use trailer::{TRAILER_SIZE, Trailer};
pub(crate) use varint::{Cursor, unzigzag};

use serde::{Deserialize, Serialize};

/// A part of an index. Its number is part of its checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SectionKind {
    /// The fixed header.
    Header = 0,
    /// The metadata block.
    Metadata = 1,
    /// A page of the codes, which also say where each chunk begins.
    CodePage = 2,
    /// A page of chunks.
    ChunkPage = 3,
    /// A page of names.
    NamePage = 4,
    /// A page of file paths.
    FilePage = 5,
    /// The fixed trailer.
    Trailer = 6,
    /// A chunk of the `dwarf` table, in errors only.
    DwarfChunk = 7,
    /// A chunk of the `symbol_table` table, in errors only.
    SymbolChunk = 8,
}

impl SectionKind {
    /// The section's name, as error messages and `symdex inspect` print it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SectionKind::Header => "header",
            SectionKind::Metadata => "metadata",
            SectionKind::CodePage => "code page",
            SectionKind::ChunkPage => "chunk page",
            SectionKind::NamePage => "name page",
            SectionKind::FilePage => "file page",
            SectionKind::Trailer => "trailer",
            SectionKind::DwarfChunk => "dwarf chunk",
            SectionKind::SymbolChunk => "symbol_table chunk",
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

    /// What errors call a chunk of the table.
    pub(crate) fn chunk(self) -> SectionKind {
        match self {
            Table::Dwarf => SectionKind::DwarfChunk,
            Table::SymbolTable => SectionKind::SymbolChunk,
        }
    }
}
