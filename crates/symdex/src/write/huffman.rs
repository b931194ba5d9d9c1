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
/// before in pairs, and adds a package for each single symbol. A symbol's code word is as long as the number of its
/// packages among the cheapest ones of the last round, and among the packages of earlier rounds that those consist of.
fn code_lens(counts: &[u64]) -> Vec<(u8, u8)> {
    let occurring = (0..=u8::MAX).zip(counts).filter(|(_, count)| **count != 0);
    let mut symbols: Vec<(u64, u8)> = occurring.map(|(symbol, count)| (*count, symbol)).collect();
    // Symbols with equal counts keep their order.
    symbols.sort_by_key(|(count, _)| *count);
    // The packages of each round: how often their symbols occur, and whether they are single symbols.
    let singles = || symbols.iter().map(|(count, _)| (*count, true));
    let mut rounds: Vec<Vec<(u64, bool)>> = vec![singles().collect()];
    while let Some(last) = rounds.last().filter(|_| rounds.len() < MAX_LEN as usize) {
        let pairs = last.as_chunks().0.iter().map(|[(a, _), (b, _)]| (a + b, false));
        let mut packages: Vec<_> = pairs.chain(singles()).collect();
        packages.sort_by_key(|(count, _)| *count);
        rounds.push(packages);
    }
    let mut sorted: Vec<(u8, u8)> = symbols.iter().map(|(_, symbol)| (0, *symbol)).collect();
    let mut taken = (2 * symbols.len()).saturating_sub(2);
    for packages in rounds.iter().rev() {
        let single = packages.iter().take(taken).filter(|(_, is_single)| *is_single).count();
        sorted.iter_mut().take(single).for_each(|(len, _)| *len += 1);
        taken = 2 * (taken - single);
    }
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
