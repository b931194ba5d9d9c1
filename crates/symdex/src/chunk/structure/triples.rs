//! The distinct (name, file, line)s of a chunk, and how their numbers are guessed.

use super::columns::decode_columns;
use crate::format::unzigzag;
use crate::id32::Id32;

/// A distinct (name, file, line), by numbers of the chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Triple {
    pub(super) name: u32,
    pub(super) file: u32,
    pub(super) line: Option<Id32>,
}

/// The triples of a chunk. Caches hold those of every chunk they hold, and nearly all fit half the bytes.
#[derive(Debug)]
pub(super) enum Triples {
    Narrow(Vec<Narrow>),
    Wide(Vec<Triple>),
}

/// A triple of a name below 2^16, a file below 2^8 and a line below 2^24 - 1, in six bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Narrow {
    name: u16,
    /// The file in the low byte, above it the line plus one, or 0 for no line; low half first.
    file_and_line: [u16; 2],
}

impl Narrow {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "checked together")]
    fn new(triple: Triple) -> Option<Self> {
        let line = Id32::stored(triple.line);
        let fits = triple.name >> 16 == 0 && triple.file >> 8 == 0 && line >> 24 == 0;
        let low = (line << 8 | triple.file) as u16;
        fits.then_some(Self { name: triple.name as u16, file_and_line: [low, (line >> 8) as u16] })
    }

    #[inline]
    fn triple(self) -> Triple {
        let [low, high] = self.file_and_line.map(u32::from);
        Triple { name: u32::from(self.name), file: low & 0xff, line: Id32::from_stored(high << 8 | low >> 8) }
    }
}

impl Triples {
    /// The `len` triples of these columns, of `names` names and `files` files; `None` where the bytes are damaged.
    pub(super) fn decode(columns: &[u8], len: usize, names: usize, files: usize) -> Option<Self> {
        let narrow = || read(columns, len, names, files, Narrow::new).map(Self::Narrow);
        narrow().or_else(|| read(columns, len, names, files, Some).map(Self::Wide))
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

/// What was last said of a name: the file and, stored as [`Id32`] stores it, the line of its last triple.
#[derive(Clone, Copy, Default)]
struct Last {
    file: u32,
    line: u32,
}

/// The triples of the columns, each made by `make`; `None` where the bytes are damaged or `make` says so.
///
/// This is a fifth of a cold lookup, so it looks up each name and each file once and checks what the columns say by that alone.
fn read<T: Clone + Default>(
    columns: &[u8],
    len: usize,
    names: usize,
    files: usize,
    make: impl Fn(Triple) -> Option<T>,
) -> Option<Vec<T>> {
    let [name_column, file_column, line_column] = decode_columns(columns, len)?;
    let mut triples = vec![T::default(); name_column.len()];
    let (mut next_name, mut next_file) = (0u32, 0u32);
    let (mut last_name, mut last_file) = (0u32, 0u32);
    let mut by_name = vec![Last::default(); names];
    let mut by_file = vec![0u32; files];
    let columns = name_column.iter().zip(&file_column).zip(&line_column);
    for (triple, ((&name_step, &file_step), &line_step)) in triples.iter_mut().zip(columns) {
        let name = if name_step == 0 { new_number(&mut next_name)? } else { moved(last_name, name_step - 1) };
        let of_name = by_name.get_mut(name as usize)?;
        let guess = if name_step == 0 { last_file } else { of_name.file };
        let file = match file_step {
            0 => guess,
            1 => new_number(&mut next_file)?,
            step => moved(guess, step - 1),
        };
        let of_file = by_file.get_mut(file as usize)?;
        let mut line = 0;
        if line_step != 0 {
            let guess = if of_name.line != 0 && of_name.file == file { of_name.line - 1 } else { *of_file };
            let wanted = i64::from(guess).wrapping_add(unzigzag(line_step - 1));
            *of_file = u32::try_from(wanted).ok()?;
            line = of_file.checked_add(1)?;
        }
        *of_name = Last { file, line };
        (last_name, last_file) = (name, file);
        *triple = make(Triple { name, file, line: Id32::from_stored(line) })?;
    }
    (next_name as usize == names && next_file as usize == files).then_some(triples)
}

/// The next number that was not given out yet.
pub(super) fn new_number(next: &mut u32) -> Option<u32> {
    let number = *next;
    *next = next.checked_add(1)?;
    Some(number)
}

/// The number `step` (with its sign folded) away from `from`. What leaves 32 bits below comes back at the top, where no number is.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a step of more than 32 bits goes anywhere, which callers check"
)]
pub(super) fn moved(from: u32, step: u64) -> u32 {
    from.wrapping_add(unzigzag(step) as u32)
}
