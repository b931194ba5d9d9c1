//! Oddities of ELF files: symbols, ids, rows at one address, compressed sections (docs/DEBUG-INFO.md, "Symbols", "ELF",
//! "Rows at one address"). Separate debug files have a file of their own.

#![expect(clippy::cast_possible_truncation, reason = "the debug files made here are small")]

mod companions;

use std::io::Write as _;

use crate::checks::answers;
use object::elf;
use symdex::Table::{Dwarf, SymbolTable};
use symdex::{ImageOffset, Index, LinePolicy, Scratch, Seen, Table};
use symdex_build::{Companions, DirectLookup, FileSymbols, Image, slices};
use symdex_testkit::images::debug_file::{BASE, Die, Elf, ElfSection, ElfSymbol, Unit, debug_sections};

fn symbols(elf: &Elf) -> Vec<String> {
    answers(&elf.bytes(), SymbolTable)
}

fn of(symbols: &[ElfSymbol]) -> Elf {
    Elf { symbols: symbols.to_vec(), ..Elf::default() }
}

fn function(name: &'static str, start: u64, size: u64) -> ElfSymbol {
    ElfSymbol::function(name, start, size)
}

fn id(file: &[u8]) -> String {
    let companions = Companions::default();
    let image = Image::load(&slices(file).expect("an ELF file")[0], "made-up", &companions).expect("loads");
    image.info().id.to_string()
}

/// A file at [`BASE`] with a function, lines and their debug information.
fn with_dwarf() -> Elf {
    let unit = Unit::new((0x1000, 0x1100)).child(Die::function("f", (0x1000, 0x1100)));
    let unit = unit.sequence(&[(0x1000, 1, 5, true), (0x1010, 1, 6, true)], 0x1100);
    let symbols = vec![function("f", BASE + 0x1000, 0x100), function("g", BASE + 0x1200, 0x20)];
    Elf { base: BASE, symbols, ..Elf::default() }.debug(debug_sections(&[unit]))
}

const LINES: [&str; 2] = ["1000..1010 f a.c:5", "1010..1100 f a.c:6"];

#[test]
fn a_symbol_reaches_as_far_as_it_says() {
    let elf =
        of(&[function("f", 0x1000, 0x40), function("g", 0x1100, 0x10), function("last", 0x2ff0, 0x100)]);
    assert_eq!(symbols(&elf), ["1000..1040 f", "1100..1110 g", "2ff0..3000 last"]);
}

#[test]
fn a_symbol_without_a_size_reaches_to_the_next_one() {
    let elf = of(&[function("f", 0x1000, 0), function("g", 0x1100, 0), function("h", 0x1200, 0x10)]);
    assert_eq!(symbols(&elf), ["1000..1100 f", "1100..1200 g", "1200..1210 h"]);
}

#[test]
fn symbols_in_symbols_hide_them_and_no_more() {
    let elf = of(&[function("outer", 0x1000, 0x100), function("inner", 0x1040, 0x10)]);
    assert_eq!(symbols(&elf), ["1000..1040 outer", "1040..1050 inner", "1050..1100 outer"]);
}

#[test]
fn labels_in_functions_begin_none() {
    let label = function("loop", 0x1040, 0).kind(elf::STT_NOTYPE);
    let entry = function("_start", 0x1200, 0).kind(elf::STT_NOTYPE);
    assert_eq!(
        symbols(&of(&[function("f", 0x1000, 0x100), label, entry])),
        ["1000..1100 f", "1200..3000 _start"]
    );
}

#[test]
fn what_is_no_code_of_the_image_is_no_function() {
    let elf = of(&[
        function("f", 0x1000, 0x10),
        function("data", 0x1100, 0).kind(elf::STT_OBJECT),
        function("of_a_thread", 0x1180, 0x10).kind(elf::STT_TLS),
        function("a.c", 0x1200, 0).kind(elf::STT_FILE),
        ElfSymbol { section: 0, ..function("imported", 0x1300, 0x10) },
        ElfSymbol { section: elf::SHN_ABS.0, ..function("absolute", 0x1400, 0x10) },
        function("resolver", 0x1500, 0x10).kind(elf::STT_GNU_IFUNC),
        function("outside", 0x5000, 0x10),
    ]);
    assert_eq!(symbols(&elf), ["1000..1010 f", "1500..1510 resolver"]);
}

#[test]
fn thumb_functions_begin_at_even_addresses_and_mapping_symbols_name_nothing() {
    let mapping = |name, at| function(name, at, 0).kind(elf::STT_NOTYPE).binding(elf::STB_LOCAL);
    let all = [
        function("thumb", 0x1001, 0x10),
        function("arm", 0x1020, 0x10),
        mapping("$t", 0x1000),
        mapping("$a.1", 0x1020),
    ];
    let elf = Elf { machine: elf::EM_ARM, is_64_bit: false, ..of(&all) };
    assert_eq!(symbols(&elf), ["1000..1010 thumb", "1020..1030 arm"]);
}

#[test]
fn labels_of_assemblers_are_no_symbols() {
    let label = |name, at| function(name, at, 0).kind(elf::STT_NOTYPE).binding(elf::STB_LOCAL);
    let elf = of(&[
        function("assembly", 0x1000, 0),
        label(".L0 ", 0x1000),
        label(".L0 ", 0x1010),
        label(".Lpcrel_hi0", 0x1020),
        function("next", 0x1040, 0x10),
    ]);
    assert_eq!(symbols(&elf), ["1000..1040 assembly", "1040..1050 next"]);
    assert_eq!(aliases(&elf, 0x1000), [""; 0]);
}

#[test]
fn code_that_is_marked_as_data_is_named_where_no_function_is() {
    let data = |name, at, size| function(name, at, size).kind(elf::STT_OBJECT);
    let elf = of(&[
        data("con_info", 0x1000, 0x20),
        data("of_function", 0x1040, 0x40),
        function("function", 0x1040, 0x10).binding(elf::STB_LOCAL),
        function("entry", 0x1044, 0),
        data("around", 0x1100, 0x100),
        function("sized", 0x1120, 0x10),
        function("sizeless", 0x1140, 0).binding(elf::STB_LOCAL),
        function("label", 0x1150, 0).kind(elf::STT_NOTYPE).binding(elf::STB_LOCAL),
    ]);
    let expected = [
        "1000..1020 con_info",
        "1040..1080 function",
        "1100..1120 around",
        "1120..1130 sized",
        "1130..1140 around",
        "1140..1200 sizeless",
    ];
    assert_eq!(symbols(&elf), expected);
}

#[test]
fn a_resolver_has_its_own_name() {
    for (size, resolver) in [(0x10, 0x10), (0x10, 0), (0, 0x10)] {
        let api = function("api", 0x1000, size).kind(elf::STT_GNU_IFUNC);
        let elf = of(&[api, function("choose", 0x1000, resolver).binding(elf::STB_LOCAL)]);
        assert_eq!(symbols(&elf), ["1000..1010 choose"]);
        assert_eq!(aliases(&elf, 0x1000), ["api"]);
    }
}

#[test]
fn global_labels_begin_functions_in_symbols_that_are_no_functions() {
    let code = |name, at, size| function(name, at, size).kind(elf::STT_NOTYPE);
    let entry = |outer: ElfSymbol| {
        let local = code("local", 0x1008, 0).binding(elf::STB_LOCAL);
        let weak = code("weak", 0x1030, 0).binding(elf::STB_WEAK);
        symbols(&of(&[outer, code("global", 0x1004, 0), local, function("sized", 0x1010, 8), weak]))
    };
    let expected =
        ["1000..1004 entry", "1004..1010 global", "1010..1018 sized", "1018..1030 global", "1030..1040 weak"];
    assert_eq!(entry(code("entry", 0x1000, 0x40)), expected);
    let expected = ["1000..1010 entry", "1010..1018 sized", "1018..1040 entry"];
    assert_eq!(entry(function("entry", 0x1000, 0x40)), expected);
}

#[test]
fn the_tag_of_a_value_of_aarch64_is_no_part_of_the_address() {
    let tag = 0x8e << 56;
    let counter = function("counter", tag | 0x2000, 4).kind(elf::STT_OBJECT);
    let file = |machine| {
        let symbols = vec![function("f", tag | 0x1000, 0x10), counter.clone(), function("before", 0x1ff0, 0)];
        Elf { machine, ..of(&symbols) }
    };
    let aarch64 = file(elf::EM_AARCH64);
    assert_eq!(symbols(&aarch64), ["1000..1010 f", "1ff0..2000 before", "2000..2004 counter"]);
    let bytes = aarch64.bytes();
    let of_file = FileSymbols::read(&bytes, None).expect("an ELF file");
    let found = of_file.data(0x2003).expect("a symbol");
    assert_eq!((&found.name[..], found.start, found.size), (&b"counter"[..], 0x2000, 4));
    assert_eq!(of_file.data(tag | 0x2003), None);
    let counter = of_file.named(b"counter");
    assert_eq!((counter.len(), &counter[0]), (1, &(0x2000..0x2004)));
    assert_eq!(symbols(&file(elf::EM_X86_64)), ["1ff0..3000 before"]);
}

/// The other names of the function at an image offset.
fn aliases(elf: &Elf, start: u64) -> Vec<String> {
    let (bytes, companions) = (elf.bytes(), Companions::default());
    let image = Image::load(&slices(&bytes).expect("an ELF file")[0], "x", &companions).expect("loads");
    let symbol = image.symbols().at(start).expect("there is one");
    symbol.aliases().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

#[test]
fn parts_of_functions_keep_their_own_names() {
    let elf = of(&[
        function("f", 0x1000, 0x10),
        function("f.cold", 0x1100, 0x10),
        function("g.part.0", 0x1200, 0x10),
    ]);
    assert_eq!(symbols(&elf), ["1000..1010 f", "1100..1110 f.cold", "1200..1210 g.part.0"]);
}

#[test]
fn of_names_at_one_address_the_same_one_counts_in_any_order() {
    let mut all = vec![
        function("local", 0x1000, 0x10).binding(elf::STB_LOCAL),
        function("weak", 0x1000, 0x10).binding(elf::STB_WEAK),
        function("global_b", 0x1000, 0x10),
        function("__global", 0x1000, 0x10),
        function("global_a", 0x1000, 0x10),
        function("a_label", 0x1000, 0),
    ];
    for _ in 0..all.len() {
        all.rotate_left(1);
        let file = of(&all).bytes();
        let companions = Companions::default();
        let image = Image::load(&slices(&file).expect("an ELF file")[0], "x", &companions).expect("loads");
        assert_eq!(image.symbols().len(), 1, "one function: {:?}", image.symbols());
        let symbol = image.symbols().at(0x1000).expect("there is one");
        assert_eq!((symbol.start, symbol.end, symbol.name), (0x1000, 0x1010, Some(&b"global_a"[..])));
        let aliases: Vec<_> = symbol.aliases().collect();
        assert_eq!(aliases, [&b"global_b"[..], b"__global", b"weak", b"local", b"a_label"]);
    }
}

#[test]
fn a_stripped_file_has_its_dynamic_symbols() {
    let dynamic = Elf { dynamic_symbols: vec![function("exported", 0x1000, 0x20)], ..Elf::default() };
    assert_eq!(symbols(&dynamic), ["1000..1020 exported"]);
    let both = Elf { symbols: vec![function("static", 0x1100, 0x20)], ..dynamic };
    assert_eq!(symbols(&both), ["1000..1020 exported", "1100..1120 static"]);
}

/// `.eh_frame` at 0x3800 with a function of 0x40 bytes at each of `starts`.
fn eh_frame(starts: &[u64]) -> ElfSection {
    let address = 0x3800;
    // Version 1, "zR", factors, return register, and addresses as distances of four bytes from themselves.
    let common = [&12u32.to_le_bytes()[..], &[0; 4], &[1], b"zR\0", &[1, 0x78, 30, 1, 0x1b]].concat();
    let mut bytes = [&(common.len() as u32 - 3).to_le_bytes()[..], &common[4..], &[0; 1]].concat();
    for start in starts {
        let at = bytes.len() as u32;
        let distance = (*start as i64 - (address + i64::from(at) + 8)) as i32;
        bytes.extend([16, at + 4].map(u32::to_le_bytes).concat());
        bytes.extend([&distance.to_le_bytes()[..], &0x40u32.to_le_bytes(), &[0; 4]].concat());
    }
    bytes.extend([0; 4]);
    let (name, kind, address) = (".eh_frame".to_owned(), elf::SHT_PROGBITS.0, address as u64);
    ElfSection { name, kind, flags: 2, address, bytes, ..ElfSection::default() }
}

#[test]
fn unwind_information_ends_functions_without_a_size_and_makes_those_without_a_name() {
    let named = of(&[function("sizeless", 0x1000, 0), function("sized", 0x1100, 0x20)]);
    let elf = Elf { sections: vec![eh_frame(&[0x1000, 0x1100, 0x1200])], ..named };
    assert_eq!(symbols(&elf), ["1000..1040 sizeless", "1100..1120 sized", "1200..1240 -"]);
}

#[test]
fn the_unwind_index_of_arm_makes_functions_too() {
    // Two entries. Each states an address as a distance of 31 bits from itself.
    let bytes = [0x1000u32, 0x1100].iter().zip([0x3800u32, 0x3808]).flat_map(|(start, at)| {
        [(start.wrapping_sub(at) & 0x7fff_ffff).to_le_bytes(), 1u32.to_le_bytes()].concat()
    });
    let index = ElfSection {
        name: ".ARM.exidx".to_owned(),
        kind: 0x7000_0001,
        flags: 2,
        address: 0x3800,
        bytes: bytes.collect(),
        ..ElfSection::default()
    };
    let elf = of(&[function("named", 0x1001, 0)]);
    let elf = Elf { machine: elf::EM_ARM, is_64_bit: false, sections: vec![index], ..elf };
    assert_eq!(symbols(&elf), ["1000..1100 named", "1100..3000 -"]);
    // On x86-64 the same section type means .eh_frame.
    let elf = Elf { machine: elf::EM_X86_64, ..elf };
    assert_eq!(symbols(&elf), ["1001..3000 named"]);
}

#[test]
fn a_symbol_that_reaches_out_of_its_section_hides_nothing_there() {
    let elf = of(&[function("f", 0x2ff0, 0x1000), function("g", 0x3400, 0)]);
    let (name, kind, bytes) = (".text.more".to_owned(), elf::SHT_PROGBITS.0, vec![0x90; 0x100]);
    let more = ElfSection { name, kind, flags: 6, address: 0x3400, bytes, ..ElfSection::default() };
    assert_eq!(symbols(&Elf { sections: vec![more], ..elf }), ["2ff0..3000 f", "3400..3500 g"]);
}

#[test]
fn offsets_count_from_the_lowest_loaded_page() {
    let elf = Elf { base: 0x40_0000, ..of(&[function("f", 0x40_1000, 0x10)]) };
    assert_eq!(symbols(&elf), ["1000..1010 f"]);
    // Linux kernels load per-processor data at 0.
    let base = 0xffff_ffff_8100_0000;
    let kernel = Elf { base, other_segments: vec![0], ..of(&[function("f", base + 0x1000, 0x10)]) };
    assert_eq!(symbols(&kernel), ["1000..1010 f"]);
}

#[test]
fn an_image_without_a_build_id_has_the_id_of_its_code() {
    assert_eq!(id(&Elf::default().bytes()), "07".repeat(20));
    let whole = Elf { build_id: None, ..of(&[function("f", 0x1000, 0x10)]) };
    let stripped = Elf { symbols: Vec::new(), ..whole.clone() };
    let other = Elf { code: Some(0xcc), ..whole.clone() };
    assert!(id(&whole.bytes()).starts_with("h-"));
    assert_eq!(id(&whole.bytes()), id(&stripped.bytes()));
    assert_ne!(id(&whole.bytes()), id(&other.bytes()));
}

#[test]
fn of_rows_at_one_address_the_last_counts() {
    let unit = Unit::new((0x1000, 0x1100)).child(Die::function("f", (0x1000, 0x1100)));
    let unit = unit.sequence(&[(0x1000, 1, 5, true), (0x1000, 1, 6, true), (0x1010, 1, 7, true)], 0x1100);
    let elf = Elf { base: BASE, ..Elf::default() }.debug(debug_sections(&[unit]));
    assert_eq!(answers(&elf.bytes(), Dwarf), ["1000..1010 f a.c:6", "1010..1100 f a.c:7"]);
}

/// docs/DEBUG-INFO.md, "Code without a size".
#[test]
fn code_without_a_size_reaches_to_the_next_section_or_to_the_end_of_its_segment() {
    let unsized_code = |next| {
        let next =
            ElfSection { name: ".dynamic".to_owned(), flags: 3, address: BASE + next, ..Default::default() };
        let elf = with_dwarf();
        let sections = elf.sections.iter().cloned().chain([next]).collect();
        Elf { code: None, is_unsized: true, sections, ..elf }
    };
    let executable = |elf: &Elf| {
        let (bytes, companions) = (elf.bytes(), Companions::default());
        let image = Image::load(&slices(&bytes).expect("an ELF file")[0], "made-up", &companions);
        image.expect("loads").info().executable.clone()
    };
    // The segment has 0x4000 bytes.
    assert_eq!(executable(&unsized_code(0x3800)), [(0x1000, 0x3800)]);
    assert_eq!(executable(&unsized_code(0x4800)), [(0x1000, 0x4000)]);
    assert_eq!(answers(&unsized_code(0x4800).bytes(), Dwarf), LINES);
    // Stored code of the size 0 is an empty section.
    assert_eq!(executable(&Elf { code: Some(0), ..unsized_code(0x3800) }), []);
}

/// A file at `base` with two functions, and with another one at `start`, more than 4 GiB away.
fn with_code_at(base: u64, start: u64, size: usize) -> Elf {
    let symbols = vec![function("f", base + 0x1000, 0x100), function("g", base + 0x1200, 0x20)];
    let elf = Elf { base, symbols, ..Elf::default() };
    let far = ElfSection {
        name: ".far".to_owned(),
        kind: elf::SHT_PROGBITS.0,
        flags: 6,
        address: start,
        bytes: vec![0x90; size],
        ..Default::default()
    };
    let symbols = elf.symbols.iter().cloned().chain([function("far", start, size as u64)]).collect();
    Elf { sections: vec![far], symbols, other_segments: vec![start / 0x1000 * 0x1000], ..elf }
}

/// docs/DEBUG-INFO.md, "Code in two places".
#[test]
fn of_code_that_lies_too_far_apart_the_larger_part_is_the_image() {
    const HIGH: u64 = 0xffff_ffff_8100_0000;
    for (base, start) in [(HIGH, 0x10_0000), (0x10_0000, HIGH)] {
        let small = with_code_at(base, start, 0x30).bytes();
        let index =
            Index::open(symdex_build::build(&load(&small, None)).expect("builds").bytes).expect("written");
        let (metadata, counts) = (index.metadata(), index.metadata().counts);
        assert_eq!((metadata.base, counts.symbols, counts.seen.symbols_outside), (base, 2, 1));
        let lost = format!("the code at {start:#x}..{:#x} is not in the 4 GiB", start + 0x30);
        assert!(metadata.partial[0].reason.starts_with(&lost), "{:?}", metadata.partial);
        // The file itself answers everywhere.
        let near = load(&small, Some(start + 4));
        let lookup = |address: u64| {
            let offset = ImageOffset(address - near.info().base);
            let mut direct = DirectLookup::new(&near).expect("reads");
            let index = direct.answer(&[offset]).expect("answers");
            let mut scratch = Scratch::default();
            let frames = index.lookup(offset, LinePolicy::Exact, &mut scratch).expect("intact")?;
            frames.iter().next().map(|frame| frame.name_lossy().unwrap_or_default().into_owned())
        };
        assert_eq!(lookup(start + 4).as_deref(), Some("far"));
        // Offsets can count from the base of the other part.
        let image = load(&small, None);
        let mut direct = DirectLookup::new(&near).expect("reads").relative_to(&image);
        let offset = ImageOffset((start + 4).wrapping_sub(base));
        let index = direct.answer(&[offset]).expect("answers");
        let mut scratch = Scratch::default();
        let frames = index.lookup(offset, LinePolicy::Exact, &mut scratch).expect("intact").expect("there");
        let frame = frames.iter().next().expect("one");
        assert_eq!(frame.function_start, Some(ImageOffset(start.wrapping_sub(base))));
        assert!(direct.has_code(offset) && !direct.has_code(ImageOffset(0x1004)));
        assert_eq!(near.outside(), [(base + 0x1000, base + 0x3000)]);

        let large = with_code_at(base, start, 0x8000).bytes();
        assert_eq!(load(&large, None).info().base, start / 0x1000 * 0x1000);
        assert_eq!(answers(&large, SymbolTable).len(), 1);
    }
}

fn load<'d>(file: &'d [u8], near: Option<u64>) -> Image<'d> {
    let companions = Box::leak(Box::new(Companions::default()));
    companions.load_near(near);
    Image::load(&slices(file).expect("an ELF file")[0], "made-up", companions).expect("loads")
}

#[test]
fn what_has_nothing_to_answer_gets_no_index() {
    let build =
        |elf: &Elf| symdex_build::build(&load(&elf.bytes(), None)).map(|_| ()).map_err(|e| e.to_string());
    let nothing = build(&Elf::default()).expect_err("nothing to answer");
    assert!(nothing.contains("nothing to answer") && nothing.contains("before it was stripped"), "{nothing}");
    // Functions and symbols outside of the code are not nothing.
    let symbol = build(&of(&[function("f", 0x5000, 0x10)])).expect_err("outside");
    assert!(symbol.contains("0 functions and 1 function symbols"), "{symbol}");
    let unit = Unit::new((0x5000, 0x5100)).child(Die::function("f", (0x5000, 0x5100)));
    let dwarf = Elf { base: BASE, ..Elf::default() }.debug(debug_sections(&[unit]));
    let dwarf = build(&dwarf).expect_err("outside");
    assert!(dwarf.contains("1 functions and 0 function symbols"), "{dwarf}");
    // A symbol elsewhere in the code is an answer.
    assert_eq!(build(&of(&[function("f", 0x5000, 0x10), function("g", 0x1000, 0x10)])), Ok(()));
}

#[test]
fn an_index_states_what_its_builder_has_found() {
    let file = with_dwarf().bytes();
    let index = Index::open(symdex_build::build(&load(&file, None)).expect("builds").bytes).expect("written");
    let seen = Seen { functions: 1, rows: 2, symbols: 2, ..Seen::default() };
    assert_eq!(index.metadata().counts.seen, seen);
}

/// The one frame at an image offset: name, line, where the function starts, and the table.
fn frame_at(file: &[u8], offset: u64) -> Option<(String, Option<u32>, Option<u64>, Table)> {
    let companions = Companions::default();
    let image = Image::load(&slices(file).expect("an ELF file")[0], "made-up", &companions).expect("loads");
    let built = symdex_build::build(&image).expect("builds");
    let index = Index::open(built.bytes).expect("just written");
    let mut scratch = Scratch::default();
    let frames = index.lookup(ImageOffset(offset), LinePolicy::Exact, &mut scratch).expect("whole")?;
    assert_eq!(frames.len(), 1);
    let frame = frames.iter().next()?;
    let name = String::from_utf8_lossy(frame.name.unwrap_or(b"-")).into_owned();
    Some((name, frame.line, frame.function_start.map(|start| start.0), frame.table))
}

/// docs/DEBUG-INFO.md, "Code after the end of a function" and "Lines without a function".
#[test]
fn where_debug_information_ends_the_symbol_table_goes_on() {
    let unit = Unit::new((0x1000, 0x1300)).child(Die::function("f", (0x1000, 0x1080)));
    let unit = unit.sequence(&[(0x1000, 1, 5, true)], 0x1080).sequence(&[(0x1200, 1, 9, true)], 0x1280);
    let symbols = vec![function("f", BASE + 0x1000, 0x100), function("assembly", BASE + 0x1200, 0x100)];
    let file = Elf { base: BASE, symbols, ..Elf::default() }.debug(debug_sections(&[unit])).bytes();
    let frame = |name: &str, line, start, table| Some((name.to_owned(), line, Some(start), table));
    assert_eq!(frame_at(&file, 0x107f), frame("f", Some(5), 0x1000, Dwarf));
    assert_eq!(frame_at(&file, 0x1080), frame("f", None, 0x1000, SymbolTable));
    assert_eq!(frame_at(&file, 0x10ff), frame("f", None, 0x1000, SymbolTable));
    assert_eq!(frame_at(&file, 0x1100), None);
    // A line that no subprogram covers has the symbol's name. Behind the line only the symbol answers.
    assert_eq!(frame_at(&file, 0x1200), frame("assembly", Some(9), 0x1200, Dwarf));
    assert_eq!(frame_at(&file, 0x1280), frame("assembly", None, 0x1200, SymbolTable));
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("compresses");
    encoder.finish().expect("compresses")
}

/// Returns `elf` with each debug section compressed by `compress` and marked with `method`.
fn compressed(elf: &Elf, method: u32, compress: impl Fn(&[u8]) -> Vec<u8>) -> Elf {
    let mut elf = elf.clone();
    for section in elf.sections.iter_mut().filter(|section| section.name.starts_with(".debug_")) {
        section.flags |= 0x800;
        let size = section.bytes.len() as u64;
        let header = [&method.to_le_bytes()[..], &[0; 4], &size.to_le_bytes(), &1u64.to_le_bytes()];
        section.bytes = [header.concat(), compress(&section.bytes)].concat();
    }
    elf
}

#[test]
fn compressed_sections_answer_alike() {
    let elf = with_dwarf();
    assert_eq!(answers(&elf.bytes(), Dwarf), LINES);
    let zstd = |bytes: &[u8]| zstd::stream::encode_all(bytes, 3).expect("compresses");
    assert_eq!(answers(&compressed(&elf, 1, zlib).bytes(), Dwarf), LINES);
    assert_eq!(answers(&compressed(&elf, 2, zstd).bytes(), Dwarf), LINES);
    let mut gnu = elf;
    for section in gnu.sections.iter_mut().filter(|section| section.name.starts_with(".debug_")) {
        section.name = section.name.replace(".debug", ".zdebug");
        let size = (section.bytes.len() as u64).to_be_bytes();
        section.bytes = [&b"ZLIB"[..], &size, &zlib(&section.bytes)].concat();
    }
    assert_eq!(answers(&gnu.bytes(), Dwarf), LINES);
}

#[test]
fn sections_that_claim_too_much_are_refused() {
    let claims = |size: u64| {
        let mut elf = compressed(&with_dwarf(), 1, zlib);
        elf.sections.iter_mut().for_each(|section| section.bytes[8..16].copy_from_slice(&size.to_le_bytes()));
        error(&elf.bytes())
    };
    assert!(claims(8 << 30).contains("would decompress to 8589934592 bytes"), "{}", claims(8 << 30));
    assert!(claims(1 << 20).contains("1048576 are stated"));
    let unknown = compressed(&with_dwarf(), 9, zlib);
    assert!(error(&unknown.bytes()).contains("method 9"));
}

fn error(file: &[u8]) -> String {
    let slice = slices(file).expect("an ELF file").remove(0);
    let companions = Companions::default();
    Image::load(&slice, "made-up", &companions).expect_err("not loaded").to_string()
}

#[test]
fn files_that_are_cut_or_not_linked_say_so() {
    let whole = with_dwarf().bytes();
    for end in (64..whole.len()).step_by(7) {
        assert!(error(&whole[..end]).contains("cut short"), "{end}: {}", error(&whole[..end]));
    }
    assert!(error(&Elf { kind: elf::ET_REL, ..with_dwarf() }.bytes()).contains("object file"));
    assert!(error(&Elf { kind: elf::ET_CORE, ..with_dwarf() }.bytes()).contains("core dump"));
}

/// Returns the error of `elf` after changes to its section headers. Each change is a section number, the offset of a
/// 64-bit field in the header, and its new value.
fn with_headers(elf: &Elf, changes: impl IntoIterator<Item = (usize, usize, u64)>) -> String {
    let mut file = elf.bytes();
    let table = u64::from_le_bytes(file[40..48].try_into().expect("8 bytes")) as usize;
    for (number, field, value) in changes {
        let at = table + 64 * number + field;
        file[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    error(&file)
}

#[test]
fn sections_that_are_all_the_same_bytes_are_refused() {
    // Hashing the code of each section would need unbounded memory, and reading the notes of each unbounded time.
    let sections = |elf: Elf, _| elf.section(".note.x", Vec::new());
    let elf = (0..50).fold(Elf { build_id: None, ..Elf::default() }, sections);
    let size = elf.bytes().len() as u64;
    let (offset_field, size_field) = (24, 32);
    let changes = (2..52).flat_map(|number| [(number, offset_field, 0), (number, size_field, size)]);
    assert!(with_headers(&elf, changes).contains("its sections overlap"));
}

#[test]
fn names_of_symbols_that_are_all_of_the_others_are_refused() {
    let name: &'static str = "a".repeat(60_000).leak();
    let mut symbols = vec![function(name, 0x1000, 0x10)];
    symbols.extend((1..2000).map(|number| function("", 0x1000 + number, 1)));
    let mut file = of(&symbols).bytes();
    let entry = file.windows(24).position(|bytes| bytes[..8] == [1, 0, 0, 0, 0x12, 0, 1, 0]).expect("there");
    for number in 1..2000 {
        file[entry + 24 * number..][..4].copy_from_slice(&(1 + number as u32).to_le_bytes());
    }
    assert!(error(&file).contains("its names overlap too much"), "{}", error(&file));
}
