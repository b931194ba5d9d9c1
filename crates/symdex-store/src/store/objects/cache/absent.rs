//! The images that a store did not have when it was asked.
//!
//! The file is a table of 65,536 slots of 16 bytes: the hash of an id, and the time of the answer in milliseconds since
//! 1970. An image has one slot, which the next image with the same slot takes over. So the file never has more than
//! 1 MiB, and a question costs one read. Two processes that write the same slot at once can leave a wrong time for one
//! of the two images: it is then asked for a little earlier or later.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use symdex::ImageId;
use xxhash_rust::xxh3::xxh3_64;

/// For this time, a store is not asked again for an image that it did not have.
const REMEMBERED: Duration = Duration::from_secs(60);
const SLOTS: u64 = 1 << 16;
const SLOT_SIZE: usize = 16;

/// The table in a file. If the file cannot be read or written, nothing is remembered.
#[derive(Debug)]
pub(super) struct Absent {
    path: PathBuf,
    /// `None` before the first use, and if the file cannot be opened.
    file: Mutex<Option<File>>,
}

impl Absent {
    /// The table at `path`. Nothing is read or created until another method is called.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file: Mutex::new(None) }
    }

    /// Whether the store did not have `id` in the last minute before `now`.
    pub(super) fn has(&self, id: &ImageId, now: SystemTime) -> bool {
        let mut slot = [0; SLOT_SIZE];
        let read = self.with_slot(id, |file| file.read_exact(&mut slot));
        let (hash, time) = slot.split_at(8);
        let is_recent = |time| {
            let age = now.duration_since(UNIX_EPOCH + Duration::from_millis(time));
            age.is_ok_and(|age| age < REMEMBERED)
        };
        let time = time.try_into().map(u64::from_le_bytes);
        read.is_ok() && hash == hash_of(id).to_le_bytes() && time.is_ok_and(is_recent)
    }

    /// Remembers that the store did not have `id` at `now`.
    pub(super) fn add(&self, id: &ImageId, now: SystemTime) {
        let time = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = u64::try_from(time.as_millis()).unwrap_or_default();
        let slot = [hash_of(id).to_le_bytes(), time.to_le_bytes()].concat();
        _ = self.with_slot(id, |file| file.write_all(&slot));
    }

    /// Forgets `id`: the store may have it now.
    pub(super) fn remove(&self, id: &ImageId) {
        if self.path.exists() {
            _ = self.with_slot(id, |file| file.write_all(&[0; SLOT_SIZE]));
        }
    }

    /// Calls `work` with the file at the slot of `id`.
    fn with_slot<T>(&self, id: &ImageId, work: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(
                File::options().create(true).truncate(false).read(true).write(true).open(&self.path)?,
            ),
        };
        file.seek(SeekFrom::Start(hash_of(id) % SLOTS * SLOT_SIZE as u64))?;
        work(file)
    }
}

fn hash_of(id: &ImageId) -> u64 {
    xxh3_64(id.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_stores::id;

    #[test]
    fn an_image_is_remembered_for_a_minute_by_all_processes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("absent");
        let (one, other) = (Absent::new(path.clone()), Absent::new(path.clone()));
        let now = SystemTime::now();
        one.remove(&id(1));
        assert!(!path.exists(), "nothing is created for nothing");
        assert!(!one.has(&id(1), now));
        one.add(&id(1), now);
        assert!(one.has(&id(1), now) && other.has(&id(1), now) && !other.has(&id(2), now));
        assert!(other.has(&id(1), now + REMEMBERED - Duration::from_millis(2)));
        assert!(!other.has(&id(1), now + REMEMBERED));
        // A clock that was set back does not prolong it.
        assert!(!other.has(&id(1), now - REMEMBERED));
        other.remove(&id(1));
        assert!(!one.has(&id(1), now));
    }

    #[test]
    fn the_file_stays_small_and_its_bytes_may_be_anything() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("absent");
        let (absent, now) = (Absent::new(path.clone()), SystemTime::now());
        for number in 1..=100_000_u32 {
            absent.add(&ImageId::new(&number.to_be_bytes().repeat(4)).expect("an id"), now);
        }
        assert!(path.metadata().expect("a file").len() <= SLOTS * SLOT_SIZE as u64);
        std::fs::write(&path, [0xff; 100]).expect("written");
        for byte in 1..=200 {
            assert!(!absent.has(&id(byte), now));
        }
    }
}
