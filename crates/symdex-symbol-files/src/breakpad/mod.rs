//! Symbol files of Breakpad, as its documentation of symbol files describes them. They are texts with a record in each
//! line. Numbers are decimal if they are lines or numbers of records, and hexadecimal if they are addresses.

mod read;
mod stack_cfi;
mod write;

use symdex::Arch;

pub(crate) use self::read::read;
pub use self::write::write_breakpad;

/// The first words of records.
pub(crate) const MODULE: &str = "MODULE";
const INFO: &str = "INFO";
const FILE: &str = "FILE";
const INLINE_ORIGIN: &str = "INLINE_ORIGIN";
const FUNC: &str = "FUNC";
const INLINE: &str = "INLINE";
const PUBLIC: &str = "PUBLIC";
const STACK: &str = "STACK";

/// The second word of the record of an ELF image's build id.
const CODE_ID: &str = "CODE_ID";
/// The second and the third word of records of unwind rows: `STACK CFI INIT` and `STACK CFI`.
const CFI: &str = "CFI";
const INIT: &str = "INIT";

/// Whether the id of an image of this system is a UUID. Breakpad's own tools write `mac`, and Mozilla's `Mac`.
fn has_uuid(os: &str) -> bool {
    ["mac", "ios", "windows"].iter().any(|known| os.eq_ignore_ascii_case(known))
}

/// Breakpad's name of an architecture. It differs from Apple's for one.
fn name_of_arch(arch: &Arch) -> &str {
    if arch.name == "i386" { "x86" } else { &arch.name }
}

/// The architecture by the name that a tool of Breakpad has for it.
fn arch_of_name(name: &str) -> Arch {
    let known = match name {
        "x86" => Arch::from_name("i386"),
        "amd64" => Arch::from_name("x86_64"),
        "aarch64" => Arch::from_name("arm64"),
        name => Arch::from_name(name),
    };
    known.unwrap_or_else(|| Arch { name: name.to_owned(), cputype: 0, cpusubtype: 0 })
}
