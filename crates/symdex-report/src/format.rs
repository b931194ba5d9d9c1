//! The formats of reports: what one has to do, and which there are.

use crate::error::Error;
use crate::report::{Parsed, Report, Span};
use crate::symbolicate::{Rewrite, Symbolicated};
use crate::{apple_text, call_tree, ips, kscrash, list, metrickit, native, sentry};

/// A format of reports: how it is recognised, read and rewritten.
pub trait Format: Sync {
    /// What it is called in messages and in JSON.
    fn name(&self) -> &'static str;

    /// Whether `text` is of this format; by its content, and in linear time.
    fn recognises(&self, text: &[u8]) -> bool;

    /// The images and threads in `text`. What is not understood is passed over.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] where nothing can be made of it, [`Error::Unsupported`] where it is no crash report.
    fn parse(&self, text: &[u8]) -> Result<Parsed, Error>;

    /// What is to be rewritten, in any order, none of it overlapping: what `symbolicated` has for each frame, put in the frame's place.
    fn edits(&self, symbolicated: &Symbolicated<'_, '_>) -> Vec<Edit>;
}

/// Bytes of a report, and what stands there once it is symbolicated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Where it is.
    pub span: Span,
    /// What is put there.
    pub text: Vec<u8>,
}

/// The edits of a format whose frames are rewritten one by one: what `written` makes of the text and a frame's site in it, for each frame
/// that is symbolicated.
pub(crate) fn frame_edits(
    symbolicated: &Symbolicated<'_, '_>,
    written: impl Fn(&[u8], &Span, &Rewrite<'_>) -> Option<Vec<u8>>,
) -> Vec<Edit> {
    let report = symbolicated.report;
    let edit = |(thread, number): (usize, usize)| {
        let span = report.threads[thread].frames[number].site.clone();
        let text = written(report.text, &span, &symbolicated.rewrite(thread, number)?)?;
        Some(Edit { span, text })
    };
    symbolicated.frames().filter_map(edit).collect()
}

/// Every format there is; the first that recognises a text has it. A new one is a file and a line here.
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

/// The longest text that is read, in bytes: places in it are numbers of 32 bits.
const MAX_SIZE: usize = u32::MAX as usize - 1;

impl<'t> Report<'t> {
    /// The report in `text`, of whatever format.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownFormat`] where no format recognises it, [`Error::TooLarge`] for more than 4 GiB; else the format's own:
    /// [`Error::Malformed`], [`Error::Unsupported`].
    pub fn parse(text: &'t [u8]) -> Result<Self, Error> {
        if text.len() > MAX_SIZE {
            return Err(Error::TooLarge { size: text.len() });
        }
        let format = FORMATS.into_iter().find(|format| format.recognises(text));
        let format = format.ok_or(Error::UnknownFormat)?;
        let Parsed { mut images, threads } = format.parse(text)?;
        for image in &mut images {
            // Zeros stand for an id that the writer of the report did not know.
            image.id.take_if(|id| id.as_bytes().iter().all(|byte| *byte == 0));
        }
        Ok(Report { text, format, images, threads })
    }
}
