//! An image as a store has it: a whole index, or values.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use symdex::{Index, Metadata};

use crate::buffer::IndexBytes;
use crate::error::Error;

/// An image that [`Store::open`](super::Store::open) has found.
#[derive(Debug)]
pub enum StoredImage {
    /// The whole index, in memory or mapped.
    Index(Arc<Index<IndexBytes>>),
    /// The metadata of the index. The values are fetched when offsets are known.
    Values(Box<dyn StoredValues>),
}

/// The values of one index in a key-value store.
///
/// Convert the offsets of a report with the metadata first. The value with the number [`Metadata::value_number`]
/// answers an offset. An offset is a gap if its number is not in [`Metadata::value_numbers`].
pub trait StoredValues: Any + fmt::Debug + Send + Sync {
    /// The metadata of the whole index.
    fn metadata(&self) -> &Metadata;

    /// The number of the index among those of this image. If the index of an image is replaced, the new one has another
    /// number, so that values of the two are not mixed.
    fn generation(&self) -> u64;

    /// About how many bytes of an index a value has.
    fn value_size(&self) -> u64;

    /// Fetches the values with these numbers at once, in the order of `numbers`. A value that is lost or damaged does
    /// not concern the others.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read, or if a value is of an unsupported version. [`Error::Replaced`] if the
    /// index was removed or replaced since it was opened, and its values are gone.
    fn fetch(&self, numbers: &[u64]) -> FetchedValues;
}

/// The values of one image that were fetched. See [`StoredValues::fetch`].
pub type FetchedValues = Result<Vec<FetchedValue>, Error>;

/// What a store has of a value.
#[derive(Clone, Debug)]
pub enum FetchedValue {
    /// An index of a part of the image.
    Index(Arc<Index<IndexBytes>>),
    /// Nothing, although each number in [`Metadata::value_numbers`] had a value. Do not take it for a gap.
    Lost,
    /// The value is damaged. The text says how.
    Damaged(String),
}

impl FetchedValue {
    /// The index. `None` if the value is lost or damaged.
    #[must_use]
    pub fn found(&self) -> Option<&Index<IndexBytes>> {
        match self {
            Self::Index(index) => Some(index),
            Self::Lost | Self::Damaged(_) => None,
        }
    }
}

/// Values of one image that [`Store::fetch_many`](super::Store::fetch_many) fetches.
#[derive(Clone, Copy, Debug)]
pub struct ValueRequest<'v> {
    /// The image.
    pub values: &'v dyn StoredValues,
    /// The numbers of the values.
    pub numbers: &'v [u64],
}

impl StoredImage {
    /// The metadata of the index.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        match self {
            Self::Index(index) => index.metadata(),
            Self::Values(values) => values.metadata(),
        }
    }
}
