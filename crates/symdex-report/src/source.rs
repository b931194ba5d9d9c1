//! Where answers come from.

use symdex::{Frames, ImageOffset, Index, LinePolicy, Metadata, Scratch, Table};

use crate::near::KnownImage;
use crate::report::{Base, Image};

/// Whatever answers image offsets: a folder of indexes, a store of a service.
pub trait Source {
    /// What there is at each of `offsets` in `image`, in their order, which is ascending; asked once for each image of a report.
    ///
    /// A source finds an image by its id. It returns [`Unanswered::Missing`] for an image without an id, unless its user asked for a
    /// match by name ([`match_by_name`](crate::match_by_name)). Where `image.base` is [`Base::TextExec`], the offsets count from the
    /// start of that segment, and where it is [`Base::File`], from address 0 of the file ([`answer_from_index`] sees to both).
    ///
    /// # Errors
    ///
    /// Why there is nothing to answer from: [`Unanswered`].
    fn answer(
        &mut self,
        image: &Image,
        offsets: &[ImageOffset],
        lines: LinePolicy,
    ) -> Result<Answers, Unanswered>;
}

/// What a source has for the offsets of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answers {
    /// An answer for each offset, in their order.
    pub answers: Vec<Answer>,
    /// What they come from.
    pub by: AnsweredBy,
}

/// Answers that come from an index of the image's id.
impl From<Vec<Answer>> for Answers {
    fn from(answers: Vec<Answer>) -> Self {
        Self { answers, by: AnsweredBy::default() }
    }
}

/// What the answers for an image come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnsweredBy {
    /// How the index was chosen.
    pub matched: MatchedBy,
    /// The index or debug file that answered, in the source's own words; `None` if the source does not say.
    pub source: Option<String>,
    /// Why other indexes of the image, which the source asked first, did not answer, or not all of it: those that are damaged,
    /// unsupported or cannot be read.
    pub passed_over: Vec<Unanswered>,
}

/// How the index was chosen that answers for an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MatchedBy {
    /// It has the image's id.
    #[default]
    Id,
    /// The report does not state the image's id. The index is the only one of that name, and may be of another build.
    Name,
    /// The user said which index to take.
    Assumed,
}

impl MatchedBy {
    /// What it is called in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MatchedBy::Id => "id",
            MatchedBy::Name => "name",
            MatchedBy::Assumed => "assumed",
        }
    }
}

/// What one offset yields: the functions there, innermost first; nothing in a gap; or what is damaged.
pub type Answer = Result<Option<Vec<Function>>, String>;

/// A function at an offset, as an index has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The linkage name.
    pub name: Option<Vec<u8>>,
    /// The file's path.
    pub file: Option<Vec<u8>>,
    /// The line, 1-based; 0 for code that the compiler made up.
    pub line: Option<u32>,
    /// Where the concrete function that holds the code starts.
    pub start: Option<ImageOffset>,
    /// The table that it comes from.
    pub table: Table,
}

/// Why no offset of an image could be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// There is no index of it.
    Missing,
    /// There is an index of this id, for another architecture.
    OtherArch(String),
    /// Its index is damaged, and how.
    Damaged(String),
    /// Its index, or its debug file, is of a kind that is not read.
    Unsupported(String),
    /// Several images have its name, and the report does not state its id.
    Ambiguous(Vec<KnownImage>),
    /// Something else has failed, and what.
    Failed(String),
}

/// What `index` has at each of `offsets`.
///
/// # Errors
///
/// [`Unanswered::OtherArch`] where the report's image cannot be the index's; [`Unanswered::Unsupported`] where offsets count from
/// a segment that it does not have.
pub fn answer_from_index<B: AsRef<[u8]>>(
    index: &Index<B>,
    image: &Image,
    offsets: &[ImageOffset],
    lines: LinePolicy,
    scratch: &mut Scratch,
) -> Result<Vec<Answer>, Unanswered> {
    let added = added(index.metadata(), image)?;
    let offsets = image_offsets(index.metadata(), image, offsets)?;
    let mut answers = vec![Ok(None); offsets.len()];
    index.lookup_many(&offsets, lines, scratch, |place, found| {
        let functions = |frames: Frames<'_>| frames.iter().map(|frame| Function::of(&frame, added)).collect();
        answers[place] = found.map(|frames| frames.map(functions)).map_err(|error| error.to_string());
    });
    Ok(answers)
}

/// `offsets`, which a [`Source`] is asked for, as offsets from the start of the image that `metadata` describes.
///
/// # Errors
///
/// As [`answer_from_index`].
pub fn image_offsets(
    metadata: &Metadata,
    image: &Image,
    offsets: &[ImageOffset],
) -> Result<Vec<ImageOffset>, Unanswered> {
    let added = added(metadata, image)?;
    Ok(offsets.iter().map(|offset| ImageOffset(offset.0.wrapping_add(added))).collect())
}

/// What is added to an offset in the report's image to make it an offset from the start of the image.
fn added(metadata: &Metadata, image: &Image) -> Result<u64, Unanswered> {
    // Which of a family a report names is a matter of who wrote it: arm64 and arm64e, armv7 and armv7s.
    let is_other = image.arch.as_ref().is_some_and(|arch| arch.cputype != metadata.arch.cputype);
    if is_other {
        return Err(Unanswered::OtherArch(metadata.arch.name.clone()));
    }
    match (image.base, metadata.text_exec_base) {
        (Base::TextExec, Some(text_exec)) => Ok(text_exec.wrapping_sub(metadata.base)),
        (Base::TextExec, None) => {
            let what = "the report has the address of __TEXT_EXEC, and the image no such segment";
            Err(Unanswered::Unsupported(what.to_owned()))
        }
        (Base::File, _) => Ok(metadata.base.wrapping_neg()),
        (Base::Image | Base::Absolute, _) => Ok(0),
    }
}

impl Function {
    /// The frame's function, its start counted from `added` bytes behind the image's own.
    fn of(frame: &symdex::Frame<'_>, added: u64) -> Self {
        Self {
            name: frame.name.map(Vec::from),
            file: frame.file.map(Vec::from),
            line: frame.line,
            start: frame.function_start.map(|start| ImageOffset(start.0.wrapping_sub(added))),
            table: frame.table,
        }
    }
}
