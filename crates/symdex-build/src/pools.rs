//! Names and file paths, numbered as the chunks first need them.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use symdex::write::{Id32, MAX_STRING};

/// Distinct strings by number. Most borrow from the debug file, so a string costs its number and little more.
#[derive(Default)]
pub(crate) struct Pool<'d> {
    numbers: FxHashMap<Cow<'d, [u8]>, Id32>,
    strings: Vec<Cow<'d, [u8]>>,
    bytes: u64,
    /// Strings left out because they are longer than an index may hold, or the pool had grown to `limit`.
    pub(crate) refused: u64,
    limit: u64,
}

impl<'d> Pool<'d> {
    /// A pool of at most `limit` bytes. Names may overlap in the debug file, so that a small one can state more of them than memory
    /// holds; no real file has more bytes of distinct names than bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }

    /// How many strings there are.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.strings.len()).unwrap_or(u32::MAX)
    }

    /// The number of `string`, the next one if it is new; `None` where it is too long or the pool is full.
    pub(crate) fn number(&mut self, string: Cow<'d, [u8]>) -> Option<Id32> {
        if let Some(number) = self.numbers.get(&string) {
            return Some(*number);
        }
        let fits = string.len() <= MAX_STRING && self.bytes + string.len() as u64 <= self.limit;
        let number = Id32::new(self.strings.len() as u64).filter(|_| fits);
        let Some(number) = number else {
            self.refused += 1;
            return None;
        };
        self.bytes += string.len() as u64;
        self.numbers.insert(string.clone(), number);
        self.strings.push(string);
        Some(number)
    }

    /// The strings in the order of their numbers.
    pub(crate) fn into_strings(self) -> Vec<Cow<'d, [u8]>> {
        self.strings
    }
}

/// What name blocks are compressed with: the parts that many names share. Empty where there are too few names for it to pay.
pub(crate) fn dictionary(names: &[Cow<'_, [u8]>]) -> Vec<u8> {
    /// Names are sampled evenly down to about this many bytes: training takes time in proportion.
    const SAMPLE: usize = 1 << 20;
    const LARGEST: usize = 64 << 10;
    let bytes: usize = names.iter().map(|name| name.len()).sum();
    if bytes < 4 * LARGEST {
        return Vec::new();
    }
    let every = bytes.div_ceil(SAMPLE);
    // Samples of a few names each, as blocks are: what recurs within a block needs no dictionary.
    let groups: Vec<&[Cow<'_, [u8]>]> = names.chunks(8).step_by(every).collect();
    let sample: Vec<u8> = groups.iter().copied().flatten().flat_map(|name| name.iter().copied()).collect();
    let sizes: Vec<usize> = groups.iter().map(|group| group.iter().map(|name| name.len()).sum()).collect();
    let size = LARGEST.min(bytes / 32);
    zstd::dict::from_continuous(&sample, &sizes, size).unwrap_or_default()
}
