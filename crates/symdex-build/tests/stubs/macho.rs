//! Stubs of made-up Mach-O files, and of a linked one.

use symdex_build::{Companions, Image, slices};
use symdex_testkit::images::debug_file::{BASE, CODE_FLAGS, MachO, Section, Symbol};

use super::symbols_of;

/// `MH_EXECUTE`.
const EXECUTABLE: u32 = 2;
/// `INDIRECT_SYMBOL_LOCAL`.
const LOCAL: u32 = 0x8000_0000;
/// `S_SYMBOL_STUBS` with instructions.
const STUBS: u32 = CODE_FLAGS | 8;

fn symbols(file: &MachO) -> Vec<String> {
    super::symbols(&file.bytes())
}

/// A symbol that another image defines.
fn undefined(name: &[u8]) -> Symbol {
    Symbol { kind: 1, section: 0, ..Symbol::raw(name, 0) }
}

fn stubs(name: &'static str, range: std::ops::Range<u64>, reserved: [u32; 2]) -> Section {
    Section { name, range, flags: STUBS, reserved }
}

/// An executable with one function, which ends where two sections of stubs begin.
fn with_stubs() -> MachO {
    MachO {
        kind: EXECUTABLE,
        text: vec![
            Section { name: "__text", range: 0x1000..0x2000, flags: CODE_FLAGS, ..Section::default() },
            stubs("__stubs", 0x2000..0x2012, [1, 6]),
            stubs("__auth_stubs", 0x2020..0x2040, [4, 16]),
        ],
        symbols: vec![
            Symbol::function("f", BASE + 0x1000),
            undefined(b"_puts"),
            undefined(b"__Znwm"),
            undefined(b"_$s4Demo4loadyyF"),
            undefined(b"_exit"),
        ],
        // The first one is of a section of pointers.
        indirect: vec![0, 2, LOCAL, 1, 3, 4],
        ..MachO::default()
    }
}

const STUBS_OF_IT: [&str; 5] = [
    "1000..2000 f",
    "2000..2006 DYLD-STUB$$_Znwm",
    "200c..2012 DYLD-STUB$$puts",
    "2020..2030 DYLD-STUB$$$s4Demo4loadyyF",
    "2030..2040 DYLD-STUB$$exit",
];

pub(crate) fn stubs_have_the_names_of_their_indirect_symbols() {
    assert_eq!(symbols(&with_stubs()), STUBS_OF_IT);
    let file = MachO { cpu: (7, 3), base: 0, ..with_stubs() };
    let function = Symbol::function("f", 0x1000);
    let file = MachO { symbols: [vec![function], file.symbols[1..].to_vec()].concat(), ..file };
    assert_eq!(symbols(&file), STUBS_OF_IT, "in a 32-bit file");
    // The stub of usleep is in a section of its own, directly behind __text.
    let linked = include_bytes!("../../../../testdata/demo/DemoPlain.dylib");
    let found = super::symbols(linked);
    assert_eq!(found[found.len() - 2..], ["4158..41a4 plain_wait", "41a4..41b0 DYLD-STUB$$usleep"]);
}

pub(crate) fn a_dsym_has_the_stubs_of_its_binary() {
    let binary = with_stubs().bytes();
    // A dSYM has other symbols, so that the numbers in the table are not of its symbols.
    let symbols = vec![Symbol::function("f", BASE + 0x1000), undefined(b"_other"), undefined(b"_wrong")];
    let dsym = MachO { kind: MachO::default().kind, symbols, ..with_stubs() }.bytes();
    assert_eq!(super::symbols(&dsym), ["1000..2000 f"]);
    let companions = Companions::default();
    let image =
        |file| Image::load(&slices(file).expect("a Mach-O file")[0], "made-up", &companions).expect("loads");
    for (one, other) in [(&dsym, &binary), (&binary, &dsym)] {
        assert_eq!(symbols_of(&image(one).join(image(other))), STUBS_OF_IT);
    }
}

pub(crate) fn a_symbol_of_a_stub_names_it() {
    let mut file = with_stubs();
    let named = |name: &[u8], offset| Symbol { section: 2, ..Symbol::raw(name, BASE + offset) };
    file.symbols.extend([named(b"_mine", 0x2000), named(b"_between", 0x2006)]);
    let found = symbols(&file);
    assert_eq!(found[1..4], ["2000..2006 mine", "2006..200c between", "200c..2012 DYLD-STUB$$puts"]);
}

pub(crate) fn stubs_without_a_table_have_no_name_and_belong_to_no_function() {
    assert_eq!(symbols(&MachO { indirect: Vec::new(), ..with_stubs() }), ["1000..2000 f"]);
}

pub(crate) fn wrong_numbers_of_stubs_name_none() {
    let with = |range: std::ops::Range<u64>, reserved| {
        let mut file = with_stubs();
        file.text[1] = stubs("__stubs", range, reserved);
        symbols(&file)
    };
    let others = [STUBS_OF_IT[0], STUBS_OF_IT[3], STUBS_OF_IT[4]];
    // Stubs of no bytes; more stubs than there are indirect symbols; a first one that is not in the table.
    for reserved in [[1, 0], [1, 1], [0, 2], [6, 6], [u32::MAX, 6]] {
        assert_eq!(with(0x2000..0x2012, reserved), others, "{reserved:?}");
    }
    assert_eq!(with(0x2000..0x2012, [1, u32::MAX]), others, "longer than their section");
    // Symbols that are not in the table, and one without a name.
    for number in [5, 99, 0x4000_0000, u32::MAX] {
        let file = MachO { indirect: vec![number; 6], ..with_stubs() };
        assert_eq!(symbols(&file), ["1000..2000 f"], "{number}");
    }
    let mut file = with_stubs();
    file.symbols[1] = undefined(b"");
    file.symbols[2] = undefined(b"_");
    assert_eq!(symbols(&file), others);
    // The command states a table that the file does not have.
    let mut bytes = with_stubs().bytes();
    let command = bytes.windows(8).position(|bytes| bytes == [0xb, 0, 0, 0, 80, 0, 0, 0]).expect("there");
    bytes[command + 56..command + 60].copy_from_slice(&[0xff; 4]);
    assert_eq!(super::symbols(&bytes), ["1000..2000 f"]);
}

pub(crate) fn stubs_share_no_indirect_symbols() {
    // Many sections of all of a long table would make any number of stubs.
    let mut file = with_stubs();
    file.text.truncate(1);
    file.text.extend([0x2000, 0x2010, 0x2020].map(|start| stubs("__stubs", start..start + 6, [0, 3])));
    file.indirect = vec![1; 3];
    let stubs = ["1000..2000 f", "2000..2003 DYLD-STUB$$puts", "2003..2006 DYLD-STUB$$puts"];
    assert_eq!(symbols(&file), [&stubs[..], &["2010..2013 DYLD-STUB$$puts"]].concat());
}

pub(crate) fn stubs_beyond_the_limit_have_no_names() {
    // `STUBS` of the limits in docs/SECURITY.md.
    const LIMIT: usize = 1 << 18;
    let mut file = with_stubs();
    file.symbols[1] = undefined(b"f");
    file.text = vec![stubs("__stubs", 0x2000..0x2000 + LIMIT as u64 + 2, [0, 1])];
    file.indirect = vec![1; LIMIT + 2];
    let bytes = file.bytes();
    let companions = Companions::default();
    let image =
        Image::load(&slices(&bytes).expect("a Mach-O file")[0], "made-up", &companions).expect("loads");
    let built = symdex_build::build(&image).expect("builds");
    let index = symdex::Index::open(built.bytes).expect("an index");
    assert_eq!(index.metadata().counts.symbols, LIMIT as u64);
}

pub(crate) fn names_of_stubs_that_overlap_are_refused() {
    let mut file = with_stubs();
    file.symbols[1] = undefined(&[b'a'; 60_000]);
    file.text[1] = stubs("__stubs", 0x2000..0x3000, [0, 1]);
    file.text.truncate(2);
    file.indirect = vec![1; 4096];
    let bytes = file.bytes();
    let slice = slices(&bytes).expect("a Mach-O file").remove(0);
    let companions = Companions::default();
    let error = Image::load(&slice, "made-up", &companions).expect_err("refused").to_string();
    assert!(error.contains("its names overlap too much"), "{error}");
}
