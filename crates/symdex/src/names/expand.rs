//! Reading names.

use rustc_hash::FxHashMap;

use super::layout::{GROUP_LEN, GROUP_SIZE, Layout, NEIGHBOURS};
use super::memo::Memo;
use super::pages::PageReader;
use crate::error::Error;
use crate::format::MAX_STRING;
use crate::index::Pool;

/// The most rules within each other.
const MAX_DEPTH: usize = 64;

/// The names of an index.
#[derive(Clone, Copy)]
pub(crate) struct NameReader<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) pages: PageReader<'a>,
    /// The index's serial number, and which of its pools it is.
    pub(crate) key: (u64, Pool),
}

impl NameReader<'_> {
    /// Appends name `id` to `out`. What is wrong with a name that does not expand is found before `out` grows by more than a name.
    pub(crate) fn append(&self, id: u32, memo: &mut Memo, out: &mut Vec<u8>) -> Result<(), Error> {
        if let Some(name) = memo.get(self.key, id) {
            out.extend_from_slice(name);
            return Ok(());
        }
        let (first, len) = self.symbols_of(id)?;
        let before = out.len();
        let mut behind = [0; MAX_DEPTH];
        for at in first..first + u64::from(len) {
            self.expand(self.symbol(at)?, &mut behind, out, before + MAX_STRING)?;
        }
        memo.put(self.key, id, out.get(before..).unwrap_or_default());
        Ok(())
    }

    /// Which symbol is the first of name `id`, and how many it has.
    fn symbols_of(&self, id: u32) -> Result<(u64, u32), Error> {
        let layout = self.layout;
        if id >= layout.names {
            return Err(self.pages.malformed(0, "no such name"));
        }
        let group = layout.groups_at + (id / GROUP_LEN) as usize * GROUP_SIZE;
        let entry = self.pages.bytes(group..group + GROUP_SIZE)?;
        let (first, lens) = entry.split_first_chunk().unwrap_or((&[0; 4], &[]));
        let lens = lens.first_chunk().map_or(0, |lens| u64::from_le_bytes(*lens));
        let shift = id % GROUP_LEN * 4;
        Ok((
            u64::from(u32::from_le_bytes(*first)) + sum_of_digits(lens & ((1 << shift) - 1)),
            digit(lens >> shift),
        ))
    }

    fn symbol(&self, at: u64) -> Result<u32, Error> {
        let layout = self.layout;
        if at >= u64::from(layout.symbols) {
            return Err(self.pages.malformed(layout.symbols_at, "a name has symbols that are not there"));
        }
        let bits = self.pages.bits(layout.symbols_at, at * u64::from(layout.width), layout.width)?;
        Ok(low_half(bits) & layout.mask)
    }

    /// The two symbols that rule number `rule` stands for.
    #[inline(always)]
    fn rule(&self, rule: u32) -> Result<(u32, u32), Error> {
        let (layout, width) = (self.layout, self.layout.width);
        let bits = self.pages.bits(layout.rules_at, u64::from(rule) * u64::from(2 * width), 2 * width)?;
        Ok((low_half(bits) & layout.mask, low_half(bits >> width) & layout.mask))
    }

    /// Appends what `symbol` stands for, as long as `out` does not grow beyond `end`. `behind` is room for symbols that are still to come.
    fn expand(
        &self,
        symbol: u32,
        behind: &mut [u32; MAX_DEPTH],
        out: &mut Vec<u8>,
        end: usize,
    ) -> Result<(), Error> {
        let layout = self.layout;
        let (mut depth, mut symbol) = (0, symbol);
        loop {
            while let Some(rule) = symbol.checked_sub(layout.terminals) {
                let (left, right) = if rule < layout.rules { self.rule(rule)? } else { (u32::MAX, 0) };
                // Only smaller symbols: what a hostile grammar repeats comes to an end.
                let slot = behind.get_mut(depth).filter(|_| left < symbol && right < symbol);
                *slot.ok_or_else(|| self.pages.malformed(layout.rules_at, "a rule makes no sense"))? = right;
                (depth, symbol) = (depth + 1, left);
            }
            let (start, len) = self.text_of(symbol);
            self.pages.append(start, len, out)?;
            if out.len() > end {
                return Err(self
                    .pages
                    .malformed(layout.symbols_at, "a name is longer than the format allows"));
            }
            let Some(next) = depth.checked_sub(1).and_then(|above| behind.get(above)) else { return Ok(()) };
            (depth, symbol) = (depth - 1, *next);
        }
    }

    /// Where the text of a terminal begins in the section, and its length.
    #[inline]
    fn text_of(&self, terminal: u32) -> (usize, usize) {
        let Layout { lengths, shortest, .. } = self.layout;
        let mut len = shortest.get(terminal as usize / NEIGHBOURS).copied().map_or(0, usize::from);
        while lengths.get(len).is_some_and(|(first_longer, _)| *first_longer <= terminal) {
            len += 1;
        }
        let (first, start) = len.checked_sub(1).and_then(|len| lengths.get(len)).copied().unwrap_or_default();
        let start = self.layout.texts_at + usize::try_from(start).unwrap_or_default();
        (start + (terminal - first) as usize * len, len)
    }

    /// Checks all of the section; how many pages it has.
    pub(crate) fn verify(&self) -> Result<u64, Error> {
        let pages = self.pages.verify()?;
        let layout = self.layout;
        for (symbol, rule) in (layout.terminals..).zip(0..layout.rules) {
            let (left, right) = self.rule(rule)?;
            if left >= symbol || right >= symbol {
                return Err(self.pages.malformed(layout.rules_at, "a rule makes no sense"));
            }
        }
        let mut name = Vec::new();
        let mut next = 0;
        for id in 0..layout.names {
            let (first, len) = self.symbols_of(id)?;
            if first != next {
                return Err(self.pages.malformed(layout.groups_at, "names do not follow each other"));
            }
            next += u64::from(len);
            name.clear();
            self.append(id, &mut Memo::default(), &mut name)?;
        }
        if next != u64::from(layout.symbols) {
            return Err(self.pages.malformed(layout.groups_at, "symbols that belong to no name"));
        }
        Ok(pages)
    }

    /// What the names use most, the most useful last: a dictionary to compress some of them with. Empty where there are few names.
    pub(crate) fn most_used(&self) -> Result<Vec<u8>, Error> {
        const LARGEST: usize = 64 << 10;
        /// Longer texts are many names' in part only.
        const LONGEST: usize = 256;
        let layout = self.layout;
        let at_most = LARGEST.min(self.pages.section.len() / 8);
        if at_most < LARGEST / 16 {
            return Ok(Vec::new());
        }
        let mut uses: FxHashMap<u32, usize> = FxHashMap::default();
        for at in 0..layout.symbols {
            *uses.entry(self.symbol(u64::from(at))?).or_default() += 1;
        }
        let (mut texts, mut whole) = (Vec::new(), Vec::new());
        for (symbol, uses) in uses {
            whole.clear();
            self.expand(symbol, &mut [0; MAX_DEPTH], &mut whole, MAX_STRING)?;
            // Copied, so that what is kept has room for no more: any number of symbols may be as long as a name.
            let text = whole.get(..LONGEST).unwrap_or(&whole).to_vec();
            if uses > 1 {
                texts.push((uses * text.len(), text));
            }
        }
        texts.sort_unstable_by(|a, b| b.cmp(a));
        let mut size = 0;
        let fits = |(_, text): &&(usize, Vec<u8>)| {
            size += text.len();
            size <= at_most
        };
        let chosen: Vec<&[u8]> = texts.iter().take_while(fits).map(|(_, text)| text.as_slice()).collect();
        Ok(chosen.into_iter().rev().flatten().copied().collect())
    }
}

fn low_half(bits: u64) -> u32 {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

fn digit(digits: u64) -> u32 {
    u32::from(digits.to_le_bytes()[0] & 0xf)
}

/// The sum of the sixteen hexadecimal digits.
fn sum_of_digits(digits: u64) -> u64 {
    let pairs = (digits & 0x0f0f_0f0f_0f0f_0f0f) + (digits >> 4 & 0x0f0f_0f0f_0f0f_0f0f);
    pairs.wrapping_mul(0x0101_0101_0101_0101) >> 56
}
