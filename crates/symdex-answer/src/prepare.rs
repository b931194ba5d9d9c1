//! Reads what a report needs from stores that are asked for many images at once.

use std::sync::Arc;

use symdex::{ImageId, ImageOffset};
use symdex_report::{Image, image_offsets};

use super::Symbolicator;
use symdex_store::Error;
use symdex_store::StoredImage;
use symdex_store::positions_by_value;

/// How many images, and how many values, are prepared at most. The others are read image by image. Reports of hundreds of
/// threads have about 200 images and 1000 values.
const MAX_PREPARED: usize = 1024;

/// An image that a report needs.
struct NeededImage<'r> {
    id: ImageId,
    image: &'r Image,
    offsets: &'r [ImageOffset],
}

impl Symbolicator {
    /// Reads the images of `requests`, and the values that answer their offsets, into the memory of the stores. Each store
    /// is asked for the images that the stores before it do not have. Does nothing if no store has batches.
    ///
    /// Errors are left to the calls that answer: they ask the store again, and know other sources.
    pub(crate) fn prepare(&self, requests: &[(&Image, &[ImageOffset])]) {
        let stores = self.stores();
        let Some(last) = stores.stores().iter().rposition(|store| store.has_batches()) else { return };
        self.prepare_ids(requests, last);
        let needed = |&(image, offsets)| {
            let (id, _) = self.wanted(image).ok()?;
            let has_index = self.indexes(&id).any(|path| path.is_ok());
            (!has_index).then_some(NeededImage { id, image, offsets })
        };
        let mut needed: Vec<_> = requests.iter().filter_map(needed).take(MAX_PREPARED).collect();
        for store in 0..=last {
            let ids: Vec<_> = needed.iter().map(|needed| needed.id.clone()).collect();
            let mut found = Vec::new();
            let mut others = Vec::new();
            for (needed, opened) in needed.into_iter().zip(stores.open_many(store, &ids)) {
                match opened {
                    Ok(Some(image)) => found.push((needed, image)),
                    Ok(None) | Err(_) => others.push(needed),
                }
            }
            self.prepare_values(store, &found);
            needed = others;
        }
    }

    /// Reads the whole ids of the images of which `requests` state only the start of the id, from the stores up to `last`.
    fn prepare_ids(&self, requests: &[(&Image, &[ImageOffset])], last: usize) {
        let cut = requests.iter().filter(|(image, _)| image.is_id_cut);
        let starts: Vec<_> = cut.filter_map(|(image, _)| image.id.clone()).take(MAX_PREPARED).collect();
        for store in (0..=last).filter(|store| self.stores().stores()[*store].has_batches()) {
            self.stores().ids_from(store, &starts);
        }
    }

    /// Reads the values of the images that were found in the store with this number.
    fn prepare_values(&self, store: usize, found: &[(NeededImage<'_>, Arc<StoredImage>)]) {
        let mut left = MAX_PREPARED;
        let numbers = |(needed, image): &(NeededImage<'_>, Arc<StoredImage>)| {
            let offsets = image_offsets(image.metadata(), needed.image, needed.offsets).ok()?;
            let (positions, _) = positions_by_value(image.metadata(), &offsets);
            left = left.checked_sub(positions.len())?;
            Some((Arc::clone(image), positions.into_keys().collect::<Vec<_>>()))
        };
        let values = found.iter().filter(|(_, image)| matches!(**image, StoredImage::Values(_)));
        let values: Vec<_> = values.filter_map(numbers).collect();
        let requests: Vec<_> = values.iter().map(|(image, numbers)| (&**image, numbers.as_slice())).collect();
        for (fetched, (image, _)) in self.stores().values_many(store, &requests).into_iter().zip(&values) {
            if matches!(fetched, Err(Error::Replaced { .. })) {
                self.stores().forget(store, &image.metadata().id);
            }
        }
    }
}
