//! Writes reports as text that people read.
//!
//! A text format is written as [`Symbolicated::write`] writes it. A JSON format gets the layout of Apple's `.crash`:
//! header, exception, stacks, registers, images. Call trees get the layout of `sample`.

mod header;
mod images;
pub(crate) mod index_view;
mod registers;
mod stacks;
pub(crate) mod tree;
pub(crate) mod view;

use std::io::{self, Write};

pub(crate) use header::write_header;
pub(crate) use images::write_images;
pub(crate) use stacks::Stacks;

use crate::engine::symbolicate::Symbolicated;
use crate::formats::format::FormatKind;

impl Symbolicated<'_, '_> {
    /// Writes the symbolicated report as text that people read.
    ///
    /// An `.ips` gets the layout of Apple's `.crash`, which [`Report::parse`](crate::Report::parse) reads back with the
    /// same threads, addresses and images. Other JSON and binary reports get this layout too, as far as they have the
    /// data. A report that is text already is written as [`write`](Symbolicated::write) writes it.
    ///
    /// ```
    /// # use symdex_report::{Answers, Options, Question, Report, Unanswered, symbolicate};
    /// # fn nothing(_: &Question<'_>) -> Result<Answers, Unanswered> {
    /// #     Err(Unanswered::Missing)
    /// # }
    /// let ips = r#"{"bug_type":"309"}
    /// {"procName":"App","pid":42,"faultingThread":0,"exception":{"type":"EXC_CRASH","signal":"SIGABRT"},
    /// "threads":[{"triggered":true,
    /// "frames":[{"imageOffset":976,"imageIndex":0,"symbol":"main","symbolLocation":16}]}],
    /// "usedImages":[{"base":4294967296,"size":16384,"arch":"arm64","name":"App","path":"/var/App.app/App",
    /// "uuid":"6dcd4e9d-d3b1-3a0e-8dff-6a5a4be1b1b0"}]}"#;
    /// let report = Report::parse(ips.as_bytes())?;
    /// let mut out = Vec::new();
    /// symbolicate(&report, &mut nothing, &Options::new()).write_text(&mut out)?;
    /// let out = String::from_utf8(out)?;
    /// assert!(out.starts_with("Process:             App [42]\n"), "{out}");
    /// assert!(out.contains("\nException Type:  EXC_CRASH (SIGABRT)\n"));
    /// assert!(out.contains("\nThread 0 Crashed:\n"));
    /// assert!(out.contains("\n0   App                           \t       0x1000003d0 main + 16\n"));
    /// assert_eq!(Report::parse(out.as_bytes())?.format_name(), "apple-crash");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    pub fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let format = self.report.format();
        match (format.write_text, format.kind) {
            (Some(write), _) => write(self, out),
            (None, FormatKind::Text) => self.write(out),
            (None, FormatKind::Json | FormatKind::Binary) => write_crash(self, out),
        }
    }
}

/// Writes a report as a `.crash`.
pub(crate) fn write_crash(symbolicated: &Symbolicated<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let report = symbolicated.report;
    write_header(report, out)?;
    let stacks = Stacks::new(symbolicated);
    // Apple writes the stack of an exception before the threads.
    let (exceptions, threads): (Vec<_>, Vec<_>) =
        (0..report.threads.len()).partition(|thread| stacks::is_backtrace(&report.threads[*thread].name));
    for thread in exceptions.into_iter().chain(threads) {
        stacks.write(thread, out)?;
    }
    registers::write_registers(report, out)?;
    write_images(report, out)?;
    writeln!(out, "\nEOF")
}
