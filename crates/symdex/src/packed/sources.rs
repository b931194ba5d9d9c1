//! The source locations of a chunk. Each is a name, a file and a line, and no two are equal. To read one, a reader
//! decodes its group from the start.

use super::MAX_GROUP_BITS;
use super::block::moved;
use super::codes::{Codes, FILE, ID, LINE, NAME, NEW_LINE, OTHER_FILE, OTHER_LINE};
use crate::error::Error;
use crate::format::{BitReader, PageReader, Rows, Table, unzigzag};

/// A name, a file and a line. Each is stored plus one; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    pub(crate) name: u32,
    pub(crate) file: u32,
    pub(crate) line: u32,
}

/// A source location in the form that its group states.
#[derive(Clone, Copy, Debug)]
enum Entry {
    /// The first source location of the chunk with its name.
    First(SourceLocation),
    /// A source location with the name and the file of source location `first`, `lines` lines after it.
    Near { first: u32, lines: i64 },
    /// A source location with the name of source location `first`, and its own file and line.
    Far { first: u32, file: u32, line: u32 },
}

impl Default for Entry {
    fn default() -> Self {
        Self::First(SourceLocation::default())
    }
}

/// Cached source locations, in groups whose number is a power of two.
pub(super) struct SourceCache(Vec<Group>);

impl SourceCache {
    /// A cache of 2^`bits` groups.
    pub(super) fn new(bits: u32) -> Self {
        Self(std::iter::repeat_with(Group::default).take(1 << bits).collect())
    }
}

/// The key of a group: serial number of the index, table, number of the chunk, number of the group.
type Key = (u64, Table, u64, usize);

/// The state of reading a group, and what was read of it.
#[derive(Default)]
struct Group {
    key: Option<Key>,
    entries: [Entry; 1 << MAX_GROUP_BITS],
    len: usize,
    /// Where the next source location begins, in bits from the start of the section of chunks.
    at: usize,
    /// The first source location of the chunk that has the name of the last one read.
    first: u32,
    /// Whether an earlier source location has the name of the last one read.
    known_name: bool,
    /// The stored id that the id of the next new name is relative to.
    expected: u32,
    /// File and line of the last source location with a new name.
    file: u32,
    line: u32,
}

/// The source locations of one chunk.
#[derive(Clone, Copy)]
pub(super) struct SourceLocations<'a> {
    pub(super) codes: &'a Codes,
    pub(super) pages: PageReader<'a>,
    /// Serial number of the index, table, number of the chunk.
    pub(super) key: (u64, Table, u64),
    pub(super) len: u32,
    /// One row for each group: where it begins, in bits, and the stored id that the id of its first new name is
    /// relative to.
    pub(super) rows: Rows<2>,
    /// Where the bits of the source locations begin and end, in bytes from the start of the section.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl SourceLocations<'_> {
    /// Source location `number`. Returns `Ok(None)` if the bytes are invalid.
    #[inline]
    pub(super) fn get(&self, number: u32, cache: &mut SourceCache) -> Result<Option<SourceLocation>, Error> {
        Ok(match self.entry(number, cache)? {
            None => None,
            Some(Entry::First(source)) => Some(source),
            Some(Entry::Far { first, file, line }) => {
                self.first(first, cache)?.map(|source| SourceLocation { file, line, ..source })
            }
            Some(Entry::Near { first, lines }) => self.first(first, cache)?.and_then(|source| {
                let line = i64::from(source.line).checked_add(lines)?;
                Some(SourceLocation { line: u32::try_from(line).ok()?, ..source })
            }),
        })
    }

    /// Source location `number`. Returns `Ok(None)` unless it is the first one with its name.
    #[inline]
    fn first(&self, number: u32, cache: &mut SourceCache) -> Result<Option<SourceLocation>, Error> {
        let entry = self.entry(number, cache)?;
        Ok(entry.and_then(|entry| if let Entry::First(source) = entry { Some(source) } else { None }))
    }

    #[inline]
    fn entry(&self, number: u32, cache: &mut SourceCache) -> Result<Option<Entry>, Error> {
        if number >= self.len {
            return Ok(None);
        }
        let bits = self.codes.group_bits;
        let (group, within) = (number as usize >> bits, number as usize & ((1 << bits) - 1));
        let (serial, table, chunk) = self.key;
        let key = (serial, table, chunk, group);
        let slot = group & cache.0.len().wrapping_sub(1);
        let Some(state) = cache.0.get_mut(slot) else { return Ok(None) };
        if state.key != Some(key) {
            self.begin(group, state)?;
        }
        // The key is set again below if the group is intact. So a damaged group does not stay in the cache.
        state.key = None;
        if state.len <= within && self.read(group, within + 1, state).is_none() {
            return Ok(None);
        }
        state.key = Some(key);
        Ok(state.entries.get(within).copied())
    }

    /// Prepares `state` for reading a group, and checks the pages of the group.
    fn begin(&self, group: usize, state: &mut Group) -> Result<(), Error> {
        state.key = None;
        let groups = (self.len as usize).div_ceil(self.codes.group_len());
        let ([at, expected], next) = self.rows.get(&self.pages, groups, group)?;
        let bits = (self.end - self.start) as u64 * 8;
        // The last group ends with the chunk.
        let [next, _] = next.unwrap_or([bits, 0]);
        let is_inside = at <= next && next <= bits;
        let (Ok(expected), Ok(at), Ok(next), true) =
            (u32::try_from(expected), usize::try_from(at), usize::try_from(next), is_inside)
        else {
            let what = "a group of source locations lies outside its chunk";
            return Err(self.pages.malformed(self.start, what));
        };
        self.pages.check_range(self.start + at / 8..self.start + next.div_ceil(8))?;
        state.len = 0;
        (state.at, state.expected) = (self.start * 8 + at, expected);
        (state.first, state.known_name, state.file, state.line) = (0, false, 0, 0);
        Ok(())
    }

    /// Reads on until `state` has `len` source locations of the group. Returns `None` if the bytes are invalid.
    fn read(&self, group: usize, len: usize, state: &mut Group) -> Option<()> {
        let (codes, has_files) = (self.codes, self.key.1 == Table::Dwarf);
        // Local copies stay in registers.
        let Group { at, mut first, mut known_name, mut expected, mut file, mut line, len: before, .. } =
            *state;
        let mut reader = BitReader::new(self.pages.section, at);
        let mut number = u32::try_from((group << self.codes.group_bits) + before).ok()?;
        let mut last = before.checked_sub(1).and_then(|last| state.entries.get(last)).copied();
        for slot in state.entries.get_mut(before..len)? {
            reader.fill();
            let step = codes.number(&mut reader, NAME + u8::from(known_name))?;
            known_name = step != 0;
            let entry = if step == 0 {
                first = number;
                let name = moved(expected, codes.number(&mut reader, ID)?)?;
                expected = name.saturating_add(1);
                if has_files {
                    let step = codes.number(&mut reader, FILE)?;
                    let number = codes.number(&mut reader, NEW_LINE + u8::from(step != 0))?;
                    (file, line) = match step.checked_sub(1) {
                        None => (file, moved(line, number)?),
                        Some(step) => (moved(file, step)?, u32::try_from(number).ok()?),
                    };
                }
                Entry::First(SourceLocation { name, file, line })
            } else {
                let base = if last.is_some() { first } else { number };
                let new = moved(base, step - 1).filter(|new| *new < number)?;
                let same = last.filter(|_| new == first);
                first = new;
                if has_files { self.line(&mut reader, first, same)? } else { Entry::Near { first, lines: 0 } }
            };
            *slot = entry;
            (last, number) = (Some(entry), number + 1);
        }
        let at = reader.position();
        (state.at, state.first, state.known_name, state.expected) = (at, first, known_name, expected);
        (state.file, state.line, state.len) = (file, line, len);
        (at <= self.end * 8).then_some(())
    }

    /// Reads the file and the line of a source location whose name is that of source location `first`. `before` is the
    /// source location before it, if that one has the same name.
    #[inline(always)]
    fn line(&self, reader: &mut BitReader<'_>, first: u32, before: Option<Entry>) -> Option<Entry> {
        let number = self.codes.number(reader, LINE + u8::from(before.is_none()))?;
        let Some(step) = number.checked_sub(1) else {
            let file = u32::try_from(self.codes.number(reader, OTHER_FILE)?).ok()?;
            let line = u32::try_from(self.codes.number(reader, OTHER_LINE)?).ok()?;
            return Some(Entry::Far { first, file, line });
        };
        Some(match before {
            Some(Entry::Far { file, line, .. }) => Entry::Far { first, file, line: moved(line, step)? },
            Some(Entry::Near { lines, .. }) => {
                Entry::Near { first, lines: lines.checked_add(unzigzag(step))? }
            }
            _ => Entry::Near { first, lines: unzigzag(step) },
        })
    }
}
