//! Answers reports: asks the sources of each image in order, until one answers every address.

use std::fmt;
use std::path::Path;

use symdex::{ImageId, ImageOffset, Index, LinePolicy, Scratch};
use symdex_report::{Answer, Answers, Base, Image, Source, Unanswered, answer_from_index};

use super::debug_files::{BuiltIndex, DebugImage, FilesRead, IndexLocation};
use super::gathered::{GatheredAnswers, SourceAnswers};
use super::sources::Candidate;
use super::{Event, Symbolicator, unanswered, unanswered_by_store};
use symdex_store::open_index;

/// Answers reports, one at a time, from the sources of a [`Symbolicator`]. Each thread needs its own session.
pub struct Session<'a> {
    symbolicator: &'a Symbolicator,
    on_event: &'a (dyn Fn(Event<'_>) + Sync),
    scratch: Scratch,
}

impl fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("symbolicator", self.symbolicator).finish_non_exhaustive()
    }
}

impl<'a> Session<'a> {
    pub(crate) fn new(symbolicator: &'a Symbolicator, on_event: &'a (dyn Fn(Event<'_>) + Sync)) -> Self {
        Self { symbolicator, on_event, scratch: Scratch::default() }
    }

    /// The answers of `candidate` to `query`, for the image with this id.
    fn ask(
        &mut self,
        candidate: &Candidate<'_>,
        id: &ImageId,
        query: ImageQuery<'_>,
    ) -> Result<SourceAnswers, Unanswered> {
        let Self { symbolicator, on_event, scratch } = self;
        let file = match candidate {
            Candidate::DebugFile(file) => file,
            index => return query.ask_index(symbolicator, index, id, scratch),
        };
        let debug_files = symbolicator.debug_files();
        let (answers, FilesRead { path, failures }) = if query.image.base != Base::Function
            && symbolicator.is_answered_directly(id, file, query.offsets.len())
        {
            let answer = |index: &Index<Vec<u8>>| query.ask(index, scratch);
            debug_files.answer_directly(file, query.image, query.offsets, answer)?
        } else {
            let BuiltIndex { location, read } = debug_files.index(file, *on_event)?;
            let answers = match location {
                IndexLocation::Stored(store) => {
                    let image = symbolicator.stores().open(*store, id);
                    let image = image.map_err(unanswered_by_store)?;
                    let image = image.ok_or(Unanswered::Missing)?;
                    query.ask_stored(symbolicator.stores(), *store, &image, scratch)?
                }
                IndexLocation::Memory(index) => query.ask(index, scratch)?,
            };
            (answers, read.clone())
        };
        Ok(SourceAnswers { failures, ..SourceAnswers::from_file(&path, answers) })
    }
}

impl SourceAnswers {
    /// The answers of the file at `path`.
    fn from_file(path: &Path, answers: Vec<Answer>) -> Self {
        Self { answers, source: path.display().to_string(), failures: Vec::new() }
    }
}

impl Source for Session<'_> {
    fn prepare(&mut self, requests: &[(&Image, &[ImageOffset])]) {
        self.symbolicator.prepare(requests);
    }

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

/// States which source has each image, as [`AnsweredBy::source`](symdex_report::AnsweredBy::source). No address gets a
/// function.
///
/// Addresses are looked up in indexes, so that damage is found. Debug files are not read, and no index is built.
pub struct Availability<'a> {
    symbolicator: &'a Symbolicator,
    scratch: Scratch,
}

impl fmt::Debug for Availability<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Availability").field("symbolicator", self.symbolicator).finish_non_exhaustive()
    }
}

impl<'a> Availability<'a> {
    pub(crate) fn new(symbolicator: &'a Symbolicator) -> Self {
        Self { symbolicator, scratch: Scratch::default() }
    }
}

impl Source for Availability<'_> {
    fn prepare(&mut self, requests: &[(&Image, &[ImageOffset])]) {
        self.symbolicator.prepare(requests);
    }

    fn answer(
        &mut self,
        image: &Image,
        offsets: &[ImageOffset],
        lines: LinePolicy,
    ) -> Result<Answers, Unanswered> {
        let Self { symbolicator, scratch } = self;
        let query = ImageQuery { image, offsets, lines };
        ask_in_order(symbolicator, image, |candidate, id| match candidate {
            Candidate::DebugFile(file) => {
                check_arch(file, image)?;
                Ok(SourceAnswers::from_file(file.path(), vec![Answer::NoFunction; offsets.len()]))
            }
            index => {
                let answered = query.ask_index(symbolicator, index, id, scratch)?;
                // Only damage is kept. Frames with an answer would not be counted as frames that need the image.
                let without_functions = |answer: Answer| match answer {
                    Answer::Damaged(what) => Answer::Damaged(what),
                    _ => Answer::NoFunction,
                };
                let answers = answered.answers.into_iter().map(without_functions).collect();
                Ok(SourceAnswers { answers, ..answered })
            }
        })
    }
}

/// The question of a report about one image.
#[derive(Clone, Copy)]
pub(crate) struct ImageQuery<'q> {
    pub(crate) image: &'q Image,
    pub(crate) offsets: &'q [ImageOffset],
    pub(crate) lines: LinePolicy,
}

impl ImageQuery<'_> {
    /// The answers of `index`.
    pub(crate) fn ask<B: AsRef<[u8]>>(
        &self,
        index: &Index<B>,
        scratch: &mut Scratch,
    ) -> Result<Vec<Answer>, Unanswered> {
        answer_from_index(index, self.image, self.offsets, self.lines, scratch)
    }

    /// The answers of `candidate`, which is an index of `id`.
    fn ask_index(
        &self,
        symbolicator: &Symbolicator,
        candidate: &Candidate<'_>,
        id: &ImageId,
        scratch: &mut Scratch,
    ) -> Result<SourceAnswers, Unanswered> {
        let stores = symbolicator.stores();
        let source = match candidate {
            Candidate::Index(path) => path.display().to_string(),
            Candidate::Stored(store, _) => stores.stores()[*store].location(id),
            Candidate::Fetched(fetched) => fetched.location.clone(),
            Candidate::DebugFile(_) => return Err(Unanswered::Missing),
        };
        let answers = symbolicator.unless_damaged(&source, || match candidate {
            Candidate::Index(path) => self.ask_file(symbolicator, path, id, scratch),
            Candidate::Stored(store, image) => self.ask_stored(stores, *store, image, scratch),
            Candidate::Fetched(fetched) => self.ask(&fetched.index, scratch),
            Candidate::DebugFile(_) => Err(Unanswered::Missing),
        })?;
        Ok(SourceAnswers { answers, source, failures: Vec::new() })
    }

    /// The answers of the index at `path`. It is an error if this is not the index of `id`.
    fn ask_file(
        &self,
        symbolicator: &Symbolicator,
        path: &Path,
        id: &ImageId,
        scratch: &mut Scratch,
    ) -> Result<Vec<Answer>, Unanswered> {
        let index = open_index(path, id, symbolicator.access()).map_err(|error| unanswered(&error.into()))?;
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
    mut ask: impl FnMut(&Candidate<'_>, &ImageId) -> Result<SourceAnswers, Unanswered>,
) -> Result<Answers, Unanswered> {
    let (id, matched) = symbolicator.wanted(image)?;
    let mut gathered = GatheredAnswers::default();
    for candidate in symbolicator.candidates(&id) {
        let answered = match candidate {
            Ok(candidate) => ask(&candidate, &id),
            Err(why) => Err(why),
        };
        if gathered.add(answered) {
            break;
        }
    }
    gathered.finish(matched)
}
