//! The annotated dump in docs/FORMAT.md is what a tiny index looks like today; `SYMDEX_BLESS=1 cargo test -p symdex --test
//! format_document` writes it anew.

mod dump;

use std::io::Cursor;

use self::dump::{BODY_SIZE, Bits, CONTEXTS, Codes, Dump};
use symdex::write::{ChunkEncoder, ChunkRanges, EncodedStrings, Id32, ImageInfo, Loc, Range, Writer};
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
    let mut encoder = ChunkEncoder::new(0x1000);
    for (table, chunk) in [(Table::Dwarf, dwarf), (Table::SymbolTable, symbols)] {
        let chunk = encoder.encode(table, 0, &chunk).expect("a chunk");
        writer.push(chunk).expect("in order");
    }
    let names = EncodedStrings::new(&NAMES).expect("short");
    let files = EncodedStrings::new(&["/src/t.c"]).expect("short");
    let counts = Counts { units: 1, functions: 1, ranges: 4, symbols: 1, ..Counts::default() };
    let mut index = Vec::new();
    let sealed = writer.seal(NAMES.len() as u64).expect("encodes");
    sealed.finish(&names, &files, counts, Vec::new(), &mut index).expect("an index");
    index
}

fn explain(file: &[u8]) -> String {
    let mut dump = Dump::new(file);
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
    let names = ["metadata", "chunks", "shared", "names", "files", "directory"];
    let [metadata, chunks, shared, ..] = names.map(|name| {
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
    for pool in ["names", "files"] {
        dump.number(8, &format!("{pool}: number of strings"));
        dump.number(4, &format!("{pool}: strings in a group"));
    }
    assert_eq!(dump.at, end, "all of the metadata is explained");

    // Where chunks begin, and their codes, stand behind them.
    let shared_at = dump.at + usize::try_from(chunks).expect("small");
    let mut ahead = Dump::new(file);
    ahead.at = shared_at;
    let (code_size, place_width) = (ahead.varint(""), ahead.number(1, ""));
    ahead.number(1, "");
    let places = ahead.field(usize::try_from((3 * place_width).div_ceil(8)).expect("small"), "");
    let codes = Codes::of(ahead.field(usize::try_from(code_size).expect("small"), ""));
    let mut bits = Bits { bytes: places, at: 0 };
    let [_, second, end] = [(); 3].map(|()| usize::try_from(bits.take(place_width)).expect("small"));
    let chunks_at = dump.at;
    dump.heading("chunks");
    dwarf_chunk(&mut dump, &codes);
    assert_eq!(dump.at, chunks_at + second);
    symbol_chunk(&mut dump, &codes);
    assert_eq!((dump.at, dump.at), (chunks_at + end, shared_at));
    dump.heading("shared");
    shared_section(&mut dump, &codes, &format!("places: 0x0, {second:#x}, {end:#x}"));
    assert_eq!(dump.at, shared_at + usize::try_from(shared).expect("small"));
    dump.heading("names");
    strings(&mut dump, "name");
    dump.heading("files");
    strings(&mut dump, "file");
    dump.heading("directory");
    for what in ["chunks", "shared", "names", "files"] {
        dump.number(8, &format!("{what}: checksum of page 0"));
    }
    dump.heading("trailer");
    dump.number(8, "file size {}");
    dump.field(16, "digest");
    dump.field(8, "magic");
    assert_eq!(dump.at, file.len(), "all of the file is explained");
    dump.out
}

/// The section of the names or of the files.
fn strings(dump: &mut Dump<'_>, what: &str) {
    let rules = dump.varint("rules: {}");
    let symbols = dump.varint(&format!("symbols of all {what}s {{}}"));
    let width = dump.number(1, "w {}, the bits of a symbol");
    let longest = dump.number(1, "length of the longest terminal {}");
    let counts: Vec<u64> =
        (1..=longest).map(|len| dump.varint(&format!("terminals of length {len}"))).collect();
    dump.number(4, "group 0: its first symbol");
    let lens = u64::from_le_bytes(dump.bytes[dump.at..dump.at + 8].try_into().expect("8 bytes"));
    let lens: Vec<String> =
        (0..16).map(|n| lens >> (4 * n) & 15).filter(|len| *len != 0).map(|len| len.to_string()).collect();
    dump.field(8, &format!("how many symbols each {what} has: {}", lens.join(", ")));
    // Each number in turn, from the lowest bits on.
    let unpack = |bytes: &[u8], len: u64| -> String {
        let bit = |at: u64| u64::from(bytes[usize::try_from(at / 8).expect("small")] >> (at % 8) & 1);
        let number = |n: u64| (0..width).map(|at| bit(n * width + at) << at).sum::<u64>();
        (0..len).map(|n| number(n).to_string()).collect::<Vec<_>>().join(" ")
    };
    for (part, len) in
        [("rules stand for".to_owned(), 2 * rules), (format!("symbols of the {what}s:"), symbols)]
    {
        let size = usize::try_from((len * width).div_ceil(8)).expect("small");
        let numbers = unpack(&dump.bytes[dump.at..dump.at + size], len);
        dump.field(size, &format!("{part} {numbers}"));
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

/// What stands before a chunk's parts: the sizes of its runs, triples and names. Its rows, one of each, take no bits.
fn chunk_head(dump: &mut Dump<'_>, what: &str) -> [u64; 3] {
    dump.varint(&format!("{what} chunk 0: runs"));
    dump.varints(&["triples", "names", "whether the triples are names alone"]);
    let sizes = ["runs", "triples", "names"].map(|part| dump.varint(&format!("size of the {part}")));
    assert_eq!(dump.field(8, "widths of the columns of rows"), [0; 8]);
    sizes
}

/// The contexts and the meanings of the numbers of a chunk's runs; both chunks have a gap and a run.
const GAP_AND_RUN: [(u8, &str); 7] = [
    (2, "run 0: a gap"),
    (0, "span {}"),
    (2, "run 1: a function that starts 0 bytes before"),
    (1, "span {}"),
    (3, "ranges, less one"),
    (4, "new triples"),
    (BODY_SIZE, "bits of its body: {}"),
];

fn dwarf_chunk(dump: &mut Dump<'_>, codes: &Codes<'_>) {
    let [runs, triples, names] = chunk_head(dump, "dwarf");
    dump.coded(runs, "runs: bit, bits, context, number", codes, &GAP_AND_RUN);
    let numbers = [
        (148, "triple 0: name: new: 0"),
        (158, "line: that of the origin, 13"),
        (148, "triple 1: name: the one before"),
        (157, "line: 13 + 1"),
        (149, "triple 2: name: new: 1"),
        (158, "line: that of the origin, 8"),
        (148, "triple 3: name: new: 2"),
        (158, "line: that of the origin, 5"),
        (148, "triple 4: name: the one before"),
        (157, "line: 5 - 5"),
    ];
    dump.coded(triples, "triples", codes, &numbers);
    let numbers = [(162, "name 0 is id 0, stored as 1"), (162, "name 1 is id 1"), (162, "name 2 is id 2")];
    dump.coded(names, "names", codes, &numbers);
    let numbers = [
        (5, "range 0: length {}"),
        (22, "defines a loc without a caller"),
        (143, "loc 0: new triple, 0"),
        (8, "range 1: length {}"),
        (25, "defines three locs, the first without a caller"),
        (143, "loc 1: new triple, 1"),
        (123, "loc 2 in it: new triple, 2"),
        (123, "loc 3 in that: new triple, 3"),
        (14, "range 2: length {}"),
        (31, "defines a loc, its caller 1 above the answer before: loc 2; statement: as before"),
        (145, "loc 4: new triple, 4"),
        (62, "range 3: defines no loc, it is the fifth youngest, loc 0"),
    ];
    let size = dump.size_of(codes, &numbers);
    dump.coded(size, "bodies", codes, &numbers);
}

fn symbol_chunk(dump: &mut Dump<'_>, codes: &Codes<'_>) {
    let [runs, triples, names] = chunk_head(dump, "symbol_table");
    dump.coded(runs, "runs", codes, &GAP_AND_RUN);
    dump.coded(
        triples,
        "triples",
        codes,
        &[(148, "triple 0: name: new: 0"), (148, "triple 1: name: new: 1")],
    );
    dump.coded(names, "names", codes, &[(162, "name 0 is id 3, stored as 4"), (162, "name 1 is id 4")]);
    let numbers = [
        (22, "range 0: defines two locs, the first without a caller"),
        (143, "loc 0, the alias: new triple, 0"),
        (123, "loc 1, the name: new triple, 1"),
    ];
    let size = dump.size_of(codes, &numbers);
    dump.coded(size, "bodies", codes, &numbers);
}

fn shared_section(dump: &mut Dump<'_>, codes: &Codes<'_>, places: &str) {
    dump.varint("bytes of the codes {}");
    let place_width = dump.number(1, "width of a place");
    assert_eq!(dump.number(1, "width of an origin's place"), 0);
    dump.field(usize::try_from((3 * place_width).div_ceil(8)).expect("small"), places);
    dump.field(CONTEXTS, "sizes of the codes");
    for (context, code) in codes.0.iter().enumerate().filter(|(_, code)| !code.is_empty()) {
        let words = codes.words(context);
        let words: Vec<String> = words.iter().map(|(symbol, word)| format!("{symbol} is {word}")).collect();
        if code.len() == 1 {
            dump.field(1, &format!("code of context {context}: {} alone", code[0]));
        } else {
            dump.field(12, &format!("code of context {context}: words of each length"));
            dump.field(code.len() - 12, &words.join(", "));
        }
    }
    let numbers = [
        (163, "of no name: the file before, none"),
        (165, "the line before, none"),
        (163, "of name 0: the next file, 0"),
        (164, "line 13, stored as 14"),
        (163, "of name 1: the file before"),
        (165, "line 13 - 5"),
        (163, "of name 2: the file before"),
        (165, "line 8 - 3"),
        (163, "of name 3: the file before"),
        (165, "the line before"),
        (163, "of name 4: the file before"),
        (165, "the line before"),
    ];
    let size = dump.size_of(codes, &numbers);
    dump.coded(size, "origins", codes, &numbers);
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
