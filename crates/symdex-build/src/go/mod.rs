//! Functions of Go programs, from the tables that the Go runtime reads for its stack traces.
//!
//! A Go linker writes these tables into every program, also if it omits the debug information and the symbol table
//! (`-ldflags="-s -w"`). They state the functions, their files and lines, and the calls that are inlined into them.
//! `runtime/symtab.go` and `runtime/symtabinl.go` of Go read them; `cmd/link/internal/ld/pcln.go` writes them.
//!
//! * `.gopclntab` begins with a [`Header`]. It has the list of functions, and for each a record, the names, the paths,
//!   and tables that map addresses to numbers.
//! * The module data ([`module`]) states where the code begins, and where the trees of inlined calls are.

mod module;
mod records;

use std::ops::Range;

use self::module::Module;
use self::records::GoRecords;
use crate::image::{MAX_OFFSET, short};
use crate::limits;
use crate::report::Problems;
use crate::symbol_file::{Functions, Place, Records as _};
use crate::unwind::{Section, Sections};

/// The functions of a Go program.
pub(crate) struct GoFunctions<'d> {
    /// In address order. No two have the same code.
    places: Vec<Place>,
    records: GoRecords<'d>,
    /// What cannot be read.
    pub(crate) problems: Problems,
}

/// The tables of a Go program. The audit reads them with separate code.
#[derive(Clone, Debug)]
pub struct GoTables<'d> {
    /// `.gopclntab`, from its header on.
    pub bytes: &'d [u8],
    /// The address that the functions' addresses count from.
    pub text: u64,
    /// The address that the places of the trees of inlined calls count from.
    pub trees: Option<u64>,
    data: Sections<'d>,
}

impl<'d> GoTables<'d> {
    /// The loaded data from `address` on.
    #[must_use]
    pub fn from(&self, address: u64) -> Option<&'d [u8]> {
        self.data.from(address)
    }
}

impl<'d> GoFunctions<'d> {
    pub(crate) fn tables(&self) -> &GoTables<'d> {
        &self.records.tables
    }

    /// The functions, to be read.
    pub(crate) fn functions(&self) -> Functions<'_, 'd> {
        Functions { places: &self.places, records: &self.records }
    }

    /// About how many bytes of memory they take, without the bytes of the file.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&self.places[..]) + self.records.memory()
    }
}

/// What the tables of a Go program are read from.
pub(crate) struct Program<'d> {
    /// The section `.gopclntab`. `None` if the linker joined it with others.
    pub(crate) table: Option<Section<'d>>,
    /// The loaded sections that have no code.
    pub(crate) data: Sections<'d>,
    /// The address of `.text`.
    pub(crate) text: u64,
    /// Whether the file states no section of code.
    pub(crate) lacks_code: bool,
    pub(crate) pointers: Pointers,
}

/// How pointers are stored.
pub(crate) struct Pointers {
    /// Places of pointers and their values, sorted, if loaders do not find the values at these places.
    pub(crate) relocations: Vec<(u64, u64)>,
    /// The bits of a pointer that have its value, if not all do.
    pub(crate) mask: u64,
    /// What is added to smaller values.
    pub(crate) base: u64,
}

impl Pointers {
    /// The pointer that is stored as this number.
    fn value(&self, stored: u64) -> u64 {
        let value = stored & self.mask;
        if value < self.base && value != 0 { value + self.base } else { value }
    }
}

/// The layouts of the tables, by the version of Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Layout {
    /// Go 1.16 and 1.17: addresses are absolute.
    Go116,
    /// Go 1.18 and 1.19: addresses count from the start of the code.
    Go118,
    /// Go 1.20 and later: records state the line that a function begins in.
    Go120,
}

/// The header of `.gopclntab`, and the tables after it.
///
/// ```text
/// u32 magic, u8 0, u8 0, u8 quantum (the smallest size of an instruction), u8 size of a word
/// words: functions, files, [start of the code, from Go 1.18 on; since 1.26 not used]
/// words: offsets of names, of lists of files, of paths, of tables of values, of functions
/// ```
#[derive(Clone, Copy)]
struct Header<'d> {
    bytes: &'d [u8],
    layout: Layout,
    quantum: u64,
    word_size: usize,
    function_count: usize,
    /// The address of the code, if it is stated.
    text: Option<u64>,
    /// The offset of the names, which the module data points to.
    names_offset: u64,
    names: &'d [u8],
    /// For each unit, a list of offsets in `paths`.
    file_lists: &'d [u8],
    paths: &'d [u8],
    values: &'d [u8],
    /// The list of functions, and the records that it refers to.
    functions: &'d [u8],
}

/// The first bytes of each layout.
const MAGICS: [(Layout, [u8; 6]); 3] = [
    (Layout::Go116, [0xfa, 0xff, 0xff, 0xff, 0, 0]),
    (Layout::Go118, [0xf0, 0xff, 0xff, 0xff, 0, 0]),
    (Layout::Go120, [0xf1, 0xff, 0xff, 0xff, 0, 0]),
];

impl<'d> Header<'d> {
    /// The header that `bytes` begin with. `None` if it is none, or that of another layout.
    fn parse(bytes: &'d [u8]) -> Option<Self> {
        let (layout, _) = MAGICS.into_iter().find(|(_, magic)| bytes.starts_with(magic))?;
        let (quantum, word_size) = (*bytes.get(6)?, usize::from(*bytes.get(7)?));
        if !matches!(quantum, 1 | 2 | 4) || !matches!(word_size, 4 | 8) {
            return None;
        }
        let word = |number: usize| word_at(bytes, 8 + number * word_size, word_size);
        let first = if layout == Layout::Go116 { 2 } else { 3 };
        let from = |number: usize| bytes.get(usize::try_from(word(first + number)?).ok()?..);
        let header = Self {
            bytes,
            layout,
            quantum: quantum.into(),
            word_size,
            function_count: usize::try_from(word(0)?).ok()?,
            text: word(2).filter(|text| layout != Layout::Go116 && *text != 0),
            names_offset: word(first)?,
            names: from(0)?,
            file_lists: from(1)?,
            paths: from(2)?,
            values: from(3)?,
            functions: from(4)?,
        };
        let list_size =
            header.function_count.checked_mul(2)?.checked_add(1)?.checked_mul(header.entry_size())?;
        (header.function_count != 0 && list_size <= header.functions.len()).then_some(header)
    }

    /// The size of an address and of an offset in the list of functions.
    fn entry_size(&self) -> usize {
        if self.layout == Layout::Go116 { self.word_size } else { 4 }
    }

    /// Function `number`: where its code begins, counted from the start of the code, and the offset of its record.
    /// After the last function, where its code ends.
    fn function(&self, number: usize) -> Option<(u64, usize)> {
        let size = self.entry_size();
        let start = word_at(self.functions, 2 * number * size, size)?;
        let record = word_at(self.functions, (2 * number + 1) * size, size).unwrap_or(0);
        Some((start, usize::try_from(record).ok()?))
    }
}

impl Header<'_> {
    /// Where the functions in `executable` sections are, if their addresses count from image offset `text`. All
    /// together have at most `left` bytes of code.
    fn places(
        &self,
        text: u64,
        executable: &[(u64, u64)],
        mut left: u64,
        problems: &mut Problems,
    ) -> Vec<Place> {
        let (mut places, mut outside) = (Vec::new(), 0);
        let (mut next, mut last_end) = (self.function(0), 0);
        for number in 0..self.function_count {
            let Some((start, at)) = next else { break };
            next = self.function(number + 1);
            let end = next.map_or(start, |(end, _)| end);
            let code = within(executable, start.wrapping_add(text)..end.wrapping_add(text));
            let has_record = at < self.functions.len();
            let Some(code) = code.filter(|code| has_record && code.start >= last_end) else {
                outside += 1;
                continue;
            };
            last_end = code.end;
            let Some(rest) = left.checked_sub(code.end - code.start) else {
                problems.limit("functions of Go left out: they have more code than the file", 1);
                break;
            };
            left = rest;
            let size = short(code.end - code.start) as usize;
            places.push(Place { start: code.start, end: code.end, at, size });
        }
        problems.dropped(
            "functions of Go outside of the image's code, without code or without a record",
            outside,
        );
        places
    }
}

/// The number of `size` bytes, 4 or 8, at `at`.
fn word_at(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    Some(bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
}

/// The number of 4 bytes at `at`.
fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    u32::try_from(word_at(bytes, at, 4)?).ok()
}

impl<'d> Program<'d> {
    /// The functions of the program in `executable` sections of the image at `base`, whose file has `size` bytes. Adds
    /// to `missing` why they cannot be read. If the file has no code, sets `executable` to that of the functions.
    pub(crate) fn functions(
        self,
        base: u64,
        executable: &mut Vec<(u64, u64)>,
        size: u64,
        missing: &mut Vec<String>,
    ) -> Option<GoFunctions<'d>> {
        let mut unread = |why| missing.push(format!("the tables of the Go runtime are not read: {why}"));
        let Some((address, header)) = self.header() else {
            // Without a section of them, a file may have none.
            self.table.into_iter().for_each(|_| unread("their layout is not that of Go 1.16 to 1.27"));
            return None;
        };
        let (text, trees) = match (header.layout, Module::find(&self, address, &header)) {
            (Layout::Go116, _) => (0, Some(0)),
            (_, Some(module)) => (module.text, module.trees),
            (_, None) => (header.text.unwrap_or(self.text), None),
        };
        let tables = GoTables { bytes: header.bytes, text, trees, data: self.data };
        let text = text.wrapping_sub(base);
        if self.lacks_code {
            let ends = header.function(0).zip(header.function(header.function_count));
            let code = ends.map(|((start, _), (end, _))| (start.wrapping_add(text), end.wrapping_add(text)));
            *executable = code.filter(|(start, end)| start < end && *end <= MAX_OFFSET).into_iter().collect();
        }
        let mut problems = Problems::default();
        let places = header.places(text, executable, limits::GO_CODE * size, &mut problems);
        if places.is_empty() {
            unread("none of their functions is in the code of the image");
            return None;
        }
        Some(GoFunctions { places, records: GoRecords { header, tables }, problems })
    }

    /// The header and its address.
    fn header(&self) -> Option<(u64, Header<'d>)> {
        let found = |section: &Section<'d>, at: usize| {
            let header = Header::parse(section.bytes.get(at..)?)?;
            Some((section.address.checked_add(at as u64)?, header))
        };
        if let Some(section) = &self.table {
            return found(section, 0);
        }
        // A linker that is not Go's joins it with `.data.rel.ro`.
        self.data.iter().find_map(|section| {
            let places = MAGICS.iter().flat_map(|(_, magic)| memchr::memmem::find_iter(section.bytes, magic));
            places.filter(|at| at % 8 == 0).find_map(|at| found(section, at))
        })
    }

    /// The pointer at `address`.
    fn pointer(&self, address: u64, size: usize) -> Option<u64> {
        let relocations = &self.pointers.relocations;
        if let Ok(found) = relocations.binary_search_by_key(&address, |(place, _)| *place) {
            return relocations.get(found).map(|(_, value)| *value);
        }
        word_at(self.data.from(address)?, 0, size).map(|stored| self.pointers.value(stored))
    }
}

/// The part of `code` in the section of `executable` that it begins in. `None` if it is empty.
fn within(executable: &[(u64, u64)], code: Range<u64>) -> Option<Range<u64>> {
    let after = executable.partition_point(|section| section.0 <= code.start);
    let (_, end) = *executable.get(after.checked_sub(1)?)?;
    let part = code.start..code.end.min(end);
    (!part.is_empty()).then_some(part)
}
