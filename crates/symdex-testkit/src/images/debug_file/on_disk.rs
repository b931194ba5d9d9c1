//! ELF files that are written to disk, because they refer to other files.

use std::fs;
use std::path::Path;

use super::{BASE, Elf, Unit, debug_sections};

pub const ID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

pub fn number(number: u64, size: usize) -> Vec<u8> {
    number.to_le_bytes()[..size].to_vec()
}

pub fn image(units: &[Unit]) -> Elf {
    Elf { base: BASE, ..Elf::default() }.debug(debug_sections(units))
}

/// A file of the debug sections of `units`, with `.dwo` appended to each name.
pub fn object(units: &[Unit]) -> Elf {
    let mut elf = Elf { kind: object::elf::ET_REL, code: None, build_id: None, ..Elf::default() };
    elf = elf.debug(debug_sections(units));
    elf.sections.iter_mut().for_each(|section| section.name.push_str(".dwo"));
    elf
}

/// Writes `elf` to `path`, and makes the folder.
pub fn write(path: &Path, elf: &Elf) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, elf.bytes()).expect("written");
}
