//! Answers from an image in a store.

use std::sync::Arc;

use symdex::Scratch;
use symdex_report::{Answer, Unanswered, answer_from_lookups};

use super::session::ImageQuery;
use super::unanswered_by_store;
use symdex_store::Error;
use symdex_store::StoreReader;
use symdex_store::StoredImage;

impl ImageQuery<'_> {
    /// The answers of `image` in the store with this number. An offset whose value the store has lost counts as damaged,
    /// not as without a function. If all values are lost, the image counts as missing.
    pub(crate) fn ask_stored(
        &self,
        stores: &StoreReader,
        store: usize,
        image: &Arc<StoredImage>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Answer>, Unanswered> {
        let answered = stores.ask_image(store, image, |image| {
            if let StoredImage::Index(index) = image {
                return Ok(self.ask(index, scratch));
            }
            let mut read = Ok(());
            let metadata = image.metadata();
            let answers = answer_from_lookups(metadata, self.image, self.offsets, |offsets, each| {
                read = stores.lookup_many(store, image, offsets, self.lines, scratch, |position, found| {
                    each(position, found.map_err(|error| damage(&error)));
                });
            });
            read.map(|()| answers)
        });
        match answered {
            Ok(Some(answers)) => answers,
            Ok(None) | Err(Error::LostValue { .. }) => Err(Unanswered::Missing),
            Err(error) => Err(unanswered_by_store(error)),
        }
    }
}

/// The text for an address at which the index is damaged. [`SourceAnswers`](super::gathered::SourceAnswers) names the
/// index.
fn damage(error: &Error) -> String {
    match error {
        Error::Index { error, .. } => error.to_string(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use symdex::{ImageOffset, LinePolicy};
    use symdex_report::Image;

    use super::*;
    use crate::fake::{Fake, calls};
    use symdex_store::ReaderOptions;
    use symdex_testkit::indexes::id;

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
