//! Bounds chains of frame pointers. The walker follows them through frames outside of all modules, for which it asks
//! nobody, so that no limit of frames can stop it there.

use std::collections::HashMap;

use crate::limits::POINTERS_INTO_STACK;
use crate::process::Block;

/// How many bytes of a stack are counted together. They have less than [`POINTERS_INTO_STACK`] words.
const PAGE: usize = 4096;

/// The bits of an address; on ARM64 the others can be a signature.
const ADDRESS: u64 = (1 << 47) - 1;

/// Counts the words in the stacks of a process that may be frame pointers. Each frame of a chain has one at a place of
/// its own, aligned or not, and points to a higher address of the stack.
pub(crate) struct Chains {
    /// The size of a word.
    width: usize,
    /// By block: the number of such words up to the end of each page. Threads can share a block.
    counted: HashMap<Key, Vec<usize>>,
    /// How many bytes of further blocks are counted. Blocks can share their bytes.
    bytes_left: usize,
}

/// A block: its address, and the place and number of its bytes.
type Key = (u64, usize, usize);

/// The part of a stack that is walked.
#[derive(Clone, Copy)]
pub(crate) struct Bounded<'d> {
    pub(crate) stack: Block<'d>,
    /// Where the stack is cut, if it is: the address, and the end of the whole stack.
    pub(crate) cut: Option<(u64, u64)>,
}

impl Chains {
    /// Counts words of `width` bytes in the stacks of a file of `size` bytes.
    pub(crate) fn new(width: usize, size: usize) -> Self {
        // A stack is listed as the stack of its thread and as memory.
        Self { width, counted: HashMap::new(), bytes_left: size.saturating_mul(2) }
    }

    /// The part of `block` from the address `start` on in which no chain has more frames than [`POINTERS_INTO_STACK`].
    /// `None` if it has no such address, or if the stacks of the process have more bytes than the file.
    pub(crate) fn bound<'d>(&mut self, block: Block<'d>, start: u64) -> Option<Bounded<'d>> {
        let stack = block.starting_at(start)?;
        let skipped = block.bytes.len() - stack.bytes.len();
        let key = (block.address, block.bytes.as_ptr() as usize, block.bytes.len());
        if !self.counted.contains_key(&key) {
            self.bytes_left = self.bytes_left.checked_sub(block.bytes.len())?;
            self.counted.insert(key, self.count(block));
        }
        let counts = self.counted.get(&key)?;
        let before = (skipped / PAGE).checked_sub(1).and_then(|page| counts.get(page)).copied().unwrap_or(0);
        let end = counts.partition_point(|count| count - before <= POINTERS_INTO_STACK) * PAGE;
        if end >= block.bytes.len() {
            return Some(Bounded { stack, cut: None });
        }
        let bytes = stack.bytes.get(..end.saturating_sub(skipped))?;
        let cut = (start + bytes.len() as u64, start + stack.bytes.len() as u64);
        Some(Bounded { stack: Block { bytes, ..stack }, cut: Some(cut) })
    }

    fn count(&self, block: Block<'_>) -> Vec<usize> {
        let len = block.bytes.len() as u64;
        let mut counts = vec![0; block.bytes.len().div_ceil(PAGE)];
        for (at, word) in block.bytes.windows(self.width).enumerate() {
            let mut bytes = [0; 8];
            bytes[..self.width].copy_from_slice(word);
            let distance = u64::from_le_bytes(bytes).wrapping_sub(block.address) & ADDRESS;
            counts[at / PAGE] += usize::from((at as u64) < distance && distance < len);
        }
        let mut sum = 0;
        counts.iter_mut().for_each(|count| {
            sum += *count;
            *count = sum;
        });
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length of the part of a stack at 0x1000 with these words that is walked from `start` on.
    fn len(words: impl Iterator<Item = u64>, shift: usize, start: u64) -> Option<usize> {
        let bytes: Vec<u8> = [vec![0; shift], words.flat_map(u64::to_le_bytes).collect()].concat();
        let mut chains = Chains::new(8, bytes.len());
        chains.bound(Block { address: 0x1000, bytes: &bytes }, start).map(|bounded| bounded.stack.bytes.len())
    }

    #[test]
    fn stacks_are_cut_where_a_chain_would_be_too_long() {
        let next = |shift: u64| move |word: u64| 0x1000 + shift + 8 * (word + 1);
        // Four pages more than the limit, less the half page that is before the start.
        assert_eq!(len((0..20_000).map(next(0)), 0, 0x1000), Some(POINTERS_INTO_STACK * 8));
        assert_eq!(len((0..20_000).map(next(0)), 0, 0x1800), Some(POINTERS_INTO_STACK * 8 - 0x800));
        let unaligned = len((0..20_000).map(next(3)), 3, 0x1003).expect("in the stack");
        assert!((120_000..=POINTERS_INTO_STACK * 8).contains(&unaligned), "{unaligned}");
        let signed = |word: u64| next(0)(word) | (0x7f << 48);
        assert_eq!(len((0..20_000).map(signed), 0, 0x1000), Some(POINTERS_INTO_STACK * 8));
        assert_eq!(len((0..20_000).map(|_| 0x1000), 0, 0x1000), Some(160_000), "no chain goes back");
        assert_eq!(len((0..10).map(next(0)), 0, 0x1050), None);
    }

    #[test]
    fn the_bytes_that_are_counted_are_limited() {
        let bytes = [0; 100];
        let mut chains = Chains::new(8, 100);
        for address in [0x1000, 0x1000, 0x2000] {
            assert!(chains.bound(Block { address, bytes: &bytes }, address).is_some(), "{address:#x}");
        }
        assert!(chains.bound(Block { address: 0x3000, bytes: &bytes }, 0x3000).is_none());
    }
}
