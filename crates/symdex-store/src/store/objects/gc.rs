//! Removes old indexes while others write.
//!
//! No request deletes an object on the condition that nobody has changed it since. So an old index is first replaced by
//! a mark, on that condition, and then the mark is deleted. Readers take a mark for no object. A writer that finds a
//! mark waits until it is gone. If its process was killed, the mark stays: the writer replaces it after
//! [`WRITERS_WAIT`]. A mark is deleted only within [`DELETED_WITHIN`] of its writing, so that no writer has replaced it
//! by then.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use object_store::path::Path as Key;
use object_store::{
    Attribute, Attributes, Error as ClientError, ObjectMeta, ObjectStoreExt as _, PutMode,
    PutOptions as PutRequest, PutPayload, UpdateVersion,
};

use super::errors::Failed;
use super::{ObjectsStore, runtime};
use crate::error::Error;
use crate::store::GcCounts;

/// The metadata field of a mark.
const MARK_FIELD: &str = "symdexremoved";
/// The bytes of a mark: a random number in hexadecimal, so that each mark has another tag. No index is so small.
const MARK_SIZE: u64 = 16;
/// How long after a mark was written its removal may take.
const DELETED_WITHIN: Duration = Duration::from_secs(4);
/// How long a writer waits for the removal of a mark.
pub(super) const WRITERS_WAIT: Duration = Duration::from_secs(10);

/// Whether a list shows `object` as a mark.
pub(super) fn is_mark_in_list(object: &ObjectMeta) -> bool {
    object.size == MARK_SIZE
}

/// Whether an object with these attributes is a mark.
pub(super) fn is_mark(attributes: &Attributes) -> bool {
    attributes.get(&Attribute::Metadata(MARK_FIELD.into())).is_some()
}

/// The version of an object, for conditions.
pub(super) fn version_of(object: &ObjectMeta) -> UpdateVersion {
    UpdateVersion { e_tag: object.e_tag.clone(), version: object.version.clone() }
}

/// The time since the object was written, or nothing if its time is in the future.
pub(super) fn age(object: &ObjectMeta) -> Duration {
    SystemTime::from(object.last_modified).elapsed().unwrap_or_default()
}

impl ObjectsStore {
    /// Removes `listed`, an object of a list, if it is older than `unused`, and counts what was done.
    pub(super) fn collect(&self, listed: &ObjectMeta, unused: Duration, counts: &mut GcCounts) {
        if is_mark_in_list(listed) {
            // Its process may still be about to delete it.
            if age(listed) > self.writers_wait {
                match self.replace_and_delete(listed, self.writers_wait) {
                    Ok(is_removed) => counts.leftovers += u64::from(is_removed),
                    Err(_) => counts.failed += 1,
                }
            }
        } else if self.entry(listed).is_some() {
            if age(listed) > unused {
                counts.count(self.replace_and_delete(listed, unused), listed.size);
            } else {
                counts.kept += 1;
            }
        }
    }

    /// Removes `listed` if the store still has an object of this key that is older than `unused`. Returns whether it
    /// did.
    fn replace_and_delete(&self, listed: &ObjectMeta, unused: Duration) -> Result<bool, Error> {
        let key = &listed.location;
        // A list does not state the version that all providers need for a condition.
        let found = match self.run(key, |client, key| async move { client.head(&key).await }) {
            Err(error) if error.is_not_found() => return Ok(false),
            found => found.map_err(|error| error.at(self.location_of(key), "read"))?,
        };
        if age(&found) <= unused {
            return Ok(false);
        }
        let written = Instant::now();
        Ok(self.mark(&found)? && self.delete_mark(key, written)?)
    }

    /// Replaces `found` by a mark. Returns `false` if somebody has written or removed the object since.
    fn mark(&self, found: &ObjectMeta) -> Result<bool, Error> {
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::Metadata(MARK_FIELD.into()), "1".into());
        let mode = PutMode::Update(version_of(found));
        let request = PutRequest { mode, attributes, ..PutRequest::default() };
        let mark = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        let mark = PutPayload::from(mark.into_bytes());
        let key = &found.location;
        match self.run(key, |client, key| async move { client.put_opts(&key, mark, request).await }) {
            Ok(_) => Ok(true),
            Err(Failed::Client(
                ClientError::Precondition { .. }
                | ClientError::AlreadyExists { .. }
                | ClientError::NotFound { .. },
            )) => Ok(false),
            Err(error) => Err(error.at(self.location_of(key), "remove")),
        }
    }

    /// Deletes the mark at `key`, whose writing began at `written`. If that takes too long, the next gc deletes it.
    fn delete_mark(&self, key: &Key, written: Instant) -> Result<bool, Error> {
        let (client, mark) = (Arc::clone(&self.client), key.clone());
        let delete = async move { client.delete(&mark).await };
        let deleted = runtime::wait(DELETED_WITHIN.saturating_sub(written.elapsed()), delete);
        match deleted.map_err(Failed::from).and_then(|deleted| deleted.map_err(Failed::from)) {
            Err(error) if !error.is_not_found() => Err(error.at(self.location_of(key), "remove")),
            _ => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use symdex::Index;

    use super::super::tests::store;
    use super::*;
    use crate::provenance::{OnConflict, PutOptions};
    use crate::publish::PublishOutcome;
    use crate::store::{Store as _, StoreOptions};
    use crate::test_stores::{entries, id, index, put};

    /// A store in memory with an index of 2 functions, and its object.
    fn store_with_index() -> (ObjectsStore, ObjectMeta) {
        let store = store(&Arc::<InMemory>::default(), &StoreOptions::new());
        put(&store, &index(0xab, 2));
        let object = head(&store);
        (store, object)
    }

    fn head(store: &ObjectsStore) -> ObjectMeta {
        let key = store.key(&id(0xab));
        store.run(&key, |client, key| async move { client.head(&key).await }).expect("there")
    }

    fn functions(store: &ObjectsStore) -> Option<u64> {
        Some(store.open(&id(0xab)).expect("readable")?.metadata().counts.functions)
    }

    #[test]
    fn an_index_that_was_written_after_gc_has_looked_at_it_stays() {
        let (store, found) = store_with_index();
        put(&store, &index(0xab, 3));
        assert!(!store.mark(&found).expect("asked") && functions(&store) == Some(3));
        let now = head(&store);
        assert!(!store.replace_and_delete(&now, Duration::from_secs(60)).expect("asked"), "it is fresh");
        assert_eq!(functions(&store), Some(3));
        assert!(store.replace_and_delete(&now, Duration::ZERO).expect("removed"));
        assert!(!store.replace_and_delete(&now, Duration::ZERO).expect("asked"), "it is gone");
        assert_eq!(functions(&store), None);
    }

    #[test]
    fn a_writer_waits_until_gc_has_removed_what_it_marked() {
        let (store, found) = store_with_index();
        let written = Instant::now();
        assert!(store.mark(&found).expect("marked"));
        // The mark counts as no index.
        assert_eq!((functions(&store), entries(&store)), (None, Vec::new()));
        assert!(store.stat(&id(0xab)).expect("readable").is_none());
        assert!(!store.touch(&id(0xab)).expect("asked") && !store.remove(&id(0xab)).expect("asked"));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| put(&store, &index(0xab, 1)));
            // The writer would be done long before, if it did not wait.
            std::thread::sleep(Duration::from_millis(300));
            assert!(!writer.is_finished());
            assert!(store.delete_mark(&found.location, written).expect("deleted"));
            assert_eq!(writer.join().expect("not panicked"), PublishOutcome::Written);
        });
        assert_eq!(functions(&store), Some(1));
    }

    #[test]
    fn a_mark_of_a_killed_gc_is_replaced_by_a_writer_or_removed_by_the_next_gc() {
        let (mut store, found) = store_with_index();
        assert!(store.mark(&found).expect("marked"));
        assert_eq!(
            store.gc(Duration::ZERO).expect("collected"),
            GcCounts::default(),
            "it may still be in use"
        );
        store.writers_wait = Duration::ZERO;
        assert_eq!(put(&store, &index(0xab, 1)), PublishOutcome::Written);
        assert_eq!(functions(&store), Some(1));
        assert!(store.mark(&head(&store)).expect("marked"));
        let counts = store.gc(Duration::ZERO).expect("collected");
        assert_eq!((counts.leftovers, counts.removed, counts.failed), (1, 0, 0));
        let key = store.key(&id(0xab));
        let head = store.run(&key, |client, key| async move { client.head(&key).await });
        assert!(head.expect_err("no mark is left").is_not_found());
    }

    #[test]
    fn putting_an_old_index_again_renews_it() {
        let (mut store, found) = store_with_index();
        let is_renewed = |store: &ObjectsStore| head(store).e_tag != found.e_tag;
        let keep = |store: &ObjectsStore, functions| {
            let bytes = index(0xab, functions);
            let options = PutOptions::new().on_conflict(OnConflict::Keep);
            store.put_with(&Index::open(&bytes[..]).expect("an index"), &options).expect("put")
        };
        assert_eq!(keep(&store, 2), PublishOutcome::Unchanged);
        assert_eq!(keep(&store, 5), PublishOutcome::ConflictKept);
        assert!(!is_renewed(&store), "it is not a day old");
        store.renewed_after = Duration::ZERO;
        assert_eq!(keep(&store, 5), PublishOutcome::ConflictKept);
        assert!(is_renewed(&store) && functions(&store) == Some(2));
        let stated = store.stat(&id(0xab)).expect("readable").expect("there");
        assert_eq!(stated.digest, Some(Index::open(&index(0xab, 2)[..]).expect("an index").digest()));
    }
}
