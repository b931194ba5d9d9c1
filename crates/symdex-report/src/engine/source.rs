//! Sources: what answers the offsets of an image.

use std::sync::Arc;

use symdex::{Cause, Frames, Grade, ImageOffset, Index, LinePolicy, Metadata, OwnedUnwindRow, Scratch};

use crate::engine::function::{Function, RawTexts};
use crate::engine::known::{AnswersOf, KnownAnswer, KnownAnswers};
use crate::engine::limits::{ADDRESS_BYTES, AnswerBytes};
use crate::engine::near::KnownImage;
use crate::engine::readings::{Reading, readings};
use crate::report::{Base, ReportImage};

/// The answers for so many offsets of one image at a time are not kept: they are hardly asked for again.
const MANY: usize = 4096;

/// The place of a known answer among the positions of those that are not.
const KNOWN: usize = usize::MAX;

/// Answers the questions of reports, for example from a folder of indexes or from the storage of a service.
///
/// [`answer_from_index`] does the work for a source that has opened an image's index. A function that answers one
/// [`Question`] is a source, too:
///
/// ```
/// use symdex_report::{Answers, Options, Question, Report, Unanswered, symbolicate};
///
/// fn nothing(_: &Question<'_>) -> Result<Answers, Unanswered> {
///     Err(Unanswered::Missing)
/// }
///
/// let report = Report::parse(b"App 0x104a343d0 0x104a34000 6dcd4e9dd3b13a0e8dff6a5a4be1b1b0")?;
/// assert!(symbolicate(&report, &mut nothing, &Options::new()).resolution(0, 0).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Source {
    /// Returns the answers for each of `questions`, in their order, or why there are none. A question without a result
    /// counts as [`Unanswered::Missing`].
    ///
    /// [`symbolicate`](crate::symbolicate()) asks all questions of a report in one call, as long as they have at most
    /// 16,384 offsets together. A source can fetch what it needs for all of them at once.
    fn answer(&mut self, questions: &[Question<'_>]) -> Vec<Result<Answers, Unanswered>>;

    /// Returns the unwind row of the code at an offset of `image`, for walks of stacks. The offset counts as those of
    /// [`Question::offsets`]. Returns `None` if no index has one, as a source without unwind rows always does.
    ///
    /// # Errors
    ///
    /// Why the source cannot be asked for the image.
    fn unwind_row(
        &mut self,
        image: &ReportImage,
        offset: ImageOffset,
    ) -> Result<Option<OwnedUnwindRow>, Unanswered> {
        let _ = (image, offset);
        Ok(None)
    }
}

impl<F: FnMut(&Question<'_>) -> Result<Answers, Unanswered>> Source for F {
    fn answer(&mut self, questions: &[Question<'_>]) -> Vec<Result<Answers, Unanswered>> {
        questions.iter().map(self).collect()
    }
}

/// What a source is asked for: offsets of one image.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Question<'q> {
    /// The image, to be found by its id. An image without an id is [`Unanswered::Missing`], unless the user asked for a
    /// match by name; see [`match_by_name`](crate::match_by_name).
    pub image: &'q ReportImage,
    /// Distinct offsets in ascending order. They count from what [`ReportImage::base`] says. [`image_offsets`] converts
    /// them to offsets from the start of the image, and [`answer_from_index`] does so itself.
    pub offsets: &'q [ImageOffset],
    /// Which of the two lines of a range the answers state.
    pub lines: LinePolicy,
    /// How many bytes the answers of all questions that are asked together may still have.
    left: Arc<AnswerBytes>,
}

impl<'q> Question<'q> {
    /// The question for `offsets` of `image`.
    #[must_use]
    pub fn new(image: &'q ReportImage, offsets: &'q [ImageOffset], lines: LinePolicy) -> Self {
        Self { image, offsets, lines, left: Arc::new(AnswerBytes::in_memory(0)) }
    }

    /// The questions for several images, to be asked together. Their answers share one limit of 64 MiB.
    pub fn of_images(
        images: impl IntoIterator<Item = (&'q ReportImage, &'q [ImageOffset])>,
        lines: LinePolicy,
    ) -> Vec<Self> {
        let left = Arc::new(AnswerBytes::in_memory(0));
        let question = |(image, offsets)| Self { image, offsets, lines, left: Arc::clone(&left) };
        images.into_iter().map(question).collect()
    }
}

/// The answers of a source for the offsets of one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// An answer for each offset, in their order. A missing answer counts as [`Answer::NoFunction`].
    pub answers: Vec<Answer>,
    /// Where the answers come from.
    pub by: AnsweredBy,
}

/// Answers from an index that has the image's id.
impl From<Vec<Answer>> for Answers {
    fn from(answers: Vec<Answer>) -> Self {
        Self { answers, by: AnsweredBy::default() }
    }
}

/// Where the answers for an image come from.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnsweredBy {
    /// How the index was chosen.
    pub matched: MatchedBy,
    /// The name of the index or debug file, for messages. `None` if the source does not state it, or if several
    /// answered.
    pub source: Option<String>,
    /// The greatest grade of the sources that answered. `None` if they do not state it. The answers for single
    /// addresses may have less.
    pub grade: Option<Grade>,
    /// Why other indexes of the image, which were asked before, did not answer every offset: they are damaged,
    /// unsupported or unreadable, or parts of them are lost.
    pub passed_over: Vec<Unanswered>,
    /// Whether offsets have no answer because parts of an index are lost, and no other source has them.
    pub is_partly_lost: bool,
}

impl AnsweredBy {
    /// An index that was chosen by `matched`. Its name and the indexes that failed are set afterwards.
    #[must_use]
    pub fn new(matched: MatchedBy) -> Self {
        Self { matched, ..Self::default() }
    }

    /// The reasons in [`passed_over`](Self::passed_over) that count even if another source has answered every offset.
    /// Stores that could not be asked do not count then, and neither do lost parts of an index.
    pub fn lasting(&self) -> impl Iterator<Item = &Unanswered> {
        let is_lasting = |why: &&Unanswered| match why {
            Unanswered::Failed(Cause::Unavailable, _) => false,
            Unanswered::Failed(Cause::Lost, _) => self.is_partly_lost,
            _ => true,
        };
        self.passed_over.iter().filter(is_lasting)
    }
}

/// How the index that answers for an image was chosen.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchedBy {
    /// The index has the image's id.
    #[default]
    Id,
    /// The report does not state the image's id, and the index is the only one of the image's name. It may be of
    /// another build.
    Name,
    /// The user chose the index.
    Assumed,
}

impl MatchedBy {
    /// The word in JSON: `id`, `name` or `assumed`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MatchedBy::Id => "id",
            MatchedBy::Name => "name",
            MatchedBy::Assumed => "assumed",
        }
    }
}

/// The answer for one offset.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The functions at the offset, innermost first. An empty list counts as [`Answer::NoFunction`].
    /// [`Answer::functions`] makes it.
    Functions(Arc<[Function]>),
    /// There is no function at the offset.
    NoFunction,
    /// The offset has several readings, because the report does not state which release of Android wrote it
    /// ([`Base::Android`]), and their functions differ. The text names them.
    Ambiguous(String),
    /// The functions at the offset are left out, because they have more than 2 MiB of text, or the answers of the
    /// report have too much.
    TooLarge,
    /// The index is damaged at the offset, or the store has lost the part of it that answers the offset. The text says
    /// more.
    Unreadable(Cause, String),
}

impl Answer {
    /// The functions at an offset, innermost first. All but the last become [inlined](Function::inlined).
    #[must_use]
    pub fn functions(mut functions: Vec<Function>) -> Self {
        let concrete = functions.len().saturating_sub(1);
        functions.iter_mut().enumerate().for_each(|(at, function)| function.inlined = at != concrete);
        Answer::Functions(functions.into())
    }

    /// The answer where reading the index has failed.
    pub(crate) fn damaged(error: &symdex::Error) -> Self {
        Answer::Unreadable(Cause::Damaged, error.to_string())
    }

    /// What the answer has: a name and a line, a name, or only bounds. An answer that is left out or ambiguous counts
    /// as one with lines, because other sources give one that is as large or ambiguous.
    #[must_use]
    pub fn grade(&self) -> Grade {
        match self {
            Answer::Functions(functions) => grade_of(functions),
            Answer::TooLarge | Answer::Ambiguous(_) => Grade::Lines,
            Answer::NoFunction | Answer::Unreadable(..) => Grade::Nothing,
        }
    }

    /// The greater of two answers for an offset counts.
    pub(crate) fn rank(&self) -> (bool, Grade) {
        (!self.is_unreadable(), self.grade())
    }

    /// The answer for an offset that has this answer in one reading, and `other` in another one. If both are the same,
    /// the distance from the start of the function is unknown nevertheless.
    fn or(self, other: Self) -> Self {
        let [one, other] = [self, other].map(|answer| match answer {
            Answer::Functions(all) => Answer::Functions(all.iter().map(Function::without_start).collect()),
            other => other,
        });
        match (one, other) {
            (one, other) if one == other => one,
            (unknown @ (Answer::Unreadable(..) | Answer::TooLarge), _)
            | (_, unknown @ (Answer::Unreadable(..) | Answer::TooLarge)) => unknown,
            (one, other) => Answer::Ambiguous(format!("{} or {}", one.summary(), other.summary())),
        }
    }

    /// The functions in a few words, for messages.
    fn summary(&self) -> String {
        match self {
            Answer::Functions(functions) => functions.first().map(Function::summary).unwrap_or_default(),
            Answer::Ambiguous(summary) => summary.clone(),
            _ => "no function".to_owned(),
        }
    }

    /// Whether another index of the image may answer the offset: this one is damaged there, or the part is lost.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Answer::Unreadable(..))
    }
}

/// The grade of an answer with these functions. Without a name it has [`Grade::Bounds`], whatever else it states.
pub(crate) fn grade_of(functions: &[Function]) -> Grade {
    let has_line = functions.iter().any(|function| function.line.is_some());
    match functions.iter().any(|function| function.name().is_some()) {
        true if has_line => Grade::Lines,
        true => Grade::Names,
        false if functions.is_empty() => Grade::Nothing,
        false => Grade::Bounds,
    }
}

/// Why a source has no answers for an image.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// There is no index of the image.
    Missing,
    /// The index of this id is for another architecture, or the report states a function and no load address
    /// ([`Base::Function`]), and where the function starts is unknown. The text says more.
    NoMatch(String),
    /// The report does not state the image's id, and several images have its name, or it states only the start of the
    /// id, and several ids begin so. [`Unanswered::ambiguous`] makes it.
    Ambiguous {
        /// The first five of them. A store can have hundreds of builds of one name.
        candidates: Vec<KnownImage>,
        /// How many there are.
        count: usize,
    },
    /// Its debug file is being fetched, or its index is being built. A later request may be answered.
    Fetching,
    /// Its debug file could not be fetched. The text says why.
    FetchFailed(String),
    /// An index or a debug file of the image cannot be used. The cause is [`Cause::Unavailable`] if a store could not
    /// be asked, and no other source has the image; the same request may be answered later. The text says more.
    Failed(Cause, String),
}

/// Returns the answers of an opened index for the offsets of `question`, in their order.
///
/// The answers of all questions that are asked together have at most 64 MiB, and the answer at one address 2 MiB. Those
/// past this are [`Answer::TooLarge`].
///
/// Use it in [`Source::answer`]. `scratch` keeps answers that the index gave before; have one for each thread.
///
/// ```
/// use symdex::{ImageOffset, Index, LinePolicy, Scratch};
/// use symdex_report::{Answer, ReportImage, Question, answer_from_index};
///
/// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
/// let index = Index::open(std::fs::read(path)?)?;
/// let offsets = [ImageOffset(0x3cf), ImageOffset(u64::MAX)];
/// let image = ReportImage::default();
/// let question = Question::new(&image, &offsets, LinePolicy::Statement);
/// let answers = answer_from_index(&index, &question, &mut Scratch::default())?;
/// assert!(matches!(&answers[0], Answer::Functions(functions) if functions.len() == 4));
/// assert_eq!(answers[1], Answer::NoFunction);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Unanswered::NoMatch`] if the report states an architecture of another family than the index has.
/// [`Cause::Unsupported`] if the offsets count from `__TEXT_EXEC` and the index has no such segment.
/// [`Unanswered::NoMatch`] if they count from positions in the file ([`Base::Android`]) and the index does not state
/// them.
/// [`Unanswered::NoMatch`] if they count from a function, and not exactly one function has its name, or the search for
/// it would take too long ([`Index::function_start`]).
pub fn answer_from_index<B: AsRef<[u8]>>(
    index: &Index<B>,
    question: &Question<'_>,
    scratch: &mut Scratch,
) -> Result<Vec<Answer>, Unanswered> {
    let Question { image, offsets, lines, .. } = *question;
    let readings = match image.base {
        Base::Function => match index.function_start(image.function.as_bytes()) {
            Ok(Some(start)) => vec![Reading::all(start.0)],
            Ok(None) => {
                let what =
                    "the report states no load address, and the index has no function or several functions";
                return Err(Unanswered::NoMatch(format!("{what} named {}", image.function)));
            }
            Err(error @ symdex::Error::SearchTooLong) => return Err(Unanswered::NoMatch(error.to_string())),
            Err(damage) => return Ok(vec![Answer::damaged(&damage); offsets.len()]),
        },
        _ => readings(index.metadata(), image)?,
    };
    let serial = Some(index.serial()).filter(|_| offsets.len() < MANY);
    Ok(answers_from(question, &readings, serial, |offsets, each| {
        index.lookup_many(offsets, lines, scratch, |position, found| {
            each(position, found.map_err(|error| Answer::damaged(&error)));
        });
    }))
}

/// Returns the answers for the offsets of `question`, in their order, as [`answer_from_index`] does, from an index that
/// `look_up` reads. Use it if the index is not in one piece.
///
/// `look_up` is called with offsets from the start of the image, once for each reading of the offsets; most images have
/// one. It calls its second argument with the position of an offset and the frames there, `None` for a gap, or
/// [`Answer::Unreadable`]. An offset for which it does not call is [`Answer::NoFunction`].
///
/// # Errors
///
/// As [`answer_from_index`]. Offsets that count from a function ([`Base::Function`]) are [`Unanswered::NoMatch`].
pub fn answer_from_lookups(
    metadata: &Metadata,
    question: &Question<'_>,
    look_up: impl FnMut(&[ImageOffset], &mut dyn FnMut(usize, Result<Option<Frames<'_>>, Answer>)),
) -> Result<Vec<Answer>, Unanswered> {
    Ok(answers_from(question, &readings(metadata, question.image)?, None, look_up))
}

/// The answers for the offsets of `question` in these readings. Those of the index `serial` are found among the known
/// answers, or kept for the next report. An offset in no reading has no function.
fn answers_from(
    question: &Question<'_>,
    readings: &[Reading],
    serial: Option<u64>,
    mut look_up: impl FnMut(&[ImageOffset], &mut dyn FnMut(usize, Result<Option<Frames<'_>>, Answer>)),
) -> Vec<Answer> {
    let mut answers: Vec<Option<Answer>> = vec![None; question.offsets.len()];
    for reading in readings {
        let of = serial.map(|serial| AnswersOf::new(serial, reading.distance, question.lines));
        let (start, offsets) = reading.of(question.offsets);
        let found = answers_in(question, offsets, reading.distance, of, &mut look_up);
        for (answer, found) in answers[start..].iter_mut().zip(found) {
            *answer = Some(if let Some(other) = answer.take() { other.or(found) } else { found });
        }
    }
    answers.into_iter().map(|answer| answer.unwrap_or(Answer::NoFunction)).collect()
}

/// The answers for `offsets`, which count from the start of the image. Those of `question` count from the address
/// `distance` bytes after it.
fn answers_in(
    question: &Question<'_>,
    mut offsets: Vec<ImageOffset>,
    distance: u64,
    of: Option<AnswersOf>,
    look_up: &mut impl FnMut(&[ImageOffset], &mut dyn FnMut(usize, Result<Option<Frames<'_>>, Answer>)),
) -> Vec<Answer> {
    let mut answers = vec![Answer::NoFunction; offsets.len()];
    let known = KnownAnswers::shared();
    let mut positions: Vec<_> = (0..offsets.len()).collect();
    let mut new = of.map(|of| {
        let new = known.find(of, &offsets, |position, answer| {
            answers[position] = question.within_limit(answer.clone());
            positions[position] = KNOWN;
        });
        (of, new)
    });
    positions.retain(|position| *position != KNOWN);
    if positions.is_empty() {
        return answers;
    }
    if positions.len() < offsets.len() {
        offsets = positions.iter().map(|position| offsets[*position]).collect();
    }
    look_up(&offsets, &mut |at, found| {
        answers[positions[at]] = match found {
            Ok(frames) => question.functions(frames, distance, |answer| {
                if let Some((_, new)) = &mut new {
                    new.push(offsets[at], answer);
                }
            }),
            Err(unreadable) => unreadable,
        };
    });
    if let Some((of, new)) = new {
        known.keep(of, new);
    }
    answers
}

impl Question<'_> {
    /// A known answer, if the limit allows it.
    fn within_limit(&self, answer: KnownAnswer) -> Answer {
        match answer {
            Some(functions) if !self.left.take(functions.iter().map(Function::size).sum()) => {
                Answer::TooLarge
            }
            Some(functions) => Answer::Functions(functions),
            None => Answer::NoFunction,
        }
    }

    /// The answer of an index, if the limit allows it. The starts of its functions count from what the report's offsets
    /// count from, which is `distance` bytes after the start of the image. `keep` is called with an answer of which all
    /// texts are kept.
    fn functions(&self, frames: Option<Frames<'_>>, distance: u64, keep: impl FnOnce(KnownAnswer)) -> Answer {
        let raw_size =
            |frames: &Frames<'_>| frames.iter().map(|frame| RawTexts::of(&frame).len()).sum::<usize>();
        if frames.as_ref().is_some_and(|frames| raw_size(frames) > ADDRESS_BYTES) {
            return Answer::TooLarge;
        }
        let mut are_kept = true;
        let mut function = |frame: symdex::Frame<'_>| {
            let (texts, is_kept) = KnownAnswers::shared().texts(RawTexts::of(&frame));
            are_kept &= is_kept;
            let mut function = Function::of_frame(&frame, texts);
            function.start = function.start.map(|start| ImageOffset(start.0.wrapping_sub(distance)));
            function
        };
        let answer: KnownAnswer = frames.map(|frames| frames.iter().map(&mut function).collect());
        if are_kept {
            keep(answer.clone());
        }
        self.within_limit(answer)
    }
}

/// Converts the offsets that a [`Source`] is asked for to offsets from the start of the image that `metadata`
/// describes. See [`Base`] for what they count from in the report. If it is [`Base::Android`], an offset can stand for
/// none, or for several.
///
/// # Errors
///
/// As [`answer_from_lookups`].
pub fn image_offsets(
    metadata: &Metadata,
    image: &ReportImage,
    offsets: &[ImageOffset],
) -> Result<Vec<ImageOffset>, Unanswered> {
    Ok(readings(metadata, image)?.iter().flat_map(|reading| reading.of(offsets).1).collect())
}
