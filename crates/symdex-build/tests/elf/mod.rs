//! Oddities of ELF files (docs/DEBUG-INFO.md). Separate debug files are in `companions`.

#![expect(clippy::cast_possible_truncation, reason = "the debug files made here are small")]

mod answers;
mod code;
mod companions;
mod sections;
mod symbols;

use crate::checks;
use symdex::Table::SymbolTable;
use symdex_build::{Companions, Image, slices};
use symdex_testkit::images::debug_file::{BASE, Die, Elf, ElfSymbol, Unit, debug_sections};

fn symbols(elf: &Elf) -> Vec<String> {
    checks::answers(&elf.bytes(), SymbolTable)
}

fn of(symbols: &[ElfSymbol]) -> Elf {
    Elf { symbols: symbols.to_vec(), ..Elf::default() }
}

fn function(name: &'static str, start: u64, size: u64) -> ElfSymbol {
    ElfSymbol::function(name, start, size)
}

/// A file at [`BASE`] with a function, lines and their debug information.
fn with_dwarf() -> Elf {
    let unit = Unit::new((0x1000, 0x1100)).child(Die::function("f", (0x1000, 0x1100)));
    let unit = unit.sequence(&[(0x1000, 1, 5, true), (0x1010, 1, 6, true)], 0x1100);
    let symbols = vec![function("f", BASE + 0x1000, 0x100), function("g", BASE + 0x1200, 0x20)];
    Elf { base: BASE, symbols, ..Elf::default() }.debug(debug_sections(&[unit]))
}

const LINES: [&str; 2] = ["1000..1010 f a.c:5", "1010..1100 f a.c:6"];

fn load<'d>(file: &'d [u8], near: Option<u64>) -> Image<'d> {
    let companions = Box::leak(Box::new(Companions::default()));
    companions.load_near(near);
    Image::load(&slices(file).expect("an ELF file")[0], "made-up", companions).expect("loads")
}
