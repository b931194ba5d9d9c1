//! The functions of symbol tables and of unwind information (docs/DEBUG-INFO.md, "Symbols").

use object::elf;
use symdex_build::{Companions, FileSymbols, Image, slices};
use symdex_testkit::images::debug_file::{Elf, ElfSection, ElfSymbol};

use super::{function, of, symbols};

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
