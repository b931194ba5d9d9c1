//! Sources: what answers the offsets of an image.

use symdex::{Frames, ImageOffset, Index, LinePolicy, Metadata, Scratch, Table};

use crate::limits::{AnswerBytes, size_of_copy};
use crate::near::KnownImage;
use crate::report::{Base, Image};

/// Answers image offsets, for example from a folder of indexes or from the storage of a service.
///
/// [`answer_from_index`] does the work for a source that has opened the image's index.
pub trait Source {
    /// Prepares the source for the images of a report: each image with the offsets that it will be asked for.
    ///
    /// [`symbolicate`](crate::symbolicate()) calls it once for each report, before the first call of
    /// [`answer`](Self::answer). A source can fetch what it needs for all images at once. It reports no errors: those
    /// come from the calls of `answer`. The default does nothing.
    fn prepare(&mut self, requests: &[(&Image, &[ImageOffset])]) {
        let _ = requests;
    }

    /// Returns an answer for each of `offsets` in `image`, in their order.
    ///
    /// [`symbolicate`](crate::symbolicate()) calls it once for each image of a report, or several times with 16,384
    /// offsets each and the rest. The offsets ascend and are distinct. Find the image by its id. For an image without an id return [`Unanswered::Missing`], unless the
    /// user asked for a match by name; see [`match_by_name`](crate::match_by_name).
    ///
    /// The offsets count from what [`Image::base`] says. [`image_offsets`] converts them to offsets from the start of
    /// the image, and [`answer_from_index`] does so itself.
    ///
    /// # Errors
    ///
    /// [`Unanswered`] if there is nothing to answer from.
    fn answer(
        &mut self,
        image: &Image,
        offsets: &[ImageOffset],
        lines: LinePolicy,
    ) -> Result<Answers, Unanswered>;
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
    /// Why other indexes of the image, which were asked before, did not answer every offset: they are damaged,
    /// unsupported or unreadable.
    pub passed_over: Vec<Unanswered>,
}

impl AnsweredBy {
    /// An index that was chosen by `matched`. Its name and the indexes that failed are set afterwards.
    #[must_use]
    pub fn new(matched: MatchedBy) -> Self {
        Self { matched, ..Self::default() }
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
    Functions(Vec<Function>),
    /// There is no function at the offset.
    NoFunction,
    /// The functions at the offset are left out, because the answers of the report have too much text.
    TooLarge,
    /// The index is damaged at the offset. The text says how.
    Damaged(String),
}

impl Answer {
    /// Whether the index is damaged at the offset.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        matches!(self, Answer::Damaged(_))
    }
}

/// A function at an offset: the concrete function, or one that is inlined into it.
///
/// ```
/// use symdex::Table;
/// use symdex_report::Function;
///
/// let mut function = Function::new(Table::Dwarf);
/// function.name = Some("_ZN3app4mainEv".into());
/// function.file = Some("/src/main.cc".into());
/// function.line = Some(7);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The linkage name.
    pub name: Option<Vec<u8>>,
    /// The path of the source file.
    pub file: Option<Vec<u8>>,
    /// The line, 1-based; 0 for code that the compiler generated.
    pub line: Option<u32>,
    /// Where the concrete function starts, counted as the offsets that the source was asked for.
    pub start: Option<ImageOffset>,
    /// The table that the function comes from.
    pub table: Table,
}

impl Function {
    /// A function with only its table. The other fields are set afterwards.
    #[must_use]
    pub fn new(table: Table) -> Self {
        Self { name: None, file: None, line: None, start: None, table }
    }
}

/// A frame of an index's answer, with its strings copied.
impl From<&symdex::Frame<'_>> for Function {
    fn from(frame: &symdex::Frame<'_>) -> Self {
        Self {
            name: frame.name.map(Vec::from),
            file: frame.file.map(Vec::from),
            line: frame.line,
            start: frame.function_start,
            table: frame.table,
        }
    }
}

/// Why a source has no answers for an image.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// There is no index of the image.
    Missing,
    /// The only index of this id is for another architecture, which the text names.
    OtherArch(String),
    /// The index is damaged. The text says how.
    Damaged(String),
    /// The index or debug file is of an unsupported kind. The text says which.
    Unsupported(String),
    /// The report does not state the image's id, and several images have its name, or it states only the start of the
    /// id, and several ids begin so. [`Unanswered::ambiguous`] makes it.
    Ambiguous {
        /// The first five of them. A store can have hundreds of builds of one name.
        candidates: Vec<KnownImage>,
        /// How many there are.
        count: usize,
    },
    /// The report states a function and no load address ([`Base::Function`]), and where the function starts is unknown.
    /// The text says why.
    NoStart(String),
    /// Its debug file is being fetched, or its index is being built. A later request may be answered.
    Fetching,
    /// Its debug file could not be fetched. The text says why.
    FetchFailed(String),
    /// A store of indexes could not be asked, and no other source has the image. The text says why. The same request may
    /// be answered later.
    StoreFailed(String),
    /// Something else failed. The text says what.
    Failed(String),
}

/// Returns the answers of an opened index for `offsets` of `image`, in their order.
///
/// All answers together have at most 64 MiB. Those past this are [`Answer::TooLarge`].
///
/// Use it in [`Source::answer`]. `scratch` keeps answers that the index gave before; have one for each thread.
///
/// ```
/// use symdex::{ImageOffset, Index, LinePolicy, Scratch};
/// use symdex_report::{Answer, Image, answer_from_index};
///
/// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
/// let index = Index::open(std::fs::read(path)?)?;
/// let offsets = [ImageOffset(0x3cf), ImageOffset(u64::MAX)];
/// let image = Image::default();
/// let answers = answer_from_index(&index, &image, &offsets, LinePolicy::Statement, &mut Scratch::default())?;
/// assert!(matches!(&answers[0], Answer::Functions(functions) if functions.len() == 4));
/// assert_eq!(answers[1], Answer::NoFunction);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Unanswered::OtherArch`] if the report states an architecture of another family than the index has.
/// [`Unanswered::Unsupported`] if the offsets count from `__TEXT_EXEC` and the index has no such segment.
/// [`Unanswered::NoStart`] if they count from a function, and not exactly one function has its name, or the search for
/// it would take too long ([`Index::function_start`]).
pub fn answer_from_index<B: AsRef<[u8]>>(
    index: &Index<B>,
    image: &Image,
    offsets: &[ImageOffset],
    lines: LinePolicy,
    scratch: &mut Scratch,
) -> Result<Vec<Answer>, Unanswered> {
    let distance = match image.base {
        Base::Function => match index.function_start(image.function.as_bytes()) {
            Ok(Some(start)) => start.0,
            Ok(None) => {
                let what =
                    "the report states no load address, and the index has no function or several functions";
                return Err(Unanswered::NoStart(format!("{what} named {}", image.function)));
            }
            Err(error @ symdex::Error::SearchTooLong) => return Err(Unanswered::NoStart(error.to_string())),
            Err(damage) => return Ok(vec![Answer::Damaged(damage.to_string()); offsets.len()]),
        },
        _ => base_distance(index.metadata(), image)?,
    };
    Ok(answers_from(distance, offsets, |offsets, each| {
        index.lookup_many(offsets, lines, scratch, |position, found| {
            each(position, found.map_err(|error| error.to_string()));
        });
    }))
}

/// Returns the answers for `offsets` of `image`, in their order, as [`answer_from_index`] does, from an index that
/// `look_up` reads. Use it if the index is not in one piece.
///
/// `look_up` is called once, with offsets from the start of the image. It calls its second argument with the position of
/// an offset and the frames there, `None` for a gap, or the text that says how the index is damaged there. An offset
/// for which it does not call is [`Answer::NoFunction`].
///
/// # Errors
///
/// As [`answer_from_index`]. Offsets that count from a function ([`Base::Function`]) are [`Unanswered::NoStart`].
pub fn answer_from_lookups(
    metadata: &Metadata,
    image: &Image,
    offsets: &[ImageOffset],
    look_up: impl FnOnce(&[ImageOffset], &mut dyn FnMut(usize, Result<Option<Frames<'_>>, String>)),
) -> Result<Vec<Answer>, Unanswered> {
    Ok(answers_from(base_distance(metadata, image)?, offsets, look_up))
}

/// The answers for `offsets`, which count from the address `distance` bytes after the start of the image.
fn answers_from(
    distance: u64,
    offsets: &[ImageOffset],
    look_up: impl FnOnce(&[ImageOffset], &mut dyn FnMut(usize, Result<Option<Frames<'_>>, String>)),
) -> Vec<Answer> {
    let offsets = moved(offsets, distance);
    let mut answers = vec![Answer::NoFunction; offsets.len()];
    let mut left = AnswerBytes::in_memory(0);
    look_up(&offsets, &mut |position, found| {
        answers[position] = match found {
            Ok(Some(frames)) if !left.take(frames.iter().map(|frame| size_of_copy(&frame)).sum()) => {
                Answer::TooLarge
            }
            Ok(Some(frames)) => Answer::Functions(functions(frames, distance)),
            Ok(None) => Answer::NoFunction,
            Err(damage) => Answer::Damaged(damage),
        };
    });
    answers
}

/// The offsets from the start of the image, of offsets that count from the address `distance` bytes after it.
fn moved(offsets: &[ImageOffset], distance: u64) -> Vec<ImageOffset> {
    offsets.iter().map(|offset| ImageOffset(offset.0.wrapping_add(distance))).collect()
}

/// The functions of an answer. Their starts count from what the report's offsets count from, which is `distance` bytes
/// after the start of the image.
fn functions(frames: Frames<'_>, distance: u64) -> Vec<Function> {
    let function = |frame: symdex::Frame<'_>| {
        let mut function = Function::from(&frame);
        function.start = function.start.map(|start| ImageOffset(start.0.wrapping_sub(distance)));
        function
    };
    frames.iter().map(function).collect()
}

/// Converts the offsets that a [`Source`] is asked for to offsets from the start of the image that `metadata`
/// describes. See [`Base`] for what they count from in the report.
///
/// # Errors
///
/// As [`answer_from_lookups`].
pub fn image_offsets(
    metadata: &Metadata,
    image: &Image,
    offsets: &[ImageOffset],
) -> Result<Vec<ImageOffset>, Unanswered> {
    Ok(moved(offsets, base_distance(metadata, image)?))
}

/// The distance from the start of the image to the address that the report's offsets count from. It wraps: the
/// distance to address 0 of the file is negative.
fn base_distance(metadata: &Metadata, image: &Image) -> Result<u64, Unanswered> {
    // Reporters do not agree on the subtype: one image is arm64 or arm64e, armv7 or armv7s.
    let is_other = image.arch.as_ref().is_some_and(|arch| arch.cputype != metadata.arch.cputype);
    if is_other {
        return Err(Unanswered::OtherArch(metadata.arch.name.clone()));
    }
    match (image.base, metadata.text_exec_base) {
        (Base::TextExec, Some(text_exec)) => Ok(text_exec.wrapping_sub(metadata.base)),
        (Base::TextExec, None) => {
            let what = "the report states the address of __TEXT_EXEC, but the image has no such segment";
            Err(Unanswered::Unsupported(what.to_owned()))
        }
        (Base::Function, _) => {
            let what = "the report states no load address; finding a function by its name needs an index in one piece";
            Err(Unanswered::NoStart(what.to_owned()))
        }
        (Base::File, _) => Ok(metadata.base.wrapping_neg()),
        (Base::Image | Base::Absolute, _) => Ok(0),
    }
}
