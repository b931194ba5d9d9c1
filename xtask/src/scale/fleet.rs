//! What the stores of a fleet keep: computed, not simulated.

use super::Fleet;
use super::measure::MeasuredIndex;

/// The memory that Redis takes for a key and its bookkeeping, beside the bytes of the value: the key of 60 bytes, its
/// entries in two hash tables (keys and expiry times), and object headers.
pub(crate) const REDIS_KEY_BYTES: f64 = 180.0;

const SECONDS_PER_DAY: f64 = 86_400.0;
/// An image is renewed at most once in this time.
const SECONDS_PER_RENEWAL: f64 = 3_600.0;

/// What is in the stores at a time.
pub(crate) struct Kept {
    /// Images that did not expire.
    pub(crate) images: f64,
    /// Keys in Redis: the values and one metadata key for each image.
    pub(crate) redis_keys: f64,
    /// The memory that the values take.
    pub(crate) redis_values: f64,
    /// The memory of Redis, without replicas.
    pub(crate) redis_memory: f64,
    /// The bytes of the objects.
    pub(crate) object_bytes: f64,
    /// How often a second the expiry of an image is renewed.
    pub(crate) renewals_per_second: f64,
}

impl Kept {
    /// The images take turns in having the sizes of `measured`.
    ///
    /// The reads of an image are a Poisson process. An image is there if it was read within the TTL. It is renewed at
    /// the first read after an hour, or after a tenth of the TTL if that is less.
    pub(crate) fn of(fleet: &Fleet, measured: &[MeasuredIndex]) -> Self {
        let ttl = fleet.ttl_days * SECONDS_PER_DAY;
        let reads_per_second = fleet.reports_per_second * fleet.images_per_report as f64;
        let weight = |rank: u64| (rank as f64).powf(-fleet.image_exponent);
        let all_weights: f64 = (1..=fleet.images).map(weight).sum();
        let (mut images, mut renewals_per_second) = (0.0, 0.0);
        for rank in 1..=fleet.images {
            let reads = reads_per_second * weight(rank) / all_weights;
            images += 1.0 - (-reads * ttl).exp();
            renewals_per_second += 1.0 / (SECONDS_PER_RENEWAL.min(ttl / 10.0) + 1.0 / reads);
        }
        let mean = |size: &dyn Fn(&MeasuredIndex) -> u64| {
            measured.iter().map(size).sum::<u64>() as f64 / measured.len() as f64
        };
        let redis_keys = images * (mean(&|index| index.values.len() as u64) + 1.0);
        let redis_values = images * mean(&MeasuredIndex::allocated_size);
        Self {
            images,
            redis_keys,
            redis_values,
            redis_memory: redis_values + redis_keys * REDIS_KEY_BYTES,
            object_bytes: images * mean(&|index| index.object_size),
            renewals_per_second,
        }
    }
}
