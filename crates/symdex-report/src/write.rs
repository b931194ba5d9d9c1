//! Writes a symbolicated report in its own format.

use std::io::{self, Write};

use crate::format::Edits;
use crate::report::Span;
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
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let Edits { frames: replacement, mut others } = (self.report.format.edits)(self);
        others.sort_by_key(|edit| (edit.span.start, edit.span.end));
        let mut others = others.into_iter().peekable();
        let mut editor = Editor { text: self.report.text, at: 0, out };
        if let Some(replacement) = replacement {
            for (thread, number) in self.in_text_order() {
                let Some(resolution) = self.resolution(thread, number) else { continue };
                let span = self.report.threads[thread].frames[number].site.span();
                while let Some(edit) = others.next_if(|edit| edit.span.start <= span.start) {
                    editor.replace(&edit.span, &edit.text)?;
                }
                if let Some(text) = replacement(self.report.text, &span, &resolution) {
                    editor.replace(&span, &text)?;
                }
            }
        }
        for edit in others {
            editor.replace(&edit.span, &edit.text)?;
        }
        editor.finish()
    }

    /// All frames, in the order of the text.
    fn in_text_order(&self) -> Box<dyn Iterator<Item = (usize, usize)> + '_> {
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

/// Copies a text to `out` and replaces parts of it.
struct Editor<'t, W> {
    text: &'t [u8],
    /// The end of the text that is copied or replaced.
    at: usize,
    out: W,
}

impl<W: Write> Editor<'_, W> {
    fn replace(&mut self, span: &Span, new: &[u8]) -> io::Result<()> {
        // The edits of a format do not overlap.
        let Some(kept) = self.text.get(self.at..span.start) else { return Ok(()) };
        self.out.write_all(kept)?;
        self.out.write_all(new)?;
        self.at = span.end;
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.out.write_all(self.text.get(self.at..).unwrap_or_default())
    }
}
