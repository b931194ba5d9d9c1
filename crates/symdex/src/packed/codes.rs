//! Prefix codes, and the contexts of numbers. A context is the kind of a number and, for some kinds, what was written
//! before it. Each context has its own code, in which frequent symbols take fewer bits.
//!
//! A number is written as a symbol and the bits that follow it. A number below 128 is its own symbol, without bits. The
//! symbol of a larger number states how many bits the number has, and its second highest bit. The lower bits follow.

use std::sync::atomic::{AtomicU16, Ordering};

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

/// The longest code word that is remembered. Nine in ten numbers have no longer one.
const SHORT: u32 = MAX_LEN - 2;

/// The short code words that were read before. For each value of the next [`SHORT`] bits: the symbol of the code word
/// at the front of these bits, times 32, plus 16, plus the length of the code word; or 0 if it was not read yet. All
/// threads that read a code word write the same entry.
type KnownWords = [AtomicU16; 1 << SHORT];
/// What an entry has apart from symbol and length.
const KNOWN: u32 = 1 << 4;
/// What is read if the bits begin with no code word: an invalid symbol, of length 0.
const UNUSED: u32 = u32::MAX << 5;

/// The code words of each length, from 0 to [`MAX_LEN`] bits.
type Code = [CodeWords; MAX_LEN as usize + 1];

/// The code words of one length.
#[derive(Clone, Copy, Default)]
struct CodeWords {
    len: u32,
    /// The next [`MAX_LEN`] bits are below this if a code word of this length, or a shorter one, is at their front.
    end: u32,
    /// The number of the symbol of a code word is the code word plus this, modulo 2^32.
    first: u32,
}

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
    known: Box<[KnownWords; N]>,
    codes: [Code; N],
    /// The symbols of all codes.
    symbols: Box<[u8]>,
}

impl<const N: usize> CodeTables<N> {
    /// The codes in `bytes`. Returns `None` if a code is invalid or bytes are left.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut codes = [Code::default(); N];
        let mut all = Vec::with_capacity(bytes.len());
        let mut cursor = Cursor::new(bytes);
        for code in &mut codes {
            let [symbols] = cursor.array()?;
            let mut counts = [0; MAX_LEN as usize + 1];
            let (empty, others) = counts.split_first_mut()?;
            match symbols {
                0 | 1 => *empty = symbols,
                _ => others.copy_from_slice(cursor.bytes(MAX_LEN as usize)?),
            }
            *code = code_of(counts, symbols, u32::try_from(all.len()).ok()?)?;
            all.extend_from_slice(cursor.bytes(symbols.into())?);
        }
        // The largest symbol is compared, not each one, so that the loop has no branch.
        if all.iter().fold(0, |most, symbol| most.max(*symbol)) >= SYMBOLS {
            return None;
        }
        let known = std::iter::repeat_with(|| [const { AtomicU16::new(0) }; 1 << SHORT]).take(N);
        let known = known.collect::<Box<[KnownWords]>>().try_into().ok()?;
        cursor.is_empty().then_some(Self { known, codes, symbols: all.into_boxed_slice() })
    }

    /// The entry, as in [`KnownWords`], for the code word at the front of the [`MAX_LEN`] bits of `word`, or
    /// [`UNUSED`].
    #[inline(never)]
    fn entry(&self, context: u8, word: u64) -> u32 {
        let word = low_half(word);
        let Some(code) = self.codes.get(usize::from(context)) else { return UNUSED };
        let [.., short, longer, longest] = code;
        if word < short.end {
            return self.short_entry(context, word).unwrap_or(UNUSED);
        }
        self.entry_of(if word < longer.end { longer } else { longest }, word).unwrap_or(UNUSED)
    }

    /// As [`entry`](Self::entry), of a short code word, which is remembered.
    #[cold]
    fn short_entry(&self, context: u8, word: u32) -> Option<u32> {
        let words = self.codes.get(usize::from(context))?.iter().find(|words| word < words.end)?;
        let entry = self.entry_of(words, word)?;
        let known = self.known.get(usize::from(context))?.get((word >> (MAX_LEN - SHORT)) as usize)?;
        known.store(u16::try_from(entry).ok()?, Ordering::Relaxed);
        Some(entry)
    }

    /// The entry for the code word at the front of `word`, which has the length of `words`.
    #[inline(always)]
    fn entry_of(&self, words: &CodeWords, word: u32) -> Option<u32> {
        let number = words.first.wrapping_add(word >> (MAX_LEN - words.len));
        let symbol = self.symbols.get(number as usize).filter(|_| word < words.end)?;
        Some(u32::from(*symbol) << 5 | KNOWN | words.len)
    }

    /// The next number of `context`. Returns `None` if the bits begin with no code word.
    #[inline(always)]
    pub(crate) fn number(&self, reader: &mut BitReader<'_>, context: u8) -> Option<u64> {
        let known = self.known.get(usize::from(context))?;
        let word = reader.peek(MAX_LEN) >> (u64::BITS - MAX_LEN);
        let known = known.get(usize::try_from(word >> (MAX_LEN - SHORT)).ok()?)?.load(Ordering::Relaxed);
        let entry = if known == 0 { self.entry(context, word) } else { known.into() };
        reader.skip(entry & 0xf);
        let symbol = entry >> 5;
        let Some(above) = symbol.checked_sub(LITERALS) else { return Some(symbol.into()) };
        let follow = above / 2 + LITERAL_BITS - 1;
        if follow > NUMBER_BITS {
            return None;
        }
        Some(u64::from(2 | above & 1) << follow | reader.bits(follow))
    }
}

/// The code of `symbols` symbols, of which the first has number `number` among those of all codes. `counts` states how
/// many code words have each length. Returns `None` if the code words leave bits without a code word, or if there are
/// fewer or more of them than symbols.
fn code_of(counts: [u8; MAX_LEN as usize + 1], symbols: u8, number: u32) -> Option<Code> {
    let mut code = Code::default();
    let after = number + u32::from(symbols);
    // These sums only grow, and cannot overflow. So it is enough to check them at the end.
    let (mut number, mut end) = (number, 0);
    for ((words, count), len) in code.iter_mut().zip(counts.map(u32::from)).zip(0..) {
        let unused = MAX_LEN - len;
        let first = number.wrapping_sub(end >> unused);
        number += count;
        end += count << unused;
        *words = CodeWords { len, end, first };
    }
    (number == after && (end == 1 << MAX_LEN || symbols == 0)).then_some(code)
}
