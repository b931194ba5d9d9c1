//! Checks that the annotated dump in docs/FORMAT.md matches the bytes that the writer produces for a tiny index.
//! `SYMDEX_BLESS=1 cargo test -p symdex --test plain format_document` updates the dump.

use std::io::Cursor;

use crate::dump::{Bits, Codes, Dump};
use symdex::write::{
    ChunkEncoder, ChunkRanges, CodeRange, EncodedReadableNames, EncodedStrings, EncodedUnwindRows, ImageInfo,
    InlineFrame, NonMaxU32, UnwindRange, UnwindRules, UnwindTable, Writer,
};
use symdex::{Arch, Counts, ImageId, Index, Table, UnwindRule, UnwindValue};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/FORMAT.md");
const BEGIN: &str = "<!-- the dump begins: written by crates/symdex/tests/format_document.rs -->\n```text\n";
const END: &str = "```\n<!-- the dump ends -->\n";

/// The names in the order of their ids. The fourth name has enough words for a grammar rule.
const NAMES: [&str; 5] = ["outer", "mid", "leaf", "a_b_c_d_e_f_g_h_i_j_k_l_m_n_o_flat", "plain"];

/// The readable names of two of the names.
const READABLE: [Option<&str>; 5] = [None, None, None, Some("flat(int)"), Some("plain()")];
const READABLE_BEGIN: &str = "<!-- the readable names begin: written as the dump below -->\n```text\n";
const READABLE_END: &str = "```\n<!-- the readable names end -->\n";

const UNWIND_BEGIN: &str = "<!-- the unwind rows begin: written as the dump below -->\n```text\n";
const UNWIND_END: &str = "```\n<!-- the unwind rows end -->\n";

/// What the index has in addition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extra {
    Nothing,
    ReadableNames,
    UnwindRows,
}

/// The unwind rows of `outer`, which saves two registers, and of the second half of `plain`, which saves none.
fn unwind_rows() -> EncodedUnwindRows {
    let mut table = UnwindTable::default();
    let stored = |register, offset| (register, UnwindRule::Stored(UnwindValue::Cfa(offset)));
    let leaf = UnwindRules::new(UnwindValue::Register { register: 31, offset: 0 }, 30);
    let mut framed = UnwindRules::new(UnwindValue::Register { register: 31, offset: 16 }, 30);
    framed.registers = vec![stored(29, -16), stored(30, -8)];
    let [leaf, framed] = [leaf, framed].map(|rules| table.number(&rules).expect("small"));
    let ranges = [(0x100, 0x104, leaf), (0x104, 0x13c, framed), (0x13c, 0x140, leaf), (0x150, 0x160, leaf)];
    let ranges = ranges.map(|(start, end, rules)| UnwindRange { start, end, rules });
    EncodedUnwindRows::new(&table, &ranges).expect("in order")
}

/// An index of two functions, `outer` and `plain`. `mid` is inlined into `outer`, and `leaf` is inlined into `mid`.
/// `plain` follows `outer` and is only in the symbol table. Its second name is `a_b_..._flat`.
fn tiny(extra: Extra) -> Vec<u8> {
    let id = ImageId::new(&[0xa0, 0xa1, 0xa2, 0xa3]).expect("4 bytes are an id");
    let number = NonMaxU32::new;
    let frame = |parent, name, file, line| InlineFrame { parent, name: number(name), file, line };
    let file = number(0);
    let dwarf = ChunkRanges {
        ranges: vec![
            CodeRange { start: 0x100, end: 0x110, function_start: Some(0x100), exact: 0, statement: 0 },
            CodeRange { start: 0x110, end: 0x118, function_start: Some(0x100), exact: 3, statement: 3 },
            CodeRange { start: 0x118, end: 0x120, function_start: Some(0x100), exact: 4, statement: 3 },
            CodeRange { start: 0x120, end: 0x140, function_start: Some(0x100), exact: 0, statement: 0 },
        ],
        frames: vec![
            frame(None, 0, file, number(13)),
            frame(None, 0, file, number(14)),
            frame(number(1), 1, file, number(8)),
            frame(number(2), 2, file, number(5)),
            frame(number(2), 2, file, number(0)),
        ],
    };
    let symbols = ChunkRanges {
        ranges: vec![CodeRange {
            start: 0x140,
            end: 0x160,
            function_start: Some(0x140),
            exact: 1,
            statement: 1,
        }],
        frames: vec![frame(None, 3, None, None), frame(number(0), 4, None, None)],
    };
    let mut info = ImageInfo::new(id.clone(), "tiny", Arch::from_macho(0x0100_000c, 0));
    info.base = 0x1_0000_0000;
    info.image_size = 0x160;
    info.executable = vec![(0x100, 0x160)];
    let mut writer = Writer::new(info, 0x1000, Cursor::new(Vec::new()));
    let mut encoder = ChunkEncoder::new(0x1000, 0x160);
    for (table, chunk) in [(Table::Dwarf, dwarf), (Table::SymbolTable, symbols)] {
        let chunk = encoder.encode(table, 0, &chunk).expect("a chunk");
        writer.push(chunk).expect("in order");
    }
    let names = EncodedStrings::new(&NAMES).expect("short");
    let files = EncodedStrings::new(&["/src/t.c"]).expect("short");
    let counts = Counts { units: 1, functions: 1, ranges: 4, symbols: 1, ..Counts::default() };
    let mut index = Vec::new();
    let mut sealed = writer.seal().expect("encodes");
    match extra {
        Extra::Nothing => {}
        Extra::ReadableNames => {
            sealed.set_readable_names(EncodedReadableNames::new(&READABLE).expect("short"));
        }
        Extra::UnwindRows => sealed.set_unwind_rows(unwind_rows()),
    }
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
    let names = ["metadata", "codes", "files", "checksums", "names", "chunks"];
    let [metadata, codes_size, ..] = names.map(|name| dump.number(8, &format!("size of {name} {{}}")));
    dump.field(16, "digest");
    dump.number(4, "checksum of bytes 0 to 87");

    dump.heading("metadata");
    let end = dump.at + usize::try_from(metadata).expect("small");
    dump.number(4, "checksum");
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
    for what in ["units", "functions", "ranges", "symbols", "names", "files"] {
        dump.number(8, &format!("counts.{what}"));
    }
    for what in ["functions", "inlined", "rows", "symbols", "functions_outside", "symbols_outside"] {
        dump.number(8, &format!("seen.{what}"));
    }
    dump.number(8, "partial: none");
    string(&mut dump, "builder");
    dump.field(1, "input_digest: none");
    for table in ["dwarf", "symbol_table"] {
        dump.number(8, &format!("{table}: first chunk"));
        dump.number(8, &format!("{table}: number of chunks"));
    }
    assert_eq!(dump.at, end, "all of the metadata is explained");

    let end = dump.at + usize::try_from(codes_size).expect("small");
    dump.heading("codes");
    let (codes, places) = codes_section(&mut dump);
    assert_eq!(dump.at, end, "all of the codes are explained");
    dump.heading("files");
    strings(&mut dump, "file");
    dump.heading("checksums");
    for what in ["codes", "files", "names", "chunks"] {
        dump.number(4, &format!("{what}: page 0"));
    }
    dump.heading("names");
    strings(&mut dump, "name");
    dump.heading("chunks");
    dwarf_chunk(&mut dump, &codes, places[1] - places[0]);
    symbol_chunk(&mut dump, &codes, places[2] - places[1]);
    assert_eq!(dump.at, file.len(), "all of the file is explained");
    dump.out
}

/// Dumps the section of the names or the section of the files.
fn strings(dump: &mut Dump<'_>, what: &str) {
    let rules = dump.varint("rules: {}");
    let symbols = dump.varint(&format!("symbols of all {what}s {{}}"));
    let width = dump.number(1, "w {}, the bits of a symbol");
    let longest = dump.number(1, "length of the longest terminal {}");
    let counts: Vec<u64> =
        (1..=longest).map(|len| dump.varint(&format!("terminals of length {len}"))).collect();
    dump.field(4, "group 0: its first symbol");
    let mut bits = Bits { bytes: &dump.bytes[dump.at..], at: 0 };
    let lens: Vec<String> =
        (0..16).map(|_| bits.take(4)).filter(|len| *len != 0).map(|len| len.to_string()).collect();
    dump.field(8, &format!("how many symbols each {what} has: {}", lens.join(", ")));
    for (part, len) in
        [("rules stand for".to_owned(), 2 * rules), (format!("symbols of the {what}s:"), symbols)]
    {
        let size = usize::try_from((len * width).div_ceil(8)).expect("small");
        let mut bits = Bits { bytes: &dump.bytes[dump.at..dump.at + size], at: 0 };
        let numbers: Vec<String> = (0..len).map(|_| bits.take(width).to_string()).collect();
        dump.field(size, &format!("{part} {}", numbers.join(" ")));
    }
    let mut terminal = 0;
    for (len, count) in (1..).zip(counts).filter(|(_, count)| *count != 0) {
        let size = len * usize::try_from(count).expect("small");
        let texts = dump.bytes[dump.at..dump.at + size].chunks(len).map(String::from_utf8_lossy);
        let texts = texts.collect::<Vec<_>>().join(" ");
        dump.field(size, &format!("terminals from {terminal} on: {texts}"));
        terminal += count;
    }
}

/// Dumps the head of a chunk of `size` bytes. The chunk has one row of each kind, and the rows take no bits. Returns
/// the size of the blocks and the size of the source locations, in bytes.
fn chunk_head(dump: &mut Dump<'_>, what: &str, size: usize) -> [u64; 2] {
    dump.varint(&format!("{what} chunk 0: blocks"));
    dump.varint("source locations");
    let blocks = dump.varint("bytes of the blocks");
    dump.field(5, "widths of the columns of the rows");
    [blocks, size as u64 - 8 - blocks]
}

fn dwarf_chunk(dump: &mut Dump<'_>, codes: &Codes<'_>, size: usize) {
    let rows = dump.at;
    let [blocks, sources] = chunk_head(dump, "dwarf", size);
    assert_eq!(dump.bytes[rows + 3..rows + 8], [0; 5], "rows without bits");
    let numbers = [
        (8, "a gap"),
        (0, "0x100 bytes"),
        (8, "function:"),
        (2, "starts here"),
        (9, "defines 1 inline frame without a caller"),
        (20, "frame 1: source location 0, new"),
        (5, "16 bytes"),
        (11, "defines 3, the first without a caller"),
        (20, "frame 2: source location 1, new"),
        (23, "frame 3 in it: source location 2, new"),
        (23, "frame 4 in that: source location 3, new"),
        (7, "8 bytes"),
        (17, "defines 1, its caller is frame 3, 1 above frame 4; statement: as before, frame 4"),
        (21, "frame 5: source location 4, new"),
        (5, "8 bytes"),
        (19, "defines none: the 5th most recent, frame 1"),
        (4, "32 bytes"),
        (19, "a gap"),
        (0, "0xec0 bytes"),
    ];
    dump.coded(blocks, "block 0: bit, bits, context, number", codes, &numbers);
    let numbers = [
        (25, "source location 0: a new name"),
        (27, "id 0, stored as 1"),
        (28, "file 0, stored as 1"),
        (30, "line 13, stored as 14"),
        (25, "source location 1: the name of 0"),
        (31, "line 13 + 1"),
        (26, "source location 2: a new name"),
        (27, "id 1"),
        (28, "the same file"),
        (29, "line 13 - 5"),
        (25, "source location 3: a new name"),
        (27, "id 2"),
        (28, "the same file"),
        (29, "line 8 - 3"),
        (25, "source location 4: the name of 3"),
        (31, "line 5 - 5"),
    ];
    dump.coded(sources, "source locations", codes, &numbers);
}

fn symbol_chunk(dump: &mut Dump<'_>, codes: &Codes<'_>, size: usize) {
    let [blocks, sources] = chunk_head(dump, "symbol_table", size);
    let numbers = [
        (8, "a gap"),
        (0, "0x140 bytes"),
        (8, "function:"),
        (2, "starts here"),
        (9, "defines 2, the first without a caller"),
        (20, "frame 1, the alias: source location 0, new"),
        (23, "frame 2, the name: source location 1, new"),
        (6, "32 bytes"),
        (14, "a gap"),
        (0, "0xea0 bytes"),
    ];
    dump.coded(blocks, "block 0", codes, &numbers);
    let numbers = [
        (25, "source location 0: a new name"),
        (27, "id 3, stored as 4"),
        (25, "source location 1: a new name"),
        (27, "id 4"),
    ];
    dump.coded(sources, "source locations", codes, &numbers);
}

/// Dumps the codes and the boundaries of the chunks.
fn codes_section<'a>(dump: &mut Dump<'a>) -> (Codes<'a>, [usize; 3]) {
    let size = usize::try_from(dump.number(2, "bytes of the codes {}")).expect("small");
    let codes = Codes::of(&dump.bytes[dump.at..dump.at + size], 35);
    code_words(dump, &codes);
    dump.number(1, "g");
    let width = dump.number(1, "width of a place");
    let bytes = &dump.bytes[dump.at..dump.at + usize::try_from((3 * width).div_ceil(8)).expect("small")];
    let mut bits = Bits { bytes, at: 0 };
    let places = [(); 3].map(|()| usize::try_from(bits.take(width)).expect("small"));
    dump.field(bytes.len(), &format!("places: {places:x?}"));
    (codes, places)
}

/// Dumps the codes of all contexts.
fn code_words(dump: &mut Dump<'_>, codes: &Codes<'_>) {
    let mut unused = 0;
    for (context, code) in codes.0.iter().enumerate() {
        let words = codes.words(context).into_iter();
        let words = words.map(|(symbol, word)| format!("{symbol} is {word}")).collect::<Vec<_>>().join(", ");
        match code[0] {
            0 => {
                unused += 1;
                if codes.0.get(context + 1).is_none_or(|next| next[0] != 0) {
                    dump.field(unused, &format!("contexts to {context} do not occur"));
                    unused = 0;
                }
            }
            1 => drop(dump.field(2, &format!("context {context}: {} alone", code[1]))),
            _ => {
                dump.field(10, &format!("context {context}: lengths"));
                dump.field(code.len() - 10, &words);
            }
        }
    }
}

/// Dumps the optional section of readable names.
fn explain_readable(file: &[u8]) -> String {
    let sections = Index::open(file).expect("as written").sections();
    let section = sections.iter().find(|section| section.name == "readable names").expect("it has them");
    let mut dump = Dump::new(file);
    dump.at = usize::try_from(section.offset).expect("small");
    dump.number(8, "size of the contents {}");
    dump.field(4, "readable names: 2");
    dump.field(4, "names 0 to 63: no readable names before");
    dump.field(8, "those of names 3 and 4");
    strings(&mut dump, "name");
    dump.number(4, "checksum of page 0");
    assert_eq!(dump.at, file.len(), "nothing follows");
    dump.out
}

/// Dumps the optional section of unwind rows.
fn explain_unwind(file: &[u8]) -> String {
    let sections = Index::open(file).expect("as written").sections();
    let section = sections.iter().find(|section| section.name == "unwind rows").expect("it has them");
    let mut dump = Dump::new(file);
    dump.at = usize::try_from(section.offset).expect("small");
    dump.number(8, "size of the contents {}");
    dump.varint("blocks: {}");
    dump.varint("end of the last range: {}");
    dump.varint("rules: {}");
    dump.varint("steps: {}");
    dump.varint("layouts: {}");
    let codes_size = usize::try_from(dump.varint("bytes of the codes: {}")).expect("small");
    dump.varint("bytes of the layouts: {}");
    let blocks_size = dump.varint("bytes of the blocks: {}");
    let mut widths = |len: usize, what: &str| -> Vec<u64> {
        dump.field(len, &format!("widths of the columns of {what}"))
            .iter()
            .map(|width| (*width).into())
            .collect()
    };
    let widths = [widths(2, "blocks"), widths(4, "rules"), widths(2, "steps"), widths(1, "layouts")];
    let codes = Codes::of(&dump.bytes[dump.at..dump.at + codes_size], 12);
    code_words(&mut dump, &codes);
    for (widths, rows, what) in [
        (&widths[0], 1, "block: its start, and its position in the blocks"),
        (&widths[1], 3, "rules: first step, layout plus 1, register of the CFA plus 1, offset folded"),
        (&widths[2], 1, "steps: the rule, and the length"),
        (&widths[3], 2, "places of the layouts"),
    ] {
        let size = (rows * widths.iter().sum::<u64>()).div_ceil(8);
        let bytes = &dump.bytes[dump.at..dump.at + usize::try_from(size).expect("small")];
        let mut bits = Bits { bytes, at: 0 };
        let rows: Vec<Vec<u64>> =
            (0..rows).map(|_| widths.iter().map(|width| bits.take(*width)).collect()).collect();
        dump.field(bytes.len(), &format!("{what}: {rows:x?}"));
    }
    dump.varint("layout 0: flags");
    dump.varint("the return address is in register {}");
    dump.varint("registers that have rules: {}");
    dump.varint("layout 1: flags");
    dump.varint("the return address is in register {}");
    dump.varint("registers that have rules: {}");
    dump.varint("register {}");
    dump.varint("stored at the CFA plus");
    dump.varint("-16, folded");
    dump.varint("the next register");
    dump.varint("stored at the CFA plus");
    dump.varint("-8, folded");
    let numbers = [
        (1, "after a gap, the step 0: rule 1, and a length follows"),
        (10, "{} bytes"),
        (0, "no step"),
        (9, "rule 2"),
        (11, "{} bytes"),
        (0, "no step"),
        (9, "rule 1"),
        (11, "{} bytes"),
        (0, "no step"),
        (9, "a gap"),
        (10, "{} bytes"),
        (1, "after a gap, the step 0"),
        (10, "{} bytes"),
    ];
    dump.coded(blocks_size, "block 0: bit, bits, context, number", &codes, &numbers);
    dump.number(4, "checksum of page 0");
    assert_eq!(dump.at, file.len(), "nothing follows");
    dump.out
}

#[test]
fn the_document_shows_what_an_index_looks_like() {
    let [file, readable, unwind] = [Extra::Nothing, Extra::ReadableNames, Extra::UnwindRows].map(tiny);
    for file in [&file, &readable, &unwind] {
        Index::open(&file[..]).expect("as written").verify().expect("whole");
    }
    let document = std::fs::read_to_string(DOCUMENT).expect("docs/FORMAT.md is there");
    let shown = with_dump(&document, [READABLE_BEGIN, READABLE_END], &explain_readable(&readable));
    let shown = with_dump(&shown, [UNWIND_BEGIN, UNWIND_END], &explain_unwind(&unwind));
    let shown = with_dump(&shown, [BEGIN, END], &explain(&file));
    if std::env::var_os("SYMDEX_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(DOCUMENT, shown).expect("written");
        return;
    }
    assert!(
        shown == document,
        "docs/FORMAT.md shows another index than is written today. If the format was meant to change, change what \
         the document says, and run `SYMDEX_BLESS=1 cargo test -p symdex --test plain format_document` for the dumps"
    );
}

/// `document` with `dump` between two lines.
fn with_dump(document: &str, [begin, end]: [&str; 2], dump: &str) -> String {
    let (before, rest) = document.split_once(begin).expect("FORMAT.md has the dump");
    let (_, after) = rest.split_once(end).expect("FORMAT.md has the dump");
    [before, begin, dump, end, after].concat()
}
