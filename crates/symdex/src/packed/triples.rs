//! The triples of a chunk, and what its numbers of names stand for.
//!
//! ```text
//! triples, each:
//!   name   0: the next number no triple before this one has; k: k - 1 with its sign unfolded, plus the number in the triple before
//!   line   where the triple before has the same name: 0: another file, its number and line follow; k: k - 1 with its sign unfolded, plus
//!          the line of the triple before, of the same file; else 0: likewise; k: k - 1 with its sign unfolded, plus the line of the
//!          name's origin, of the origin's file
//!   file   only where the line says so, and then the line
//! names, each: its id, with its sign unfolded, plus one, plus the id of the name before
//! ```
//!
//! Where no triple of the chunk has a file or a line, as in the `symbol_table`, they are names alone. Every 64th triple begins anew: the name
//! before it is the next number no triple before it has, and is not that of the triple before.

use super::bits::BitReader;
use super::chunk::Lens;
use super::codes::{Codes, Counts};
use super::contexts::{self, ID, LINE, OTHER_FILE, OTHER_LINE};
use super::encode::Draft;
use super::origins::{Origin, Origins, moved};
use super::tokens::{NAMES, TRIPLES};
use super::{NAME_GROUP, TRIPLE_GROUP};
use crate::format::{unzigzag, zigzag};

/// A distinct name, file and line of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Triple {
    /// The chunk's number of the name.
    pub(super) name: u32,
    pub(super) place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The name's origin, and this many lines behind it.
    Origin(i64),
    /// A file and a line, as they are stored.
    Own(Origin),
}

/// Whether a line is one of a name that is new, that of the triple before, or another.
fn line_context(first: bool, same: bool) -> u8 {
    LINE + if same {
        0
    } else if first {
        1
    } else {
        2
    }
}

/// The numbers that a chunk gives names, by how the names are stored.
#[derive(Default)]
pub(super) struct Numbers {
    /// The chunk that gave it a number last, counted from 1, and that.
    of_names: Vec<(u32, u32)>,
    chunks: u32,
}

impl Numbers {
    /// The number of `name`, `next` if it has none.
    fn number(&mut self, name: u32, next: u32) -> u32 {
        let name = name as usize;
        if self.of_names.len() <= name {
            self.of_names.resize(name + 1, (0, 0));
        }
        let Some(number) = self.of_names.get_mut(name) else { return next };
        if number.0 != self.chunks {
            *number = (self.chunks, next);
        }
        number.1
    }
}

/// Appends the triples of a draft and its names to its tokens, and counts all of them; how many there are.
pub(super) fn finish(
    draft: &mut Draft,
    numbers: &mut Numbers,
    origins: &mut Origins,
    counts: &mut Counts,
) -> Lens {
    let Draft { tokens, triples, .. } = draft;
    let plain = triples.iter().all(|[_, file, line]| *file == 0 && *line == 0);
    numbers.chunks += 1;
    let mut names = Vec::new();
    let (mut last, mut last_step, mut last_place) = (0, 0, None);
    for (index, [name, file, line]) in triples.iter().enumerate() {
        let next = u32::try_from(names.len()).unwrap_or(u32::MAX);
        if index.is_multiple_of(TRIPLE_GROUP) {
            tokens.number(TRIPLES, next.into());
            (last, last_step, last_place) = (next, 0, None);
        }
        let number = numbers.number(*name, next);
        let step = if number == next { 0 } else { zigzag(i64::from(number) - i64::from(last)) + 1 };
        tokens.number(contexts::name(last_step), step);
        if step == 0 {
            names.push(*name);
        }
        let place = Origin { file: *file, line: *line };
        if !plain {
            let before: Option<Origin> = last_place.filter(|_| number == last);
            let from = before.unwrap_or_else(|| origins.of(*name, place));
            let context = line_context(step == 0, before.is_some());
            if from.file == place.file {
                tokens.number(context, zigzag(i64::from(*line) - i64::from(from.line)) + 1);
            } else {
                tokens.number(context, 0);
                tokens.number(OTHER_FILE, (*file).into());
                tokens.number(OTHER_LINE, (*line).into());
            }
        }
        (last, last_step, last_place) = (number, step, Some(place));
    }
    let mut expected = 0u32;
    for (index, name) in names.iter().enumerate() {
        if index.is_multiple_of(NAME_GROUP) {
            tokens.number(NAMES, expected.into());
        }
        tokens.number(ID, zigzag(i64::from(*name) - i64::from(expected)));
        expected = name.saturating_add(1);
    }
    tokens.count(counts);
    Lens { triples: triples.len(), names: names.len(), plain }
}

/// Where reading a group of triples is.
#[derive(Clone, Copy, Default)]
pub(super) struct State {
    pub(super) at: usize,
    pub(super) next_name: u32,
    pub(super) last: Option<Triple>,
    pub(super) last_step: u64,
}

/// Appends triples of a group whose bits lie in `bytes` to `out`, until there are `len`; `None` where the bytes are damaged. It is the
/// caller's to check their names.
pub(super) fn read_triples(
    bytes: &[u8],
    codes: Codes<'_>,
    plain: bool,
    state: &mut State,
    out: &mut Vec<Triple>,
    len: usize,
) -> Option<()> {
    let State { at, mut next_name, mut last, mut last_step } = *state;
    let mut reader = BitReader::new(bytes, at);
    while out.len() < len {
        let step = codes.number(&mut reader, contexts::name(last_step))?;
        let name = match step.checked_sub(1) {
            None => {
                next_name = next_name.checked_add(1)?;
                next_name - 1
            }
            Some(step) => moved(last.map_or(next_name, |last| last.name), step)?,
        };
        let before = last.filter(|last| last.name == name);
        let place = match (plain, before) {
            (true, _) => Place::Own(Origin::default()),
            (false, Some(before)) => {
                read_line(&mut reader, codes, line_context(step == 0, true), before.place)?
            }
            (false, None) => read_line(&mut reader, codes, line_context(step == 0, false), Place::Origin(0))?,
        };
        let triple = Triple { name, place };
        out.push(triple);
        (last, last_step) = (Some(triple), step);
    }
    *state = State { at: reader.position(), next_name, last, last_step };
    (!reader.overran()).then_some(())
}

/// Where a triple stands, counted from `from`.
#[inline]
fn read_line(reader: &mut BitReader<'_>, codes: Codes<'_>, context: u8, from: Place) -> Option<Place> {
    Some(match (codes.number(reader, context)?.checked_sub(1), from) {
        (None, _) => {
            let file = u32::try_from(codes.number(reader, OTHER_FILE)?).ok()?;
            Place::Own(Origin { file, line: u32::try_from(codes.number(reader, OTHER_LINE)?).ok()? })
        }
        (Some(lines), Place::Origin(away)) => Place::Origin(away.checked_add(unzigzag(lines))?),
        (Some(lines), Place::Own(own)) => Place::Own(Origin { line: moved(own.line, lines)?, ..own }),
    })
}

/// Where reading a group of names is.
#[derive(Clone, Copy, Default)]
pub(super) struct NameState {
    pub(super) at: usize,
    /// One more than the id before, as it is stored.
    pub(super) expected: u32,
}

/// Appends the ids of names of a group, as they are stored, to `out`, until there are `len`; `None` where the bytes are damaged.
pub(super) fn read_names(
    bytes: &[u8],
    codes: Codes<'_>,
    state: &mut NameState,
    out: &mut Vec<u32>,
    len: usize,
) -> Option<()> {
    let NameState { at, mut expected } = *state;
    let mut reader = BitReader::new(bytes, at);
    while out.len() < len {
        let id = moved(expected, codes.number(&mut reader, ID)?)?;
        out.push(id);
        expected = id.saturating_add(1);
    }
    *state = NameState { at: reader.position(), expected };
    (!reader.overran()).then_some(())
}
