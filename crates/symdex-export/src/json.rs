//! JSON: a line for the image, then a line for each function.

use std::io::Write;
use std::ops::Range;

use serde::Serialize;
use symdex::{Index, LinePolicy, StringReader};

use crate::function::{Function, each_function};
use crate::{Error, Spell};

/// The image, in the first line.
#[derive(Serialize)]
struct ImageLine<'a> {
    image: &'a str,
    id: String,
    arch: &'a str,
    /// The address that image offset 0 was linked at.
    base: String,
    image_size: String,
}

/// A function. Addresses are image offsets, ranges are half-open. What is not known is null.
#[derive(Serialize)]
struct FunctionLine {
    start: String,
    end: String,
    name: Option<String>,
    inlined: Vec<InlinedView>,
    lines: Vec<LineView>,
}

/// A call that is inlined.
#[derive(Serialize)]
struct InlinedView {
    /// The place in the list of the call that this one is inlined into; null in the function itself.
    parent: Option<usize>,
    name: Option<String>,
    call_file: Option<String>,
    call_line: Option<u32>,
    ranges: Vec<[String; 2]>,
}

/// The line of the innermost function.
#[derive(Serialize)]
struct LineView {
    start: String,
    end: String,
    file: String,
    line: u32,
}

/// Writes the index as JSON Lines: an object for the image, then one for each function.
/// `docs/schema/export.schema.json` describes them. Names and files that are not UTF-8 have U+FFFD for each wrong byte.
///
/// # Errors
///
/// [`Error::Index`] if the index is damaged, [`Error::Output`] if `out` fails.
pub fn json<B: AsRef<[u8]>>(
    index: &Index<B>,
    policy: LinePolicy,
    spell: Spell<'_>,
    out: &mut impl Write,
) -> Result<(), Error> {
    let metadata = index.metadata();
    let image = ImageLine {
        image: &metadata.image_name,
        id: index.id().to_string(),
        arch: &metadata.arch.name,
        base: hexadecimal(metadata.base),
        image_size: hexadecimal(metadata.image_size),
    };
    write_line(out, &image)?;
    let mut strings = index.strings();
    each_function(index, policy, |function| write_line(out, &view(function, &mut strings, spell)?))
}

fn view<B: AsRef<[u8]>>(
    function: &Function,
    strings: &mut StringReader<'_, B>,
    spell: Spell<'_>,
) -> Result<FunctionLine, Error> {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let name = function.name.map(|name| strings.name(name).map(|name| lossy(&spell(name)))).transpose()?;
    let mut inlined = Vec::with_capacity(function.calls.len());
    for inlined_call in &function.calls {
        let call = inlined_call.call;
        inlined.push(InlinedView {
            parent: call.parent,
            name: call.name.map(|name| strings.name(name).map(|name| lossy(&spell(name)))).transpose()?,
            call_file: call.file.map(|file| strings.file(file).map(lossy)).transpose()?,
            call_line: call.line,
            ranges: inlined_call.ranges.iter().map(span).collect(),
        });
    }
    let mut lines = Vec::with_capacity(function.lines.len());
    for line in &function.lines {
        let [start, end] = span(&line.range);
        lines.push(LineView { start, end, file: lossy(strings.file(line.file)?), line: line.line });
    }
    let [start, end] = span(&function.range);
    Ok(FunctionLine { start, end, name, inlined, lines })
}

fn span(range: &Range<u64>) -> [String; 2] {
    [range.start, range.end].map(hexadecimal)
}

fn hexadecimal(number: u64) -> String {
    format!("{number:#x}")
}

fn write_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer(&mut *out, value).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}
