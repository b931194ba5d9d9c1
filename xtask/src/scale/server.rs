//! One reading server: which of its reads its caches answer.

use anyhow::Result;
use lru::LruCache;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};
use rand_distr::{Distribution as _, Zipf};

use super::Fleet;
use super::measure::MeasuredIndex;

/// The memory that the metadata of an image takes in the cache, in bytes.
const METADATA_SIZE: u64 = 1_000;

/// The reads of one server, summed over all counted reports.
#[derive(Default)]
pub(crate) struct Reads {
    pub(crate) reports: u64,
    /// Values that the reports need, each counted once a report.
    pub(crate) values: u64,
    pub(crate) values_read: u64,
    pub(crate) bytes_read: u64,
    /// Pipelined requests to Redis: one for the metadata that is not in memory, one for the values that are not.
    pub(crate) round_trips: u64,
    /// Reports that read nothing from Redis.
    pub(crate) reports_from_memory: u64,
    /// Images that the reports need.
    pub(crate) images: u64,
    pub(crate) objects_read: u64,
    pub(crate) object_bytes_read: u64,
}

/// A cache that drops what was not used for the longest time.
struct Cache {
    entries: LruCache<(usize, Option<usize>), u64>,
    left: u64,
}

impl Cache {
    fn new(size: u64) -> Self {
        Self { entries: LruCache::unbounded(), left: size }
    }

    /// Whether `key` is in the cache. It is there afterwards, with its `size` in bytes.
    fn uses(&mut self, key: (usize, Option<usize>), size: u64) -> bool {
        if self.entries.get(&key).is_some() {
            return true;
        }
        while self.left < size {
            let Some((_, dropped)) = self.entries.pop_lru() else { return false };
            self.left += dropped;
        }
        self.left -= size;
        self.entries.put(key, size);
        false
    }
}

/// Simulates the reports of one server: first those that fill its caches, then as many that are counted. The same
/// arguments give the same result.
///
/// # Errors
/// An exponent is invalid.
pub(crate) fn simulate(fleet: &Fleet, measured: &[MeasuredIndex]) -> Result<Reads> {
    let mut random = SmallRng::seed_from_u64(1);
    let images = Zipf::new(fleet.images as f64, fleet.image_exponent)?;
    let functions = measured
        .iter()
        .map(|index| Zipf::new(index.functions as f64, fleet.function_exponent))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut memory, mut disk) = (Cache::new(fleet.memory), Cache::new(fleet.disk));
    let mut reads = Reads::default();
    let mut needed = Vec::new();
    for number in 0..2 * fleet.reports {
        if number == fleet.reports {
            reads = Reads::default();
        }
        needed.clear();
        for frame in 0..fleet.frames_per_report {
            if frame % fleet.frames_per_report.div_ceil(fleet.images_per_report) == 0 {
                let image = rank(images.sample(&mut random));
                needed.push((image, None));
            }
            let Some(&(image, _)) = needed.last() else { continue };
            let kind = image % measured.len();
            let function = rank(functions[kind].sample(&mut random));
            needed.push((image, Some(value_of(image, function, measured[kind].values.len()))));
        }
        needed.sort_unstable();
        needed.dedup();
        count_report(&mut reads, &needed, measured, &mut memory, &mut disk);
    }
    Ok(reads)
}

/// A rank of Zipf's law, 1 for the most frequent.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ranks are whole numbers from 1")]
fn rank(sample: f64) -> usize {
    sample as usize
}

/// The position of the value that has `function`. Often used functions are anywhere in an image, so the position is
/// drawn, always the same for one function.
fn value_of(image: usize, function: usize, values: usize) -> usize {
    SmallRng::seed_from_u64((image as u64) << 32 | function as u64).random_range(0..values)
}

/// Counts the reads of one report. `needed` has each image, followed by its values; an image itself has no value.
fn count_report(
    reads: &mut Reads,
    needed: &[(usize, Option<usize>)],
    measured: &[MeasuredIndex],
    memory: &mut Cache,
    disk: &mut Cache,
) {
    let (mut reads_metadata, mut reads_values) = (false, false);
    for &(image, value) in needed {
        let index = &measured[image % measured.len()];
        let Some(value) = value else {
            reads.images += 1;
            reads_metadata |= !memory.uses((image, None), METADATA_SIZE);
            if !disk.uses((image, None), index.index_size) {
                reads.objects_read += 1;
                reads.object_bytes_read += index.object_size;
            }
            continue;
        };
        let size = &index.values[value];
        reads.values += 1;
        if !memory.uses((image, Some(value)), size.opened_size) {
            reads_values = true;
            reads.values_read += 1;
            reads.bytes_read += size.stored_size;
        }
    }
    reads.reports += 1;
    reads.round_trips += u64::from(reads_metadata) + u64::from(reads_values);
    reads.reports_from_memory += u64::from(!reads_metadata && !reads_values);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::measure::MeasuredValue;

    fn measured() -> Vec<MeasuredIndex> {
        let values = (0..10).map(|_| MeasuredValue { stored_size: 30, opened_size: 40 }).collect();
        vec![MeasuredIndex { name: "App".into(), functions: 100, index_size: 300, object_size: 200, values }]
    }

    #[test]
    fn a_cache_drops_what_was_not_used_for_the_longest_time() {
        let mut cache = Cache::new(100);
        assert!(!cache.uses((1, None), 50));
        assert!(!cache.uses((2, None), 50));
        assert!(cache.uses((1, None), 50));
        assert!(!cache.uses((3, None), 50));
        assert!(cache.uses((1, None), 50));
        assert!(!cache.uses((2, None), 50));
        // An entry larger than the cache is never in it.
        assert!(!cache.uses((4, None), 200));
        assert!(!cache.uses((4, None), 200));
    }

    #[test]
    fn caches_that_hold_everything_read_each_thing_once() {
        let mut fleet = Fleet { images: 5, images_per_report: 1, reports: 2_000, ..Fleet::default() };
        let reads = simulate(&fleet, &measured()).expect("valid");
        assert_eq!((reads.values_read, reads.objects_read, reads.round_trips), (0, 0, 0));
        assert_eq!((reads.reports, reads.reports_from_memory, reads.images), (2_000, 2_000, 2_000));
        (fleet.memory, fleet.disk) = (0, 0);
        let reads = simulate(&fleet, &measured()).expect("valid");
        assert_eq!((reads.values_read, reads.objects_read), (reads.values, reads.images));
        assert_eq!(reads.round_trips, 2 * reads.reports);
        assert_eq!(reads.bytes_read, 30 * reads.values);
    }
}
