//! Oddities of Mach-O files and their symbol tables (docs/DEBUG-INFO.md, "Mach-O" and "Symbols").

#![expect(clippy::cast_possible_truncation, reason = "the debug files made here are small")]

use std::io::{Seek, SeekFrom, Write};

use crate::checks::{answers, built, image_answers};
use gimli::constants as dw;
use symdex::{Index, Table};
use symdex_build::{Companions, Image, slices, slices_for};
use symdex_testkit::images::debug_file::{BASE, CODE, CODE_FLAGS, Die, MachO, Section, Symbol, Unit, macho};

/// A unit with a function and its lines.
fn with_function() -> Unit {
    Unit::new((CODE.start, CODE.end))
        .child(Die::function("f", (0x1000, 0x1100)))
        .sequence(&[(0x1000, 1, 2, true), (0x1040, 2, 7, true)], 0x1100)
}

const LINES: [&str; 2] = ["1000..1040 f a.c:2", "1040..1100 f b.h:7"];

fn dwarf(file: &[u8]) -> Vec<String> {
    answers(file, Table::Dwarf)
}

fn symbols(file: &[u8]) -> Vec<String> {
    answers(file, Table::SymbolTable)
}

/// Two sections of code and one of data in `__TEXT`, none of which the file holds.
fn with_sections() -> MachO {
    let section = |name, range, flags| Section { name, range, flags, ..Section::default() };
    let text = vec![
        section("__text", 0x1000..0x2000, CODE_FLAGS),
        section("__const", 0x2000..0x2800, 0),
        section("__stubs", 0x2800..0x3000, 0x8000_0408),
    ];
    MachO { text, ..MachO::default() }
}

#[test]
fn sections_that_only_the_binary_holds_are_not_missing() {
    let file = MachO { symbols: vec![Symbol::function("f", BASE + 0x1000)], ..with_sections() };
    // The function is as long as its section states, and longer than the file.
    assert!(file.bytes().len() < 0x1000);
    assert_eq!(symbols(&file.bytes()), ["1000..2000 f"]);
    // Missing debug information is an error.
    let debug = macho(&[with_function()], &[]).bytes();
    let cut = &debug[..debug.len() - 1];
    let slice = slices(cut).expect("a Mach-O file").remove(0);
    let companions = Companions::default();
    let error = Image::load(&slice, "made-up", &companions).expect_err("cut").to_string();
    assert!(error.starts_with("the file is cut short: the segment __DWARF"), "{error}");
}

/// Section names of Mach-O have at most 16 bytes, so `.debug_str_offsets` is `__debug_str_offs`.
#[test]
fn section_names_are_cut_to_16_bytes() {
    let attributes = |list: &[(gimli::DwAt, gimli::DwForm)]| {
        list.iter().flat_map(|(at, form)| [at.0 as u8, form.0 as u8]).chain([0, 0]).collect::<Vec<u8>>()
    };
    let abbrev = [
        &[1, dw::DW_TAG_compile_unit.0 as u8, 1][..],
        // DW_AT_str_offsets_base is 0x72.
        &attributes(&[(dw::DW_AT_str_offsets_base, dw::DW_FORM_sec_offset)]),
        &[2, dw::DW_TAG_subprogram.0 as u8, 0],
        &attributes(&[
            (dw::DW_AT_name, dw::DW_FORM_strx1),
            (dw::DW_AT_low_pc, dw::DW_FORM_addr),
            (dw::DW_AT_high_pc, dw::DW_FORM_data1),
        ]),
        &[0],
    ]
    .concat();
    let dies = [&[1][..], &8u32.to_le_bytes(), &[2, 1], &(BASE + 0x1000).to_le_bytes(), &[0x40, 0]].concat();
    let header = [&[5, 0, dw::DW_UT_compile.0, 8][..], &0u32.to_le_bytes()].concat();
    let size = ((header.len() + dies.len()) as u32).to_le_bytes();
    let info = [&size[..], &header, &dies].concat();
    let offsets =
        [&12u32.to_le_bytes()[..], &[5, 0, 0, 0], &0u32.to_le_bytes(), &6u32.to_le_bytes()].concat();
    let debug = vec![
        ("__debug_abbrev", abbrev),
        ("__debug_info", info),
        ("__debug_str", b"first\0second\0".to_vec()),
        ("__debug_str_offs", offsets),
    ];
    let file = MachO { debug, ..MachO::default() }.bytes();
    assert_eq!(dwarf(&file), ["1000..1040 second -"]);
}

/// A section states its offset in 32 bits. The file here has a hole of more than 4 GiB before its debug information.
#[test]
fn debug_information_behind_4_gib_is_found() {
    for debug_offset in [(1 << 32) - 0x40, (1 << 32) + 0x1000, 5 << 32] {
        let uuid = Some([7; 16]);
        let large = MachO { debug_offset, uuid, ..macho(&[with_function()], &[("f", 0x1000)]) };
        let (head, offset, debug) = large.parts();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("large");
        let mut file = std::fs::File::create(&path).expect("a file");
        file.write_all(&head).expect("written");
        file.seek(SeekFrom::Start(offset)).expect("a hole");
        file.write_all(&debug).expect("written");
        let bytes = symdex::map_file(&path).expect("mapped");
        assert!(bytes.len() as u64 > debug_offset);
        assert_eq!(dwarf(&bytes), LINES, "{debug_offset:#x}");
        assert_eq!(symbols(&bytes), ["1000..3000 f"], "{debug_offset:#x}");
    }
}

/// A universal binary of these slices, with a header of 32-bit or 64-bit offsets.
fn fat(slices: &[&MachO], is_64_bit: bool) -> Vec<u8> {
    let number = |number: usize| {
        if is_64_bit {
            (number as u64).to_be_bytes().to_vec()
        } else {
            (number as u32).to_be_bytes().to_vec()
        }
    };
    let magic: u32 = if is_64_bit { 0xcafe_babf } else { 0xcafe_babe };
    let mut head = [magic.to_be_bytes(), (slices.len() as u32).to_be_bytes()].concat();
    let entry_size = if is_64_bit { 32 } else { 20 };
    let mut body = Vec::new();
    for slice in slices {
        let bytes = slice.bytes();
        let offset = 8 + entry_size * slices.len() + body.len();
        head.extend([slice.cpu.0.to_be_bytes(), slice.cpu.1.to_be_bytes()].concat());
        head.extend([number(offset), number(bytes.len()), 0u32.to_be_bytes().to_vec()].concat());
        head.extend(if is_64_bit { &[0; 4][..] } else { &[] });
        body.extend(bytes);
    }
    [head, body].concat()
}

const ARM64: (u32, u32) = (0x0100_000c, 0);
/// arm64 with pointer authentication. The high bits of the subtype state the version of its ABI.
const ARM64E: (u32, u32) = (0x0100_000c, 0x8100_0002);
const ARMV7: (u32, u32) = (12, 9);

fn of(cpu: (u32, u32), name: &'static str, uuid: u8) -> MachO {
    let is_32_bit = cpu == ARMV7;
    let unit = Unit::new((CODE.start, CODE.end)).child(Die::function(name, (0x1000, 0x1100)));
    let unit = if is_32_bit { unit.address_size(4) } else { unit };
    let base = if is_32_bit { 0 } else { BASE };
    MachO { cpu, uuid: Some([uuid; 16]), base, ..macho(&[unit], &[]) }
}

#[test]
fn slices_come_in_any_order_each_with_an_id_and_debug_information_of_its_own() {
    let [arm64, arm64e, armv7] = [of(ARM64, "a", 1), of(ARM64E, "e", 2), of(ARMV7, "v", 3)];
    for is_64_bit in [false, true] {
        for order in [[&arm64, &arm64e, &armv7], [&armv7, &arm64e, &arm64]] {
            let file = fat(&order, is_64_bit);
            let mut found: Vec<_> = slices(&file)
                .expect("a universal binary")
                .iter()
                .map(|slice| {
                    let companions = Companions::default();
                    let image = Image::load(slice, "made-up", &companions).expect("loads");
                    let id = image.info().id.as_bytes()[0];
                    (id, slice.arch.name.clone(), image_answers(&image, Table::Dwarf).concat())
                })
                .collect();
            assert_eq!(found[0].0, order[0].uuid.expect("an id")[0], "in file order");
            found.sort();
            let expected = [
                (1, "arm64", "1000..1100 a -"),
                (2, "arm64e", "1000..1100 e -"),
                (3, "armv7", "1000..1100 v -"),
            ];
            assert_eq!(found, expected.map(|(id, arch, line)| (id, arch.to_owned(), line.to_owned())));
            let only = slices_for(&file, Some("arm64e")).expect("there");
            assert_eq!(only.iter().map(|slice| slice.arch.name.as_str()).collect::<Vec<_>>(), ["arm64e"]);
        }
    }
    let missing = slices_for(&fat(&[&armv7, &arm64], false), Some("arm64e")).expect_err("not there");
    assert_eq!(missing.to_string(), "no slice for \"arm64e\"; the file has armv7, arm64");
}

#[test]
fn java_classes_begin_like_universal_binaries_and_are_none() {
    // cafebabe, minor and major version, and the number of constants.
    for major in [45, 52, 65, 99] {
        let class = [0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, major, 0, 16, 10, 0, 4, 0, 13];
        let error = slices(&class).expect_err("no debug file").to_string();
        assert!(error.contains("a Java class file"), "{error}");
    }
}

fn symbol(name: &str, offset: u64, kind: u8, section: u8, desc: u16) -> Symbol {
    Symbol { kind, section, desc, ..Symbol::function(name, BASE.wrapping_add(offset)) }
}

const EXTERNAL: u8 = 0x0f;
const LOCAL: u8 = 0x0e;
const PRIVATE_EXTERNAL: u8 = 0x1f;

#[test]
fn only_symbols_that_are_defined_in_code_are_functions() {
    let file = MachO {
        symbols: vec![
            symbol("f", 0x1000, EXTERNAL, 1, 0),
            symbol("local", 0x1100, LOCAL, 1, 0),
            symbol("hidden", 0x1200, PRIVATE_EXTERNAL, 1, 0),
            symbol("stub", 0x2810, LOCAL, 3, 0),
            // Stabs: N_FUN, N_OSO, N_STSYM and others.
            symbol("stab_function", 0x1300, 0x24, 1, 0),
            symbol("stab_file", 0x1310, 0x66, 1, 0),
            symbol("stab_end", 0x1320, 0x2e, 1, 0),
            // Absolute, undefined, indirect.
            symbol("absolute", 0x1400, 0x03, 0, 0),
            symbol("undefined", 0x1410, 0x01, 0, 0),
            symbol("indirect", 0x1420, 0x0b, 0, 0),
            // A symbol of data, one of a section that does not exist, and one whose address is in another section.
            symbol("data", 0x2010, EXTERNAL, 2, 0),
            symbol("nowhere", 0x1500, EXTERNAL, 9, 0),
            symbol("data_of_code", 0x2020, EXTERNAL, 1, 0),
            // Below and above the image.
            symbol("below", 0u64.wrapping_sub(0x10), EXTERNAL, 1, 0),
            symbol("above", 0x9000, EXTERNAL, 1, 0),
        ],
        ..with_sections()
    };
    assert_eq!(
        symbols(&file.bytes()),
        ["1000..1100 f", "1100..1200 local", "1200..2000 hidden", "2810..3000 stub"]
    );
}

#[test]
fn the_header_symbols_are_no_functions() {
    let headers = ["_mh_execute_header", "_mh_dylib_header", "_mh_bundle_header", "_mh_dylinker_header"];
    let symbols_at =
        |offset| headers.iter().map(|name| symbol(name, offset, EXTERNAL, 1, 0)).collect::<Vec<_>>();
    // At the start of the image, and at the address of a function.
    for offset in [0, 0x1000] {
        let mut all = symbols_at(offset);
        all.push(symbol("f", 0x1000, LOCAL, 1, 0));
        let file = MachO { symbols: all, ..with_sections() };
        assert_eq!(symbols(&file.bytes()), ["1000..2000 f"], "{offset:#x}");
    }
}

#[test]
fn a_symbol_ends_at_the_next_one_a_function_start_or_the_sections_end() {
    let file = MachO {
        symbols: vec![symbol("f", 0x1000, EXTERNAL, 1, 0), symbol("g", 0x1800, EXTERNAL, 1, 0)],
        function_starts: vec![0x1000, 0x1200, 0x1800, 0x2810],
        ..with_sections()
    };
    // A function that only LC_FUNCTION_STARTS lists has an end and no name.
    assert_eq!(symbols(&file.bytes()), ["1000..1200 f", "1200..1800 -", "1800..2000 g", "2810..3000 -"]);
}

#[test]
fn alternative_entries_start_no_function() {
    /// `N_ALT_ENTRY`.
    const ALTERNATIVE: u16 = 0x0200;
    let file = MachO {
        symbols: vec![
            symbol("f", 0x1000, EXTERNAL, 1, 0),
            symbol("into_f", 0x1040, EXTERNAL, 1, ALTERNATIVE),
            symbol("g", 0x1100, EXTERNAL, 1, 0),
        ],
        ..with_sections()
    };
    assert_eq!(symbols(&file.bytes()), ["1000..1100 f", "1100..2000 g"]);
}

#[test]
fn of_several_names_at_one_address_external_ones_come_first_then_the_smaller() {
    let at = |names: &[(&str, u8)]| {
        let symbols = names.iter().map(|(name, kind)| symbol(name, 0x1000, *kind, 1, 0)).collect();
        answers(&MachO { symbols, ..with_sections() }.bytes(), Table::SymbolTable).concat()
    };
    assert_eq!(at(&[("b", EXTERNAL), ("a", EXTERNAL), ("Z", LOCAL)]), "1000..2000 a");
    assert_eq!(at(&[("Z", LOCAL), ("a", EXTERNAL), ("b", EXTERNAL)]), "1000..2000 a");
    let temporary = vec![Symbol::raw(b"ltmp0", BASE + 0x1000), symbol("static", 0x1000, LOCAL, 1, 0)];
    let file = MachO { symbols: temporary, ..with_sections() };
    assert_eq!(symbols(&file.bytes()), ["1000..2000 static"]);
}

/// In `LC_FUNCTION_STARTS` bit 0 marks a function as Thumb code. Symbols do not have this bit.
#[test]
fn the_thumb_bit_of_function_starts_is_no_part_of_an_address() {
    let symbol = |name, offset| Symbol { desc: 8, ..Symbol::function(name, offset) };
    let armv7 = MachO {
        cpu: ARMV7,
        base: 0,
        symbols: vec![symbol("thumb", 0x1000), symbol("arm", 0x1100)],
        function_starts: vec![0x1001, 0x1100, 0x1201],
        ..with_sections()
    };
    assert_eq!(symbols(&armv7.bytes()), ["1000..1100 thumb", "1100..1200 arm", "1200..2000 -"]);
    // arm64 has no such bit, and x86 functions may start at odd addresses.
    let x86_64 = MachO { cpu: (0x0100_0007, 3), function_starts: vec![0x1001, 0x1004], ..with_sections() };
    assert_eq!(symbols(&x86_64.bytes()), ["1001..1004 -", "1004..2000 -"]);
}

/// A symbol table that reaches past the end of the file is damage. Function starts that do are in the binary.
#[test]
fn function_starts_that_only_the_binary_holds_are_not_missing() {
    let with = |starts: &[u64]| {
        let symbols = vec![symbol("f", 0x1000, EXTERNAL, 1, 0)];
        MachO { symbols, function_starts: starts.to_vec(), ..with_sections() }.bytes()
    };
    let mut file = with(&[0x1000, 0x1100]);
    assert_eq!(symbols(&file), ["1000..1100 f", "1100..2000 -"]);
    let command =
        file.windows(8).position(|bytes| bytes == [0x26, 0, 0, 0, 16, 0, 0, 0]).expect("the command");
    file[command + 8..command + 12].copy_from_slice(&0x00ff_0000u32.to_le_bytes());
    assert_eq!(symbols(&file), ["1000..2000 f"]);
    let index = Index::open(built(&file).bytes).expect("just written");
    assert_eq!(index.metadata().partial, []);
}

/// Names in a string table may share their ends. Here all symbols have the same long name.
#[test]
fn names_of_symbols_that_are_all_of_the_others_are_refused() {
    let name = "a".repeat(60_000);
    let symbols: Vec<Symbol> = (0..500).map(|_| Symbol::function(&name[..1], BASE + 0x1000)).collect();
    let mut file = MachO {
        symbols: [vec![Symbol::function(&name, BASE + 0x1000)], symbols].concat(),
        ..MachO::default()
    }
    .bytes();
    let place = |file: &[u8], command: [u8; 8]| {
        file.windows(8).position(|bytes| bytes == command).expect("there") + 8
    };
    let symtab = place(&file, [2, 0, 0, 0, 24, 0, 0, 0]);
    let table = u32::from_le_bytes(file[symtab..symtab + 4].try_into().expect("four bytes")) as usize;
    for symbol in 0..501 {
        file[table + 16 * symbol..][..4].copy_from_slice(&1u32.to_le_bytes());
    }
    let slice = slices(&file).expect("a Mach-O file").remove(0);
    let companions = Companions::default();
    let error = Image::load(&slice, "made-up", &companions).expect_err("refused").to_string();
    assert!(error.contains("its names overlap too much"), "{error}");
}
