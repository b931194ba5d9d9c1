//! Finds ids by their start.

use std::sync::Arc;
use std::time::Instant;

use symdex::ImageId;

use super::StoreReader;
use super::memory::{Kept, Key, Part};
use crate::error::Error;

impl StoreReader {
    /// The ids in the store with this number that begin with each of `starts`; see
    /// [`Store::ids_from`](crate::Store::ids_from). Those in memory are not asked for again for a while.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn ids_from(&self, store: usize, starts: &[ImageId]) -> Vec<Result<Arc<[ImageId]>, Error>> {
        let key = |start: &ImageId| Key { store, id: start.clone(), part: Part::Ids };
        let mut found: Vec<_> = starts.iter().map(|start| self.fresh_ids(&key(start)).map(Ok)).collect();
        let missing: Vec<_> = starts.iter().zip(&found).filter(|(_, found)| found.is_none()).collect();
        let missing: Vec<_> = missing.into_iter().map(|(start, _)| start.clone()).collect();
        let asked = self.ask(store, missing.len(), || self.stores[store].ids_from(&missing));
        let gaps = found.iter_mut().filter(|found| found.is_none());
        for ((gap, start), ids) in gaps.zip(&missing).zip(asked) {
            *gap = Some(ids.map(|ids| {
                let ids: Arc<[ImageId]> = ids.into();
                self.memory().put(key(start), Kept::Ids(Arc::clone(&ids)), Instant::now());
                ids
            }));
        }
        found.into_iter().map(|found| found.unwrap_or_else(|| Ok(Arc::new([])))).collect()
    }

    /// The ids in memory, if they need not be asked for again.
    fn fresh_ids(&self, key: &Key) -> Option<Arc<[ImageId]>> {
        let (Kept::Ids(ids), since) = self.memory().get(key)? else { return None };
        let fresh = if ids.is_empty() { self.absent } else { self.fresh };
        (since.elapsed() < fresh).then_some(ids)
    }
}
