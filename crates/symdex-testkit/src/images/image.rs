//! Images with random contents, and the answers of a linear scan of them.

use std::io::Cursor;

use symdex::write::{
    ChunkEncoder, ChunkRanges, CodeRange, EncodedReadableNames, EncodedStrings, ImageInfo, InlineFrame,
    NonMaxU32, Writer,
};
use symdex::{Arch, Counts, ImageId, LinePolicy, Table};

/// A generator of pseudo-random numbers (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// An image's two tables, each as if it were a single chunk, with names and files by number.
pub struct Image {
    pub id: ImageId,
    pub chunk_span: u32,
    pub names: Vec<Vec<u8>>,
    /// For each name, its readable form, if it has another one; nothing for an index without readable names.
    pub readable: Vec<Option<Vec<u8>>>,
    pub files: Vec<Vec<u8>>,
    pub tables: [ChunkRanges; 2],
    /// Bytes of the image after its last range: images of some MiB have longer blocks and groups.
    pub without_code: u64,
}

/// A frame as tests compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedFrame {
    pub name: Option<Vec<u8>>,
    pub readable: Option<Vec<u8>>,
    pub file: Option<Vec<u8>>,
    pub line: Option<u32>,
    pub inlined: bool,
    pub function_start: Option<u64>,
    pub table: Table,
}

impl From<symdex::Frame<'_>> for ScannedFrame {
    fn from(frame: symdex::Frame<'_>) -> Self {
        Self {
            name: frame.name.map(Vec::from),
            readable: frame.readable.map(Vec::from),
            file: frame.file.map(Vec::from),
            line: frame.line,
            inlined: frame.inlined,
            function_start: frame.function_start.map(|start| start.0),
            table: frame.table,
        }
    }
}

impl Image {
    /// A random image that depends on `seed` only. It has gaps, functions in several ranges, line rows without a
    /// function, long functions, deep inline chains, and ranges longer than a chunk. Names, files and lines can be
    /// missing, empty, not UTF-8, 0 or of the maximum size.
    pub fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let names = strings(&mut random, "_ZN4name");
        let files = strings(&mut random, "/src/dir/file");
        let chunk_span = random.pick(&[64, 1000, 4096, 1 << 20]);
        let id = ImageId::new(&seed.to_be_bytes().repeat(2)).expect("16 bytes are an id");
        let (name_len, file_len) = (names.len() as u64, files.len() as u64);
        let dwarf = dwarf_table(&mut random, name_len, file_len);
        let symbols = symbol_table(&mut random, name_len);
        let without_code = if seed.is_multiple_of(2) { 0 } else { 8 << 20 };
        let readable = Vec::new();
        Self { id, chunk_span, names, readable, files, tables: [dwarf, symbols], without_code }
    }

    /// The same image with readable names for most of its names. They can be empty, and several names can have the
    /// same.
    #[must_use]
    pub fn with_readable_names(mut self, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut readable = |name: &Vec<u8>| match random.below(8) {
            0 | 1 => None,
            2 => Some(Vec::new()),
            3 | 4 => Some(format!("name {}", random.below(10)).into_bytes()),
            _ => Some([b"readable ".as_slice(), name].concat()),
        };
        self.readable = self.names.iter().map(&mut readable).collect();
        self
    }

    /// The same image with other names for some functions of its symbol table.
    #[must_use]
    pub fn with_aliases(mut self, seed: u64) -> Self {
        let (mut random, names) = (Random::new(seed), self.names.len() as u64);
        let ChunkRanges { ranges, frames } = &mut self.tables[1];
        for range in ranges {
            let mut parent = None;
            for _ in 0..random.pick(&[0, 0, 1, 2, 30]) {
                frames.push(InlineFrame {
                    parent,
                    name: optional(&mut random, names),
                    file: None,
                    line: None,
                });
                parent = NonMaxU32::new(frames.len() as u64 - 1);
            }
            frames.push(InlineFrame { parent, ..frames[range.exact as usize] });
            range.exact = frames.len() as u32 - 1;
            range.statement = range.exact;
        }
        self
    }

    /// The names that the symbol table has for the function that starts at `start`.
    pub fn function_names(&self, start: u64) -> Vec<Vec<u8>> {
        let ChunkRanges { ranges, frames } = self.table(Table::SymbolTable);
        let range = ranges.iter().find(|range| range.start == start && range.function_start == Some(start));
        let frame = |number: NonMaxU32| &frames[number.index()];
        let first = range.and_then(|range| NonMaxU32::new(range.exact.into()));
        let chain = std::iter::successors(first, |number| frame(*number).parent);
        chain.filter_map(|number| Some(self.names[frame(number).name?.index()].clone())).collect()
    }

    pub fn table(&self, table: Table) -> &ChunkRanges {
        match table {
            Table::Dwarf => &self.tables[0],
            Table::SymbolTable => &self.tables[1],
        }
    }

    /// The image's index.
    pub fn index(&self) -> Vec<u8> {
        let end = self.tables.iter().filter_map(|table| table.ranges.last()).map(|range| range.end).max();
        let image_size = end.unwrap_or(0) + self.without_code;
        let mut info = ImageInfo::new(self.id.clone(), "Generated", Arch::from_macho(0x0100_000c, 0));
        info.base = 0x1_0000_0000;
        info.image_size = image_size;
        info.executable = end.map(|end| (0, end)).into_iter().collect();
        let mut writer = Writer::new(info, self.chunk_span, Cursor::new(Vec::new()));
        let mut encoder = ChunkEncoder::new(self.chunk_span, image_size);
        for &table in Table::ALL {
            for (index, chunk) in cut(self.table(table), self.chunk_span) {
                let encoded = encoder.encode(table, index, &chunk).expect("a chunk as it should be");
                writer.push(encoded).expect("in order");
            }
        }
        let names = EncodedStrings::new(&self.names).expect("short names");
        let files = EncodedStrings::new(&self.files).expect("short paths");
        let mut index = Vec::new();
        let mut sealed = writer.seal().expect("encodes");
        if !self.readable.is_empty() {
            sealed.set_readable_names(EncodedReadableNames::new(&self.readable).expect("short names"));
        }
        sealed.finish(&names, &files, Counts::default(), Vec::new(), &mut index).expect("an index");
        index
    }

    /// The answer of a linear scan of one table.
    pub fn scan_table(&self, table: Table, offset: u64, policy: LinePolicy) -> Option<Vec<ScannedFrame>> {
        let ChunkRanges { ranges, frames } = self.table(table);
        let range = ranges.iter().find(|range| range.start <= offset && offset < range.end)?;
        let string = |strings: &[Vec<u8>], id: Option<NonMaxU32>| id.map(|id| strings[id.index()].clone());
        let mut answers = Vec::new();
        let mut next = Some(if policy == LinePolicy::Exact { range.exact } else { range.statement });
        while let Some(frame) = next {
            let InlineFrame { parent, name, file, line } = frames[frame as usize];
            // In the symbol table, the parents of a function are its other names.
            next = parent.map(NonMaxU32::get).filter(|_| table == Table::Dwarf);
            answers.push(ScannedFrame {
                name: string(&self.names, name),
                readable: name.and_then(|id| self.readable.get(id.index())?.clone()),
                file: string(&self.files, file),
                line: line.map(NonMaxU32::get),
                inlined: next.is_some(),
                function_start: range.function_start,
                table,
            });
        }
        Some(answers)
    }

    /// The expected answer of a lookup: the `dwarf` table; the symbol table in its gaps, and for the name of a line
    /// without a function.
    pub fn scan(&self, offset: u64, policy: LinePolicy) -> Option<Vec<ScannedFrame>> {
        let symbol = self.scan_table(Table::SymbolTable, offset, policy);
        let Some(mut answers) = self.scan_table(Table::Dwarf, offset, policy) else { return symbol };
        let last = answers.last_mut().expect("no chain is empty");
        if let (None, Some(symbol)) = (last.function_start, symbol.and_then(|mut symbol| symbol.pop())) {
            (last.name, last.readable) = (symbol.name, symbol.readable);
            last.function_start = symbol.function_start;
        }
        Some(answers)
    }

    /// Offsets to look up: at and beside both ends of each range, at the boundaries of chunks, and in the middle of
    /// each range.
    pub fn offsets(&self) -> Vec<u64> {
        let ranges = self.tables.iter().flat_map(|table| &table.ranges);
        let around = |range: &CodeRange| {
            let middle = range.start + (range.end - range.start) / 2;
            let boundary = middle / u64::from(self.chunk_span) * u64::from(self.chunk_span);
            [range.start.saturating_sub(1), range.start, middle, range.end - 1, range.end, boundary]
        };
        let mut offsets: Vec<u64> = ranges.flat_map(around).chain([0, u64::MAX]).collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }
}

/// A table in chunks of `span` bytes. Each chunk has the inline frames that its ranges use.
pub fn cut(table: &ChunkRanges, span: u32) -> Vec<(u64, ChunkRanges)> {
    let span = u64::from(span);
    let mut chunks: Vec<(u64, ChunkRanges)> = Vec::new();
    let mut numbers: Vec<Option<u32>> = Vec::new();
    for range in &table.ranges {
        let mut start = range.start;
        while start < range.end {
            let index = start / span;
            if chunks.last().is_none_or(|(last, _)| *last != index) {
                chunks.push((index, ChunkRanges::default()));
                numbers = vec![None; table.frames.len()];
            }
            let chunk = &mut chunks.last_mut().expect("just made").1;
            let mut number = |frame| copy_frame(&table.frames, frame, &mut chunk.frames, &mut numbers);
            let (exact, statement) = (number(range.exact), number(range.statement));
            let end = range.end.min((index + 1) * span);
            chunk.ranges.push(CodeRange { start, end, exact, statement, ..*range });
            start = end;
        }
    }
    chunks
}

/// The number of the copy in `to` of inline frame `frame`. Copies the frame and its callers if they are not there yet.
fn copy_frame(
    from: &[InlineFrame],
    frame: u32,
    to: &mut Vec<InlineFrame>,
    numbers: &mut [Option<u32>],
) -> u32 {
    let parent = |frame: &u32| from[*frame as usize].parent.map(NonMaxU32::get);
    let chain: Vec<u32> = std::iter::successors(Some(frame), parent).collect();
    for frame in chain.into_iter().rev() {
        if numbers[frame as usize].is_none() {
            let parent = parent(&frame).and_then(|parent| numbers[parent as usize]);
            numbers[frame as usize] = Some(to.len() as u32);
            to.push(InlineFrame {
                parent: parent.and_then(|parent| NonMaxU32::new(parent.into())),
                ..from[frame as usize]
            });
        }
    }
    numbers[frame as usize].expect("just copied")
}

fn strings(random: &mut Random, prefix: &str) -> Vec<Vec<u8>> {
    let len = 1 + random.below(40);
    let mut strings: Vec<Vec<u8>> = (0..len).map(|n| format!("{prefix}{n}").into_bytes()).collect();
    strings.extend([Vec::new(), b"\xff\xfe not UTF-8 \0".to_vec(), vec![b'x'; 5000]]);
    strings
}

fn optional(random: &mut Random, end: u64) -> Option<NonMaxU32> {
    if random.one_in(12) { None } else { NonMaxU32::new(random.below(end)) }
}

fn line(random: &mut Random) -> Option<NonMaxU32> {
    match random.below(10) {
        0 => None,
        1 => NonMaxU32::new(0),
        2 => NonMaxU32::new(u64::from(u32::MAX) - 1 - random.below(3)),
        _ => NonMaxU32::new(1 + random.below(300)),
    }
}

fn dwarf_table(random: &mut Random, names: u64, files: u64) -> ChunkRanges {
    let mut table = ChunkRanges::default();
    let mut at = random.below(3) * random.below(5000);
    let mut function_start = None;
    for _ in 0..random.below(12) {
        at += if random.one_in(2) { 0 } else { random.below(400) };
        function_start = match random.below(6) {
            0 => None,
            // Another range of the function before.
            1 => function_start,
            2 => Some(at - random.below(at + 1)),
            _ => Some(at),
        };
        at = function(random, &mut table, at, function_start, names, files);
    }
    table
}

/// Adds the ranges of one function, or of line rows without a function. Returns their end.
fn function(
    random: &mut Random,
    table: &mut ChunkRanges,
    mut at: u64,
    function_start: Option<u64>,
    names: u64,
    files: u64,
) -> u64 {
    let first = table.frames.len() as u64;
    let root = InlineFrame { parent: None, name: optional(random, names), file: None, line: line(random) };
    table.frames.push(root);
    let ranges = if random.one_in(8) { 90 + random.below(200) } else { 1 + random.below(8) };
    for _ in 0..ranges {
        let exact = frame(random, table, first, names, files);
        let statement = if random.one_in(4) { frame(random, table, first, names, files) } else { exact };
        let length = if random.one_in(60) { 1 + random.below(5000) } else { 1 + random.below(60) };
        table.ranges.push(CodeRange { start: at, end: at + length, function_start, exact, statement });
        at += length;
    }
    at
}

/// An inline frame of the function whose frames begin at `first`: an existing frame or a new one.
fn frame(random: &mut Random, table: &mut ChunkRanges, first: u64, names: u64, files: u64) -> u32 {
    let known = table.frames.len() as u64 - first;
    if random.one_in(3) {
        return (first + random.below(known)) as u32;
    }
    let new = if random.one_in(80) { 300 } else { 1 + random.below(3) };
    let mut parent = NonMaxU32::new(first + random.below(known));
    for _ in 0..new {
        let (name, file) = (optional(random, names), optional(random, files));
        table.frames.push(InlineFrame { parent, name, file, line: line(random) });
        parent = NonMaxU32::new(table.frames.len() as u64 - 1);
        if depth(&table.frames, parent) > 900 {
            break;
        }
    }
    parent.map_or(0, NonMaxU32::get)
}

fn depth(frames: &[InlineFrame], frame: Option<NonMaxU32>) -> usize {
    std::iter::successors(frame, |frame| frames[frame.index()].parent).count()
}

fn symbol_table(random: &mut Random, names: u64) -> ChunkRanges {
    let mut table = ChunkRanges::default();
    let mut at = random.below(500);
    for number in 0..random.below(20) as u32 {
        at += if random.one_in(2) { 0 } else { random.below(200) };
        table.frames.push(InlineFrame {
            parent: None,
            name: optional(random, names),
            file: None,
            line: None,
        });
        let end = at + 1 + random.below(600);
        let (function_start, exact, statement) = (Some(at), number, number);
        table.ranges.push(CodeRange { start: at, end, function_start, exact, statement });
        at = end;
    }
    table
}
