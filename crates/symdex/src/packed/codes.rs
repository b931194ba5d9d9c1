//! Prefix codes: a symbol takes the fewer bits the more often it occurs in its context.
//!
//! A number is a symbol and bits that follow it. A number below 128 is its own symbol. Two symbols stand for the numbers of each larger
//! count of bits, one for each value of the second highest bit; the rest of the bits follows.

use super::contexts::CONTEXTS;
use crate::error::Error;
use crate::format::{BitReader, Cursor, Metadata, PageReader, Rows, Table};

/// Numbers below this are symbols themselves.
const LITERALS: u32 = 128;
const LITERAL_BITS: u32 = LITERALS.trailing_zeros();
/// Numbers have fewer bits than this, so that one read gives a code word and the bits that follow.
pub(crate) const NUMBER_BITS: u32 = 48;
/// One more than the largest symbol.
const SYMBOLS: u32 = LITERALS + 2 * (NUMBER_BITS - LITERAL_BITS);
/// The longest code word.
pub(crate) const MAX_LEN: u32 = 9;
/// The most bytes of the codes of all contexts.
const MAX_SIZE: usize = CONTEXTS * (1 + MAX_LEN as usize + 256);

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

/// The codes of all contexts as tables, and where the index says that each chunk begins.
pub(crate) struct Codes {
    /// For each context, for each value of the next [`MAX_LEN`] bits: the symbol whose code word they begin with, times 16, plus the
    /// length of the word.
    table: Vec<u16>,
    /// The rows of [`Self::place`].
    places: Rows<1>,
    chunks: u64,
}

/// The entry for bits that no code word begins with.
const UNUSED: u16 = u16::MAX;

impl Codes {
    /// The codes in the section that `pages` reads.
    pub(crate) fn decode(pages: &PageReader<'_>, metadata: &Metadata) -> Result<Self, Error> {
        let malformed = |what| pages.malformed(0, what);
        let size = pages.bytes(0..2)?.first_chunk().map_or(0, |size| usize::from(u16::from_le_bytes(*size)));
        if size > MAX_SIZE {
            return Err(malformed("its codes are larger than the format allows"));
        }
        let codes = pages.bytes(2..size + 3)?;
        let (width, codes) = codes.split_last().ok_or_else(|| malformed("it has no codes"))?;
        let table = tables(codes).ok_or_else(|| malformed("a code is invalid"))?;
        let places = Rows { at: size + 3, widths: [*width] };
        let chunks = Table::ALL.iter().map(|table| metadata.chunk_len(*table)).sum();
        let rows =
            usize::try_from(chunks).ok().and_then(|chunks| Rows::size([*width], chunks.checked_add(1)?));
        if rows.and_then(|rows| rows.checked_add(places.at)) != Some(pages.section.len()) {
            return Err(malformed("it has no place for each chunk"));
        }
        Ok(Self { table, places, chunks })
    }

    /// Where chunk `number` of all chunks of the index begins, and where it ends, in bytes from the start of the section of chunks.
    pub(crate) fn place(&self, pages: &PageReader<'_>, number: u64) -> Result<[usize; 2], Error> {
        if number >= self.chunks {
            return Err(pages.malformed(self.places.at, "no such chunk"));
        }
        // There are no more rows than bits.
        let row = usize::try_from(number).unwrap_or(usize::MAX);
        let ([start], [end]) = (self.places.get(pages, row)?, self.places.get(pages, row + 1)?);
        Ok([start, end].map(|place| usize::try_from(place).unwrap_or(usize::MAX)))
    }

    /// How many chunks have a place.
    pub(crate) fn chunks(&self) -> u64 {
        self.chunks
    }

    /// The next number of `context`; `None` for bits that no code word begins with.
    #[inline(always)]
    pub(crate) fn number(&self, reader: &mut BitReader<'_>, context: u8) -> Option<u64> {
        let bits = reader.peek();
        let at =
            usize::from(context) << MAX_LEN | usize::try_from(bits >> (64 - MAX_LEN)).unwrap_or_default();
        let entry = u32::from(*self.table.get(at)?);
        let (symbol, len) = (entry >> 4, entry & 0xf);
        match symbol.checked_sub(LITERALS) {
            None => {
                reader.skip(len);
                Some(symbol.into())
            }
            Some(above) => {
                let follow = above / 2 + LITERAL_BITS - 1;
                if follow > NUMBER_BITS {
                    return None;
                }
                reader.skip(len + follow);
                Some(u64::from(2 | above & 1) << follow | bits << len >> (64 - follow))
            }
        }
    }
}

/// The tables of the codes in `bytes`; `None` where one is invalid or bytes are left.
fn tables(bytes: &[u8]) -> Option<Vec<u16>> {
    let mut table = vec![UNUSED; CONTEXTS << MAX_LEN];
    let mut cursor = Cursor::new(bytes);
    for entries in table.chunks_exact_mut(1 << MAX_LEN) {
        let [symbols] = cursor.array()?;
        match symbols {
            0 => {}
            1 => {
                let [symbol] = cursor.array().filter(|[symbol]| u32::from(*symbol) < SYMBOLS)?;
                entries.fill(u16::from(symbol) << 4);
            }
            _ => {
                let counts: [u8; MAX_LEN as usize] = cursor.array()?;
                let mut symbols = cursor.bytes(symbols.into())?;
                if symbols.iter().any(|symbol| u32::from(*symbol) >= SYMBOLS) {
                    return None;
                }
                let mut free = entries;
                for (len, count) in (1u16..).zip(counts) {
                    let (own, longer) = symbols.split_at_checked(count.into())?;
                    let size = 1 << (MAX_LEN as usize - usize::from(len));
                    let (words, rest) = free.split_at_mut_checked(own.len() * size)?;
                    // Most symbols have long words.
                    match size {
                        1 => fill::<1>(words, own, len),
                        2 => fill::<2>(words, own, len),
                        4 => fill::<4>(words, own, len),
                        8 => fill::<8>(words, own, len),
                        _ => {
                            let words = words.chunks_exact_mut(size).zip(own);
                            words.for_each(|(words, symbol)| words.fill(u16::from(*symbol) << 4 | len));
                        }
                    }
                    (free, symbols) = (rest, longer);
                }
                if !free.is_empty() || !symbols.is_empty() {
                    return None;
                }
            }
        }
    }
    cursor.is_empty().then_some(table)
}

/// Fills the entries of symbols whose words have `len` bits, `N` entries each.
fn fill<const N: usize>(words: &mut [u16], symbols: &[u8], len: u16) {
    let (words, _) = words.as_chunks_mut();
    words.iter_mut().zip(symbols).for_each(|(words, symbol)| *words = [u16::from(*symbol) << 4 | len; N]);
}
