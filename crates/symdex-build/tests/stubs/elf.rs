//! Stubs of made-up ELF files.

#![expect(clippy::cast_possible_truncation, reason = "the debug files made here are small")]

use object::elf;
use symdex_build::{Companions, Image, slices};
use symdex_testkit::images::debug_file::{Elf, ElfSection, ElfSymbol};

use super::symbols_of;

/// The address of the first stub.
const PLT: u64 = 0x3000;
/// The address of the first slot.
const GOT: u64 = 0x1_4010;

/// The bytes of a stub at an address, which jumps through the slot at another one.
type Stub = fn(u64, u64) -> Vec<u8>;

/// A form of stubs: the machine, the section, the relocation of the slots, the size of a stub, its bytes.
type Form = (elf::Machine, &'static str, elf::RelocationType, u64, Stub);

const LAZY: Form = (elf::EM_X86_64, ".plt", elf::R_X86_64_JUMP_SLOT, 16, |at, slot| {
    [&relative(&[0xff, 0x25], at, slot)[..], &[0x68, 1, 0, 0, 0, 0xe9, 2, 3, 4, 5]].concat()
});

const FORMS: [Form; 14] = [
    LAZY,
    (elf::EM_X86_64, ".plt.got", elf::R_X86_64_GLOB_DAT, 8, |at, slot| {
        [&relative(&[0xff, 0x25], at, slot)[..], &[0x66, 0x90]].concat()
    }),
    (elf::EM_X86_64, ".plt.bnd", elf::R_X86_64_JUMP_SLOT, 8, |at, slot| {
        [&relative(&[0xf2, 0xff, 0x25], at, slot)[..], &[0x90]].concat()
    }),
    (elf::EM_X86_64, ".plt.sec", elf::R_X86_64_JUMP_SLOT, 16, |at, slot| {
        [&relative(&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25], at, slot)[..], &[0x0f, 0x1f, 0x44, 0, 0]]
            .concat()
    }),
    // mold
    (elf::EM_X86_64, ".plt", elf::R_X86_64_JUMP_SLOT, 16, |at, slot| {
        relative(&[0xf3, 0x0f, 0x1e, 0xfa, 0x41, 0xbb, 7, 0, 0, 0, 0xff, 0x25], at, slot)
    }),
    (elf::EM_386, ".plt", elf::R_386_JMP_SLOT, 16, |_, slot| {
        [&[0xff, 0x25][..], &(slot as u32).to_le_bytes(), &[0x68, 8, 0, 0, 0, 0xe9, 2, 3, 4, 5]].concat()
    }),
    (elf::EM_386, ".plt.got", elf::R_386_GLOB_DAT, 8, |_, slot| {
        [&[0xff, 0xa3][..], &((slot - GOT) as u32).to_le_bytes(), &[0x66, 0x90]].concat()
    }),
    (elf::EM_386, ".plt.sec", elf::R_386_JMP_SLOT, 16, |_, slot| {
        let jump = [&[0xf3, 0x0f, 0x1e, 0xfb, 0xff, 0xa3][..], &((slot - GOT) as u32).to_le_bytes()].concat();
        [&jump[..], &[0x66, 0x0f, 0x1f, 0x44, 0, 0]].concat()
    }),
    (elf::EM_AARCH64, ".plt", elf::R_AARCH64_JUMP_SLOT, 16, |at, slot| arm64(at, slot, &[], &[])),
    // bti c; and autia1716
    (elf::EM_AARCH64, ".plt", elf::R_AARCH64_JUMP_SLOT, 24, |at, slot| arm64(at, slot, &[0xd503_245f], &[])),
    (elf::EM_AARCH64, ".plt", elf::R_AARCH64_GLOB_DAT, 24, |at, slot| {
        arm64(at, slot, &[0xd503_245f], &[0xd503_219f])
    }),
    (elf::EM_ARM, ".plt", elf::R_ARM_JUMP_SLOT, 12, arm),
    (elf::EM_ARM, ".plt", elf::R_ARM_JUMP_SLOT, 16, |at, slot| {
        // bx pc; nop
        [vec![0x78, 0x47, 0xc0, 0x46], arm(at + 4, slot)].concat()
    }),
    (elf::EM_ARM, ".iplt", elf::R_ARM_GLOB_DAT, 16, |at, slot| {
        words(&[0xe59f_c004, 0xe08c_c00f, 0xe59c_f000, (slot - at - 12) as u32])
    }),
];

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// An instruction at `at` whose operand is the distance of `slot` from the next instruction.
fn relative(opcode: &[u8], at: u64, slot: u64) -> Vec<u8> {
    let distance = (slot - at) as u32 - opcode.len() as u32 - 4;
    [opcode, &distance.to_le_bytes()].concat()
}

fn arm64(at: u64, slot: u64, before: &[u32], signed: &[u32]) -> Vec<u8> {
    let pages = ((slot >> 12) - (at >> 12)) as u32;
    let offset = (slot & 0xfff) as u32;
    let adrp = 0x9000_0010 | (pages & 3) << 29 | (pages >> 2) << 5;
    let add = [adrp, 0xf940_0211 | (offset / 8) << 10, 0x9100_0210 | offset << 10];
    let code = [before, &add, signed, &[0xd61f_0220]].concat();
    // Padding follows where there is one of both.
    let padding = if before.len() + signed.len() == 1 { &[0xd503_201f][..] } else { &[] };
    words(&[&code, padding].concat())
}

fn arm(at: u64, slot: u64) -> Vec<u8> {
    let distance = (slot - at - 8) as u32;
    words(&[
        0xe28f_c600 | distance >> 20,
        0xe28c_ca00 | distance >> 12 & 0xff,
        0xe5bc_f000 | distance & 0xfff,
    ])
}

fn section(name: &str, kind: elf::SectionType, flags: u32, address: u64, bytes: Vec<u8>) -> ElfSection {
    ElfSection { name: name.to_owned(), kind: kind.0, flags, address, bytes, ..ElfSection::default() }
}

/// A relocation: its type, its slot, the number of a symbol, and the addend, which is in the slot in files of 32 bits.
type Relocation = (elf::RelocationType, u64, u64, u64);

fn is_64_bit(machine: elf::Machine) -> bool {
    matches!(machine, elf::EM_X86_64 | elf::EM_AARCH64)
}

/// The address of a slot.
fn slot(machine: elf::Machine, number: u64) -> u64 {
    GOT + if is_64_bit(machine) { 8 } else { 4 } * number
}

/// A library with a function `f`, which ends where the section of stubs begins, and the symbols `one`, `two` and
/// `three` of other libraries.
fn with_code(machine: elf::Machine, name: &str, code: Vec<u8>, relocations: &[Relocation]) -> Elf {
    let wide = is_64_bit(machine);
    let size = if wide { 8 } else { 4 };
    let mut slots = vec![0; 32 * size];
    let mut entries = Vec::new();
    for (kind, number, symbol, addend) in relocations {
        let address = slot(machine, *number);
        entries.extend(if wide {
            [address, symbol << 32 | u64::from(kind.0), *addend].map(u64::to_le_bytes).concat()
        } else {
            [address as u32, (*symbol as u32) << 8 | kind.0].map(u32::to_le_bytes).concat()
        });
        if !wide {
            slots[4 * *number as usize..][..4].copy_from_slice(&(*addend as u32).to_le_bytes());
        }
    }
    let kind = if wide { elf::SHT_RELA } else { elf::SHT_REL };
    let imported = |name| ElfSymbol { section: 0, ..ElfSymbol::function(name, 0, 0) };
    let sections = vec![
        section(name, elf::SHT_PROGBITS, 6, PLT, code),
        section(".got.plt", elf::SHT_PROGBITS, 3, GOT, slots),
        // The sections before .dynsym are .text, .symtab and .strtab.
        ElfSection { link: 4, ..section(".relocations", kind, 2, 0, entries) },
    ];
    Elf {
        machine,
        is_64_bit: wide,
        symbols: vec![ElfSymbol::function("f", 0x2f00, 0)],
        dynamic_symbols: ["one", "two", "three"].map(imported).into(),
        sections,
        ..Elf::default()
    }
}

/// Three stubs of a form after 32 bytes of other code, which jump through slots 4, 5 and 6.
fn code((machine, _, _, size, stub): Form) -> Vec<u8> {
    let stubs = (0..3).map(|number| stub(PLT + 32 + number * size, slot(machine, 4 + number)));
    [vec![0; 32], stubs.collect::<Vec<_>>().concat()].concat()
}

/// As [`code`] in a file that has these relocations of the form.
fn with_stubs(form: Form, relocations: &[(u64, u64)]) -> Elf {
    let (machine, name, kind, ..) = form;
    let relocations: Vec<Relocation> =
        relocations.iter().map(|(slot, symbol)| (kind, *slot, *symbol, 0)).collect();
    with_code(machine, name, code(form), &relocations)
}

fn symbols(elf: &Elf) -> Vec<String> {
    super::symbols(&elf.bytes())
}

pub(crate) fn stubs_have_the_names_of_the_relocations_of_their_slots() {
    // In another order than the stubs.
    let named = ["2f00..3000 f", "3020..3030 two@plt", "3030..3040 three@plt", "3040..3050 one@plt"];
    assert_eq!(symbols(&with_stubs(LAZY, &[(6, 1), (4, 2), (5, 3)])), named);
    // Of several relocations of a slot the first counts.
    assert_eq!(symbols(&with_stubs(LAZY, &[(6, 1), (4, 2), (5, 3), (4, 3)])), named);
    // A symbol at a stub, and one within it, which is a label.
    let mut elf = with_stubs(LAZY, &[(4, 1), (5, 2)]);
    elf.symbols.extend([ElfSymbol::function("mine", 0x3020, 0), ElfSymbol::function("label", 0x3036, 0)]);
    assert_eq!(symbols(&elf), ["2f00..3000 f", "3020..3030 mine", "3030..3040 two@plt"]);
}

pub(crate) fn stubs_of_every_form_are_recognised() {
    for form in FORMS {
        let (machine, name, _, size, _) = form;
        let stub = |(number, name): (u64, &str)| {
            let start = PLT + 32 + number * size;
            format!("{start:x}..{:x} {name}@plt", start + size)
        };
        let expected: Vec<String> = (0..).zip(["three", "one", "two"]).map(stub).collect();
        let found = symbols(&with_stubs(form, &[(4, 3), (5, 1), (6, 2)]));
        assert_eq!(found[1..], expected, "{name} of {} bytes, machine {}", size, machine.0);
    }
}

pub(crate) fn stubs_of_resolvers_have_the_names_of_their_symbols() {
    for (machine, kind) in [
        (elf::EM_X86_64, elf::R_X86_64_IRELATIVE),
        (elf::EM_386, elf::R_386_IRELATIVE),
        (elf::EM_AARCH64, elf::R_AARCH64_IRELATIVE),
        (elf::EM_ARM, elf::R_ARM_IRELATIVE),
    ] {
        let form = FORMS.into_iter().find(|form| form.0 == machine).expect("one");
        let size = form.3;
        let relocations = [(kind, 4, 0, 0x1100), (kind, 5, 0, 0x1200), (kind, 6, 0, 0x1300)];
        let mut elf = with_code(machine, form.1, code(form), &relocations);
        let chosen = |name, start| ElfSymbol::function(name, start, 16).kind(elf::STT_GNU_IFUNC);
        elf.symbols.extend([
            chosen("memcpy", 0x1100).binding(elf::STB_WEAK),
            chosen("copy", 0x1100),
            // A resolver that no symbol names so.
            ElfSymbol::function("resolver", 0x1200, 16),
            chosen("strlen", 0x1300),
        ]);
        let [first, third] = [PLT + 32, PLT + 32 + 2 * size];
        let expected = [
            format!("{first:x}..{:x} copy@plt", first + size),
            format!("{third:x}..{:x} strlen@plt", third + size),
        ];
        assert_eq!(symbols(&elf)[4..], expected, "machine {}", machine.0);
    }
}

pub(crate) fn stubs_without_a_relocation_have_no_name_and_belong_to_no_function() {
    let only_second = ["2f00..3000 f", "3030..3040 two@plt"];
    assert_eq!(symbols(&with_stubs(LAZY, &[(5, 2)])), only_second);
    let other = |kind| with_code(LAZY.0, LAZY.1, code(LAZY), &[(kind, 4, 1, 0), (LAZY.2, 5, 2, 0)]);
    for kind in [elf::R_X86_64_64, elf::R_X86_64_RELATIVE, elf::R_X86_64_DTPMOD64] {
        assert_eq!(symbols(&other(kind)), only_second, "type {}", kind.0);
    }
    // The same code in another section, and of another machine.
    let elsewhere = with_code(LAZY.0, ".plt2", code(LAZY), &[(LAZY.2, 5, 2, 0)]);
    assert_eq!(symbols(&elsewhere), ["2f00..3000 f"]);
    let riscv = Elf { machine: elf::EM_RISCV, ..with_stubs(LAZY, &[(5, 2)]) };
    assert_eq!(symbols(&riscv), ["2f00..3000 f"]);
}

pub(crate) fn a_debug_file_has_the_stubs_of_its_binary() {
    let binary = with_stubs(LAZY, &[(4, 1), (5, 2), (6, 3)]);
    let mut debug = Elf { code: None, dynamic_symbols: Vec::new(), ..binary.clone() };
    debug.sections.iter_mut().for_each(|section| section.kind = elf::SHT_NOBITS.0);
    let companions = Companions::default();
    let (binary, debug) = (binary.bytes(), debug.bytes());
    let image =
        |file| Image::load(&slices(file).expect("an ELF file")[0], "made-up", &companions).expect("loads");
    assert_eq!(symbols_of(&image(&debug)), ["2f00..3000 f"]);
    for (one, other) in [(&debug, &binary), (&binary, &debug)] {
        assert_eq!(
            symbols_of(&image(one).join(image(other))),
            ["2f00..3000 f", "3020..3030 one@plt", "3030..3040 two@plt", "3040..3050 three@plt"]
        );
    }
}

/// The names of the functions of the symbol table.
fn names(elf: &Elf) -> Vec<String> {
    let (bytes, companions) = (elf.bytes(), Companions::default());
    let image = Image::load(&slices(&bytes).expect("an ELF file")[0], "made-up", &companions).expect("loads");
    let text = |name: Option<&[u8]>| String::from_utf8_lossy(name.unwrap_or(b"-")).into_owned();
    image.symbols().iter().map(|symbol| text(symbol.name)).collect()
}

pub(crate) fn wrong_relocations_name_no_stubs() {
    // Symbols that are not in the table, and none.
    let relocations = [(4, 0), (5, 4), (6, 0xffff_ffff)];
    assert_eq!(symbols(&with_stubs(LAZY, &relocations)), ["2f00..3000 f"]);
    // Numbers of the symbols of another table.
    let mut elf = with_stubs(LAZY, &[(4, 1)]);
    for link in [0, 2, 99, u64::from(u32::MAX)] {
        elf.sections[2].link = link;
        assert_eq!(symbols(&elf), ["2f00..3000 f"], "{link}");
    }
    // Stubs that are cut, and that reach out of the address space.
    for form in FORMS {
        for size in 0..code(form).len() {
            let mut elf = with_stubs(form, &[(4, 1), (5, 2), (6, 3)]);
            elf.sections[0].bytes.truncate(size);
            let found = names(&elf);
            let whole = (size as u64).saturating_sub(32) / form.3;
            assert!(found.len() as u64 > whole && found.len() <= 4, "{found:?} in {size} bytes");
            elf.sections[0].address = u64::MAX - 20;
            assert_eq!(names(&elf), ["f"]);
        }
    }
    // A resolver outside of the image.
    for addend in [0, 0x9999, u64::MAX] {
        let elf = with_code(LAZY.0, LAZY.1, code(LAZY), &[(elf::R_X86_64_IRELATIVE, 4, 0, addend)]);
        assert_eq!(symbols(&elf), ["2f00..3000 f"], "{addend:#x}");
    }
}
