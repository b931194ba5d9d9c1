//! The annotated dump in docs/FORMAT.md is what a tiny index looks like today; `SYMDEX_BLESS=1 cargo test -p symdex --test
//! format_document` writes it anew.

use std::fmt::Write as _;

use std::io::Cursor;

use symdex::write::{
    ChunkEncoder, ChunkRanges, EncodedFiles, EncodedNames, Id32, ImageInfo, Loc, Range, Writer,
};
use symdex::{Arch, BuildOptions, Counts, ImageId, Index, RowRule, Table};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/FORMAT.md");
const BEGIN: &str = "<!-- the dump begins: written by crates/symdex/tests/format_document.rs -->\n```text\n";
const END: &str = "```\n<!-- the dump ends -->\n";

/// By id. The fourth has as many words as make a rule.
const NAMES: [&str; 5] = ["outer", "mid", "leaf", "a_b_c_d_e_f_g_h_i_j_k_l_m_n_o_flat", "plain"];

/// `outer`, into which `mid` is inlined, and `leaf` into that; behind it `plain`, which only the symbol table knows, and which
/// is also called `a_b_..._flat`.
fn tiny() -> Vec<u8> {
    let id = ImageId::new(&[0xa0, 0xa1, 0xa2, 0xa3]).expect("4 bytes are an id");
    let options = BuildOptions { compression_level: 3 };
    let number = Id32::new;
    let loc = |parent, name, file, line| Loc { parent, name: number(name), file, line };
    let file = number(0);
    let dwarf = ChunkRanges {
        ranges: vec![
            Range { start: 0x100, end: 0x110, function_start: Some(0x100), exact: 0, statement: 0 },
            Range { start: 0x110, end: 0x118, function_start: Some(0x100), exact: 3, statement: 3 },
            Range { start: 0x118, end: 0x120, function_start: Some(0x100), exact: 4, statement: 3 },
            Range { start: 0x120, end: 0x140, function_start: Some(0x100), exact: 0, statement: 0 },
        ],
        locs: vec![
            loc(None, 0, file, number(13)),
            loc(None, 0, file, number(14)),
            loc(number(1), 1, file, number(8)),
            loc(number(2), 2, file, number(5)),
            loc(number(2), 2, file, number(0)),
        ],
    };
    let symbols = ChunkRanges {
        ranges: vec![Range { start: 0x140, end: 0x160, function_start: Some(0x140), exact: 1, statement: 1 }],
        locs: vec![loc(None, 3, None, None), loc(number(0), 4, None, None)],
    };
    let info = ImageInfo {
        id: id.clone(),
        image_name: "tiny".to_owned(),
        arch: Arch::from_macho(0x0100_000c, 0),
        base: 0x1_0000_0000,
        image_size: 0x160,
        executable: vec![(0x100, 0x160)],
        text_exec_base: None,
        row_rule: RowRule::First,
    };
    let mut writer = Writer::new(info, 0x1000, options, Cursor::new(Vec::new()));
    let mut encoder = ChunkEncoder::new(&id, 0x1000, options).expect("level 3");
    let tables = [(Table::Dwarf, dwarf, 0, 0), (Table::SymbolTable, symbols, 3, 1)];
    for (table, chunk, new_names, new_files) in tables {
        let chunk = encoder.encode(table, 0, &chunk, new_names, new_files).expect("a chunk");
        writer.push(chunk).expect("in order");
    }
    let names = EncodedNames::new(&NAMES).expect("short");
    let files = EncodedFiles::new(&id, &["/src/t.c"], options).expect("short");
    let counts = Counts { units: 1, functions: 1, ranges: 4, symbols: 1, ..Counts::default() };
    let mut index = Vec::new();
    writer.finish(&names, &files, counts, Vec::new(), &mut index).expect("an index");
    index
}

/// Bytes with what they mean, field after field.
struct Dump<'a> {
    bytes: &'a [u8],
    at: usize,
    indent: &'static str,
    out: String,
}

impl<'a> Dump<'a> {
    fn new(bytes: &'a [u8], indent: &'static str) -> Self {
        Self { bytes, at: 0, indent, out: String::new() }
    }

    fn heading(&mut self, text: &str) {
        writeln!(self.out, "{}-- {text}", self.indent).expect("a string takes all");
    }

    /// The next `size` bytes, which mean `meaning`.
    fn field(&mut self, size: usize, meaning: &str) -> &'a [u8] {
        let field = &self.bytes[self.at..self.at + size];
        let rows: Vec<String> = if size > 16 && field.iter().all(|byte| *byte == 0) {
            vec![format!("{size} zero bytes")]
        } else {
            let row = |row: &[u8]| row.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
            field.chunks(16).map(row).collect()
        };
        for (number, row) in rows.iter().enumerate() {
            let (at, meaning) = (self.at + 16 * number, if number == 0 { meaning } else { "" });
            let line = format!("{}{at:04x}  {row:<23}  {meaning}", self.indent);
            writeln!(self.out, "{}", line.trim_end()).expect("a string takes all");
        }
        self.at += size;
        field
    }

    /// A little-endian number of `size` bytes.
    fn number(&mut self, size: usize, meaning: &str) -> u64 {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&self.bytes[self.at..self.at + size]);
        let value = u64::from_le_bytes(bytes);
        self.field(size, &meaning.replace("{}", &format!("{value:#x}")));
        value
    }

    /// A varint.
    fn varint(&mut self, meaning: &str) -> u64 {
        let size = 1 + self.bytes[self.at..].iter().position(|byte| *byte < 0x80).expect("a varint ends");
        let value = (0..size).map(|n| u64::from(self.bytes[self.at + n] & 0x7f) << (7 * n)).sum();
        self.field(size, &meaning.replace("{}", &format!("{value:#x}")));
        value
    }

    fn varints(&mut self, meanings: &[&str]) {
        for meaning in meanings {
            self.varint(meaning);
        }
    }

    /// A stored frame of `size` bytes, and what `payload` says of its payload.
    fn frame(&mut self, size: u64, what: &str, payload: impl FnOnce(&mut Dump<'_>)) {
        self.number(8, &format!("{what}: checksum"));
        let size = usize::try_from(size).expect("small") - 8;
        let stored = self.field(size, "zstd frame; its payload is");
        let decompressed = zstd::bulk::decompress(stored, 1 << 20).expect("a zstd frame");
        let mut inner = Dump::new(&decompressed, "          | ");
        payload(&mut inner);
        assert_eq!(inner.at, decompressed.len(), "all of the payload of {what} is explained");
        self.out += &inner.out;
    }
}

#[expect(clippy::too_many_lines, reason = "it follows the file from its first byte to its last")]
fn explain(file: &[u8]) -> String {
    let mut dump = Dump::new(file, "");
    dump.heading("header");
    dump.field(8, "magic");
    dump.number(2, "format version");
    dump.number(2, "header size");
    dump.field(1, "length of the image id");
    dump.field(1, "kind of id: the image's own");
    dump.field(2, "zero");
    dump.number(8, "incompatible features: aliases");
    dump.number(8, "compatible features");
    dump.field(4, "image id");
    dump.field(28, "its padding");
    dump.number(8, "file size {}");
    let names = ["metadata", "chunks", "dictionary", "names", "files", "directory"];
    let [metadata, chunks, dictionary, ..] = names.map(|name| {
        dump.number(8, &format!("{name}: offset {{}}"));
        dump.number(8, &format!("{name}: size {{}}"))
    });
    dump.field(16, "zero");
    dump.number(8, "checksum of bytes 0 to b7");

    dump.heading("metadata");
    let end = dump.at + usize::try_from(metadata).expect("small");
    dump.number(8, "checksum");
    dump.field(1, "id: kind");
    dump.number(8, "id: length");
    dump.field(4, "id: bytes");
    let string = |dump: &mut Dump<'_>, what: &str| {
        let size = dump.number(8, &format!("{what}: length"));
        dump.field(usize::try_from(size).expect("small"), what);
    };
    string(&mut dump, "image_name \"tiny\"");
    string(&mut dump, "arch.name \"arm64\"");
    dump.number(4, "arch.cputype");
    dump.number(4, "arch.cpusubtype");
    dump.number(8, "base {}");
    dump.number(8, "image_size {}");
    dump.number(8, "executable: one range");
    dump.number(8, "from {}");
    dump.number(8, "to {}");
    dump.field(1, "text_exec_base: none");
    dump.number(4, "chunk_span {}");
    dump.number(4, "row_rule: first");
    dump.number(4, "options.compression_level");
    for what in ["units", "functions", "ranges", "symbols", "names", "files"] {
        dump.number(8, &format!("counts.{what}"));
    }
    dump.number(8, "partial: none");
    string(&mut dump, "builder");
    for table in ["dwarf", "symbol_table"] {
        dump.number(8, &format!("{table}: first chunk"));
        dump.number(8, &format!("{table}: number of chunks"));
    }
    for (pool, part) in [("names", "group"), ("files", "block")] {
        dump.number(8, &format!("{pool}: number of strings"));
        dump.number(4, &format!("{pool}: strings in a {part}"));
    }
    assert_eq!(dump.at, end, "all of the metadata is explained");

    // The directories say how large the frames are: those of chunks before the checksum of the names' one page, that of files behind it.
    let directory = file.len() - 32 - 3 * 272 - 8;
    let size = |block: usize, at: usize| {
        let at = directory + 272 * block + 8 * (block / 2) + at;
        u64::from(u32::from_le_bytes(file[at..at + 4].try_into().expect("4 bytes")))
    };
    dump.heading("chunks");
    dump.frame(size(0, 8), "dwarf chunk 0, frame A", dwarf_structure);
    dump.frame(size(0, 136), "dwarf chunk 0, frame B", |payload| {
        payload.field(1, "pool ids");
        payload.varints(&["3 names", "ids from 0", "name 0 is id 0", "name 1 is id 1", "name 2 is id 2"]);
        payload.varints(&["1 file", "ids from 0", "file 0 is id 0"]);
    });
    dump.frame(size(1, 8), "symbol_table chunk 0, frame A", symbol_structure);
    dump.frame(size(1, 136), "symbol_table chunk 0, frame B", |payload| {
        payload.field(1, "pool ids");
        payload.varints(&["2 names", "ids from 3", "name 0 is id 3", "name 1 is id 4"]);
        payload.varints(&["1 file", "ids from 1", "file 0 is no file"]);
    });
    assert_eq!(size(0, 8) + size(0, 136) + size(1, 8) + size(1, 136), chunks);
    assert_eq!(dictionary, 0, "the dictionary's section is empty");
    dump.heading("names");
    name_page(&mut dump);
    dump.heading("files");
    dump.frame(size(2, 8), "file block 0", |payload| {
        payload.varint("size of string 0");
        payload.field(8, "\"/src/t.c\"");
    });
    dump.heading("directory");
    for what in ["dwarf chunks", "symbol_table chunks", "file blocks"] {
        if what == "file blocks" {
            dump.number(8, "names: checksum of page 0");
        }
        dump.number(8, &format!("{what}, block 0: first frame at {{}} of its section"));
        dump.number(4, "entry 0: size of frame A {}");
        dump.field(124, "31 more");
        dump.number(4, "entry 0: size of frame B {}");
        dump.field(124, "31 more");
        dump.number(8, "checksum");
    }
    dump.heading("trailer");
    dump.number(8, "file size {}");
    dump.field(16, "digest");
    dump.field(8, "magic");
    assert_eq!(dump.at, file.len(), "all of the file is explained");
    dump.out
}

fn name_page(dump: &mut Dump<'_>) {
    let rules = dump.varint("one rule");
    let symbols = dump.varint("symbols of all names {}");
    let width = dump.number(1, "w {}, the bits of a symbol");
    let longest = dump.number(1, "length of the longest terminal {}");
    let counts: Vec<u64> =
        (1..=longest).map(|len| dump.varint(&format!("terminals of length {len}"))).collect();
    dump.number(4, "group 0: its first symbol");
    dump.field(8, "how many symbols each name has: 1, 1, 1, 15, 1");
    // Each number in turn, from the lowest bits on.
    let unpack = |bytes: &[u8], len: u64| -> String {
        let bit = |at: u64| u64::from(bytes[usize::try_from(at / 8).expect("small")] >> (at % 8) & 1);
        let number = |n: u64| (0..width).map(|at| bit(n * width + at) << at).sum::<u64>();
        (0..len).map(|n| number(n).to_string()).collect::<Vec<_>>().join(" ")
    };
    for (what, len) in [("rule 0 stands for", 2 * rules), ("symbols of the names:", symbols)] {
        let size = usize::try_from((len * width).div_ceil(8)).expect("small");
        let numbers = unpack(&dump.bytes[dump.at..dump.at + size], len);
        dump.field(size, &format!("{what} {numbers}"));
    }
    let mut terminal = 0;
    for (len, count) in (1..).zip(counts) {
        for _ in 0..count {
            let text = String::from_utf8_lossy(&dump.bytes[dump.at..dump.at + len]).into_owned();
            dump.field(len, &format!("terminal {terminal}: {text:?}"));
            terminal += 1;
        }
    }
}

fn dwarf_structure(payload: &mut Dump<'_>) {
    payload.varints(&["runs", "triples", "names", "files"]);
    payload.varints(&["size of the run columns", "size of the triple columns", "size of the bodies"]);
    payload.varints(&["run 0: span {}", "run 1: span {}"]);
    payload.varints(&["run 0: a gap", "run 1: a function that starts 0 bytes before"]);
    payload.varints(&["run 0: ranges", "run 1: ranges", "run 0: size of body", "run 1: size of body"]);
    payload.varints(&["run 0: new triples", "run 1: new triples"]);
    for (column, meanings) in [
        ("name", ["new: 0", "the one before", "new: 1", "new: 2", "the one before"]),
        ("file", ["new: 0", "as guessed", "as guessed", "as guessed", "as guessed"]),
        ("line", ["0 + 13", "13 + 1", "14 - 6", "8 - 3", "5 - 5"]),
    ] {
        for (triple, meaning) in meanings.iter().enumerate() {
            payload.varint(&format!("triple {triple}: {column}: {meaning}"));
        }
    }
    payload.varints(&["range 0: length {}", "defines a loc without a parent", "loc 0: new triple, 0"]);
    payload.varints(&["range 1: length {}", "defines three locs, the first without a parent"]);
    payload.varints(&["loc 1: new triple, 1", "loc 2 in it: new triple, 2", "loc 3 in that: new triple, 3"]);
    let link = "defines a loc, parent 1 above the answer before: loc 2, another answer follows";
    payload.varints(&["range 2: length {}", link, "loc 4: new triple, 4"]);
    payload.varints(&["under statement: defines no loc, it is the second last, loc 3"]);
    payload.varints(&["range 3: defines no loc, it is the fifth last, loc 0"]);
}

fn symbol_structure(payload: &mut Dump<'_>) {
    payload.varints(&["runs", "triples", "names", "files"]);
    payload.varints(&["size of the run columns", "size of the triple columns", "size of the bodies"]);
    payload.varints(&["run 0: span {}", "run 1: span {}"]);
    payload.varints(&["run 0: a gap", "run 1: a function that starts 0 bytes before"]);
    payload.varints(&["run 0: ranges", "run 1: ranges", "run 0: size of body", "run 1: size of body"]);
    payload.varints(&["run 0: new triples", "run 1: new triples"]);
    payload.varints(&["triple 0: name: new: 0", "triple 1: name: new: 1"]);
    payload.varints(&["triple 0: file: new: 0", "triple 1: file: as guessed"]);
    payload.varints(&["triple 0: no line", "triple 1: no line"]);
    payload.varints(&["range 0: defines two locs, the first without a parent"]);
    payload.varints(&["loc 0, the alias: new triple, 0", "loc 1, the name: new triple, 1"]);
}

#[test]
fn the_document_shows_what_an_index_looks_like() {
    let file = tiny();
    Index::open(&file[..]).expect("as written").verify().expect("whole");
    let dump = explain(&file);
    let document = std::fs::read_to_string(DOCUMENT).expect("docs/FORMAT.md is there");
    let (before, rest) = document.split_once(BEGIN).expect("FORMAT.md has the dump");
    let (written, after) = rest.split_once(END).expect("FORMAT.md has the dump");
    if std::env::var_os("SYMDEX_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(DOCUMENT, [before, BEGIN, &dump, END, after].concat()).expect("written");
        return;
    }
    assert!(
        dump == written,
        "docs/FORMAT.md shows another index than is written today. If the format was meant to change, change what the document \
         says, and run `SYMDEX_BLESS=1 cargo test -p symdex --test format_document` for the dump, which is now:\n{dump}"
    );
}
