//! Opens the store of a URL.

use std::path::PathBuf;
use std::time::Duration;

use super::url::StoreKind;
use super::{Store, StoreUrl};
use crate::access::IndexAccess;
use crate::error::Error;
use crate::folder::IndexFolder;

/// The options of [`open_store`]. Options of a kind of store that this build does not have are ignored.
#[must_use]
#[derive(Clone, Debug)]
pub struct StoreOptions {
    pub(crate) timeout: Duration,
    pub(crate) access: IndexAccess,
    pub(crate) zstd_level: i32,
    pub(crate) cache: Option<(PathBuf, u64)>,
    pub(crate) ttl: Duration,
    pub(crate) ca_file: Option<PathBuf>,
}

impl StoreOptions {
    /// The default options.
    pub fn new() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            access: IndexAccess::default(),
            zstd_level: 19,
            cache: None,
            ttl: Duration::from_secs(45 * 24 * 60 * 60),
            ca_file: None,
        }
    }

    /// Sets the time that a store may take to answer, with all retries, or to send the next bytes of an answer. The
    /// default is 30 seconds. A folder has no time-out.
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

    /// Sets the level at which an object store or Redis compresses new indexes, 1 to 22. The default is 19. At 0, object
    /// stores do not compress, and Redis compresses at level 1.
    pub fn zstd_level(mut self, level: u8) -> Self {
        self.zstd_level = i32::from(level.min(22));
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

/// Opens the store of `url`. Nothing is read, written or connected until a method of the store is called.
///
/// ```
/// use symdex_store::{StoreOptions, StoreUrl, open_store};
///
/// let store = open_store(&"/var/lib/symdex".parse()?, &StoreOptions::new())?;
/// let url: StoreUrl = "dir:/var/lib/symdex".parse()?;
/// assert_eq!(store.url(), &url);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::NotCompiled`] if this build does not have the feature for the kind of store. [`Error::Store`] if the
/// environment has no valid configuration for the store.
pub fn open_store(url: &StoreUrl, options: &StoreOptions) -> Result<Box<dyn Store>, Error> {
    match url.kind() {
        StoreKind::Folder => {
            Ok(Box::new(IndexFolder::new(url.path().unwrap_or_default()).fan_out().access(options.access)))
        }
        #[cfg(feature = "redis")]
        StoreKind::Redis => Ok(Box::new(super::RedisStore::open(url, options)?)),
        #[cfg(not(feature = "redis"))]
        StoreKind::Redis => Err(Error::NotCompiled { url: url.clone(), feature: "redis" }),
        #[cfg(feature = "object-store")]
        StoreKind::Objects => Ok(Box::new(super::objects::ObjectsStore::open(url, options)?)),
        #[cfg(not(feature = "object-store"))]
        StoreKind::Objects => Err(Error::NotCompiled { url: url.clone(), feature: "object-store" }),
    }
}
