//! Oddities of ELF files: symbols, ids, rows at one address, compressed sections, separate debug files
//! (docs/DEBUG-INFO.md, "Symbols", "ELF", "Rows at one address", "Separate debug files").

#![expect(clippy::cast_possible_truncation, reason = "the debug files made here are small")]

mod checks;

use std::fs;
use std::io::Write as _;

use checks::{answers, found, image_answers};
use object::elf;
use symdex::Table::{Dwarf, SymbolTable};
use symdex::{ImageId, ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_build::debug_files::{DebugFile, JoinedImage};
use symdex_build::{Companions, Image, slices};
use symdex_testkit::images::debug_file::{
    BASE, Die, Elf, ElfSection, ElfSymbol, Unit, debug_sections, write,
};

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
        function("data", 0x1100, 0x10).kind(elf::STT_OBJECT),
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
    assert!(claims(8 << 30).contains("8589934592 bytes once decompressed"), "{}", claims(8 << 30));
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

#[test]
fn names_of_other_files_may_be_as_long_as_they_like() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    let link = debug_link(&"a".repeat(1 << 20), b"");
    fs::write(&path, Elf::default().section(".gnu_debuglink", link).bytes()).expect("written");
    let (_, missing) = found(&path, &Companions::default());
    assert!(missing[0].starts_with("the debug file aaaa") && missing[0].len() < 500, "{missing:?}");
}

/// `.gnu_debuglink`: a name, zeros up to a multiple of four, and a checksum.
fn debug_link(name: &str, of: &[u8]) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize((name.len() / 4 + 1) * 4, 0);
    [bytes, crc32fast::hash(of).to_le_bytes().to_vec()].concat()
}

#[test]
fn a_stripped_file_finds_its_debug_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let debug = Elf { code: None, ..with_dwarf() };
    let stripped = Elf { sections: Vec::new(), symbols: Vec::new(), ..with_dwarf() };
    for build_id in [Some(vec![7; 20]), None] {
        let debug = Elf { build_id: build_id.clone(), ..debug.clone() }.bytes();
        let stripped = Elf { build_id: build_id.clone(), ..stripped.clone() }
            .section(".gnu_debuglink", debug_link("a.debug", &debug));
        let path = folder.path().join("liba.so");
        fs::write(&path, stripped.bytes()).expect("written");

        let (answers, missing) = found(&path, &Companions::default());
        assert_eq!(answers, [""; 0]);
        assert!(missing[0].contains("the debug file a.debug ("), "{missing:?}");
        for beside in ["a.debug", ".debug/a.debug"] {
            let beside = folder.path().join(beside);
            fs::create_dir_all(beside.parent().expect("a folder")).expect("a folder");
            fs::write(&beside, &debug).expect("written");
            assert_eq!(found(&path, &Companions::default()), (LINES.map(str::to_owned).into(), Vec::new()));
            // A file with the right name and another build id or checksum is not used.
            let other = Elf { build_id: Some(vec![8; 20]), ..Elf::default() }.bytes();
            fs::write(&beside, other).expect("written");
            let (answers, missing) = found(&path, &Companions::default());
            assert_eq!(answers, [""; 0]);
            let expected = match build_id {
                Some(_) => {
                    format!("(build id {}) does not match: a.debug has the build id ", "07".repeat(20))
                }
                None => format!(
                    "(CRC-32 {:08x}) does not match: a.debug has the CRC-32 ",
                    crc32fast::hash(&debug)
                ),
            };
            assert!(missing[0].contains(&expected), "{missing:?}");
            fs::remove_file(&beside).expect("there");
        }
    }
}

#[test]
fn a_stripped_file_finds_its_debug_file_by_build_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    fs::write(&path, Elf { sections: Vec::new(), symbols: Vec::new(), ..with_dwarf() }.bytes())
        .expect("written");
    let debug = folder.path().join(format!("debug/.build-id/07/{}.debug", "07".repeat(19)));
    fs::create_dir_all(debug.parent().expect("a folder")).expect("a folder");
    fs::write(&debug, Elf { code: None, ..with_dwarf() }.bytes()).expect("written");
    let companions = Companions::new(vec![folder.path().join("debug")]);
    assert_eq!(found(&path, &companions), (LINES.map(str::to_owned).into(), Vec::new()));
    assert_eq!(found(&path, &Companions::default()), (Vec::new(), Vec::new()));
    // prelink moves a library, and not its debug file.
    fs::write(&debug, Elf { code: None, base: 0, ..with_dwarf() }.bytes()).expect("written");
    let (answers, missing) = found(&path, &companions);
    assert_eq!(answers, [""; 0]);
    let moved = format!("07.debug has other addresses, from 0x0 on and not from {BASE:#x} on");
    assert!(
        missing[0].starts_with("the debug file (build id 07") && missing[0].contains(&moved),
        "{missing:?}"
    );
}

#[test]
fn companions_alone_say_what_they_belong_to() {
    let unlinked = Elf { kind: elf::ET_REL, code: None, ..Elf::default() };
    let debug = || unlinked.clone().debug(debug_sections(&[Unit::bare()]));
    for (file, kind) in [
        (debug(), "a supplementary file of dwz"),
        (debug().section(".debug_info.dwo", Vec::new()), "an object file of split units (.dwo)"),
        (debug().section(".debug_cu_index", Vec::new()), "a package of split units (.dwp)"),
    ] {
        let expected = format!(
            "{kind}, which is no image of its own; give it together with the debug files that refer to it"
        );
        assert_eq!(error(&file.bytes()), expected);
        assert!(error(&Elf { code: Some(0), ..file }.bytes()).contains("an object file; give"));
    }
}

#[test]
fn an_image_has_the_name_of_its_binary() {
    let folder = tempfile::tempdir().expect("a folder");
    let by_id = &*format!("root/.build-id/07/{}.debug", "07".repeat(19));
    let debug = Elf { code: None, ..with_dwarf() };
    let binary = Elf { sections: Vec::new(), ..with_dwarf() };
    for (path, elf) in [(by_id, &debug), ("root/a.debug", &debug), ("root/liba.so", &binary)] {
        write(&folder.path().join(path), elf);
    }
    let companions = Companions::new(vec![folder.path().join("root")]);
    let name = |paths: &[&str]| {
        let mut joined = JoinedImage::default();
        for path in paths {
            let file = DebugFile::on_disk(folder.path().join(path));
            joined.add_file(&file, &ImageId::new(&[7; 20]).expect("an id"), "arm64", &companions);
        }
        joined.image.expect("readable").info().image_name.clone()
    };
    for paths in [[by_id, "root/liba.so"], ["root/liba.so", by_id], ["root/a.debug", "root/liba.so"]] {
        assert_eq!(name(&paths), "liba.so", "{paths:?}");
    }
    assert_eq!(name(&[by_id, "root/a.debug"]), "a.debug");
    #[cfg(unix)]
    {
        let link = folder.path().join("root/.build-id/07/link");
        std::os::unix::fs::symlink("../../liba.so", link).expect("a link");
        assert_eq!(name(&["root/.build-id/07/link"]), "liba.so");
    }
}

#[test]
fn mini_debug_info_has_the_symbols_that_were_stripped() {
    let mini = of(&[function("hidden", 0x1000, 0x20)]).bytes();
    let mut packed =
        lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).expect("options");
    packed.write_all(&mini).expect("compresses");
    let packed = packed.finish().expect("compresses");
    let dynamic = Elf { dynamic_symbols: vec![function("exported", 0x1100, 0x20)], ..Elf::default() };
    let elf = dynamic.clone().section(".gnu_debugdata", packed.clone());
    assert_eq!(symbols(&elf), ["1000..1020 hidden", "1100..1120 exported"]);

    let broken = dynamic.section(".gnu_debugdata", packed[..40].to_vec());
    assert_eq!(symbols(&broken), ["1100..1120 exported"]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    fs::write(&path, broken.bytes()).expect("written");
    let missing = found(&path, &Companions::default()).1;
    assert!(missing[0].contains(".gnu_debugdata"), "{missing:?}");
}

#[test]
fn two_files_of_one_image_make_one() {
    let (debug, stripped) = (
        Elf { code: None, ..with_dwarf() }.bytes(),
        Elf {
            base: BASE,
            dynamic_symbols: vec![function("exported", BASE + 0x2000, 0x20)],
            ..Elf::default()
        }
        .bytes(),
    );
    let companions = Companions::default();
    let image = |file| {
        let slice = slices(file).expect("an ELF file").remove(0);
        Image::load(&slice, "made-up", &companions).expect("loads")
    };
    for (one, other) in [(&debug, &stripped), (&stripped, &debug)] {
        let (one, other) = (image(one), image(other));
        assert!(one.can_join(&other));
        let both = one.join(other);
        assert_eq!(image_answers(&both, Dwarf), LINES);
        assert_eq!(
            image_answers(&both, SymbolTable),
            ["1000..1100 f", "1200..1220 g", "2000..2020 exported"]
        );
    }
}
