//! Which stores get a new index, and which of two different indexes of an image in several stores stays.

use std::sync::Arc;

use symdex::Index;

use super::{SharedStore, StoreReader};
use crate::error::Error;
use crate::provenance::{OnConflict, PutOptions, is_own};
use crate::publish::PublishOutcome;
use crate::store::StoreEntry;

impl StoreReader {
    /// The first store that can be written. [`publish`](Self::publish) asks it first.
    #[must_use]
    pub fn writable(&self) -> Option<&Arc<SharedStore>> {
        self.writable_stores().next()
    }

    fn writable_stores(&self) -> impl Iterator<Item = &Arc<SharedStore>> {
        self.stores.iter().filter(|store| !store.store().is_read_only())
    }

    /// Puts `index` into the first store that takes it, in the order of the stores. Returns this store and its outcome;
    /// `None` if every store is read-only.
    ///
    /// With [`OnConflict::Keep`], a different index of the image in any other store than the first one that can be
    /// written stays, too: lookups would get other answers. `index` is then put into no store. The result is that other
    /// store, and [`PublishOutcome::ConflictKept`]. As in a single store, a damaged index does not stay, nor does one
    /// that the same token has put.
    ///
    /// # Errors
    ///
    /// The error of the first store that did not take the index, if no store has taken it. With [`OnConflict::Keep`],
    /// also the error of a store that cannot be asked for its index.
    pub fn publish(
        &self,
        index: &Index<&[u8]>,
        options: &PutOptions,
    ) -> Result<Option<(&Arc<SharedStore>, PublishOutcome)>, Error> {
        if options.on_conflict == OnConflict::Keep
            && let Some(store) = self.kept_elsewhere(index, options)?
        {
            return Ok(Some((store, PublishOutcome::ConflictKept)));
        }
        let mut first_error = None;
        for store in self.writable_stores() {
            match store.put(index, options) {
                Ok(outcome) => return Ok(Some((store, outcome))),
                Err(error) => _ = first_error.get_or_insert(error),
            }
        }
        first_error.map_or(Ok(None), Err)
    }

    /// Puts `index` into every store; each decides by itself which index stays. Returns the outcomes in the order of
    /// the stores.
    ///
    /// # Errors
    ///
    /// The error of the first store that did not take the index. The other stores may have it.
    pub fn publish_in_all(
        &self,
        index: &Index<&[u8]>,
        options: &PutOptions,
    ) -> Result<Vec<PublishOutcome>, Error> {
        let outcomes: Vec<_> = self.stores.iter().map(|store| store.put(index, options)).collect();
        outcomes.into_iter().collect()
    }

    /// The store that has a different index of the image, if that index stays. The first store that can be written is
    /// not asked, because it decides when the index is put.
    fn kept_elsewhere(
        &self,
        index: &Index<&[u8]>,
        options: &PutOptions,
    ) -> Result<Option<&Arc<SharedStore>>, Error> {
        let stays = |entry: StoreEntry| {
            !is_own(options, entry.provenance.as_ref()) && entry.digest != Some(index.digest())
        };
        let first = self.writable();
        for store in self.stores.iter().filter(|store| first.is_none_or(|first| !Arc::ptr_eq(first, store))) {
            if store.stat(index.id())?.is_some_and(stays) {
                match store.open(index.id()) {
                    Err(error) if error.cause().is_damage() => {}
                    opened => return opened.map(|_| Some(store)),
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::SystemTime;

    use super::*;
    use crate::provenance::Provenance;
    use crate::test_indexes::index;
    use crate::{IndexFolder, ReaderOptions};

    /// The stores in the folders of these names.
    fn reader(root: &Path, names: &[&str]) -> StoreReader {
        let stores = names.iter().map(|name| Box::new(IndexFolder::new(root.join(name))) as _);
        StoreReader::new(stores.collect(), &ReaderOptions::new())
    }

    /// The position of the store that [`StoreReader::publish`] returns, and the outcome.
    fn publish(
        reader: &StoreReader,
        functions: u64,
        options: &PutOptions,
    ) -> Option<(usize, PublishOutcome)> {
        let bytes = index(7, functions, 1, "x");
        let index = Index::open(bytes.as_bytes()).expect("an index");
        let published = reader.publish(&index, options).expect("published");
        published.map(|(store, outcome)| (store.number, outcome))
    }

    #[test]
    fn the_first_store_that_takes_an_index_gets_it() {
        let root = tempfile::tempdir().expect("a folder");
        // A file cannot be a folder of indexes.
        fs::write(root.path().join("file"), "").expect("written");
        let more = PutOptions::new();
        let both = reader(root.path(), &["file", "a", "b"]);
        assert_eq!(publish(&both, 1, &more), Some((1, PublishOutcome::Written)));
        assert_eq!(publish(&both, 1, &more), Some((1, PublishOutcome::Unchanged)));
        assert!(!root.path().join("b").exists());
        assert_eq!(publish(&reader(root.path(), &[]), 1, &more), None);
        let bytes = index(7, 1, 1, "x");
        let index = Index::open(bytes.as_bytes()).expect("an index");
        reader(root.path(), &["file"]).publish(&index, &more).expect_err("no store takes it");
        both.publish_in_all(&index, &more).expect_err("one store fails");
        assert!(root.path().join("b").exists(), "the others get it");
    }

    #[test]
    fn a_different_index_in_another_store_stays_if_the_rule_is_to_keep() {
        let by = |token: &str| {
            let provenance =
                Provenance { token: Some(token.to_owned()), ..Provenance::new(SystemTime::UNIX_EPOCH) };
            PutOptions::new().on_conflict(OnConflict::Keep).provenance(Some(provenance))
        };
        let root = tempfile::tempdir().expect("a folder");
        let put = |first: &str, functions, token| {
            publish(&reader(root.path(), &[first, "last"]), functions, &by(token))
        };
        let last = publish(&reader(root.path(), &["last"]), 1, &by("ci"));
        assert_eq!(last, Some((0, PublishOutcome::Written)));
        assert_eq!(put("a", 2, "other"), Some((1, PublishOutcome::ConflictKept)));
        assert!(!root.path().join("a").exists());
        assert_eq!(put("b", 1, "other"), Some((0, PublishOutcome::Written)), "the indexes are equal");
        assert_eq!(put("c", 2, "ci"), Some((0, PublishOutcome::Written)), "one token has put both");
        let path = IndexFolder::new(root.path().join("last")).find(index(7, 1, 1, "x").id());
        fs::write(path.expect("readable").expect("there"), "symdex").expect("written");
        assert_eq!(put("d", 2, "other"), Some((0, PublishOutcome::Written)), "it is damaged");
    }
}
