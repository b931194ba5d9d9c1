//! Folders of indexes that are searched for the images of reports.

use std::collections::HashMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use symdex::ImageId;
use symdex_store::{Error, IndexFolder};

/// How long a folder is not searched again for an image that it does not have, as [`symdex_store::ReaderOptions`] has
/// it for stores.
const ABSENT: Duration = Duration::from_secs(60);
/// How many images are remembered at most.
const MOST: usize = 10_000;

/// A folder of indexes, and the images that it did not have lately: most reports have the same images of the system.
pub(crate) struct SearchedFolder {
    folder: IndexFolder,
    absent: Mutex<HashMap<ImageId, Instant>>,
}

impl SearchedFolder {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { folder: IndexFolder::new(path), absent: Mutex::default() }
    }

    /// As [`IndexFolder::find_all`]. An image that was added within a minute after it was searched may be missing.
    ///
    /// # Errors
    ///
    /// As [`IndexFolder::find_all`].
    pub(crate) fn search(&self, id: &ImageId) -> Result<Vec<PathBuf>, Error> {
        let absent = || self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        if absent().get(id).is_some_and(|since| since.elapsed() < ABSENT) {
            return Ok(Vec::new());
        }
        let found = self.folder.find_all(id)?;
        if found.is_empty() {
            let mut absent = absent();
            if absent.len() >= MOST {
                absent.clear();
            }
            absent.insert(id.clone(), Instant::now());
        }
        Ok(found)
    }
}

impl Deref for SearchedFolder {
    type Target = IndexFolder;

    fn deref(&self) -> &IndexFolder {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use symdex_testkit::indexes::{id, index};

    use super::*;

    #[test]
    fn an_image_that_was_absent_is_not_searched_again_and_one_that_is_there_is() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = SearchedFolder::new(root.path().to_owned());
        let path = |number| root.path().join(IndexFolder::file_name(&id(number)));
        fs::write(path(7), index(7, 1)).expect("written");
        assert_eq!(folder.search(&id(7)).expect("readable"), [path(7)]);
        assert!(folder.search(&id(8)).expect("readable").is_empty());
        fs::write(path(8), index(8, 1)).expect("written");
        assert!(folder.search(&id(8)).expect("readable").is_empty());
        fs::remove_file(path(7)).expect("removed");
        assert!(folder.search(&id(7)).expect("readable").is_empty());
        for number in 0..=MOST {
            let id = ImageId::new(&number.to_le_bytes()).expect("an id");
            assert!(folder.search(&id).expect("readable").is_empty());
            assert!(folder.absent.lock().expect("not poisoned").len() <= MOST);
        }
    }
}
