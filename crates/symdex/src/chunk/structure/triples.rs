//! The distinct (name, file, line)s of a chunk, and how their numbers are guessed.

use super::columns::split_columns;
use crate::format::unzigzag;
use crate::id32::Id32;

/// A distinct (name, file, line), by numbers of the chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Triple {
    pub(super) name: u32,
    pub(super) file: u32,
    pub(super) line: Option<Id32>,
}

/// What the numbers of the next triple are guessed from; the encoder and the decoder keep it alike.
#[derive(Default)]
pub(super) struct Guess {
    pub(super) name: u32,
    file: u32,
    /// For each name the file and line of its last triple.
    by_name: Vec<(u32, Option<i64>)>,
    /// For each file the last line.
    by_file: Vec<i64>,
}

impl Guess {
    /// The file that a triple of `name` most likely has.
    pub(super) fn file(&self, name: u32) -> u32 {
        self.by_name.get(name as usize).map_or(self.file, |(file, _)| *file)
    }

    /// The line that one of `name` and `file` is likely close to.
    pub(super) fn line(&self, name: u32, file: u32) -> i64 {
        let of_file = || self.by_file.get(file as usize).copied().unwrap_or(0);
        match self.by_name.get(name as usize) {
            Some((last_file, Some(line))) if *last_file == file => *line,
            _ => of_file(),
        }
    }

    /// Remembers a triple. Numbers are given out in order, so a new one is at most the length of its list.
    pub(super) fn learn(&mut self, name: u32, file: u32, line: Option<i64>) {
        (self.name, self.file) = (name, file);
        if self.by_file.len() <= file as usize {
            self.by_file.push(0);
        }
        if let (Some(slot), Some(line)) = (self.by_file.get_mut(file as usize), line) {
            *slot = line;
        }
        match self.by_name.get_mut(name as usize) {
            Some(slot) => *slot = (file, line),
            None => self.by_name.push((file, line)),
        }
    }
}

pub(super) fn decode_triples(columns: &[u8], len: usize, names: usize, files: usize) -> Option<Vec<Triple>> {
    let [mut name_column, mut file_column, mut line_column] = split_columns(columns, len)?;
    let mut triples = Vec::with_capacity(len);
    let (mut next_name, mut next_file) = (0u32, 0u32);
    let mut guess = Guess::default();
    for _ in 0..len {
        let name = match name_column.varint()?.checked_sub(1) {
            None => new_number(&mut next_name)?,
            Some(step) => stepped(guess.name, step, next_name)?,
        };
        let file = match file_column.varint()? {
            1 => new_number(&mut next_file)?,
            0 => stepped(guess.file(name), 0, next_file)?,
            step => stepped(guess.file(name), step - 1, next_file)?,
        };
        let line = match line_column.varint()?.checked_sub(1) {
            None => None,
            Some(step) => Some(guess.line(name, file).checked_add(unzigzag(step))?),
        };
        guess.learn(name, file, line);
        let line = match line {
            None => None,
            Some(line) => Some(Id32::new(u64::try_from(line).ok()?)?),
        };
        triples.push(Triple { name, file, line });
    }
    (next_name as usize == names && next_file as usize == files).then_some(triples)
}

/// The next number that was not given out yet.
pub(super) fn new_number(next: &mut u32) -> Option<u32> {
    let number = *next;
    *next = next.checked_add(1)?;
    Some(number)
}

/// The number `step` (with its sign folded) away from `from`, if it is below `end`.
pub(super) fn stepped(from: u32, step: u64, end: u32) -> Option<u32> {
    let number = i64::from(from).checked_add(unzigzag(step))?;
    u32::try_from(number).ok().filter(|number| *number < end)
}
