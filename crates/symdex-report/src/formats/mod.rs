//! The table of all formats of reports, and the choice of one by the content.

pub(crate) mod apple_text;
pub(crate) mod bugsnag;
pub(crate) mod call_tree;
pub(crate) mod documents;
pub(crate) mod existing;
pub(crate) mod firefox;
pub(crate) mod format;
pub(crate) mod frame_lines;
pub(crate) mod frame_object;
pub(crate) mod ips;
pub(crate) mod json;
pub(crate) mod json_edit;
pub(crate) mod json_images;
pub(crate) mod kscrash;
pub(crate) mod measure_sh;
pub(crate) mod metrickit;
pub(crate) mod minidump;
pub(crate) mod native;
pub(crate) mod pasted;
pub(crate) mod protobuf;
pub(crate) mod rules;
pub(crate) mod sentry;
pub(crate) mod steps;
pub(crate) mod unknown;
pub(crate) mod unread;
pub(crate) mod write;
pub(crate) mod xctrace;

use crate::engine::limits::Extent;
use crate::error::Error;
use crate::formats::format::Format;
use crate::formats::pasted::{Layer, Reading};
use crate::formats::unknown::unknown;
use crate::info::ReportInfo;
use crate::registers::in_order;
use crate::report::{Parsed, Report, ReportImage, Thread};
use crate::text::{is_utf16, split_mark};

/// The table of all formats. If several recognise a text, the first of them reads it.
static FORMATS: [Format; 34] = [
    apple_text::FORMAT,
    ips::FORMAT,
    ips::stackshot::FORMAT,
    call_tree::FORMAT,
    metrickit::FORMAT,
    kscrash::FORMAT,
    documents::sentry_profile::FORMAT,
    sentry::FORMAT,
    bugsnag::FORMAT,
    measure_sh::FORMAT,
    minidump::FORMAT,
    documents::swift::FORMAT,
    documents::app_center::FORMAT,
    xctrace::FORMAT,
    protobuf::plcrash::FORMAT,
    protobuf::pprof::FORMAT,
    protobuf::otlp::FORMAT,
    firefox::FORMAT,
    native::ANDROID,
    protobuf::tombstone::FORMAT,
    native::HARMONY_OS,
    native::SANITIZER,
    frame_lines::lldb::FORMAT,
    frame_lines::gdb::FORMAT,
    frame_lines::glibc::FORMAT,
    frame_lines::swift::FORMAT,
    frame_lines::rust::FORMAT,
    frame_lines::go::FORMAT,
    frame_lines::dart::FORMAT,
    frame_lines::minidump_text::FORMAT,
    frame_lines::panic::FORMAT,
    frame_lines::kernel::FORMAT,
    frame_lines::runtime::FORMAT,
    frame_lines::list::FORMAT,
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

/// The longest text that is read, in bytes. [`crate::formats::json`] stores positions in 32 bits.
const MAX_SIZE: usize = u32::MAX as usize - 1;

/// Reads `text` as it is. Returns the position of its format in the table, and the report.
fn read(text: &[u8]) -> Result<(usize, Parsed), Error> {
    let format = FORMATS.iter().position(|format| (format.recognises)(text));
    let format = format.ok_or_else(|| unknown(text, &FORMATS))?;
    let mut parsed = (FORMATS[format].parse)(text)?;
    rules::apply(&mut parsed, &FORMATS[format], text);
    Ok((format, parsed))
}

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
        let Reading { format, parsed, layers } =
            pasted::Reader { formats: &FORMATS, read }.read(text).map_err(|error| error.after(mark.len()))?;
        let own = layers.last().map_or(text, |layer: &Layer| &layer.text);
        let unread = unread::lines_of_others(own, &FORMATS[format], &parsed, &FORMATS);
        let Parsed { images, threads, info, mut extent } = parsed;
        extent.frames += unread;
        extent.bytes += layers.iter().map(|layer| layer.cut as u64).sum::<u64>();
        Ok(Report { mark, outer: text, layers, format, images, threads, info, extent })
    }

    /// A report without text: the stacks of a process, found in a minidump. Its format is that of minidump-stackwalk.
    /// `unread` is the number of frames that are left out. [`Symbolicated::write`](crate::Symbolicated::write) writes
    /// nothing for it.
    #[must_use]
    pub fn of_stacks(
        mut images: Vec<ReportImage>,
        mut threads: Vec<Thread>,
        info: ReportInfo,
        unread: u64,
    ) -> Self {
        images.iter_mut().for_each(ReportImage::drop_zero_id);
        for thread in &mut threads {
            thread.registers = in_order(std::mem::take(&mut thread.registers).into_iter());
        }
        let extent = Extent::of_stacks(&images, &threads, unread);
        let format = FORMATS.iter().position(|format| format.name == minidump::FORMAT.name);
        let format = format.unwrap_or_default();
        Report { mark: &[], outer: &[], layers: Vec::new(), format, images, threads, info, extent }
    }

    /// The format of the report.
    #[must_use]
    pub fn format(&self) -> &'static Format {
        &FORMATS[self.format]
    }

    /// The name of the report's format, as JSON has it. [`formats`] returns all formats.
    #[must_use]
    pub fn format_name(&self) -> &'static str {
        self.format().name
    }
}
