//! Checks that the annotated dumps in docs/FORMAT.md have the bytes that the writer produces for a tiny index.
//! `SYMDEX_BLESS=1 cargo test -p symdex --test plain format_document` updates the bytes.

use std::io::Cursor;

use symdex::write::{
    ChunkEncoder, ChunkRanges, CodeRange, EncodedReadableNames, EncodedStrings, EncodedUnwindRows, ImageInfo,
    InlineFrame, NonMaxU32, UnwindRange, UnwindRules, UnwindTable, Writer,
};
use symdex::{Arch, Counts, ImageId, Index, Table, UnwindRule, UnwindValue};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/FORMAT.md");

/// The names in the order of their ids. The fourth name has enough words for a grammar rule.
const NAMES: [&str; 5] = ["outer", "mid", "leaf", "a_b_c_d_e_f_g_h_i_j_k_l_m_n_o_flat", "plain"];

/// The readable names of two of the names.
const READABLE: [Option<&str>; 5] = [None, None, None, Some("flat(int)"), Some("plain()")];

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

/// `document` with the bytes of `written` in the rows of the dump after `begin`. The rows keep their lengths.
fn with_bytes(document: &str, begin: &str, mut written: &[u8]) -> String {
    let (before, rest) = document.split_once(begin).expect("FORMAT.md has the dump");
    let (dump, after) = rest.split_once("```\n<!--").expect("the dump ends");
    let (mut shown, size) = (String::new(), written.len());
    let mut first = None;
    for line in dump.lines() {
        if !line.starts_with(|c: char| c.is_ascii_hexdigit()) {
            shown += &format!("{line}\n");
            continue;
        }
        let mut columns = line.splitn(3, "  ");
        let [at, row, meaning] = [(); 3].map(|()| columns.next().unwrap_or_default().trim());
        let place = usize::from_str_radix(at, 16).expect("a place");
        assert_eq!(*first.get_or_insert(place) + size - written.len(), place, "{line}");
        let zeros = row.strip_suffix(" zero bytes").map(|count| count.parse().expect("a number"));
        let len = zeros.unwrap_or(row.split(' ').count());
        let (bytes, others) = written.split_at_checked(len).expect("as many bytes as in the document");
        written = others;
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_same = zeros.is_some() && bytes.iter().all(|byte| *byte == 0);
        let row = if is_same { row.to_owned() } else { hex.join(" ") };
        shown += format!("{at}  {row:<23}  {meaning}").trim_end();
        shown += "\n";
    }
    assert!(written.is_empty(), "{} bytes are not in the document", written.len());
    [before, begin, &shown, "```\n<!--", after].concat()
}

#[test]
fn the_document_shows_what_an_index_looks_like() {
    let document = std::fs::read_to_string(DOCUMENT).expect("docs/FORMAT.md is there");
    let of_section = |name: &str, file: &[u8]| {
        let sections = Index::open(file).expect("as written").sections();
        let section = sections.iter().find(|section| section.name == name).expect("it has the section");
        file[usize::try_from(section.offset).expect("small")..].to_vec()
    };
    let [file, readable, unwind] = [Extra::Nothing, Extra::ReadableNames, Extra::UnwindRows].map(tiny);
    for file in [&file, &readable, &unwind] {
        Index::open(&file[..]).expect("as written").verify().expect("whole");
    }
    let shown = with_bytes(&document, "<!-- the dump begins", &file);
    let readable = of_section("readable names", &readable);
    let shown = with_bytes(&shown, "<!-- the readable names begin", &readable);
    let unwind = of_section("unwind rows", &unwind);
    let shown = with_bytes(&shown, "<!-- the unwind rows begin", &unwind);
    if std::env::var_os("SYMDEX_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(DOCUMENT, shown).expect("written");
        return;
    }
    assert!(
        shown == document,
        "docs/FORMAT.md shows other bytes than are written today. If the format was meant to change, change what the \
         document says; `SYMDEX_BLESS=1 cargo test -p symdex --test plain format_document` writes the bytes"
    );
}
