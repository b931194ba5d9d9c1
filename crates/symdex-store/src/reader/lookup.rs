//! Looks addresses up in images of stores.

use std::collections::BTreeMap;
use std::sync::Arc;

use symdex::{Frames, ImageOffset, Index, LinePolicy, Metadata, Scratch};

use super::StoreReader;
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::store::StoredImage;

/// Lookups in an image that [`open`](Self::open) has returned for the store with the number `store`. The image is a
/// whole index or values.
impl StoreReader {
    /// Calls `ask` with `image`. If the index was replaced since it was opened, opens it again and calls `ask` once
    /// more. Returns `None` if the store has the index no longer.
    ///
    /// ```
    /// use symdex::{ImageOffset, Index, LinePolicy, Scratch};
    /// use symdex_store::{FolderStore, IndexFolder, ReaderOptions, StoreReader};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let new = Index::open(std::fs::read("../../testdata/golden/v1/inline-dwarf4-1.symdex")?)?;
    /// # IndexFolder::new(folder.path()).publish(&new)?;
    /// # let id = new.id();
    /// let reader = StoreReader::new(vec![Box::new(FolderStore::at(folder.path()))], &ReaderOptions::new());
    /// let (store, image) = reader.find(id)?.ok_or("no store has the image")?;
    /// let mut scratch = Scratch::default();
    /// let depths = reader.ask_image(store, &image, |image| {
    ///     let offsets = [ImageOffset(0x3cf), ImageOffset(0xffff_0000)];
    ///     let mut depths = [0; 2];
    ///     reader.lookup_many(store, image, &offsets, LinePolicy::Statement, &mut scratch, |place, found| {
    ///         depths[place] = found.ok().flatten().map_or(0, |frames| frames.len());
    ///     })?;
    ///     Ok(depths)
    /// })?;
    /// assert_eq!(depths, Some([4, 0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The [`Error`] of `ask`, or of opening the index again.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn ask_image<T>(
        &self,
        store: usize,
        image: &Arc<StoredImage>,
        mut ask: impl FnMut(&StoredImage) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match ask(image) {
            Err(Error::Replaced { .. }) => {
                let id = &image.metadata().id;
                self.forget(store, id);
                self.open(store, id)?.map(|image| ask(&image)).transpose()
            }
            answer => answer.map(Some),
        }
    }

    /// The frames at `offset`, which counts from the start of the image, as [`Index::lookup`]. Returns `None` for a gap.
    /// Only what the lookup needs is fetched. Call [`prefetch`](Self::prefetch) before several lookups.
    ///
    /// # Errors
    ///
    /// As those of [`lookup_many`](Self::lookup_many), and as those that its `each` gets.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn lookup<'s>(
        &self,
        store: usize,
        image: &StoredImage,
        offset: ImageOffset,
        policy: LinePolicy,
        scratch: &'s mut Scratch,
    ) -> Result<Option<Frames<'s>>, Error> {
        let found = match image {
            StoredImage::Index(index) => index.lookup(offset, policy, scratch),
            StoredImage::Values(_) => match self.value_at(store, image, offset)? {
                Some(value) => value.lookup(offset, policy, scratch),
                None => Ok(None),
            },
        };
        found.map_err(|error| self.damaged(store, image, error))
    }

    /// Looks up `offsets`, which count from the start of the image. Calls `each` once for each offset, with its position
    /// in `offsets` and its frames, in the order of [`Index::lookup_many`]. Only what these lookups need is fetched, all
    /// of it before the first call. `each` must not look up other addresses of the image: the call would not return.
    ///
    /// `each` gets [`Error::Index`] if the index is damaged at an offset, and [`Error::LostValue`] if the store has lost
    /// the value that answers it.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store cannot be read or a value is damaged. [`Error::LostValue`] if the store has lost all
    /// values that answer the offsets. [`Error::Replaced`] if the index was removed or replaced since it was opened;
    /// see [`ask_image`](Self::ask_image). `each` is not called then.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn lookup_many(
        &self,
        store: usize,
        image: &StoredImage,
        offsets: &[ImageOffset],
        policy: LinePolicy,
        scratch: &mut Scratch,
        mut each: impl FnMut(usize, Result<Option<Frames<'_>>, Error>),
    ) -> Result<(), Error> {
        let damaged = |error| self.damaged(store, image, error);
        match image {
            StoredImage::Index(index) => {
                index.lookup_many(offsets, policy, scratch, |position, found| {
                    each(position, found.map_err(damaged));
                });
                Ok(())
            }
            StoredImage::Values(_) => self.lookup_in_values(store, image, offsets, policy, scratch, each),
        }
    }

    fn lookup_in_values(
        &self,
        store: usize,
        image: &StoredImage,
        offsets: &[ImageOffset],
        policy: LinePolicy,
        scratch: &mut Scratch,
        mut each: impl FnMut(usize, Result<Option<Frames<'_>>, Error>),
    ) -> Result<(), Error> {
        let metadata = image.metadata();
        let (positions, gaps) = positions_by_value(metadata, offsets);
        let numbers: Vec<_> = positions.keys().copied().collect();
        let values = self.values(store, image, &numbers)?;
        if let Some(first) = numbers.first().filter(|_| values.iter().all(Option::is_none)) {
            return Err(self.lost(store, image, *first));
        }
        for ((number, positions), value) in positions.into_iter().zip(values) {
            let Some(value) = value else {
                positions
                    .into_iter()
                    .for_each(|position| each(position, Err(self.lost(store, image, number))));
                continue;
            };
            let offsets: Vec<_> = positions.iter().map(|position| offsets[*position]).collect();
            value.lookup_many(&offsets, policy, scratch, |position, found| {
                each(positions[position], found.map_err(|error| self.damaged(store, image, error)));
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
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn function_names(
        &self,
        store: usize,
        image: &StoredImage,
        start: ImageOffset,
        scratch: &mut Scratch,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let names = match image {
            StoredImage::Index(index) => names_of(index, start, scratch),
            StoredImage::Values(_) => match self.value_at(store, image, start)? {
                Some(value) => names_of(&value, start, scratch),
                None => Ok(Vec::new()),
            },
        };
        names.map_err(|error| self.damaged(store, image, error))
    }

    /// The value that answers `offset` of `image`, which the store keeps as values; `None` if none does.
    ///
    /// # Errors
    ///
    /// As [`values`](Self::values), and [`Error::LostValue`] if the store has lost the value.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn value_at(
        &self,
        store: usize,
        image: &StoredImage,
        offset: ImageOffset,
    ) -> Result<Option<Arc<Index<IndexBytes>>>, Error> {
        let (positions, _) = positions_by_value(image.metadata(), &[offset]);
        let Some(number) = positions.into_keys().next() else { return Ok(None) };
        let value = self.values(store, image, &[number])?.pop().flatten();
        value.map(Some).ok_or_else(|| self.lost(store, image, number))
    }

    /// Fetches what lookups of `offsets` need into memory, at once. Use it before single lookups.
    ///
    /// # Errors
    ///
    /// As [`lookup_many`](Self::lookup_many), except that lost values are no error.
    ///
    /// # Panics
    ///
    /// If there is no store with this number.
    pub fn prefetch(&self, store: usize, image: &StoredImage, offsets: &[ImageOffset]) -> Result<(), Error> {
        match image {
            StoredImage::Index(_) => Ok(()),
            StoredImage::Values(_) => {
                let (positions, _) = positions_by_value(image.metadata(), offsets);
                self.values(store, image, &positions.into_keys().collect::<Vec<_>>()).map(|_| ())
            }
        }
    }

    fn lost(&self, store: usize, image: &StoredImage, number: u64) -> Error {
        Error::LostValue { location: self.stores()[store].location(&image.metadata().id), number }
    }

    fn damaged(&self, store: usize, image: &StoredImage, error: symdex::Error) -> Error {
        Error::index(self.stores()[store].location(&image.metadata().id).as_ref(), error)
    }
}

fn names_of<B: AsRef<[u8]>>(
    index: &Index<B>,
    start: ImageOffset,
    scratch: &mut Scratch,
) -> Result<Vec<Vec<u8>>, symdex::Error> {
    Ok(index.function_names(start, scratch)?.map(<[u8]>::to_vec).collect())
}

/// The positions in `offsets` by the number of the value that answers them, and the positions of those that no value
/// answers, which are gaps.
#[must_use]
pub fn positions_by_value(
    metadata: &Metadata,
    offsets: &[ImageOffset],
) -> (BTreeMap<u64, Vec<usize>>, Vec<usize>) {
    let there = metadata.value_numbers();
    let (mut positions, mut gaps) = (BTreeMap::<u64, Vec<usize>>::new(), Vec::new());
    for (position, offset) in offsets.iter().enumerate() {
        let number = metadata.value_number(*offset);
        match there.iter().any(|numbers| numbers.contains(&number)) {
            true => positions.entry(number).or_default().push(position),
            false => gaps.push(position),
        }
    }
    (positions, gaps)
}
