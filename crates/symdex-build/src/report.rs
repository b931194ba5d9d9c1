//! What a build could not do, by reason.

use std::collections::BTreeMap;

use symdex::Partial;

/// Reasons and counts of what an index lacks; the same file gives the same problems, on any number of threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problems(BTreeMap<String, u64>);

impl Problems {
    pub(crate) fn add(&mut self, reason: &str, count: u64) {
        if count != 0 {
            *self.0.entry(reason.to_owned()).or_default() += count;
        }
    }

    /// A unit, by its offset in `.debug_info`, that could not be read, or not to its end.
    pub(crate) fn unit(&mut self, offset: usize, error: &str) {
        const LISTED: usize = 20;
        // A hostile file has any number of bad units, and each its own text; the first ones say enough.
        if self.0.len() < LISTED {
            self.add(&format!("unit at {offset:#x}: {error}"), 1);
        } else {
            self.add("more units that could not be read", 1);
        }
    }

    pub(crate) fn merge(&mut self, other: Problems) {
        other.0.into_iter().for_each(|(reason, count)| *self.0.entry(reason).or_default() += count);
    }

    pub(crate) fn into_partial(self) -> Vec<Partial> {
        self.0.into_iter().map(|(reason, count)| Partial { reason, count }).collect()
    }
}
