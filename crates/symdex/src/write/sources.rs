//! A chunk's source locations as symbols.

use super::bits::zigzag;
use super::symbol_stream::{SOURCES, SymbolStream};
use crate::packed::codes::{FILE, ID, LINE, NAME, NEW_LINE, OTHER_FILE, OTHER_LINE};

/// Appends the source locations of a chunk, each a name, a file and a line as they are stored, in groups of
/// 2^`group_bits`. `has_files` is false for the `symbol_table`, where they are names alone.
pub(super) fn append(stream: &mut SymbolStream, sources: &[[u32; 3]], group_bits: u8, has_files: bool) {
    let mut firsts = Firsts::of(sources);
    let mut expected = 0;
    let mut group = Group::default();
    for (number, (source, all)) in (0u32..).zip(sources.iter().zip(0usize..)) {
        if all % (1 << group_bits) == 0 {
            stream.number(SOURCES, expected.into());
            group = Group { first: number, ..Group::default() };
        }
        let first = firsts.next(number);
        let step = if first == number { 0 } else { delta(first, group.first) + 1 };
        stream.number(NAME + u8::from(group.known_name), step);
        let [name, file, line] = *source;
        if first == number {
            stream.number(ID, delta(name, expected));
            expected = name.saturating_add(1);
            if has_files {
                let step = if file == group.file { 0 } else { delta(file, group.file) + 1 };
                stream.number(FILE, step);
                let number = if step == 0 { delta(line, group.line) } else { line.into() };
                stream.number(NEW_LINE + u8::from(step != 0), number);
            }
            (group.file, group.line) = (file, line);
        } else if has_files {
            let before = group.last.filter(|_| first == group.first);
            let base = before.or_else(|| sources.get(first as usize).copied()).unwrap_or_default();
            let context = LINE + u8::from(before.is_none());
            match base {
                [_, same, base] if same == file => stream.number(context, delta(line, base) + 1),
                _ => {
                    stream.number(context, 0);
                    stream.number(OTHER_FILE, file.into());
                    stream.number(OTHER_LINE, line.into());
                }
            }
        }
        (group.first, group.known_name, group.last) = (first, step != 0, Some(*source));
    }
}

/// The values that the next source location of a group is relative to.
#[derive(Default)]
struct Group {
    /// The first source location with the name of the last one.
    first: u32,
    /// Whether an earlier source location has the name of the last one.
    known_name: bool,
    last: Option<[u32; 3]>,
    /// File and line of the last source location with a new name.
    file: u32,
    line: u32,
}

/// The folded difference of two numbers.
fn delta(number: u32, from: u32) -> u64 {
    zigzag(i64::from(number) - i64::from(from))
}

/// For each source location: the first one with the same name.
struct Firsts(Vec<u32>);

impl Firsts {
    fn of(sources: &[[u32; 3]]) -> Self {
        // An open-addressing table of names and of the first source location with each, plus one. At least half of it
        // is free. Names are counted up from 0, so no input can have many names of one hash.
        let mut slots = vec![(0u32, 0u32); (2 * sources.len()).next_power_of_two()];
        let mask = slots.len() - 1;
        let first = |([name, ..], number): (&[u32; 3], u32)| {
            let mut at = name.wrapping_mul(0x9e37_79b1) as usize;
            loop {
                match slots.get_mut(at & mask) {
                    Some((known, first)) if *first != 0 && known != name => at += 1,
                    Some((_, first)) if *first != 0 => break *first - 1,
                    Some(free) => {
                        *free = (*name, number + 1);
                        break number;
                    }
                    None => break number,
                }
            }
        };
        Self(sources.iter().zip(0..).map(first).collect())
    }

    fn next(&mut self, number: u32) -> u32 {
        self.0.get(number as usize).copied().unwrap_or(number)
    }
}
