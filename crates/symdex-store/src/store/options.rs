//! How the store of a URL is opened.

use std::path::PathBuf;
use std::time::Duration;

use crate::access::IndexAccess;

/// The options of [`open_store`](super::open_store). Options of a kind of store that this build does not have are
/// ignored.
#[must_use]
#[derive(Clone, Debug)]
pub struct StoreOptions {
    pub(crate) timeout: Duration,
    pub(crate) access: IndexAccess,
    /// `None`: the default of the kind of store.
    pub(crate) zstd_level: Option<i32>,
    pub(crate) cache: Option<(PathBuf, u64)>,
    pub(crate) ttl: Duration,
    pub(crate) ca_file: Option<PathBuf>,
}

impl StoreOptions {
    /// The default options.
    pub fn new() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            access: IndexAccess::default(),
            zstd_level: None,
            cache: None,
            ttl: Duration::from_secs(45 * 24 * 60 * 60),
            ca_file: None,
        }
    }

    /// Sets the time that a store may take to answer, with all retries, or to send the next bytes of an answer. A whole
    /// answer may take this time, and a second for each MiB. The default is 10 seconds. A folder has no time-out.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how the indexes of a folder are opened. The default maps only files that nobody else can change.
    pub fn access(mut self, access: IndexAccess) -> Self {
        self.access = access;
        self
    }

    /// Sets the time after its last use at which an index that is put into Redis expires. The default is 45 days. A
    /// shorter time than a second makes no sense.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the file of certificates, in PEM, that Redis must have its certificate from. The default is the file that
    /// `SYMDEX_REDIS_CA_FILE` names, or the certificates of the system.
    pub fn ca_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.ca_file = Some(path.into());
        self
    }

    /// Sets the level at which an object store or Redis compresses new indexes, 1 to 22. At 0, object stores do not
    /// compress, and Redis compresses at level 1. The default is 6 for object stores and 19 for Redis, where memory
    /// costs more than the time to compress (docs/STORES.md, "Compression").
    pub fn zstd_level(mut self, level: u8) -> Self {
        self.zstd_level = Some(i32::from(level.min(22)));
        self
    }

    /// Sets the folder in which indexes of object stores are kept, and how many bytes they may take. Indexes that were
    /// used least recently are removed first. Several processes may share the folder. It is created for this user only.
    ///
    /// Without this option, each index that is opened is fetched.
    pub fn cache(mut self, folder: impl Into<PathBuf>, size: u64) -> Self {
        self.cache = Some((folder.into(), size));
        self
    }
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self::new()
    }
}
