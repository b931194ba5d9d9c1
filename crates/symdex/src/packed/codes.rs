//! Prefix codes, and the contexts of numbers. A context is the kind of a number and, for some kinds, what was written
//! before it. Each context has its own code, in which frequent symbols take fewer bits.
//!
//! A number is written as a symbol and the bits that follow it. A number below 128 is its own symbol, without bits. The
//! symbol of a larger number states how many bits the number has, and its second highest bit. The lower bits follow.

use super::MAX_GROUP_BITS;
use crate::error::Error;
use crate::format::{BitReader, Cursor, Metadata, PageReader, Rows, Table};
use crate::names::low_half;

/// How many contexts there are.
pub(crate) const CONTEXTS: usize = OTHER_LINE as usize + 1;

/// Bytes of a gap.
pub(crate) const GAP: u8 = 0;
/// Where the function of the next ranges starts. Two contexts: at the start of a block, and later in it.
pub(crate) const FUNCTION: u8 = 1;
/// The part of a head that does not fit an answer's code.
pub(crate) const MORE_HEAD: u8 = 3;
/// Bytes of a range; see [`length_context`].
const LENGTH: u8 = 4;
const LENGTHS: u8 = 4;
/// An answer's code; see [`answer_context`].
const ANSWER: u8 = LENGTH + LENGTHS;
const ANSWERS: u8 = 12;
/// The source location of an inline frame; see [`source_context`].
const SOURCE: u8 = ANSWER + ANSWERS;
/// The name of a source location. Two contexts: at the start of a group and after a source location with a new name,
/// and after one with a known name.
pub(crate) const NAME: u8 = SOURCE + 5;
/// The id of a new name.
pub(crate) const ID: u8 = NAME + 2;
/// The file of a source location with a new name.
pub(crate) const FILE: u8 = ID + 1;
/// The line of a source location with a new name. Two contexts: in the file of the new name before, and in another
/// file.
pub(crate) const NEW_LINE: u8 = FILE + 1;
/// The line of a source location with a known name. Two contexts: if the source location before has the same name, and
/// if it has another name.
pub(crate) const LINE: u8 = NEW_LINE + 2;
/// File and line of a source location with a known name, in another file.
pub(crate) const OTHER_FILE: u8 = LINE + 2;
pub(crate) const OTHER_LINE: u8 = OTHER_FILE + 1;

/// The context of the length of a range. `defines` is how many inline frames the range's last answer defines.
#[inline]
pub(crate) fn length_context(defines: u64) -> u8 {
    LENGTH + least(defines, LENGTHS - 1)
}

/// The context of an answer's code. `last` is the code before it.
#[inline]
pub(crate) fn answer_context(last: u64) -> u8 {
    ANSWER + least(last, ANSWERS - 1)
}

/// The callers that an inline frame can have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    None = 0,
    /// A caller that an earlier inline frame of the block has, too.
    Again = 1,
    New = 2,
}

/// The context of the source location of an inline frame. `last` is the number of the inline frame before, if the same
/// answer defines it.
#[inline]
pub(crate) fn source_context(last: Option<u64>, caller: Caller) -> u8 {
    SOURCE
        + match last {
            None => caller as u8,
            Some(0) => 3,
            Some(_) => 4,
        }
}

#[inline]
fn least(number: u64, most: u8) -> u8 {
    number.min(most.into()).to_le_bytes()[0]
}

/// Numbers below this are their own symbols.
pub(crate) const LITERALS: u32 = 128;
pub(crate) const LITERAL_BITS: u32 = LITERALS.trailing_zeros();
/// Numbers have fewer bits than this, so that one read gives a code word and the bits that follow.
pub(crate) const NUMBER_BITS: u32 = 48;
/// One more than the largest symbol.
const SYMBOLS: u8 = 210;
const _: () = assert!(SYMBOLS as u32 == LITERALS + 2 * (NUMBER_BITS - LITERAL_BITS));
/// The longest code word.
pub(crate) const MAX_LEN: u32 = 9;
/// The most bytes of the codes of this many contexts.
pub(crate) const fn max_size(contexts: usize) -> usize {
    contexts * (1 + MAX_LEN as usize + 256)
}

/// The codes of all contexts, and where the index says that each chunk begins.
pub(crate) struct Codes {
    tables: CodeTables<CONTEXTS>,
    /// A group has 2^`group_bits` source locations. `group_bits` is at most [`MAX_GROUP_BITS`].
    pub(super) group_bits: u8,
    /// The rows of [`Self::place`].
    places: Rows<1>,
    chunks: u64,
}

/// The longest code word that a table decodes. Nine in ten numbers have no longer one, and tables of longer words take
/// most of the time to open an index.
const SHORT: u32 = 7;

/// For each value of the next [`SHORT`] bits: the symbol of the code word at the front of these bits, times 16, plus
/// the length of the code word. Or [`LONG`], or [`UNUSED`].
type ShortWords = [u16; 1 << SHORT];

/// The code words of `SHORT` + 1 bits, and those of [`MAX_LEN`] bits, which is one more.
type LongCode = [LongWords; 2];

/// The long code words of one length.
#[derive(Clone, Copy, Default)]
struct LongWords {
    /// The next [`MAX_LEN`] bits are below this if a code word of this length, or a shorter one, is at their front.
    end: u16,
    /// The number of the symbol of a code word is the code word plus this, modulo 2^16.
    first: u16,
}

/// The entry for bits that begin with a longer code word.
const LONG: u16 = u16::MAX;
/// The entry for bits that begin with no code word: an invalid symbol, of length 0.
const UNUSED: u16 = u16::MAX << 4;

impl Codes {
    /// The codes in the section that `pages` reads.
    pub(crate) fn decode(pages: &PageReader<'_>, metadata: &Metadata) -> Result<Self, Error> {
        let malformed = |what| pages.malformed(0, what);
        let size = pages.bytes(0..2)?.first_chunk().map_or(0, |size| usize::from(u16::from_le_bytes(*size)));
        if size > max_size(CONTEXTS) {
            return Err(malformed("its codes are larger than the format allows"));
        }
        let codes = pages.bytes(2..size + 4)?;
        let (codes, [group_bits, width]) =
            codes.split_last_chunk().ok_or_else(|| malformed("it has no codes"))?;
        if *group_bits > MAX_GROUP_BITS {
            return Err(malformed("its groups of source locations are larger than the format allows"));
        }
        let tables = CodeTables::decode(codes).ok_or_else(|| malformed("a code is invalid"))?;
        let places = Rows { at: size + 4, widths: [*width] };
        let chunks = Table::ALL.iter().map(|table| metadata.chunk_len(*table)).sum();
        let rows =
            usize::try_from(chunks).ok().and_then(|chunks| Rows::size([*width], chunks.checked_add(1)?));
        if rows.and_then(|rows| rows.checked_add(places.at)) != Some(pages.section.len()) {
            return Err(malformed("it has no place for each chunk"));
        }
        Ok(Self { tables, group_bits: *group_bits, places, chunks })
    }

    /// Where chunk `number` of all chunks of the index begins, and where it ends, in bytes from the start of the
    /// section of chunks.
    pub(crate) fn place(&self, pages: &PageReader<'_>, number: u64) -> Result<[usize; 2], Error> {
        // There is one more row than chunks, and there are no more rows than bits. A number beyond the address space is
        // that of no chunk, and such a place is outside of the section, which is an error for its reader.
        let [row, chunks] = [number, self.chunks].map(|row| usize::try_from(row).unwrap_or(usize::MAX));
        let (true, ([start], Some([end]))) =
            (row < chunks, self.places.get(pages, chunks.saturating_add(1), row)?)
        else {
            return Err(pages.malformed(self.places.at, "no such chunk"));
        };
        Ok([start, end].map(|place| usize::try_from(place).unwrap_or(usize::MAX)))
    }

    /// How many source locations a group has.
    pub(super) fn group_len(&self) -> usize {
        1 << self.group_bits
    }

    /// How many chunks the index has, empty ones included.
    pub(crate) fn chunks(&self) -> u64 {
        self.chunks
    }

    /// The next number of `context`. Returns `None` if the bits begin with no code word.
    #[inline(always)]
    pub(crate) fn number(&self, reader: &mut BitReader<'_>, context: u8) -> Option<u64> {
        self.tables.number(reader, context)
    }
}

/// The codes of `N` contexts.
pub(crate) struct CodeTables<const N: usize> {
    short: Box<[ShortWords; N]>,
    long: [LongCode; N],
    /// The symbols of all codes.
    symbols: Box<[u8]>,
}

impl<const N: usize> CodeTables<N> {
    /// The codes in `bytes`. Returns `None` if a code is invalid or bytes are left.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut tables = Self {
            short: vec![[0; 1 << SHORT]; N].try_into().ok()?,
            long: [LongCode::default(); N],
            symbols: Box::default(),
        };
        let mut all = Vec::with_capacity(bytes.len());
        let mut cursor = Cursor::new(bytes);
        for (short, long) in tables.short.iter_mut().zip(&mut tables.long) {
            let [symbols] = cursor.array()?;
            let counts = if symbols > 1 { cursor.array()? } else { [0; MAX_LEN as usize] };
            let symbols = cursor.bytes(symbols.into())?;
            // The largest symbol is compared, not each one, so that the loop has no branch.
            if symbols.iter().fold(0, |most, symbol| most.max(*symbol)) >= SYMBOLS {
                return None;
            }
            match symbols {
                [] => short.fill(UNUSED),
                [symbol] => short.fill(u16::from(*symbol) << 4),
                _ => *long = decode_code(short, counts, symbols, u16::try_from(all.len()).ok()?)?,
            }
            all.extend_from_slice(symbols);
        }
        tables.symbols = all.into_boxed_slice();
        cursor.is_empty().then_some(tables)
    }

    /// The entry, as in [`ShortWords`], for a code word of more than [`SHORT`] bits at the front of the [`MAX_LEN`]
    /// bits of `word`.
    #[inline(never)]
    fn long(&self, context: u8, word: u64) -> u32 {
        let [shorter, longest] = self.long.get(usize::from(context)).copied().unwrap_or_default();
        let (words, unused) = if word < shorter.end.into() { (shorter, 1) } else { (longest, 0) };
        let number = (u32::from(words.first) + (low_half(word) >> unused)) & 0xffff;
        let symbol = self.symbols.get(number as usize);
        symbol.map_or(UNUSED.into(), |symbol| u32::from(*symbol) << 4 | (MAX_LEN - unused))
    }

    /// The next number of `context`. Returns `None` if the bits begin with no code word.
    #[inline(always)]
    pub(crate) fn number(&self, reader: &mut BitReader<'_>, context: u8) -> Option<u64> {
        let code = self.short.get(usize::from(context))?;
        let word = reader.peek(MAX_LEN) >> (u64::BITS - MAX_LEN);
        let short = *code.get(usize::try_from(word >> (MAX_LEN - SHORT)).ok()?)?;
        let entry = if short == LONG { self.long(context, word) } else { short.into() };
        reader.skip(entry & 0xf);
        let symbol = entry >> 4;
        let Some(above) = symbol.checked_sub(LITERALS) else { return Some(symbol.into()) };
        let follow = above / 2 + LITERAL_BITS - 1;
        if follow > NUMBER_BITS {
            return None;
        }
        Some(u64::from(2 | above & 1) << follow | reader.bits(follow))
    }
}

/// Writes the short code words of the code with these symbols to `words`, and returns the long ones. The first symbol
/// has number `first` among the symbols of all codes. `counts` states how many code words have each length. Returns
/// `None` if the code words leave bits without a code word, or if there are fewer or more of them than symbols.
fn decode_code(
    words: &mut ShortWords,
    counts: [u8; MAX_LEN as usize],
    mut symbols: &[u8],
    first: u16,
) -> Option<LongCode> {
    let mut free = words.as_mut_slice();
    let (short, long) = counts.split_at_checked(SHORT as usize)?;
    let mut number = first;
    for (len, count) in (1u16..).zip(short).filter(|(_, count)| **count != 0) {
        let (own, longer) = symbols.split_at_checked((*count).into())?;
        let size = 1 << (SHORT as usize - usize::from(len));
        let (words, rest) = free.split_at_mut_checked(own.len() * size)?;
        // Most symbols have long words.
        match size {
            1 => fill::<1>(words, own, len),
            2 => fill::<2>(words, own, len),
            4 => fill::<4>(words, own, len),
            _ => {
                let words = words.chunks_exact_mut(size).zip(own);
                words.for_each(|(words, symbol)| words.fill(u16::from(*symbol) << 4 | len));
            }
        }
        number += u16::from(*count);
        (free, symbols) = (rest, longer);
    }
    free.fill(LONG);
    // The code words so far are those of lower bits.
    let mut code = LongCode::default();
    let mut end = u16::try_from((1 << SHORT) - free.len()).ok()? << (MAX_LEN - SHORT);
    let mut left = symbols.len();
    for ((words, count), unused) in code.iter_mut().zip(long).zip([1, 0]) {
        let first = number.wrapping_sub(end >> unused);
        end = end.checked_add(u16::from(*count) << unused)?;
        *words = LongWords { end, first };
        number += u16::from(*count);
        left = left.checked_sub((*count).into())?;
    }
    (end == 1 << MAX_LEN && left == 0).then_some(code)
}

/// Fills the entries of symbols whose words have `len` bits, `N` entries each.
fn fill<const N: usize>(words: &mut [u16], symbols: &[u8], len: u16) {
    let (words, _) = words.as_chunks_mut();
    words.iter_mut().zip(symbols).for_each(|(words, symbol)| *words = [u16::from(*symbol) << 4 | len; N]);
}
