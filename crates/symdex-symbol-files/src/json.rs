//! JSON: a line for the image, then a line for each function.

use std::io::Write;
use std::ops::Range;

use serde::Serialize;
use symdex::{Index, LinePolicy};

use crate::function::{Function, InlinedCall, each_function};
use crate::strings::Strings;
use crate::{Demangler, Error};

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

/// The first members of a function. Its lists follow: `inlined`, of [`InlinedView`], and `lines`, of [`LineView`].
/// Addresses are image offsets, ranges are half-open. What is not known is null.
#[derive(Serialize)]
struct FunctionHead {
    start: String,
    end: String,
    name: Option<String>,
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
/// [`Error::Index`] if the index is damaged, [`Error::Output`] if `out` fails, [`Error::Expands`] if it has far more
/// text than any real one of its size.
pub fn write_json<B: AsRef<[u8]>>(
    index: &Index<B>,
    policy: LinePolicy,
    demangler: Demangler<'_>,
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
    let mut strings = Strings::new(index, demangler);
    each_function(index, policy, |function| write_function(function, &mut strings, out))
}

/// Writes a function, list by list: it can have any number of calls and lines, each with a long path.
fn write_function<B: AsRef<[u8]>>(
    function: &Function,
    strings: &mut Strings<'_, B>,
    out: &mut impl Write,
) -> Result<(), Error> {
    let name = function.name.map(|name| strings.name(name)).transpose()?;
    let [start, end] = span(&function.range);
    let head = FunctionHead { start, end, name: name.map(|name| lossy(&name)) };
    let mut head = serde_json::to_vec(&head).map_err(std::io::Error::from)?;
    // The lists are further members.
    head.pop();
    out.write_all(&head)?;
    out.write_all(b",\"inlined\":")?;
    write_list(out, &function.calls, |InlinedCall { call, ranges, .. }| {
        Ok(InlinedView {
            parent: call.parent,
            name: call.name.map(|name| strings.name(name)).transpose()?.map(|name| lossy(&name)),
            call_file: call.file.map(|file| strings.file(file).map(lossy)).transpose()?,
            call_line: call.line,
            ranges: ranges.iter().map(span).collect(),
        })
    })?;
    out.write_all(b",\"lines\":")?;
    write_list(out, &function.lines, |line| {
        let [start, end] = span(&line.range);
        Ok(LineView { start, end, file: lossy(strings.file(line.file)?), line: line.line })
    })?;
    Ok(out.write_all(b"}\n")?)
}

/// Writes what `view` makes of each of `items`, as a list.
fn write_list<T, V: Serialize>(
    out: &mut impl Write,
    items: &[T],
    mut view: impl FnMut(&T) -> Result<V, Error>,
) -> Result<(), Error> {
    out.write_all(b"[")?;
    for (number, item) in items.iter().enumerate() {
        if number != 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, &view(item)?).map_err(std::io::Error::from)?;
    }
    Ok(out.write_all(b"]")?)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
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
