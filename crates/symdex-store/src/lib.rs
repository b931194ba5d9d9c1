//! Where symdex indexes live: finds, opens, lists and publishes them.
//!
//! Begin with an [`IndexFolder`]. It names indexes by the ids of their images, reads flat and fanned out folders, and
//! publishes an index atomically:
//!
//! ```
//! use symdex::{ImageOffset, Index, LinePolicy, Scratch};
//! use symdex_store::{IndexFolder, PublishOutcome};
//!
//! # let root = tempfile::tempdir()?;
//! # let path = root.path().join("indexes");
//! let folder = IndexFolder::new(&path);
//! let new = Index::open(std::fs::read("../../testdata/golden/v1/inline-dwarf4-1.symdex")?)?;
//! assert_eq!(folder.publish(&new)?.outcome, PublishOutcome::Written);
//! // The same index again changes nothing.
//! assert_eq!(folder.publish(&new)?.outcome, PublishOutcome::Unchanged);
//!
//! // Elsewhere: the index of the id that a crash report states, mapped into memory.
//! let index = folder.open(new.id())?.ok_or("no index of this image")?;
//! let mut scratch = Scratch::default();
//! let frames = index.lookup(ImageOffset(0x3cf), LinePolicy::Statement, &mut scratch)?.ok_or("a gap")?;
//! assert_eq!(frames.iter().next().and_then(|frame| frame.name), Some(&b"cell"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! An index that is too large for memory is built into an [`IndexBuffer`]. [`IdPrefix`] is an id as people type it:
//! whole, or only its first digits.
//!
//! # The feature `symbolicate`
//!
//! Without features, this crate depends on no DWARF reader: it is what a service needs to find indexes. The feature
//! `symbolicate` adds the module `symbolicator`, which answers crash reports from folders of indexes, and from debug
//! files for images that have no index. It depends on `symdex-report` and `symdex-build`. It is one feature rather than
//! one for each crate, because falling back to debug files is what the module adds: a service that only reads indexes
//! implements `symdex_report::Source` with [`IndexFolder::open`] and `symdex_report::answer_from_index`.

mod buffer;
mod error;
mod folder;
mod id_prefix;
mod publish;
#[cfg(feature = "symbolicate")]
pub mod symbolicator;
#[cfg(test)]
mod test_indexes;

pub use buffer::{IndexBuffer, IndexBytes};
pub use error::Error;
pub use folder::{IndexFolder, IndexList};
pub use id_prefix::{IdPrefix, ParseIdPrefixError};
pub use publish::{PublishOutcome, Published};
