//! The JSON form of a symbolicated report.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use symdex::Grade;

use crate::engine::function::Function;
use crate::engine::near::{KnownImage, KnownImageMap};
use crate::engine::outcome::ImageOutcome;
use crate::engine::source::MatchedBy;
use crate::engine::symbolicate::Symbolicated;
use crate::engine::totals::Totals;
use crate::formats::existing::{ExistingSymbol, is_mangled};
use crate::info::ReportInfo;
use crate::registers::Register;
use crate::report::ReportImage;

/// The JSON form of a symbolicated report. [`Symbolicated::view`] returns it; serialize it with any serde format.
#[derive(Debug, Serialize)]
pub struct ReportView<'s> {
    format: &'static str,
    header: HeaderView<'s>,
    images: Vec<LoadedImageView<'s>>,
    threads: ThreadList<'s>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<UnreadView>,
    totals: Totals,
}

/// The parts of a report that are not read.
#[derive(Debug, Serialize)]
struct UnreadView {
    /// As [`Report::unread_frames`](crate::Report::unread_frames).
    frames: u64,
    /// As [`Report::malformed_frames`](crate::Report::malformed_frames).
    malformed_frames: u64,
    /// As [`Report::unread_bytes`](crate::Report::unread_bytes).
    bytes: u64,
}

/// The threads. Their JSON is much larger than the report, so each frame is created when it is serialized.
#[derive(Debug)]
struct ThreadList<'s> {
    symbolicated: &'s Symbolicated<'s, 's>,
    /// As [`Report::existing_symbols`](crate::Report::existing_symbols).
    existing: Vec<Vec<ExistingSymbol>>,
}

impl Serialize for ThreadList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let threads = self.symbolicated.report.threads.iter().enumerate();
        serializer.collect_seq(threads.map(|(number, thread)| ThreadView {
            name: &thread.name,
            id: thread.id,
            label: thread.label.as_deref(),
            queue: thread.queue.as_deref(),
            crashed: thread.crashed,
            registers: thread.registers.iter().map(RegisterView::of).collect(),
            frames: FrameList { threads: self, number },
        }))
    }
}

/// The frames of the thread with this number.
#[derive(Debug)]
struct FrameList<'s> {
    threads: &'s ThreadList<'s>,
    number: usize,
}

impl Serialize for FrameList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { threads: ThreadList { symbolicated, existing }, number } = *self;
        let frames = symbolicated.report.threads.get(number).map_or(0, |thread| thread.frames.len());
        // Every format returns one symbol for each frame.
        let existing = |depth| existing.get(number)?.get(depth).cloned();
        let view = |depth| symbolicated.frame_view(number, depth, existing(depth).unwrap_or_default());
        serializer.collect_seq((0..frames).map(view))
    }
}

#[derive(Debug, Serialize)]
struct HeaderView<'s> {
    #[serde(flatten)]
    info: &'s ReportInfo,
    /// The position of the crashed thread in `threads`, 0-based.
    crashed_thread: Option<usize>,
}

/// The JSON form of an image of reports, and of what answers it.
#[derive(Debug, Serialize)]
pub struct ReportImageView<'s> {
    name: &'s str,
    path: &'s str,
    arch: Option<&'s str>,
    id: Option<String>,
    is_app: bool,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'static, str>>,
    /// How the index was chosen that answers for the image: `id`, `name` or `assumed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_by: Option<&'static str>,
    /// The index or debug file that answers for the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'s str>,
    /// The most that the indexes and debug files answer which were asked for the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    grade: Option<Grade>,
    /// Known images that are near a missing image, the nearest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    near: Option<Vec<NearView<'s>>>,
}

impl<'s> ReportImageView<'s> {
    /// The view of `image` with this outcome. A missing image lists those of `known` that are near it.
    #[must_use]
    pub fn new(image: &'s ReportImage, outcome: &'s ImageOutcome, known: &KnownImageMap<'s>) -> Self {
        let by = outcome.answered_by();
        Self {
            name: &image.name,
            path: &image.path,
            arch: image.arch.as_ref().map(|arch| arch.name.as_str()),
            id: image.id.as_ref().map(ToString::to_string),
            is_app: image.is_app(),
            status: outcome.status(),
            reason: outcome.reason(),
            matched_by: by.map(|by| by.matched.name()),
            source: by.and_then(|by| by.source.as_deref()),
            grade: by.and_then(|by| by.grade),
            near: outcome.lacks_index_of(image).then(|| NearView::nearest(image, known)),
        }
    }
}

/// An image of one report.
#[derive(Debug, Serialize)]
struct LoadedImageView<'s> {
    #[serde(flatten)]
    image: ReportImageView<'s>,
    load_address: String,
    size: Option<u64>,
}

/// The JSON form of a known image that is near a missing image.
#[derive(Debug, Serialize)]
struct NearView<'s> {
    nearness: &'static str,
    #[serde(flatten)]
    image: &'s KnownImage,
}

impl<'s> NearView<'s> {
    /// The images of `known` that are nearest to `missing`, the nearest first.
    fn nearest(missing: &ReportImage, known: &KnownImageMap<'s>) -> Vec<Self> {
        let near = known.nearest(missing).into_iter();
        near.map(|(nearness, image)| Self { nearness: nearness.name(), image }).collect()
    }
}

#[derive(Debug, Serialize)]
struct ThreadView<'s> {
    name: &'s str,
    id: Option<u64>,
    label: Option<&'s str>,
    queue: Option<&'s str>,
    crashed: bool,
    /// In the order of Apple's reports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    registers: Vec<RegisterView<'s>>,
    frames: FrameList<'s>,
}

#[derive(Debug, Serialize)]
struct RegisterView<'s> {
    name: &'s str,
    value: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'s str,
}

impl<'s> RegisterView<'s> {
    fn of(Register { name, value, description }: &'s Register) -> Self {
        Self { name, value: format!("{value:#x}"), description }
    }
}

#[derive(Debug, Serialize)]
struct FrameView<'s> {
    address: String,
    /// The position of the image in `images`, 0-based.
    image: Option<usize>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'s, str>>,
    /// How the index was chosen, if not by the image's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_by: Option<&'static str>,
    /// How the frame was found, if the report states it.
    #[serde(skip_serializing_if = "Option::is_none")]
    found_by: Option<&'static str>,
    functions: Vec<FunctionWithOffset<'s>>,
    /// The symbol that the report itself has. Present if the functions come from an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    reported: Option<ReportedView>,
}

#[derive(Debug, Serialize)]
struct ReportedView {
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    function_offset: Option<u64>,
}

/// The members that a function of an answer has in all JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct AnsweredFunction<'s> {
    /// The readable name.
    pub function: Option<Cow<'s, str>>,
    /// The linkage name.
    pub name: Option<Cow<'s, str>>,
    /// The path of the source file.
    pub file: Option<Cow<'s, str>>,
    /// 1-based; 0 for code that the compiler generated.
    pub line: Option<u32>,
    /// Whether the function is inlined into the next one.
    pub inlined: bool,
    /// `dwarf` or `symbol_table`; in a report also `report`, for a symbol that the report itself has.
    pub table: &'static str,
}

/// A function of an answer in JSON, with the distance of its address.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct FunctionWithOffset<'s> {
    /// The function.
    #[serde(flatten)]
    pub function: AnsweredFunction<'s>,
    /// The distance in bytes from the start of the concrete function.
    pub function_offset: Option<u64>,
}

impl Symbolicated<'_, '_> {
    /// Returns the report for JSON: `{"format", "header", "images", "threads", "totals"}`, and `"unread"` unless the
    /// whole report is read.
    ///
    /// A missing image lists the images of `known` that are near it. Pass the images of which the source has indexes or
    /// debug files, or an empty slice.
    ///
    /// ```
    /// # use symdex_report::{Answers, Options, Question, Report, Unanswered, symbolicate};
    /// # fn nothing(_: &Question<'_>) -> Result<Answers, Unanswered> {
    /// #     Err(Unanswered::Missing)
    /// # }
    /// let report = Report::parse(b"App 0x104a343d0 0x104a34000 6dcd4e9dd3b13a0e8dff6a5a4be1b1b0")?;
    /// let symbolicated = symbolicate(&report, &mut nothing, &Options::new());
    /// let json = serde_json::to_value(symbolicated.view(&[]))?;
    /// assert_eq!(json["format"], "address-list");
    /// assert_eq!(json["threads"][0]["frames"][0]["status"], "missing");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn view<'s>(&'s self, known: &'s [KnownImage]) -> ReportView<'s> {
        let report = self.report;
        let known = KnownImageMap::new(known);
        let images = report.images.iter().zip(self.images());
        let crashed_thread = report.threads.iter().position(|thread| thread.crashed);
        ReportView {
            format: report.format_name(),
            header: HeaderView { info: &report.info, crashed_thread },
            images: images
                .map(|(image, outcome)| LoadedImageView {
                    image: ReportImageView::new(image, outcome, &known),
                    load_address: format!("{:#x}", image.load_address),
                    size: image.size,
                })
                .collect(),
            threads: ThreadList { symbolicated: self, existing: report.existing_symbols() },
            unread: report.extent.is_partial().then_some(UnreadView {
                frames: report.extent.frames,
                malformed_frames: report.extent.malformed,
                bytes: report.extent.bytes,
            }),
            totals: self.totals(),
        }
    }

    fn frame_view(&self, thread: usize, number: usize, existing: ExistingSymbol) -> FrameView<'_> {
        let frame = &self.report.threads[thread].frames[number];
        let unresolved = self.unresolved(thread, number);
        let image = self.image_of(thread, number);
        let is_empty = existing == ExistingSymbol::default();
        let ExistingSymbol { function, file, line, offset } = existing;
        let (functions, reported) = match self.resolution(thread, number) {
            Some(resolution) => {
                let functions = resolution.frames.iter().map(|resolved| FunctionWithOffset {
                    function: resolved.into(),
                    function_offset: resolution.function_offset(resolved),
                });
                let functions = functions.collect();
                (functions, Some(ReportedView { function, file, line, function_offset: offset }))
            }
            None => {
                let name = function.clone().filter(|name| is_mangled(name));
                let function = AnsweredFunction {
                    function: function.map(|name| Cow::Owned(self.readable(&name).into_owned())),
                    name: name.map(Cow::Owned),
                    file: file.map(Cow::Owned),
                    line,
                    inlined: frame.inlined,
                    table: "report",
                };
                let function = FunctionWithOffset { function, function_offset: offset };
                (if is_empty { Vec::new() } else { vec![function] }, None)
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
            found_by: self.report.threads[thread].found_by.get(number).map(|way| way.name()),
            functions,
            reported: reported.filter(|_| !is_empty),
        }
    }
}

impl AnsweredFunction<'_> {
    /// The same members, with texts of their own.
    #[must_use]
    pub fn into_owned(self) -> AnsweredFunction<'static> {
        let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        let Self { function, name, file, line, inlined, table } = self;
        AnsweredFunction {
            function: owned(function),
            name: owned(name),
            file: owned(file),
            line,
            inlined,
            table,
        }
    }
}

impl<'s> From<&'s Function> for AnsweredFunction<'s> {
    fn from(function: &'s Function) -> Self {
        Self {
            function: function.readable().map(Cow::Borrowed),
            name: function.name().map(Cow::Borrowed),
            file: function.file().map(Cow::Borrowed),
            line: function.line,
            inlined: function.inlined,
            table: function.table.name(),
        }
    }
}
