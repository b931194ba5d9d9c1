//! Finds ids by their start.

use std::sync::Arc;
use std::time::Instant;

use symdex::ImageId;

use super::SharedStore;
use super::memory::{Kept, Key, Part};
use crate::error::Error;

impl SharedStore {
    /// The ids in the store that begin with each of `starts`; see
    /// [`Store::ids_from`](crate::Store::ids_from). Those in memory are not asked for again for a while.
    pub fn ids_from(&self, starts: &[ImageId]) -> Vec<Result<Arc<[ImageId]>, Error>> {
        let key = |start: &ImageId| self.key(start, Part::Ids);
        let mut found: Vec<_> = starts.iter().map(|start| self.fresh_ids(&key(start)).map(Ok)).collect();
        let missing: Vec<_> = starts.iter().zip(&found).filter(|(_, found)| found.is_none()).collect();
        let missing: Vec<_> = missing.into_iter().map(|(start, _)| start.clone()).collect();
        let asked = self.ask(&self.reads, missing.len(), || self.store.ids_from(&missing));
        let gaps = found.iter_mut().filter(|found| found.is_none());
        for ((gap, start), ids) in gaps.zip(&missing).zip(asked) {
            *gap = Some(ids.map(|ids| {
                let ids: Arc<[ImageId]> = ids.into();
                self.shared.memory().put(key(start), Kept::Ids(Arc::clone(&ids)), Instant::now());
                ids
            }));
        }
        found.into_iter().map(|found| found.unwrap_or_else(|| Ok(Arc::new([])))).collect()
    }

    /// The ids in memory, if they need not be asked for again.
    fn fresh_ids(&self, key: &Key) -> Option<Arc<[ImageId]>> {
        let (Kept::Ids(ids), since) = self.shared.memory().get(key)? else { return None };
        let fresh = if ids.is_empty() { self.shared.absent } else { self.shared.fresh };
        (since.elapsed() < fresh).then_some(ids)
    }
}
