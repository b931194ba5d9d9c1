//! Answers reports: asks the places that may have indexes in order, then debug files, until every address is answered.

use std::fmt;

use symdex::{ImageId, Index, Scratch};
use symdex_report::{
    Answer, Answers, Base, GatheredAnswers, MatchedBy, Question, Source, SourceAnswers, Unanswered,
    answer_from_index, image_offsets,
};
use symdex_store::{SharedStore, StoredImage};

use super::debug_files::{DebugImage, FilesRead, IndexLocation, NewIndex};
use super::found::{FoundIndex, FoundIndexes, Place, ask_stored};
use super::{Event, Matching, Symbolicator, unanswered_by_store};

/// Answers the questions of reports, one report at a time, from the sources of a [`Symbolicator`]. Each thread needs its
/// own session. [`Symbolicator::session`] and [`Symbolicator::availability`] make one.
pub struct Session<'a> {
    symbolicator: &'a Symbolicator,
    mode: Mode<'a>,
    matching: Option<&'a Matching>,
    scratch: Scratch,
}

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
    is_answered: bool,
    /// Whether the image has an index, even a damaged one.
    has_index: bool,
    /// Indexes without debug information, of an image whose debug file has some. They are asked last.
    postponed: Vec<FoundIndex>,
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("symbolicator", self.symbolicator).finish_non_exhaustive()
    }
}

/// Each place is asked for the images of all questions together, as far as the places before it have not answered every
/// address. Addresses that are damaged in one source are answered by the next one that has them.
impl Source for Session<'_> {
    fn answer(&mut self, questions: &[Question<'_>]) -> Vec<Result<Answers, Unanswered>> {
        let images: Vec<_> = questions.iter().map(|question| question.image).collect();
        let wanted = self.symbolicator.wanted(&images, self.matching);
        let asked = questions.iter().zip(wanted).map(|(question, wanted)| Ok(Asked::new(question, wanted?)));
        let mut asked: Vec<Result<Asked<'_>, Unanswered>> = asked.collect();
        for place in self.symbolicator.places() {
            let left = asked.iter_mut().flatten().filter(|asked| !asked.is_answered);
            let mut left: Vec<_> = left.collect();
            let at_once = match place {
                Place::Store(store) => store.store().images_at_once(),
                _ => 1,
            };
            left.chunks_mut(at_once).for_each(|some| self.ask_place(place, some));
        }
        for asked in asked.iter_mut().flatten().filter(|asked| !asked.is_answered) {
            self.ask_debug_file(asked);
        }
        asked.into_iter().map(|asked| asked.and_then(Asked::finish)).collect()
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(symbolicator: &'a Symbolicator, mode: Mode<'a>) -> Self {
        Self { symbolicator, mode, matching: None, scratch: Scratch::default() }
    }

    /// Replaces the symbolicator's assumptions and its matching by name.
    #[must_use]
    pub fn matching(self, matching: Option<&'a Matching>) -> Self {
        Self { matching, ..self }
    }

    /// Asks the indexes that `place` has of the images of `asked`.
    fn ask_place(&mut self, place: Place<'_>, asked: &mut [&mut Asked<'_>]) {
        let ids: Vec<_> = asked.iter().map(|asked| asked.id.clone()).collect();
        let mut found = self.symbolicator.find(place, &ids);
        let mut fetched = 0;
        for at in 0..asked.len() {
            if let Place::Store(store) = place
                && at == fetched
            {
                fetched += prefetch(store, &asked[at..], &found[at..]);
            }
            let asked = &mut *asked[at];
            for index in std::mem::take(&mut found[at]) {
                match index {
                    Ok(index) => self.add_index(asked, index),
                    Err(why) => {
                        asked.has_index |= matches!(why, Unanswered::Damaged(_));
                        asked.add(Err(why));
                    }
                }
                if asked.is_answered {
                    break;
                }
            }
        }
    }

    /// Asks `index`, unless a debug file knows more.
    fn add_index(&mut self, asked: &mut Asked<'_>, index: FoundIndex) {
        asked.has_index = true;
        match self.symbolicator.debug_files().has_dwarf(&asked.id) && index.is_without_dwarf() {
            true => asked.postponed.push(index),
            false => self.ask_index(asked, &index),
        }
    }

    fn ask_index(&mut self, asked: &mut Asked<'_>, index: &FoundIndex) {
        let (symbolicator, source) = (self.symbolicator, index.location());
        let answered = match symbolicator.known_damage(&source) {
            Some(damage) => Err(damage),
            None => {
                let access = symbolicator.access();
                let answered = index.ask(asked.question, &asked.id, access, &mut self.scratch);
                symbolicator.noting_damage(&source, answered)
            }
        };
        let shown = |answer| match (self.mode, answer) {
            (Mode::Functions(_), answer) | (_, answer @ Answer::Damaged(_)) => answer,
            // Frames with an answer would not be counted as frames that need the image.
            (Mode::Availability, _) => Answer::NoFunction,
        };
        let failures = Vec::new();
        asked.add(answered.map(|answers| {
            let answers = answers.into_iter().map(shown).collect();
            SourceAnswers { answers, source, failures }
        }));
    }

    /// Asks the debug file of the image, and then the indexes that know less than it.
    fn ask_debug_file(&mut self, asked: &mut Asked<'_>) {
        if let Some(file) = self.symbolicator.debug_files().image(&asked.id) {
            let answered = match self.mode {
                Mode::Functions(on_event) => self.functions_of(file, asked, on_event),
                Mode::Availability => availability_of(file, asked.question),
            };
            asked.add(answered);
        }
        for index in std::mem::take(&mut asked.postponed) {
            if !asked.is_answered {
                self.ask_index(asked, &index);
            }
        }
    }

    /// The answers of the debug file `file`: directly if the addresses are few and the image has no index, not even a
    /// damaged one that needs replacing; otherwise from its index, which is built if need be.
    fn functions_of(
        &mut self,
        file: &DebugImage,
        asked: &Asked<'_>,
        on_event: &(dyn Fn(Event<'_>) + Sync),
    ) -> Result<SourceAnswers, Unanswered> {
        let (debug_files, scratch) = (self.symbolicator.debug_files(), &mut self.scratch);
        let question = asked.question;
        let Question { image, offsets, .. } = *question;
        let is_direct = image.base != Base::Function && !asked.has_index;
        if is_direct && debug_files.are_few(file, offsets.len()) {
            let answer = |index: &Index<Vec<u8>>| answer_from_index(index, question, scratch);
            let (answers, read) = debug_files.answer_directly(file, image, offsets, answer)?;
            return Ok(answers_of_files(read, answers));
        }
        let NewIndex { location, read } = debug_files.index(file, on_event)?;
        let answers = match location {
            IndexLocation::Stored(store) => {
                let image = store.open(&asked.id).map_err(unanswered_by_store)?;
                ask_stored(&image.ok_or(Unanswered::Missing)?, question, scratch)?
            }
            IndexLocation::Memory(index) => answer_from_index(index, question, scratch)?,
        };
        Ok(answers_of_files(read.clone(), answers))
    }
}

impl<'q> Asked<'q> {
    fn new(question: &'q Question<'q>, (id, matched): (ImageId, MatchedBy)) -> Self {
        let gathered = GatheredAnswers::default();
        Self { question, id, matched, gathered, is_answered: false, has_index: false, postponed: Vec::new() }
    }

    fn add(&mut self, answered: Result<SourceAnswers, Unanswered>) {
        self.is_answered = self.gathered.add(answered);
    }

    fn finish(self) -> Result<Answers, Unanswered> {
        self.gathered.finish(self.matched)
    }
}

fn answers_of_files(read: FilesRead, answers: Vec<Answer>) -> SourceAnswers {
    SourceAnswers { answers, source: read.path.display().to_string(), failures: read.failures }
}

/// Fetches the values of `store` that answer the first images of `asked` together. Returns for how many images it did.
fn prefetch(store: &SharedStore, asked: &[&mut Asked<'_>], found: &[FoundIndexes]) -> usize {
    let images = asked.iter().zip(found).map(|(asked, found)| match &found[..] {
        [Ok(FoundIndex::Stored(image))] if matches!(image.image(), StoredImage::Values(_)) => {
            let Question { image: wanted, offsets, .. } = *asked.question;
            Some((image, image_offsets(image.metadata(), wanted, offsets).ok()?))
        }
        _ => None,
    });
    store.prefetch(images)
}

/// The answers of `file` without reading it.
fn availability_of(file: &DebugImage, question: &Question<'_>) -> Result<SourceAnswers, Unanswered> {
    let known = file.known();
    if !known.fits(question.image) {
        return Err(Unanswered::OtherArch(known.arch));
    }
    let answers = vec![Answer::NoFunction; question.offsets.len()];
    let read = FilesRead { path: file.path().to_owned(), failures: Vec::new() };
    Ok(answers_of_files(read, answers))
}
