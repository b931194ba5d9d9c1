//! A folder of indexes that were fetched from an object store.
//!
//! The index of an image is `CACHE/STORE/0c/0c37....symdex`. `STORE` is a hash of the store's URL and of the server
//! that the environment names. Beside the index is `0c37....tag` with the tag of its object. The time of the index is
//! its last use, that of the tag is when the store had the object with this tag. `CACHE/STORE/absent` has the images
//! that the store does not have, `CACHE/usage` the bytes of the cache.

mod absent;
mod usage;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use symdex::ImageId;
use tempfile::NamedTempFile;
use walkdir::WalkDir;
use xxhash_rust::xxh3::xxh3_64;

use self::absent::Absent;
use self::usage::Usage;
use crate::access::create_private_folder;
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::folder::{EXTENSION, IndexFolder};
use crate::publish::{is_abandoned, temporary};
use crate::single_flight::{Flight, LONGEST_WAIT, SingleFlight};
use crate::store::StoreUrl;

/// For this time, the store is not asked whether an index has changed. A use is recorded at most once in it.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// Tags of object stores have less than 100 bytes.
const MAX_TAG: u64 = 4096;

/// A cache of the indexes of one store.
#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
    folder: IndexFolder,
    /// The bytes that all stores may take in the cache.
    size: u64,
    usage: Usage,
    absent: Absent,
    /// The images that are being fetched.
    flights: SingleFlight<ImageId>,
}

/// An index in the cache.
pub(super) struct Cached {
    pub(super) bytes: IndexBytes,
    /// The tag of the object, if the store gave one.
    pub(super) tag: Option<String>,
    /// Whether the store was asked recently.
    pub(super) is_fresh: bool,
}

impl Cache {
    /// The part of the cache in `root` that is for the store `url` at `server`.
    ///
    /// # Errors
    ///
    /// [`Error`] if the folder cannot be created, or if other users may write to it.
    pub(super) fn new(root: &Path, size: u64, url: &StoreUrl, server: &str) -> Result<Self, Error> {
        let folder = root.join(format!("{:016x}", xxh3_64(format!("{url} {server}").as_bytes())));
        create_private(root).map_err(|error| failed("create the cache", root, error))?;
        create_private(&folder).map_err(|error| failed("create the cache", &folder, error))?;
        let (usage, absent) = (Usage::new(root.join("usage")), Absent::new(folder.join("absent")));
        let folder = IndexFolder::new(folder).fan_out();
        Ok(Self { root: root.to_owned(), folder, size, usage, absent, flights: SingleFlight::default() })
    }

    /// Whether the store did not have `id` when it was asked lately.
    pub(super) fn is_absent(&self, id: &ImageId) -> bool {
        self.absent.has(id, SystemTime::now())
    }

    /// Records that the store has `id`.
    pub(super) fn set_there(&self, id: &ImageId) {
        if self.is_absent(id) {
            self.absent.remove(id);
        }
    }

    /// Records that the store does not have `id`. Removes the index that it had.
    pub(super) fn set_absent(&self, id: &ImageId) {
        self.forget(id);
        self.absent.add(id, SystemTime::now());
    }

    /// Waits until no other thread fetches `id`. Returns `None` if that takes too long: both may then fetch it, because
    /// each index is renamed into its place.
    pub(super) fn turn(&self, id: &ImageId) -> Option<Flight<'_, ImageId>> {
        self.flights.turn(std::slice::from_ref(id), LONGEST_WAIT)
    }

    /// The index of `id`; `None` if the cache does not have it. Records a use.
    pub(super) fn find(&self, id: &ImageId) -> Option<Cached> {
        let path = self.folder.path_of_new(id);
        let tag_path = path.with_extension("tag");
        // The tag is read first: it is removed before the index changes.
        let asked = age(&tag_path)?;
        let is_short = fs::metadata(&tag_path).is_ok_and(|tag| tag.len() <= MAX_TAG);
        let tag = fs::read_to_string(&tag_path).ok().filter(|_| is_short)?;
        let bytes = symdex::map_file(&path).ok()?.into();
        if age(&path).is_some_and(|age| age > FRESH) {
            set_now(&path);
        }
        Some(Cached { bytes, tag: Some(tag).filter(|tag| !tag.is_empty()), is_fresh: asked < FRESH })
    }

    /// Records that the store still has the same object.
    pub(super) fn renew(&self, id: &ImageId) {
        set_now(&self.folder.path_of_new(id).with_extension("tag"));
    }

    /// The store is asked at the next use of `id`. If the tag of the object is still the same, it is not fetched again.
    pub(super) fn doubt(&self, id: &ImageId) {
        self.absent.remove(id);
        let tag = self.folder.path_of_new(id).with_extension("tag");
        _ = fs::File::open(tag).and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH));
    }

    /// Removes what is known of `id`, so that the store is asked.
    pub(super) fn forget(&self, id: &ImageId) {
        self.absent.remove(id);
        let path = self.folder.path_of_new(id);
        let _turn = self.folder.lock(id);
        _ = fs::remove_file(path.with_extension("tag"));
        _ = fs::remove_file(path);
    }

    /// A file for the index of `id`, for [`install`](Self::install).
    pub(super) fn file(&self, id: &ImageId) -> Result<NamedTempFile, Error> {
        let folder = self.folder.subfolder(id);
        let file = create_private(&folder).and_then(|()| temporary(&folder));
        file.map_err(|error| failed("create a file", &folder, error))
    }

    /// Makes `file` the index of `id`, and removes others if the cache is too large.
    pub(super) fn install(&self, id: &ImageId, file: NamedTempFile, tag: Option<&str>) -> Result<(), Error> {
        let path = self.folder.path_of_new(id);
        let tag_path = path.with_extension("tag");
        let install = || {
            file.as_file().sync_all()?;
            // Without the lock, two processes could leave the index of one and the tag of the other.
            let _turn = self.folder.lock(id);
            match fs::remove_file(&tag_path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => file.persist(&path)?,
            };
            fs::write(&tag_path, tag.unwrap_or_default())
        };
        install().map_err(|error| failed("write", &path, error))?;
        let len = fs::metadata(&path).map_or(0, |index| index.len());
        self.usage.add(len, self.size, SystemTime::now(), || self.evict(&path));
        Ok(())
    }

    /// Lists the cache. If it has more than its size, removes the indexes that were used least recently until it has
    /// 90 % of its size. The index `kept` stays. Returns how many bytes are left.
    fn evict(&self, kept: &Path) -> u64 {
        let (mut files, mut total) = (Vec::new(), 0);
        for entry in WalkDir::new(&self.root).max_depth(3).into_iter().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() && is_abandoned(entry.path()) {
                _ = fs::remove_file(entry.path());
            }
            if !metadata.is_file() || entry.path().extension().is_none_or(|extension| extension != EXTENSION)
            {
                continue;
            }
            total += metadata.len();
            let last_use = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            files.push((last_use, metadata.len(), entry.into_path()));
        }
        if total <= self.size {
            return total;
        }
        files.sort();
        files.retain(|(_, _, path)| path != kept);
        for (_, size, path) in files {
            if total <= self.size / 10 * 9 {
                break;
            }
            _ = fs::remove_file(path.with_extension("tag"));
            if fs::remove_file(&path).is_ok() {
                total -= size;
            }
        }
        total
    }
}

fn failed(action: &'static str, path: &Path, error: io::Error) -> Error {
    Error::NotPublished { action, path: path.to_owned(), error }
}

/// The time since the file at `path` was changed.
fn age(path: &Path) -> Option<Duration> {
    let changed = fs::metadata(path).ok()?.modified().ok()?;
    // A time in the future is as good as now.
    Some(changed.elapsed().unwrap_or_default())
}

/// Sets the time of the file at `path`. If it fails, the index only leaves the cache earlier.
fn set_now(path: &Path) {
    _ = fs::File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

/// Creates a folder that only its owner can write to. Files in it are mapped, so nobody else may change them.
fn create_private(path: &Path) -> io::Result<()> {
    create_private_folder(path)?;
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path)?.permissions()) & 0o022 != 0 {
        return Err(io::Error::other(
            "other users may write to the folder; a cache needs a folder of its own",
        ));
    }
    Ok(())
}
