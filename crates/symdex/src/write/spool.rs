//! Stores the symbols of all chunks until the codes are known, and then writes the chunks.

use std::io::{self, Read, Seek, SeekFrom, Write};

use xxhash_rust::xxh3::Xxh3Default;

use super::bits::{BitWriter, encode_rows, put_varint};
use super::chunk::ChunkSymbols;
use super::huffman::{Counts, Encoder};
use super::page_sums::PageSums;
use super::symbol_stream::{self, BLOCK, FIRST_SOURCE, StreamItem, SymbolReader};
use crate::error::Error;
use crate::format::SectionKind;
use crate::image::ImageId;
use crate::packed::codes::CONTEXTS;

/// The symbols of the chunks that were pushed.
pub(super) struct Spool<S> {
    /// The symbols of the chunks, one after the other.
    spool: S,
    chunks: Vec<SpooledChunk>,
    size: u64,
    counts: Counts,
    pub(super) group_bits: u8,
}

/// The symbols of a chunk, and its source locations; no symbols for an empty chunk.
#[derive(Clone, Copy, Default)]
struct SpooledChunk {
    symbols: usize,
    sources: usize,
}

/// Written chunks.
pub(super) struct EncodedChunks<S> {
    /// The chunks are here, from the current position on.
    pub(super) chunks: S,
    pub(super) chunks_size: u64,
    pub(super) checksums: Vec<u8>,
    /// The digest of the index as far as the chunks go, with which it begins.
    pub(super) digest: Xxh3Default,
    /// The section of codes.
    pub(super) codes: Vec<u8>,
}

impl<S: Read + Write + Seek> Spool<S> {
    /// Stores chunks whose groups have 2^`group_bits` source locations in `spool`.
    pub(super) fn new(spool: S, group_bits: u8) -> Self {
        Self { spool, chunks: Vec::new(), size: 0, counts: Counts::new(CONTEXTS), group_bits }
    }

    /// Adds `count` empty chunks.
    pub(super) fn skip(&mut self, count: u64) {
        self.chunks.extend((0..count).map(|_| SpooledChunk::default()));
    }

    /// Adds the next chunk.
    pub(super) fn push(&mut self, symbols: ChunkSymbols) -> io::Result<()> {
        let ChunkSymbols { stream, sources, .. } = symbols;
        stream.count(&mut self.counts);
        let bytes = stream.0.as_flattened();
        self.spool.write_all(bytes)?;
        self.size += bytes.len() as u64;
        self.chunks.push(SpooledChunk { symbols: stream.0.len(), sources });
        Ok(())
    }

    /// Writes all chunks, and the section of codes.
    pub(super) fn finish(self, id: &ImageId) -> Result<EncodedChunks<S>, Error> {
        let Self { mut spool, chunks, size, counts, group_bits } = self;
        let (encoder, codes) = Encoder::new(&counts);
        let mut checksums = PageSums::new(id, SectionKind::ChunkPage);
        let mut digest = Xxh3Default::new();
        let (mut from, mut chunks_size) = (0, 0u64);
        let mut places = vec![[0]];
        let mut stream = Vec::new();
        for SpooledChunk { symbols, sources } in chunks {
            if symbols != 0 {
                spool.seek(SeekFrom::Start(from))?;
                stream.resize(symbols, [0; 2]);
                let bytes = stream.as_flattened_mut();
                spool.read_exact(bytes)?;
                from += bytes.len() as u64;
                let chunk = encode_chunk(&stream, sources, &encoder);
                spool.seek(SeekFrom::Start(size + chunks_size))?;
                spool.write_all(&chunk)?;
                checksums.add(&chunk);
                digest.update(&chunk);
                chunks_size += chunk.len() as u64;
            }
            places.push([chunks_size]);
        }
        spool.seek(SeekFrom::Start(size))?;
        let codes = encode_codes(&codes, group_bits, &places);
        Ok(EncodedChunks { chunks: spool, chunks_size, checksums: checksums.finish(), digest, codes })
    }
}

/// The section of codes: the codes, the size of groups, and where each chunk begins and the last one ends.
pub(crate) fn encode_codes(codes: &[u8], group_bits: u8, places: &[[u64; 1]]) -> Vec<u8> {
    let ([width], places) = encode_rows(places);
    let [low, high, ..] = codes.len().to_le_bytes();
    [&[low, high], codes, &[group_bits, width], &places].concat()
}

/// Encodes the chunk with these symbols and this many source locations.
pub(crate) fn encode_chunk(stream: &[StreamItem], sources: usize, encoder: &Encoder) -> Vec<u8> {
    let [mut block_bits, mut source_bits]: [BitWriter; 2] = Default::default();
    let (mut blocks, mut groups, mut start) = (Vec::new(), Vec::new(), 0);
    let mut reader = SymbolReader::new(stream);
    while let Some((mark, number)) = reader.mark() {
        match mark {
            BLOCK => start = number,
            FIRST_SOURCE => {
                blocks.push([start, block_bits.position(), number]);
                reader.put(encoder, &mut block_bits);
            }
            _ => {
                debug_assert_eq!(mark, symbol_stream::SOURCES);
                groups.push([source_bits.position(), number]);
                reader.put(encoder, &mut source_bits);
            }
        }
    }
    let block_bits = block_bits.finish();
    let mut out = Vec::new();
    [blocks.len(), sources, block_bits.len()].into_iter().for_each(|len| put_varint(&mut out, len as u64));
    let ((block_widths, blocks), (group_widths, groups)) = (encode_rows(&blocks), encode_rows(&groups));
    out.extend(block_widths);
    out.extend(group_widths);
    [blocks, groups, block_bits, source_bits.finish()].iter().for_each(|part| out.extend_from_slice(part));
    out
}
