//! A symbolicated report as JSON: images, threads and frames, each with what became of it.

use std::borrow::Cow;

use serde::Serialize;

use crate::near::KnownImage;
use crate::report::Image;
use crate::source::{AnsweredBy, MatchedBy, Unanswered};
use crate::symbolicate::{Called, ImageOutcome, Rewrite, Symbolicated, Unresolved, spelled};

/// The whole report.
#[derive(Serialize)]
pub struct ReportView<'s> {
    format: &'static str,
    images: Vec<ImageView<'s>>,
    threads: Vec<ThreadView<'s>>,
}

#[derive(Serialize)]
struct ImageView<'s> {
    name: &'s str,
    path: &'s str,
    arch: Option<&'s str>,
    id: Option<String>,
    load_address: String,
    size: Option<u64>,
    is_app: bool,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'static, str>>,
    /// How the index was chosen that answers for it: `id`, `name` or `assumed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_by: Option<&'static str>,
    /// The index or debug file that answers for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'s str>,
}

#[derive(Serialize)]
struct ThreadView<'s> {
    name: &'s str,
    crashed: bool,
    frames: Vec<FrameView<'s>>,
}

#[derive(Serialize)]
struct FrameView<'s> {
    address: String,
    /// A number in the images, 0-based.
    image: Option<usize>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'s, str>>,
    /// How the index was chosen, unless it was by the image's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_by: Option<&'static str>,
    functions: Vec<FunctionView<'s>>,
}

#[derive(Default, Serialize)]
struct FunctionView<'s> {
    function: Option<Cow<'s, str>>,
    name: Option<&'s str>,
    file: Option<&'s str>,
    line: Option<u32>,
    inlined: bool,
    function_offset: Option<u64>,
    /// `dwarf`, `symbol_table` or `report`.
    table: &'static str,
}

impl Symbolicated<'_, '_> {
    /// The report as JSON has it: `{"format", "images", "threads"}`.
    #[must_use]
    pub fn view(&self) -> ReportView<'_> {
        let images =
            self.report.images.iter().zip(self.images()).map(|(image, outcome)| image_view(image, outcome));
        let frame = |thread, number| self.frame_view(thread, number);
        let threads = self.report.threads.iter().enumerate().map(|(number, thread)| ThreadView {
            name: &thread.name,
            crashed: thread.crashed,
            frames: (0..thread.frames.len()).map(|depth| frame(number, depth)).collect(),
        });
        ReportView { format: self.report.format.name(), images: images.collect(), threads: threads.collect() }
    }

    fn frame_view(&self, thread: usize, number: usize) -> FrameView<'_> {
        let frame = &self.report.threads[thread].frames[number];
        let unresolved = self.unresolved(thread, number);
        let image = self.image_of(thread, number);
        let functions = match self.rewrite(thread, number) {
            Some(rewrite) => rewrite.chain.iter().map(|called| FunctionView::of(called, &rewrite)).collect(),
            None => {
                let said = frame.function.as_ref().map(|span| String::from_utf8_lossy(self.report.at(span)));
                let said = said.map(|name| FunctionView {
                    function: Some(name),
                    inlined: frame.inlined,
                    table: "report",
                    ..FunctionView::default()
                });
                said.into_iter().collect()
            }
        };
        let outcome = image.and_then(|image| self.images().get(image));
        FrameView {
            address: format!("{:#x}", frame.address),
            image,
            status: unresolved.map_or("symbolicated", |why| why.status(outcome)),
            reason: unresolved.map(|why| why.reason(outcome)),
            matched_by: self
                .matched_by(thread, number)
                .filter(|by| *by != MatchedBy::Id)
                .map(MatchedBy::name),
            functions,
        }
    }
}

impl<'s> FunctionView<'s> {
    fn of(called: &'s Called, rewrite: &Rewrite<'_>) -> Self {
        Self {
            function: called.function.as_deref().map(Cow::Borrowed),
            name: called.name.as_deref(),
            file: called.file.as_deref(),
            line: called.line,
            inlined: called.inlined,
            function_offset: rewrite.function_offset(called),
            table: called.table.name(),
        }
    }
}

fn image_view<'s>(image: &'s Image, outcome: &'s ImageOutcome) -> ImageView<'s> {
    let by = outcome.answered_by();
    ImageView {
        name: &image.name,
        path: &image.path,
        arch: image.arch.as_ref().map(|arch| arch.name.as_str()),
        id: image.id.as_ref().map(ToString::to_string),
        load_address: format!("{:#x}", image.load_address),
        size: image.size,
        is_app: image.is_app(),
        status: outcome.status(),
        reason: outcome.reason(),
        matched_by: by.map(|by| by.matched.name()),
        source: by.and_then(|by| by.source.as_deref()),
    }
}

impl ImageOutcome {
    /// What answers for the image; `None` where nothing does.
    #[must_use]
    pub fn answered_by(&self) -> Option<&AnsweredBy> {
        match self {
            ImageOutcome::Found(by) => Some(by),
            _ => None,
        }
    }

    /// The status word of the image. Where an index of it is damaged it is `malformed`, even if another one answers.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self {
            ImageOutcome::Unused => "unused",
            ImageOutcome::Found(by) => {
                Unanswered::gravest(&by.passed_over).map_or("found", Unanswered::status)
            }
            ImageOutcome::NoId => "missing",
            ImageOutcome::Unanswered(why) => why.status(),
        }
    }

    /// Why there is nothing to answer from, or which indexes do not answer though others do; `None` where there is nothing to
    /// say, or where nothing was asked.
    #[must_use]
    pub fn reason(&self) -> Option<Cow<'static, str>> {
        match self {
            ImageOutcome::Unused => None,
            ImageOutcome::Found(by) if by.passed_over.is_empty() => None,
            ImageOutcome::Found(by) => {
                let passed_over: Vec<_> = by.passed_over.iter().map(Unanswered::reason).collect();
                let mut reason = passed_over.join("; ");
                if let Some(source) = &by.source {
                    reason += &format!("; answered from {source}");
                }
                Some(reason.into())
            }
            ImageOutcome::NoId => Some("the report does not state its id".into()),
            ImageOutcome::Unanswered(why) => Some(why.reason()),
        }
    }
}

/// How many images of one name are listed: a store may have every build of it.
const MAX_LISTED: usize = 5;

impl Unanswered {
    /// The one to tell of first: damage, then what is not supported, then the first.
    #[must_use]
    pub fn gravest(all: &[Self]) -> Option<&Self> {
        let rank = |why: &&Self| match why {
            Unanswered::Damaged(_) => 0,
            Unanswered::Unsupported(_) => 1,
            _ => 2,
        };
        all.iter().min_by_key(rank)
    }

    /// The status word of an image that has no answers because of this.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self {
            Unanswered::Missing | Unanswered::OtherArch(_) | Unanswered::Ambiguous(_) => "missing",
            Unanswered::Damaged(_) => "malformed",
            Unanswered::Unsupported(_) => "unsupported",
            Unanswered::Failed(_) => "other",
        }
    }

    /// In words.
    #[must_use]
    pub fn reason(&self) -> Cow<'static, str> {
        match self {
            Unanswered::Missing => "no index of it".into(),
            Unanswered::OtherArch(arch) => format!("its index is for {arch}").into(),
            Unanswered::Damaged(what) | Unanswered::Unsupported(what) | Unanswered::Failed(what) => {
                what.clone().into()
            }
            Unanswered::Ambiguous(candidates) => {
                let listed = candidates.iter().take(MAX_LISTED);
                let listed =
                    listed.map(|KnownImage { name, id, arch }| format!("{name} {arch} {}", spelled(id)));
                let mut listed: Vec<_> = listed.collect();
                let more = candidates.len().saturating_sub(MAX_LISTED);
                if more != 0 {
                    listed.push(format!("{more} more"));
                }
                format!("the report does not say which of these it is: {}", listed.join(", ")).into()
            }
        }
    }
}

impl Unresolved {
    /// The status word of a frame, in an image that `image` became of.
    #[must_use]
    pub fn status(&self, image: Option<&ImageOutcome>) -> &'static str {
        match self {
            Unresolved::NoImage | Unresolved::NoId => "unknown_image",
            Unresolved::NoAnswer if image.is_some_and(|image| image.status() == "malformed") => "malformed",
            Unresolved::NoAnswer => "missing",
            Unresolved::Gap => "missing_symbol",
            Unresolved::Damaged(_) => "malformed",
        }
    }

    /// Why there is no answer, in words.
    #[must_use]
    pub fn reason(&self, image: Option<&ImageOutcome>) -> Cow<'_, str> {
        match self {
            Unresolved::NoImage => "the address lies in no image of the report".into(),
            Unresolved::NoId | Unresolved::NoAnswer => {
                image.and_then(ImageOutcome::reason).unwrap_or_else(|| "no index of its image".into())
            }
            Unresolved::Gap => "the index knows nothing at this address".into(),
            Unresolved::Damaged(what) => what.into(),
        }
    }
}
