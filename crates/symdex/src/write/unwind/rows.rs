//! The rows, cut into blocks, and the tables that the blocks refer to.

use super::steps::Steps;
use super::{GAP, UnwindTable};
use crate::error::Error;
use crate::packed::codes::NUMBER_BITS;
use crate::unwind::{CONTEXTS, MAX_BLOCK_RANGES};
use crate::write::bits::{BitWriter, encode_rows, put_varint};
use crate::write::huffman::{Counts, Encoder};
use crate::write::symbol_stream::{SymbolReader, SymbolStream};

/// Code that has the same rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwindRange {
    /// The image offset of the first byte.
    pub start: u64,
    /// The image offset after the last byte, below 2^47.
    pub end: u64,
    /// The number of the rules in an [`UnwindTable`].
    pub rules: u32,
}

/// The unwind rows of an index, encoded.
pub struct EncodedUnwindRows {
    pub(crate) section: Vec<u8>,
}

impl EncodedUnwindRows {
    /// Encodes `ranges`, which are sorted, not empty and disjoint. Neighbours with the same rules become one row.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] if the ranges are not as stated.
    pub fn new(table: &UnwindTable, ranges: &[UnwindRange]) -> Result<Self, Error> {
        let used = Used::of(table, ranges)?;
        let runs = used.runs(ranges);
        let steps = Steps::of(blocks(&runs), used.rules.len());
        let mut stream = SymbolStream::default();
        steps.write(blocks(&runs), &mut stream);
        Ok(Self { section: section(&used, &steps, &stream, runs.last().map_or(0, |run| run.end)) })
    }
}

/// Code with the same rule, or a gap.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) start: u64,
    pub(super) end: u64,
    /// 0 for a gap.
    pub(super) rule: u32,
}

/// The rules that ranges use, and their layouts. Rules are sorted; layouts have the order of their first use.
struct Used<'t> {
    table: &'t UnwindTable,
    rules: Vec<[u64; 3]>,
    /// For each rule of the table: its number here.
    numbers: Vec<u32>,
    layouts: Vec<u32>,
}

impl<'t> Used<'t> {
    fn of(table: &'t UnwindTable, ranges: &[UnwindRange]) -> Result<Self, Error> {
        let unwritable = |what| Err(Error::Unwritable { what });
        let mut layouts = Vec::new();
        let mut new_layouts: Vec<u64> = vec![0; table.layouts.len()];
        let mut is_used = vec![false; table.rules.len()];
        let mut rules = vec![(GAP, 0)];
        let mut end = 0;
        for range in ranges {
            if range.start < end || range.start >= range.end || range.end >> (NUMBER_BITS - 1) != 0 {
                return unwritable("unwind rows that are empty, overlap, or are not in order");
            }
            end = range.end;
            let number = range.rules as usize;
            let (Some(is_used), Some([layout, register, offset])) =
                (is_used.get_mut(number).filter(|_| number != 0), table.rules.get(number))
            else {
                return unwritable("an unwind row without rules");
            };
            if std::mem::replace(is_used, true) {
                continue;
            }
            // The table has each layout.
            let old = u32::try_from(layout - 1).unwrap_or(u32::MAX);
            let Some(new) = new_layouts.get_mut(old as usize) else {
                return unwritable("an unwind row without rules");
            };
            if *new == 0 {
                layouts.push(old);
                *new = layouts.len() as u64;
            }
            rules.push(([*new, *register, *offset], range.rules));
        }
        rules.sort_unstable();
        let mut numbers = vec![0; table.rules.len()];
        for (number, (_, old)) in (0..).zip(&rules) {
            numbers.get_mut(*old as usize).into_iter().for_each(|own| *own = number);
        }
        Ok(Self { table, rules: rules.into_iter().map(|(rule, _)| rule).collect(), numbers, layouts })
    }

    /// The ranges with the gaps between them, without equal neighbours.
    fn runs(&self, ranges: &[UnwindRange]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::with_capacity(ranges.len());
        for &UnwindRange { start, end, rules } in ranges {
            let rule = self.numbers.get(rules as usize).copied().unwrap_or_default();
            match runs.last_mut() {
                Some(last) if last.end < start => {
                    let gap = Run { start: last.end, end: start, rule: 0 };
                    runs.extend([gap, Run { start, end, rule }]);
                }
                Some(last) if last.rule == rule => last.end = end,
                _ => runs.push(Run { start, end, rule }),
            }
        }
        runs
    }

    /// The layouts, and where each begins.
    fn layouts(&self) -> (Vec<[u64; 1]>, Vec<u8>) {
        let (mut places, mut bytes) = (Vec::new(), Vec::new());
        for layout in &self.layouts {
            places.push([bytes.len() as u64]);
            bytes.extend_from_slice(self.table.layouts.text(*layout).unwrap_or_default());
        }
        (places, bytes)
    }
}

/// How many ranges a block has, if possible. A block ends after a gap, because it begins as after a gap.
const BLOCK_RANGES: usize = 48;
/// How many ranges a block has if it has no gap where it could end.
const LONGEST_BLOCK: usize = 80;
const _: () = assert!(LONGEST_BLOCK <= MAX_BLOCK_RANGES);

/// The ranges of each block.
fn blocks(mut runs: &[Run]) -> impl Iterator<Item = &[Run]> {
    std::iter::from_fn(move || {
        let could_end = runs.get(BLOCK_RANGES - 1..runs.len().min(LONGEST_BLOCK)).unwrap_or_default();
        let gap = could_end.iter().position(|run| run.rule == 0);
        let len = gap.map_or(LONGEST_BLOCK, |gap| gap + BLOCK_RANGES).min(runs.len());
        let (block, rest) = runs.split_at_checked(len)?;
        runs = rest;
        (!block.is_empty()).then_some(block)
    })
}

/// The section; see [`crate::unwind`].
fn section(used: &Used<'_>, steps: &Steps, stream: &SymbolStream, end: u64) -> Vec<u8> {
    let mut counts = Counts::new(CONTEXTS);
    stream.count(&mut counts);
    let (encoder, codes) = Encoder::new(&counts);
    let (mut blocks, mut bits) = (Vec::new(), BitWriter::default());
    let mut reader = SymbolReader::new(&stream.0);
    while let Some((_, start)) = reader.mark() {
        blocks.push([start, bits.position()]);
        reader.put(&encoder, &mut bits);
    }
    let bits = bits.finish();
    let rules = used.rules.iter().zip(steps.firsts());
    let rules: Vec<_> =
        rules.map(|([layout, register, offset], first)| [first, *layout, *register, *offset]).collect();
    let (layouts, layout_bytes) = used.layouts();
    let mut out = Vec::new();
    put_varint(&mut out, blocks.len() as u64);
    put_varint(&mut out, end);
    let lens = [rules.len(), steps.rows().len(), layouts.len(), codes.len(), layout_bytes.len(), bits.len()];
    lens.into_iter().for_each(|len| put_varint(&mut out, len as u64));
    let ((block_widths, blocks), (rule_widths, rules)) = (encode_rows(&blocks), encode_rows(&rules));
    let ((step_widths, steps), (layout_widths, layouts)) = (encode_rows(steps.rows()), encode_rows(&layouts));
    [&block_widths[..], &rule_widths, &step_widths, &layout_widths]
        .into_iter()
        .for_each(|part| out.extend(part));
    [codes, blocks, rules, steps, layouts, layout_bytes, bits]
        .iter()
        .for_each(|part| out.extend_from_slice(part));
    out
}
