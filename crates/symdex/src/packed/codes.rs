//! Prefix codes: a symbol takes the fewer bits the more often it occurs in its context.
//!
//! A number is a symbol and bits that follow it: below 128 the number itself; the others by their highest two bits (128 and 129 for numbers of
//! eight bits, 130 and 131 for those of nine, ...), the rest of the bits follow.
//!
//! ```text
//! u8 for each context: the bytes of its code
//! codes, each: nothing where the context never occurs, the symbol where only one does, which then takes no bits; or
//!   12 bytes  how many code words have one bit, two bits, ...
//!   bytes     their symbols
//! ```
//!
//! Code words are canonical: the shorter ones come first, each is one more than the one before (as in RFC 1951, 3.2.2, highest bit first);
//! together they leave no word of 12 bits unused.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

use super::bits::BitReader;
use super::contexts::CONTEXTS;
use super::tokens::Token;

/// Symbols of a context, at the most.
pub(super) const SYMBOLS: usize = 256;
/// The most bytes of codes, their sizes included.
pub(super) const MAX_CODES: usize = 256 * CONTEXTS;
/// Numbers below this are symbols themselves.
const LITERALS: u32 = 128;
const LITERAL_BITS: u32 = LITERALS.trailing_zeros();
/// One more than the largest symbol, which numbers of 64 bits have.
const END_OF_SYMBOLS: u32 = LITERALS + 2 * (64 - LITERAL_BITS);
/// The longest code word.
const MAX_LEN: u32 = 12;
/// Bits of the words that are found without a search.
const SHORT: u32 = 7;

/// The symbol of `number`, the bits that follow it, and how many those are.
#[inline]
pub(super) fn symbol(number: u64) -> (u8, u64, u32) {
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
pub(super) fn follow(symbol: u8) -> u32 {
    u32::from(symbol).checked_sub(LITERALS).map_or(0, |above| above / 2 + LITERAL_BITS - 1)
}

/// The number of a symbol and the bits that follow it.
#[inline]
pub(super) fn number(symbol: u8, bits: u64) -> u64 {
    match u64::from(symbol).checked_sub(LITERALS.into()) {
        None => symbol.into(),
        Some(above) => (2 | above & 1) << follow(symbol) | bits,
    }
}

/// Where a table of all contexts has a symbol, and beyond its end for a mark.
#[inline]
pub(super) fn place(token: Token) -> usize {
    u16::from_le_bytes(token).into()
}

/// How often each symbol occurs in each context.
pub(super) struct Counts(Vec<u64>);

impl Default for Counts {
    fn default() -> Self {
        Self(vec![0; CONTEXTS * SYMBOLS])
    }
}

impl Counts {
    /// Counts the symbol at [`place`]; marks are at none.
    #[inline]
    pub(super) fn add(&mut self, place: usize) {
        if let Some(count) = self.0.get_mut(place) {
            *count += 1;
        }
    }
}

/// The code word of a symbol.
#[derive(Clone, Copy, Default)]
pub(super) struct Word {
    pub(super) bits: u16,
    pub(super) len: u8,
    /// How many bits follow it.
    pub(super) follow: u8,
}

/// The codes of all contexts, for writing.
pub(super) struct Encoder {
    words: Vec<Word>,
}

impl Encoder {
    /// Codes for what was counted, and what says them in an index.
    pub(super) fn new(counts: &Counts) -> (Self, Vec<u8>) {
        let (mut sizes, mut codes, mut words) = (Vec::new(), Vec::new(), Vec::new());
        for counts in counts.0.chunks(SYMBOLS) {
            let sorted = code_lens(counts);
            words.extend(code_words(&sorted));
            let before = codes.len();
            if sorted.len() > 1 {
                let words_of =
                    |len: u8| sorted.iter().filter(|(own, _)| *own == len).count().to_le_bytes()[0];
                codes.extend((1..).take(MAX_LEN as usize).map(words_of));
            }
            codes.extend(sorted.iter().map(|(_, symbol)| symbol));
            // Twelve and as many as there are symbols at the most, of which there are 242.
            sizes.push((codes.len() - before).to_le_bytes()[0]);
        }
        (Self { words }, [sizes, codes].concat())
    }

    /// The code word of a symbol; `None` for a mark.
    #[inline]
    pub(super) fn word(&self, token: Token) -> Option<Word> {
        self.words.get(place(token)).copied()
    }
}

/// The length of the code word of each symbol that occurs, sorted by it and then by symbol; 0 for the only one.
///
/// Lengths are Huffman's, found by package-merge, which keeps to [`MAX_LEN`]: coins of every length are merged in pairs with those of the
/// length above, and how many of the cheapest a symbol is in is the length of its word.
fn code_lens(counts: &[u64]) -> Vec<(u8, u8)> {
    let occurring = (0..=u8::MAX).zip(counts).filter(|(_, count)| **count != 0);
    let mut coins: Vec<(u64, Vec<u8>)> = occurring.map(|(s, count)| (*count, vec![s])).collect();
    // Equal ones keep the order of their symbols.
    coins.sort_by_key(|(count, _)| *count);
    let mut packages = coins.clone();
    for _ in 1..MAX_LEN {
        let pairs = packages.chunks_exact(2).filter_map(|pair| match pair {
            [(a, left), (b, right)] => Some((a + b, [left.as_slice(), right].concat())),
            _ => None,
        });
        packages = pairs.chain(coins.iter().cloned()).collect();
        packages.sort_by_key(|(count, _)| *count);
    }
    let mut lens = [0u8; SYMBOLS];
    let cheapest = packages.iter().take((2 * coins.len()).saturating_sub(2));
    for symbol in cheapest.flat_map(|(_, symbols)| symbols) {
        lens.get_mut(usize::from(*symbol)).into_iter().for_each(|len| *len += 1);
    }
    let len = |symbol: u8| lens.get(usize::from(symbol)).copied().unwrap_or_default();
    let symbols = coins.iter().flat_map(|(_, symbol)| symbol);
    let mut sorted: Vec<(u8, u8)> = symbols.map(|symbol| (len(*symbol), *symbol)).collect();
    sorted.sort_unstable();
    sorted
}

/// The canonical code words of sorted lengths and symbols.
fn code_words(sorted: &[(u8, u8)]) -> [Word; SYMBOLS] {
    let mut words = [Word::default(); SYMBOLS];
    let (mut next, mut last_len) = (0u16, 0);
    for (len, symbol) in sorted {
        next <<= len - last_len;
        last_len = *len;
        let word = Word { bits: next, len: *len, follow: follow(*symbol).to_le_bytes()[0] };
        words.get_mut(usize::from(*symbol)).into_iter().for_each(|own| *own = word);
        next += 1;
    }
    words
}

/// What is known of the codes of all contexts, for reading: for each context what seven bits begin with, a symbol above four bits of how
/// many of them are its word. Threads that find it out at the same time find the same.
pub(super) struct Decoder {
    /// Made when they are first needed: many an index is opened and asked nothing.
    short: OnceLock<Box<[AtomicU16]>>,
    /// Where in the codes' bytes the code of each context begins, and where the last one ends.
    places: Vec<u16>,
}

/// The length that says to search.
const LONG: u16 = 15;
/// What says to search, once the context is ready.
const READY: u16 = 1 << 15;

impl Decoder {
    /// What reads the codes in `bytes`; `None` where they have other bytes than they say.
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        let mut place = u16::try_from(CONTEXTS).ok()?;
        let mut places = vec![place];
        for size in bytes.get(..CONTEXTS)? {
            // No sum of so few overflows.
            place += u16::from(*size);
            places.push(place);
        }
        let whole = usize::from(place) == bytes.len();
        whole.then(|| Self { short: OnceLock::new(), places })
    }

    /// What reads the codes in `bytes`, those that it was made of.
    pub(super) fn codes<'a>(&'a self, bytes: &'a [u8]) -> Codes<'a> {
        let unknown = || (0..CONTEXTS << SHORT).map(|_| AtomicU16::new(LONG)).collect();
        Codes { short: self.short.get_or_init(unknown), places: &self.places, bytes }
    }
}

/// Codes to read with.
#[derive(Clone, Copy)]
pub(super) struct Codes<'a> {
    short: &'a [AtomicU16],
    places: &'a [u16],
    bytes: &'a [u8],
}

/// The code of a context as the index has it.
struct Code<'a> {
    /// How many words there are of each length; none where a symbol is alone.
    counts: &'a [u8],
    symbols: &'a [u8],
}

impl<'a> Codes<'a> {
    /// The next number of `context`; `None` where the context has no code.
    #[inline(always)]
    pub(super) fn number(&self, reader: &mut BitReader<'_>, context: u8) -> Option<u64> {
        let bits = reader.peek();
        let at = usize::from(context) << SHORT | usize::try_from(bits >> (64 - SHORT)).unwrap_or_default();
        let mut found = self.short.get(at)?.load(Ordering::Relaxed);
        if found & LONG == LONG {
            found = self.search(bits, context, found)?;
        }
        reader.skip(u32::from(found & LONG));
        let symbol = u32::from((found & !READY) >> 4);
        match symbol.checked_sub(LITERALS) {
            None => Some(symbol.into()),
            Some(above) => {
                let follow = above / 2 + LITERAL_BITS - 1;
                Some(u64::from(2 | above & 1) << follow | reader.wide(follow))
            }
        }
    }

    /// The symbol whose word `bits` begin with, above four bits of its length.
    #[cold]
    fn search(&self, bits: u64, context: u8, found: u16) -> Option<u16> {
        let Code { counts, symbols } = self.code(context)?;
        if found & READY == 0 {
            self.prepare(context)?;
        }
        if counts.is_empty() {
            return Some(u16::from(*symbols.first()?) << 4);
        }
        let (mut first, mut before) = (0, 0);
        for (len, count) in (1..=MAX_LEN).zip(counts) {
            first <<= 1;
            let above = (bits >> (64 - len)).checked_sub(first)?;
            if above < u64::from(*count) {
                let symbol = symbols.get(before + usize::try_from(above).ok()?)?;
                return Some(u16::from(*symbol) << 4 | u16::try_from(len).ok()?);
            }
            first += u64::from(*count);
            before += usize::from(*count);
        }
        None
    }

    /// The code of a context; `None` where it never occurs, or has not even the bytes of one.
    fn code(&self, context: u8) -> Option<Code<'a>> {
        let code = self.bytes_of(context).filter(|code| !code.is_empty())?;
        let alone = (&[][..], code);
        let (counts, symbols) =
            if code.len() == 1 { alone } else { code.split_at_checked(MAX_LEN as usize)? };
        Some(Code { counts, symbols })
    }

    fn bytes_of(&self, context: u8) -> Option<&'a [u8]> {
        match self.places.get(usize::from(context)..)? {
            [start, end, ..] => self.bytes.get(usize::from(*start)..usize::from(*end)),
            _ => None,
        }
    }

    /// Makes a context ready, which a first answer does some thirty times; `None` where its code is none.
    fn prepare(&self, context: u8) -> Option<()> {
        let Code { counts, symbols } = self.code(context)?;
        let words: usize = counts.iter().map(|count| usize::from(*count)).sum();
        let taken: u32 =
            (1..=MAX_LEN).zip(counts).map(|(len, count)| u32::from(*count) << (MAX_LEN - len)).sum();
        let alone = counts.is_empty();
        let whole = alone || words == symbols.len() && taken == 1 << MAX_LEN;
        if !whole || symbols.iter().any(|symbol| u32::from(*symbol) >= END_OF_SYMBOLS) {
            return None;
        }
        let start = usize::from(context) << SHORT;
        let slots = self.short.get(start..start + (1 << SHORT))?;
        let (mut slots, mut symbols) = (slots.iter(), symbols.iter());
        let lens = if alone { &[1][..] } else { counts };
        for (len, count) in (u32::from(!alone)..=SHORT).zip(lens) {
            for symbol in symbols.by_ref().take((*count).into()) {
                let entry = READY | u16::from(*symbol) << 4 | u16::try_from(len).ok()?;
                slots.by_ref().take(1 << (SHORT - len)).for_each(|slot| slot.store(entry, Ordering::Relaxed));
            }
        }
        slots.for_each(|slot| slot.store(READY | LONG, Ordering::Relaxed));
        Some(())
    }

    /// Whether the code of each context is one, or none.
    pub(super) fn are_whole(&self) -> bool {
        let contexts = 0u8..CONTEXTS.to_le_bytes()[0];
        contexts
            .into_iter()
            .all(|context| self.bytes_of(context) == Some(&[]) || self.prepare(context).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::super::bits::BitWriter;
    use super::super::tokens::{TokenReader, Tokens};
    use super::*;

    fn numbers() -> Vec<(u8, u64)> {
        let shapes = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + (1 << bit) / 2]);
        let often = std::iter::repeat_n(3, 5000).chain(std::iter::repeat_n(200, 700));
        let wide: Vec<u64> = shapes.chain(often).chain([u64::MAX]).collect();
        let context =
            |context: u8, numbers: &[u64]| numbers.iter().map(|n| (context, *n)).collect::<Vec<_>>();
        [context(0, &wide), context(7, &[5; 9]), context(8, &[1, 1, 1, 0])].concat()
    }

    #[test]
    fn numbers_are_read_as_they_were_written() {
        let (mut counts, mut tokens) = (Counts::default(), Tokens::default());
        numbers().iter().for_each(|(context, number)| tokens.number(*context, *number));
        tokens.count(&mut counts);
        let (encoder, bytes) = Encoder::new(&counts);
        let mut out = BitWriter::default();
        TokenReader::new(&tokens.0).put(&encoder, &mut out);
        let position = out.position();
        let written = out.finish();
        let mut reader = BitReader::new(&written, 0);
        let decoder = Decoder::new(&bytes).expect("as written");
        let codes = decoder.codes(&bytes);
        for (context, number) in numbers() {
            assert_eq!(codes.number(&mut reader, context), Some(number));
        }
        assert_eq!(reader.position() as u64, position);
        assert!(codes.are_whole());
        assert_eq!(codes.number(&mut reader, 1), None, "a context that never occurs");
        assert_eq!(codes.number(&mut reader, u8::MAX), None);
    }

    #[test]
    fn what_is_no_code_is_refused() {
        let code = |counts: &[u8], symbols: &[u8]| {
            let mut counts = counts.to_vec();
            counts.resize(MAX_LEN as usize, 0);
            [counts, symbols.to_vec()].concat()
        };
        let is_code = |code: &[u8]| {
            let mut bytes = vec![0; CONTEXTS];
            bytes[0] = u8::try_from(code.len()).expect("small");
            bytes.extend_from_slice(code);
            assert!(Decoder::new(&[&bytes[..], &[0]].concat()).is_none(), "a byte too many");
            let decoder = Decoder::new(&bytes).expect("as many bytes as it says");
            let codes = decoder.codes(&bytes);
            let number = codes.number(&mut BitReader::new(&[0; 8], 0), 0).is_some();
            assert_eq!(number, codes.are_whole() && !code.is_empty());
            number
        };
        assert!(is_code(&[7]) && is_code(&code(&[2], &[1, 2])) && is_code(&code(&[1, 2], &[3, 4, 241])));
        assert!(!is_code(&[]), "no symbol");
        assert!(!is_code(&code(&[1], &[1])) && !is_code(&code(&[1, 1], &[1, 2])), "words that are left");
        assert!(!is_code(&code(&[2, 1], &[1, 2, 3])), "too many words");
        assert!(!is_code(&code(&[2], &[1, 2, 3])) && !is_code(&code(&[2], &[1])), "other symbols than words");
        assert!(!is_code(&[242]) && !is_code(&code(&[2], &[1, 255])), "a symbol that is none");
        assert!(!is_code(&[1, 2]), "cut");
        assert!(Decoder::new(&[]).is_none());
    }
}
