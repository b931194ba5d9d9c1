//! The symbols of a chunk, before they are encoded. Code words are known only after the symbols of all chunks are
//! counted.
//!
//! An item has two bytes: a symbol and its context. The bits of the number follow the symbol, in as few pairs
//! of bytes as hold them, the highest bits first. A mark is an item whose context is above all contexts.

use super::bits::BitWriter;
use super::huffman::{Counts, Encoder, place};
use crate::packed::codes::{CONTEXTS, LITERAL_BITS, LITERALS};

/// A symbol, and its context.
pub(crate) type StreamItem = [u8; 2];

/// The bits that a pair of bytes holds.
const PAIR: u32 = 16;

// Marks begin a part of a chunk. The number of a mark goes into the chunk's rows.
/// A block: where it starts, in bytes from the chunk's start.
pub(crate) const BLOCK: u8 = 253;
/// Follows [`BLOCK`]: the first source location that no earlier block of the chunk uses.
pub(crate) const FIRST_SOURCE: u8 = 254;
/// A group of source locations: the stored id that the id of its first new name is relative to.
pub(crate) const SOURCES: u8 = 255;
const _: () = assert!(CONTEXTS <= BLOCK as usize);

/// Symbols and marks in the order in which a chunk has them.
#[derive(Default)]
pub(crate) struct SymbolStream(pub(crate) Vec<StreamItem>);

impl SymbolStream {
    /// Appends a number of `context`, or a mark and its number.
    #[inline]
    pub(crate) fn number(&mut self, context: u8, number: u64) {
        match u8::try_from(number) {
            Ok(symbol) if follow(symbol) == 0 => self.0.push([symbol, context]),
            _ => self.wide(context, number),
        }
    }

    /// Appends a number that has bits after its symbol.
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
    pub(crate) fn count(&self, counts: &mut Counts) {
        let mut rest = self.0.iter();
        while let Some(item) = rest.next() {
            let place = place(*item);
            counts.add(place);
            let [symbol, ..] = place.to_le_bytes();
            if let Some(others) = follow(symbol).div_ceil(PAIR).checked_sub(1) {
                rest.nth(others as usize);
            }
        }
    }
}

/// Reads what [`SymbolStream`] wrote.
pub(crate) struct SymbolReader<'a>(std::slice::Iter<'a, StreamItem>);

impl<'a> SymbolReader<'a> {
    pub(crate) fn new(stream: &'a [StreamItem]) -> Self {
        Self(stream.iter())
    }

    /// The next mark and its number.
    pub(crate) fn mark(&mut self) -> Option<(u8, u64)> {
        let [symbol, mark] = *self.0.next()?;
        let pairs = self.0.by_ref().take(follow(symbol).div_ceil(PAIR) as usize);
        let bits = pairs.fold(0, |bits, pair| bits << PAIR | u64::from(u16::from_le_bytes(*pair)));
        Some((mark, number(symbol, bits)))
    }

    /// Appends the symbols up to the next mark to `out`.
    pub(crate) fn put(&mut self, encoder: &Encoder, out: &mut BitWriter) {
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

/// The number that a symbol and the bits after it stand for.
fn number(symbol: u8, bits: u64) -> u64 {
    match follow(symbol) {
        0 => symbol.into(),
        follow => u64::from(2 | symbol & 1) << follow | bits,
    }
}

/// The symbol of `number`, the bits that follow it, and how many those are.
#[inline]
pub(crate) fn symbol(number: u64) -> (u8, u64, u32) {
    if number < LITERALS.into() {
        return (number.to_le_bytes()[0], 0, 0);
    }
    let follow = 62 - number.leading_zeros();
    let high = (number >> follow) & 1 != 0;
    let symbol = LITERALS + 2 * (follow + 1 - LITERAL_BITS) + u32::from(high);
    (symbol.to_le_bytes()[0], number & ((1 << follow) - 1), follow)
}

/// How many bits follow `symbol`.
#[inline]
pub(crate) fn follow(symbol: u8) -> u32 {
    u32::from(symbol).checked_sub(LITERALS).map_or(0, |above| above / 2 + LITERAL_BITS - 1)
}
