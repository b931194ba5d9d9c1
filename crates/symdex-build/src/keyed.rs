//! Hash tables for numbers that a debug file states, such as offsets and ids.
//!
//! With a fixed hash function, a file can state numbers that all have one hash, and each access to the table then
//! compares all of them. The hash function here has a random key. Strings use the hash function of the standard library
//! or [`StringTable`](crate::pools::StringTable).
//!
//! `FxHashMap` is enough for single numbers that this crate counts up from 0 and for offsets of headers. Its hash
//! function spreads the numbers below a limit evenly. For `n` of these numbers to collide, a file needs about `n * n`
//! bytes or entries.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// A map from numbers that the input chooses. Its order is random.
pub(crate) type KeyedMap<K, V> = HashMap<K, V, Keyed>;

/// A set of numbers that the input chooses. Its order is random.
pub(crate) type KeyedSet<K> = HashSet<K, Keyed>;

/// A random number that stays the same until the process ends.
pub(crate) fn process_key() -> u64 {
    PROCESS_KEYS.0[0]
}

static PROCESS_KEYS: LazyLock<Keyed> = LazyLock::new(|| {
    let random = RandomState::new();
    Keyed([random.hash_one(0), random.hash_one(1)])
});

/// Hashes numbers with two random keys.
#[derive(Clone, Copy)]
pub(crate) struct Keyed([u64; 2]);

/// The keys of the process.
impl Default for Keyed {
    fn default() -> Self {
        *PROCESS_KEYS
    }
}

impl BuildHasher for Keyed {
    type Hasher = KeyedHasher;

    #[inline]
    fn build_hasher(&self) -> KeyedHasher {
        let Self([state, factor]) = *self;
        KeyedHasher { state, factor: factor | 1 }
    }
}

/// The state of one hash.
pub(crate) struct KeyedHasher {
    state: u64,
    factor: u64,
}

impl Hasher for KeyedHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        let [low, high] = halves(u128::from(self.state ^ number) * u128::from(self.factor));
        self.state = low ^ high;
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut number = [0; 8];
            number[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(number));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.state
    }
}

/// The low and the high half of `product`.
#[inline]
fn halves(product: u128) -> [u64; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "each half has 64 bits")]
    [product as u64, (product >> 64) as u64]
}

#[cfg(test)]
impl Keyed {
    /// A hash function with these keys.
    pub(crate) fn with_keys(keys: [u64; 2]) -> Self {
        Self(keys)
    }
}

/// Keys that have one hash under a hash function without a random key.
#[cfg(test)]
pub(crate) mod collisions {
    /// The factor of [`FxBuildHasher`](rustc_hash::FxBuildHasher).
    pub(crate) const FX_FACTOR: u64 = 0xf135_7aea_2e62_a9c5;

    /// Numbers whose hashes under [`FxBuildHasher`](rustc_hash::FxBuildHasher) are equal in the bits that choose the
    /// bucket. The products with the factor are small.
    pub(crate) fn numbers(count: u64) -> Vec<u64> {
        let mut inverse = 1u64;
        for _ in 0..6 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(FX_FACTOR.wrapping_mul(inverse)));
        }
        (1..=count).map(|number| number.wrapping_mul(inverse)).collect()
    }

    /// How many of `hashes` lie in the fullest bucket of a table that has room for all of them.
    pub(crate) fn fullest_bucket(hashes: &[u64]) -> usize {
        let mut buckets = vec![0; (2 * hashes.len()).next_power_of_two()];
        let mask = buckets.len() as u64 - 1;
        for hash in hashes {
            buckets[usize::try_from(hash & mask).expect("a bucket")] += 1;
        }
        buckets.into_iter().max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hash;

    use rustc_hash::FxBuildHasher;

    use super::collisions::{FX_FACTOR, fullest_bucket, numbers};
    use super::*;

    fn fullest<K: Hash>(keys: &[K], hasher: &impl BuildHasher) -> usize {
        fullest_bucket(&keys.iter().map(|key| hasher.hash_one(key)).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_made_to_collide_are_spread() {
        for count in [2000, 4000] {
            let numbers = numbers(count);
            assert_eq!(fullest(&numbers, &FxBuildHasher), numbers.len(), "they collide without a key");
            assert!(fullest(&numbers, &Keyed::default()) < 50);
            let pairs: Vec<(u64, u64)> =
                (0..count).map(|first| (first, first.wrapping_mul(FX_FACTOR.wrapping_neg()))).collect();
            assert_eq!(fullest(&pairs, &FxBuildHasher), pairs.len(), "they collide without a key");
            assert!(fullest(&pairs, &Keyed::default()) < 50);
        }
    }

    #[test]
    fn hashes_depend_on_both_keys() {
        let hash = |keys| Keyed::with_keys(keys).hash_one((1u64, 2u64));
        assert_ne!(hash([3, 5]), hash([4, 5]));
        assert_ne!(hash([3, 5]), hash([3, 7]));
        assert_eq!(hash([3, 5]), hash([3, 5]));
    }
}
