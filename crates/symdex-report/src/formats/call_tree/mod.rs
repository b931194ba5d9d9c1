//! Call trees as text: what `sample` and `spindump` print, and Apple's reports of excessive resource use, which contain
//! trees of `spindump`.
//!
//! A frame is a line. The functions that it calls follow with deeper indentation. A function that is inlined into a
//! frame is inserted below the frame, one level deeper, and the lines below are moved one level deeper too. Their
//! guides (`+`, `!`, `:` and `|`, which draw the tree) are extended accordingly.

mod lines;
mod reader;

use std::io;

use crate::engine::function::Function;
use crate::engine::symbolicate::{Resolution, Symbolicated};
use crate::error::Error;
use crate::formats::apple_text;
use crate::formats::format::{Edits, Format};
use crate::formats::write::Editor;
use crate::report::{Parsed, Report};
use crate::text::{line_end, lines, lossy, lossy_text};
use lines::{INLINED, Node, SampleLine, Tool};
use reader::Reader;

/// The format of Apple's call trees.
pub(crate) const FORMAT: Format = Format {
    name: "apple-call-tree",
    description: "`sample` and `spindump`, Apple's reports of excessive resource use",
    example: "    + 2761 ???  (in App)  load address 0x104a34000 + 0x3d0  [0x104a343d0]",
    marks: &["Call graph:", "Analysis of sampling", "Heaviest stack", "Binary Images:"],
    recognises,
    parse,
    stated_image: |line| Some(lossy_text(lines::sample_line(line)?.node()?.image)),
    image_list: apple_text::FORMAT.image_list,
    edits: Edits::Written(write),
    ..Format::TEXT
};

fn recognises(text: &[u8]) -> bool {
    lines(text)
        .any(|(_, line)| lines::sample_line(line).is_some_and(|sample_line| sample_line.node().is_some()))
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let mut reader = Reader::new(text.len());
    for (span, line) in lines(text) {
        reader.line(line, span);
    }
    Ok(reader.finish())
}

fn write(symbolicated: &Symbolicated<'_, '_>, editor: &mut Editor<'_>) -> io::Result<()> {
    let mut indentation = Indentation::default();
    let mut frames = in_text_order(symbolicated.report).peekable();
    let mut lines = lines(symbolicated.report.text()).peekable();
    while let Some((span, line)) = lines.next() {
        let next = lines.peek().map_or(&b""[..], |(_, next)| next);
        let frame = frames.next_if(|(start, ..)| *start == span.start);
        let Some(sample_line) = lines::sample_line(line) else {
            indentation.leave(line);
            continue;
        };
        indentation.enter(sample_line.column);
        if !indentation.above.is_empty() {
            let span = span.start..span.start + sample_line.guides;
            editor.replace(&span, &indentation.moved(&line[..sample_line.guides]))?;
        }
        let resolution = frame.and_then(|(_, thread, number)| symbolicated.resolution(thread, number));
        if let Some((resolution, node)) = resolution.zip(sample_line.node()) {
            let line = Line { text: line, sample_line: &sample_line, node: &node, next };
            let end = line_end(symbolicated.report.text(), span.end);
            let (name, text) = (span.start + sample_line.name, line.edit(&resolution, &indentation, end));
            editor.replace(&(name..span.end), &text)?;
            indentation.push(sample_line.column, resolution.frames.len() - 1);
        }
    }
    Ok(())
}

/// The start of each frame's line, its thread and its number, in the order of the text.
fn in_text_order<'r>(report: &'r Report<'_>) -> impl Iterator<Item = (usize, usize, usize)> + use<'r> {
    let threads = report.threads.iter().enumerate();
    threads.flat_map(|(thread, frames)| {
        let frames = frames.frames.iter().enumerate().rev();
        frames.map(move |(number, frame)| (frame.site.start(), thread, number))
    })
}

/// How far lines are indented, because functions are inlined into the frames above them.
#[derive(Default)]
struct Indentation {
    /// The columns of the frames above, and how many functions are inlined into each.
    above: Vec<(usize, usize)>,
    is_heaviest: bool,
}

impl Indentation {
    /// Ends the trees at a line without a count.
    fn leave(&mut self, line: &[u8]) {
        self.above.clear();
        self.is_heaviest = lines::is_heaviest(line) || (self.is_heaviest && !line.trim_ascii().is_empty());
    }

    /// Removes the frames that a line at `column` is not below.
    fn enter(&mut self, column: usize) {
        while self.above.last().is_some_and(|(above, _)| *above >= column) {
            self.above.pop();
        }
    }

    fn push(&mut self, column: usize, inlined: usize) {
        if inlined != 0 && !self.is_heaviest {
            self.above.push((column, inlined));
        }
    }

    /// Returns the guides with the inserted indentation. It is one edit for a line, because a deep tree has long
    /// guides.
    fn moved(&self, guides: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut at = 0;
        for (column, inlined) in &self.above {
            let to = (column + 2).min(guides.len());
            out.extend_from_slice(&guides[at..to]);
            out.resize(out.len() + 2 * inlined, b' ');
            at = to;
        }
        out.extend_from_slice(&guides[at..]);
        out
    }
}

/// A frame's line and the next line.
struct Line<'l> {
    text: &'l [u8],
    sample_line: &'l SampleLine<'l>,
    node: &'l Node<'l>,
    next: &'l [u8],
}

impl Line<'_> {
    /// The answer of the frame, from its name to the end of the line, with a line for each inlined function below it.
    fn edit(&self, resolution: &Resolution<'_>, indentation: &Indentation, end: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        for (depth, resolved) in resolution.frames.iter().rev().enumerate() {
            if depth != 0 {
                text.extend_from_slice(end);
                text.extend(self.guides(indentation, depth));
                text.extend_from_slice(&self.text[self.sample_line.guides..self.sample_line.name]);
            }
            text.extend(self.answer(resolved, resolution));
        }
        text
    }

    /// The guides before the count of a function inlined `depth` levels deep: the guides of the line, extended.
    fn guides(&self, indentation: &Indentation, depth: usize) -> Vec<u8> {
        let SampleLine { guides, column, .. } = *self.sample_line;
        let mut out = indentation.moved(&self.text[..guides]);
        if !indentation.is_heaviest {
            // The next line shows whether a guide continues at this depth.
            let below =
                lines::sample_line(self.next).filter(|next| next.column > column && next.guides > column);
            out.resize(out.len() + column - guides, b' ');
            out.push(below.map_or(b' ', |_| self.next[column]));
            out.resize(out.len() + 2 * depth - 1 - (column - guides), b' ');
        }
        out
    }

    fn answer(&self, resolved: &Function, resolution: &Resolution<'_>) -> Vec<u8> {
        let Node { tool, head, brackets, tail, image, .. } = self.node;
        let [head, brackets, tail] = [head, brackets, tail].map(|span| &self.text[span.clone()]);
        let distance =
            resolution.function_offset(resolved).map(|offset| format!(" + {offset}")).unwrap_or_default();
        let function = resolved.readable().map(|function| resolved.printable(function).into_owned());
        let location =
            resolved.line.map(|line| format!("{}:{line}", resolved.printable(resolved.file_name())));
        let (image, head) = (lossy(image), lossy(head));
        let (before, after) = match (tool, function) {
            (Tool::Sample, Some(name)) => (format!("{name}  (in {image}){distance}  "), location),
            (Tool::Sample, None) => (format!("{head}  "), location),
            (Tool::Spindump, name) => {
                let location = location.map(|location| format!("{location} in ")).unwrap_or_default();
                let name = name.map_or_else(|| "???".to_owned(), |name| name + &distance);
                (format!("{name} ({location}{image} + {}) ", resolution.offset), None)
            }
        };
        let after = after.map(|location| format!("  {location}")).unwrap_or_default();
        let inlined = if resolved.inlined { INLINED } else { b"" };
        [before.as_bytes(), brackets, after.as_bytes(), tail, inlined].concat()
    }
}
