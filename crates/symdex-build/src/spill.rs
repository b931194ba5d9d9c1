//! Pending units in a temporary file, by the bucket that contains their start address.
//!
//! [`crate::merge`] describes which units wait, and when they are moved here. Units of one bucket may be written
//! several times. Each write adds an extent at the end of the file. All extents of a bucket are read at once, when the
//! bucket is merged. Nothing in the file is overwritten.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use symdex::write::{InlineFrame, NonMaxU32};

use crate::pending::PendingUnit;
use crate::unit_ranges::{FunctionRange, UnitRange};

/// Pending units in a temporary file. The file has no name, so the system deletes it when it is closed.
#[derive(Default)]
pub(crate) struct Spill {
    file: Option<File>,
    size: u64,
    /// The extents of each bucket's units: offsets and sizes in bytes.
    extents: BTreeMap<u64, Vec<(u64, usize)>>,
}

impl Spill {
    /// The first bucket that has units.
    pub(crate) fn first(&self) -> Option<u64> {
        self.extents.keys().next().copied()
    }

    /// Writes units of a bucket to the file.
    pub(crate) fn write(&mut self, bucket: u64, units: &[PendingUnit]) -> io::Result<()> {
        let mut words = Words::default();
        words.count(units.len());
        units.iter().for_each(|unit| words.unit(unit));
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        file.seek(SeekFrom::Start(self.size))?;
        file.write_all(&words.0)?;
        self.extents.entry(bucket).or_default().push((self.size, words.0.len()));
        self.size += words.0.len() as u64;
        Ok(())
    }

    /// How many bytes the units of a bucket have in the file. In memory they take about as many.
    pub(crate) fn size_of(&self, bucket: u64) -> usize {
        self.extents.get(&bucket).into_iter().flatten().map(|(_, size)| size).sum()
    }

    /// Reads all units of a bucket, and removes the bucket from `extents`.
    pub(crate) fn take(&mut self, bucket: u64) -> io::Result<Vec<PendingUnit>> {
        let mut units = Vec::new();
        let extents = self.extents.remove(&bucket).unwrap_or_default();
        let Some(file) = &mut self.file else { return Ok(units) };
        for (offset, size) in extents {
            let mut bytes = vec![0; size];
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(&mut bytes)?;
            let mut words = Reader(&bytes);
            for _ in 0..words.word()? {
                units.push(words.unit()?);
            }
        }
        Ok(units)
    }
}

/// The encoding of units: 64-bit little-endian words. The length of each list precedes it. Only this build reads them.
#[derive(Default)]
struct Words(Vec<u8>);

impl Words {
    fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    /// Two numbers of 32 bits in one word.
    fn pair(&mut self, low: u32, high: u32) {
        self.word(u64::from(low) | u64::from(high) << 32);
    }

    fn count(&mut self, count: usize) {
        self.word(count as u64);
    }

    fn unit(&mut self, unit: &PendingUnit) {
        let PendingUnit { order, ranges, function_ranges, frames, .. } = unit;
        self.word(u64::from(*order));
        self.count(ranges.len());
        for UnitRange { start, end, function_range, exact, statement } in ranges {
            self.pair(*start, *end);
            self.pair(*exact, *statement);
            self.word(word_of(*function_range));
        }
        self.count(function_ranges.len());
        for FunctionRange { start, end, function, rank, entry } in function_ranges {
            let (last, Reverse(size), is_named, Reverse(offset)) = *rank;
            [*start, *end, last, size, offset as u64].into_iter().for_each(|word| self.word(word));
            self.pair(*function, u32::from(is_named));
            self.word(word_of(*entry));
        }
        self.count(frames.len());
        for InlineFrame { parent, name, file, line } in frames {
            [*parent, *name, *file, *line].into_iter().for_each(|id| self.word(word_of(id)));
        }
    }
}

/// An id as a word, plus one. 0 stands for no id.
fn word_of(id: Option<NonMaxU32>) -> u64 {
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

    fn id(&mut self) -> io::Result<Option<NonMaxU32>> {
        Ok(self.word()?.checked_sub(1).and_then(NonMaxU32::new))
    }

    fn unit(&mut self) -> io::Result<PendingUnit> {
        let order = self.pair()?.0;
        let (mut ranges, mut function_ranges, mut frames) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.word()? {
            let ((start, end), (exact, statement)) = (self.pair()?, self.pair()?);
            ranges.push(UnitRange { start, end, function_range: self.id()?, exact, statement });
        }
        for _ in 0..self.word()? {
            let (start, end, last, size) = (self.word()?, self.word()?, self.word()?, self.word()?);
            let offset = usize::try_from(self.word()?).unwrap_or(usize::MAX);
            let (function, is_named) = self.pair()?;
            let rank = (last, Reverse(size), is_named != 0, Reverse(offset));
            function_ranges.push(FunctionRange { start, end, function, rank, entry: self.id()? });
        }
        for _ in 0..self.word()? {
            let (parent, name, file, line) = (self.id()?, self.id()?, self.id()?, self.id()?);
            frames.push(InlineFrame { parent, name, file, line });
        }
        Ok(PendingUnit::of_parts(order, ranges, function_ranges, frames))
    }
}
