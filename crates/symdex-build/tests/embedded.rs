//! Indexes that debug files carry: the section of an ELF file, and the digest of the debug file.

use std::io::Read as _;

use object::read::elf::{FileHeader, ProgramHeader as _};
use object::{Endianness, File, Object as _, ObjectSection as _, elf};
use symdex_build::{carrier_digest, index_section, is_carrier, with_index_section};
use symdex_testkit::images::debug_file::{Elf, ElfSymbol, MachO};
use symdex_testkit::testdata::testdata;

fn with_index(file: &[u8], index: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    with_index_section(file, index).expect("an ELF file").read_to_end(&mut bytes).expect("read");
    bytes
}

/// The name, address and bytes of each section.
fn sections(file: &[u8]) -> Vec<(String, u64, Vec<u8>)> {
    let file = File::parse(file).expect("an object file");
    let section = |section: object::Section<'_, '_>| {
        let bytes = section.data().expect("there").to_vec();
        (section.name().expect("text").to_owned(), section.address(), bytes)
    };
    file.sections().map(section).collect()
}

fn segments<H: FileHeader<Endian = Endianness>>(file: &[u8]) -> Vec<[u64; 6]> {
    let header = H::parse(file).expect("a header");
    let endian = header.endian().expect("an order");
    let number = |segment: &H::ProgramHeader| {
        [
            segment.p_type(endian).0.into(),
            segment.p_offset(endian).into(),
            segment.p_vaddr(endian).into(),
            segment.p_filesz(endian).into(),
            segment.p_memsz(endian).into(),
            segment.p_flags(endian).0.into(),
        ]
    };
    header.program_headers(endian, file).expect("there").iter().map(number).collect()
}

fn is_kept<H: FileHeader<Endian = Endianness>>(file: &[u8]) {
    let index = b"an index of any bytes";
    let carrying = with_index(file, index);
    assert_eq!(carrying[index_section(&carrying).expect("a section")], index[..]);
    assert_eq!((index_section(file), segments::<H>(file)), (None, segments::<H>(&carrying)));
    let header_size = size_of::<H>();
    assert_eq!(carrying[header_size..file.len()], file[header_size..]);
    let (before, mut after) = (sections(file), sections(&carrying));
    assert_eq!(after.pop(), Some((".symdex".to_owned(), 0, index.to_vec())));
    // Only the names of the sections have one more.
    let differ = before.iter().zip(&after).filter(|(one, other)| one != other);
    let differing: Vec<_> = differ.map(|(_, other)| other.2.ends_with(b"\0.symdex\0")).collect();
    assert_eq!((before.len(), &differing[..]), (after.len(), &[true][..]));
    let refused = with_index_section(&carrying, index).err().expect("it has one").to_string();
    assert!(refused.contains("objcopy -R .symdex"), "{refused}");
}

#[test]
fn an_elf_file_with_its_index_keeps_sections_and_segments() {
    let elf = |is_64_bit| {
        let machine = if is_64_bit { elf::EM_AARCH64 } else { elf::EM_ARM };
        let symbols = vec![ElfSymbol::function("main", 0x1000, 0x100)];
        Elf { is_64_bit, machine, symbols, ..Elf::default() }.bytes()
    };
    is_kept::<elf::FileHeader64<Endianness>>(&elf(true));
    is_kept::<elf::FileHeader32<Endianness>>(&elf(false));
    let library = std::fs::read(testdata().join("elf/gcc-names.so")).expect("testdata");
    is_kept::<elf::FileHeader64<Endianness>>(&library);
    let digest = carrier_digest(&library).expect("an ELF file");
    for all_bytes in [false, true] {
        assert!(is_carrier(&with_index(&library, b"index"), digest, all_bytes));
    }
}

#[test]
fn other_files_get_no_section() {
    let elf = Elf::default().bytes();
    let mach_o = MachO::default().bytes();
    for file in [&mach_o[..], b"", b"\x7fELF", &elf[..20], &elf[..elf.len() - 1]] {
        assert!(with_index_section(file, b"index").is_err(), "{}", file.len());
        assert_eq!(index_section(file), None);
    }
    for at in 0..64 {
        let mut damaged = elf.clone();
        damaged[at] ^= 0xff;
        // It may be refused or not, but nothing is read outside of the file.
        _ = with_index_section(&damaged, b"index");
        _ = index_section(&damaged);
    }
}

#[test]
fn a_change_is_noticed_by_its_size_by_a_sample_or_in_all_bytes() {
    let mut file = MachO::default().bytes();
    file.resize(file.len() + (8 << 20), 0);
    let digest = carrier_digest(&file).expect("a Mach-O file");
    assert!(is_carrier(&file, digest, false) && is_carrier(&file, digest, true));
    assert!(!is_carrier(&file[..file.len() - 1], digest, false), "another size");
    let (mut noticed, mut all) = (0, 0);
    let step = file.len() / 200;
    for number in 0..200 {
        let at = step * number + 500;
        file[at] ^= 1;
        noticed += usize::from(!is_carrier(&file, digest, false));
        all += usize::from(number % 100 == 1 && is_carrier(&file, digest, true));
        file[at] ^= 1;
    }
    assert!((2..14).contains(&noticed), "64 samples of 2048 pages: {noticed} of 200");
    assert_eq!(all, 0);
    assert!(!is_carrier(b"", digest, true) && carrier_digest(b"").is_err());
}
