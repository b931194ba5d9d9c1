//! The runs of a chunk.

use super::columns::split_columns;
use crate::format::MAX_RUN_RANGES;

/// One run that is no gap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) function_start: Option<u64>,
    pub(super) ranges: u32,
    /// Where the run's body lies in the payload.
    pub(super) body: (u32, u32),
    /// The triples that the run's body is the first to use.
    pub(super) new_triples: (u32, u32),
}

/// What the run columns are checked against.
pub(super) struct Layout {
    pub(super) chunk_start: u64,
    pub(super) span: u32,
    pub(super) body_start: usize,
    pub(super) body_size: usize,
    pub(super) triple_len: usize,
}

pub(super) fn decode_runs(columns: &[u8], len: usize, layout: &Layout) -> Option<Vec<Run>> {
    // Each run covers at least a byte.
    if len as u64 > u64::from(layout.span) {
        return None;
    }
    let [mut spans, mut functions, mut ranges, mut bodies, mut triples] = split_columns(columns, len)?;
    let mut runs: Vec<Run> = Vec::with_capacity(len);
    let (mut at, mut body, mut first_triple) = (layout.chunk_start, layout.body_start, 0u32);
    for _ in 0..len {
        let (start, end) = (at, at.checked_add(spans.varint()?)?);
        at = end;
        let body_start = body;
        body = body.checked_add(usize::try_from(bodies.varint()?).ok()?)?;
        let (function, ranges, new_triples) = (functions.varint()?, ranges.varint32()?, triples.varint32()?);
        let function_start = match function {
            0 if start < end && (ranges, new_triples) == (0, 0) && body == body_start => continue,
            0 => return None,
            1 => None,
            2 => runs.last()?.function_start,
            back => Some(start.checked_sub(back - 3)?),
        };
        if ranges == 0 || ranges > MAX_RUN_RANGES || start == end {
            return None;
        }
        let body = (u32::try_from(body_start).ok()?, u32::try_from(body).ok()?);
        let new_triples = (first_triple, first_triple.checked_add(new_triples)?);
        first_triple = new_triples.1;
        runs.push(Run { start, end, function_start, ranges, body, new_triples });
    }
    let whole = at <= layout.chunk_start.checked_add(u64::from(layout.span))?
        && body == layout.body_start + layout.body_size
        && first_triple as usize == layout.triple_len;
    whole.then_some(runs)
}
