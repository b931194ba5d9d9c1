//! Unwind tables of all kinds, in ELF and Mach-O files of each processor.

use std::path::Path;

use object::{Object as _, ObjectSection as _, elf};
use symdex_testkit::images::debug_file::{Elf, ElfSection, MachO};

use crate::{checks, input};

/// The file type of programs: a dSYM has no unwind tables.
const MH_EXECUTE: u32 = 2;

pub fn run(data: &[u8]) {
    let [header, first, second] = input::parts(data);
    let field = |at: usize| header.get(at).copied().unwrap_or(0);
    let address = u16::from_le_bytes([field(1), field(2)]).into();
    let file = match field(0) % 8 {
        0 => macho((0x0100_0007, 3), first, second),
        1 => macho((7, 3), first, second),
        2 => macho((0x0100_000c, 0), first, second),
        3 => macho((0x0100_000c, 2), first, second),
        4 => dwarf(elf::EM_X86_64, true, address, first, second),
        5 => dwarf(elf::EM_386, false, address, first, second),
        6 => dwarf(elf::EM_AARCH64, true, address, first, second),
        _ => arm(address, first, second),
    };
    checks::debug_file(&file, Path::new("/nonexistent/fuzzed"));
}

fn macho(cpu: (u32, u32), compact: &[u8], eh_frame: &[u8]) -> Vec<u8> {
    let debug = vec![("__unwind_info", compact.to_vec()), ("__eh_frame", eh_frame.to_vec())];
    MachO { cpu, kind: MH_EXECUTE, debug, ..MachO::default() }.bytes()
}

fn dwarf(
    machine: elf::Machine,
    is_64_bit: bool,
    address: u64,
    eh_frame: &[u8],
    debug_frame: &[u8],
) -> Vec<u8> {
    let sections = vec![loaded(".eh_frame", elf::SHT_PROGBITS, address, eh_frame)];
    let file = Elf { machine, is_64_bit, sections, ..Elf::default() };
    file.section(".debug_frame", debug_frame.to_vec()).bytes()
}

fn arm(address: u64, index: &[u8], table: &[u8]) -> Vec<u8> {
    let sections = vec![
        loaded(".ARM.exidx", elf::SHT_ARM_EXIDX, address, index),
        loaded(".ARM.extab", elf::SHT_PROGBITS, address + index.len() as u64, table),
    ];
    Elf { machine: elf::EM_ARM, is_64_bit: false, sections, ..Elf::default() }.bytes()
}

fn loaded(name: &str, kind: elf::SectionType, address: u64, bytes: &[u8]) -> ElfSection {
    let (name, bytes) = (name.to_owned(), bytes.to_vec());
    ElfSection { name, kind: kind.0, flags: 2, address, bytes, link: 0 }
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    // A common encoding, and two index entries. Then a compressed page with an encoding of its own, and a regular one.
    let pages = |common: u32, own: u32| {
        let head = [1, 28, 1, 0, 0, 32, 3, common, 0x1000, 68, 0, 0x1200, 92, 0, 0x1300, 0, 0];
        let compressed = [3, 2 << 16 | 12, 1 << 16 | 20, 0x10, 0x0100_0020, own];
        words(&[&head[..], &compressed, &[2, 1 << 16 | 8, 0x1200, common]].concat())
    };
    // At 0x4000: functions at 0x1000, 0x1010, 0x1020 and 0x1030, of which the third has its instructions in the table.
    let to = |place: u32, target: u32| target.wrapping_sub(place) & 0x7fff_ffff;
    let index = [
        [to(0x4000, 0x1000), 0x80b0_b0b0],
        [to(0x4008, 0x1010), 1],
        [to(0x4010, 0x1020), to(0x4014, 0x4020)],
        [to(0x4018, 0x1030), 0x8004_80b0],
    ];
    let table = [0x8101_b108, 0x0384_00b0, 0];
    let arm = input::joined(&[&[7, 0, 0x40], &words(index.as_flattened()), &words(&table)]);
    let mut seeds: Vec<_> =
        [(0, 0x0102_0021, 0x0205_0c0a), (1, 0x0101_0004, 0x0205_0c0a), (2, 0x0400_0103, 0x0200_2001)]
            .into_iter()
            .filter_map(|(kind, common, own)| input::joined(&[&[kind], &pages(common, own), &[]]))
            .chain(arm)
            .collect();
    for file in input::files("testdata/elf", |_| true) {
        let file = object::File::parse(&*file).expect("an ELF file");
        let section = file.section_by_name(".eh_frame").expect("GCC writes it");
        let [low, high, ..] = section.address().to_le_bytes();
        let bytes = section.data().expect("in the file");
        for kind in 4..7 {
            seeds.extend(input::joined(&[&[kind, low, high], bytes, &[]]));
        }
    }
    seeds
}
