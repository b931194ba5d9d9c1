//! The answers for one report: the sources of each image are asked in order, until one answers every address.

use std::path::Path;

use symdex::{ImageId, ImageOffset, Index, LinePolicy, Scratch};
use symdex_report::{Answer, Answers, Image, Source, Unanswered, answer_from_index};

use super::debug_files::{BuiltIndex, DebugFiles, DebugImage};
use super::gathered::GatheredAnswers;
use super::sources::Candidate;
use super::{Event, Symbolicator, unanswered};
use crate::folder::open_index;

/// Answers reports, one at a time, from the sources of a [`Symbolicator`]. Each thread has its own.
pub struct Session<'a> {
    symbolicator: &'a Symbolicator,
    on_event: &'a (dyn Fn(Event<'_>) + Sync),
    scratch: Scratch,
}

impl<'a> Session<'a> {
    pub(super) fn new(symbolicator: &'a Symbolicator, on_event: &'a (dyn Fn(Event<'_>) + Sync)) -> Self {
        Self { symbolicator, on_event, scratch: Scratch::default() }
    }

    /// What `candidate` answers at `offsets` of the image with this id.
    fn ask(
        &mut self,
        candidate: &Candidate<'_>,
        id: &ImageId,
        query: ImageQuery<'_>,
    ) -> Result<Vec<Answer>, Unanswered> {
        let Self { symbolicator, on_event, scratch } = self;
        let ImageQuery { image, offsets, .. } = query;
        match candidate {
            Candidate::Index(path) => symbolicator.unless_damaged(path, || query.ask_file(path, id, scratch)),
            Candidate::DebugFile(file) if symbolicator.is_answered_directly(id, file, offsets.len()) => {
                let answer = |index: &Index<Vec<u8>>| query.ask(index, scratch);
                DebugFiles::answer_directly(file, image, offsets, answer)
            }
            Candidate::DebugFile(file) => match symbolicator.debug_files().index(file, *on_event)? {
                BuiltIndex::Stored(path) => query.ask_file(path, id, scratch),
                BuiltIndex::Memory(index) => query.ask(index, scratch),
            },
        }
    }
}

impl Source for Session<'_> {
    fn answer(
        &mut self,
        image: &Image,
        offsets: &[ImageOffset],
        lines: LinePolicy,
    ) -> Result<Answers, Unanswered> {
        let symbolicator = self.symbolicator;
        let query = ImageQuery { image, offsets, lines };
        ask_in_order(symbolicator, image, |candidate, id| self.ask(candidate, id, query))
    }
}

/// Says of each image which source has it, as [`AnsweredBy::source`](symdex_report::AnsweredBy::source). Every address
/// is answered with nothing.
///
/// Indexes are looked up, so that damage in them is found. Debug files are neither read nor built.
pub struct Availability<'a> {
    symbolicator: &'a Symbolicator,
    scratch: Scratch,
}

impl<'a> Availability<'a> {
    pub(super) fn new(symbolicator: &'a Symbolicator) -> Self {
        Self { symbolicator, scratch: Scratch::default() }
    }
}

impl Source for Availability<'_> {
    fn answer(
        &mut self,
        image: &Image,
        offsets: &[ImageOffset],
        lines: LinePolicy,
    ) -> Result<Answers, Unanswered> {
        let Self { symbolicator, scratch } = self;
        let query = ImageQuery { image, offsets, lines };
        ask_in_order(symbolicator, image, |candidate, id| match candidate {
            Candidate::Index(path) => {
                let ask = || query.ask_file(path, id, scratch);
                let answers = symbolicator.unless_damaged(path, ask)?;
                // Only damage is kept: frames with an answer would not be counted as frames that need the image.
                let without_functions = |answer: Answer| match answer {
                    Answer::Damaged(what) => Answer::Damaged(what),
                    _ => Answer::NoFunction,
                };
                Ok(answers.into_iter().map(without_functions).collect())
            }
            Candidate::DebugFile(file) => {
                check_arch(file, image)?;
                Ok(vec![Answer::NoFunction; offsets.len()])
            }
        })
    }
}

/// What a report asks of one image.
#[derive(Clone, Copy)]
struct ImageQuery<'q> {
    image: &'q Image,
    offsets: &'q [ImageOffset],
    lines: LinePolicy,
}

impl ImageQuery<'_> {
    /// What `index` answers.
    fn ask<B: AsRef<[u8]>>(
        &self,
        index: &Index<B>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Answer>, Unanswered> {
        answer_from_index(index, self.image, self.offsets, self.lines, scratch)
    }

    /// What the index at `path`, which should be that of `id`, answers.
    fn ask_file(&self, path: &Path, id: &ImageId, scratch: &mut Scratch) -> Result<Vec<Answer>, Unanswered> {
        let index = open_index(path, id).map_err(|error| unanswered(&error.into()))?;
        self.ask(&index, scratch)
    }
}

fn check_arch(file: &DebugImage, image: &Image) -> Result<(), Unanswered> {
    let known = file.known();
    if known.fits(image) { Ok(()) } else { Err(Unanswered::OtherArch(known.arch)) }
}

/// Asks the sources of `image` in order until one answers every address. Addresses that are damaged in one source are
/// answered by the next one that has them.
fn ask_in_order(
    symbolicator: &Symbolicator,
    image: &Image,
    mut ask: impl FnMut(&Candidate<'_>, &ImageId) -> Result<Vec<Answer>, Unanswered>,
) -> Result<Answers, Unanswered> {
    let (id, matched) = symbolicator.wanted(image)?;
    let mut gathered = GatheredAnswers::default();
    for candidate in symbolicator.candidates(&id) {
        let is_complete = match candidate {
            Ok(candidate) => gathered.add(&name(&candidate), ask(&candidate, &id)),
            Err(error) => gathered.add("", Err(unanswered(&error.into()))),
        };
        if is_complete {
            break;
        }
    }
    gathered.finish(matched)
}

/// What a source is called in answers: its path.
fn name(candidate: &Candidate<'_>) -> String {
    match candidate {
        Candidate::Index(path) => path.display().to_string(),
        Candidate::DebugFile(image) => image.path().display().to_string(),
    }
}
