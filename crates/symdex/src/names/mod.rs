//! The names of an image: a grammar that any of them is read from by itself, without anything to prepare.
//!
//! ```text
//! varint    rules, how many there are
//! varint    symbols of all names together
//! u8        w, the bits of a symbol, 1 to 28
//! u8        the length of the longest terminal, 0 to 64
//! varints   how many terminals have one byte, two bytes, ...
//! groups    12 bytes for every 16 names, see below
//! rules     2 x w bits each: the two symbols it stands for, the left one first
//! symbols   w bits each: those of the names, one name behind the other
//! texts     the terminals' bytes
//! ```
//!
//! Symbols are numbered: terminals from 0, shorter ones first, and then rules, each of which stands for two symbols of smaller
//! numbers. A name is the bytes that its symbols expand to. Bits are counted from the lowest of each byte; rules, symbols and texts begin with
//! a byte of their own.
//!
//! ```text
//! 0  4  which of the symbols is the first of the group's first name (u32)
//! 4  8  how many symbols each of the 16 names has, 4 bits each, the first in the lowest bits (u64)
//! ```
//!
//! All of this is cut into pages of 1 kB, whose checksums are the names' part of the directory (u64 each).

mod distinct;
mod expand;
mod grammar;
mod layout;
mod lex;
mod memo;
mod pages;
mod rounds;

pub(crate) use expand::NameReader;
pub(crate) use layout::{GROUP_LEN, Layout};
pub(crate) use memo::Memo;
pub(crate) use pages::{PageChecks, PageReader, PageSums, pages_size};

use crate::error::Error;

/// The section of `names`.
pub(crate) fn encode_names<S: AsRef<[u8]>>(names: &[S]) -> Result<Vec<u8>, Error> {
    layout::encode(&grammar::Grammar::of(names))
}

#[cfg(test)]
mod tests;
