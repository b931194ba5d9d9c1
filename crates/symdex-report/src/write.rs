//! A symbolicated report, written back.

use std::io::{self, Write};

use crate::symbolicate::Symbolicated;

impl Symbolicated<'_, '_> {
    /// Writes the report with its frames symbolicated, and everything else as it was.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let text = self.report.text;
        let mut edits = self.report.format.edits(self);
        edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut at = 0;
        for edit in edits {
            // None of a format's own edits overlap.
            let Some(kept) = text.get(at..edit.span.start) else { continue };
            out.write_all(kept)?;
            out.write_all(&edit.text)?;
            at = edit.span.end;
        }
        out.write_all(text.get(at..).unwrap_or_default())
    }
}
