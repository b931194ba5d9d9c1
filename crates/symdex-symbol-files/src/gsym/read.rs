//! Reads GSYM, in both byte orders.

use std::borrow::Cow;
use std::ops::Range;

use gimli::{Reader as _, RunTimeEndian};
use symdex::ImageId;
use symdex_build::Error;
use symdex_build::symbol_file::{Contents, Function, InlinedCall, Line, Problems, Records, SymbolFile};

use super::{
    ADVANCE_ADDRESS, ADVANCE_LINE, END, END_OF_LINES, FIRST_SPECIAL, HEADER_SIZE, Header, INLINED_CALLS,
    LINES, MAGIC, MERGED_FUNCTIONS, SET_FILE, Slice, number,
};
use crate::limits::SHARED_RECORDS;

/// How many bytes of memory a byte of the records of a function may take. A line takes one byte.
const MEMORY_OF_BYTE: usize = 160;

/// How many bytes of a string are read at most. Longer ones are cut.
const STRING: usize = 1 << 16;

/// The bytes of the file, and where its strings and files are.
struct Whole<'d> {
    bytes: &'d [u8],
    strings: &'d [u8],
    /// Folder and name of each file, by their places in the strings.
    files: Slice<'d>,
    file_len: u32,
    endian: RunTimeEndian,
}

/// Reads the header, the addresses, and where the lines and inlined calls are.
///
/// # Errors
///
/// [`Error::Truncated`] or [`Error::Malformed`] if the header does not describe the file, [`Error::Unsupported`] for
/// another version.
pub(crate) fn read(bytes: &[u8]) -> Result<SymbolFile<'_>, Error> {
    let is_big = bytes.starts_with(&MAGIC.to_be_bytes());
    let endian = if is_big { RunTimeEndian::Big } else { RunTimeEndian::Little };
    let part = |what, at, size| part_of_file(bytes, endian, what, at, size);
    let header = Header::read(part("the header", 0, HEADER_SIZE as u64)?)?;
    let address_len = header.address_len;
    let offsets_size = u64::from(address_len) * u64::from(header.offset_size);
    let mut offsets = part("the addresses", HEADER_SIZE as u64, offsets_size)?;
    let places_at = (HEADER_SIZE as u64 + offsets_size).next_multiple_of(4);
    let mut places = part("the places of functions", places_at, 4 * u64::from(address_len))?;
    let files_at = places_at + 4 * u64::from(address_len);
    let file_len = number(part("the number of files", files_at, 4)?.read_u32());
    let files = part("the files", files_at + 4, 8 * u64::from(file_len))?;
    let strings = part("the strings", header.strings_at.into(), header.strings_size.into())?.slice();
    let whole = Whole { bytes, strings, files, file_len, endian };
    let mut starts = Vec::with_capacity(address_len as usize);
    for _ in 0..address_len {
        let offset = number(offsets.read_uint(header.offset_size.into()));
        starts.push((offset, number(places.read_u32())));
    }
    starts.sort_by_key(|start| start.0);
    // Of several functions at one address, readers find the first.
    starts.dedup_by_key(|start| start.0);
    let mut contents = whole.contents(&starts);
    (contents.id, contents.base) = (ImageId::new(header.id), header.base);
    Ok(SymbolFile::new(contents, Box::new(whole)))
}

/// The part of the file from the byte `at` on.
fn part_of_file<'d>(
    bytes: &'d [u8],
    endian: RunTimeEndian,
    what: &str,
    at: u64,
    size: u64,
) -> Result<Slice<'d>, Error> {
    let end = at.saturating_add(size);
    let range = usize::try_from(at).ok().zip(usize::try_from(end).ok());
    let part = range.and_then(|(start, end)| bytes.get(start..end));
    let part =
        part.ok_or_else(|| Error::Truncated { what: what.to_owned(), end, size: bytes.len() as u64 })?;
    Ok(Slice::new(part, endian))
}

impl<'d> Whole<'d> {
    /// What functions there are. `starts` has their image offsets and their places in the file.
    fn contents(&self, starts: &[(u64, u32)]) -> Contents<'d> {
        let mut contents = Contents::new(self.bytes.len());
        // Several functions may have one place.
        let mut left = SHARED_RECORDS * self.bytes.len();
        for (number, (start, at)) in starts.iter().enumerate() {
            let at = *at as usize;
            let mut rest = Slice::new(self.bytes.get(at..).unwrap_or_default(), self.endian);
            let before = rest.len();
            let head = Head::read(&mut rest);
            let size = before - rest.len();
            let Some(still_left) = left.checked_sub(size) else {
                let lost = starts.len() - number;
                contents.problems.limit("functions left out: they share their records", lost as u64);
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
                Some(end) => contents.add_function(*start..end, at..at + size),
                None => contents.add_symbol(*start, end, || self.string(head.name)),
            }
        }
        contents
    }

    /// The string at a place, up to the zero that ends it.
    fn string(&self, place: u32) -> Option<&'d [u8]> {
        let rest = self.strings.get(place as usize..)?;
        let rest = &rest[..rest.len().min(STRING)];
        Some(&rest[..memchr::memchr(0, rest).unwrap_or(rest.len())])
    }
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

impl<'d> Records<'d> for Whole<'d> {
    fn function(&self, record: Range<usize>, function: &mut Function<'d>, problems: &mut Problems) {
        let mut rest = Slice::new(self.bytes.get(record).unwrap_or_default(), self.endian);
        let (_, name) = (rest.read_u32(), number(rest.read_u32()));
        function.name = self.string(name);
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

    fn name(&self, place: u64) -> Option<&'d [u8]> {
        self.string(u32::try_from(place).ok()?)
    }

    /// The path of a file: its folder, a slash and its name.
    fn file(&self, number: u64) -> Option<Cow<'d, [u8]>> {
        // The first one stands for no file.
        let number = u32::try_from(number).ok().filter(|number| (1..self.file_len).contains(number))?;
        let mut entry = self.files;
        entry.skip(8 * number as usize).ok()?;
        let [folder, name] = [entry.read_u32().ok()?, entry.read_u32().ok()?];
        let (folder, name) = (self.string(folder)?, self.string(name)?);
        if folder.is_empty() {
            return Some(Cow::Borrowed(name));
        }
        let slash = if folder.ends_with(b"/") { &b""[..] } else { b"/" };
        Some(Cow::Owned([folder, slash, name].concat()))
    }

    fn memory(&self) -> usize {
        0
    }

    fn memory_of_byte(&self) -> usize {
        MEMORY_OF_BYTE
    }
}

/// Reads a line table: a small program whose operations advance the address and the line, and add a row.
fn lines(mut table: Slice<'_>, function: &mut Function<'_>) -> Option<()> {
    let (least, most) = (table.read_sleb128().ok()?, table.read_sleb128().ok()?);
    let line_range =
        u64::try_from(most.checked_sub(least)?.checked_add(1)?).ok().filter(|range| *range != 0)?;
    let mut line = i64::try_from(table.read_uleb128().ok()?).ok()?;
    let (mut at, mut file) = (function.range().start, 1);
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
    let first = function.range().start;
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
