//! Reads names and file paths from their grammar. Each can be read without the others.

pub(crate) mod readable;
#[cfg(test)]
mod tests;
mod verify;

use crate::error::Error;
use crate::format::{Cursor, MAX_STRING, PageReader};

/// The deepest nesting of rules.
const MAX_DEPTH: usize = 64;
/// Shorter terminals are copied as this many bytes, because a copy of constant size is faster.
const SHORT: usize = 16;
/// How many names a group has.
pub(crate) const GROUP_LEN: u32 = 16;
/// The widths in bits of the numbers in a group's entry: the number of the group's first symbol, and how many symbols
/// each name of the group has.
pub(crate) const GROUP_BITS: u32 = 32;
pub(crate) const LEN_BITS: u32 = 4;
/// Bytes of a group's entry.
pub(crate) const GROUP_SIZE: usize = (GROUP_BITS + LEN_BITS * GROUP_LEN) as usize / 8;
/// The longest terminal.
pub(crate) const MAX_TERMINAL: usize = 64;
/// The most bits of a symbol, so that one read gives both symbols of a rule.
pub(crate) const MAX_WIDTH: u32 = 28;
/// How many terminals share an entry of [`NameLayout::shortest`].
pub(crate) const NEIGHBOURS: usize = 16;
/// The most bytes of a head: two numbers of up to ten bytes, two bytes, and a number for each length of terminals.
const MAX_HEAD: usize = 2 * 10 + 2 + MAX_TERMINAL * 10;

/// The section's head, and values derived from it.
#[derive(Debug)]
pub(crate) struct NameLayout {
    pub(crate) names: u32,
    /// Bits of a symbol.
    pub(crate) width: u32,
    pub(crate) symbols: u32,
    pub(crate) terminals: u32,
    pub(crate) rules: u32,
    /// For each length from 0 on: the first terminal that is longer, and where the text of that terminal begins among
    /// the texts.
    pub(crate) lengths: Vec<(u32, u64)>,
    /// For each [`NEIGHBOURS`] terminals: a length that is at most the length of each of them. The search for a
    /// terminal's length begins there.
    pub(crate) shortest: Vec<u8>,
    pub(crate) groups_at: usize,
    pub(crate) rules_at: usize,
    pub(crate) symbols_at: usize,
    pub(crate) texts_at: usize,
}

impl NameLayout {
    /// Reads the layout of a section that has this many names from byte `at` on. Only the pages of the head of the
    /// names are read.
    pub(crate) fn decode(pages: &PageReader<'_>, at: usize, names: u64) -> Result<Self, Error> {
        let malformed = || pages.malformed(at, "its numbers of names and symbols are invalid");
        let head = |most: usize| pages.bytes(at..pages.section.len().min(at.saturating_add(most)).max(at));
        let names = u32::try_from(names).map_err(|_| malformed())?;
        // A head has about a hundred bytes: one page.
        let layout = match Self::of_head(head(MAX_HEAD / 4)?, at, names) {
            None => Self::of_head(head(MAX_HEAD)?, at, names),
            layout => layout,
        };
        let (mut layout, end) = layout.ok_or_else(malformed)?;
        if end != pages.section.len() as u64 {
            return Err(pages.malformed(at, "its size differs from what its head says"));
        }
        // The size was checked, so the section has at least one byte for each terminal.
        let entries = (layout.terminals as usize).div_ceil(NEIGHBOURS);
        layout.shortest.reserve(entries);
        for (len, (first_longer, _)) in (0..).zip(&layout.lengths) {
            let end = (*first_longer as usize).div_ceil(NEIGHBOURS);
            layout.shortest.resize(end.max(layout.shortest.len()), len);
        }
        Ok(layout)
    }

    /// The layout and the end of the names whose head is at byte `at` of the section. Returns `None` for an invalid
    /// head.
    fn of_head(head: &[u8], at: usize, names: u32) -> Option<(Self, u64)> {
        let mut cursor = Cursor::new(head);
        let (rules, symbols) = (cursor.varint32()?, cursor.varint32()?);
        let [width, longest] = cursor.array()?;
        let (width, longest) = (u32::from(width), usize::from(longest));
        if !(1..=MAX_WIDTH).contains(&width) || longest > MAX_TERMINAL {
            return None;
        }
        let mut lengths = Vec::with_capacity(longest + 1);
        lengths.push((0, 0));
        let (mut terminals, mut text) = (0u32, 0u64);
        for len in 1..=longest as u64 {
            let count = cursor.varint32()?;
            terminals = terminals.checked_add(count)?;
            text += u64::from(count) * len;
            lengths.push((terminals, text));
        }
        if u64::from(terminals) + u64::from(rules) > 1 << width {
            return None;
        }
        let bytes = |count: u32, bits: u32| (u64::from(count) * u64::from(bits)).div_ceil(8);
        let groups_at = at.checked_add(cursor.position(head))?;
        let rules_at = groups_at as u64 + u64::from(names.div_ceil(GROUP_LEN)) * GROUP_SIZE as u64;
        let symbols_at = rules_at + bytes(rules, 2 * width);
        let texts_at = symbols_at + bytes(symbols, width);
        let end = texts_at + text;
        let [rules_at, symbols_at, texts_at] = [rules_at, symbols_at, texts_at].map(usize::try_from);
        let (rules_at, symbols_at, texts_at) = (rules_at.ok()?, symbols_at.ok()?, texts_at.ok()?);
        let shortest = Vec::new();
        let layout = Self {
            names,
            width,
            symbols,
            terminals,
            rules,
            lengths,
            shortest,
            groups_at,
            rules_at,
            symbols_at,
            texts_at,
        };
        Some((layout, end))
    }
}

/// The names of an index.
#[derive(Clone, Copy)]
pub(crate) struct NameReader<'a> {
    pub(crate) layout: &'a NameLayout,
    pub(crate) pages: PageReader<'a>,
}

impl NameReader<'_> {
    /// The number of the first symbol of name `id`, and how many it has.
    pub(crate) fn symbols_of(&self, id: u32) -> Result<(u64, u64), Error> {
        let layout = self.layout;
        if id >= layout.names {
            return Err(self.pages.malformed(layout.groups_at, "no such name"));
        }
        let group = layout.groups_at + (id / GROUP_LEN) as usize * GROUP_SIZE;
        let first = self.pages.bits(group, 0, GROUP_BITS)?;
        let lens = self.pages.bytes(group + GROUP_BITS as usize / 8..group + GROUP_SIZE)?.first_chunk();
        let lens = lens.ok_or_else(|| self.pages.malformed(group, "a group is cut short"))?;
        let lens = u64::from_be_bytes(*lens);
        // The sum of the lengths of the names before this one: 0 for the first, where all digits are shifted out. Each
        // length is one hexadecimal digit of `lens`.
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
    pub(crate) fn rule(&self, rule: u32) -> Result<(u32, u32), Error> {
        let (layout, width) = (self.layout, self.layout.width);
        let bits = self.pages.bits(layout.rules_at, u64::from(rule) * u64::from(2 * width), 2 * width)?;
        Ok((low_half(bits >> width), low_half(bits) & ((1 << width) - 1)))
    }

    /// Appends name `id` to `out`. After an error, `out` has a part of the name: at most [`MAX_STRING`] bytes and one
    /// terminal.
    pub(crate) fn append(&self, id: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        let end = out.len() + MAX_STRING;
        self.expand(id, |start, len| {
            match self.pages.checked::<SHORT>(start) {
                Some(bytes) if len <= SHORT => {
                    let before = out.len();
                    out.extend_from_slice(bytes);
                    out.truncate(before + len);
                }
                _ => out.extend_from_slice(self.pages.bytes(start..start + len)?),
            }
            if out.len() > end {
                let what = "a name is longer than the format allows";
                return Err(self.pages.malformed(self.layout.symbols_at, what));
            }
            Ok(true)
        })
        .map(|_| ())
    }

    /// Whether name `id` is `wanted`, and how many symbols were read. The name is read up to the first
    /// difference.
    pub(crate) fn is(&self, id: u32, wanted: &[u8]) -> Result<(bool, u64), Error> {
        let mut left = Some(wanted);
        let steps = self.expand(id, |start, len| {
            let text = self.pages.bytes(start..start + len)?;
            left = left.and_then(|left| left.strip_prefix(text));
            Ok(left.is_some())
        })?;
        Ok((left == Some(b""), steps))
    }

    /// Calls `terminal` with the place and the length of each terminal of name `id`, until it returns false. Returns
    /// how many symbols were read.
    #[inline(always)]
    fn expand(
        &self,
        id: u32,
        mut terminal: impl FnMut(usize, usize) -> Result<bool, Error>,
    ) -> Result<u64, Error> {
        let Self { layout, pages, .. } = *self;
        let (mut at, len) = self.symbols_of(id)?;
        let (last, mut steps) = (at + len, 0);
        // Right symbols of rules that are still to be expanded, the next one last.
        let (mut pending, mut depth) = ([0; MAX_DEPTH], 0usize);
        loop {
            let mut symbol = match depth.checked_sub(1).and_then(|above| pending.get(above)) {
                Some(next) => {
                    depth -= 1;
                    *next
                }
                None if at == last => return Ok(steps),
                None => {
                    at += 1;
                    self.symbol(at - 1)?
                }
            };
            while let Some(rule) = symbol.checked_sub(layout.terminals) {
                let (left, right) = if rule < layout.rules { self.rule(rule)? } else { (u32::MAX, 0) };
                // The symbols of a rule are smaller than the rule, so an expansion ends.
                let slot = pending.get_mut(depth).filter(|_| left < symbol && right < symbol);
                *slot.ok_or_else(|| pages.malformed(layout.rules_at, "a rule is invalid"))? = right;
                (depth, symbol) = (depth + 1, left);
                steps += 1;
            }
            steps += 1;
            let text = self.text_of(symbol);
            let (start, len) =
                text.ok_or_else(|| pages.malformed(layout.texts_at, "a terminal has no text"))?;
            if !terminal(start, len)? {
                return Ok(steps);
            }
        }
    }

    /// Where the text of a terminal begins in the section, and its length. Returns `None` if there is no such terminal.
    #[inline]
    fn text_of(&self, terminal: u32) -> Option<(usize, usize)> {
        let NameLayout { lengths, shortest, .. } = self.layout;
        let mut len = usize::from(*shortest.get(terminal as usize / NEIGHBOURS)?);
        while lengths.get(len).is_some_and(|(first_longer, _)| *first_longer <= terminal) {
            len += 1;
        }
        let (first, start) = lengths.get(len.checked_sub(1)?)?;
        let start = self.layout.texts_at + usize::try_from(*start).ok()?;
        Some((start + (terminal - first) as usize * len, len))
    }
}

/// The 32 low bits.
#[inline(always)]
pub(crate) fn low_half(bits: u64) -> u32 {
    let [a, b, c, d, ..] = bits.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
