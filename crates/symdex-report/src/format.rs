//! The trait of a report format, and the list of all formats.
//!
//! A new format is a module with a type that implements [`Format`], and an entry in [`FORMATS`].

use std::io::{self, Write};

use crate::error::Error;
use crate::existing::ExistingSymbol;
use crate::report::{Parsed, Report, Span};
use crate::symbolicate::{Resolution, Symbolicated};
use crate::{apple_text, call_tree, ips, kscrash, list, metrickit, native, sentry};

/// A format of reports: it recognises, reads and rewrites them.
pub(crate) trait Format: Sync {
    /// The name in JSON.
    fn name(&self) -> &'static str;

    /// Whether `text` is of this format, judged by its content. Takes linear time.
    fn recognises(&self, text: &[u8]) -> bool;

    /// Reads the header, images and threads in `text`. It skips lines and members that it does not know.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the text is broken, [`Error::Unsupported`] if this kind of report has no stacks.
    fn parse(&self, text: &[u8]) -> Result<Parsed, Error>;

    /// Returns the symbol that the report has for each frame, by thread.
    fn existing_symbols(&self, report: &Report<'_>) -> Vec<Vec<ExistingSymbol>> {
        report.symbols_in_text()
    }

    /// Writes the symbolicated report as text that people read. A text format is written as
    /// [`Symbolicated::write`] writes it.
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    fn write_text(&self, symbolicated: &Symbolicated<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
        symbolicated.write(out)
    }

    /// Returns the edits that put the answers of `symbolicated` into the text: in any order, without overlaps.
    fn edits(&self, symbolicated: &Symbolicated<'_, '_>) -> Vec<Edit>;
}

/// A replacement of bytes of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The bytes that are replaced; empty for an insertion.
    pub(crate) span: Span,
    /// The new bytes.
    pub(crate) text: Vec<u8>,
}

/// The edits of a format that replaces each frame by itself. `replacement` returns the new text of a resolved frame; it
/// takes the report's text, the frame's site and the answer.
pub(crate) fn frame_edits(
    symbolicated: &Symbolicated<'_, '_>,
    replacement: impl Fn(&[u8], &Span, &Resolution<'_>) -> Option<Vec<u8>>,
) -> Vec<Edit> {
    let report = symbolicated.report;
    let edit = |(thread, number): (usize, usize)| {
        let span = report.threads[thread].frames[number].site.clone();
        let text = replacement(report.text, &span, &symbolicated.resolution(thread, number)?)?;
        Some(Edit { span, text })
    };
    symbolicated.frames().filter_map(edit).collect()
}

/// All formats. The first that recognises a text reads it.
const FORMATS: [&dyn Format; 10] = [
    &ips::Ips,
    &sentry::Sentry,
    &kscrash::KsCrash,
    &metrickit::MetricKit,
    &native::HARMONY_OS,
    &native::ANDROID,
    &native::SANITIZER,
    &call_tree::CallTree,
    &apple_text::AppleText,
    &list::List,
];

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
        let format = FORMATS.into_iter().find(|format| format.recognises(text));
        let format = format.ok_or(Error::UnknownFormat)?;
        let Parsed { mut images, threads, info } = format.parse(text)?;
        for image in &mut images {
            // An id of zeros means that the reporter did not know the id.
            image.id.take_if(|id| id.as_bytes().iter().all(|byte| *byte == 0));
        }
        Ok(Report { text, format, images, threads, info })
    }
}
