//! Where the code of an image is, and the id that it gives an image without one (docs/DEBUG-INFO.md, "ELF").

use object::elf;
use symdex::Table::{Dwarf, SymbolTable};
use symdex::{ImageOffset, Index, LinePolicy, Scratch};
use symdex_build::{Companions, DirectLookup, Image, slices};
use symdex_testkit::images::debug_file::{BASE, Elf, ElfSection};

use super::{LINES, function, load, of, symbols, with_dwarf};
use crate::checks::answers;

#[test]
fn offsets_count_from_the_lowest_loaded_page() {
    let elf = Elf { base: 0x40_0000, ..of(&[function("f", 0x40_1000, 0x10)]) };
    assert_eq!(symbols(&elf), ["1000..1010 f"]);
    // Linux kernels load per-processor data at 0.
    let base = 0xffff_ffff_8100_0000;
    let kernel = Elf { base, other_segments: vec![0], ..of(&[function("f", base + 0x1000, 0x10)]) };
    assert_eq!(symbols(&kernel), ["1000..1010 f"]);
}

fn id(file: &[u8]) -> String {
    let companions = Companions::default();
    let image = Image::load(&slices(file).expect("an ELF file")[0], "made-up", &companions).expect("loads");
    image.info().id.to_string()
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

#[test]
fn executable_segments_are_those_of_the_file_that_has_the_code() {
    let files = [with_dwarf(), Elf { code: None, ..with_dwarf() }].map(|elf| elf.bytes());
    let [binary, debug_file] = [&files[0], &files[1]].map(|file| load(file, None));
    let segments = Some(vec![[0, BASE, 0x4000]]);
    assert_eq!(binary.info().segments, segments);
    assert_eq!(debug_file.info().segments, Some(vec![]));
    let joined = debug_file.join(binary);
    let direct = DirectLookup::new(&joined).expect("an image");
    assert_eq!(direct.index().metadata().segments, segments);
    let index = Index::open(symdex_build::build(&joined).expect("builds").bytes).expect("an index");
    assert_eq!(index.metadata().segments, segments);
    // Segments that overlap say nothing.
    let overlapping = Elf { other_segments: vec![BASE + 0x1000], ..with_dwarf() }.bytes();
    assert_eq!(load(&overlapping, None).info().segments, Some(vec![]));
}
