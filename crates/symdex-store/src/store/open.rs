//! Opens the store of a URL.

use std::path::Path;

use super::url::StoreKind;
use super::{Store, StoreOptions, StoreUrl};
use crate::error::Error;
use crate::folder::IndexFolder;

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
            Ok(Box::new(IndexFolder::new(url.folder().unwrap_or_default()).fan_out().access(options.access)))
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

/// The index at `path`, or the folder of indexes with all folders below it, as a store that can only be read. See
/// [`IndexFolder::searched`].
#[must_use]
pub fn open_indexes(path: &Path, options: &StoreOptions) -> Box<dyn Store> {
    Box::new(IndexFolder::searched(path).access(options.access))
}
