//! A format of reports.
//!
//! A new format is a file or a folder with a constant of type [`Format`], and an entry in `formats.rs`. `How to add` in
//! docs/ARCHITECTURE.md lists what else names the formats.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use crate::engine::symbolicate::{Resolution, Symbolicated};
use crate::error::Error;
use crate::formats::existing::ExistingSymbol;
use crate::formats::write::Editor;
use crate::report::{Parsed, Report, Span};
use crate::text::split_mark;

/// A format of reports: it recognises, reads and rewrites them. [`formats`](crate::formats) returns all formats.
pub struct Format {
    /// As [`Format::name`].
    pub(crate) name: &'static str,
    /// As [`Format::description`].
    pub(crate) description: &'static str,
    /// As [`Format::kind`].
    pub(crate) kind: FormatKind,
    /// As [`Format::example`].
    pub(crate) example: &'static str,
    /// Marks that most reports of this format contain: titles of lines, keys of members. They do not recognise a
    /// report: if no format recognises a text, the error names those with the most marks. Empty for a format that has
    /// only frames.
    pub(crate) marks: &'static [&'static str],
    /// As [`Format::recognises`].
    pub(crate) recognises: fn(&[u8]) -> bool,
    /// Reads the header, images and threads of a report. It skips lines and members that it does not know.
    ///
    /// It returns [`Error::Malformed`] if the text is broken, and [`Error::Unsupported`] if this kind of report has no
    /// stacks.
    pub(crate) parse: fn(&[u8]) -> Result<Parsed, Error>,
    /// Returns the symbol that the report has for each frame, by thread. `None` if the lines of the frames have them,
    /// as in [`Report::symbols_in_text`].
    pub(crate) existing_symbols: Option<ReadSymbols>,
    /// Returns the name or the path of the image that the text of a frame states, even if the report has several images
    /// of it. `None` for the other formats: [`Report::images`] has the name.
    pub(crate) stated_image: for<'t> fn(&'t [u8]) -> Option<Cow<'t, str>>,
    /// As [`Format::image_list`].
    pub(crate) image_list: &'static str,
    /// The edits that put the answers into the text.
    pub(crate) edits: Edits,
    /// How a document can begin whose start is cut, before the first element of its list of frames, threads or images.
    pub(crate) openings: &'static [&'static str],
    /// Writes the symbolicated report as text that people read. With `None`, a text format is written as it is, and
    /// another one as a `.crash`.
    pub(crate) write_text: Option<WriteText>,
}

/// What the reports of a format are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatKind {
    /// Lines of text. Some have a line of JSON as a header.
    Text,
    /// JSON, or lines of JSON.
    Json,
    /// Bytes that are no text.
    Binary,
}

/// Returns symbols by thread and frame.
pub(crate) type ReadSymbols = fn(&Report<'_>) -> Vec<Vec<ExistingSymbol>>;

/// Writes a symbolicated report.
pub(crate) type WriteText = fn(&Symbolicated<'_, '_>, &mut dyn Write) -> io::Result<()>;

impl Format {
    /// A text format without frames. A new format has the fields in which it differs from this one.
    pub(crate) const TEXT: Self = Self {
        name: "",
        description: "",
        kind: FormatKind::Text,
        example: "",
        marks: &[],
        recognises: |_| false,
        parse: |_| Ok(Parsed::default()),
        existing_symbols: None,
        stated_image: |_| None,
        image_list: "the report's list of images",
        edits: Edits::Frames(|_, _, _| None),
        openings: &[],
        write_text: None,
    };

    /// As [`TEXT`](Self::TEXT), for a format in JSON.
    pub(crate) const JSON: Self = Self { kind: FormatKind::Json, ..Self::TEXT };

    /// As [`TEXT`](Self::TEXT), for a binary format.
    pub(crate) const BINARY: Self = Self { kind: FormatKind::Binary, ..Self::TEXT };

    /// The name in JSON: `apple-crash`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The programs that write reports of this format, for people.
    #[must_use]
    pub fn description(&self) -> &'static str {
        self.description
    }

    /// What the reports are made of.
    #[must_use]
    pub fn kind(&self) -> FormatKind {
        self.kind
    }

    /// What states where the images of a report of this format were loaded, for people: "the answer of `image list`".
    #[must_use]
    pub fn image_list(&self) -> &'static str {
        self.image_list
    }

    /// A line of a report of this format. It is recognised as a report by itself. Empty for a binary format.
    #[must_use]
    pub fn example(&self) -> &'static str {
        self.example
    }

    /// Whether `text` is a report of this format, judged by its content. Takes linear time. At most one format
    /// recognises a real report.
    ///
    /// ```
    /// let text = b"#01 pc 00000000000a1b2c  /data/app/libfoo.so (do_action+764)";
    /// let formats = symdex_report::formats().iter().filter(|format| format.recognises(text));
    /// assert!(formats.map(|format| format.name()).eq(["android"]));
    /// ```
    #[must_use]
    pub fn recognises(&self, text: &[u8]) -> bool {
        (self.recognises)(split_mark(text).1)
    }
}

/// The name of the format.
impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Format").field(&self.name).finish()
    }
}

/// A replacement of bytes of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The bytes that are replaced; empty for an insertion.
    pub(crate) span: Span,
    /// The new bytes.
    pub(crate) text: Vec<u8>,
}

/// Returns the new text of a resolved frame. It takes the report's text, the frame's site and the answer.
pub(crate) type Replacement = fn(&[u8], &Span, &Resolution<'_>) -> Option<Vec<u8>>;

/// The edits of a report, without overlaps. The edits of a large report take much memory, so most formats create each
/// when it is written.
pub(crate) enum Edits {
    /// Creates the edit of one resolved frame.
    Frames(Replacement),
    /// Makes all edits, in the order of the text.
    Written(fn(&Symbolicated<'_, '_>, &mut Editor<'_>) -> io::Result<()>),
    /// Returns all edits, in any order.
    All(fn(&Symbolicated<'_, '_>) -> Vec<Edit>),
}
