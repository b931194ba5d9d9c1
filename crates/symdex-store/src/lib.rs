//! Finds, opens, lists and publishes symdex indexes, in folders and in other stores.
//!
//! Call [`IndexFolder::new`] first, with the path of the folder. Then call:
//!
//! * [`IndexFolder::index`] to open the index of an image by the id that a crash report states;
//! * [`IndexFolder::publish`] to add a new index, atomically;
//! * [`IndexFolder::files`] to get the paths of all indexes;
//! * [`IndexFolder::find_prefix`] to find an index by the first digits of its id.
//!
//! ```
//! use symdex::{ImageOffset, Index, LinePolicy, Scratch};
//! use symdex_store::{IndexFolder, PublishOutcome};
//!
//! # let root = tempfile::tempdir()?;
//! # let path = root.path().join("indexes");
//! let folder = IndexFolder::new(&path);
//! # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
//! let new = Index::open(std::fs::read(path)?)?;
//! assert_eq!(folder.publish(&new)?.outcome, PublishOutcome::Written);
//! // The same index again changes nothing.
//! assert_eq!(folder.publish(&new)?.outcome, PublishOutcome::Unchanged);
//!
//! // The index is opened by the id of its image: mapped into memory if nobody else can change it.
//! let index = folder.index(new.id())?.ok_or("no index of this image")?;
//! let mut scratch = Scratch::default();
//! let frames = index.lookup(ImageOffset(0x3cf), LinePolicy::Statement, &mut scratch)?.ok_or("a gap")?;
//! assert_eq!(frames.iter().next().and_then(|frame| frame.name), Some(&b"cell"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To build an index that may be too large for memory, write it to an [`IndexBuffer`] and publish the resulting
//! [`IndexBytes`].
//!
//! # Other stores
//!
//! A [`Store`] keeps indexes in a folder, in an object store or in Redis. [`open_store`] opens the store of a
//! [`StoreUrl`]. A [`StoreReader`] reads from several stores, keeps open indexes in memory, and leaves a store alone
//! that cannot be reached. The feature `object-store` adds object stores, the feature `redis` adds Redis.
//!
//! This crate compiles no DWARF reader. The crate `symdex-answer` answers whole crash reports from stores and folders
//! of indexes, and from debug files. A service that answers reports from indexes only does not need it: it implements
//! `symdex_report::Source` with [`IndexFolder::index`] and `symdex_report::answer_from_index`.

// The tests in the folder `tests` name the crate.
#[cfg(test)]
extern crate self as symdex_store;

mod access;
mod buffer;
mod error;
mod folder;
mod id_prefix;
mod json;
mod provenance;
mod publish;
mod reader;
mod replace;
mod single_flight;
mod store;
#[cfg(test)]
mod test_indexes;
/// What tests of stores share with the tests that use only public items.
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod test_stores;

pub use access::IndexAccess;
pub use access::create_private_folder;
pub use buffer::{IndexBuffer, IndexBytes};
pub use error::Error;
pub use folder::{EMBEDDED_FOLDER, IndexFolder, IndexList};
pub use id_prefix::{IdPrefix, ParseIdPrefixError};
pub use json::rfc3339;
pub use provenance::{OnConflict, Orphan, ParseOnConflictError, Provenance, PutOptions};
pub use publish::{PublishOutcome, Published};
pub use reader::{Breaker, OpenImage, ReaderOptions, SharedStore, StoreCounts, StoreReader};
pub use replace::{Durability, replace_file};
#[cfg(any(feature = "object-store", feature = "redis"))]
pub use store::wait_for;
pub use store::{
    FetchedValue, FetchedValues, GcCounts, RecordedUses, Store, StoreEntry, StoreOptions, StoreUrl,
    StoreUrlError, StoredImage, StoredLayout, StoredValues, ValueRequest, is_this_machine, open_indexes,
    open_store,
};
#[cfg(feature = "object-store")]
pub use store::{ListedObject, ObjectBody, ObjectVersion, Objects};
#[cfg(feature = "redis")]
pub use store::{RedisCounts, RedisStore};

/// The public types can be shared and sent between threads.
#[cfg(test)]
mod threads {
    use super::*;

    const fn are_shared<T: Send + Sync>() {}

    const _: () = {
        are_shared::<Error>();
        are_shared::<IndexAccess>();
        are_shared::<IdPrefix>();
        are_shared::<IndexFolder>();
        are_shared::<IndexList>();
        are_shared::<IndexBytes>();
        are_shared::<ParseIdPrefixError>();
        are_shared::<Published>();
        are_shared::<PutOptions>();
        are_shared::<ReaderOptions>();
        are_shared::<StoreEntry>();
        are_shared::<OpenImage>();
        are_shared::<StoreReader>();
        are_shared::<StoreOptions>();
        are_shared::<StoreUrl>();
        are_shared::<StoredImage>();
        #[cfg(feature = "redis")]
        are_shared::<RedisStore>();
    };
    // A buffer is written by one thread at a time.
    const fn is_sent<T: Send>() {}
    const _: () = is_sent::<IndexBuffer>();
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
