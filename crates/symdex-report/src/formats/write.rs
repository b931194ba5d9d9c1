//! Writes a symbolicated report in its own format.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::engine::symbolicate::Symbolicated;
use crate::formats::format::{Edit, Edits, Replacement};
use crate::report::{Report, Span};

impl Symbolicated<'_, '_> {
    /// Writes the report in its own format. Only the symbolicated frames change; all other bytes stay.
    ///
    /// ```
    /// # use symdex_report::{Answers, Options, Question, Report, Unanswered, symbolicate};
    /// # fn nothing(_: &Question<'_>) -> Result<Answers, Unanswered> {
    /// #     Err(Unanswered::Missing)
    /// # }
    /// let text = b"Thread 0 Crashed:\n0   App   0x104a343d0 0x104a34000 + 976\n";
    /// let report = Report::parse(text)?;
    /// let mut out = Vec::new();
    /// symbolicate(&report, &mut nothing, &Options::new()).write(&mut out)?;
    /// assert_eq!(out, text, "no frame was resolved");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Errors of `out`.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        out.write_all(self.report.mark)?;
        let mut editor = Editor { report: self.report, at: 0, out: &mut out };
        match self.report.format().edits {
            Edits::Frames(replacement) => {
                for (thread, number) in self.in_text_order() {
                    editor.frame(self, (thread, number), replacement)?;
                }
            }
            Edits::Written(write) => write(self, &mut editor)?,
            Edits::All(edits) => editor.all(edits(self))?,
        }
        editor.finish()
    }

    /// All frames, in the order of the text.
    pub(crate) fn in_text_order(&self) -> Box<dyn Iterator<Item = (usize, usize)> + '_> {
        let threads = &self.report.threads;
        let start = |(thread, number): &(usize, usize)| threads[*thread].frames[*number].site.start();
        if self.frames().is_sorted_by_key(|frame| start(&frame)) {
            return Box::new(self.frames());
        }
        let mut order: Vec<_> = self.frames().collect();
        order.sort_by_key(start);
        Box::new(order.into_iter())
    }
}

/// Copies the whole text of a report to `out` and replaces parts of it, in their order.
pub(crate) struct Editor<'e> {
    report: &'e Report<'e>,
    /// The end of the whole text that is copied or replaced.
    at: usize,
    out: &'e mut dyn Write,
}

impl Editor<'_> {
    /// Replaces the text at `span`, which begins after the last one that was replaced.
    pub(crate) fn replace(&mut self, span: &Span, new: &[u8]) -> io::Result<()> {
        let Report { outer, layers, .. } = self.report;
        let (mut span, mut new) = (span.clone(), Cow::Borrowed(new));
        for (number, layer) in layers.iter().enumerate().rev() {
            let outer = number.checked_sub(1).map_or(*outer, |number| &layers[number].text);
            let (outer_span, outer_new) = layer.edit(outer, span, &new);
            (span, new) = (outer_span, outer_new.into());
        }
        // The edits of a format do not overlap.
        let Some(kept) = outer.get(self.at..span.start) else { return Ok(()) };
        self.out.write_all(kept)?;
        self.out.write_all(&new)?;
        self.at = span.end;
        Ok(())
    }

    /// Makes edits that begin after the last one, and are in any order among themselves.
    pub(crate) fn all(&mut self, mut edits: Vec<Edit>) -> io::Result<()> {
        edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
        edits.iter().try_for_each(|edit| self.replace(&edit.span, &edit.text))
    }

    /// Replaces a frame, given as its thread and its number there, if it is resolved.
    pub(crate) fn frame(
        &mut self,
        symbolicated: &Symbolicated<'_, '_>,
        (thread, number): (usize, usize),
        replacement: Replacement,
    ) -> io::Result<()> {
        let Some(resolution) = symbolicated.resolution(thread, number) else { return Ok(()) };
        let report = symbolicated.report;
        let span = report.threads[thread].frames[number].site.span();
        let new = replacement(report.text(), &span, &resolution);
        new.map_or(Ok(()), |new| self.replace(&span, &new))
    }

    fn finish(self) -> io::Result<()> {
        self.out.write_all(self.report.outer.get(self.at..).unwrap_or_default())
    }
}
