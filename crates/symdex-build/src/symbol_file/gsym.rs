//! LLVM's GSYM, version 1, in both byte orders, as `llvm/DebugInfo/GSYM` reads it.

use std::borrow::Cow;
use std::ops::Range;

use gimli::{EndianSlice, Reader as _, RunTimeEndian};

use super::function::{Function, InlinedCall, Line, TextsLeft};
use super::unit::is_known;
use super::{Contents, NAMES_LEFT_OUT, Place};
use crate::error::Error;
use crate::limits::{PATH, SHARED_RECORDS};
use crate::report::Problems;
use crate::symbols::{Inside, Start, name_at};

/// The magic number in both byte orders.
pub(super) const MAGIC: [[u8; 4]; 2] = [*b"MYSG", *b"GSYM"];
const VERSION: u16 = 1;
const HEADER_SIZE: usize = 48;
const MAX_ID: usize = 20;

/// The kinds of the parts of a function.
const END: u32 = 0;
const LINES: u32 = 1;
const INLINED_CALLS: u32 = 2;
const MERGED_FUNCTIONS: u32 = 3;

type Slice<'d> = EndianSlice<'d, RunTimeEndian>;

/// Names and files, by their places.
#[derive(Debug)]
pub(super) struct GsymStrings<'d> {
    strings: &'d [u8],
    /// Folder and name of each file, by their places in the strings.
    files: Slice<'d>,
    file_len: u32,
    endian: RunTimeEndian,
}

/// Reads the header, the addresses, and where the lines and inlined calls are. Returns the id of the image, and the
/// address that image offset 0 was linked at.
///
/// # Errors
///
/// [`Error::Truncated`] or [`Error::Malformed`] if the header does not describe the file, [`Error::Unsupported`] for
/// another version.
pub(super) fn read(bytes: &[u8]) -> Result<(&[u8], u64, GsymStrings<'_>, Contents<'_>), Error> {
    let endian = if bytes.starts_with(&MAGIC[1]) { RunTimeEndian::Big } else { RunTimeEndian::Little };
    let whole = Whole { bytes, endian };
    let mut header = whole.part("the header", 4, HEADER_SIZE as u64 - 4)?;
    let version = number(header.read_u16());
    if version != VERSION {
        return Err(Error::Unsupported {
            what: format!("GSYM of version {version}; expected version {VERSION}"),
        });
    }
    let (offset_size, id_size) = (number(header.read_u8()), usize::from(number(header.read_u8())));
    let base = number(header.read_u64());
    let [address_len, strings_at, strings_size] = [(); 3].map(|()| number(header.read_u32()));
    let id = header.slice().get(..id_size).filter(|id| id.len() <= MAX_ID);
    let id = id.ok_or_else(|| malformed(format!("an id of {id_size} bytes; expected at most {MAX_ID}")))?;
    if ![1, 2, 4, 8].contains(&offset_size) {
        return Err(malformed(format!(
            "offsets of addresses have {offset_size} bytes; expected 1, 2, 4 or 8"
        )));
    }
    let offsets_size = u64::from(address_len) * u64::from(offset_size);
    let mut offsets = whole.part("the addresses", HEADER_SIZE as u64, offsets_size)?;
    let places_at = (HEADER_SIZE as u64 + offsets_size).next_multiple_of(4);
    let mut places = whole.part("the places of functions", places_at, 4 * u64::from(address_len))?;
    let files_at = places_at + 4 * u64::from(address_len);
    let file_len = number(whole.part("the number of files", files_at, 4)?.read_u32());
    let files = whole.part("the files", files_at + 4, 8 * u64::from(file_len))?;
    let strings = whole.part("the strings", strings_at.into(), strings_size.into())?.slice();
    let strings = GsymStrings { strings, files, file_len, endian };
    let mut starts = Vec::with_capacity(address_len as usize);
    for _ in 0..address_len {
        let offset = number(offsets.read_uint(offset_size.into()));
        starts.push((offset, number(places.read_u32())));
    }
    starts.sort_by_key(|start| start.0);
    // Of several functions at one address, readers find the first.
    starts.dedup_by_key(|start| start.0);
    let contents = contents(&whole, &strings, &starts);
    Ok((id, base, strings, contents))
}

/// What functions there are. `starts` has their image offsets and their places in the file.
fn contents<'d>(whole: &Whole<'d>, strings: &GsymStrings<'d>, starts: &[(u64, u32)]) -> Contents<'d> {
    let mut contents = Contents::default();
    // Several functions may have one place, and several names the same bytes.
    let mut left = SHARED_RECORDS * whole.bytes.len();
    let mut names = TextsLeft::of_records(whole.bytes.len() as u64);
    for (number, (start, at)) in starts.iter().enumerate() {
        let at = *at as usize;
        let mut rest = Slice::new(whole.bytes.get(at..).unwrap_or_default(), whole.endian);
        let before = rest.len();
        let head = Head::read(&mut rest);
        let size = before - rest.len();
        let Some(still_left) = left.checked_sub(size) else {
            contents
                .problems
                .limit("functions left out: they share their records", (starts.len() - number) as u64);
            break;
        };
        left = still_left;
        let Some(head) = head else {
            contents.problems.add("functions of the symbol file that reach beyond its end", 1);
            continue;
        };
        let merged = u64::from(head.has_merged);
        contents.problems.add("functions left out: the linker has merged them with another", merged);
        // A function without a size reaches to the next one.
        let next = starts.get(number + 1).map(|next| next.0);
        let end = Some(u64::from(head.code_size)).filter(|size| *size != 0);
        let end = end.map(|size| start.saturating_add(size));
        match end.or(next).filter(|_| head.has_lines) {
            Some(end) => contents.functions.push(Place { start: *start, end, at, size }),
            None => {
                let name = names.take(|| name_at(strings.strings, head.name as usize));
                let name = name.filter(|name| is_known(name));
                contents.symbols.push(Start { start: *start, rank: 0, name, inside: Inside::Function, end });
            }
        }
    }
    contents.problems.limit(NAMES_LEFT_OUT, names.is_used_up().into());
    contents
}

/// What the first bytes of the record of a function say, and the heads of its parts.
struct Head {
    code_size: u32,
    name: u32,
    has_lines: bool,
    has_merged: bool,
}

impl Head {
    /// Takes a record from `rest`. Returns `None` if it reaches beyond the end.
    fn read(rest: &mut Slice<'_>) -> Option<Self> {
        let (code_size, name) = (rest.read_u32().ok()?, rest.read_u32().ok()?);
        let mut head = Self { code_size, name, has_lines: false, has_merged: false };
        while let Some((kind, _)) = part(rest)? {
            head.has_lines |= matches!(kind, LINES | INLINED_CALLS);
            head.has_merged |= kind == MERGED_FUNCTIONS;
        }
        Some(head)
    }
}

/// Takes the next part of a function from `rest`: its kind and its bytes. The inner `None` is the end of the function,
/// the outer one means that the part reaches beyond the end.
fn part<'d>(rest: &mut Slice<'d>) -> Option<Option<(u32, Slice<'d>)>> {
    let (kind, size) = (rest.read_u32().ok()?, rest.read_u32().ok()?);
    let bytes = rest.split(size as usize).ok()?;
    Some((kind != END).then_some((kind, bytes)))
}

impl<'d> GsymStrings<'d> {
    pub(super) fn name(&self, place: u64) -> Option<&'d [u8]> {
        name_at(self.strings, usize::try_from(place).ok()?)
    }

    /// The path of a file: its folder, a slash and its name.
    pub(super) fn file(&self, number: u64) -> Option<Cow<'d, [u8]>> {
        // The first one stands for no file.
        let number = u32::try_from(number).ok().filter(|number| (1..self.file_len).contains(number))?;
        let mut entry = self.files;
        entry.skip(8 * number as usize).ok()?;
        let [folder, name] = [entry.read_u32().ok()?, entry.read_u32().ok()?];
        let [folder, name] = [folder, name].map(|place| name_at(self.strings, place as usize));
        let (folder, name) = (folder?, name?);
        if folder.is_empty() {
            return Some(Cow::Borrowed(name));
        }
        let slash = if folder.ends_with(b"/") { &b""[..] } else { b"/" };
        let mut path = [folder, slash, name].concat();
        path.truncate(PATH);
        Some(Cow::Owned(path))
    }

    /// Reads the record of a function that starts at the image offset `start` into `function`.
    pub(super) fn function(
        &self,
        record: &'d [u8],
        range: Range<u64>,
        function: &mut Function<'d>,
        problems: &mut Problems,
    ) {
        let mut rest = Slice::new(record, self.endian);
        let (_, name) = (rest.read_u32(), number(rest.read_u32()));
        function.name = self.name(name.into());
        function.range = range;
        while let Some(Some((kind, bytes))) = part(&mut rest) {
            let is_read = match kind {
                LINES => lines(bytes, function),
                INLINED_CALLS => inlined_calls(bytes, function),
                _ => Some(()),
            };
            if is_read.is_none() {
                function.are_calls_lost |= kind == INLINED_CALLS;
                problems.add("line tables and inlined calls of the symbol file that are damaged", 1);
            }
        }
    }
}

/// Reads a line table: a small program whose operations advance the address and the line, and add a row.
fn lines(mut table: Slice<'_>, function: &mut Function<'_>) -> Option<()> {
    const END_OF_LINES: u8 = 0;
    const SET_FILE: u8 = 1;
    const ADVANCE_ADDRESS: u8 = 2;
    const ADVANCE_LINE: u8 = 3;
    const FIRST_SPECIAL: u8 = 4;
    let (least, most) = (table.read_sleb128().ok()?, table.read_sleb128().ok()?);
    let line_range =
        u64::try_from(most.checked_sub(least)?.checked_add(1)?).ok().filter(|range| *range != 0)?;
    let mut line = i64::try_from(table.read_uleb128().ok()?).ok()?;
    let (mut at, mut file) = (function.range.start, 1);
    loop {
        match table.read_u8().ok()? {
            END_OF_LINES => return Some(()),
            SET_FILE => {
                file = table.read_uleb128().ok()?;
                continue;
            }
            ADVANCE_LINE => {
                line = line.checked_add(table.read_sleb128().ok()?)?;
                continue;
            }
            ADVANCE_ADDRESS => at = at.checked_add(table.read_uleb128().ok()?)?,
            special => {
                let special = u64::from(special - FIRST_SPECIAL);
                line = line.checked_add(least)?.checked_add(i64::try_from(special % line_range).ok()?)?;
                at = at.checked_add(special / line_range)?;
            }
        }
        // A row reaches to the next one.
        function.lines.push(Line { range: at..u64::MAX, file, line: u32::try_from(line).ok()? });
    }
}

/// Reads the tree of inlined calls. Its root is the function itself.
fn inlined_calls(mut tree: Slice<'_>, function: &mut Function<'_>) -> Option<()> {
    let first = function.range.start;
    let root = node(&mut tree, first)?;
    if !root.has_children {
        return Some(());
    }
    // The addresses that the children at each depth count from.
    let mut bases = vec![root.first.unwrap_or(first)];
    while let Some(base) = bases.last().copied() {
        let number = u32::try_from(function.calls.len()).ok()?;
        let depth = u32::try_from(bases.len() - 1).ok()?;
        let len = function.call_ranges.len();
        let node = node_with(&mut tree, base, |range| function.call_ranges.push((range, number)));
        let Some(node) = node else {
            function.call_ranges.truncate(len);
            return None;
        };
        if len == function.call_ranges.len() {
            // A node without ranges ends the children of a node.
            bases.pop();
            continue;
        }
        function.calls.push(InlinedCall { depth, name: node.name, file: Some(node.file), line: node.line });
        if node.has_children {
            bases.push(node.first.unwrap_or(base));
        }
    }
    Some(())
}

/// A node of the tree of inlined calls.
#[derive(Default)]
struct Node {
    /// The start of its first range.
    first: Option<u64>,
    has_children: bool,
    name: u64,
    file: u64,
    line: u32,
}

fn node(tree: &mut Slice<'_>, base: u64) -> Option<Node> {
    node_with(tree, base, |_| {})
}

/// Reads a node, and calls `each` with its ranges. A node without ranges has nothing else.
fn node_with(tree: &mut Slice<'_>, base: u64, mut each: impl FnMut(Range<u64>)) -> Option<Node> {
    let mut node = Node::default();
    for _ in 0..tree.read_uleb128().ok()? {
        let start = base.checked_add(tree.read_uleb128().ok()?)?;
        let end = start.checked_add(tree.read_uleb128().ok()?)?;
        node.first.get_or_insert(start);
        each(start..end);
    }
    if node.first.is_none() {
        return Some(node);
    }
    node.has_children = tree.read_u8().ok()? != 0;
    node.name = tree.read_u32().ok()?.into();
    node.file = tree.read_uleb128().ok()?;
    node.line = u32::try_from(tree.read_uleb128().ok()?).ok()?;
    Some(node)
}

/// The bytes of the file.
struct Whole<'d> {
    bytes: &'d [u8],
    endian: RunTimeEndian,
}

impl<'d> Whole<'d> {
    /// The part of the file from the byte `at` on.
    fn part(&self, what: &str, at: u64, size: u64) -> Result<Slice<'d>, Error> {
        let end = at.saturating_add(size);
        let range = usize::try_from(at).ok().zip(usize::try_from(end).ok());
        let part = range.and_then(|(start, end)| self.bytes.get(start..end));
        let size = self.bytes.len() as u64;
        let part = part.ok_or_else(|| Error::Truncated { what: what.to_owned(), end, size })?;
        Ok(Slice::new(part, self.endian))
    }
}

/// A number in a part of the file whose size was checked.
fn number<N: Default>(read: gimli::Result<N>) -> N {
    read.unwrap_or_default()
}

fn malformed(what: String) -> Error {
    Error::Malformed { what: format!("GSYM: {what}") }
}
