//! A format of reports, and the table of all formats.
//!
//! A new format is a file or a folder with a constant of type [`Format`], and an entry in [`FORMATS`]. `How to add` in
//! docs/ARCHITECTURE.md lists what else names the formats.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use crate::error::Error;
use crate::existing::ExistingSymbol;
use crate::report::{Parsed, Report, Span};
use crate::symbolicate::{Resolution, Symbolicated};
use crate::text::{is_utf16, split_mark};
use crate::unknown::unknown;
use crate::write::Editor;
use crate::{
    appended, apple_text, bugsnag, call_tree, firefox, ips, kscrash, list, measure, metrickit, minidump,
    native, protobuf, sentry,
};

/// A format of reports: it recognises, reads and rewrites them. [`formats`] returns all formats.
pub struct Format {
    /// As [`Format::name`].
    pub(crate) name: &'static str,
    /// As [`Format::description`].
    pub(crate) description: &'static str,
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
    /// Returns the symbol that the report has for each frame, by thread. For a text format: [`symbols_in_text`].
    pub(crate) existing_symbols: fn(&Report<'_>) -> Vec<Vec<ExistingSymbol>>,
    /// Returns the name of the image that the text of a frame states, even if the report has several images of it.
    /// `None` for the other formats: [`Report::images`] has the name.
    pub(crate) stated_image: for<'t> fn(&'t [u8]) -> Option<Cow<'t, str>>,
    /// Returns the edits that put the answers into the text.
    pub(crate) edits: fn(&Symbolicated<'_, '_>) -> Edits,
    /// Writes the symbolicated report as text that people read. For a text format: [`write_native`].
    pub(crate) write_text: fn(&Symbolicated<'_, '_>, &mut dyn Write) -> io::Result<()>,
}

impl Format {
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

/// As [`Report::symbols_in_text`].
pub(crate) fn symbols_in_text(report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
    report.symbols_in_text()
}

/// As [`Symbolicated::write`].
pub(crate) fn write_native(symbolicated: &Symbolicated<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    symbolicated.write(out)
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
    /// Creates all edits, in the order of the text.
    Written(fn(&Symbolicated<'_, '_>, &mut Editor<'_>) -> io::Result<()>),
    /// All edits, in any order.
    All(Vec<Edit>),
}

impl From<Vec<Edit>> for Edits {
    fn from(edits: Vec<Edit>) -> Self {
        Self::All(edits)
    }
}

/// No edits.
impl Default for Edits {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

/// The edits of a format that replaces each frame separately.
pub(crate) fn frame_edits(_: &Symbolicated<'_, '_>, replacement: Replacement) -> Edits {
    Edits::Frames(replacement)
}

/// The table of all formats. If several recognise a text, the first of them reads it.
static FORMATS: [Format; 27] = [
    apple_text::FORMAT,
    ips::FORMAT,
    ips::stackshot::FORMAT,
    call_tree::FORMAT,
    metrickit::FORMAT,
    metrickit::embedded::FORMAT,
    kscrash::FORMAT,
    sentry::FORMAT,
    bugsnag::FORMAT,
    measure::FORMAT,
    minidump::FORMAT,
    protobuf::plcrash::FORMAT,
    protobuf::pprof::FORMAT,
    firefox::FORMAT,
    native::ANDROID,
    protobuf::tombstone::FORMAT,
    native::HARMONY_OS,
    native::SANITIZER,
    appended::lldb::FORMAT,
    appended::gdb::FORMAT,
    appended::glibc::FORMAT,
    appended::swift::FORMAT,
    appended::rust::FORMAT,
    appended::go::FORMAT,
    appended::dart::FORMAT,
    appended::minidump_text::FORMAT,
    list::FORMAT,
];

/// Returns all formats of reports.
///
/// ```
/// assert!(symdex_report::formats().iter().any(|format| format.name() == "apple-crash"));
/// ```
#[must_use]
pub fn formats() -> &'static [Format] {
    &FORMATS
}

/// The longest text that is read, in bytes. [`crate::json`] stores positions in 32 bits.
const MAX_SIZE: usize = u32::MAX as usize - 1;

impl<'t> Report<'t> {
    /// Reads the report in `text`. The format is recognised by the content.
    ///
    /// ```
    /// use symdex_report::Report;
    ///
    /// let report = Report::parse(b"Thread 0 Crashed:\n0   App   0x104a343d0 0x104a34000 + 976\n")?;
    /// assert_eq!(report.format_name(), "apple-crash");
    /// assert_eq!(report.threads()[0].frames[0].address, 0x104a343d0);
    /// assert_eq!(report.images()[0].name, "App");
    /// # Ok::<(), symdex_report::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::UnknownFormat`] if no format recognises the text, [`Error::TooLarge`] for more than 4 GiB. From the
    /// format: [`Error::Malformed`] if the text is broken, [`Error::Unsupported`] if this kind of report has no stacks.
    pub fn parse(text: &'t [u8]) -> Result<Self, Error> {
        if text.len() > MAX_SIZE {
            return Err(Error::TooLarge { size: text.len() });
        }
        if is_utf16(text) {
            let what =
                "the text is in UTF-16; convert it to UTF-8, for example with `iconv -f UTF-16 -t UTF-8`";
            return Err(Error::Unsupported { what: what.to_owned() });
        }
        let (mark, text) = split_mark(text);
        let format = FORMATS.iter().find(|format| (format.recognises)(text));
        let format = format.ok_or_else(|| unknown(text))?;
        let parsed = (format.parse)(text).map_err(|error| error.after(mark.len()))?;
        let Parsed { mut images, threads, info, extent } = parsed;
        for image in &mut images {
            // An id of zeros means that the reporter did not know the id.
            image.id.take_if(|id| id.as_bytes().iter().all(|byte| *byte == 0));
        }
        Ok(Report { mark, text, format, images, threads, info, extent })
    }
}
