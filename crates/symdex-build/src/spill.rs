//! Parts of units in a temporary file, by the stripe of addresses that they start in.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use symdex::write::{Id32, Loc};

use crate::dwarf::{Piece, UnitRange};
use crate::live::Part;

/// Chunks have fewer locs, all together.
const FIRST_LOC_OF_PARTS: u64 = 1 << 63;

/// Parts of units in a temporary file, which has no name and is gone with its last user.
#[derive(Default)]
pub(crate) struct Spill {
    file: Option<File>,
    size: u64,
    /// For each stripe where its parts are: offsets and sizes in bytes.
    runs: BTreeMap<u64, Vec<(u64, usize)>>,
    /// How many locs parts may have.
    locs: u64,
}

impl Spill {
    /// The first of `len` numbers for the locs of a part, which are above those of all chunks and of all parts before it.
    pub(crate) fn reserve_locs(&mut self, len: usize) -> u64 {
        self.locs += len as u64;
        FIRST_LOC_OF_PARTS + self.locs - len as u64
    }

    /// The first stripe that has parts.
    pub(crate) fn first(&self) -> Option<u64> {
        self.runs.keys().next().copied()
    }

    /// Puts parts of a stripe into the file.
    pub(crate) fn write(&mut self, stripe: u64, parts: &[Part]) -> io::Result<()> {
        let mut words = Words::default();
        words.count(parts.len());
        parts.iter().for_each(|part| words.part(part));
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        file.seek(SeekFrom::Start(self.size))?;
        file.write_all(&words.0)?;
        self.runs.entry(stripe).or_default().push((self.size, words.0.len()));
        self.size += words.0.len() as u64;
        Ok(())
    }

    /// All parts of a stripe, for the last time.
    pub(crate) fn read(&mut self, stripe: u64) -> io::Result<Vec<Part>> {
        let mut parts = Vec::new();
        let runs = self.runs.remove(&stripe).unwrap_or_default();
        let Some(file) = &mut self.file else { return Ok(parts) };
        for (offset, size) in runs {
            let mut bytes = vec![0; size];
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(&mut bytes)?;
            let mut words = Reader(&bytes);
            for _ in 0..words.word()? {
                parts.push(words.part()?);
            }
        }
        Ok(parts)
    }
}

/// Parts as they are in the file: 64-bit words, little-endian, lists with their lengths before them. Nobody but this run reads them.
#[derive(Default)]
struct Words(Vec<u8>);

impl Words {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    /// Two halves of a word.
    fn pair(&mut self, low: u32, high: u32) {
        self.word(u64::from(low) | u64::from(high) << 32);
    }

    fn count(&mut self, count: usize) {
        self.word(count as u64);
    }

    fn part(&mut self, part: &Part) {
        let Part { order, ranges, pieces, locs, numbers } = part;
        self.word(u64::from(*order));
        self.count(ranges.len());
        for UnitRange { start, end, piece, exact, statement } in ranges {
            self.word(*start);
            self.word(*end);
            self.pair(*exact, *statement);
            self.word(word_of(*piece));
        }
        self.count(pieces.len());
        for Piece { start, end, function, rank, entry } in pieces {
            let (last, Reverse(size), is_named, Reverse(offset)) = *rank;
            [*start, *end, last, size, offset as u64].into_iter().for_each(|word| self.word(word));
            self.pair(*function, u32::from(is_named));
            self.word(word_of(*entry));
        }
        self.count(locs.len());
        for (Loc { parent, name, file, line }, number) in locs.iter().zip(numbers) {
            [*parent, *name, *file, *line].into_iter().for_each(|id| self.word(word_of(id)));
            self.word(u64::from(*number));
        }
    }
}

/// An id as a word, "none" as 0.
fn word_of(id: Option<Id32>) -> u64 {
    id.map_or(0, |id| u64::from(id.get()) + 1)
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn word(&mut self) -> io::Result<u64> {
        let (word, rest) = self.0.split_first_chunk().ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*word))
    }

    fn pair(&mut self) -> io::Result<(u32, u32)> {
        let [a, b, c, d, high @ ..] = self.word()?.to_le_bytes();
        Ok((u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(high)))
    }

    fn id(&mut self) -> io::Result<Option<Id32>> {
        Ok(self.word()?.checked_sub(1).and_then(Id32::new))
    }

    fn part(&mut self) -> io::Result<Part> {
        let mut part = Part { order: self.pair()?.0, ..Part::default() };
        for _ in 0..self.word()? {
            let (start, end, (exact, statement)) = (self.word()?, self.word()?, self.pair()?);
            part.ranges.push(UnitRange { start, end, piece: self.id()?, exact, statement });
        }
        for _ in 0..self.word()? {
            let (start, end, last, size) = (self.word()?, self.word()?, self.word()?, self.word()?);
            let offset = usize::try_from(self.word()?).unwrap_or(usize::MAX);
            let (function, is_named) = self.pair()?;
            let rank = (last, Reverse(size), is_named != 0, Reverse(offset));
            part.pieces.push(Piece { start, end, function, rank, entry: self.id()? });
        }
        for _ in 0..self.word()? {
            let (parent, name, file, line) = (self.id()?, self.id()?, self.id()?, self.id()?);
            part.locs.push(Loc { parent, name, file, line });
            part.numbers.push(self.pair()?.0);
        }
        Ok(part)
    }
}
