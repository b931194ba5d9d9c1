//! The symbol table of an image, as functions with ranges.

pub(crate) mod elf;
pub(crate) mod macho;
pub(crate) mod plt;
pub(crate) mod stubs;

use std::collections::HashSet;

use symdex::write::MAX_STRING;

use crate::error::Error;

/// A function as the symbol table has it.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionSymbol<'d> {
    /// The image offset of its first byte.
    pub start: u64,
    /// The end of its range, exclusive, as an image offset.
    pub end: u64,
    /// Its name, in Mach-O without the leading `_`. `None` if only `LC_FUNCTION_STARTS` or unwind information has the
    /// function.
    pub name: Option<&'d [u8]>,
    /// Its other names, each once, by rank.
    pub aliases: Vec<&'d [u8]>,
}

impl<'d> FunctionSymbol<'d> {
    /// Its name, if it has only one.
    pub(crate) fn only_name(&self) -> Option<&'d [u8]> {
        self.name.filter(|_| self.aliases.is_empty())
    }
}

/// The start of a function. The order is total: by address, then by rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Start<'d> {
    /// As an image offset.
    pub(crate) start: u64,
    /// The name with the lowest rank becomes the function's name, the others its aliases. Of equal ranks, the smaller
    /// name.
    pub(crate) rank: u8,
    pub(crate) name: Option<&'d [u8]>,
    /// The end of its range, exclusive, if it is stated.
    pub(crate) end: Option<u64>,
}

impl Start<'_> {
    /// A start without a name, which ranks last.
    pub(crate) fn nameless(start: u64) -> Self {
        Self { start, rank: u8::MAX, name: None, end: None }
    }
}

/// Subtracts the size of `name` from the `left` bytes that all names of a table may have. Names may overlap, so a
/// small hostile file could have any amount of them.
fn take_name(left: &mut usize, name: &[u8]) -> Result<(), Error> {
    let rest = left.checked_sub(name.len());
    let what = || "the symbol table: its names overlap too much".to_owned();
    *left = rest.ok_or_else(|| Error::Malformed { what: what() })?;
    Ok(())
}

/// The functions that begin at `starts` in `executable` sections, sorted. No two start at the same address.
///
/// A function without a stated end reaches to the next start or to the end of its section. A start without an end,
/// inside a function whose end a symbol states, is a label and begins no function.
pub(crate) fn functions<'d>(
    starts: &mut Vec<Start<'d>>,
    executable: &[(u64, u64)],
) -> Vec<FunctionSymbol<'d>> {
    starts.sort_unstable();
    starts.dedup();
    let mut functions: Vec<FunctionSymbol<'d>> = Vec::new();
    // The greatest end so far that a symbol states, and that unwind information states.
    let (mut named_end, mut unwind_end) = (0, 0);
    let mut groups = starts.chunk_by(|a, b| a.start == b.start).peekable();
    while let Some(group) = groups.next() {
        let start = group[0].start;
        let after = executable.partition_point(|section| section.0 <= start);
        let section = after.checked_sub(1).map(|index| executable[index]);
        let Some((_, section_end)) = section.filter(|section| start < section.1) else { continue };
        let stated = |named: bool| {
            let ends =
                group.iter().filter(|start| start.name.is_some() == named).filter_map(|start| start.end);
            ends.filter(|end| *end > start).max().map(|end| end.min(section_end))
        };
        let next = groups.peek().map_or(section_end, |next| next[0].start);
        unwind_end = stated(false).unwrap_or(0).max(unwind_end);
        let end = match stated(true) {
            Some(end) => {
                named_end = named_end.max(end);
                end
            }
            None if start < named_end => continue,
            // The bytes after the end that unwind information states are padding.
            None if start < unwind_end => unwind_end.min(next),
            None => next,
        };
        let mut names = group.iter().filter_map(|start| start.name);
        let name = names.next();
        // Most have one name, so the set stays empty.
        let mut seen = HashSet::new();
        let aliases = names.filter(|other| Some(*other) != name && seen.insert(*other)).collect();
        functions.push(FunctionSymbol { start, end: end.min(section_end), name, aliases });
    }
    functions
}

/// The name at `offset`. Returns `None` if it has no end. A name that is longer than an index may hold is truncated,
/// because in a hostile file every symbol may have the same gigabyte as its name.
pub(crate) fn name_at(strings: &[u8], offset: usize) -> Option<&[u8]> {
    const TOO_LONG: usize = MAX_STRING + 2;
    let rest = strings.get(offset..)?;
    let rest = &rest[..rest.len().min(TOO_LONG)];
    match memchr::memchr(0, rest) {
        Some(size) => Some(&rest[..size]),
        None => Some(rest).filter(|rest| rest.len() == TOO_LONG),
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use rustc_hash::FxBuildHasher;

    use super::*;

    #[test]
    fn names_made_to_collide_are_aliases_in_their_order() {
        // The first 8 bytes make one factor of the product in `FxBuildHasher` 0.
        let first = 0x243f_6a88_85a3_08d3_u64.to_le_bytes();
        let mut names = Vec::new();
        for number in 0..2000 {
            names.push([&first[..], format!("{number:08x}").as_bytes()].concat());
        }
        let hash = |name: &Vec<u8>| FxBuildHasher.hash_one(&name[..]);
        assert!(names.iter().all(|name| hash(name) == hash(&names[0])), "they collide without a key");
        let both = names.iter().rev().map(|name| (name, 0)).chain(names.iter().map(|name| (name, 1)));
        let mut starts: Vec<_> =
            both.map(|(name, rank)| Start { name: Some(name), rank, ..Start::nameless(16) }).collect();
        let functions = functions(&mut starts, &[(0, 64)]);
        let [function] = &functions[..] else { panic!("{} functions", functions.len()) };
        assert!(function.name.into_iter().chain(function.aliases.iter().copied()).eq(&names));
    }
}
