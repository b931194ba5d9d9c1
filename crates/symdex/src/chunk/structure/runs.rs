//! The runs of a chunk.

use std::num::NonZeroU64;

use super::columns::decode_columns;
use crate::format::MAX_RUN_RANGES;

/// One run, a gap included; kept small, as caches hold every run of the chunks they hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Where its function starts plus one; `None` for line rows without a function.
    function: Option<NonZeroU64>,
    /// Where it starts, counted from the chunk's start; it ends where the next one starts.
    pub(super) start: u32,
    /// 0 for a gap.
    pub(super) ranges: u32,
    /// Where its body starts in the bodies.
    pub(super) body: u32,
    /// The first triple that its body is the first to use.
    pub(super) first_triple: u32,
}

impl Run {
    /// The image offset where the run's function starts.
    pub(super) fn function_start(&self) -> Option<u64> {
        self.function.map(|start| start.get() - 1)
    }
}

/// What the run columns are checked against.
pub(super) struct Layout {
    pub(super) chunk_start: u64,
    pub(super) span: u32,
    pub(super) body_size: usize,
    pub(super) triple_len: usize,
}

/// The runs in address order, and behind them an empty one that says where the last ends.
pub(super) fn decode_runs(columns: &[u8], len: usize, layout: &Layout) -> Option<Vec<Run>> {
    // Each run covers at least a byte.
    if len as u64 > u64::from(layout.span) {
        return None;
    }
    let [spans, functions, ranges, bodies, triples] = decode_columns(columns, len)?;
    let columns = spans.iter().zip(&functions).zip(&ranges).zip(&bodies).zip(&triples);
    let mut runs: Vec<Run> = Vec::with_capacity(len + 1);
    let mut next = Run { function: None, start: 0, ranges: 0, body: 0, first_triple: 0 };
    let mut last_function = None;
    for ((((&span, &function), &ranges), &body), &triples) in columns {
        let plus = |number: u32, more: u64| number.checked_add(u32::try_from(more).ok()?);
        let ranges = u32::try_from(ranges).ok()?;
        let run = Run { ranges, ..next };
        next.start = plus(run.start, span)?;
        next.body = plus(run.body, body)?;
        next.first_triple = plus(run.first_triple, triples)?;
        let is_empty = ranges == 0 && next.body == run.body && next.first_triple == run.first_triple;
        if function == 0 && !is_empty || function != 0 && ranges == 0 {
            return None;
        }
        if ranges > MAX_RUN_RANGES || next.start == run.start {
            return None;
        }
        let function = match function {
            0 | 1 => None,
            2 => last_function?,
            back => {
                let start = layout.chunk_start.checked_add(u64::from(run.start))?;
                Some(NonZeroU64::new(start.checked_sub(back - 3)?.checked_add(1)?)?)
            }
        };
        if ranges != 0 {
            last_function = Some(function);
        }
        runs.push(Run { function, ..run });
    }
    let whole = next.start <= layout.span
        && next.body as usize == layout.body_size
        && next.first_triple as usize == layout.triple_len;
    runs.push(next);
    whole.then_some(runs)
}
