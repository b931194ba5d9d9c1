//! Where each name was first seen.
//!
//! An origin for no name and then one for each name of the pool, in their order: two numbers.
//!
//! ```text
//! file  0: that of the origin before; k: k - 1 with its sign unfolded, plus that of the origin before
//! line  where the file is that of the origin before, its sign unfolded, plus the line of that; else the line
//! ```
//!
//! Files and lines are stored plus one, 0 is none. Every 16th begins anew: before it are no file and no line.

use super::ORIGIN_GROUP;
use super::bits::{BitReader, BitWriter, encode_rows};
use super::codes::{Codes, Counts, Encoder};
use super::contexts::{ORIGIN_FILE, ORIGIN_LINE};
use super::tokens::{ORIGINS, TokenReader, Tokens};
use crate::format::{unzigzag, zigzag};

/// A file and a line, as they are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) file: u32,
    pub(super) line: u32,
}

/// The origins of names by how the names are stored, while an index is written.
#[derive(Default)]
pub(super) struct Origins(Vec<Option<Origin>>);

impl Origins {
    /// The origin of `name`: `seen`, unless it was seen before.
    pub(super) fn of(&mut self, name: u32, seen: Origin) -> Origin {
        let name = name as usize;
        if self.0.len() <= name {
            self.0.resize(name + 1, None);
        }
        self.0.get_mut(name).map_or(seen, |origin| *origin.get_or_insert(seen))
    }

    /// The symbols of the origins of `names` names, counted in `counts`.
    pub(super) fn tokens(&self, names: usize, counts: &mut Counts) -> Tokens {
        let mut tokens = Tokens::default();
        let mut last = Origin::default();
        for name in 0..=names {
            if name.is_multiple_of(ORIGIN_GROUP) {
                tokens.number(ORIGINS, 0);
                last = Origin::default();
            }
            // Of those that no code has, what takes least.
            let origin = self.0.get(name).copied().flatten().unwrap_or(last);
            let [file, line, last_file, last_line] =
                [origin.file, origin.line, last.file, last.line].map(i64::from);
            if file == last_file {
                tokens.number(ORIGIN_FILE, 0);
                tokens.number(ORIGIN_LINE + 1, zigzag(line - last_line));
            } else {
                tokens.number(ORIGIN_FILE, zigzag(file - last_file) + 1);
                tokens.number(ORIGIN_LINE, origin.line.into());
            }
            last = origin;
        }
        tokens.count(counts);
        tokens
    }
}

/// The origins of `tokens`: where in bits every group starts, and the bits.
pub(super) fn encode_origins(tokens: &Tokens, encoder: &Encoder) -> ([u8; 1], Vec<u8>, Vec<u8>) {
    let (mut rows, mut out) = (Vec::new(), BitWriter::default());
    let mut reader = TokenReader::new(&tokens.0);
    while reader.mark().is_some() {
        rows.push([out.position()]);
        reader.put(encoder, &mut out);
    }
    let (widths, rows) = encode_rows(&rows);
    (widths, rows, out.finish())
}

/// Where reading a group is.
#[derive(Clone, Copy, Default)]
pub(super) struct State {
    pub(super) at: usize,
    pub(super) last: Origin,
}

/// Appends origins of a group whose bits lie in `bytes` to `out`, until there are `len`; `None` where the bytes are damaged.
pub(super) fn read_origins(
    bytes: &[u8],
    codes: Codes<'_>,
    state: &mut State,
    out: &mut Vec<Origin>,
    len: usize,
) -> Option<()> {
    let State { at, mut last } = *state;
    let mut reader = BitReader::new(bytes, at);
    while out.len() < len {
        let number = codes.number(&mut reader, ORIGIN_FILE)?;
        let same = number == 0;
        let line = codes.number(&mut reader, ORIGIN_LINE + u8::from(same))?;
        last = match number.checked_sub(1) {
            None => Origin { line: moved(last.line, line)?, ..last },
            Some(step) => Origin { file: moved(last.file, step)?, line: u32::try_from(line).ok()? },
        };
        out.push(last);
    }
    *state = State { at: reader.position(), last };
    (!reader.overran()).then_some(())
}

/// The number `step`, whose sign is folded, away from `from`; `None` where 32 bits do not hold it.
#[inline]
pub(super) fn moved(from: u32, step: u64) -> Option<u32> {
    u32::try_from(i64::from(from).checked_add(unzigzag(step))?).ok()
}
