//! From a report to answers for its frames.

use symdex::{ImageId, ImageOffset, LinePolicy, Table};

use crate::places::{Asked, Place, places};
use crate::report::{Image, Known, Report};
use crate::source::{Answer, AnsweredBy, Answers, Function, MatchedBy, Source, Unanswered};
use crate::text::lossy;

/// How frames are answered.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which line rows count.
    pub lines: LinePolicy,
    /// Whether return addresses are looked up as they are given, as when they are pasted into atos, instead of one byte before.
    pub as_given: bool,
    /// Whether inlined functions get frames of their own; else there is one frame an address, the concrete function.
    pub inlines: bool,
    /// Whether names are demangled.
    pub demangle: bool,
    /// Whether frames that have a function's name already are left as they are, though file and line are missing.
    pub only_missing: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lines: LinePolicy::Statement,
            as_given: false,
            inlines: true,
            demangle: true,
            only_missing: false,
        }
    }
}

/// A report with what became of each of its frames.
pub struct Symbolicated<'r, 't> {
    /// The report.
    pub report: &'r Report<'t>,
    /// For each thread, for each frame.
    outcomes: Vec<Vec<Outcome>>,
    /// For each image.
    images: Vec<ImageOutcome>,
    /// What distinct addresses yield.
    answers: Vec<Resolved>,
    /// Whether names are demangled.
    pub(crate) demangle: bool,
}

/// A frame, where it lies and what became of it.
struct Outcome {
    /// The number of its image; `None` where it lies in none.
    image: Option<usize>,
    /// The address without signature.
    address: u64,
    answer: AnswerOf,
}

/// What answers a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AnswerOf {
    /// The report has its function, and keeps it.
    Report,
    /// The distinct answer of this number.
    Source(usize),
    Nothing(Unresolved),
}

/// What a distinct address yields: functions, innermost first.
type Resolved = Result<Vec<Called>, Unresolved>;

/// A function as it is written into a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The function's name as a person reads it, or as the linker knows it if that was asked for; `None` where none is known.
    pub function: Option<String>,
    /// The linkage name.
    pub name: Option<String>,
    /// The file's path.
    pub file: Option<String>,
    /// The line, 1-based; 0 for code that the compiler made up.
    pub line: Option<u32>,
    /// Whether it is inlined into the next one.
    pub inlined: bool,
    /// Where the concrete function starts.
    pub start: Option<ImageOffset>,
    /// The table that it comes from.
    pub table: Table,
}

impl Called {
    /// The file's path; `<compiler-generated>` where there is none.
    #[must_use]
    pub fn file_path(&self) -> &str {
        self.file.as_deref().unwrap_or("<compiler-generated>")
    }

    /// The last part of [`Self::file_path`].
    #[must_use]
    pub fn file_name(&self) -> &str {
        let file = self.file_path();
        file.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(file)
    }
}

/// Why a frame is not symbolicated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// The address lies in no image of the report.
    NoImage,
    /// The report does not say which image it is.
    NoId,
    /// Nothing answers for its image; [`ImageOutcome`] says why.
    NoAnswer,
    /// The index knows nothing there.
    Gap,
    /// The index is damaged there, and how.
    Damaged(String),
}

/// What became of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageOutcome {
    /// No frame is in it, or none that needed an answer.
    Unused,
    /// There was something to answer from.
    Found(AnsweredBy),
    /// The report does not state its id, and nothing answers by its name.
    NoId,
    /// There was nothing.
    Unanswered(Unanswered),
}

/// What is to be written for a frame.
pub struct Rewrite<'s> {
    /// The functions, innermost first, at least one.
    pub chain: &'s [Called],
    /// How far the frame's address lies behind the start of its image, not adjusted.
    pub offset: u64,
}

impl Rewrite<'_> {
    /// How far the frame's address lies behind the start of its function; `None` for an inlined one, or where that is not known.
    #[must_use]
    pub fn function_offset(&self, called: &Called) -> Option<u64> {
        let start = called.start.filter(|_| !called.inlined)?;
        self.offset.checked_sub(start.0)
    }
}

/// Asks `source` for every frame of `report` that needs an answer.
pub fn symbolicate<'r, 't>(
    report: &'r Report<'t>,
    source: &mut impl Source,
    options: &Options,
) -> Symbolicated<'r, 't> {
    let mut asked: Vec<Vec<ImageOffset>> = vec![Vec::new(); report.images.len()];
    let places = places(report, options);
    for place in places.iter().flatten() {
        if let (Some(image), Asked::Offset(offset)) = (place.image, &place.offset) {
            asked[image].push(*offset);
        }
    }
    let mut answers = Vec::new();
    let mut images = Vec::with_capacity(asked.len());
    let mut first = Vec::with_capacity(asked.len());
    for (image, offsets) in report.images.iter().zip(&mut asked) {
        offsets.sort_unstable();
        offsets.dedup();
        first.push(answers.len());
        images.push(ask(image, offsets, source, options, &mut answers));
    }
    let outcome = |place: Place| {
        let answer = match (place.offset, place.image) {
            (Asked::NoNeed, _) => AnswerOf::Report,
            (Asked::Offset(offset), Some(image)) => {
                match (&images[image], asked[image].binary_search(&offset)) {
                    (ImageOutcome::Found(_), Ok(position)) => AnswerOf::Source(first[image] + position),
                    (ImageOutcome::NoId, _) => AnswerOf::Nothing(Unresolved::NoId),
                    _ => AnswerOf::Nothing(Unresolved::NoAnswer),
                }
            }
            _ => AnswerOf::Nothing(Unresolved::NoImage),
        };
        Outcome { image: place.image, address: place.address, answer }
    };
    let outcomes = places.into_iter().map(|thread| thread.into_iter().map(outcome).collect()).collect();
    let mut symbolicated = Symbolicated { report, outcomes, images, answers, demangle: options.demangle };
    symbolicated.keep_what_is_better();
    symbolicated
}

/// Appends an answer for each of `offsets`, if there is anything to answer from.
fn ask(
    image: &Image,
    offsets: &[ImageOffset],
    source: &mut impl Source,
    options: &Options,
    answers: &mut Vec<Resolved>,
) -> ImageOutcome {
    if offsets.is_empty() {
        return ImageOutcome::Unused;
    }
    match source.answer(image, offsets, options.lines) {
        Ok(Answers { answers: mut found, mut by }) => {
            // A source that answers too little has nothing for the rest.
            found.resize(offsets.len(), Ok(None));
            answers.extend(found.into_iter().map(|answer| resolved(answer, options)));
            if image.id.is_none() && by.matched == MatchedBy::Id {
                by.matched = MatchedBy::Name;
            }
            ImageOutcome::Found(by)
        }
        Err(Unanswered::Missing) if image.id.is_none() => ImageOutcome::NoId,
        Err(why) => ImageOutcome::Unanswered(why),
    }
}

fn resolved(answer: Answer, options: &Options) -> Resolved {
    let functions = answer.map_err(Unresolved::Damaged)?.filter(|functions| !functions.is_empty());
    let functions = functions.ok_or(Unresolved::Gap)?;
    let last = functions.len() - 1;
    let skip = if options.inlines { 0 } else { last };
    let called = |(depth, function): (usize, Function)| {
        let readable = |name: &Vec<u8>| match options.demangle {
            true => symdex_demangle::demangle(name).into_owned(),
            false => lossy(name),
        };
        Called {
            function: function.name.as_ref().map(readable),
            name: function.name.as_deref().map(lossy),
            file: function.file.as_deref().map(lossy),
            line: function.line,
            inlined: depth < last,
            start: function.start,
            table: function.table,
        }
    };
    Ok(functions.into_iter().enumerate().skip(skip).map(called).collect())
}

impl<'r> Symbolicated<'r, '_> {
    /// What is to be written for frame `frame` of thread `thread`; `None` where it stays as it is.
    #[must_use]
    pub fn rewrite(&self, thread: usize, frame: usize) -> Option<Rewrite<'_>> {
        let outcome = self.outcomes.get(thread)?.get(frame)?;
        let AnswerOf::Source(answer) = outcome.answer else { return None };
        let chain = self.answers.get(answer)?.as_deref().ok()?;
        // Inlined functions that the report has already stand before the frame they are inlined into.
        let frames = &self.report.threads.get(thread)?.frames;
        let before = frame.checked_sub(1).and_then(|before| frames.get(before));
        let is_expanded =
            before.is_some_and(|before| before.inlined && before.address == frames[frame].address);
        let chain = if is_expanded { chain.get(chain.len() - 1..)? } else { chain };
        let image = self.report.images.get(outcome.image?)?;
        Some(Rewrite { chain, offset: outcome.address.checked_sub(image.load_address)? })
    }

    /// Why a frame has no answer; `None` where it has one, be it the report's own.
    #[must_use]
    pub fn unresolved(&self, thread: usize, frame: usize) -> Option<&Unresolved> {
        match &self.outcomes.get(thread)?.get(frame)?.answer {
            AnswerOf::Report => None,
            AnswerOf::Source(answer) => self.answers.get(*answer)?.as_ref().err(),
            AnswerOf::Nothing(why) => Some(why),
        }
    }

    /// How the index was chosen that answers a frame; `None` where no index answers it.
    #[must_use]
    pub fn matched_by(&self, thread: usize, frame: usize) -> Option<MatchedBy> {
        let outcome = self.outcomes.get(thread)?.get(frame)?;
        let AnswerOf::Source(answer) = outcome.answer else { return None };
        self.answers.get(answer)?.as_ref().ok()?;
        match self.images.get(outcome.image?)? {
            ImageOutcome::Found(by) => Some(by.matched),
            _ => None,
        }
    }

    /// The number of the image that a frame lies in; `None` where it lies in none.
    #[must_use]
    pub fn image_of(&self, thread: usize, frame: usize) -> Option<usize> {
        self.outcomes.get(thread)?.get(frame)?.image
    }

    /// What became of each image, in the report's order.
    #[must_use]
    pub fn images(&self) -> &[ImageOutcome] {
        &self.images
    }

    /// Every frame in the report's order, as the numbers of its thread and of itself in that.
    pub fn frames(&self) -> impl Iterator<Item = (usize, usize)> + use<'r> {
        let threads = self.report.threads.iter().enumerate();
        threads.flat_map(|(thread, frames)| (0..frames.frames.len()).map(move |frame| (thread, frame)))
    }

    /// Leaves frames alone that have a name already, where the answer has no line to add.
    fn keep_what_is_better(&mut self) {
        for (thread, outcomes) in self.report.threads.iter().zip(&mut self.outcomes) {
            for (frame, outcome) in thread.frames.iter().zip(outcomes) {
                let AnswerOf::Source(answer) = outcome.answer else { continue };
                let adds_none = |chain: &Vec<Called>| chain.iter().all(|called| called.line.is_none());
                if frame.known == Known::Function && self.answers[answer].as_ref().is_ok_and(adds_none) {
                    outcome.answer = AnswerOf::Report;
                }
            }
        }
    }
}

/// The id that people look for, as reports of Apple spell it: upper case, with dashes where it is a UUID.
#[must_use]
pub fn spelled(id: &ImageId) -> String {
    let digits = id.to_string();
    match digits.len() {
        32 => {
            let digits = digits.to_uppercase();
            let parts =
                [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| digits.get(part).unwrap_or_default());
            parts.join("-")
        }
        _ => digits,
    }
}
