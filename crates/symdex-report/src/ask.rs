//! Asks sources for offsets, and stores each distinct answer once.

use symdex::ImageOffset;

use crate::limits::{AnswerBytes, size_of_answer};
use crate::options::Options;
use crate::outcome::{ImageOutcome, Unresolved};
use crate::report::{Image, to_u32};
use crate::source::{Answer, Answers, Function, MatchedBy, Source, Unanswered};
use crate::symbolicate::{LookupResult, ResolvedFrame};
use crate::text::lossy;

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

/// The answers of the sources.
pub(crate) struct FoundAnswers {
    pub(crate) answers: Vec<LookupResult>,
    /// The number of bytes that further answers may have.
    left: AnswerBytes,
}

impl FoundAnswers {
    /// No answers yet, for a report of `size` bytes.
    pub(crate) fn of(size: usize) -> Self {
        Self { answers: Vec::new(), left: AnswerBytes::in_memory(size) }
    }

    /// Adds an answer and returns its position. Answers with more bytes than are left become [`Unresolved::TooLarge`].
    fn add(&mut self, answer: Answer, options: &Options) -> u32 {
        let within = |frames: Vec<_>| match self.left.take(size_of_answer(&frames)) {
            true => Ok(frames),
            false => Err(Unresolved::TooLarge),
        };
        self.answers.push(resolve(answer, options).and_then(within));
        to_u32(self.answers.len() - 1)
    }
}

/// How many offsets a source is asked for at once. The answers of the source take more memory than the stored ones.
const OFFSETS_AT_ONCE: usize = 1 << 14;

/// Asks `source` for `offsets` of `image` and appends an answer for each, or none if the source has none. `positions`
/// gets the position of the answer of each offset: neighbours with the same functions and lines share one.
pub(crate) fn ask(
    image: &Image,
    offsets: &[ImageOffset],
    source: &mut (impl Source + ?Sized),
    options: &Options,
    (found, positions): (&mut FoundAnswers, &mut Vec<u32>),
) -> ImageOutcome {
    let mut outcome = ImageOutcome::Unused;
    positions.reserve_exact(offsets.len());
    for some in offsets.chunks(OFFSETS_AT_ONCE) {
        let Answers { mut answers, by } = match source.answer(image, some, options.lines) {
            Ok(answers) => answers,
            Err(Unanswered::Missing) if image.id.is_none() && positions.is_empty() => {
                return ImageOutcome::NoId;
            }
            Err(why) if positions.is_empty() || why.is_of_store() => return ImageOutcome::Unanswered(why),
            // The source answered before.
            Err(why) => vec![Answer::Damaged(why.reason().into_owned()); some.len()].into(),
        };
        // The source may return too few answers. The rest of the offsets then has no function.
        answers.resize(some.len(), Answer::NoFunction);
        let mut previous = None;
        for answer in answers {
            let position = match &previous {
                Some((known, position)) if *known == answer => *position,
                _ => found.add(answer.clone(), options),
            };
            positions.push(position);
            previous = Some((answer, position));
        }
        match &mut outcome {
            ImageOutcome::Found(known) => {
                let more = by.passed_over.into_iter().filter(|why| !known.passed_over.contains(why));
                let more: Vec<_> = more.collect();
                known.passed_over.extend(more);
            }
            _ => outcome = ImageOutcome::Found(by),
        }
    }
    if let ImageOutcome::Found(by) = &mut outcome
        && image.id.is_none()
        && by.matched == MatchedBy::Id
    {
        by.matched = MatchedBy::Name;
    }
    outcome
}

fn resolve(answer: Answer, options: &Options) -> LookupResult {
    let functions = match answer {
        Answer::Functions(functions) if !functions.is_empty() => functions,
        Answer::Functions(_) | Answer::NoFunction => return Err(Unresolved::NoFunction),
        Answer::TooLarge => return Err(Unresolved::TooLarge),
        Answer::Damaged(what) => return Err(Unresolved::Damaged(what)),
    };
    let last = functions.len() - 1;
    let skip = if options.inlines { 0 } else { last };
    let frame = |(depth, function): (usize, Function)| {
        let readable = |name: &Vec<u8>| match options.demangle {
            true => symdex_demangle::demangle(name).into_owned(),
            false => lossy(name),
        };
        ResolvedFrame {
            function: function.name.as_ref().map(readable),
            name: function.name.as_deref().map(lossy),
            file: function.file.as_deref().map(lossy),
            line: function.line,
            inlined: depth < last,
            start: function.start,
            table: function.table,
        }
    };
    Ok(functions.into_iter().enumerate().skip(skip).map(frame).collect())
}
