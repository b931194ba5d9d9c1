//! The functions and files of one index.

use std::collections::HashMap;

use symdex::{ChunkRanges, CodeRange, Error, Index, NonMaxU32, Table};

/// What is known of a function. Names and files are those of [`Index::strings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FunctionEntry {
    /// Its image offset.
    pub(crate) start: u64,
    /// The bytes of its code, without gaps.
    pub(crate) size: u64,
    /// How many ranges of the index its code has.
    pub(crate) ranges: u32,
    pub(crate) name: Option<NonMaxU32>,
    /// Its first file and line.
    pub(crate) file: Option<NonMaxU32>,
    pub(crate) line: Option<NonMaxU32>,
    pub(crate) table: Table,
}

/// The code whose innermost frame is in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileEntry {
    /// `None` for code without a file.
    pub(crate) file: Option<NonMaxU32>,
    pub(crate) bytes: u64,
    /// How many of these bytes are inlined into other functions.
    pub(crate) inlined_bytes: u64,
}

/// The functions and files of one index.
#[derive(Debug, Default)]
pub(crate) struct Overview {
    /// In address order: those with debug information, and the symbols at other addresses.
    pub(crate) functions: Vec<FunctionEntry>,
    /// Places in `functions`, the largest function first, those of one size in address order.
    pub(crate) by_size: Vec<u32>,
    /// The file with the most bytes first, those of one size in the order of their ids.
    pub(crate) files: Vec<FileEntry>,
}

/// Why there is no overview.
#[derive(Debug)]
pub(crate) enum OverviewError {
    /// The index is damaged.
    Damaged(Error),
    /// The index has more ranges than this.
    TooManyRanges(u64),
    /// There is not enough memory for it now.
    NoMemory,
}

/// How many ranges an index may have. It bounds the time of an overview: about 200 ns for each.
pub(crate) const MAX_RANGES: u64 = 50_000_000;

impl Overview {
    /// Reads all ranges of `index`. `reserve` is called after each chunk with the bytes that it has added.
    ///
    /// # Errors
    ///
    /// [`OverviewError`], the first that is found.
    pub(crate) fn new<B: AsRef<[u8]>>(
        index: &Index<B>,
        mut reserve: impl FnMut(u64) -> Option<()>,
    ) -> Result<Self, OverviewError> {
        let mut collected = Collected::default();
        let (mut ranges, mut reserved) = (0, 0);
        for table in [Table::Dwarf, Table::SymbolTable] {
            for chunk in index.chunks(table) {
                let (_, chunk) = chunk.map_err(OverviewError::Damaged)?;
                ranges += chunk.ranges.len() as u64;
                if ranges > MAX_RANGES {
                    return Err(OverviewError::TooManyRanges(MAX_RANGES));
                }
                collected.chunk(table, &chunk);
                let size = collected.size();
                reserve(size - reserved).ok_or(OverviewError::NoMemory)?;
                reserved = size;
            }
        }
        Ok(collected.overview())
    }

    /// The function that has this image offset, or begins nearest below it; its place in `functions`.
    pub(crate) fn at(&self, offset: u64) -> Option<usize> {
        self.functions.partition_point(|function| function.start <= offset).checked_sub(1)
    }
}

/// What was read so far.
#[derive(Default)]
struct Collected {
    functions: Vec<FunctionEntry>,
    /// The place in `functions` of the function that starts at an address.
    places: HashMap<u64, usize>,
    files: HashMap<Option<NonMaxU32>, FileEntry>,
    /// The ranges of the table `dwarf`, adjacent ones joined, in address order.
    covered: Vec<(u64, u64)>,
}

impl Collected {
    /// The bytes that it takes, roughly: entries, and the tables that find them.
    fn size(&self) -> u64 {
        96 * self.functions.len() as u64 + 64 * self.files.len() as u64 + 16 * self.covered.len() as u64
    }

    fn chunk(&mut self, table: Table, chunk: &ChunkRanges) {
        // A parent comes before its children. In the symbol table, parents are aliases.
        let mut concrete: Vec<usize> = Vec::with_capacity(chunk.frames.len());
        for (at, frame) in chunk.frames.iter().enumerate() {
            let parent = frame.parent.filter(|_| table == Table::Dwarf);
            concrete.push(parent.and_then(|parent| concrete.get(parent.index()).copied()).unwrap_or(at));
        }
        for range in &chunk.ranges {
            let innermost = range.exact as usize;
            let Some(outermost) = concrete.get(innermost).copied() else { continue };
            let (inner, outer) = (&chunk.frames[innermost], &chunk.frames[outermost]);
            // Chunks of a damaged index may have any numbers.
            let size = range.end.saturating_sub(range.start);
            match table {
                Table::Dwarf => {
                    self.cover(range);
                    self.add_to_file(inner.file, size, innermost != outermost);
                }
                Table::SymbolTable => {
                    let without = size.saturating_sub(self.covered_bytes(range.start, range.end));
                    self.add_to_file(None, without, false);
                }
            }
            // Line rows that no function covers have no start.
            let Some(start) = range.function_start else { continue };
            let place = *self.places.entry(start).or_insert_with(|| {
                let (name, file, line) = (outer.name, outer.file, outer.line);
                self.functions.push(FunctionEntry { start, size: 0, ranges: 0, name, file, line, table });
                self.functions.len() - 1
            });
            let function = &mut self.functions[place];
            // A symbol at the start of a function with debug information is that function.
            if function.table == table {
                function.size = function.size.saturating_add(size);
                function.ranges = function.ranges.saturating_add(1);
                if range.start == start {
                    (function.file, function.line) = (outer.file, outer.line);
                }
            }
        }
    }

    fn add_to_file(&mut self, file: Option<NonMaxU32>, bytes: u64, is_inlined: bool) {
        if bytes == 0 {
            return;
        }
        let entry = self.files.entry(file).or_insert(FileEntry { file, bytes: 0, inlined_bytes: 0 });
        entry.bytes = entry.bytes.saturating_add(bytes);
        let inlined = if is_inlined { bytes } else { 0 };
        entry.inlined_bytes = entry.inlined_bytes.saturating_add(inlined);
    }

    fn cover(&mut self, range: &CodeRange) {
        match self.covered.last_mut() {
            Some((_, end)) if *end == range.start => *end = range.end,
            _ => self.covered.push((range.start, range.end)),
        }
    }

    /// How many of the bytes from `start` to `end` have debug information.
    fn covered_bytes(&self, start: u64, end: u64) -> u64 {
        let first = self.covered.partition_point(|(_, covered_end)| *covered_end <= start);
        let overlapping = self.covered[first..].iter().take_while(|(covered_start, _)| *covered_start < end);
        let bytes = |(from, to): &(u64, u64)| (*to).min(end).saturating_sub((*from).max(start));
        overlapping.map(bytes).fold(0, u64::saturating_add)
    }

    fn overview(self) -> Overview {
        // Symbols that begin in code with debug information are parts of functions.
        let is_symbol = |function: &FunctionEntry| function.table == Table::SymbolTable;
        let is_covered = |start: u64| self.covered_bytes(start, start.saturating_add(1)) != 0;
        let listed =
            self.functions.iter().filter(|function| !is_symbol(function) || !is_covered(function.start));
        let mut functions: Vec<_> = listed.copied().collect();
        functions.sort_unstable_by_key(|function| function.start);
        let mut by_size: Vec<u32> = (0..).take(functions.len()).collect();
        by_size.sort_by_key(|place| std::cmp::Reverse(functions[*place as usize].size));
        let mut files: Vec<_> = self.files.into_values().collect();
        files
            .sort_unstable_by_key(|entry| (std::cmp::Reverse(entry.bytes), entry.file.map(NonMaxU32::index)));
        Overview { functions, by_size, files }
    }
}

#[cfg(test)]
mod tests {
    use symdex::{CodeRange, InlineFrame};

    use super::*;

    fn id(number: u64) -> Option<NonMaxU32> {
        NonMaxU32::new(number)
    }

    fn frame(parent: Option<u64>, name: u64, file: u64) -> InlineFrame {
        InlineFrame {
            parent: parent.and_then(NonMaxU32::new),
            name: id(name),
            file: id(file),
            line: id(name),
        }
    }

    fn range(start: u64, end: u64, function_start: u64, frame: u32) -> CodeRange {
        CodeRange { start, end, function_start: Some(function_start), exact: frame, statement: frame }
    }

    /// ```text
    ///             0x10       0x20    0x28       0x30         0x40      0x48
    /// dwarf       | f, file 7 | g in f, file 8 | f, file 7   |         |
    /// symbols     | f                    | part                       | h
    /// ```
    fn collected() -> Collected {
        let mut collected = Collected::default();
        let frames = vec![frame(None, 1, 7), frame(Some(0), 2, 8)];
        let ranges = vec![range(0x10, 0x20, 0x10, 0), range(0x20, 0x30, 0x10, 1), range(0x30, 0x40, 0x10, 0)];
        collected.chunk(Table::Dwarf, &ChunkRanges { ranges, frames });
        let frames = vec![frame(None, 1, 9), frame(None, 3, 9), frame(None, 4, 9), frame(Some(2), 5, 9)];
        let ranges = vec![range(0x10, 0x28, 0x10, 0), range(0x28, 0x48, 0x28, 1), range(0x48, 0x50, 0x48, 3)];
        collected.chunk(Table::SymbolTable, &ChunkRanges { ranges, frames });
        collected
    }

    #[test]
    fn symbols_are_listed_where_there_is_no_debug_information() {
        let Overview { functions, by_size, .. } = collected().overview();
        let seen: Vec<_> = functions.iter().map(|one| (one.start, one.size, one.ranges, one.name)).collect();
        // The symbol at 0x28 is a part of f. The name of the symbol at 0x48 is its own, and not an alias.
        assert_eq!(seen, [(0x10, 0x30, 3, id(1)), (0x48, 8, 1, id(5))]);
        assert_eq!((functions[0].file, functions[0].line, functions[0].table), (id(7), id(1), Table::Dwarf));
        assert_eq!(by_size, [0, 1]);
    }

    #[test]
    fn code_counts_for_the_file_of_the_innermost_frame() {
        let files = collected().overview().files;
        let seen: Vec<_> = files.iter().map(|one| (one.file, one.bytes, one.inlined_bytes)).collect();
        // 0x40 to 0x50 is in symbols only.
        assert_eq!(seen, [(id(7), 0x20, 0), (None, 0x10, 0), (id(8), 0x10, 0x10)]);
    }

    #[test]
    fn the_nearest_function_is_not_above_the_address() {
        let overview = collected().overview();
        assert_eq!(overview.at(0xf), None);
        assert_eq!((overview.at(0x10), overview.at(0x47), overview.at(0x48)), (Some(0), Some(0), Some(1)));
    }

    #[test]
    fn an_overview_without_memory_is_refused() {
        let golden = std::fs::read("../../testdata/golden/v1/inline-dwarf4-1.symdex").expect("an index");
        let index = Index::open(golden).expect("an index");
        let mut taken = 0;
        let whole = Overview::new(&index, |bytes| {
            taken += bytes;
            Some(())
        });
        let whole = whole.expect("an overview");
        assert!(taken >= 96 * whole.functions.len() as u64);
        assert!(matches!(Overview::new(&index, |_| None), Err(OverviewError::NoMemory)));
    }
}
