//! Reading names.

use super::layout::{GROUP_BITS, GROUP_LEN, GROUP_SIZE, LEN_BITS, Layout, NEIGHBOURS};
use crate::error::Error;
use crate::format::{MAX_STRING, PageReader};

/// The most rules within each other.
const MAX_DEPTH: usize = 64;
/// Terminals of at most so many bytes are copied as so many bytes, which is faster than copying a few.
const SHORT: usize = 16;

/// The names of an index.
#[derive(Clone, Copy)]
pub(crate) struct NameReader<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) pages: PageReader<'a>,
}

impl NameReader<'_> {
    /// The number of the first symbol of name `id`, and how many it has.
    pub(super) fn symbols_of(&self, id: u32) -> Result<(u64, u64), Error> {
        let layout = self.layout;
        if id >= layout.names {
            return Err(self.pages.malformed(0, "no such name"));
        }
        let group = layout.groups_at + (id / GROUP_LEN) as usize * GROUP_SIZE;
        let first = self.pages.bits(group, 0, GROUP_BITS)?;
        let lens = self.pages.bytes(group + GROUP_BITS as usize / 8..group + GROUP_SIZE)?;
        let lens = lens.first_chunk().map_or(0, |lens| u64::from_be_bytes(*lens));
        // The sum of the lengths before, which are hexadecimal digits.
        let before = lens.checked_shr(64 - LEN_BITS * (id % GROUP_LEN)).unwrap_or(0);
        let pairs = (before & 0x0f0f_0f0f_0f0f_0f0f) + (before >> 4 & 0x0f0f_0f0f_0f0f_0f0f);
        let before = pairs.wrapping_mul(0x0101_0101_0101_0101) >> 56;
        Ok((first + before, lens << (LEN_BITS * (id % GROUP_LEN)) >> (64 - LEN_BITS)))
    }

    #[inline]
    fn symbol(&self, at: u64) -> Result<u32, Error> {
        let layout = self.layout;
        if at >= u64::from(layout.symbols) {
            return Err(self.pages.malformed(layout.symbols_at, "a name has symbols that are not there"));
        }
        self.pages.bits(layout.symbols_at, at * u64::from(layout.width), layout.width).map(low_half)
    }

    /// The two symbols that rule number `rule` stands for.
    #[inline(always)]
    pub(super) fn rule(&self, rule: u32) -> Result<(u32, u32), Error> {
        let (layout, width) = (self.layout, self.layout.width);
        let bits = self.pages.bits(layout.rules_at, u64::from(rule) * u64::from(2 * width), 2 * width)?;
        Ok((low_half(bits >> width), low_half(bits) & ((1 << width) - 1)))
    }

    /// Appends name `id` to `out`. An error leaves at most one name more than the format allows in `out`.
    pub(crate) fn append(&self, id: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        let Self { layout, pages, .. } = *self;
        let (mut at, len) = self.symbols_of(id)?;
        let (last, end) = (at + len, out.len() + MAX_STRING);
        // Symbols that come behind the current one, the next one last.
        let (mut behind, mut depth) = ([0; MAX_DEPTH], 0usize);
        loop {
            let mut symbol = match depth.checked_sub(1).and_then(|above| behind.get(above)) {
                Some(next) => {
                    depth -= 1;
                    *next
                }
                None if at == last => return Ok(()),
                None => {
                    at += 1;
                    self.symbol(at - 1)?
                }
            };
            while let Some(rule) = symbol.checked_sub(layout.terminals) {
                let (left, right) = if rule < layout.rules { self.rule(rule)? } else { (u32::MAX, 0) };
                // Only smaller symbols, so that an expansion ends.
                let slot = behind.get_mut(depth).filter(|_| left < symbol && right < symbol);
                *slot.ok_or_else(|| pages.malformed(layout.rules_at, "a rule is invalid"))? = right;
                (depth, symbol) = (depth + 1, left);
            }
            let (start, len) = self.text_of(symbol);
            match pages.checked::<SHORT>(start) {
                Some(bytes) if len <= SHORT => {
                    let before = out.len();
                    out.extend_from_slice(bytes);
                    out.truncate(before + len);
                }
                _ => out.extend_from_slice(pages.bytes(start..start + len)?),
            }
            if out.len() > end {
                return Err(pages.malformed(layout.symbols_at, "a name is longer than the format allows"));
            }
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
}

fn low_half(bits: u64) -> u32 {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
