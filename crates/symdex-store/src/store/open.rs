//! Opens the store of a URL.

use std::time::Duration;

use super::url::StoreKind;
use super::{FolderStore, Store, StoreUrl};
use crate::error::Error;

/// The options of [`open_store`].
#[must_use]
#[derive(Clone, Debug)]
pub struct StoreOptions {
    pub(crate) timeout: Duration,
    #[cfg(feature = "redis")]
    pub(crate) ttl: Duration,
    #[cfg(feature = "redis")]
    pub(crate) zstd_level: i32,
}

impl StoreOptions {
    /// The default options.
    pub fn new() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            #[cfg(feature = "redis")]
            ttl: Duration::from_secs(45 * 24 * 60 * 60),
            #[cfg(feature = "redis")]
            zstd_level: 19,
        }
    }

    /// Sets the time that one operation on a store may take, with all its retries. The default is 30 seconds. A folder
    /// has no time-out.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the time after its last use at which an index that is put into Redis expires. The default is 45 days. A
    /// shorter time than a second makes no sense.
    #[cfg(feature = "redis")]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the level of zstd with which new indexes are compressed. The default is 19.
    #[cfg(feature = "redis")]
    pub fn zstd_level(mut self, level: i32) -> Self {
        self.zstd_level = level;
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
    let not_compiled = |feature| Err(Error::NotCompiled { url: url.clone(), feature });
    // Homes with options of their own are behind features.
    let _ = options;
    match url.kind() {
        StoreKind::Folder => Ok(Box::new(FolderStore::new(url.clone()))),
        #[cfg(feature = "redis")]
        StoreKind::Redis => Ok(Box::new(super::RedisStore::open(url, options)?)),
        #[cfg(not(feature = "redis"))]
        StoreKind::Redis => not_compiled("redis"),
        StoreKind::Objects => not_compiled("object-store"),
    }
}
