//! Whole Mach-O and ELF files: builds with one and with two threads, and direct lookups.

use std::path::Path;

use symdex_testkit::images::debug_file::{
    Die, Elf, ElfSymbol, Unit, debug_sections, image, split_unit, whole,
};
use symdex_testkit::images::go::GoProgram;

use crate::{checks, input};

pub fn run(data: &[u8]) {
    checks::debug_file(data, Path::new("/nonexistent/fuzzed"));
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let function = Die::function("f", (0x1000, 0x1800));
    let units = [Unit::new(whole()).child(function).sequence(&[(0x1000, 1, 5, true)], 0x1800)];
    let symbols = vec![ElfSymbol::function("g", 0x2000, 0x100)];
    let small = Elf { symbols, ..Elf::default() }.debug(debug_sections(&units));
    let narrow = Elf { is_64_bit: false, ..small.clone() };
    let (skeleton, _) = split_unit(5, 0x1000, [1; 8], 8);
    // Larger files are slow, and have nothing that the others lack.
    let mut files = input::debug_files();
    files.retain(|file| file.len() < 20_000);
    let go = GoProgram::default();
    files.extend([small, narrow, image(&[skeleton]), go.elf()].iter().map(Elf::bytes));
    files.push(go.macho().bytes());
    files
}
