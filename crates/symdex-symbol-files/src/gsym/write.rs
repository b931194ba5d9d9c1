//! Writes GSYM, with little-endian numbers.

use std::collections::HashMap;
use std::io::Write;
use std::ops::Range;

use symdex::{Index, LinePolicy, NonMaxU32};

use super::{
    ADVANCE_ADDRESS, ADVANCE_LINE, END, END_OF_LINES, FIRST_SPECIAL, HEADER_SIZE, Header, INLINED_CALLS,
    LINES, MAX_ID, SET_FILE,
};
use crate::function::{Function, InlinedCall, Line, each_function};
use crate::strings::Strings;
use crate::{Demangler, Error, UNKNOWN};

/// The place of the name `??` in the strings.
const NO_NAME: u32 = 1;

/// The lines by which a special operation advances.
const LINE_ADVANCES: std::ops::RangeInclusive<i64> = -4..=10;

/// Writes the index in LLVM's GSYM format. Addresses are those that the image was linked at. Code without a line is a
/// function of its own, without inlined calls, because readers do not find its name otherwise. An id of more than 20
/// bytes is cut. What has no name is named `??`. All of the output is kept in memory until it is written.
///
/// # Errors
///
/// [`Error::Index`] if the index is damaged, [`Error::Output`] if `out` fails, [`Error::TooLarge`] for more than 4 GiB,
/// [`Error::Expands`] if it has far more text than any real one of its size.
pub fn write_gsym<B: AsRef<[u8]>>(
    index: &Index<B>,
    policy: LinePolicy,
    demangler: Demangler<'_>,
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut tables = Tables {
        strings: Strings::new(index, demangler),
        text: ["", UNKNOWN, ""].join("\0").into_bytes(),
        names: HashMap::new(),
        files: HashMap::new(),
        places: HashMap::new(),
        file_entries: vec![[0, 0]],
    };
    let (mut addresses, mut places, mut functions) = (Vec::new(), Vec::new(), Vec::new());
    each_function(index, policy, |function| {
        parts(function, |part| {
            addresses.push(part.range.start);
            pad(&mut functions, 4);
            places.push(functions.len());
            tables.function(&part, &mut functions)
        })
    })?;

    // Offsets have 4 bytes unless the image is larger.
    let wide = addresses.last().is_some_and(|last| u32::try_from(*last).is_err());
    let offset_size: u8 = if wide { 8 } else { 4 };
    let mut body = vec![0; HEADER_SIZE];
    for offset in &addresses {
        body.extend_from_slice(&offset.to_le_bytes()[..offset_size.into()]);
    }
    let places_at = body.len();
    let files_at = places_at + 4 * places.len();
    let text_at = files_at + 4 + 8 * tables.file_entries.len();
    let mut functions_at = text_at + tables.text.len();
    functions_at = functions_at.next_multiple_of(4);
    for place in places {
        body.extend_from_slice(&size32(functions_at + place)?.to_le_bytes());
    }
    body.extend_from_slice(&size32(tables.file_entries.len())?.to_le_bytes());
    for part in tables.file_entries.iter().flatten() {
        body.extend_from_slice(&part.to_le_bytes());
    }
    body.extend_from_slice(&tables.text);
    pad(&mut body, 4);

    let id = index.id().as_bytes();
    let header = Header {
        offset_size,
        base: index.metadata().base,
        address_len: size32(addresses.len())?,
        strings_at: size32(text_at)?,
        strings_size: size32(tables.text.len())?,
        id: &id[..id.len().min(MAX_ID)],
    };
    body[..HEADER_SIZE].copy_from_slice(&header.written());
    out.write_all(&body)?;
    Ok(out.write_all(&functions)?)
}

/// A part of a function: all of its code has lines, or none.
struct Part<'f> {
    function: &'f Function,
    range: Range<u64>,
    lines: &'f [Line],
    /// The ranges of inlined calls in it, each with the number of its call. Sorted.
    calls: Vec<(usize, Range<u64>)>,
}

/// Calls `each` with the parts of a function that have lines and those that have none, in address order. A reader of
/// GSYM has no answer, not even the name, for an address without a line if its function has others.
fn parts<'f>(
    function: &'f Function,
    mut each: impl FnMut(Part<'f>) -> Result<(), Error>,
) -> Result<(), Error> {
    let ranges_of = |(number, inlined): (usize, &'f InlinedCall)| {
        inlined.ranges.iter().map(move |range| (number, range.clone()))
    };
    let mut ranges: Vec<(usize, Range<u64>)> =
        function.calls.iter().enumerate().flat_map(ranges_of).collect();
    ranges.sort_by_key(|(_, range)| range.start);
    let mut ranges = ranges.into_iter().peekable();
    // Those that begin before the end of the part.
    let mut open: Vec<(usize, Range<u64>)> = Vec::new();
    let mut emit = |range: Range<u64>, lines| {
        open.extend(std::iter::from_fn(|| ranges.next_if(|(_, of_call)| of_call.start < range.end)));
        open.retain(|(_, of_call)| of_call.end > range.start);
        let clip = |(number, of_call): &(usize, Range<u64>)| {
            (*number, of_call.start.max(range.start)..of_call.end.min(range.end))
        };
        let mut calls: Vec<_> = open.iter().map(clip).collect();
        calls.sort_by_key(|(number, of_call)| (*number, of_call.start));
        each(Part { function, range, lines, calls })
    };
    let mut at = function.range.start;
    for lines in function.lines.chunk_by(|line, next| line.range.end == next.range.start) {
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { continue };
        if at < first.range.start {
            emit(at..first.range.start, &[])?;
        }
        at = last.range.end;
        emit(first.range.start..at, lines)?;
    }
    if at < function.range.end { emit(at..function.range.end, &[]) } else { Ok(()) }
}

/// Strings and files, each once.
struct Tables<'a, B> {
    strings: Strings<'a, B>,
    /// All strings, each with a zero at its end. The first one is empty, the second one is [`NO_NAME`].
    text: Vec<u8>,
    names: HashMap<NonMaxU32, u32>,
    files: HashMap<NonMaxU32, u64>,
    /// The place of each string in `text`.
    places: HashMap<Vec<u8>, u32>,
    /// Folder and name of each file. The first one is "no file".
    file_entries: Vec<[u32; 2]>,
}

impl<B: AsRef<[u8]>> Tables<'_, B> {
    fn function(&mut self, function: &Part<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let size = size32(function.range.end - function.range.start)?;
        let name = self.name(function.function.name)?;
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(&name.to_le_bytes());
        if !function.lines.is_empty() {
            let lines = self.lines(function)?;
            part(out, LINES, &lines)?;
        }
        if !function.function.calls.is_empty() {
            let calls = self.calls(function, name)?;
            part(out, INLINED_CALLS, &calls)?;
        }
        part(out, END, &[])
    }

    /// The line table. All code of the function has lines.
    fn lines(&mut self, function: &Part<'_>) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        let first_line = function.lines.first().map_or(0, |line| line.line);
        signed(&mut out, *LINE_ADVANCES.start());
        signed(&mut out, *LINE_ADVANCES.end());
        unsigned(&mut out, first_line.into());
        let (mut at, mut file, mut last_line) = (function.range.start, 1, i64::from(first_line));
        for line in function.lines {
            let (next_file, next_line) = (self.file(Some(line.file))?, i64::from(line.line));
            if next_file != file {
                out.push(SET_FILE);
                unsigned(&mut out, next_file);
            }
            advance(&mut out, line.range.start - at, next_line - last_line);
            (at, file, last_line) = (line.range.start, next_file, next_line);
        }
        out.push(END_OF_LINES);
        Ok(out)
    }

    /// The tree of inlined calls below a root that is the function. Each node ends its list of children with a node
    /// without ranges.
    fn calls(&mut self, function: &Part<'_>, name: u32) -> Result<Vec<u8>, Error> {
        // The memory of all parts together: a call may be in each part.
        self.strings.allowance.take(size_of::<(usize, Range<u64>)>() * function.calls.len())?;
        let mut of_call: HashMap<usize, &[(usize, Range<u64>)]> = HashMap::new();
        let mut children: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for ranges in function.calls.chunk_by(|(number, _), (next, _)| number == next) {
            let Some((number, _)) = ranges.first() else { continue };
            children.entry(function.function.calls[*number].call.parent).or_default().push(*number);
            of_call.insert(*number, ranges);
        }
        let mut out = Vec::new();
        ranges(&mut out, std::slice::from_ref(&function.range), function.range.start);
        out.push(1);
        out.extend_from_slice(&name.to_le_bytes());
        out.extend_from_slice(&[0, 0]);
        // The nodes whose children are being written: what is left of these, and the address that they count from.
        let take = |children: &mut HashMap<Option<usize>, Vec<usize>>, node| {
            let mut left = children.remove(&node).unwrap_or_default();
            left.reverse();
            left
        };
        let mut open = vec![(take(&mut children, None), function.range.start)];
        while let Some((left, base)) = open.last_mut() {
            let Some(number) = left.pop() else {
                out.push(0);
                open.pop();
                continue;
            };
            let call = function.function.calls[number].call;
            let own = of_call.get(&number).copied().unwrap_or_default();
            let own: Vec<Range<u64>> = own.iter().map(|(_, range)| range.clone()).collect();
            ranges(&mut out, &own, *base);
            let below = take(&mut children, Some(number));
            out.push(u8::from(!below.is_empty()));
            out.extend_from_slice(&self.name(call.name)?.to_le_bytes());
            unsigned(&mut out, self.file(call.file)?);
            unsigned(&mut out, call.line.unwrap_or(0).into());
            if !below.is_empty() {
                open.push((below, own.first().map_or(0, |range| range.start)));
            }
        }
        Ok(out)
    }

    /// The place of a name in the strings.
    fn name(&mut self, id: Option<NonMaxU32>) -> Result<u32, Error> {
        let Some(id) = id else { return Ok(NO_NAME) };
        if let Some(place) = self.names.get(&id) {
            return Ok(*place);
        }
        let name = self.strings.name(id)?;
        let place = place_of(&mut self.text, &mut self.places, &name)?;
        self.names.insert(id, place);
        Ok(place)
    }

    /// The number of a file.
    fn file(&mut self, id: Option<NonMaxU32>) -> Result<u64, Error> {
        let Some(id) = id else { return Ok(0) };
        if let Some(number) = self.files.get(&id) {
            return Ok(*number);
        }
        let path = self.strings.file(id)?;
        // Readers put a slash between the two, and none if there is no folder.
        let end_of_folder = path.iter().rposition(|byte| *byte == b'/').filter(|end| *end > 0);
        let (folder, name) = end_of_folder.map_or((&b""[..], path), |end| (&path[..end], &path[end + 1..]));
        let mut entry = [0; 2];
        for (place, part) in entry.iter_mut().zip([folder, name]) {
            *place = place_of(&mut self.text, &mut self.places, part)?;
        }
        let number = self.file_entries.len() as u64;
        self.file_entries.push(entry);
        self.files.insert(id, number);
        Ok(number)
    }
}

/// The place of a string in `text`, to which it is added if it is new. A zero would end it.
fn place_of(text: &mut Vec<u8>, places: &mut HashMap<Vec<u8>, u32>, string: &[u8]) -> Result<u32, Error> {
    if string.is_empty() {
        return Ok(0);
    }
    if let Some(place) = places.get(string) {
        return Ok(*place);
    }
    let place = size32(text.len())?;
    text.extend(string.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }));
    text.push(0);
    places.insert(string.to_vec(), place);
    Ok(place)
}

/// Adds a part of a function: its kind, its size, its bytes.
fn part(out: &mut Vec<u8>, kind: u32, bytes: &[u8]) -> Result<(), Error> {
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&size32(bytes.len())?.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// Adds ranges, relative to `base`.
fn ranges(out: &mut Vec<u8>, ranges: &[Range<u64>], base: u64) {
    unsigned(out, ranges.len() as u64);
    for range in ranges {
        unsigned(out, range.start - base);
        unsigned(out, range.end - range.start);
    }
}

/// Adds the row that lies `bytes` and `lines` after the previous one.
fn advance(out: &mut Vec<u8>, bytes: u64, lines: i64) {
    let count = u64::try_from(LINE_ADVANCES.end() - LINE_ADVANCES.start() + 1).unwrap_or(1);
    let special = u64::try_from(lines - LINE_ADVANCES.start())
        .ok()
        .filter(|_| LINE_ADVANCES.contains(&lines))
        .and_then(|line| bytes.checked_mul(count)?.checked_add(line)?.checked_add(FIRST_SPECIAL.into()))
        .and_then(|operation| u8::try_from(operation).ok());
    match special {
        Some(operation) => out.push(operation),
        None => {
            if lines != 0 {
                out.push(ADVANCE_LINE);
                signed(out, lines);
            }
            out.push(ADVANCE_ADDRESS);
            unsigned(out, bytes);
        }
    }
}

/// Adds a number as ULEB128.
fn unsigned(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

/// Adds a number as SLEB128.
fn signed(out: &mut Vec<u8>, mut number: i64) {
    while !(-64..64).contains(&number) {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push((number & 0x7f) as u8);
}

fn pad(bytes: &mut Vec<u8>, to: usize) {
    bytes.resize(bytes.len().next_multiple_of(to), 0);
}

/// A size or a place, which have 4 bytes.
fn size32<N: TryInto<u32>>(size: N) -> Result<u32, Error> {
    size.try_into().map_err(|_| Error::TooLarge {
        what: "the index makes more than 4 GiB",
        format: "GSYM",
        limit: u32::MAX.into(),
    })
}
