//! Asks stores again for images in memory.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use symdex::ImageId;

use super::memory::{Kept, Key, Part};
use super::shared_store::Opened;
use super::{OpenImage, SharedStore};

/// How many threads of one store may ask again for images in memory at one time.
const MAX_REFRESHING: usize = 4;

/// The right of a thread to ask a store again. Dropping it, also by a panic of the store, lets another thread ask.
struct Slot(Arc<SharedStore>);

impl Slot {
    /// `None` if as many threads wait for `store` as may: it does not answer then.
    fn of(store: &Arc<SharedStore>) -> Option<Self> {
        let others = store.refreshing.fetch_add(1, Ordering::Relaxed);
        Some(Self(Arc::clone(store))).filter(|_| others < MAX_REFRESHING)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.refreshing.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SharedStore {
    /// Asks the store again for the images `ids`, which are in memory. If it does not answer within `patience`, those
    /// in memory are the result.
    pub(super) fn refresh(self: &Arc<Self>, ids: Vec<ImageId>, patience: Duration) -> Vec<Opened> {
        if ids.is_empty() {
            return Vec::new();
        }
        let (asked, (sender, refreshed)) = (ids.clone(), mpsc::sync_channel(1));
        let ask = move |Slot(store): &Slot| {
            let keys = asked.iter().map(|id| store.key(id, Part::Image)).collect();
            store.open_left(&asked, keys, asked.iter().map(|_| None).collect())
        };
        let thread = std::thread::Builder::new().name("symdex-refresh".to_owned());
        let in_time = Slot::of(self)
            .and_then(|slot| thread.spawn(move || _ = sender.send(ask(&slot))).ok())
            .and_then(|_| refreshed.recv_timeout(patience).ok());
        in_time.unwrap_or_else(|| {
            let in_memory = |id| self.old_image(&self.key(id, Part::Image)).map(Some);
            // It may have been dropped from memory meanwhile.
            ids.iter().map(|id| in_memory(id).ok_or_else(|| self.unanswered(patience))).collect()
        })
    }

    /// The image in memory, however old it is.
    pub(super) fn old_image(self: &Arc<Self>, key: &Key) -> Option<OpenImage> {
        match self.shared.memory().get(key)? {
            (Kept::Image(image), _) => Some(self.image(image)),
            _ => None,
        }
    }
}
