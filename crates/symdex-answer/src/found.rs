//! Indexes of an image, wherever they are.

use std::path::PathBuf;
use std::sync::Arc;

use symdex::{Cause, Grade, ImageId, Index, Scratch};
use symdex_pipeline::BuiltIndex;
use symdex_report::{Answer, KnownImage, Question, Unanswered, answer_from_index, answer_from_lookups};
use symdex_store::{Error, OpenImage, SharedStore, StoredImage};

use super::known::{known_index, known_of};
use super::searched_folder::SearchedFolder;
use super::{Symbolicator, unanswered, unanswered_by_store};

/// A place that may have indexes. The places are searched in the order of [`Symbolicator::places`].
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// The single indexes.
    Files,
    /// A folder.
    Folder(&'a SearchedFolder),
    /// The folders below a folder.
    Below(&'a SearchedFolder),
    Store(&'a Arc<SharedStore>),
    /// The indexes of fetched files that could not be stored.
    Fetched,
}

/// An index of an image. Indexes in files are not open yet.
pub(crate) enum FoundIndex {
    File(PathBuf),
    Stored(OpenImage),
    Fetched(Arc<FetchedIndex>),
}

/// The index of a fetched debug file, in memory.
pub(crate) struct FetchedIndex {
    pub(crate) index: Index<BuiltIndex>,
    /// Where the debug file was.
    pub(crate) location: String,
}

/// The indexes of one image in one place. A place that cannot be searched has the reason instead.
pub(crate) type FoundIndexes = Vec<Result<FoundIndex, Unanswered>>;

impl Symbolicator {
    /// All places that may have indexes, in the order in which they are searched.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place<'_>> {
        let folders = self.folders.iter().flat_map(|folder| [Place::Folder(folder), Place::Below(folder)]);
        let stores = self.stores().stores().iter().map(Place::Store);
        [Place::Files].into_iter().chain(folders).chain(stores).chain([Place::Fetched])
    }

    /// The indexes of each of `ids` in `place`.
    pub(crate) fn find(&self, place: Place<'_>, ids: &[ImageId]) -> Vec<FoundIndexes> {
        let found = |path| Ok(FoundIndex::File(path));
        match place {
            Place::Files => {
                let of = |id: &ImageId| {
                    let files = self.files.iter().filter(|(known, _)| known.id == *id);
                    files.map(|(_, path)| found(path.clone())).collect()
                };
                ids.iter().map(of).collect()
            }
            Place::Folder(folder) => {
                let failed = |error: Error| vec![Err(unanswered(&error.into()))];
                let here = |id| folder.search(id).map(|paths| paths.into_iter().map(found).collect());
                ids.iter().map(|id| here(id).unwrap_or_else(failed)).collect()
            }
            Place::Below(folder) => ids.iter().map(|id| folder.find_below(id).map(found).collect()).collect(),
            Place::Store(store) => self.find_in_store(store, ids),
            Place::Fetched => {
                let of = |id| self.fetched(id).map(|index| Ok(FoundIndex::Fetched(index)));
                ids.iter().map(|id| of(id).into_iter().collect()).collect()
            }
        }
    }

    /// The first index of `id`, or why a place before it cannot be searched; `None` if no place has one.
    pub(crate) fn first_index(&self, id: &ImageId) -> Option<Result<FoundIndex, Unanswered>> {
        self.places().flat_map(|place| self.find(place, std::slice::from_ref(id))).flatten().next()
    }

    /// The images `ids` in `store`. Those that were found to be damaged lately are not opened.
    fn find_in_store(&self, store: &Arc<SharedStore>, ids: &[ImageId]) -> Vec<FoundIndexes> {
        let damage: Vec<_> = ids.iter().map(|id| self.damaged.known(|| store.store().location(id))).collect();
        let asked = ids.iter().zip(&damage).filter(|(_, damage)| damage.is_none());
        let asked: Vec<_> = asked.map(|(id, _)| id.clone()).collect();
        let mut opened = store.open_many(&asked).into_iter();
        let found = |(id, damage)| match damage {
            Some(damage) => vec![Err(damage)],
            None => {
                let opened = opened.next().unwrap_or(Ok(None)).map_err(unanswered_by_store);
                let opened = self.damaged.noting(|| store.store().location(id), opened);
                opened.transpose().map(|image| image.map(FoundIndex::Stored)).into_iter().collect()
            }
        };
        ids.iter().zip(damage).map(found).collect()
    }
}

impl FoundIndex {
    /// Where it is, for messages.
    pub(crate) fn location(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stored(image) => image.location(),
            Self::Fetched(fetched) => fetched.location.clone(),
        }
    }

    /// The most that it answers; `None` for a file, which is not open yet.
    pub(crate) fn grade(&self) -> Option<Grade> {
        match self {
            Self::File(_) => None,
            Self::Stored(image) => Some(image.metadata().grade()),
            Self::Fetched(fetched) => Some(fetched.index.metadata().grade()),
        }
    }

    /// The image; `None` if the index cannot be opened.
    pub(crate) fn known(&self) -> Option<KnownImage> {
        match self {
            Self::File(path) => known_index(path).ok(),
            Self::Stored(image) => Some(known_of(image.metadata().clone())),
            Self::Fetched(fetched) => Some(known_of(fetched.index.metadata().clone())),
        }
    }

    /// The answers to `question`, and the grade of the index. It is an error if a file is not the index of `id`.
    pub(crate) fn ask(
        &self,
        question: &Question<'_>,
        id: &ImageId,
        symbolicator: &Symbolicator,
        scratch: &mut Scratch,
    ) -> Result<(Vec<Answer>, Grade), Unanswered> {
        match self {
            Self::File(path) => {
                let index = symbolicator.open_file(path, id).map_err(|error| unanswered(&error.into()))?;
                ask_index(&index, question, scratch)
            }
            Self::Stored(image) => ask_stored(image, question, scratch),
            Self::Fetched(fetched) => ask_index(&fetched.index, question, scratch),
        }
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
            read = image.lookup_many(offsets, question.lines, scratch, |position, found| {
                each(position, found.map_err(|error| unreadable(&error)));
            });
        });
        read.map(|()| answers.map(|answers| (answers, image.metadata().grade())))
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
    use symdex_report::ReportImage;

    use super::*;
    use symdex_store::ReaderOptions;
    use symdex_testkit::fake_store::{Fake, calls};
    use symdex_testkit::indexes::id;

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
