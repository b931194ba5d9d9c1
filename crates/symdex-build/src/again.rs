//! Whether an index that is there is what an image without debug information would become again.

use std::borrow::Cow;

use symdex::write::{ChunkRanges, Id32, Loc};
use symdex::{Counts, Error, Index, Partial, Table};

use crate::chunk_job::ChunkJob;
use crate::chunker::CHUNK_SPAN;
use crate::image::Image;

/// What the new index would say of itself.
pub(crate) struct Expected<'a, 'd> {
    pub(crate) image: &'a Image<'d>,
    pub(crate) counts: Counts,
    pub(crate) partial: &'a [Partial],
}

impl Expected<'_, '_> {
    /// Whether `index` says just that of itself. One of another version of symdex never does.
    pub(crate) fn is_metadata_of<B: AsRef<[u8]>>(&self, index: &Index<B>) -> bool {
        let (info, found) = (&self.image.info, index.metadata());
        let image = (&info.id, &info.image_name, &info.arch, info.base, info.image_size, info.row_rule);
        let of_index =
            (&found.id, &found.image_name, &found.arch, found.base, found.image_size, found.row_rule);
        image == of_index
            && (&info.executable, info.text_exec_base) == (&found.executable, found.text_exec_base)
            && CHUNK_SPAN == found.chunk_span
            && (self.counts, self.partial) == (found.counts, &found.partial[..])
            && found.builder == env!("CARGO_PKG_VERSION")
    }
}

/// Whether `index` is whole, and has the symbols of `jobs` with these `names`.
///
/// # Errors
///
/// What is wrong with it, if it is not whole.
pub(crate) fn has_contents<B: AsRef<[u8]>>(
    index: &Index<B>,
    jobs: &[ChunkJob],
    names: &[Cow<'_, [u8]>],
) -> Result<bool, Error> {
    index.verify()?;
    let mut chunks = index.chunks(Table::SymbolTable);
    for job in jobs {
        match chunks.next().transpose()? {
            Some((number, chunk)) if number == job.index && is_same(&chunk, &job.ranges) => {}
            _ => return Ok(false),
        }
    }
    let mut strings = index.strings();
    for (number, name) in names.iter().enumerate() {
        let id = Id32::new(number as u64);
        if id.map(|id| strings.name(id)).transpose()? != Some(name) {
            return Ok(false);
        }
    }
    Ok(chunks.next().is_none())
}

/// Whether two chunks answer alike. Locs may be numbered otherwise in one that was read.
fn is_same(one: &ChunkRanges, other: &ChunkRanges) -> bool {
    one.ranges.len() == other.ranges.len()
        && one.ranges.iter().zip(&other.ranges).all(|(a, b)| {
            (a.start, a.end, a.function_start) == (b.start, b.end, b.function_start)
                && frames(one, a.exact).eq(frames(other, b.exact))
                && frames(one, a.statement).eq(frames(other, b.statement))
        })
}

/// The frames of a loc, innermost first, without the numbers of their callers.
fn frames(chunk: &ChunkRanges, loc: u32) -> impl Iterator<Item = Loc> + '_ {
    let first = chunk.locs.get(loc as usize);
    let chain = std::iter::successors(first, |loc| chunk.locs.get(loc.parent?.index()));
    chain.map(|loc| Loc { parent: None, ..*loc })
}
