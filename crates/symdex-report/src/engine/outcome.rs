//! Why images and frames have no answer, as status words and as sentences.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;

use symdex::{Cause, ImageId};

use crate::engine::near::KnownImage;
use crate::engine::source::{AnsweredBy, Unanswered};
use crate::report::ReportImage;

/// The result of asking the source about one image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageOutcome {
    /// The source was not asked: no frame in the image needs an answer.
    Unused,
    /// The source had an index or a debug file of the image.
    Found(AnsweredBy),
    /// The report does not state the image's id, and the source has no match for it.
    NoId,
    /// Frames name the image, and the report does not state where it was loaded. The text says what to add.
    NotLoaded(&'static str),
    /// The source had nothing to answer from.
    Unanswered(Unanswered),
}

impl ImageOutcome {
    /// Returns what answered for the image, or `None` if nothing did.
    #[must_use]
    pub fn answered_by(&self) -> Option<&AnsweredBy> {
        match self {
            ImageOutcome::Found(by) => Some(by),
            _ => None,
        }
    }

    /// Whether the image lacks an index that a user is expected to have. Images of the system do not count,
    /// unless the source has an index of one and the index is unusable.
    #[must_use]
    pub fn lacks_index_of(&self, image: &ReportImage) -> bool {
        match self {
            ImageOutcome::Unused | ImageOutcome::Found(_) => false,
            ImageOutcome::NoId
            | ImageOutcome::NotLoaded(_)
            | ImageOutcome::Unanswered(Unanswered::Missing) => image.is_app(),
            ImageOutcome::Unanswered(_) => true,
        }
    }

    /// The gravest cause of what failed for the image, or [`Cause::NotFound`] if there is nothing to answer from.
    /// `None` if nothing failed or the image is unused. A store that could not be asked, or has lost the index, does
    /// not count if another source answers.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        match self {
            ImageOutcome::Unused => None,
            ImageOutcome::Found(by) => by.lasting().map(Unanswered::cause).max(),
            ImageOutcome::NoId | ImageOutcome::NotLoaded(_) => Some(Cause::NotFound),
            ImageOutcome::Unanswered(why) => Some(why.cause()),
        }
    }

    /// The status of the image, a word: `found`, `unused`, or that of the reason. An image with a damaged index is
    /// `damaged` even if another index answers.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self {
            ImageOutcome::Unused => "unused",
            ImageOutcome::Found(by) => Unanswered::gravest(by.lasting()).map_or("found", Unanswered::status),
            ImageOutcome::NoId | ImageOutcome::NotLoaded(_) => Unanswered::Missing.status(),
            ImageOutcome::Unanswered(why) => why.status(),
        }
    }

    /// Returns why there is no answer, or which indexes failed before another one answered. `None` if nothing failed
    /// or the image is unused.
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
            ImageOutcome::NotLoaded(add) => {
                Some(format!("the report does not state where it was loaded; add {add}").into())
            }
            ImageOutcome::Unanswered(why) => Some(why.reason()),
        }
    }
}

/// How many candidates [`Unanswered::Ambiguous`] lists.
const MAX_LISTED: usize = 5;

impl Unanswered {
    /// Returns [`Unanswered::Ambiguous`] with copies of the first five candidates.
    #[must_use]
    pub fn ambiguous<'k>(
        candidates: impl IntoIterator<Item = &'k KnownImage, IntoIter: ExactSizeIterator>,
    ) -> Self {
        let candidates = candidates.into_iter();
        Self::Ambiguous {
            count: candidates.len(),
            candidates: candidates.take(MAX_LISTED).cloned().collect(),
        }
    }

    /// The reason for an image whose only indexes are for other architectures.
    #[must_use]
    pub fn other_arch(archs: &str) -> Self {
        Self::NoMatch(format!("its index is for {archs}"))
    }

    /// Returns the reason with the gravest cause, the first of several. `None` if the list is empty.
    #[must_use]
    pub fn gravest<'u>(all: impl IntoIterator<Item = &'u Self>) -> Option<&'u Self> {
        all.into_iter().min_by_key(|why| Reverse(why.cause()))
    }

    /// The cause. Without an index of the image, it is [`Cause::NotFound`]. It is [`Cause::Unavailable`] only if a
    /// store could not be asked, so that the store may have the image.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Missing | Self::NoMatch(_) | Self::Ambiguous { .. } | Self::Fetching => Cause::NotFound,
            Self::FetchFailed(_) => Cause::Other,
            Self::Failed(cause, _) => *cause,
        }
    }

    /// The status of an image without answers, a word: `missing`, `fetching`, `fetching_failed`, or the name of the
    /// cause.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self {
            Self::Missing | Self::NoMatch(_) | Self::Ambiguous { .. } => "missing",
            Self::Fetching => "fetching",
            Self::FetchFailed(_) => "fetching_failed",
            Self::Failed(cause, _) => cause.name(),
        }
    }

    /// The reason as a sentence for people.
    #[must_use]
    pub fn reason(&self) -> Cow<'static, str> {
        match self {
            Unanswered::Missing => "no index or debug file has its id".into(),
            Unanswered::Fetching => "its debug file is being fetched; ask again later".into(),
            Unanswered::NoMatch(what) | Unanswered::FetchFailed(what) | Unanswered::Failed(_, what) => {
                what.clone().into()
            }
            Unanswered::Ambiguous { candidates, count } => {
                let described =
                    |KnownImage { name, id, arch }: &KnownImage| format!("{name} {arch} {}", apple_uuid(id));
                let mut listed: Vec<_> = candidates.iter().map(described).collect();
                let more = count.saturating_sub(candidates.len());
                if more != 0 {
                    listed.push(format!("{more} more"));
                }
                format!("the report does not say which of these it is: {}", listed.join(", ")).into()
            }
        }
    }
}

/// The same text as [`Unanswered::reason`].
impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason())
    }
}

impl std::error::Error for Unanswered {}

/// Why a frame has no answer.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// The address lies in no image of the report, or in one whose load address the report does not state.
    NoImage,
    /// The report does not state the id of the frame's image.
    NoId,
    /// The source has no answers for the frame's image. [`ImageOutcome`] says why.
    NoAnswer,
    /// The index has no function at the address.
    NoFunction,
    /// The address has several readings, because the report does not state the release of Android, and their functions
    /// differ. The text names them.
    Ambiguous(String),
    /// The index has a function at the address, and no name of it.
    NoName,
    /// The index is damaged at the address, or the store has lost the part of it that has the address. The text says
    /// more.
    Unreadable(Cause, String),
    /// The answer is left out, because the answers of the report have too much text.
    TooLarge,
}

impl Unresolved {
    /// The status word of the frame in JSON. `image` is the outcome of the frame's image.
    #[must_use]
    pub fn status(&self, image: Option<&ImageOutcome>) -> &'static str {
        match self {
            Unresolved::NoImage | Unresolved::NoId => "unknown_image",
            Unresolved::NoAnswer => match image.and_then(ImageOutcome::cause) {
                Some(cause) if cause.is_damage() || cause == Cause::Unavailable => cause.name(),
                _ => "missing",
            },
            Unresolved::NoFunction | Unresolved::NoName | Unresolved::Ambiguous(_) => "missing_symbol",
            Unresolved::Unreadable(cause, _) => cause.name(),
            Unresolved::TooLarge => Cause::Limit.name(),
        }
    }

    /// The reason as a sentence for people. `image` is the outcome of the frame's image.
    #[must_use]
    pub fn reason(&self, image: Option<&ImageOutcome>) -> Cow<'_, str> {
        match self {
            Unresolved::NoImage | Unresolved::NoId | Unresolved::NoAnswer => {
                let of_image = image.and_then(ImageOutcome::reason);
                of_image.unwrap_or_else(|| "the address lies in no image of the report".into())
            }
            Unresolved::NoFunction => "the index knows nothing at this address".into(),
            Unresolved::NoName => "the index has no name of the function at this address; it needs the debug file, or \
                                   a binary that is not stripped"
                .into(),
            Unresolved::Ambiguous(functions) => {
                let what = "the report does not state Android's release (`Build fingerprint:`), and before 11 addresses \
                            count from the file";
                format!("{what}: it is {functions}").into()
            }
            Unresolved::Unreadable(_, what) => what.into(),
            Unresolved::TooLarge => {
                "the answer at one address may have 2 MiB, and the answers of one report 64 MiB, or 16 times its \
                 size; this one exceeds that"
                    .into()
            }
        }
    }
}

/// Returns the id in the form that Apple's reports print: a UUID in upper case with dashes. An id of another length
/// than 16 bytes stays in lower-case digits.
///
/// ```
/// let id = "6dcd4e9dd3b13a0e8dff6a5a4be1b1b0".parse()?;
/// assert_eq!(symdex_report::apple_uuid(&id), "6DCD4E9D-D3B1-3A0E-8DFF-6A5A4BE1B1B0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn apple_uuid(id: &ImageId) -> String {
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
