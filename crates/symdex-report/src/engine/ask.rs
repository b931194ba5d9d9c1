//! Asks sources for offsets, and stores each distinct answer once.

use symdex::{Cause, ImageOffset};

use crate::engine::function::Function;
use crate::engine::limits::AnswerBytes;
use crate::engine::options::Options;
use crate::engine::outcome::{ImageOutcome, Unresolved};
use crate::engine::source::{Answer, AnsweredBy, Answers, MatchedBy, Question, Source, Unanswered};
use crate::engine::symbolicate::LookupResult;
use crate::report::{ReportImage, to_u32};

/// Appends `offset`. Before the list grows, repeated offsets are removed from it: many frames have few addresses.
pub(crate) fn push_distinct(offsets: &mut Vec<ImageOffset>, offset: ImageOffset) {
    if offsets.len() == offsets.capacity() {
        offsets.sort_unstable();
        offsets.dedup();
        // Each removal must free half of the list, so that the time stays linear.
        offsets.reserve(offsets.len().max(16));
    }
    offsets.push(offset);
}

/// The reasons why a frame has no answer from a source. They stand before all answers.
pub(crate) const REASONS: [Unresolved; 4] =
    [Unresolved::NoImage, Unresolved::NoId, Unresolved::NoAnswer, Unresolved::TooLarge];

/// The position in the answers of `why`, which is one of [`REASONS`].
pub(crate) fn reason(why: &Unresolved) -> u32 {
    REASONS.iter().position(|other| other == why).map_or(u32::MAX, to_u32)
}

/// The answers of the sources, after [`REASONS`].
pub(crate) struct FoundAnswers {
    pub(crate) answers: Vec<LookupResult>,
    /// The number of bytes that further answers may have.
    left: AnswerBytes,
}

impl FoundAnswers {
    /// No answers yet, for a report of `size` bytes.
    pub(crate) fn of(size: usize) -> Self {
        Self { answers: REASONS.map(Err).into(), left: AnswerBytes::in_memory(size) }
    }

    /// Adds an answer and returns its position. Answers with more bytes than are left become [`Unresolved::TooLarge`].
    fn add(&mut self, answer: Answer, options: &Options) -> u32 {
        let answer = resolve(answer, options);
        let size = match &answer {
            Ok(functions) => functions.iter().map(Function::size).sum(),
            Err(Unresolved::Ambiguous(summary)) => summary.len(),
            Err(_) => 0,
        };
        self.answers.push(if self.left.take(size) { answer } else { Err(Unresolved::TooLarge) });
        to_u32(self.answers.len() - 1)
    }
}

/// How many offsets a source is asked for at once. The answers of the source take more memory than the stored ones.
const OFFSETS_AT_ONCE: usize = 1 << 14;

/// What the source has answered for an image.
pub(crate) struct AskedImage {
    pub(crate) outcome: ImageOutcome,
    /// The position of the answer of each offset: neighbours with the same functions and lines share one.
    pub(crate) positions: Vec<u32>,
}

/// Asks `source` for the offsets of each of `images`, which are distinct and ascend.
pub(crate) fn ask(
    images: &[(&ReportImage, Vec<ImageOffset>)],
    source: &mut (impl Source + ?Sized),
    options: &Options,
    found: &mut FoundAnswers,
) -> Vec<AskedImage> {
    let unused = |_| AskedImage { outcome: ImageOutcome::Unused, positions: Vec::new() };
    let mut asked: Vec<_> = images.iter().map(unused).collect();
    let parts = images.iter().enumerate();
    let parts = parts
        .flat_map(|(at, (_, offsets))| offsets.chunks(OFFSETS_AT_ONCE).map(move |offsets| (at, offsets)));
    let mut parts = parts.peekable();
    while parts.peek().is_some() {
        let mut left = OFFSETS_AT_ONCE;
        let mut fits = |offsets: &[ImageOffset]| {
            let rest = left.checked_sub(offsets.len());
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        let batch = std::iter::from_fn(|| parts.next_if(|(_, offsets)| fits(offsets)));
        let batch: Vec<_> = batch.filter(|(at, _)| !asked[*at].has_failed()).collect();
        let questions = batch.iter().map(|(at, offsets)| (images[*at].0, *offsets));
        let mut answered = source.answer(&Question::of_images(questions, options.lines)).into_iter();
        for (at, offsets) in batch {
            let answered = answered.next().unwrap_or(Err(Unanswered::Missing));
            asked[at].add(images[at].0, answered, offsets.len(), options, found);
        }
    }
    asked
}

impl AskedImage {
    /// Whether the source has answered that it has nothing to answer from.
    fn has_failed(&self) -> bool {
        matches!(self.outcome, ImageOutcome::NoId | ImageOutcome::Unanswered(_))
    }

    /// Adds what the source has `answered` for the next `len` offsets of `image`.
    fn add(
        &mut self,
        image: &ReportImage,
        answered: Result<Answers, Unanswered>,
        len: usize,
        options: &Options,
        found: &mut FoundAnswers,
    ) {
        let is_first = self.positions.is_empty();
        let Answers { mut answers, mut by } = match answered {
            Ok(answers) => answers,
            Err(Unanswered::Missing) if image.id.is_none() && is_first => {
                self.outcome = ImageOutcome::NoId;
                return;
            }
            Err(why) if is_first || why.cause() == Cause::Unavailable => {
                self.outcome = ImageOutcome::Unanswered(why);
                return;
            }
            // The source answered before.
            Err(Unanswered::Failed(cause @ Cause::Lost, what)) => {
                let passed_over = vec![Unanswered::Failed(cause, what.clone())];
                let by = AnsweredBy { passed_over, is_partly_lost: true, ..AnsweredBy::default() };
                Answers { answers: vec![Answer::Unreadable(cause, what); len], by }
            }
            Err(why) => vec![Answer::Unreadable(Cause::Damaged, why.reason().into_owned()); len].into(),
        };
        // The source may return too few answers. The rest of the offsets then has no function.
        answers.resize(len, Answer::NoFunction);
        self.positions.reserve_exact(len);
        // Neighbours with the same functions and lines share an answer.
        let repeats = answers.windows(2).map(|pair| pair[0] == pair[1]);
        let repeats: Vec<_> = std::iter::once(false).chain(repeats).collect();
        for (answer, is_repeated) in answers.into_iter().zip(repeats) {
            let position = match self.positions.last() {
                Some(position) if is_repeated => *position,
                _ => found.add(answer, options),
            };
            self.positions.push(position);
        }
        if image.id.is_none() && by.matched == MatchedBy::Id {
            by.matched = MatchedBy::Name;
        }
        match &mut self.outcome {
            ImageOutcome::Found(known) => {
                let more = by.passed_over.into_iter().filter(|why| !known.passed_over.contains(why));
                let more: Vec<_> = more.collect();
                known.passed_over.extend(more);
                known.is_partly_lost |= by.is_partly_lost;
                known.grade = known.grade.max(by.grade);
            }
            outcome => *outcome = ImageOutcome::Found(by),
        }
    }
}

fn resolve(answer: Answer, options: &Options) -> LookupResult {
    let functions = match answer {
        Answer::Functions(functions) if !functions.is_empty() => functions,
        Answer::Functions(_) | Answer::NoFunction => return Err(Unresolved::NoFunction),
        Answer::Ambiguous(summary) => return Err(Unresolved::Ambiguous(summary)),
        Answer::TooLarge => return Err(Unresolved::TooLarge),
        Answer::Unreadable(cause, what) => return Err(Unresolved::Unreadable(cause, what)),
    };
    if options.inlines && options.demangle {
        return Ok(functions);
    }
    let skip = if options.inlines { 0 } else { functions.len() - 1 };
    let shown =
        |function: &Function| if options.demangle { function.clone() } else { function.not_demangled() };
    Ok(functions[skip..].iter().map(shown).collect())
}
