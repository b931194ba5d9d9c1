//! The values of images that stores keep as values.

use std::sync::Arc;
use std::time::Instant;

use symdex::Index;

use super::SharedStore;
use super::counts::count;
use super::memory::Kept;
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::store::{FetchedValue, FetchedValues, StoredImage, StoredValues, ValueRequest};

/// The values of an image that are in memory. The others are `None`.
type ValuesInMemory = Vec<Option<Arc<Index<IndexBytes>>>>;

impl SharedStore {
    /// The values of `image` with these numbers, in the order of `numbers`. `image` is what [`open`](Self::open) has
    /// returned. The values that are not in memory are fetched at once.
    ///
    /// # Errors
    ///
    /// As [`StoredValues::fetch`].
    pub(super) fn values(&self, image: &StoredImage, numbers: &[u64]) -> FetchedValues {
        self.values_many(&[(image, numbers)]).pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Values of several images, in the order of `requests`. Each result is that of [`values`](Self::values). The store
    /// is asked once for those that are not in memory.
    pub(super) fn values_many(&self, requests: &[(&StoredImage, &[u64])]) -> Vec<FetchedValues> {
        let in_memory: Vec<_> =
            requests.iter().map(|(image, numbers)| self.values_in_memory(image, numbers)).collect();
        let lacking = requests.iter().zip(&in_memory).filter_map(|((image, numbers), in_memory)| {
            let StoredImage::Values(values) = image else { return None };
            let numbers = numbers.iter().zip(in_memory).filter(|(_, value)| value.is_none());
            let numbers: Vec<_> = numbers.map(|(number, _)| *number).collect();
            (!numbers.is_empty()).then_some((&**values, numbers))
        });
        let lacking: Vec<_> = lacking.collect();
        let wanted = lacking.iter().map(|(values, numbers)| ValueRequest { values: *values, numbers });
        let wanted: Vec<_> = wanted.collect();
        let fetched = self.ask(&self.reads, wanted.len(), || self.store.fetch_many(&wanted));
        let mut fetched = lacking.iter().zip(fetched).map(|((values, numbers), fetched)| {
            fetched.inspect(|fetched| self.keep_values(*values, numbers, fetched))
        });
        let whole = |values: ValuesInMemory| {
            let is_whole = values.iter().all(Option::is_some);
            let more = if is_whole { None } else { fetched.next().transpose()? };
            let mut more = more.into_iter().flatten();
            let value = |value: Option<_>| {
                value.map(FetchedValue::Index).or_else(|| more.next()).unwrap_or(FetchedValue::Lost)
            };
            Ok(values.into_iter().map(value).collect())
        };
        in_memory.into_iter().map(whole).collect()
    }

    fn values_in_memory(&self, image: &StoredImage, numbers: &[u64]) -> ValuesInMemory {
        let StoredImage::Values(values) = image else { return vec![None; numbers.len()] };
        let mut memory = self.shared.memory();
        let mut kept = |number| match memory.get(&self.value_key(&**values, number)) {
            Some((Kept::Value(index), _)) => {
                count(&self.counts.from_memory);
                Some(index)
            }
            _ => None,
        };
        numbers.iter().map(|number| kept(*number)).collect()
    }

    /// Keeps the values that were fetched, those with these numbers.
    fn keep_values(&self, values: &dyn StoredValues, numbers: &[u64], fetched: &[FetchedValue]) {
        let counts = &self.counts;
        for (number, value) in numbers.iter().zip(fetched) {
            match value {
                FetchedValue::Index(index) => {
                    count(&counts.found);
                    let key = self.value_key(values, *number);
                    self.shared.memory().put(key, Kept::Value(Arc::clone(index)), Instant::now());
                }
                FetchedValue::Lost => count(&counts.lost_values),
                FetchedValue::Damaged(_) => count(&counts.failed),
            }
        }
    }
}

impl FetchedValue {
    /// The value with this number of the index at `location`.
    ///
    /// # Errors
    ///
    /// [`Error::LostValue`] or [`Error::DamagedObject`].
    pub(super) fn index(&self, number: u64, location: String) -> Result<&Arc<Index<IndexBytes>>, Error> {
        match self {
            Self::Index(index) => Ok(index),
            Self::Lost => Err(Error::LostValue { location, number }),
            Self::Damaged(what) => Err(Error::DamagedObject { location, what: what.clone() }),
        }
    }
}
