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
    by_name: Vec<(u32, Option<Id32>)>,
    /// For each file the last line.
    by_file: Vec<u32>,
}

impl Guess {
    fn with_room(names: usize, files: usize) -> Self {
        Self { by_name: Vec::with_capacity(names), by_file: Vec::with_capacity(files), ..Self::default() }
    }

    /// The file that a triple of `name` most likely has.
    #[inline]
    pub(super) fn file(&self, name: u32) -> u32 {
        self.by_name.get(name as usize).map_or(self.file, |(file, _)| *file)
    }

    /// The line that one of `name` and `file` is likely close to.
    #[inline]
    pub(super) fn line(&self, name: u32, file: u32) -> i64 {
        let line = match self.by_name.get(name as usize) {
            Some((last_file, Some(line))) if *last_file == file => line.get(),
            _ => self.by_file.get(file as usize).copied().unwrap_or(0),
        };
        i64::from(line)
    }

    /// Remembers a triple. Numbers are given out in order, so a new one is at most the length of its list.
    #[inline]
    pub(super) fn learn(&mut self, name: u32, file: u32, line: Option<Id32>) {
        (self.name, self.file) = (name, file);
        if self.by_file.len() <= file as usize {
            self.by_file.push(0);
        }
        if let (Some(slot), Some(line)) = (self.by_file.get_mut(file as usize), line) {
            *slot = line.get();
        }
        match self.by_name.get_mut(name as usize) {
            Some(slot) => *slot = (file, line),
            None => self.by_name.push((file, line)),
        }
    }
}

/// The triples of a chunk. Caches hold those of every chunk they hold, and nearly all fit half the bytes.
#[derive(Debug)]
pub(super) enum Triples {
    Narrow(Vec<Narrow>),
    Wide(Vec<Triple>),
}

/// A triple of a name below 2^16, a file below 2^8 and a line below 2^24 - 1, in six bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow {
    name: u16,
    /// The file in the low byte, above it the line plus one, or 0 for no line; low half first.
    file_and_line: [u16; 2],
}

impl Narrow {
    fn new(triple: Triple) -> Option<Self> {
        let line = triple.line.map_or(0, |line| u64::from(line.get()) + 1);
        let file_and_line = u32::try_from(line << 8 | u64::from(u8::try_from(triple.file).ok()?)).ok()?;
        let [a, b, c, d] = file_and_line.to_le_bytes();
        let file_and_line = [u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])];
        Some(Self { name: u16::try_from(triple.name).ok()?, file_and_line })
    }

    fn triple(self) -> Triple {
        let [low, high] = self.file_and_line.map(u32::from);
        let line = (high << 8 | low >> 8).checked_sub(1);
        Triple {
            name: u32::from(self.name),
            file: low & 0xff,
            line: line.and_then(|line| Id32::new(u64::from(line))),
        }
    }
}

impl Triples {
    /// The `len` triples of these columns, of `names` names and `files` files; `None` where the bytes are damaged.
    pub(super) fn decode(columns: &[u8], len: usize, names: usize, files: usize) -> Option<Self> {
        let mut narrow = Vec::with_capacity(len);
        let push = |triple| Narrow::new(triple).map(|triple| narrow.push(triple));
        if read(columns, len, names, files, push).is_some() {
            return Some(Self::Narrow(narrow));
        }
        let mut wide = Vec::with_capacity(len);
        let push = |triple| {
            wide.push(triple);
            Some(())
        };
        read(columns, len, names, files, push).map(|()| Self::Wide(wide))
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<Triple> {
        match self {
            Self::Narrow(triples) => triples.get(number as usize).map(|triple| triple.triple()),
            Self::Wide(triples) => triples.get(number as usize).copied(),
        }
    }

    /// Bytes of memory the triples take.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Narrow(triples) => size_of_val(triples.as_slice()),
            Self::Wide(triples) => size_of_val(triples.as_slice()),
        }
    }
}

/// Gives `push` every triple of the columns; `None` where the bytes are damaged or `push` says so.
fn read(
    columns: &[u8],
    len: usize,
    names: usize,
    files: usize,
    mut push: impl FnMut(Triple) -> Option<()>,
) -> Option<()> {
    let [mut name_column, mut file_column, mut line_column] = split_columns(columns, len)?;
    let (mut next_name, mut next_file) = (0u32, 0u32);
    let mut guess = Guess::with_room(names, files);
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
            Some(step) => {
                let line = guess.line(name, file).checked_add(unzigzag(step))?;
                Some(Id32::new(u64::try_from(line).ok()?)?)
            }
        };
        guess.learn(name, file, line);
        push(Triple { name, file, line })?;
    }
    (next_name as usize == names && next_file as usize == files).then_some(())
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
