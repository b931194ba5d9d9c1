//! What all chunks share, and reading a chunk with it.
//!
//! ```text
//! varint   bytes of the codes
//! u8       the bits of a place
//! u8       the bits of an origin's place
//! places   where in their section each chunk of the `dwarf` table begins and then each of the `symbol_table`, empty ones included, and where
//!          the last one ends; in bytes
//! codes    see `codes.rs`
//! rows     for every 16th origin: where it begins, in bits
//! origins  see `origins.rs`
//! ```
//!
//! Chunks and this are cut into pages of 1 kB, whose checksums are in the directory (u64 each).

use std::ops::Range;

use super::bits::{BitReader, Rows, encode_rows};
use super::chunk::{PackedChunk, Walked};
use super::codes::{Codes, Decoder, MAX_CODES};
use super::groups::Groups;
use super::origins::{self, Origin, read_origins};
use super::triples::{self, Place, Triple};
use super::{NAME_GROUP, ORIGIN_GROUP, PackedScratch, TRIPLE_GROUP};
use crate::chunk::{ChunkRanges, Loc};
use crate::error::Error;
use crate::format::{Cursor, Metadata, Table, put_varint};
use crate::id32::Id32;
use crate::names::PageReader;

/// What chunks share.
pub(crate) struct Shared {
    layout: Layout,
    decoder: Decoder,
}

/// Where everything lies.
struct Layout {
    place_width: u8,
    chunks: usize,
    places: Range<usize>,
    codes: Range<usize>,
    origin_width: u8,
    /// Origins, that of no name included.
    origins: usize,
    origin_rows: Range<usize>,
    origin_bits: Range<usize>,
}

/// The section of what chunks share: `places` as [`Shared`] needs them, the codes, and the origins' rows and bits.
pub(super) fn encode_shared(
    places: &[[u64; 1]],
    codes: &[u8],
    origins: ([u8; 1], Vec<u8>, Vec<u8>),
) -> Vec<u8> {
    let ([place_width], places) = encode_rows(places);
    let ([origin_width], rows, bits) = origins;
    let mut out = Vec::new();
    put_varint(&mut out, codes.len() as u64);
    out.extend([place_width, origin_width]);
    [&places, codes, &rows, &bits].into_iter().for_each(|part| out.extend_from_slice(part));
    out
}

impl Shared {
    /// What lies in the section that `pages` reads, in an index that `metadata` describes.
    pub(crate) fn decode(pages: &PageReader<'_>, metadata: &Metadata) -> Result<Self, Error> {
        let chunks: u64 = Table::ALL.iter().map(|table| metadata.chunk_len(*table)).sum();
        let malformed = || pages.malformed(0, "its numbers make no sense");
        let head = pages.bytes(0..pages.section.len().min(12))?;
        let layout = Layout::of_head(head, pages.section.len(), chunks, metadata.names.strings);
        let layout = layout.ok_or_else(malformed)?;
        let decoder = Decoder::new(pages.bytes(layout.codes.clone())?).ok_or_else(malformed)?;
        Ok(Self { layout, decoder })
    }
}

impl Layout {
    fn of_head(head: &[u8], size: usize, chunks: u64, names: u64) -> Option<Self> {
        let mut cursor = Cursor::new(head);
        // There are never more, and opening an index reads all of them.
        let code_size = cursor.count(MAX_CODES)?;
        let [place_width, origin_width] = cursor.array()?;
        let chunks = usize::try_from(chunks).ok()?;
        let origins = usize::try_from(names).ok()?.checked_add(1)?;
        let places = cursor.position(head);
        let codes = places.checked_add(Rows::size([place_width], chunks.checked_add(1)?)?)?;
        let rows = codes.checked_add(code_size)?;
        let bits = rows.checked_add(Rows::size([origin_width], origins.div_ceil(ORIGIN_GROUP))?)?;
        (bits <= size).then_some(Self {
            place_width,
            chunks,
            places: places..codes,
            codes: codes..rows,
            origin_width,
            origins,
            origin_rows: rows..bits,
            origin_bits: bits..size,
        })
    }
}

/// Reads chunks.
#[derive(Clone, Copy)]
pub(crate) struct ChunkReader<'a> {
    pub(crate) shared: &'a Shared,
    /// The section of what chunks share, and that of the chunks.
    pub(crate) pages: PageReader<'a>,
    pub(crate) chunks: PageReader<'a>,
    pub(crate) serial: u64,
}

/// A chunk, and where it belongs.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'a> {
    reader: ChunkReader<'a>,
    key: (Table, u64),
    chunk: PackedChunk<'a>,
}

impl<'a> ChunkReader<'a> {
    /// The chunk `index` of `table`; `None` where it is empty, or the table has none.
    pub(crate) fn chunk(
        &self,
        metadata: &Metadata,
        table: Table,
        index: u64,
    ) -> Result<Option<Placed<'a>>, Error> {
        let Some(bytes) = self.bytes(metadata, table, index)? else { return Ok(None) };
        let malformed = || self.malformed(&bytes, "its chunk does not decode");
        let start = index.checked_mul(metadata.chunk_span.into()).ok_or_else(malformed)?;
        let within = self.chunks.bytes(bytes.clone())?;
        let chunk =
            PackedChunk::new(within, start, metadata.chunk_span, self.codes()).ok_or_else(malformed)?;
        Ok(Some(Placed { reader: *self, key: (table, index), chunk }))
    }

    /// Where a chunk lies in its section; `None` where it is empty, or the table has none.
    pub(crate) fn bytes(
        &self,
        metadata: &Metadata,
        table: Table,
        index: u64,
    ) -> Result<Option<Range<usize>>, Error> {
        let chunks = metadata.chunks(table);
        if !chunks.contains(&index) {
            return Ok(None);
        }
        let before = if table == Table::Dwarf { 0 } else { metadata.chunk_len(Table::Dwarf) };
        let place = usize::try_from(before + (index - chunks.start)).unwrap_or(usize::MAX);
        let [start, end] = self.place(place)?;
        Ok((start != end).then_some(start..end))
    }

    /// Where chunk `place` of all chunks begins, and where it ends.
    fn place(&self, place: usize) -> Result<[usize; 2], Error> {
        let Layout { places, place_width, .. } = &self.shared.layout;
        let [start, end] =
            [place, place.saturating_add(1)].map(|place| self.number(places, *place_width, place));
        let (start, end) = (start?, end?);
        if start > end || end > self.chunks.section.len() {
            return Err(self.pages.malformed(places.start, "chunks lie outside their section"));
        }
        Ok([start, end])
    }

    /// Number `index` of the column of numbers of `width` bits that lies at `column`; the largest for one that no `usize` holds.
    fn number(&self, column: &Range<usize>, width: u8, index: usize) -> Result<usize, Error> {
        let first = index.saturating_mul(width.into());
        let bits = first / 8..first.saturating_add(width.into()).div_ceil(8);
        let at = |byte: usize| column.start.saturating_add(byte);
        let bytes = self.pages.bytes(at(bits.start)..at(bits.end))?;
        Ok(usize::try_from(BitReader::new(bytes, first % 8).bits(width.into())).unwrap_or(usize::MAX))
    }

    fn codes(&self) -> Codes<'a> {
        let bytes = self.pages.section.get(self.shared.layout.codes.clone()).unwrap_or_default();
        self.shared.decoder.codes(bytes)
    }

    fn malformed(&self, chunk: &Range<usize>, what: &'static str) -> Error {
        self.chunks.malformed(chunk.start, what)
    }

    /// The origin of the name that is stored as `name`.
    fn origin(&self, name: u32, groups: &mut Groups) -> Result<Origin, Error> {
        let (group, within) = (name as usize / ORIGIN_GROUP, name as usize % ORIGIN_GROUP);
        let Layout { origin_rows, origin_bits, origin_width, origins, .. } = &self.shared.layout;
        let malformed = || self.pages.malformed(origin_bits.start, "an origin does not decode");
        if name as usize >= *origins {
            return Err(malformed());
        }
        let place = |group: usize| -> Result<usize, Error> {
            if group >= origins.div_ceil(ORIGIN_GROUP) {
                return Ok(origin_bits.len() * 8);
            }
            let place = self.number(origin_rows, *origin_width, group)?;
            if place > origin_bits.len() * 8 { Err(malformed()) } else { Ok(place) }
        };
        let bits = place(group)?..place(group + 1)?;
        let bytes = origin_bits.start + bits.start / 8..origin_bits.start + bits.end.div_ceil(8);
        let (bytes, codes) = (self.pages.bytes(bytes.start.min(bytes.end)..bytes.end)?, self.codes());
        let begin = || Some(origins::State { at: bits.start % 8, ..origins::State::default() });
        let read = |state: &mut _, out: &mut _, len| read_origins(bytes, codes, state, out, len);
        groups.origins.get((self.serial, None, group), within, begin, read).ok_or_else(malformed)
    }

    /// Checks everything that chunks share; how many pages were read.
    pub(crate) fn verify(&self) -> Result<u64, Error> {
        let pages = self.pages.verify()? + self.chunks.verify()?;
        let malformed = |what| self.pages.malformed(0, what);
        let mut end_of_last = 0;
        for place in 0..self.shared.layout.chunks {
            let [start, end] = self.place(place)?;
            if start != end_of_last {
                return Err(malformed("chunks do not follow each other"));
            }
            end_of_last = end;
        }
        if end_of_last != self.chunks.section.len() {
            return Err(malformed("chunks do not fill their section"));
        }
        if !self.codes().are_whole() {
            return Err(malformed("a code is none"));
        }
        let mut groups = Groups::default();
        (0..self.shared.layout.origins).try_for_each(|name| {
            let name = u32::try_from(name).map_err(|_| malformed("more names than there are numbers"))?;
            self.origin(name, &mut groups).map(drop)
        })?;
        Ok(pages)
    }
}

impl<'a> Placed<'a> {
    /// Appends the first `at_most` locs of the answer at `offset`, innermost first; where the function starts, or `None` for a gap.
    pub(crate) fn find(
        &self,
        offset: u64,
        statement: bool,
        at_most: usize,
        scratch: &mut PackedScratch,
        locs: &mut Vec<Loc>,
    ) -> Result<Option<Option<u64>>, Error> {
        let PackedScratch { run, groups } = scratch;
        let malformed = || self.malformed("a run does not decode");
        let Some(found) = self.chunk.find(offset, statement, run).ok_or_else(malformed)? else {
            return Ok(None);
        };
        for triple in found.triples().take(at_most) {
            locs.push(self.loc(triple.ok_or_else(malformed)?, groups)?);
        }
        Ok(Some(found.function_start))
    }

    /// Every range of the chunk.
    pub(crate) fn ranges(&self, scratch: &mut PackedScratch) -> Result<ChunkRanges, Error> {
        let PackedScratch { run, groups } = scratch;
        let triples = (0..self.chunk.triples).map(|triple| {
            let triple =
                u32::try_from(triple).map_err(|_| self.malformed("more triples than there are numbers"))?;
            self.loc(triple, groups)
        });
        let triples = triples.collect::<Result<Vec<Loc>, Error>>()?;
        let mut all = ChunkRanges::default();
        let walked = self.chunk.walk(run, |walked| match walked {
            Walked::Range { start, end, function_start, exact, statement } => {
                let [start, end] = [start, end].map(|at| self.chunk.start + u64::from(at));
                all.push_range(start..end, function_start, [exact, statement])
            }
            Walked::Run(locs) => {
                all.push_locs(locs.iter().map(|loc| Some((loc.parent, *triples.get(loc.triple as usize)?))))
            }
        });
        walked.map(|()| all).ok_or_else(|| self.malformed("a run does not decode"))
    }

    /// The loc without parent that `triple` is.
    fn loc(&self, triple: u32, groups: &mut Groups) -> Result<Loc, Error> {
        let malformed = || self.malformed("a triple does not decode");
        let Triple { name, place } = self.triple(triple, groups).ok_or_else(malformed)?;
        let name = self.name(name, groups).ok_or_else(malformed)?;
        let Origin { file, line } = match place {
            Place::Own(own) => own,
            Place::Origin(lines) => {
                let origin = self.reader.origin(name, groups)?;
                let line =
                    i64::from(origin.line).checked_add(lines).and_then(|line| u32::try_from(line).ok());
                Origin { line: line.ok_or_else(malformed)?, ..origin }
            }
        };
        let [name, file, line] = [name, file, line].map(Id32::from_stored);
        Ok(Loc { parent: None, name, file, line })
    }

    fn triple(&self, number: u32, groups: &mut Groups) -> Option<Triple> {
        let (group, within) = (number as usize / TRIPLE_GROUP, number as usize % TRIPLE_GROUP);
        let PackedChunk { triples, triple_bits, triple_rows, codes, plain, .. } = self.chunk;
        let begin = || {
            let [at, next_name] = triple_rows.get(group);
            let (at, next_name) = (usize::try_from(at).ok()?, u32::try_from(next_name).ok()?);
            Some(triples::State { at, next_name, ..triples::State::default() })
        };
        let read = |state: &mut _, out: &mut _, len| {
            triples::read_triples(triple_bits, codes, plain, state, out, len)
        };
        let known = (number as usize) < triples;
        known.then(|| groups.triples.get((self.reader.serial, Some(self.key), group), within, begin, read))?
    }

    /// What the chunk's number of a name stands for, as it is stored.
    fn name(&self, number: u32, groups: &mut Groups) -> Option<u32> {
        let (group, within) = (number as usize / NAME_GROUP, number as usize % NAME_GROUP);
        let PackedChunk { names, name_bits, name_rows, codes, .. } = self.chunk;
        let begin = || {
            let [at, expected] = name_rows.get(group);
            Some(triples::NameState {
                at: usize::try_from(at).ok()?,
                expected: u32::try_from(expected).ok()?,
            })
        };
        let read = |state: &mut _, out: &mut _, len| triples::read_names(name_bits, codes, state, out, len);
        let known = (number as usize) < names;
        known.then(|| groups.names.get((self.reader.serial, Some(self.key), group), within, begin, read))?
    }

    fn malformed(&self, what: &'static str) -> Error {
        let (table, index) = self.key;
        let place = crate::error::Place { section: table.structure(), index };
        Error::Malformed { place, what }
    }
}
