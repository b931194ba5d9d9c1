//! Compressed sections, and files that are damaged or hostile.

use std::io::Write as _;

use object::elf;
use symdex::Table::Dwarf;
use symdex_build::{Companions, Image, slices};
use symdex_testkit::images::debug_file::Elf;

use super::{LINES, function, of, with_dwarf};
use crate::checks::answers;

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

pub(super) fn error(file: &[u8]) -> String {
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
    let module = Elf { kind: elf::ET_REL, build_id: None, ..with_dwarf() };
    let module = module.section(".gnu.linkonce.this_module", Vec::new());
    assert!(error(&module.bytes()).contains("a kernel module without a build id"));
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
