//! The section of unwind rows: its head, its tables, and the blocks in which the rows lie.
//!
//! ```text
//! 8 varints   number of blocks, end of the last range, numbers of rules, steps and layouts, bytes of the codes, of the
//!             layouts and of the blocks
//! 9           widths of the columns: two of blocks, four of rules, two of steps, one of layouts
//! .           codes; rows of blocks, rules, steps and layouts; layouts; blocks
//! ```

use std::ops::Range;

use super::UnwindRow;
use super::UnwindValue;
use super::layout::FrameLayout;
use crate::error::Error;
use crate::format::{BitReader, Cursor, PageReader, Rows, unzigzag};
use crate::packed::codes::{CodeTables, max_size};

/// The most ranges of a block, gaps included. A lookup decodes half a block on average.
pub(crate) const MAX_BLOCK_RANGES: usize = 255;
/// The most bytes of a head.
const MAX_HEAD: usize = 8 * 10 + 9;

/// The number of a step; see [`step_context`].
const STEP: u8 = 0;
const STEPS: u8 = 9;
/// A rule that no step has.
pub(crate) const RULE: u8 = STEP + STEPS;
/// The length of a range that no step has. Two contexts: of a gap or a range after one, and of other ranges.
pub(crate) const AFTER_GAP: u8 = RULE + 1;
pub(crate) const LENGTH: u8 = AFTER_GAP + 1;
/// How many contexts there are.
pub(crate) const CONTEXTS: usize = LENGTH as usize + 1;

/// The context of the number of a step, if there are this many steps to choose from.
#[inline]
pub(crate) fn step_context(steps: u64) -> u8 {
    let bits = (u64::BITS - steps.leading_zeros()).to_le_bytes()[0];
    STEP + bits.min(STEPS - 1)
}

/// How many bytes there are from `at` to the next multiple of 16, at least 1.
#[inline]
pub(crate) fn align_up(at: u64) -> u64 {
    16 - at % 16
}

/// The head of the section, and its codes.
pub(crate) struct UnwindSection {
    codes: CodeTables<CONTEXTS>,
    /// For each block: the start of its first range, and its position in the blocks, in bits.
    blocks: Table<2>,
    /// The end of the last range.
    end: u64,
    /// For each rule: its first step, its layout plus 1 (0: the rule of gaps), the register of its CFA plus 1 (0: the
    /// layout states the CFA) and what is added to that register, folded.
    rules: Table<4>,
    /// For each step: the rule, and the length (see [`Ranges::length`]).
    steps: Table<2>,
    /// For each layout: where it begins in the layouts.
    layouts: Table<1>,
    /// Where the layouts and the blocks lie in the section.
    layout_bytes: Range<usize>,
    block_bytes: Range<usize>,
}

/// Rows and how many they are.
#[derive(Clone, Copy)]
struct Table<const N: usize> {
    rows: Rows<N>,
    len: usize,
}

/// A row, and the next one if there is one.
type Neighbours<const N: usize> = ([u64; N], Option<[u64; N]>);

impl<const N: usize> Table<N> {
    /// Row `index`, and the next one if there is one. `None` if there is no such row.
    #[inline]
    fn get(&self, pages: &PageReader<'_>, index: usize) -> Result<Option<Neighbours<N>>, Error> {
        if index >= self.len { Ok(None) } else { self.rows.get(pages, self.len, index).map(Some) }
    }
}

impl UnwindSection {
    /// Reads the head of the section.
    pub(crate) fn decode(pages: &PageReader<'_>) -> Result<Self, Error> {
        let size = pages.section.len();
        let head = pages.bytes(0..size.min(MAX_HEAD))?;
        Self::decode_head(pages, head, size).unwrap_or_else(|| Err(pages.malformed(0, "its head is invalid")))
    }

    fn decode_head(pages: &PageReader<'_>, head: &[u8], size: usize) -> Option<Result<Self, Error>> {
        let mut cursor = Cursor::new(head);
        // A row can have no bits. This bounds how many rows there are.
        let most = size.saturating_mul(8);
        let block_len = cursor.count(most)?;
        let end = cursor.varint()?;
        let (rule_len, step_len, layout_len) =
            (cursor.count(most)?, cursor.count(most)?, cursor.count(most)?);
        let code_size = cursor.count(max_size(CONTEXTS))?;
        let (layouts_size, blocks_size) = (cursor.count(size)?, cursor.count(size)?);
        let (block_widths, rule_widths) = (cursor.array::<2>()?, cursor.array::<4>()?);
        let (step_widths, layout_widths) = (cursor.array::<2>()?, cursor.array::<1>()?);
        let mut at = cursor.position(head);
        let mut part = |size: Option<usize>| {
            let start = at;
            at = at.checked_add(size?)?;
            (at <= pages.section.len()).then_some(start..at)
        };
        let codes = part(Some(code_size))?;
        let blocks = part(Rows::size(block_widths, block_len))?.start;
        let rules = part(Rows::size(rule_widths, rule_len))?.start;
        let steps = part(Rows::size(step_widths, step_len))?.start;
        let layouts = part(Rows::size(layout_widths, layout_len))?.start;
        let layout_bytes = part(Some(layouts_size))?;
        let block_bytes = part(Some(blocks_size))?;
        let codes = match pages.bytes(codes) {
            Ok(codes) => CodeTables::decode(codes)?,
            Err(error) => return Some(Err(error)),
        };
        (block_bytes.end == size).then_some(Ok(Self {
            codes,
            blocks: Table { rows: Rows { at: blocks, widths: block_widths }, len: block_len },
            end,
            rules: Table { rows: Rows { at: rules, widths: rule_widths }, len: rule_len },
            steps: Table { rows: Rows { at: steps, widths: step_widths }, len: step_len },
            layouts: Table { rows: Rows { at: layouts, widths: layout_widths }, len: layout_len },
            layout_bytes,
            block_bytes,
        }))
    }
}

/// Reads unwind rows.
#[derive(Clone, Copy)]
pub(crate) struct UnwindReader<'a> {
    pub(crate) section: &'a UnwindSection,
    pub(crate) pages: PageReader<'a>,
    /// The bits of a register.
    pub(crate) mask: u64,
}

impl<'a> UnwindReader<'a> {
    /// The row of the code at `offset`. `None` in a gap.
    pub(crate) fn find(self, offset: u64) -> Result<Option<UnwindRow<'a>>, Error> {
        let Some(block) = self.block_of(offset)? else { return Ok(None) };
        let mut ranges = self.ranges(block)?;
        while let Some((start, end, rule)) = ranges.next()? {
            if offset < end {
                return self.row(start, end, rule);
            }
        }
        // Only after the last range of all.
        Ok(None)
    }

    /// The rows that end after `offset` in address order, up to the first error.
    pub(crate) fn rows_from(self, offset: u64) -> impl Iterator<Item = Result<UnwindRow<'a>, Error>> {
        let mut walk = Some(Walk { reader: self, offset, block: None, ranges: None });
        std::iter::from_fn(move || {
            let row = walk.as_mut()?.next().transpose()?;
            if row.is_err() {
                walk = None;
            }
            Some(row)
        })
    }

    /// How many distinct rules there are, without that of gaps.
    pub(crate) fn rule_count(self) -> u64 {
        self.section.rules.len.saturating_sub(1) as u64
    }

    /// Checks all of the section: each row and rule, that rules are distinct and that the ranges of a block end where
    /// the next block starts. Returns how many pages and rows it has.
    pub(crate) fn verify(self) -> Result<[u64; 2], Error> {
        let pages = self.pages.verify()?;
        let mut before = None;
        for number in 0..self.section.rules.len {
            let Some(([steps, rule @ ..], next)) = self.section.rules.get(&self.pages, number)? else {
                break;
            };
            if before.is_some_and(|before| rule <= before) {
                return Err(self.malformed("the rules are not in order"));
            }
            before = Some(rule);
            let end = next.map_or(self.section.steps.len as u64, |[steps, ..]| steps);
            if steps > end || number == 0 && (steps != 0 || rule != [0; 3]) {
                return Err(self.malformed("the steps of a rule are invalid"));
            }
            if self.row(0, 0, number)?.is_none() != (number == 0) {
                return Err(self.malformed("a rule of gaps that is not the first"));
            }
        }
        let mut rows = 0;
        let mut last = None;
        for row in self.rows_from(0) {
            let row = row?;
            let is_same =
                |last: &UnwindRow<'_>| (last.end, last.cfa, last.layout) == (row.start, row.cfa, row.layout);
            if last.as_ref().is_some_and(is_same) {
                return Err(self.malformed("neighbouring rows are equal"));
            }
            last = Some(row);
            rows += 1;
        }
        Ok([pages, rows])
    }

    #[cold]
    fn malformed(&self, what: &'static str) -> Error {
        self.pages.malformed(0, what)
    }

    /// The last block that starts at `offset` or before. `None` if there is none.
    fn block_of(&self, offset: u64) -> Result<Option<usize>, Error> {
        let blocks = &self.section.blocks;
        let (mut low, mut high) = (0, blocks.len);
        while low < high {
            let middle = low.midpoint(high);
            let Some(([start, _], _)) = blocks.get(&self.pages, middle)? else { break };
            if start <= offset { low = middle + 1 } else { high = middle }
        }
        Ok(low.checked_sub(1))
    }

    /// The ranges of block `number`.
    fn ranges(&self, number: usize) -> Result<Ranges<'a>, Error> {
        let UnwindSection { block_bytes, end, .. } = self.section;
        let size = (block_bytes.len() as u64).saturating_mul(8);
        let row = self.section.blocks.get(&self.pages, number)?;
        let ([start, first], next) = row.ok_or_else(|| self.malformed("no such block"))?;
        let padding = if next.is_none() { 7 } else { 0 };
        let [end, last] = next.unwrap_or([*end, size]);
        if start >= end || first > last || last > size {
            return Err(self.malformed("a block lies outside of the section"));
        }
        let bits = |bits: u64| usize::try_from(bits).map_err(|_| self.malformed("a block is too large"));
        let [first, last] = [bits(first)?, bits(last)?];
        self.pages.check_range(block_bytes.start + first / 8..block_bytes.start + last.div_ceil(8))?;
        let before = block_bytes.start.saturating_mul(8);
        let reader = BitReader::new(self.pages.section, before.saturating_add(first));
        let last = before.saturating_add(last);
        Ok(Ranges { of: *self, bits: reader, last, padding, at: start, end, rule: 0, left: MAX_BLOCK_RANGES })
    }

    /// The row of a range with this rule. `None` for the rule of gaps.
    fn row(&self, start: u64, end: u64, rule: usize) -> Result<Option<UnwindRow<'a>>, Error> {
        let invalid = || self.malformed("a rule is invalid");
        let row = self.section.rules.get(&self.pages, rule)?;
        let ([_, layout, register, offset], _) = row.ok_or_else(invalid)?;
        let Some(layout) = layout.checked_sub(1) else { return Ok(None) };
        let layout = self.layout(layout)?;
        let cfa = match (register.checked_sub(1), layout.cfa) {
            (Some(register), None) => UnwindValue::Register {
                register: u16::try_from(register).map_err(|_| invalid())?,
                offset: unzigzag(offset),
            },
            (None, Some(cfa)) if offset == 0 => cfa,
            _ => return Err(invalid()),
        };
        Ok(Some(UnwindRow { start, end, cfa, layout, mask: self.mask }))
    }

    fn layout(&self, number: u64) -> Result<FrameLayout<'a>, Error> {
        let invalid = || self.malformed("a layout is invalid");
        let number = usize::try_from(number).map_err(|_| invalid())?;
        let row = self.section.layouts.get(&self.pages, number)?;
        let ([start], next) = row.ok_or_else(invalid)?;
        let all = &self.section.layout_bytes;
        let end = next.map_or(all.len() as u64, |[next]| next);
        if start >= end || end > all.len() as u64 {
            return Err(invalid());
        }
        let place = |at: u64| usize::try_from(at).map(|at| all.start + at).map_err(|_| invalid());
        FrameLayout::decode(self.pages.bytes(place(start)?..place(end)?)?).ok_or_else(invalid)
    }
}

/// A walk over rows.
struct Walk<'a> {
    reader: UnwindReader<'a>,
    /// Where the walk begins.
    offset: u64,
    /// The block that is read next. `None` before the first one.
    block: Option<usize>,
    ranges: Option<Ranges<'a>>,
}

impl<'a> Walk<'a> {
    fn next(&mut self) -> Result<Option<UnwindRow<'a>>, Error> {
        loop {
            if let Some(ranges) = &mut self.ranges {
                while let Some((start, end, rule)) = ranges.next()? {
                    let row = self.reader.row(start, end, rule)?.filter(|_| end > self.offset);
                    if row.is_some() {
                        return Ok(row);
                    }
                }
            }
            let block = match self.block {
                Some(block) => block,
                None => self.reader.block_of(self.offset)?.unwrap_or_default(),
            };
            if block >= self.reader.section.blocks.len {
                return Ok(None);
            }
            self.ranges = Some(self.reader.ranges(block)?);
            self.block = Some(block + 1);
        }
    }
}

/// The ranges of a block, read one after the other.
struct Ranges<'a> {
    of: UnwindReader<'a>,
    bits: BitReader<'a>,
    /// The position after the last bit of the block.
    last: usize,
    /// How many bits before that can be unused: the last block ends with a byte.
    padding: usize,
    /// Where the next range starts.
    at: u64,
    /// Where the last range ends.
    end: u64,
    /// The rule of the range before. The first range follows a gap.
    rule: usize,
    /// How many ranges the block may still have.
    left: usize,
}

impl Ranges<'_> {
    /// The next range and the number of its rule, 0 in a gap.
    fn next(&mut self) -> Result<Option<(u64, u64, usize)>, Error> {
        if self.at == self.end {
            let unused = self.last.checked_sub(self.bits.position());
            let is_whole = unused.is_some_and(|unused| unused <= self.padding);
            return if is_whole {
                Ok(None)
            } else {
                Err(self.of.malformed("a block has more bits than ranges"))
            };
        }
        let Some(left) = self.left.checked_sub(1) else {
            return Err(self.of.malformed("a block has more ranges than the format allows"));
        };
        let (start, step) = (self.at, self.step()?);
        let Some((rule, length)) = step else { return Err(self.of.malformed("a range has an invalid step")) };
        let end = start.checked_add(length).filter(|end| *end <= self.end && length != 0);
        let Some(end) = end else { return Err(self.of.malformed("a range ends after its block")) };
        (self.at, self.rule, self.left) = (end, rule, left);
        Ok(Some((start, end, rule)))
    }

    /// The rule and the length of the next range. `None` if they are invalid.
    #[inline]
    fn step(&mut self) -> Result<Option<(usize, u64)>, Error> {
        let UnwindReader { section, pages, .. } = &self.of;
        let Some(([first, ..], next)) = section.rules.get(pages, self.rule)? else { return Ok(None) };
        let steps = next.map_or(section.steps.len as u64, |[steps, ..]| steps).checked_sub(first);
        let Some(steps) = steps else { return Ok(None) };
        let Some(step) = section.codes.number(&mut self.bits, step_context(steps)) else { return Ok(None) };
        let [rule, length] = match step.checked_sub(1) {
            None => match section.codes.number(&mut self.bits, RULE) {
                Some(rule) => [rule, 0],
                None => return Ok(None),
            },
            Some(step) if step < steps => {
                let Some(step) = usize::try_from(first + step).ok() else { return Ok(None) };
                match section.steps.get(pages, step)? {
                    Some((step, _)) => step,
                    None => return Ok(None),
                }
            }
            Some(_) => return Ok(None),
        };
        let rule = usize::try_from(rule).ok().filter(|rule| *rule < section.rules.len);
        Ok(rule.and_then(|rule| Some((rule, self.length(rule, length)?))))
    }

    /// The length of a range with this rule, of which a step states `length`: 0 if a number follows, 1 if the range
    /// ends at the next multiple of 16, else the length plus 1.
    #[inline]
    fn length(&mut self, rule: usize, length: u64) -> Option<u64> {
        match length {
            0 => {
                let context = if rule == 0 || self.rule == 0 { AFTER_GAP } else { LENGTH };
                self.of.section.codes.number(&mut self.bits, context)
            }
            1 => Some(align_up(self.at)),
            stated => Some(stated - 1),
        }
    }
}
