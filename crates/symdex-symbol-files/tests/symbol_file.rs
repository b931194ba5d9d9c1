//! Symbol files of Breakpad and GSYM, and symbols of kernels. What real ones answer is compared in `imported.rs`.

use std::time::{Duration, Instant};

use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table, UnwindValue};
use symdex_build::{BuildOptions, Error};

/// The index of a symbol file.
fn imported(bytes: &[u8]) -> Index<Vec<u8>> {
    let file = symdex_symbol_files::read(bytes).expect("a symbol file");
    let built =
        BuildOptions::new().allow_empty(true).build_symbol_file_into(&file, Vec::new()).expect("builds");
    let index = Index::open(built.bytes).expect("opens");
    index.verify().expect("intact");
    index
}

/// A symbol file with these records.
fn breakpad(records: &str) -> String {
    format!("MODULE Linux x86_64 33221100554477668899AABBCCDDEEFF0 a.so\n{records}")
}

/// The frames at an address as text, the innermost first.
fn answer(index: &Index<Vec<u8>>, address: u64) -> String {
    let mut scratch = Scratch::default();
    let frames = index.lookup(ImageOffset(address), LinePolicy::Exact, &mut scratch).expect("intact");
    let Some(frames) = frames else { return "gap".to_owned() };
    let text = |frame: symdex::Frame<'_>| {
        let name = frame.name_lossy().unwrap_or("?".into()).into_owned();
        let place = frame.file_lossy().map(|file| format!(" {file}:{}", frame.line.unwrap_or(0)));
        name + &place.unwrap_or_default()
    };
    frames.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// What an index lacks, by reason.
fn losses(index: &Index<Vec<u8>>) -> Vec<(&str, u64)> {
    index.metadata().partial.iter().map(|partial| (partial.reason.as_str(), partial.count)).collect()
}

#[test]
fn records_become_frames() {
    let records = "FILE 0 /a/b.c\nFILE 7 ??\nINLINE_ORIGIN 3 inner(int, char)\nINLINE_ORIGIN 4 ??\n\
        FUNC m 1000 40 8 outer(int)\nINLINE 0 9 0 3 1010 8 1020 4\nINLINE 1 4 7 4 1012 2\n\
        1000 10 5 0\n1010 8 21 0\n1020 4 0 0\n1024 8 6 7\n\
        PUBLIC m 2000 0 pub name\r\nSTACK CFI INIT 2000 30 .cfa: $rsp 8 +\nSTACK CFI 2001 .cfa: $rsp 16 +\n\
        STACK WIN 4 1000 40 0 0 0 0 0 0 0 0\nINFO URL https://example.com\n";
    let index = imported(breakpad(records).as_bytes());
    let expected = [
        (0xfff, "gap"),
        (0x1000, "outer(int) /a/b.c:5"),
        (0x1010, "inner(int, char) /a/b.c:21, outer(int) /a/b.c:9"),
        (0x1012, "? /a/b.c:21, inner(int, char), outer(int) /a/b.c:9"),
        (0x1014, "inner(int, char) /a/b.c:21, outer(int) /a/b.c:9"),
        (0x1018, "outer(int)"),
        (0x1020, "inner(int, char) /a/b.c:0, outer(int) /a/b.c:9"),
        (0x1024, "outer(int)"),
        (0x103f, "outer(int)"),
        (0x1040, "gap"),
        (0x2000, "pub name"),
        (0x202f, "pub name"),
        (0x2030, "gap"),
    ];
    for (address, expected) in expected {
        assert_eq!(answer(&index, address), expected, "{address:#x}");
    }
    assert_eq!(losses(&index), []);
    let metadata = index.metadata();
    assert_eq!((metadata.arch.name.as_str(), metadata.image_name.as_str()), ("x86_64", "a.so"));
    assert_eq!((metadata.counts.functions, metadata.counts.symbols), (1, 1));
    assert_eq!(metadata.executable, [(0x1000, 0x2030)]);
}

#[test]
fn a_symbol_ends_where_something_else_begins() {
    let records = "PUBLIC 1000 0 a\nPUBLIC 1010 0 b\nFILE 1 f.c\nFUNC 1020 10 0 c\n1020 10 1 1\nPUBLIC 1020 0 alias\n\
        PUBLIC 1028 0 label\nFUNC 1040 8 0 d\nPUBLIC 1044 0 in_d\nPUBLIC 1080 0 last\n";
    let index = imported(breakpad(records).as_bytes());
    let expected = [
        (0x100f, "a"),
        (0x1010, "b"),
        (0x101f, "b"),
        (0x102f, "c f.c:1"),
        (0x1030, "gap"),
        (0x1047, "d"),
        (0x1048, "gap"),
        (0x1080, "last"),
        // The file does not say where the last symbol ends.
        (0x1fff, "last"),
        (0x2000, "gap"),
    ];
    for (address, expected) in expected {
        assert_eq!(answer(&index, address), expected, "{address:#x}");
    }
}

#[test]
fn of_overlapping_functions_the_inner_one_counts() {
    let records = "FILE 1 f.c\nFUNC 1000 100 0 outer\n1000 100 1 1\nFUNC 1040 20 0 inner\n1040 20 2 1\n\
        FUNC 1050 100 0 crossing\n1050 100 3 1\n";
    let index = imported(breakpad(records).as_bytes());
    let answers = [0x103f, 0x1040, 0x1050, 0x10ff, 0x1100, 0x114f].map(|address| answer(&index, address));
    assert_eq!(
        answers,
        [
            "outer f.c:1",
            "inner f.c:2",
            "crossing f.c:3",
            "crossing f.c:3",
            "crossing f.c:3",
            "crossing f.c:3"
        ]
    );
}

#[test]
fn the_id_is_that_of_the_image() {
    let module =
        |os: &str, rest: &str| format!("MODULE {os} arm64 33221100554477668899AABBCCDDEEFF0 a\n{rest}");
    let id = |text: &str| {
        let file = symdex_symbol_files::read(text.as_bytes()).expect("a symbol file");
        let built = BuildOptions::new().allow_empty(true).build_symbol_file_into(&file, Vec::new());
        built.map(|built| (file.id().expect("one").to_string(), built.warnings.len()))
    };
    let (start, uuid) = ("00112233445566778899aabbccddeeff", "33221100554477668899aabbccddeeff");
    let whole = format!("{start}01020304");
    let other = "INFO CODE_ID 0123456789\n".to_owned();
    let cases = [
        ("Linux", format!("INFO CODE_ID {}\n", whole.to_uppercase()), whole.as_str(), 0),
        ("Android", "INFO CODE_ID 0011223344 libfoo.so\n".to_owned(), "0011223344", 0),
        ("Linux", other.clone(), start, 1),
        ("Linux", String::new(), start, 1),
        ("mac", other.clone(), uuid, 0),
        ("ios", String::new(), uuid, 0),
        ("Mac", format!("INFO CODE_ID {uuid}\n"), uuid, 0),
        ("windows", other, uuid, 0),
    ];
    for (os, rest, expected, warnings) in cases {
        let found = id(&module(os, &rest)).expect("an id");
        assert_eq!(found, (expected.to_owned(), warnings), "{os} {rest}");
    }
    let none = "MODULE Linux arm64 000000000000000000000000000000000 a\n";
    assert!(matches!(id(none), Err(Error::NoId)));
    let given =
        symdex_symbol_files::read(none.as_bytes()).expect("read").with_id("abcd".parse().expect("an id"));
    assert_eq!(given.id().map(ToString::to_string).as_deref(), Some("abcd"));
}

#[test]
fn inlined_calls_of_2021_state_the_file_of_the_function() {
    let records = "FILE 0 a.c\nFILE 1 b.h\nFILE 2 c.h\nINLINE_ORIGIN 0 1 inner(int)\nINLINE_ORIGIN 1 2 middle()\n\
        INLINE_ORIGIN 2 -1 artificial\nINLINE_ORIGIN 3 3d::render()\n\
        FUNC 1000 60 0 main\nINLINE 0 42 1 1000 8 1010 20\nINLINE 1 39 0 1018 8\nINLINE 0 43 2 1040 8\n\
        INLINE 1 7 -1 0 1040 4\nINLINE 0 44 0 3 1050 8\n\
        1000 8 38 2\n1008 8 41 0\n1010 8 12 2\n1018 8 7 1\n1020 20 13 2\n1040 4 5 1\n1044 14 6 0\n";
    let index = imported(breakpad(records).as_bytes());
    let expected = [
        // The file of main is that of its first own line.
        (0x1000, "middle() c.h:38, main a.c:42"),
        (0x1008, "main a.c:41"),
        (0x1010, "middle() c.h:12, main a.c:42"),
        (0x101a, "inner(int) b.h:7, middle() c.h:39, main a.c:42"),
        (0x1040, "inner(int) b.h:5, artificial, main a.c:43"),
        (0x1044, "artificial a.c:6, main a.c:43"),
        (0x1050, "3d::render() a.c:6, main a.c:44"),
    ];
    for (address, expected) in expected {
        assert_eq!(answer(&index, address), expected, "{address:#x}");
    }
    assert_eq!(losses(&index), []);
}

#[test]
fn the_line_of_a_call_that_is_lost_is_no_line_of_its_caller() {
    let deep: String = (0..=512).map(|depth| format!("INLINE {depth} 1 1 1 1000 10\n")).collect();
    let records = format!(
        "FILE 1 f.c\nINLINE_ORIGIN 1 g\n\
         FUNC 1000 20 0 deep\n{deep}1000 10 7 1\n1010 10 8 1\n\
         FUNC 2000 20 0 unread\nINLINE 0 x 1 1 2000 10\n2000 10 7 1\n2010 10 8 1\n\
         FUNC 3000 20 0 orphan\nINLINE 1 9 1 1 3000 10\n3000 10 7 1\n3010 10 8 1\n\
         FUNC 4000 2000000 0 large\nINLINE 0 9 1 1 4000 10\n4000 10 7 1\n"
    );
    let index = imported(breakpad(&records).as_bytes());
    let innermost = |address| answer(&index, address).split(',').next().unwrap_or_default().to_owned();
    assert_eq!(innermost(0x1008), "g", "no line: it is that of a call which is nested too deeply");
    assert_eq!(answer(&index, 0x1018), "deep f.c:8");
    assert_eq!(answer(&index, 0x2008), "unread");
    assert_eq!(answer(&index, 0x3008), "orphan", "the call that it is inlined into is not stated");
    assert_eq!(answer(&index, 0x3018), "orphan f.c:8");
    assert_eq!(answer(&index, 0x4008), "large");
    assert_eq!(losses(&index).len(), 4, "{:?}", losses(&index));
}

#[test]
fn what_cannot_be_read_is_counted() {
    let records = "FILE x f.c\nFILE 1 f.c\nFUNC 1000 zz 0 a\n1000 10 1 1\nFUNC 1000 10 0 b\n1000 10 1 1\n1004 4 -1 1\n\
        INLINE 0 1 1\nINLINE 0 1 1 1000\nNONSENSE\nFUNC 1000000000 10 0 far\n1000000000 4 1 1\nFUNC 2000 10 0 cu";
    let index = imported(breakpad(records).as_bytes());
    assert_eq!(answer(&index, 0x1008), "b", "a call that cannot be read may have the lines");
    let expected = [
        ("lines of the symbol file that are not records of Breakpad", 7),
        ("the symbol file ends within a line: it may be cut short", 1),
    ];
    assert_eq!(losses(&index), expected);
}

/// A GSYM file with a function of 0x40 bytes at 0x1000, lines and an inlined call, and one without a size at 0x1080.
struct Gsym {
    is_big: bool,
    offset_size: usize,
}

impl Gsym {
    fn number(&self, value: u64, size: usize) -> Vec<u8> {
        match self.is_big {
            true => value.to_be_bytes()[8 - size..].to_vec(),
            false => value.to_le_bytes()[..size].to_vec(),
        }
    }

    fn u32(&self, value: usize) -> Vec<u8> {
        self.number(value as u64, 4)
    }

    fn bytes(&self) -> Vec<u8> {
        let strings = b"\0outer\0inner\0/src\0f.c\0tail\0";
        let [outer, inner, folder, file, tail] = [1, 7, 13, 18, 22];
        // -4 to 10, the first row in line 5; at 0x1010 line 21, at 0x1020 file 2 with line 8.
        let lines = [0x7c, 10, 5, 2, 0, 3, 16, 2, 16, 1, 2, 3, 0x73, 2, 16, 0];
        let root = [&[1, 0, 0x40, 1][..], &self.u32(outer), &[0, 0]].concat();
        let call = [&[1, 0x10, 0x10, 0][..], &self.u32(inner), &[1, 9, 0]].concat();
        let calls = [root, call].concat();
        let part = |kind, bytes: &[u8]| [&self.u32(kind), &self.u32(bytes.len()), bytes].concat();
        let head = |size, name| [self.u32(size), self.u32(name)].concat();
        let first = [head(0x40, outer), part(1, &lines), part(2, &calls), part(0, &[])].concat();
        let second = [head(0, tail), part(0, &[])].concat();
        let mut bytes = [
            self.u32(0x4753_594d),
            self.number(1, 2),
            vec![u8::try_from(self.offset_size).expect("small"), 4],
            self.number(0x10_0000, 8),
            self.u32(2),
        ]
        .concat();
        let places_at = (48 + 2 * self.offset_size).next_multiple_of(4);
        let strings_at = places_at + 8 + 4 + 3 * 8;
        bytes.extend([self.u32(strings_at), self.u32(strings.len()), vec![1, 2, 3, 4]].concat());
        bytes.resize(48, 0);
        // With one byte, the base is that of the function.
        let base = if self.offset_size == 1 { 0x1000 } else { 0 };
        bytes.extend(
            [0x1000 - base, 0x1080 - base].map(|offset| self.number(offset, self.offset_size)).concat(),
        );
        bytes.resize(places_at, 0);
        let first_at = strings_at + strings.len();
        bytes.extend([self.u32(first_at), self.u32(first_at + first.len()), self.u32(3)].concat());
        bytes.extend([0, 0, folder, file, 0, file].map(|place| self.u32(place)).concat());
        bytes.extend([&strings[..], &first, &second].concat());
        bytes
    }
}

#[test]
fn gsym_is_read_in_both_byte_orders() {
    for (is_big, offset_size) in
        [false, true].into_iter().flat_map(|big| [1, 2, 4, 8].map(|size| (big, size)))
    {
        let bytes = Gsym { is_big, offset_size }.bytes();
        let file = symdex_symbol_files::read(&bytes).expect("GSYM").named("libdemo.so.gsym");
        assert_eq!(file.arch().name, "unknown");
        let index = imported(&bytes);
        let base = if offset_size == 1 { 0 } else { 0x1000 };
        let expected = [
            (0, "outer /src/f.c:5"),
            (0x10, "inner /src/f.c:21, outer /src/f.c:9"),
            (0x1f, "inner /src/f.c:21, outer /src/f.c:9"),
            (0x20, "outer f.c:8"),
            (0x3f, "outer f.c:8"),
            (0x40, "gap"),
            (0x80, "tail"),
            (0x7f, "gap"),
        ];
        for (address, expected) in expected {
            assert_eq!(answer(&index, base + address), expected, "{address:#x} {is_big} {offset_size}");
        }
        assert_eq!((index.id().to_string().as_str(), index.metadata().base), ("01020304", 0x10_0000));
        assert_eq!(losses(&index), []);
        assert_eq!(index.metadata().chunk_len(Table::SymbolTable), 1);
    }
}

#[test]
fn a_header_that_does_not_describe_the_file_is_an_error() {
    let bytes = Gsym { is_big: false, offset_size: 4 }.bytes();
    let error = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        symdex_symbol_files::read(&bytes).expect_err("damaged").to_string()
    };
    assert!(error(4, 2).contains("GSYM of version 2; expected version 1"));
    assert!(error(6, 3).contains("offsets of addresses have 3 bytes"));
    assert!(error(7, 21).contains("an id of 21 bytes"));
    assert!(error(19, 1).contains("the addresses reaches to byte"), "{}", error(19, 1));
    assert!(error(23, 1).contains("the strings reaches to byte"), "{}", error(23, 1));
    assert!(matches!(symdex_symbol_files::read(&bytes[..40]), Err(Error::Truncated { .. })));
    let other = symdex_symbol_files::read(b"\x7fELF").expect_err("another file").to_string();
    assert!(other.contains("not a symbol file") && other.contains("MODULE"), "{other}");
}

#[test]
fn no_change_of_a_byte_is_a_panic() {
    let text = breakpad(
        "INFO CODE_ID 00112233445566778899AABBCCDDEEFF01\nFILE 1 f.c\nINLINE_ORIGIN 1 g\n\
         FUNC 1000 10 0 f\nINLINE 0 2 1 1 1004 4\n1000 10 1 1\nPUBLIC 2000 0 p\nSTACK CFI INIT 2000 10 x\n",
    );
    let gsym = [false, true].map(|is_big| Gsym { is_big, offset_size: 2 }.bytes());
    let mut read = 0;
    for file in [text.into_bytes()].into_iter().chain(gsym) {
        let changed = (0..file.len()).flat_map(|at| {
            let mut changes = vec![file[..at].to_vec()];
            changes.extend([b'1', 0xff].map(|byte| {
                let mut file = file.clone();
                file[at] = byte;
                file
            }));
            changes
        });
        for bytes in changed {
            let Ok(file) = symdex_symbol_files::read(&bytes) else { continue };
            let Ok(built) = BuildOptions::new().build_symbol_file_into(&file, Vec::new()) else { continue };
            Index::open(built.bytes).expect("opens").verify().expect("intact");
            read += 1;
        }
    }
    assert!(read > 500, "{read}");
}

/// The losses of a hostile file, whose index must be small and made at once.
fn hostile_losses(bytes: &[u8]) -> Vec<String> {
    let begun = Instant::now();
    let index = imported(bytes);
    // It takes a tenth of a second.
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert!(index.as_bytes().len() < 20 << 20, "{} bytes", index.as_bytes().len());
    losses(&index).into_iter().map(|(reason, _)| reason.to_owned()).collect()
}

#[test]
fn small_files_make_small_indexes() {
    // Each chunk of the function would repeat 500 calls.
    let calls: String = (0..500).map(|depth| format!("INLINE {depth} 1 1 1 0 ffffffff\n")).collect();
    let large =
        breakpad(&format!("FILE 1 f\nINLINE_ORIGIN 1 g\nFUNC 0 ffffffff 0 a\n{calls}0 ffffffff 1 1\n"));
    assert_eq!(hostile_losses(large.as_bytes()), ["inlined calls left out: their function is too large"]);

    // 2,000 calls of the function, each with 500 calls below it that are stated once.
    let many: String = (0..2000).map(|call| format!("INLINE 0 {call} 1 1 {:x} 1\n", 2 * call)).collect();
    let deep: String = (1..500).map(|depth| format!("INLINE {depth} 1 1 1 0 fa0\n")).collect();
    let text = breakpad(&format!("FILE 1 f\nINLINE_ORIGIN 1 g\nFUNC 0 fa0 0 a\n{many}{deep}0 fa0 1 1\n"));
    let losses = [
        "inlined calls left out: they overlap too much",
        "inlined calls without the call that they are inlined into",
    ];
    assert_eq!(hostile_losses(text.as_bytes()), losses);

    let deep: String = (0..2000).map(|depth| format!("INLINE {depth} 1 1 1 0 10\n")).collect();
    let text = breakpad(&format!("FILE 1 f\nINLINE_ORIGIN 1 g\nFUNC 0 10 0 a\n{deep}0 10 1 1\n"));
    assert_eq!(hostile_losses(text.as_bytes()), ["inlined subroutines nested too deeply"]);

    // 10,000 functions that overlap, each with a call of a function whose name has 60,000 bytes.
    let name = "n".repeat(60_000);
    let functions: String =
        (0..10_000).map(|start| format!("FUNC {start:x} 5000 0 f\nINLINE 0 1 1 1 {start:x} 1\n")).collect();
    let text = breakpad(&format!("FILE 1 f\nINLINE_ORIGIN 1 {name}\n{functions}"));
    assert_eq!(
        hostile_losses(text.as_bytes()),
        ["parts of the symbol file with names left out: they overlap too much"]
    );
}

#[test]
fn records_that_many_functions_share_are_read_a_few_times() {
    let gsym = Gsym { is_big: false, offset_size: 4 };
    let (functions, parts) = (50_000, 100_000);
    for end in [vec![], gsym.u32(0).repeat(2)] {
        let places_at = 48 + 4 * functions;
        let strings_at = places_at + 4 * functions + 4;
        let mut bytes = [
            gsym.u32(0x4753_594d),
            vec![1, 0, 4, 4],
            gsym.number(0, 8),
            gsym.u32(functions),
            gsym.u32(strings_at),
            gsym.u32(1),
        ]
        .concat();
        bytes.extend([1; 20]);
        (0..functions).for_each(|function| bytes.extend(gsym.u32(16 * function)));
        (0..functions).for_each(|_| bytes.extend(gsym.u32(strings_at + 1)));
        bytes.extend([gsym.u32(0), vec![0], gsym.u32(16), gsym.u32(0)].concat());
        (0..parts).for_each(|_| bytes.extend([gsym.u32(9), gsym.u32(0)].concat()));
        bytes.extend(&end);
        let mut expected = vec!["functions left out: they share their records"];
        if end.is_empty() {
            expected.insert(1, "functions of the symbol file that reach beyond its end");
        }
        assert_eq!(hostile_losses(&bytes), expected);
    }
}

#[test]
fn records_of_unwinding_that_are_lost_are_counted() {
    let index = |records: &str| {
        let text = breakpad(&format!("FUNC 0 100 0 f\n{records}"));
        let file = symdex_symbol_files::read(text.as_bytes()).expect("a symbol file");
        let built = BuildOptions::new().unwind_rows(true).build_symbol_file_into(&file, Vec::new());
        Index::open(built.expect("builds").bytes).expect("opens")
    };
    let init = "STACK CFI INIT 0 100 .cfa: $rsp 8 + .ra: .cfa -8 + ^\n";
    let rules = ("rules of the records STACK CFI that an index cannot express", 1);
    let misplaced = ("records STACK CFI that have no address in their function or end past 4 GiB", 1);
    let no_record = ("lines of the symbol file that are not records of Breakpad", 1);
    for (records, lost) in [
        ("STACK CFI INIT 0 100 .cfa: $rsp $rbx + .ra: .cfa -8 + ^\n".to_owned(), rules),
        ("STACK CFI INIT 0 100 .ra: .cfa -8 + ^\n".to_owned(), rules),
        ("STACK CFI INIT 0 100000001 .cfa: $rsp 8 +\n".to_owned(), misplaced),
        (format!("{init}STACK CFI zz .cfa: $rsp 32 +\n"), misplaced),
        (format!("{init}STACK CFI 100 .cfa: $rsp 32 +\n"), misplaced),
        ("STACK CFI 10 .cfa: $rsp 32 +\n".to_owned(), no_record),
        (format!("{init}STACK CFI INIT 20 zz .cfa: $rsp 32 +\n"), no_record),
    ] {
        assert_eq!(losses(&index(&records)), [lost], "{records}");
    }
    // As in Breakpad, the order of the addresses counts, and not that of the file.
    let index = index(&format!("{init}STACK CFI 50 .cfa: $rsp 16 +\nSTACK CFI 10 .cfa: $rsp 32 +\n"));
    assert_eq!(losses(&index), []);
    for (at, offset) in [(0, 8), (0x10, 32), (0x50, 16)] {
        let row = index.unwind_row(ImageOffset(at)).expect("whole").expect("a row");
        assert_eq!(row.cfa(), UnwindValue::Register { register: 7, offset }, "{at:#x}");
    }
}

#[test]
fn records_of_unwinding_become_unwind_rows() {
    let records = "STACK CFI INIT 1000 40 .cfa: $rsp 8 + .ra: .cfa 8 - ^\n\
        STACK CFI 1001 $rbp: .cfa -16 + ^ .cfa: $rsp 16 +\nSTACK CFI 1004 .cfa: $rbp 16 +\n\
        STACK CFI 1030 .cfa: $rsp 160 + ^ 8 + .ra: 0 $r12: .cfa 4 / $what: .cfa\n\
        STACK CFI INIT 1020 40 .cfa: $rax 2 * .ra: $rip\nPUBLIC 1000 0 f\n\
        STACK CFI INIT 2000 10 .ra: .cfa\nSTACK CFI 2008 .cfa: $rsp\n";
    let text = breakpad(records);
    let file = symdex_symbol_files::read(text.as_bytes()).expect("a symbol file");
    let build = |rows| BuildOptions::new().unwind_rows(rows).build_symbol_file_into(&file, Vec::new());
    let without = Index::open(build(false).expect("builds").bytes).expect("opens");
    assert!(!without.has_unwind_rows());
    let index = Index::open(build(true).expect("builds").bytes).expect("opens");
    index.verify().expect("intact");
    let rows: Vec<String> = index
        .unwind_rows()
        .expect("rows")
        .map(|row| {
            let row = row.expect("intact");
            let rules: Vec<_> = row.rules().collect();
            format!("{:x}..{:x} {:?} {rules:?}", row.range().start.0, row.range().end.0, row.cfa())
        })
        .collect();
    let ra = "(16, Stored(Cfa(-8)))";
    let rbp = "(6, Stored(Cfa(-16)))";
    let expected = [
        format!("1000..1001 Register {{ register: 7, offset: 8 }} [{ra}]"),
        format!("1001..1004 Register {{ register: 7, offset: 16 }} [{rbp}, {ra}]"),
        format!("1004..1030 Register {{ register: 6, offset: 16 }} [{rbp}, {ra}]"),
        format!("1030..1040 Loaded {{ register: 7, offset: 160, add: 8 }} [{rbp}, (16, Undefined)]"),
        "1040..1060 Unknown [(16, SameValue)]".to_owned(),
        "2008..2010 Register { register: 7, offset: 0 } [(16, Value(Cfa(0)))]".to_owned(),
    ];
    assert_eq!(rows, expected);
    // `.cfa: $rax 2 *`, `$r12`, `$what`, and the code without a `.cfa`.
    assert_eq!(losses(&index), [("rules of the records STACK CFI that an index cannot express", 4)]);
}

/// Lines of `/proc/kallsyms` of a kernel that was loaded at another address than it was linked at.
const KERNEL: &str = "\
0000000000000000 A fixed_percpu_data
ffffffffa1000000 T startup_64
ffffffffa1000000 T _text
ffffffffa1000140 t local
ffffffffa1000140 T global
ffffffffa1000180 d data
ffffffffa1000200 W weak
ffffffffa1000300 T _etext
ffffffffa1400000 T init
ffffffffc0000000 t of_module\t[tun]
no symbol
";

#[test]
fn symbols_of_a_kernel_count_from_its_start() {
    let file = symdex_symbol_files::read(KERNEL.as_bytes()).expect("symbols");
    let failure = BuildOptions::new().build_symbol_file_into(&file, Vec::new()).expect_err("no id");
    assert!(matches!(failure, Error::NoId), "{failure}");
    let file = file.with_id(symdex::ImageId::new(&[1; 20]).expect("an id"));
    let built = BuildOptions::new().build_symbol_file_into(&file, Vec::new()).expect("builds");
    let index = Index::open(built.bytes).expect("opens");
    assert_eq!((index.metadata().base, &*index.metadata().image_name), (0xffff_ffff_a100_0000, "vmlinux"));
    let expected = [
        (0, "_text"),
        (0x13f, "_text"),
        (0x140, "global"),
        (0x180, "global"),
        (0x200, "weak"),
        (0x2ff, "weak"),
        (0x300, "?"),
        (0x40_0000, "init"),
    ];
    assert_eq!(expected.map(|(address, _)| answer(&index, address)), expected.map(|(_, answer)| answer));
    let losses = losses(&index);
    assert_eq!(losses.iter().map(|(_, count)| count).sum::<u64>(), 2, "{losses:?}");
}

#[test]
fn symbols_of_a_kernel_without_addresses_are_refused() {
    let hidden = "0000000000000000 T _text\n0000000000000000 t local\n";
    let error = |text: &str| symdex_symbol_files::read(text.as_bytes()).expect_err("refused").to_string();
    assert!(error(hidden).contains("read /proc/kallsyms as root"), "{}", error(hidden));
    assert!(error("ffffffffa1000000 T other\n").contains("without _text"));
    assert!(error("ffffffffa1000000 T two words here\n").contains("not a symbol file"));
}
