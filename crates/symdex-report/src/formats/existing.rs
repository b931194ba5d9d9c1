//! What a report states of its frames before it is symbolicated: symbols, and names of images.

use std::borrow::Cow;

use symdex_demangle::demangle;

use crate::engine::symbolicate::Symbolicated;
use crate::formats::rules::is_nameless;
use crate::report::{Frame, Report, Span, SymbolDetail};
use crate::text::lossy;

/// The symbol that a report has for a frame, before it is symbolicated.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExistingSymbol {
    /// The name of the function.
    pub function: Option<String>,
    /// The file, as the report writes it.
    pub file: Option<String>,
    /// The line, 1-based.
    pub line: Option<u32>,
    /// The distance in bytes from the start of the function to the frame's address.
    pub offset: Option<u64>,
}

/// Whether `name` is a linkage name that demangling changes.
pub(crate) fn is_mangled(name: &str) -> bool {
    demangle(name.as_bytes()) != name
}

impl Symbolicated<'_, '_> {
    /// Returns a function name of the report, demangled unless the options turn demangling off.
    pub(crate) fn readable<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if self.demangle { demangle(name.as_bytes()) } else { name.into() }
    }
}

impl Report<'_> {
    /// Returns the symbol that the report has for each frame, by thread, before symbolication. A frame without a symbol
    /// has an empty one.
    ///
    /// ```
    /// use symdex_report::Report;
    ///
    /// let report = Report::parse(b"Thread 0 Crashed:\n0   App   0x104a343d0 main + 24 (main.c:12)\n")?;
    /// let symbols = report.existing_symbols();
    /// assert_eq!(symbols[0][0].function.as_deref(), Some("main"));
    /// assert_eq!(symbols[0][0].line, Some(12));
    /// # Ok::<(), symdex_report::Error>(())
    /// ```
    #[must_use]
    pub fn existing_symbols(&self) -> Vec<Vec<ExistingSymbol>> {
        match self.format().existing_symbols {
            Some(read) => read(self),
            None => self.symbols_in_text(),
        }
    }

    /// The name of a frame's image as the frame states it. Lines of Apple's text state one even if it is ambiguous
    /// between several images. `None` if the frame states none.
    #[must_use]
    pub fn stated_image(&self, frame: &Frame) -> Option<Cow<'_, str>> {
        if let Some(name) = (self.format().stated_image)(self.at(frame.site)) {
            return Some(name).filter(|name| !is_nameless(name.as_bytes()));
        }
        self.images.get(frame.image()? as usize).map(|image| image.name.as_str().into())
    }

    /// Calls `read` for each frame and returns the results, by thread.
    pub(crate) fn map_frames<T>(&self, read: impl Fn(&Frame) -> T) -> Vec<Vec<T>> {
        self.threads.iter().map(|thread| thread.frames.iter().map(&read).collect()).collect()
    }

    /// The symbols of the frames of a text format. File, line and distance stand after the name in the frame's line.
    pub(crate) fn symbols_in_text(&self) -> Vec<Vec<ExistingSymbol>> {
        self.map_frames(|frame| {
            let symbol = frame.function.map(|name| {
                ExistingSymbol::of_line(self.text(), &name.span(), frame.site.end(), frame.detail)
            });
            symbol.unwrap_or_default()
        })
    }
}

impl ExistingSymbol {
    /// The symbol in a line of `text`. `name` is the span of the function's name and `end` the end of the line.
    pub(crate) fn of_line(text: &[u8], name: &Span, end: usize, detail: SymbolDetail) -> Self {
        let at = |span: Span| text.get(span).unwrap_or_default();
        let tail = String::from_utf8_lossy(at(name.end..end));
        let (file, line) = file_and_line(&tail).filter(|_| detail == SymbolDetail::Line).unzip();
        Self { function: Some(lossy(at(name.clone()))), file, line, offset: distance(&tail) }
    }
}

/// Reads the distance from the start of the function in the text after the function's name: ` + 24 (A.m:42)`, `  (in
/// App) + 24 [0x1000]`, `+24)`.
fn distance(tail: &str) -> Option<u64> {
    let after = tail.strip_prefix(" + ").or_else(|| tail.strip_prefix('+'));
    let after = after.or_else(|| tail.split_once(") + ").map(|(_, after)| after))?;
    let len = after.bytes().take_while(u8::is_ascii_digit).count();
    after[..len].parse().ok()
}

/// Reads the last `file:line` in the text after a function's name. It stands in parentheses, after two spaces, or
/// alone. A column may follow, and in reports of `spindump` ` in App`.
pub(crate) fn file_and_line(tail: &str) -> Option<(String, u32)> {
    let pieces = tail.split(['(', ')', '[', ']']).flat_map(|piece| piece.split("  "));
    let location = |piece: &str| {
        let piece = piece.split_once(" in ").map_or(piece, |(location, _)| location).trim();
        let numbered = |text: &str| {
            let (file, line) = text.rsplit_once(':')?;
            let is_file = !file.is_empty() && !file.ends_with(':');
            Some((file.to_owned(), line.parse().ok()?)).filter(|_| is_file)
        };
        let (file, line) = numbered(piece)?;
        // The last number is a column if a line number stands before it.
        Some(numbered(&file).unwrap_or((file, line)))
    };
    pieces.filter_map(location).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_after_a_name_has_file_line_and_distance() {
        let location = |file: &str, line| Some((file.to_owned(), line));
        for (tail, expected_location, expected_distance) in [
            (" + 24 (A.m:42)", location("A.m", 42), Some(24)),
            (" (in My App) (A.m:42)", location("A.m", 42), None),
            (" (A.m:42) [inlined]", location("A.m", 42), None),
            (" + 36  main.m:42", location("main.m", 42), Some(36)),
            ("  (in App) + 294  [0x10e3817e6]  main.cc:276", location("main.cc", 276), Some(294)),
            (" + 24 (main.c:12 in App + 3432) [0x101671d68]", location("main.c", 12), Some(24)),
            (" (App + 3432) [0x101671d68]", None, None),
            ("+57) (BuildId: 0123456789)", None, Some(57)),
            (" /src/a b.c:12:3", location("/src/a b.c", 12), None),
            (" (app:arm64+0x12d4) (BuildId: 12)", None, None),
            ("", None, None),
        ] {
            assert_eq!(
                (file_and_line(tail), distance(tail)),
                (expected_location, expected_distance),
                "{tail:?}"
            );
        }
    }
}
