//! The stubs of a file and their names, read from the jumps and the relocations, and from the indirect symbols.

mod elf;
mod macho;

use object::File;
use symdex_build::Image;

/// A stub, with image offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stub {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: Vec<u8>,
}

/// The stubs of one of the files of `image` that have names.
pub(crate) fn read(image: &Image<'_>, file: &File<'_>) -> Vec<Stub> {
    match file {
        File::MachO32(macho) => macho::stubs(image, file, macho.data()),
        File::MachO64(macho) => macho::stubs(image, file, macho.data()),
        File::Elf32(elf) => elf::stubs(image, file, elf),
        File::Elf64(elf) => elf::stubs(image, file, elf),
        _ => Vec::new(),
    }
}

/// The 32 bits of `bytes` at `at`.
fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}
