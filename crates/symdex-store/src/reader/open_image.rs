//! An image in a store, and lookups in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use symdex::{Frames, Grade, ImageOffset, Index, LinePolicy, Metadata, OwnedUnwindRow, Scratch};

use super::SharedStore;
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::store::{FetchedValue, FetchedValues, StoredImage};

/// An open image, whatever has it: a store of a [`StoreReader`](super::StoreReader), which keeps a whole index or
/// values, or a [single index](Self::alone).
///
/// ```
/// use symdex::{ImageOffset, Index, LinePolicy, Scratch};
/// use symdex_store::{IndexFolder, ReaderOptions, Store, StoreReader};
///
/// # let folder = tempfile::tempdir()?;
/// # let new = std::fs::read("../../testdata/golden/v1/inline-dwarf4-1.symdex")?;
/// # let new = Index::open(&new[..])?;
/// # IndexFolder::new(folder.path()).put(&new)?;
/// # let id = new.id();
/// let reader = StoreReader::new(vec![Box::new(IndexFolder::new(folder.path()))], &ReaderOptions::new());
/// let image = reader.find(id)?.ok_or("no store has the image")?;
/// let mut scratch = Scratch::default();
/// let depths = image.ask(|image| {
///     let offsets = [ImageOffset(0x3cf), ImageOffset(0xffff_0000)];
///     let mut depths = [0; 2];
///     image.lookup_many(&offsets, LinePolicy::Statement, &mut scratch, |place, found| {
///         depths[place] = found.ok().flatten().map_or(0, |frames| frames.len());
///     })?;
///     Ok(depths)
/// })?;
/// assert_eq!(depths, Some([4, 0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenImage {
    owner: Owner,
    image: Arc<StoredImage>,
}

/// What has an image.
#[derive(Clone, Debug)]
enum Owner {
    Store(Arc<SharedStore>),
    /// No store. The text says where the index is.
    Nobody(String),
}

impl OpenImage {
    pub(super) fn new(store: Arc<SharedStore>, image: Arc<StoredImage>) -> Self {
        Self { owner: Owner::Store(store), image }
    }

    /// The image of an index that is in no store, or whose store does not matter. `location` says where it is.
    pub fn alone(index: Index<IndexBytes>, location: impl Into<String>) -> Self {
        let image = Arc::new(StoredImage::Index(Arc::new(index)));
        Self { owner: Owner::Nobody(location.into()), image }
    }

    /// The store that has the image; `None` for a [single index](Self::alone).
    #[must_use]
    pub fn store(&self) -> Option<&Arc<SharedStore>> {
        match &self.owner {
            Owner::Store(store) => Some(store),
            Owner::Nobody(_) => None,
        }
    }

    /// How the image is kept.
    #[must_use]
    pub fn image(&self) -> &StoredImage {
        &self.image
    }

    /// The metadata of the image.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        self.image.metadata()
    }

    /// What the index answers at most. See [`Metadata::grade`].
    #[must_use]
    pub fn grade(&self) -> Grade {
        self.metadata().grade()
    }

    /// Where the index is: a path, or a URL with a key.
    #[must_use]
    pub fn location(&self) -> String {
        match &self.owner {
            Owner::Store(store) => store.store().location(&self.metadata().id),
            Owner::Nobody(location) => location.clone(),
        }
    }

    /// Calls `ask` with the image. If the index was replaced since it was opened, opens it again and calls `ask` once
    /// more. Returns `None` if the store has the index no longer.
    ///
    /// # Errors
    ///
    /// The [`Error`] of `ask`, or of opening the index again.
    pub fn ask<T>(&self, mut ask: impl FnMut(&Self) -> Result<T, Error>) -> Result<Option<T>, Error> {
        match (ask(self), &self.owner) {
            (Err(Error::Replaced { .. }), Owner::Store(store)) => {
                let id = &self.metadata().id;
                store.forget(id);
                store.open(id)?.map(|image| ask(&image)).transpose()
            }
            (answer, _) => answer.map(Some),
        }
    }

    /// The frames at `offset`, which counts from the start of the image, as [`Index::lookup`]. Returns `None` for a
    /// gap. Only what the lookup needs is fetched. Call [`prefetch`](Self::prefetch) before several lookups.
    ///
    /// # Errors
    ///
    /// As those of [`lookup_many`](Self::lookup_many), and as those that its `each` gets.
    pub fn lookup<'s>(
        &self,
        offset: ImageOffset,
        policy: LinePolicy,
        scratch: &'s mut Scratch,
    ) -> Result<Option<Frames<'s>>, Error> {
        let Some(part) = self.part_at(offset)? else { return Ok(None) };
        part.lookup(offset, policy, scratch).map_err(|error| self.damaged(error))
    }

    /// The unwind row of the code at `offset`, as [`Index::unwind_row`]. Of an index that is kept as values, only the
    /// code between its first and its last function has rows.
    ///
    /// # Errors
    ///
    /// As [`lookup`](Self::lookup).
    pub fn unwind_row(&self, offset: ImageOffset) -> Result<Option<OwnedUnwindRow>, Error> {
        let Some(part) = self.part_at(offset)? else { return Ok(None) };
        let row = part.unwind_row(offset).map_err(|error| self.damaged(error))?;
        Ok(row.map(OwnedUnwindRow::from))
    }

    /// Looks up `offsets`, which count from the start of the image. Calls `each` once for each offset, with its
    /// position in `offsets` and its frames, in the order of [`Index::lookup_many`]. Only what these lookups need is
    /// fetched, all of it before the first call. `each` must not look up other addresses of the image: the call would
    /// not return.
    ///
    /// `each` gets [`Error::Index`] if the index is damaged at an offset, and [`Error::LostValue`] or
    /// [`Error::DamagedObject`] if the store has lost the value that answers it, or the value is damaged.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read, or if all values that answer the offsets are lost or damaged: it is the
    /// error of the first one. [`Error::Replaced`] if the index was removed or replaced since it was opened;
    /// see [`ask`](Self::ask). `each` is not called then.
    pub fn lookup_many(
        &self,
        offsets: &[ImageOffset],
        policy: LinePolicy,
        scratch: &mut Scratch,
        mut each: impl FnMut(usize, Result<Option<Frames<'_>>, Error>),
    ) -> Result<(), Error> {
        let damaged = |error| self.damaged(error);
        match &*self.image {
            StoredImage::Index(index) => {
                index.lookup_many(offsets, policy, scratch, |position, found| {
                    each(position, found.map_err(damaged));
                });
                Ok(())
            }
            StoredImage::Values(_) => self.lookup_in_values(offsets, policy, scratch, each),
        }
    }

    fn lookup_in_values(
        &self,
        offsets: &[ImageOffset],
        policy: LinePolicy,
        scratch: &mut Scratch,
        mut each: impl FnMut(usize, Result<Option<Frames<'_>>, Error>),
    ) -> Result<(), Error> {
        let (positions, gaps) = positions_by_value(self.metadata(), offsets);
        let numbers: Vec<_> = positions.keys().copied().collect();
        let values = self.values(&numbers)?;
        let index = |number, value: &FetchedValue| value.index(number, self.location()).cloned();
        let mut indexes = numbers.iter().zip(&values).map(|(number, value)| index(*number, value));
        if let Some(Err(first)) = indexes.next()
            && indexes.all(|index| index.is_err())
        {
            return Err(first);
        }
        for ((number, positions), value) in positions.into_iter().zip(&values) {
            let FetchedValue::Index(value) = value else {
                positions.into_iter().for_each(|position| each(position, index(number, value).map(|_| None)));
                continue;
            };
            let offsets: Vec<_> = positions.iter().map(|position| offsets[*position]).collect();
            value.lookup_many(&offsets, policy, scratch, |position, found| {
                each(positions[position], found.map_err(|error| self.damaged(error)));
            });
        }
        gaps.into_iter().for_each(|position| each(position, Ok(None)));
        Ok(())
    }

    /// The names that the `symbol_table` has for the function that starts at `start`, as [`Index::function_names`].
    ///
    /// # Errors
    ///
    /// As those of [`lookup_many`](Self::lookup_many), and as those that its `each` gets.
    pub fn function_names(&self, start: ImageOffset, scratch: &mut Scratch) -> Result<Vec<Vec<u8>>, Error> {
        let Some(part) = self.part_at(start)? else { return Ok(Vec::new()) };
        let names = part.function_names(start, scratch).map_err(|error| self.damaged(error))?;
        Ok(names.map(<[u8]>::to_vec).collect())
    }

    /// The index that answers `offset`: the whole index, or the value of an image that the store keeps as values.
    /// `None` if no value answers it.
    ///
    /// # Errors
    ///
    /// As [`lookup`](Self::lookup), [`Error::LostValue`] if the store has lost the value, and [`Error::DamagedObject`]
    /// if the value is damaged.
    pub fn part_at(&self, offset: ImageOffset) -> Result<Option<Arc<Index<IndexBytes>>>, Error> {
        if let StoredImage::Index(index) = &*self.image {
            return Ok(Some(Arc::clone(index)));
        }
        let (positions, _) = positions_by_value(self.metadata(), &[offset]);
        let Some(number) = positions.into_keys().next() else { return Ok(None) };
        let value = self.values(&[number])?.pop().unwrap_or(FetchedValue::Lost);
        value.index(number, self.location()).map(|index| Some(Arc::clone(index)))
    }

    /// The values with these numbers. A single index has none.
    fn values(&self, numbers: &[u64]) -> FetchedValues {
        self.store().map_or(Ok(Vec::new()), |store| store.values(&self.image, numbers))
    }

    /// Fetches what lookups of `offsets` need into memory, at once. Use it before single lookups.
    ///
    /// # Errors
    ///
    /// As [`lookup_many`](Self::lookup_many), except that lost and damaged values are no error.
    pub fn prefetch(&self, offsets: &[ImageOffset]) -> Result<(), Error> {
        match &*self.image {
            StoredImage::Index(_) => Ok(()),
            StoredImage::Values(_) => {
                let (positions, _) = positions_by_value(self.metadata(), offsets);
                self.values(&positions.into_keys().collect::<Vec<_>>()).map(|_| ())
            }
        }
    }

    fn damaged(&self, error: symdex::Error) -> Error {
        Error::index(self.location().as_ref(), error)
    }
}

/// How many bytes of values [`SharedStore::prefetch`] fetches at most, unless one image needs more. By default, a
/// reader keeps four times as many in memory.
const MAX_PREFETCHED: u64 = 64 << 20;

impl SharedStore {
    /// Fetches what lookups of several images of this store need into memory: each image with offsets from its start.
    /// `None` stands for an image that needs nothing. One call of the store fetches about 64 MiB. Returns for how many
    /// of `images` it did; call it for the others when these are looked up.
    ///
    /// Errors are left to the lookups, which ask the store again.
    pub fn prefetch<'i>(
        &self,
        images: impl IntoIterator<Item = Option<(&'i OpenImage, Vec<ImageOffset>)>>,
    ) -> usize {
        let (mut requests, mut size, mut count) = (Vec::new(), 0, 0);
        for image in images {
            if let Some((image, offsets)) = image {
                let (positions, _) = positions_by_value(image.metadata(), &offsets);
                let value_size = match image.image() {
                    StoredImage::Values(values) => values.value_size(),
                    StoredImage::Index(_) => 0,
                };
                size = value_size.saturating_mul(positions.len() as u64).saturating_add(size);
                if size > MAX_PREFETCHED && count > 0 {
                    break;
                }
                requests.push((image.image(), positions.into_keys().collect::<Vec<_>>()));
            }
            count += 1;
        }
        self.values_many(&requests.iter().map(|(image, numbers)| (*image, &numbers[..])).collect::<Vec<_>>());
        count
    }
}

/// The positions in `offsets` by the number of the value that answers them, and the positions of those that no value
/// answers, which are gaps.
fn positions_by_value(
    metadata: &Metadata,
    offsets: &[ImageOffset],
) -> (BTreeMap<u64, Vec<usize>>, Vec<usize>) {
    let there = metadata.value_numbers();
    let (mut positions, mut gaps) = (BTreeMap::<u64, Vec<usize>>::new(), Vec::new());
    for (position, offset) in offsets.iter().enumerate() {
        let number = metadata.value_number(*offset);
        if there.iter().any(|numbers| numbers.contains(&number)) {
            positions.entry(number).or_default().push(position);
        } else {
            gaps.push(position);
        }
    }
    (positions, gaps)
}
