//! Where everything lies in a section of names.

use crate::error::Error;
use crate::format::{Cursor, PageReader};

/// Names of a group.
pub(crate) const GROUP_LEN: u32 = 16;
/// Bits of the number of a group's first symbol, and of the number of symbols of each of its names.
pub(crate) const GROUP_BITS: u32 = 32;
pub(crate) const LEN_BITS: u32 = 4;
/// Bytes of a group's entry.
pub(super) const GROUP_SIZE: usize = (GROUP_BITS + LEN_BITS * GROUP_LEN) as usize / 8;
/// The longest terminal.
pub(crate) const MAX_PIECE: usize = 64;
/// The most bits of a symbol: one read gives the two symbols of a rule.
pub(crate) const MAX_WIDTH: u32 = 28;
/// Terminals that share an entry of [`Layout::shortest`].
pub(super) const NEIGHBOURS: usize = 16;
/// No head is longer: two numbers of up to ten bytes, two bytes, a number for each length of terminals.
const MAX_HEAD: usize = 2 * 10 + 2 + MAX_PIECE * 10;

/// The section's head, and what follows from it.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(super) names: u32,
    /// Bits of a symbol.
    pub(super) width: u32,
    pub(super) symbols: u32,
    pub(super) terminals: u32,
    pub(super) rules: u32,
    /// For each length from 0 on, the first terminal that is longer, and where the text of that one begins among the texts.
    pub(super) lengths: Vec<(u32, u64)>,
    /// For each [`NEIGHBOURS`] terminals a length that none of them is below; the search for a terminal's length begins there.
    pub(super) shortest: Vec<u8>,
    pub(super) groups_at: usize,
    pub(super) rules_at: usize,
    pub(super) symbols_at: usize,
    pub(super) texts_at: usize,
}

impl Layout {
    /// The layout of the section of so many names. Only the pages of its head are read.
    pub(crate) fn decode(pages: &PageReader<'_>, names: u64) -> Result<Self, Error> {
        let malformed = || pages.malformed(0, "its numbers of names and symbols are invalid");
        // A head has about a hundred bytes: one page.
        let head = pages.bytes(0..pages.section.len().min(MAX_HEAD / 4))?;
        let names = u32::try_from(names).map_err(|_| malformed())?;
        let layout = match Self::of_head(head, names) {
            None => Self::of_head(pages.bytes(0..pages.section.len().min(MAX_HEAD))?, names),
            layout => layout,
        };
        let (mut layout, size) = layout.ok_or_else(malformed)?;
        if size != pages.section.len() as u64 {
            return Err(pages.malformed(0, "its size differs from what its head says"));
        }
        // So there are no more terminals than bytes.
        let entries = (layout.terminals as usize).div_ceil(NEIGHBOURS);
        layout.shortest.reserve(entries);
        for (len, (first_longer, _)) in (0..).zip(&layout.lengths) {
            let end = (*first_longer as usize).div_ceil(NEIGHBOURS);
            layout.shortest.resize(end.max(layout.shortest.len()), len);
        }
        Ok(layout)
    }

    /// The layout and the size of the whole section; `None` for an invalid head.
    fn of_head(head: &[u8], names: u32) -> Option<(Self, u64)> {
        let mut cursor = Cursor::new(head);
        let (rules, symbols) = (cursor.varint32()?, cursor.varint32()?);
        let [width, longest] = cursor.array()?;
        let (width, longest) = (u32::from(width), usize::from(longest));
        if !(1..=MAX_WIDTH).contains(&width) || longest > MAX_PIECE {
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
        let groups_at = cursor.position(head);
        let rules_at = groups_at as u64 + u64::from(names.div_ceil(GROUP_LEN)) * GROUP_SIZE as u64;
        let symbols_at = rules_at + bytes(rules, 2 * width);
        let texts_at = symbols_at + bytes(symbols, width);
        let size = texts_at + text;
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
        Some((layout, size))
    }
}
