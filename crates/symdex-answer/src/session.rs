//! Answers reports: asks the sources of indexes in order, then debug files, until every address is answered
//! by a source with lines, or none is left.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use symdex::{Cause, Grade, ImageId, ImageOffset, Index, OwnedUnwindRow, Scratch};
use symdex_report::{
    Answer, Answers, Base, GatheredAnswers, MatchedBy, Question, ReportImage, Source, SourceAnswers,
    Unanswered, answer_from_index, image_offsets,
};
use symdex_store::{OpenImage, SharedStore, StoredImage};

use super::debug_files::{DebugImage, FilesRead, IndexLocation, NewIndex};
use super::found::{FoundIndex, ask_index, ask_stored};
use super::unwind::RowSource;
use super::{Event, Matching, Symbolicator, unanswered_by_store};

/// Answers the questions of reports, one report at a time, from the sources of a [`Symbolicator`]. Each thread needs
/// its own session. [`Symbolicator::session`] and [`Symbolicator::availability`] make one.
pub struct Session<'a> {
    symbolicator: &'a Symbolicator,
    mode: Mode<'a>,
    matching: Option<&'a Matching>,
    /// What may have the unwind rows of the images that were asked for.
    row_sources: HashMap<ImageId, Vec<RowSource<'a>>>,
    scratch: Scratch,
}

/// How many bytes of answers a session caches. Those of earlier reports are found before an index is asked.
const CAPACITY: usize = 1 << 20;

/// What a session answers.
#[derive(Clone, Copy)]
pub(crate) enum Mode<'a> {
    /// Functions. Debug files are read, and indexes are built.
    Functions(&'a (dyn Fn(Event<'_>) + Sync)),
    /// Which source has each image. No address gets a function, and no debug file is read.
    Availability,
}

/// A question, and what the sources that were asked so far have answered.
struct Asked<'q> {
    question: &'q Question<'q>,
    id: ImageId,
    matched: MatchedBy,
    gathered: GatheredAnswers,
    /// Whether no further source may have a better answer.
    is_answered: bool,
    /// The stores that have lost the index or parts of it, or of which the index is damaged.
    lost_in: Vec<Arc<SharedStore>>,
    /// Whether the image has an index, even a damaged one.
    has_index: bool,
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("symbolicator", self.symbolicator).finish_non_exhaustive()
    }
}

/// Each source is asked for the images of all questions together, as far as no source before it has answered every
/// address from an index with lines. Addresses that are damaged in one source are answered by the next one that has
/// them, and an index without lines, such as that of a stripped binary, does not hide one that knows more.
impl Source for Session<'_> {
    fn answer(&mut self, questions: &[Question<'_>]) -> Vec<Result<Answers, Unanswered>> {
        let images: Vec<_> = questions.iter().map(|question| question.image).collect();
        let wanted = self.symbolicator.wanted(&images, self.matching);
        let asked = questions.iter().zip(wanted).map(|(question, wanted)| Ok(Asked::new(question, wanted?)));
        let mut asked: Vec<Result<Asked<'_>, Unanswered>> = asked.collect();
        for source in self.symbolicator.sources() {
            let mut left: Vec<_> = asked.iter_mut().flatten().filter(|asked| !asked.is_answered).collect();
            left.chunks_mut(source.store().images_at_once()).for_each(|some| self.ask_source(source, some));
        }
        for asked in asked.iter_mut().flatten().filter(|asked| !asked.is_answered) {
            if let Some(index) = self.symbolicator.fetched(&asked.id) {
                self.ask_index(asked, &index);
            }
            if !asked.is_answered {
                self.ask_debug_file(asked);
            }
        }
        asked.into_iter().map(|asked| asked.and_then(Asked::finish)).collect()
    }

    /// The row of the first source that has one. Sources that are damaged or cannot be read are passed over.
    fn unwind_row(
        &mut self,
        image: &ReportImage,
        offset: ImageOffset,
    ) -> Result<Option<OwnedUnwindRow>, Unanswered> {
        let wanted = self.symbolicator.wanted(&[image], self.matching).pop();
        let (id, _) = wanted.unwrap_or(Err(Unanswered::Missing))?;
        let (symbolicator, mode) = (self.symbolicator, self.mode);
        let sources = self
            .row_sources
            .entry(id)
            .or_insert_with_key(|id| symbolicator.row_sources(id, matches!(mode, Mode::Functions(_))));
        let mut rows = sources.iter().map(|source| symbolicator.row_of(source, image, offset));
        Ok(rows.find_map(|row| row.ok().flatten()))
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(symbolicator: &'a Symbolicator, mode: Mode<'a>) -> Self {
        let scratch = Scratch::with_capacity(CAPACITY);
        Self { symbolicator, mode, matching: None, row_sources: HashMap::new(), scratch }
    }

    /// Replaces the symbolicator's assumptions and its matching by name.
    #[must_use]
    pub fn matching(self, matching: Option<&'a Matching>) -> Self {
        Self { matching, ..self }
    }

    /// Asks the indexes that `source` has of the images of `asked`.
    fn ask_source(&mut self, source: &Arc<SharedStore>, asked: &mut [&mut Asked<'_>]) {
        let ids: Vec<_> = asked.iter().map(|asked| asked.id.clone()).collect();
        let mut found = self.symbolicator.find_in(source, &ids);
        let mut fetched = 0;
        for at in 0..asked.len() {
            if at == fetched {
                fetched += prefetch(source, &asked[at..], &found[at..]);
            }
            match found[at].take() {
                Some(Ok(index)) => self.ask_index(asked[at], &index),
                Some(Err(why)) => {
                    if why.cause() == Cause::Damaged {
                        asked[at].has_index = true;
                        asked[at].lost_in.push(Arc::clone(source));
                    }
                    asked[at].add(Err(why));
                }
                None => {}
            }
        }
    }

    /// Asks `index`, unless it cannot know more than what was asked before.
    fn ask_index(&mut self, asked: &mut Asked<'_>, index: &OpenImage) {
        asked.has_index = true;
        if !asked.gathered.lacks(index.metadata().grade()) {
            return;
        }
        let (symbolicator, source) = (self.symbolicator, index.location());
        let answered = match symbolicator.damaged.known(|| source.clone()) {
            Some(damage) => Err(damage),
            None => {
                let answered = ask_stored(index, asked.question, &mut self.scratch);
                symbolicator.damaged.noting(|| source.clone(), answered)
            }
        };
        if let (Some(store), Mode::Functions(_)) = (index.store(), self.mode) {
            self.heal(asked, store, &answered);
        }
        let shown = |answer| match (self.mode, answer) {
            (Mode::Functions(_), answer) | (_, answer @ Answer::Unreadable(..)) => answer,
            // Frames with an answer would not be counted as frames that need the image.
            (Mode::Availability, _) => Answer::NoFunction,
        };
        let failures = Vec::new();
        asked.add(answered.map(|(answers, grade)| {
            let answers = answers.into_iter().map(shown).collect();
            SourceAnswers { answers, source, grade, failures }
        }));
    }

    /// Notes if `store` has lost what `asked` needs. If it has not, its index is put into the stores that have.
    fn heal(
        &self,
        asked: &mut Asked<'_>,
        store: &Arc<SharedStore>,
        answered: &Result<(Vec<Answer>, Grade), Unanswered>,
    ) {
        let is_lost = match answered {
            Ok((answers, _)) => answers.iter().any(Answer::is_unreadable),
            Err(why) => why.cause().is_damage(),
        };
        if is_lost {
            asked.lost_in.push(Arc::clone(store));
        } else if answered.is_ok() {
            for to in asked.lost_in.drain(..) {
                self.symbolicator.healer().refill(&asked.id, &to, store);
            }
        }
    }

    /// Asks the debug file of the image, if it may know more than the indexes.
    fn ask_debug_file(&mut self, asked: &mut Asked<'_>) {
        let file = self.symbolicator.debug_files().image(&asked.id);
        if let Some(file) = file.filter(|file| asked.gathered.lacks(file.grade())) {
            let answered = match self.mode {
                Mode::Functions(on_event) => self.functions_of(file, asked, on_event),
                Mode::Availability => availability_of(file, asked.question),
            };
            asked.add(answered);
        }
    }

    /// The answers of the debug file `file`: from the index that it carries; without one, directly if the addresses are
    /// few and the image has no index, not even a damaged one that needs replacing; otherwise from its index, which is
    /// built if need be.
    fn functions_of(
        &mut self,
        file: &DebugImage,
        asked: &Asked<'_>,
        on_event: &(dyn Fn(Event<'_>) + Sync),
    ) -> Result<SourceAnswers, Unanswered> {
        let (debug_files, question) = (self.symbolicator.debug_files(), asked.question);
        let Question { image, offsets, .. } = *question;
        if let Some(index) = debug_files.embedded(file, on_event).filter(|_| !asked.has_index) {
            let read = FilesRead { path: file.path().to_owned(), failures: Vec::new() };
            return Ok(answers_of_files(read, ask_index(index, question, &mut self.scratch)?));
        }
        let is_direct = image.base != Base::Function && !asked.has_index;
        if is_direct && debug_files.are_few(file, offsets.len()) {
            let answer = |index: &Index<Vec<u8>>| answer_from_index(index, question, &mut Scratch::default());
            let (answers, read) = debug_files.answer_directly(file, image, offsets, answer)?;
            return Ok(answers_of_files(read, (answers, file.grade())));
        }
        let NewIndex { location, read, .. } = debug_files.index(file, on_event)?;
        let answers = match location {
            IndexLocation::Stored(store) => {
                let image = store.open(&asked.id).map_err(unanswered_by_store)?;
                ask_stored(&image.ok_or(Unanswered::Missing)?, question, &mut self.scratch)?
            }
            IndexLocation::Memory(index) => ask_index(index, question, &mut self.scratch)?,
        };
        Ok(answers_of_files(read.clone(), answers))
    }
}

impl<'q> Asked<'q> {
    fn new(question: &'q Question<'q>, (id, matched): (ImageId, MatchedBy)) -> Self {
        let gathered = GatheredAnswers::default();
        Self { question, id, matched, gathered, is_answered: false, lost_in: Vec::new(), has_index: false }
    }

    fn add(&mut self, answered: Result<SourceAnswers, Unanswered>) {
        self.gathered.add(answered);
        self.is_answered = !self.gathered.lacks(Grade::Lines);
    }

    fn finish(self) -> Result<Answers, Unanswered> {
        self.gathered.finish(self.matched)
    }
}

fn answers_of_files(read: FilesRead, (answers, grade): (Vec<Answer>, Grade)) -> SourceAnswers {
    SourceAnswers { answers, source: read.path.display().to_string(), grade, failures: read.failures }
}

/// Fetches the values of `store` that answer the first images of `asked` together. Returns for how many images it did.
fn prefetch(store: &SharedStore, asked: &[&mut Asked<'_>], found: &[FoundIndex]) -> usize {
    store.prefetch(asked.iter().zip(found).map(|(asked, found)| {
        let Question { image, offsets, .. } = *asked.question;
        let Some(Ok(found)) = found else { return None };
        let is_needed =
            matches!(found.image(), StoredImage::Values(_)) && asked.gathered.lacks(found.grade());
        // Offsets that cannot be converted are not looked up.
        is_needed.then(|| (found, image_offsets(found.metadata(), image, offsets).unwrap_or_default()))
    }))
}

/// The answers of `file` without reading it.
fn availability_of(file: &DebugImage, question: &Question<'_>) -> Result<SourceAnswers, Unanswered> {
    let known = file.known();
    if !known.fits(question.image) {
        return Err(Unanswered::other_arch(&known.arch));
    }
    let answers = vec![Answer::NoFunction; question.offsets.len()];
    let read = FilesRead { path: file.path().to_owned(), failures: Vec::new() };
    Ok(answers_of_files(read, (answers, file.grade())))
}
