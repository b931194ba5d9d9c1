//! An image as a store has it: a whole index, or values.

use std::any::Any;
use std::fmt;

use symdex::{Index, Metadata};

use crate::buffer::IndexBytes;
use crate::error::Error;

/// An image that [`Store::open`](super::Store::open) has found.
#[derive(Debug)]
pub enum StoredImage {
    /// The whole index, in memory or mapped.
    Index(Box<Index<IndexBytes>>),
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

    /// Fetches the values with these numbers at once, in the order of `numbers`. `None` stands for a value that the
    /// store has lost: each number in [`Metadata::value_numbers`] had a value. Do not take it for a gap.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read, or if a value is damaged. [`Error::Replaced`] if the index was removed or
    /// replaced since it was opened, and its values are gone.
    fn fetch(&self, numbers: &[u64]) -> FetchedValues;
}

/// The values of one image that were fetched. Each is an index of a part of the image. See [`StoredValues::fetch`].
pub type FetchedValues = Result<Vec<Option<Index<IndexBytes>>>, Error>;

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
