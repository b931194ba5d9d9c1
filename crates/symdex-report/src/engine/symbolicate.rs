//! From a report to answers for its frames.

use std::sync::Arc;

use symdex::{Grade, ImageOffset};

use crate::engine::ask::{AskedImage, FoundAnswers, ask, push_distinct, reason};
use crate::engine::function::Function;
use crate::engine::limits::AnswerBytes;
use crate::engine::lookup_targets::{KEPT, LookupTarget, LookupTargets};
use crate::engine::options::{Options, OutputFormat};
use crate::engine::outcome::{ImageOutcome, Unresolved};
use crate::engine::source::{MatchedBy, Source, grade_of};
use crate::formats::format::FormatKind;
use crate::report::{Base, Frame, Number, Report, ReportImage, SymbolDetail, Thread};

/// A report together with the answers for its frames. [`symbolicate()`] makes one.
///
/// * [`write`](Self::write) writes the report in its own format.
/// * [`write_text`](Self::write_text) writes it as text that people read.
/// * [`view`](Self::view) returns it for JSON.
/// * [`resolution`](Self::resolution) and [`unresolved`](Self::unresolved) return the outcome of one frame, and
///   [`images`](Self::images) the outcomes of all images.
///
/// Methods that take a thread and a frame take their positions in [`Report::threads`] and
/// [`Thread::frames`](crate::Thread::frames).
#[derive(Debug)]
pub struct Symbolicated<'r, 't> {
    /// The report.
    pub report: &'r Report<'t>,
    /// The outcome of each frame, by thread.
    outcomes: Vec<Vec<FrameOutcome>>,
    /// The outcome of each image.
    images: Vec<ImageOutcome>,
    /// The answers, each distinct address of an image once, after [`REASONS`](crate::engine::ask::REASONS).
    answers: Vec<LookupResult>,
    pub(crate) demangle: bool,
}

/// The outcome of a frame. It is small, because a report can have millions.
#[derive(Debug)]
struct FrameOutcome {
    /// The position of its image in the report; `None` if it lies in no image.
    image: Option<Number>,
    /// The position of its answer in [`Symbolicated::answers`], or [`KEPT`].
    answer: u32,
}

/// The answer for one address: its functions, innermost first, at least one.
pub(crate) type LookupResult = Result<Arc<[Function]>, Unresolved>;

/// The source's answer for one frame of the report.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Resolution<'s> {
    /// The functions, innermost first, at least one.
    pub frames: &'s [Function],
    /// The frame's address minus the load address of its image, not adjusted.
    pub offset: u64,
    /// The frame's address.
    pub(crate) address: u64,
}

impl Resolution<'_> {
    /// Returns the distance in bytes from the start of the function to the frame's address. `None` for an inlined
    /// function, and if the start is unknown.
    #[must_use]
    pub fn function_offset(&self, frame: &Function) -> Option<u64> {
        let start = frame.start.filter(|_| !frame.inlined)?;
        self.offset.checked_sub(start.0)
    }
}

/// Asks `source` for the answer of every frame that needs one.
///
/// The source is asked for all images together; more than 16,384 distinct offsets are asked for in parts. A frame needs
/// an answer unless the report has its function, file and line already; see [`Options::only_missing`].
///
/// ```
/// # use symdex::Table;
/// # use symdex_report::{Answer, Answers, Function, Options, Question, Report, Unanswered, symbolicate};
/// /// A source that knows one function of one app.
/// fn one_function(question: &Question<'_>) -> Result<Answers, Unanswered> {
///     match question.image.id.as_ref().map(ToString::to_string).as_deref() {
///         Some("6dcd4e9dd3b13a0e8dff6a5a4be1b1b0") => {
///             let main = Function::new(Table::Dwarf, Some(b"main"), None);
///             Ok(vec![Answer::functions(vec![main]); question.offsets.len()].into())
///         }
///         _ => Err(Unanswered::Missing),
///     }
/// }
///
/// let report = Report::parse(b"App 0x104a343d0 0x104a34000 6dcd4e9dd3b13a0e8dff6a5a4be1b1b0")?;
/// let symbolicated = symbolicate(&report, &mut one_function, &Options::new());
/// let resolution = symbolicated.resolution(0, 0).ok_or("not resolved")?;
/// assert_eq!(resolution.frames[0].readable(), Some("main"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn symbolicate<'r, 't>(
    report: &'r Report<'t>,
    source: &mut (impl Source + ?Sized),
    options: &Options,
) -> Symbolicated<'r, 't> {
    let mut asked: Vec<Vec<ImageOffset>> = vec![Vec::new(); report.images.len()];
    let targets = LookupTargets::new(report, options);
    for target in report.threads.iter().flat_map(|thread| targets.of_thread(thread)) {
        if let (Some(image), Ok(offset)) = (target.image, target.offset) {
            push_distinct(&mut asked[image], offset);
        }
    }
    for offsets in &mut asked {
        offsets.sort_unstable();
        offsets.dedup();
    }
    let asked: Vec<_> = report.images.iter().zip(asked).collect();
    let mut found = FoundAnswers::of(report.text().len());
    let images = ask(&asked, source, options, &mut found);
    let FoundAnswers { answers, .. } = found;
    // Any number of frames may repeat an answer.
    let left = AnswerBytes::written(report.text().len());
    let is_json = match options.output {
        OutputFormat::Json => true,
        OutputFormat::Native => report.format().kind() != FormatKind::Text,
        OutputFormat::Text => false,
    };
    let outcome = |frame: &Frame, target: LookupTarget| {
        let take = |answer: u32| {
            let functions = answers[answer as usize].as_deref().unwrap_or_default();
            left.take_frame(functions, is_json, frame.site.span().len())
        };
        let answer = match (target.offset, target.image) {
            (Err(answer), _) => answer,
            (Ok(offset), Some(image)) => {
                let AskedImage { outcome, positions } = &images[image];
                match (outcome, asked[image].1.binary_search(&offset)) {
                    (ImageOutcome::Found(_), Ok(position)) => match positions[position] {
                        answer if take(answer) => answer,
                        _ => reason(&Unresolved::TooLarge),
                    },
                    (ImageOutcome::NoId, _) => reason(&Unresolved::NoId),
                    _ => reason(&Unresolved::NoAnswer),
                }
            }
            (Ok(_), None) => reason(&Unresolved::NoImage),
        };
        FrameOutcome { image: target.image.map(Number::from), answer }
    };
    let of_thread = |thread: &'r Thread| {
        let frames = thread.frames.iter().zip(targets.of_thread(thread));
        frames.map(|(frame, target)| outcome(frame, target)).collect()
    };
    let outcomes = report.threads.iter().map(of_thread).collect();
    let demangle = options.demangle;
    let outcome = |(image, asked): (&ReportImage, AskedImage)| match image.base {
        Base::Unknown => ImageOutcome::NotLoaded(report.format().image_list),
        _ => asked.outcome,
    };
    let images = report.images.iter().zip(images).map(outcome).collect();
    let mut symbolicated = Symbolicated { report, outcomes, images, answers, demangle };
    symbolicated.keep_better_symbols();
    symbolicated
}

impl<'r> Symbolicated<'r, '_> {
    /// Returns the source's answer for a frame. `None` if the frame stays as the report has it.
    #[must_use]
    pub fn resolution(&self, thread: usize, frame: usize) -> Option<Resolution<'_>> {
        let outcome = self.outcomes.get(thread)?.get(frame)?;
        let resolved = self.answers.get(outcome.answer as usize)?.as_deref().ok()?;
        // A report that was symbolicated before has the inlined functions as separate frames. They come before the
        // frame of the concrete function and have its address.
        let frames = &self.report.threads.get(thread)?.frames;
        let before = frame.checked_sub(1).and_then(|before| frames.get(before));
        let has_inlined_frames =
            before.is_some_and(|before| before.inlined && before.address == frames[frame].address);
        let resolved = if has_inlined_frames { resolved.get(resolved.len() - 1..)? } else { resolved };
        let image = self.report.images.get(outcome.image?.get() as usize)?;
        let address = frames[frame].address;
        Some(Resolution { frames: resolved, offset: address.checked_sub(image.load_address)?, address })
    }

    /// Returns why a frame has no answer, or an answer without a name. `None` if the source or the report itself has a
    /// name. A frame without a name may have a [`resolution`](Self::resolution): that it lies in a function, and where.
    #[must_use]
    pub fn unresolved(&self, thread: usize, frame: usize) -> Option<&Unresolved> {
        match self.answers.get(self.outcomes.get(thread)?.get(frame)?.answer as usize)? {
            Ok(functions) if grade_of(functions) < Grade::Names => Some(&Unresolved::NoName),
            Ok(_) => None,
            Err(why) => Some(why),
        }
    }

    /// Returns how the index that answers a frame was chosen. `None` if no index answers it.
    #[must_use]
    pub fn matched_by(&self, thread: usize, frame: usize) -> Option<MatchedBy> {
        let outcome = self.outcomes.get(thread)?.get(frame)?;
        self.answers.get(outcome.answer as usize)?.as_ref().ok()?;
        Some(self.images.get(outcome.image?.get() as usize)?.answered_by()?.matched)
    }

    /// Returns the position in [`Report::images`] of the image that a frame lies in. `None` if it lies in no image.
    #[must_use]
    pub fn image_of(&self, thread: usize, frame: usize) -> Option<usize> {
        self.outcomes.get(thread)?.get(frame)?.image.map(|image| image.get() as usize)
    }

    /// The outcome of each image, in the order of [`Report::images`].
    #[must_use]
    pub fn images(&self) -> &[ImageOutcome] {
        &self.images
    }

    /// Every frame in the report's order, as the positions of its thread and of the frame in the thread.
    pub fn frames(&self) -> impl Iterator<Item = (usize, usize)> + use<'r> {
        let threads = self.report.threads.iter().enumerate();
        threads.flat_map(|(thread, frames)| (0..frames.frames.len()).map(move |frame| (thread, frame)))
    }

    /// Keeps the report's symbol of a frame that has a name if the answer adds no line.
    fn keep_better_symbols(&mut self) {
        for (thread, outcomes) in self.report.threads.iter().zip(&mut self.outcomes) {
            for (frame, outcome) in thread.frames.iter().zip(outcomes) {
                let adds_no_line = |answer: &LookupResult| {
                    answer.as_ref().is_ok_and(|frames| frames.iter().all(|frame| frame.line.is_none()))
                };
                let answer = self.answers.get(outcome.answer as usize);
                if frame.detail == SymbolDetail::Function && answer.is_some_and(adds_no_line) {
                    outcome.answer = KEPT;
                }
            }
        }
    }
}
