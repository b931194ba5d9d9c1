//! Writing chunks: their symbols are kept until all are there, as the codes depend on how often each occurs.

use std::io::{self, Read, Seek, SeekFrom, Write};

use super::chunk::{Lens, encode_chunk};
use super::codes::{Counts, Encoder};
use super::encode::Draft;
use super::origins::{Origins, encode_origins};
use super::shared::encode_shared;
use super::triples;
use crate::error::Error;
use crate::format::SectionKind;
use crate::image::ImageId;
use crate::names::PageSums;

/// Chunks until they are written.
pub(crate) struct PackedWriter<S> {
    /// The symbols of the chunks one behind the other.
    spool: S,
    chunks: Vec<Kept>,
    size: u64,
    counts: Counts,
    numbers: triples::Numbers,
    origins: Origins,
}

/// A chunk's symbols in the spool; none for an empty chunk.
#[derive(Clone, Copy, Default)]
struct Kept {
    len: usize,
    lens: Lens,
}

/// What [`PackedWriter::finish`] made.
pub(crate) struct Packed<S> {
    /// The chunks lie here, from where it stands on.
    pub(crate) chunks: S,
    pub(crate) chunks_size: u64,
    pub(crate) checksums: Vec<u8>,
    pub(crate) shared: Vec<u8>,
}

impl<S: Read + Write + Seek> PackedWriter<S> {
    pub(crate) fn new(spool: S) -> Self {
        let (counts, numbers, origins) = Default::default();
        Self { spool, chunks: Vec::new(), size: 0, counts, numbers, origins }
    }

    /// Adds `count` empty chunks.
    pub(crate) fn skip(&mut self, count: u64) {
        self.chunks.extend((0..count).map(|_| Kept::default()));
    }

    /// Adds the next chunk.
    pub(crate) fn push(&mut self, mut draft: Draft) -> io::Result<()> {
        let lens = triples::finish(&mut draft, &mut self.numbers, &mut self.origins, &mut self.counts);
        let tokens = draft.tokens.0;
        let bytes = tokens.as_flattened();
        self.spool.write_all(bytes)?;
        self.size += bytes.len() as u64;
        self.chunks.push(Kept { len: tokens.len(), lens });
        Ok(())
    }

    /// Writes all chunks, and what they share, in an index of `names` names.
    pub(crate) fn finish(self, id: &ImageId, names: u64) -> Result<Packed<S>, Error> {
        let Self { mut spool, chunks, size, mut counts, origins, .. } = self;
        let names = usize::try_from(names).unwrap_or(usize::MAX);
        let origins = origins.tokens(names, &mut counts);
        let (encoder, codes) = Encoder::new(&counts);
        let mut checksums = PageSums::new(id, SectionKind::ChunkPage);
        let (mut from, mut chunks_size) = (0, 0u64);
        let mut places = vec![[0]];
        let mut tokens = Vec::new();
        for Kept { len, lens } in chunks {
            if len != 0 {
                spool.seek(SeekFrom::Start(from))?;
                tokens.resize(len, [0; 2]);
                let bytes = tokens.as_flattened_mut();
                spool.read_exact(bytes)?;
                from += bytes.len() as u64;
                let chunk = encode_chunk(&tokens, lens, &encoder);
                spool.seek(SeekFrom::Start(size + chunks_size))?;
                spool.write_all(&chunk)?;
                checksums.add(&chunk);
                chunks_size += chunk.len() as u64;
            }
            places.push([chunks_size]);
        }
        spool.seek(SeekFrom::Start(size))?;
        let shared = encode_shared(&places, &codes, encode_origins(&origins, &encoder));
        Ok(Packed { chunks: spool, chunks_size, checksums: checksums.finish(), shared })
    }
}
