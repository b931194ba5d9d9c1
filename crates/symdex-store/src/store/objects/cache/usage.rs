//! How many bytes the cache has, without listing it.
//!
//! The file has two numbers of 8 bytes: the bytes of all indexes that were installed since the folder was listed, added
//! to those that it had then; and when it was listed, in seconds since 1970. Indexes that were removed since are still
//! counted, so the number is never too small. Processes lock the file while they change it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The folder is listed at least this often, to remove what killed processes have left.
const LISTED_EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// The file that counts the bytes.
#[derive(Debug)]
pub(super) struct Usage {
    path: PathBuf,
}

impl Usage {
    /// The file at `path`. Nothing is read or created until another method is called.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Adds `bytes`, which are in the folder already. If there may be more than `limit`, if the number is not known,
    /// and once a day, calls `list`, which lists the folder, removes indexes and returns how many bytes are left.
    pub(super) fn add(&self, bytes: u64, limit: u64, now: SystemTime, list: impl Fn() -> u64) {
        if self.try_add(bytes, limit, now, &list).is_err() {
            list();
        }
    }

    fn try_add(&self, bytes: u64, limit: u64, now: SystemTime, list: impl Fn() -> u64) -> io::Result<()> {
        let mut file =
            File::options().create(true).truncate(false).read(true).write(true).open(&self.path)?;
        file.lock()?;
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let is_due = |listed: u64| now.checked_sub(listed).is_none_or(|age| age >= LISTED_EVERY.as_secs());
        let known = read(&mut file).map(|(total, listed)| (total.saturating_add(bytes), listed));
        let (total, listed) = match known {
            Some((total, listed)) if total <= limit && !is_due(listed) => (total, listed),
            _ => (list(), now),
        };
        file.rewind()?;
        file.write_all(&[total.to_le_bytes(), listed.to_le_bytes()].concat())
    }
}

/// The two numbers; `None` if the file is new or damaged.
fn read(file: &mut File) -> Option<(u64, u64)> {
    let mut numbers = [[0; 8]; 2];
    file.read_exact(numbers.as_flattened_mut()).ok()?;
    let [total, listed] = numbers.map(u64::from_le_bytes);
    Some((total, listed))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_folder_is_listed_only_if_it_may_be_too_large_and_once_a_day() {
        let folder = tempfile::tempdir().expect("a folder");
        let usage = Usage::new(folder.path().join("usage"));
        let (now, listed) = (SystemTime::now(), Cell::new(0));
        let add = |bytes, now, left: u64| {
            usage.add(bytes, 100, now, || {
                listed.set(listed.get() + 1);
                left
            });
            listed.get()
        };
        assert_eq!(add(10, now, 50), 1, "the number is not known");
        assert_eq!((add(20, now, 0), add(30, now, 0)), (1, 1));
        assert_eq!(add(1, now, 90), 2, "101 bytes");
        assert_eq!((add(10, now, 0), add(1, now, 90)), (2, 3), "a list corrects the number");
        assert_eq!(add(0, now + LISTED_EVERY, 0), 4);
        std::fs::write(folder.path().join("usage"), "damaged").expect("written");
        assert_eq!(add(0, now, 0), 5);
    }
}
