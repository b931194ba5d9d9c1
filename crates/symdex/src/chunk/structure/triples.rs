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

/// What was last said of a name: the file and, stored as [`Id32`] stores it, the line of its last triple.
#[derive(Clone, Copy, Default)]
struct Last {
    file: u32,
    line: u32,
}

/// The `len` triples of these columns, of `names` names and `files` files; `None` where the bytes are damaged.
pub(super) fn decode_triples(columns: &[u8], len: usize, names: usize, files: usize) -> Option<Vec<Triple>> {
    let [name_column, file_column, line_column] = decode_columns(columns, len)?;
    let mut triples = Vec::with_capacity(name_column.len());
    let (mut next_name, mut next_file) = (0u32, 0u32);
    let (mut last_name, mut last_file) = (0u32, 0u32);
    let mut by_name = vec![Last::default(); names];
    let mut by_file = vec![0u32; files];
    let columns = name_column.iter().zip(&file_column).zip(&line_column);
    for ((&name_step, &file_step), &line_step) in columns {
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
        triples.push(Triple { name, file, line: Id32::from_stored(line) });
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
