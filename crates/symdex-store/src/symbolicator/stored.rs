//! Answers from an image in a store.

use std::collections::BTreeMap;

use symdex::{ImageOffset, Metadata, Scratch};
use symdex_report::{Answer, Image, Unanswered, answer_from_index, image_offsets};

use super::session::ImageQuery;
use super::unanswered;
use crate::error::Error;
use crate::reader::{ReadValues, StoreReader};
use crate::store::StoredImage;

/// The bytes that the answers from values may take together: this, and [`MAX_PER_OFFSET`] for each offset.
const MAX_BYTES: usize = 32 << 20;
const MAX_PER_OFFSET: usize = 4 << 10;

impl ImageQuery<'_> {
    /// The answers of `image` in the store with this number. If the store has replaced the image since it was opened, it
    /// is opened again, once.
    pub(super) fn ask_stored(
        &self,
        stores: &StoreReader,
        store: usize,
        image: &StoredImage,
        scratch: &mut Scratch,
    ) -> Result<Vec<Answer>, Unanswered> {
        let mut answered = self.ask_opened(stores, store, image, scratch);
        if answered.as_ref().is_err_and(|error| is_replaced(image, error)) {
            let id = &image.metadata().id;
            stores.forget(store, id);
            answered = match stores.open(store, id) {
                Ok(Some(image)) => self.ask_opened(stores, store, &image, scratch),
                Ok(None) => Ok(Err(Unanswered::Missing)),
                Err(error) => Err(error),
            };
        }
        answered.unwrap_or_else(|error| Err(unanswered(&error.into())))
    }

    /// The answers of `image`, as it was opened.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store fails.
    fn ask_opened(
        &self,
        stores: &StoreReader,
        store: usize,
        image: &StoredImage,
        scratch: &mut Scratch,
    ) -> Result<Result<Vec<Answer>, Unanswered>, Error> {
        match image {
            StoredImage::Index(index) => Ok(self.ask(index, scratch)),
            StoredImage::Values(_) => self.ask_values(stores, store, image, scratch),
            #[cfg(feature = "object-store")]
            StoredImage::Ranged(index) => match image_offsets(index.metadata(), self.image, self.offsets) {
                Ok(offsets) => index.with(&offsets, |index| self.ask(index, scratch)),
                Err(why) => Ok(Err(why)),
            },
        }
    }

    /// The answers of the values of `image`. An offset whose value is lost counts as damaged, not as without a
    /// function. If all values are lost, the image counts as missing.
    ///
    /// # Errors
    ///
    /// [`Error`] if the store fails.
    fn ask_values(
        &self,
        stores: &StoreReader,
        store: usize,
        image: &StoredImage,
        scratch: &mut Scratch,
    ) -> Result<Result<Vec<Answer>, Unanswered>, Error> {
        let metadata = image.metadata();
        let positions = match positions_by_value(metadata, self.image, self.offsets) {
            Ok(positions) => positions,
            Err(why) => return Ok(Err(why)),
        };
        let numbers: Vec<_> = positions.keys().copied().collect();
        let values = stores.values(store, image, &numbers)?;
        if !values.is_empty() && values.iter().all(Option::is_none) {
            return Ok(Err(Unanswered::Missing));
        }
        let lost = |number| {
            let location = stores.stores()[store].location(&metadata.id);
            format!("{location}: value {number} of the index is missing; put the index into the store again")
        };
        Ok(self.answers_of(positions, values, lost, scratch))
    }

    /// The answers of `values`, which are in the order of `positions`. `lost` is the message for a value that is lost.
    fn answers_of(
        &self,
        positions: BTreeMap<u64, Vec<usize>>,
        values: ReadValues,
        lost: impl Fn(u64) -> String,
        scratch: &mut Scratch,
    ) -> Result<Vec<Answer>, Unanswered> {
        let mut answers = vec![Answer::NoFunction; self.offsets.len()];
        let mut left = MAX_BYTES + MAX_PER_OFFSET * self.offsets.len();
        for ((number, positions), value) in positions.into_iter().zip(values) {
            let offsets: Vec<_> = positions.iter().map(|position| self.offsets[*position]).collect();
            let found = match value {
                Some(value) => answer_from_index(&value, self.image, &offsets, self.lines, scratch)?,
                None => vec![Answer::Damaged(lost(number)); positions.len()],
            };
            for (position, answer) in positions.into_iter().zip(found) {
                let size = size_of(&answer);
                answers[position] = if size > left { Answer::TooLarge } else { answer };
                left = left.saturating_sub(size);
            }
        }
        Ok(answers)
    }
}

/// Whether another index may have come into the store in place of `image`, so that it should be opened again.
fn is_replaced(image: &StoredImage, error: &Error) -> bool {
    match image {
        // Parts are of one version of the object. If that is gone, the store refuses to send more.
        #[cfg(feature = "object-store")]
        StoredImage::Ranged(_) => !error.is_unavailable(),
        _ => matches!(error, Error::Replaced { .. }),
    }
}

/// The positions in `offsets` by the number of the value that answers them. Offsets that no value answers are gaps.
///
/// # Errors
///
/// As [`image_offsets`].
pub(super) fn positions_by_value(
    metadata: &Metadata,
    image: &Image,
    offsets: &[ImageOffset],
) -> Result<BTreeMap<u64, Vec<usize>>, Unanswered> {
    let there = metadata.value_numbers();
    let mut positions: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (position, offset) in image_offsets(metadata, image, offsets)?.into_iter().enumerate() {
        let number = metadata.value_number(offset);
        if there.iter().any(|numbers| numbers.contains(&number)) {
            positions.entry(number).or_default().push(position);
        }
    }
    Ok(positions)
}

/// The bytes of the strings of `answer`.
fn size_of(answer: &Answer) -> usize {
    let Answer::Functions(functions) = answer else { return 0 };
    let len = |text: &Option<Vec<u8>>| text.as_ref().map_or(0, Vec::len);
    functions.iter().map(|function| size_of_val(function) + len(&function.name) + len(&function.file)).sum()
}

#[cfg(test)]
mod tests {
    use symdex::LinePolicy;

    use super::*;
    use crate::ReaderOptions;
    use crate::reader::tests::{Fake, calls};
    use crate::test_stores::id;

    fn names(answers: &[Answer]) -> Vec<String> {
        let name = |answer: &Answer| match answer {
            Answer::Functions(functions) => {
                String::from_utf8_lossy(functions[0].name.as_deref().expect("a name")).into_owned()
            }
            Answer::Damaged(what) => what.clone(),
            other => format!("{other:?}"),
        };
        answers.iter().map(name).collect()
    }

    #[test]
    fn values_answer_as_the_index_and_a_lost_value_is_not_a_gap() {
        let fake = Fake::new(300);
        let offsets = [0x8, 0x800, 0x64_008, 0x64_800, 0x12b_008, 0x900_0000].map(ImageOffset);
        let query = ImageQuery { image: &Image::default(), offsets: &offsets, lines: LinePolicy::Statement };
        let ask = || {
            let reader = fake.reader(&ReaderOptions::new());
            let image = reader.open(0, &id(0xab)).expect("readable").expect("there");
            query.ask_stored(&reader, 0, &image, &mut Scratch::default())
        };
        let answers = ask().expect("answers");
        let (gap, last) = ("NoFunction", "f299");
        assert_eq!(names(&answers), ["f0", gap, "f100", gap, last, gap]);

        fake.lose(ImageOffset(0x64_008));
        let answers = names(&ask().expect("answers"));
        assert_eq!([&answers[0], &answers[1], &answers[4], &answers[5]], ["f0", gap, last, gap]);
        for lost in &answers[2..4] {
            assert!(lost.starts_with("redis://fake/abab") && lost.contains("is missing"), "{lost}");
        }
        fake.values.lock().expect("not poisoned").clear();
        assert_eq!(ask(), Err(Unanswered::Missing));
    }

    #[test]
    fn an_index_that_was_replaced_after_it_was_opened_is_opened_again_once() {
        let fake = Fake::new(3);
        let reader = fake.reader(&ReaderOptions::new());
        let offsets = [0x8, 0x2008, 0x3008].map(ImageOffset);
        let query = ImageQuery { image: &Image::default(), offsets: &offsets, lines: LinePolicy::Statement };
        let ask = || {
            let image = reader.open(0, &id(0xab)).expect("readable").expect("there");
            fake.replace(4);
            query.ask_stored(&reader, 0, &image, &mut Scratch::default())
        };
        assert_eq!(
            names(&ask().expect("answers")),
            ["f0", "f2", "f3"],
            "the new index has one function more"
        );
        assert_eq!((calls(&fake), reader.counts()[0].failed), ((2, 2), 0));
    }
}
