//! The Huffman code of each context, made from how often each symbol occurs in it.

use super::symbol_stream::{StreamItem, follow};
use crate::packed::codes::MAX_LEN;

/// The most symbols of a context.
const SYMBOLS: usize = 256;

/// The index of a symbol in a table of all contexts. The index of a mark is beyond the end of such a table.
#[inline]
pub(crate) fn place(item: StreamItem) -> usize {
    u16::from_le_bytes(item).into()
}

/// How often each symbol occurs in each context.
pub(crate) struct Counts(Vec<u64>);

impl Counts {
    /// Counts of nothing, in this many contexts.
    pub(crate) fn new(contexts: usize) -> Self {
        Self(vec![0; contexts * SYMBOLS])
    }

    /// Counts the symbol at this [`place`]. Marks are not counted.
    #[inline]
    pub(crate) fn add(&mut self, place: usize) {
        if let Some(count) = self.0.get_mut(place) {
            *count += 1;
        }
    }
}

/// The code word of a symbol.
#[derive(Clone, Copy, Default)]
pub(crate) struct Word {
    pub(crate) bits: u16,
    pub(crate) len: u8,
    /// How many bits follow the code word.
    pub(crate) follow: u8,
}

/// The codes of all contexts, for writing.
pub(crate) struct Encoder {
    words: Vec<Word>,
}

impl Encoder {
    /// The codes for the counted symbols, and the bytes that state these codes in an index.
    pub(crate) fn new(counts: &Counts) -> (Self, Vec<u8>) {
        let (mut codes, mut words) = (Vec::new(), Vec::new());
        for counts in counts.0.chunks(SYMBOLS) {
            let sorted = code_lens(counts);
            words.extend(code_words(&sorted));
            // There are fewer than 256 symbols.
            codes.push(sorted.len().to_le_bytes()[0]);
            if sorted.len() > 1 {
                let words_of =
                    |len: u8| sorted.iter().filter(|(own, _)| *own == len).count().to_le_bytes()[0];
                codes.extend((1..).take(MAX_LEN as usize).map(words_of));
            }
            codes.extend(sorted.iter().map(|(_, symbol)| symbol));
        }
        (Self { words }, codes)
    }

    /// The code word of a symbol. Returns `None` for a mark.
    #[inline]
    pub(crate) fn word(&self, item: StreamItem) -> Option<Word> {
        self.words.get(place(item)).copied()
    }
}

/// The length of the code word of each symbol that occurs, with the symbol; sorted by length, then by symbol. The
/// length is 0 if there is only one symbol.
///
/// The package-merge algorithm finds the best lengths up to [`MAX_LEN`]. Each round joins the packages of the round
/// before in pairs, and adds a package for each single symbol. The length of a symbol's code word is how many of the
/// cheapest packages of the last round have the symbol.
fn code_lens(counts: &[u64]) -> Vec<(u8, u8)> {
    let occurring = (0..=u8::MAX).zip(counts).filter(|(_, count)| **count != 0);
    let mut coins: Vec<(u64, Vec<u8>)> = occurring.map(|(s, count)| (*count, vec![s])).collect();
    // Symbols with equal counts keep their order.
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
