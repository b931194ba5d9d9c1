//! Writes a symbolicated report in its own format.

use std::io::{self, Write};

use crate::symbolicate::Symbolicated;

impl Symbolicated<'_, '_> {
    /// Writes the report in its own format. Only the symbolicated frames change; all other bytes stay.
    ///
    /// ```
    /// # use symdex::{ImageOffset, LinePolicy};
    /// # use symdex_report::{Answers, Image, Options, Report, Source, Unanswered, symbolicate};
    /// # struct Nothing;
    /// # impl Source for Nothing {
    /// #     fn answer(&mut self, _: &Image, _: &[ImageOffset], _: LinePolicy) -> Result<Answers, Unanswered> {
    /// #         Err(Unanswered::Missing)
    /// #     }
    /// # }
    /// let text = b"Thread 0 Crashed:\n0   App   0x104a343d0 0x104a34000 + 976\n";
    /// let report = Report::parse(text)?;
    /// let mut out = Vec::new();
    /// symbolicate(&report, &mut Nothing, &Options::new()).write(&mut out)?;
    /// assert_eq!(out, text, "no frame was resolved");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        let text = self.report.text;
        let mut edits = (self.report.format.edits)(self);
        edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut at = 0;
        for edit in edits {
            // The edits of a format do not overlap.
            let Some(kept) = text.get(at..edit.span.start) else { continue };
            out.write_all(kept)?;
            out.write_all(&edit.text)?;
            at = edit.span.end;
        }
        out.write_all(text.get(at..).unwrap_or_default())
    }
}
