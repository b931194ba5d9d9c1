//! The symbol table of an image, as functions with ranges.

mod alike;
pub(crate) mod elf;
mod functions;
pub(crate) mod macho;
pub(crate) mod plt;
pub(crate) mod stubs;

use symdex::write::MAX_STRING;

use crate::error::Error;

pub use self::functions::{FunctionSymbol, FunctionSymbols};

/// The start of a function. The order is total: by address, then by rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Start<'d> {
    /// As an image offset.
    pub(crate) start: u64,
    /// The name with the lowest rank becomes the function's name, the others its aliases. Of equal ranks, the smaller
    /// name.
    pub(crate) rank: u8,
    pub(crate) name: Option<&'d [u8]>,
    pub(crate) inside: Inside,
    /// The end of its range, exclusive, if it is stated.
    pub(crate) end: Option<u64>,
}

/// What a start without an end is inside of a symbol whose end is stated, and what may begin inside of the start
/// itself, if its end is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Inside {
    /// It begins a function inside of a symbol that is no function. Nothing begins inside of it.
    Function,
    /// It begins a function inside of a symbol that is no function.
    Global,
    /// It begins none.
    Label,
}

impl Start<'_> {
    /// A start without a name, which ranks last.
    pub(crate) fn nameless(start: u64) -> Self {
        Self { start, rank: u8::MAX, name: None, inside: Inside::Label, end: None }
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
        let starts =
            both.map(|(name, rank)| Start { name: Some(name), rank, ..Start::nameless(16) }).collect();
        let functions = FunctionSymbols::new(starts, &[(0, 64)]);
        assert_eq!(functions.len(), 1);
        let function = functions.get(0).expect("there is one");
        assert!(function.name.into_iter().chain(function.aliases()).eq(&names));
    }
}
