//! Indexes of an image, wherever they are.

use std::sync::Arc;

use symdex::{Cause, Grade, ImageId, Index, Scratch};
use symdex_report::{Answer, Question, Unanswered, answer_from_index, answer_from_lookups};
use symdex_store::{Error, OpenImage, SharedStore, StoredImage};

use super::{Symbolicator, unanswered, unanswered_by_store};

/// The index of an image in one store, or why the store cannot open it; `None` if the store has none.
pub(crate) type FoundIndex = Option<Result<OpenImage, Unanswered>>;

impl Symbolicator {
    /// Everything that may have indexes, in the order in which it is asked: single indexes, folders, stores.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Arc<SharedStore>> {
        self.indexes.stores().iter().chain(self.stores().stores())
    }

    /// The indexes of the image `id`, in the order of the [`sources`](Self::sources). The index of a fetched file that
    /// could not be stored is the last one.
    pub(crate) fn find(&self, id: &ImageId) -> impl Iterator<Item = Result<OpenImage, Unanswered>> {
        let in_sources =
            self.sources().filter_map(|source| self.find_in(source, std::slice::from_ref(id)).pop()?);
        in_sources.chain(std::iter::once_with(|| self.fetched(id)).flatten().map(Ok))
    }

    /// The images `ids` in `source`. Those that were found to be damaged lately are not opened.
    pub(crate) fn find_in(&self, source: &Arc<SharedStore>, ids: &[ImageId]) -> Vec<FoundIndex> {
        let is_store = self.stores().stores().iter().any(|store| Arc::ptr_eq(store, source));
        let failed =
            |error: Error| if is_store { unanswered_by_store(error) } else { unanswered(&error.into()) };
        let damage: Vec<_> =
            ids.iter().map(|id| self.damaged.known(|| source.store().location(id))).collect();
        let asked = ids.iter().zip(&damage).filter(|(_, damage)| damage.is_none());
        let asked: Vec<_> = asked.map(|(id, _)| id.clone()).collect();
        let mut opened = source.open_many(&asked).into_iter();
        let found = |(id, damage)| match damage {
            Some(damage) => Some(Err(damage)),
            None => {
                let opened = opened.next().unwrap_or(Ok(None)).map_err(failed);
                self.damaged.noting(|| source.store().location(id), opened).transpose()
            }
        };
        ids.iter().zip(damage).map(found).collect()
    }
}

/// The answers of `index` to `question`, and its grade.
pub(crate) fn ask_index<B: AsRef<[u8]>>(
    index: &Index<B>,
    question: &Question<'_>,
    scratch: &mut Scratch,
) -> Result<(Vec<Answer>, Grade), Unanswered> {
    Ok((answer_from_index(index, question, scratch)?, index.metadata().grade()))
}

/// The answers of `image` to `question`, and its grade. An offset whose value the store has lost counts as lost, not as
/// without a function. So does the image if all values are lost.
pub(crate) fn ask_stored(
    image: &OpenImage,
    question: &Question<'_>,
    scratch: &mut Scratch,
) -> Result<(Vec<Answer>, Grade), Unanswered> {
    let answered = image.ask(|image| {
        if let StoredImage::Index(index) = image.image() {
            return Ok(ask_index(index, question, scratch));
        }
        let mut read = Ok(());
        let answers = answer_from_lookups(image.metadata(), question, |offsets, each| {
            let found = image.lookup_many(offsets, question.lines, scratch, |position, found| {
                each(position, found.map_err(|error| unreadable(&error)));
            });
            if found.is_err() {
                read = found;
            }
        });
        read.map(|()| answers.map(|answers| (answers, image.grade())))
    });
    match answered {
        Ok(Some(answers)) => answers,
        Ok(None) => Err(Unanswered::Missing),
        Err(error) => Err(unanswered_by_store(error)),
    }
}

/// The answer for an address at which the index is damaged or lost. [`SourceAnswers`](symdex_report::SourceAnswers)
/// names the index.
fn unreadable(error: &Error) -> Answer {
    match error {
        Error::Index { error, .. } => Answer::Unreadable(Cause::Damaged, error.to_string()),
        Error::LostValue { .. } => Answer::Unreadable(Cause::Lost, error.to_string()),
        error => Answer::Unreadable(Cause::Damaged, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use symdex::{ImageOffset, LinePolicy};
    use symdex_report::{Base, ReportImage};

    use super::*;
    use symdex_store::ReaderOptions;
    use symdex_testkit::fake_store::{Fake, calls};
    use symdex_testkit::indexes::{elf_index, id};

    fn names(answers: &[Answer]) -> Vec<String> {
        let name = |answer: &Answer| match answer {
            Answer::Functions(functions) => functions[0].name().expect("a name").to_owned(),
            Answer::Unreadable(Cause::Lost, what) => what.clone(),
            other => format!("{other:?}"),
        };
        answers.iter().map(name).collect()
    }

    #[test]
    fn values_answer_as_the_index_and_a_lost_value_is_not_a_gap() {
        let fake = Fake::new(300);
        let offsets = [0x8, 0x800, 0x64_008, 0x64_800, 0x12b_008, 0x900_0000].map(ImageOffset);
        let image = ReportImage::default();
        let question = Question::new(&image, &offsets, LinePolicy::Statement);
        let ask = || {
            let reader = fake.reader(&ReaderOptions::new());
            let image = reader.stores()[0].open(&id(0xab)).expect("readable").expect("there");
            ask_stored(&image, &question, &mut Scratch::default())
        };
        let (answers, grade) = ask().expect("answers");
        assert_eq!(grade, Grade::Lines);
        let (gap, last) = ("NoFunction", "f299");
        assert_eq!(names(&answers), ["f0", gap, "f100", gap, last, gap]);

        fake.lose(ImageOffset(0x64_008));
        let answers = names(&ask().expect("answers").0);
        assert_eq!([&answers[0], &answers[1], &answers[4], &answers[5]], ["f0", gap, last, gap]);
        for lost in &answers[2..4] {
            assert!(lost.starts_with("redis://fake/abab") && lost.contains("has lost value"), "{lost}");
        }
        fake.values.lock().expect("not poisoned").clear();
        let why = ask().expect_err("nothing is left");
        assert!(
            matches!(&why, Unanswered::Failed(Cause::Lost, what) if what.contains("has lost value")),
            "{why}"
        );
    }

    #[test]
    fn values_answer_each_reading_of_an_address() {
        let fake = Fake::new(1);
        fake.put(elf_index(0xab, 300, &[[0x1000, 0x64_000, 0x4000]]));
        let ask = |release, offset| {
            let reader = fake.reader(&ReaderOptions::new());
            let opened = reader.stores()[0].open(&id(0xab)).expect("readable").expect("there");
            let mut image = ReportImage::default();
            image.base = Base::Android { release, mapped: None };
            let offsets = [ImageOffset(offset)];
            let question = Question::new(&image, &offsets, LinePolicy::Statement);
            names(&ask_stored(&opened, &question, &mut Scratch::default()).expect("answers").0)
        };
        assert_eq!(ask(Some(10), 0x1008), ["f100"]);
        assert_eq!(ask(Some(8), 0x8), ["f100"]);
        assert_eq!(ask(None, 0x1008), ["f100"]);
        assert_eq!(ask(None, 0x65_008), ["f101"]);
    }

    #[test]
    fn an_index_that_was_replaced_after_it_was_opened_is_opened_again_once() {
        let fake = Fake::new(3);
        let reader = fake.reader(&ReaderOptions::new());
        let offsets = [0x8, 0x2008, 0x3008].map(ImageOffset);
        let image = ReportImage::default();
        let question = Question::new(&image, &offsets, LinePolicy::Statement);
        let ask = || {
            let image = reader.stores()[0].open(&id(0xab)).expect("readable").expect("there");
            fake.replace(4);
            ask_stored(&image, &question, &mut Scratch::default())
        };
        assert_eq!(
            names(&ask().expect("answers").0),
            ["f0", "f2", "f3"],
            "the new index has one function more"
        );
        assert_eq!((calls(&fake), reader.counts()[0].failed), ((2, 2), 0));
    }
}
