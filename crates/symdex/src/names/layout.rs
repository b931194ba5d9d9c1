//! Where everything lies in the section of names.

use super::grammar::Grammar;
use super::lex::MAX_PIECE;
use super::pages::PageReader;
use crate::error::Error;
use crate::format::{Cursor, PoolInfo, put_varint};

/// Names of one group.
pub(crate) const GROUP_LEN: u32 = 16;
/// Bytes of a group's entry.
pub(super) const GROUP_SIZE: usize = 12;
/// Terminals that share an entry of [`Layout::shortest`].
pub(super) const NEIGHBOURS: usize = 64;
/// The most bits of a symbol: a rule, shifted by up to seven bits, is read as one number of 64.
const MAX_WIDTH: u32 = 28;
/// No head is longer: two numbers of up to ten bytes, two bytes, a number for each length of terminals.
const MAX_HEAD: usize = 2 * 10 + 2 + MAX_PIECE * 10;

/// What the section's head says, and what follows from it.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(super) names: u32,
    pub(super) width: u32,
    /// The lowest `width` bits.
    pub(super) mask: u32,
    pub(super) symbols: u32,
    pub(super) terminals: u32,
    pub(super) rules: u32,
    /// For each length from 0 on, the first terminal that is longer, and where the text of that one begins among the texts.
    pub(super) lengths: Vec<(u32, u64)>,
    /// The length of the first of every [`NEIGHBOURS`] terminals, where the search for another's length begins.
    pub(super) shortest: Vec<u8>,
    pub(super) groups_at: usize,
    pub(super) rules_at: usize,
    pub(super) symbols_at: usize,
    pub(super) texts_at: usize,
}

impl Layout {
    /// The layout of the section of these names. No more than its head is read, which the first page holds.
    pub(crate) fn decode(pages: &PageReader<'_>, names: PoolInfo) -> Result<Self, Error> {
        let malformed = || pages.malformed(0, "its numbers of names and symbols make no sense");
        if names.strings_per_block != GROUP_LEN {
            return Err(malformed());
        }
        let head = pages.bytes(0..pages.section.len().min(MAX_HEAD))?;
        let layout = Self::of_head(head, u32::try_from(names.strings).map_err(|_| malformed())?);
        let (mut layout, size) = layout.ok_or_else(malformed)?;
        if size != pages.section.len() as u64 {
            return Err(pages.malformed(0, "it has another size than its head says"));
        }
        // Now there are no more terminals than bytes.
        let mut len = 0u8;
        for first in (0..layout.terminals).step_by(NEIGHBOURS) {
            while layout.lengths.get(usize::from(len)).is_some_and(|(first_longer, _)| *first_longer <= first)
            {
                len += 1;
            }
            layout.shortest.push(len);
        }
        Ok(layout)
    }

    /// The layout, and the size of the whole section; `None` for numbers that make no sense.
    fn of_head(head: &[u8], names: u32) -> Option<(Self, u64)> {
        let mut cursor = Cursor::new(head);
        let (rules, symbols) = (cursor.varint32()?, cursor.varint32()?);
        let [width, longest] = cursor.array()?;
        let (width, longest) = (u32::from(width), usize::from(longest));
        if !(1..=MAX_WIDTH).contains(&width) || longest > MAX_PIECE {
            return None;
        }
        let mut lengths = vec![(0, 0)];
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
        let at = |at: u64| usize::try_from(at).ok();
        let (rules_at, symbols_at, size) = (at(rules_at)?, at(symbols_at)?, texts_at + text);
        let texts_at = at(texts_at)?;
        let layout = Self {
            names,
            width,
            mask: (1 << width) - 1,
            symbols,
            terminals,
            rules,
            lengths,
            shortest: Vec::new(),
            groups_at,
            rules_at,
            symbols_at,
            texts_at,
        };
        Some((layout, size))
    }
}

/// The section of the names that `grammar` makes.
pub(super) fn encode(grammar: &Grammar<'_>) -> Result<Vec<u8>, Error> {
    let number = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
    let width = grammar.width();
    if width > MAX_WIDTH || u32::try_from(grammar.symbols.len()).is_err() {
        return Err(Error::Unwritable { what: "more distinct names than the format allows" });
    }
    let mut out = Vec::new();
    put_varint(&mut out, grammar.rules.len() as u64);
    put_varint(&mut out, grammar.symbols.len() as u64);
    let longest = grammar.terminals.last().map_or(0, |text| text.len());
    out.extend([width.to_le_bytes()[0], longest.to_le_bytes()[0]]);
    for len in 1..=longest {
        let terminals = &grammar.terminals;
        let below = |len| terminals.partition_point(|text| text.len() <= len);
        put_varint(&mut out, (below(len) - below(len - 1)) as u64);
    }
    let mut first = 0;
    for group in grammar.lens.chunks(GROUP_LEN as usize) {
        let packed = group.iter().rev().fold(0u64, |packed, len| packed << 4 | u64::from(*len));
        out.extend(number(first).to_le_bytes());
        out.extend(packed.to_le_bytes());
        first += group.iter().map(|len| usize::from(*len)).sum::<usize>();
    }
    pack(&mut out, width, grammar.rules.iter().flatten().copied());
    pack(&mut out, width, grammar.symbols.iter().copied());
    grammar.terminals.iter().for_each(|text| out.extend_from_slice(text));
    Ok(out)
}

/// Appends `width` bits of each number, and what fills the last byte.
fn pack(out: &mut Vec<u8>, width: u32, numbers: impl Iterator<Item = u32>) {
    let (mut bits, mut len) = (0u64, 0);
    for number in numbers {
        bits |= u64::from(number) << len;
        len += width;
        while len >= 8 {
            out.push(bits.to_le_bytes()[0]);
            (bits, len) = (bits >> 8, len - 8);
        }
    }
    if len > 0 {
        out.push(bits.to_le_bytes()[0]);
    }
}
