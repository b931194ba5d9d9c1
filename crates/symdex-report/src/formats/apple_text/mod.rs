//! Apple's `.crash` reports, and other text with the same frames: reports of `leaks`, and excerpts from Xcode and
//! Console.
//!
//! A frame is a line, `0   MyApp   0x0000000104a3c7d8 0x104a34000 + 34776`. Its answer replaces the text after the
//! address. Consecutive frames are a stack. The list of images follows the stacks. All other lines stay unchanged,
//! including a JSON header.

mod bare;
mod frame;
mod header;
mod lines;
mod reader;

use std::borrow::Cow;
use std::io;

use crate::engine::function::Function;
use crate::engine::symbolicate::{Resolution, Symbolicated};
use crate::error::Error;
use crate::formats::call_tree;
use crate::formats::format::{Edits, Format};
use crate::formats::write::Editor;
use crate::report::{Parsed, Span};
use crate::text::{line_end, lines, lossy_text};
pub(crate) use frame::{FrameLine, frame};
pub(crate) use header::HeaderReader;
pub(crate) use lines::{KERNEL, Lists, code_type, image, is_images_header, is_of_exception, stack_name};
use reader::Reader;

/// The format of Apple's text reports.
pub(crate) const FORMAT: Format = Format {
    name: "apple-crash",
    description: "Apple's `.crash` files, `leaks`, PLCrashReporter's text",
    example: "0   App                           0x0000000104a343d0 0x104a34000 + 976",
    marks: &["Incident Identifier:", "Exception Type:", "Binary Images:", "Crashed:"],
    recognises,
    parse,
    stated_image,
    image_list: "the `Binary Images:` of a report of the same launch, or use `symdex atos -o X.dSYM -l LOAD_ADDRESS`",
    edits: Edits::Written(write),
    ..Format::TEXT
};

fn recognises(text: &[u8]) -> bool {
    let (mut lists, mut is_exception, is_umeng) = (Lists::default(), false, reader::is_umeng(text));
    let is_frame = |frame: FrameLine<'_>| {
        // A call tree has lines in no image, too.
        (frame.number.is_some() || is_umeng) && (frame.column.is_none() || frame.load_address.is_some())
    };
    let mut is_apples = |line: &[u8]| match line.trim_ascii_start().first() {
        _ if lists.have(line) => lines::is_images_header(line),
        // The first character decides of most lines of other formats.
        Some(first) if first.is_ascii_digit() || is_umeng => frame(line, 0).is_some_and(is_frame),
        // The stack of an exception can be all there is.
        _ => {
            is_exception |= stack_name(line).is_some_and(|name| is_of_exception(&name));
            lines::bare_stack(line, 0, 0).is_some_and(|stack| is_exception || stack.name.is_some())
        }
    };
    // Call trees have the same list of images.
    lines(text).any(|(_, line)| is_apples(line)) && !(call_tree::FORMAT.recognises)(text)
}

/// The image that a line names.
fn stated_image(line: &[u8]) -> Option<Cow<'_, str>> {
    Some(lossy_text(frame(line, 0)?.image))
}

fn parse(text: &[u8]) -> Result<Parsed, Error> {
    let mut reader = Reader::new(text);
    for (span, line) in lines(text) {
        if reader.is_before(line) {
            return Ok(reader.finish((text.len() - span.start) as u64));
        }
        reader.line(line, span);
    }
    Ok(reader.finish(0))
}

fn write(symbolicated: &Symbolicated<'_, '_>, editor: &mut Editor<'_>) -> io::Result<()> {
    let report = symbolicated.report;
    for (thread, number) in symbolicated.in_text_order() {
        let frame = &report.threads[thread].frames[number];
        if !report.at(frame.site).starts_with(b"0x") {
            editor.frame(symbolicated, (thread, number), replacement)?;
        } else if number == 0 {
            // The stack is one line, which is replaced as a whole.
            bare::write(symbolicated, thread, editor)?;
        }
    }
    Ok(())
}

/// The lines for the frame whose line is at `site`. Each has the number, image and address of the original line.
pub(crate) fn replacement(report: &[u8], site: &Span, resolution: &Resolution<'_>) -> Option<Vec<u8>> {
    let line = report.get(site.clone())?;
    let FrameLine { answer: old, column, .. } = frame(line, 0)?;
    let (head, tail) = (line.get(..old.start)?, line.get(old.end..)?);
    // The address can be the last word of the line.
    let space: &[u8] = if old.is_empty() { b" " } else { b"" };
    let old = line.get(old)?;
    let mut text = String::new();
    let mut out = Vec::with_capacity(resolution.frames.len() * (line.len() + TYPICAL_ANSWER));
    for number in 0..resolution.frames.len() {
        if number != 0 {
            out.extend_from_slice(line_end(report, site.end));
        }
        // A tree has the outermost function first.
        let number = if column.is_some() { resolution.frames.len() - 1 - number } else { number };
        text.clear();
        append_answer(&mut text, resolution.frames.get(number)?, old, resolution);
        [head, space, text.as_bytes()].iter().for_each(|part| out.extend_from_slice(part));
    }
    out.extend_from_slice(tail);
    Some(out)
}

/// How many bytes an answer usually has.
const TYPICAL_ANSWER: usize = 128;

/// The text for a function: `-[A b:] + 24 (A.m:42)`, with ` [inlined]` at the end if it is inlined. `old` is the
/// original text. It stands in place of an unknown name.
pub(crate) fn answer(resolved: &Function, old: &[u8], resolution: &Resolution<'_>) -> String {
    let mut out = String::with_capacity(TYPICAL_ANSWER);
    append_answer(&mut out, resolved, old, resolution);
    out
}

fn append_answer(out: &mut String, resolved: &Function, old: &[u8], resolution: &Resolution<'_>) {
    match resolved.readable() {
        Some(function) => out.push_str(&resolved.printable(function)),
        None => out.push_str(&lossy_text(old)),
    }
    // Numbers become texts without the machinery of `write!`, which takes longer than all else.
    let mut digits = itoa::Buffer::new();
    if let Some(distance) = resolution.function_offset(resolved).filter(|_| resolved.readable().is_some()) {
        out.push_str(" + ");
        out.push_str(digits.format(distance));
    }
    if let Some(line) = resolved.line {
        out.push_str(" (");
        out.push_str(&resolved.printable(resolved.file_name()));
        out.push(':');
        out.push_str(digits.format(line));
        out.push(')');
    }
    if resolved.inlined {
        out.push_str(" [inlined]");
    }
}
