//! A chunk between being taken apart and being written: symbols whose code words are not known before all chunks are there.
//!
//! Two bytes are a symbol and its context; the bits that follow its code word, where it has any, stand behind it, in as few pairs of bytes as
//! hold them, the highest ones first. A mark looks the same, and has a context that is none.

use super::bits::BitWriter;
use super::codes::{self, Counts, Encoder, follow, place, symbol};
use super::contexts::CONTEXTS;

/// A symbol, and its context.
pub(super) type Token = [u8; 2];

/// The bits that a pair of bytes holds.
const PAIR: u32 = 16;

// The marks: a part of a chunk begins. Their numbers are what is said of it in the chunk's tables.
/// A group of runs: bytes from the chunk's start.
pub(super) const RUN_GROUP: u8 = 249;
/// Stands behind [`RUN_GROUP`]: the first triple that no run before it uses.
pub(super) const FIRST_TRIPLE: u8 = 250;
/// The body of the run that follows.
pub(super) const BODY: u8 = 251;
/// A run.
pub(super) const RUN: u8 = 252;
/// A group of triples: the next number that no name has.
pub(super) const TRIPLES: u8 = 253;
/// A group of names: one more than the id of the name before, as it is stored.
pub(super) const NAMES: u8 = 254;
/// A group of origins.
pub(super) const ORIGINS: u8 = 255;
const _: () = assert!(CONTEXTS <= RUN_GROUP as usize);

/// Symbols and marks in the order in which a chunk has them.
#[derive(Default)]
pub(super) struct Tokens(pub(super) Vec<Token>);

impl Tokens {
    /// Appends a number of `context`, or a mark and its number.
    #[inline]
    pub(super) fn number(&mut self, context: u8, number: u64) {
        match u8::try_from(number) {
            Ok(symbol) if follow(symbol) == 0 => self.0.push([symbol, context]),
            _ => self.wide(context, number),
        }
    }

    /// Appends a number whose symbol does not say all of it.
    #[inline(never)]
    fn wide(&mut self, context: u8, number: u64) {
        let (symbol, bits, follow) = symbol(number);
        self.0.push([symbol, context]);
        for pair in (0..follow.div_ceil(PAIR)).rev() {
            let [low, high, ..] = (bits >> (PAIR * pair)).to_le_bytes();
            self.0.push([low, high]);
        }
    }

    /// Adds the symbols to `counts`.
    pub(super) fn count(&self, counts: &mut Counts) {
        let mut rest = self.0.iter();
        while let Some(token) = rest.next() {
            let place = place(*token);
            counts.add(place);
            let [symbol, ..] = place.to_le_bytes();
            if let Some(others) = follow(symbol).div_ceil(PAIR).checked_sub(1) {
                rest.nth(others as usize);
            }
        }
    }
}

/// Reads what [`Tokens`] wrote.
pub(super) struct TokenReader<'a>(std::slice::Iter<'a, Token>);

impl<'a> TokenReader<'a> {
    pub(super) fn new(tokens: &'a [Token]) -> Self {
        Self(tokens.iter())
    }

    /// The mark that is next, and its number.
    pub(super) fn mark(&mut self) -> Option<(u8, u64)> {
        let [symbol, mark] = *self.0.next()?;
        let pairs = self.0.by_ref().take(follow(symbol).div_ceil(PAIR) as usize);
        let bits = pairs.fold(0, |bits, pair| bits << PAIR | u64::from(u16::from_le_bytes(*pair)));
        Some((mark, codes::number(symbol, bits)))
    }

    /// Appends the symbols up to the next mark to `out`.
    pub(super) fn put(&mut self, encoder: &Encoder, out: &mut BitWriter) {
        let (mut rest, mut follow) = (self.0.clone(), 0);
        out.extend(std::iter::from_fn(|| {
            if follow != 0 {
                let pair = u16::from_le_bytes(*rest.next()?);
                let count = (follow - 1) % PAIR + 1;
                follow -= count;
                return Some((pair.into(), count));
            }
            let word = encoder.word(*rest.as_slice().first()?)?;
            rest.next();
            follow = word.follow.into();
            Some((word.bits.into(), word.len.into()))
        }));
        self.0 = rest;
    }
}
