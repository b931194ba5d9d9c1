//! The images of the `compilers` part: data that says which compiler makes each, and with which options.

/// What compiles and links a variant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compiler {
    /// LLVM 19, with lld.
    Clang19,
    /// LLVM 22 of the Python package ziglang. Its own lld links ELF files, that of LLVM 19 Mach-O files.
    Clang22,
    /// GCC with GNU ld, and what stands after the names of its programs.
    Gcc(&'static str),
    /// The Rust compiler that cargo uses.
    Rust,
}

/// The format of the images. Mach-O images get a dSYM.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// x86_64, Linux.
    Elf,
    /// arm64, macOS.
    MachO,
}

/// The sources of an image.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// SQLite: C, one large unit.
    Sqlite,
    /// HarfBuzz: C++, one large unit.
    HarfBuzz,
    /// A file of HarfBuzz: C++, many templates.
    Layout,
    /// The units of testdata that all targets can compile: C, C++, assembler.
    Ours,
    /// A program in Rust with several crates.
    Markdown,
}

/// What is done with the linked image.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Nothing,
    /// llvm-dwp makes a package of the `.dwo` files.
    Package,
    /// It is linked again, with its functions in another order.
    Reorder,
    /// llvm-bolt of LLVM 19 rewrites it with these options.
    Bolt(&'static [&'static str]),
}

/// A compiler with options, and the images that it makes.
pub(super) struct Variant {
    /// The name of the folder with the images.
    pub(super) name: &'static str,
    pub(super) compiler: Compiler,
    pub(super) target: Target,
    /// Options of the compiler; for Rust, of cargo.
    pub(super) flags: &'static [&'static str],
    /// Options of the linker; for GCC, of the compiler that calls it.
    pub(super) link: &'static [&'static str],
    pub(super) sources: &'static [Source],
    pub(super) then: Then,
}

use Compiler::{Clang19, Clang22, Gcc, Rust};
use Source::{HarfBuzz, Layout, Markdown, Ours, Sqlite};

const ELF: Variant = Variant {
    name: "",
    compiler: Clang22,
    target: Target::Elf,
    flags: &["-O2", "-g"],
    link: &[],
    sources: &[Layout, Ours],
    then: Then::Nothing,
};

const MACHO: Variant = Variant { target: Target::MachO, ..ELF };

/// Functions and data in sections of their own, which a linker can remove, fold and reorder.
const SECTIONS: &[&str] = &["-O2", "-g", "-ffunction-sections", "-fdata-sections"];

/// Where ld64.lld leaves the objects of link-time optimisation, which dsymutil reads.
pub(super) const LTO_OBJECTS: &str = "lto";

/// All variants. Propeller is not among them: Debian does not package what makes its profiles. It links what
/// `-fbasic-block-sections=list` compiles, which is among them.
pub(super) static VARIANTS: &[Variant] = &[
    // Rows that are no statements have lines of their own, or not.
    Variant {
        name: "key-instructions",
        flags: &["-O2", "-g", "-gkey-instructions"],
        sources: &[Sqlite, Layout, Ours],
        ..ELF
    },
    Variant {
        name: "no-key-instructions",
        flags: &["-O2", "-g", "-gno-key-instructions"],
        sources: &[Sqlite, Layout],
        ..ELF
    },
    Variant {
        name: "macho-key-instructions",
        flags: &["-O2", "-g", "-gkey-instructions"],
        sources: &[Sqlite, Layout, Ours],
        ..MACHO
    },
    Variant {
        name: "macho-no-key-instructions",
        flags: &["-O2", "-g", "-gno-key-instructions"],
        sources: &[Sqlite, Layout],
        ..MACHO
    },
    Variant { name: "unoptimised", flags: &["-O0", "-g"], ..ELF },
    Variant { name: "small", flags: &["-Oz", "-g"], ..ELF },
    // Names without template parameters.
    Variant { name: "simple-names", flags: &["-O2", "-g", "-gsimple-template-names"], ..ELF },
    Variant { name: "macho-simple-names", flags: &["-O2", "-g", "-gsimple-template-names"], ..MACHO },
    // Only functions that are inlined somewhere have linkage names.
    Variant {
        name: "simple-names-abstract",
        flags: &["-O2", "-g", "-gsimple-template-names", "-mllvm", "-dwarf-linkage-names=Abstract"],
        ..ELF
    },
    // Compressed sections.
    Variant {
        name: "zlib",
        flags: &["-O2", "-g", "-gz=zlib"],
        link: &["--compress-debug-sections=zlib"],
        ..ELF
    },
    Variant {
        name: "zstd",
        flags: &["-O2", "-g", "-gz=zstd"],
        link: &["--compress-debug-sections=zstd"],
        ..ELF
    },
    // Split DWARF.
    Variant { name: "split", flags: &["-O2", "-gdwarf-5", "-gsplit-dwarf"], ..ELF },
    Variant {
        name: "split-inlining",
        flags: &["-O2", "-gdwarf-5", "-gsplit-dwarf", "-fsplit-dwarf-inlining"],
        ..ELF
    },
    Variant { name: "package", flags: &["-O2", "-gdwarf-5", "-gsplit-dwarf"], then: Then::Package, ..ELF },
    // Functions in several places.
    Variant { name: "blocks", flags: &["-O2", "-g", "-fbasic-block-sections=all"], ..ELF },
    Variant {
        name: "blocks-list",
        flags: &["-O2", "-g", "-fbasic-block-sections=list=BLOCKS"],
        sources: &[Ours],
        ..ELF
    },
    Variant {
        name: "bolt",
        link: &["--emit-relocs"],
        then: Then::Bolt(&["--reorder-blocks=reverse", "--split-functions", "--split-strategy=all"]),
        ..ELF
    },
    // Functions that the linker folds, removes and reorders.
    Variant { name: "folded", flags: SECTIONS, link: &["--icf=all", "--gc-sections"], ..ELF },
    Variant {
        name: "folded-sequences",
        flags: &["-O2", "-g", "-ffunction-sections", "-mllvm", "-emit-func-debug-line-table-offsets"],
        link: &["--icf=all"],
        ..ELF
    },
    Variant { name: "reordered", flags: SECTIONS, then: Then::Reorder, ..ELF },
    Variant { name: "macho-folded", link: &["--icf=all"], ..MACHO },
    Variant {
        name: "macho-dead-strip",
        link: &["-dead_strip", "-exported_symbol", "*hb_aat_layout_s*", "-exported_symbol", "_choose"],
        ..MACHO
    },
    Variant { name: "macho-reordered", then: Then::Reorder, ..MACHO },
    // Link-time optimisation.
    Variant { name: "lto", flags: &["-O2", "-g", "-flto=full"], ..ELF },
    Variant { name: "thin-lto", flags: &["-O2", "-g", "-flto=thin"], ..ELF },
    Variant {
        name: "macho-lto",
        compiler: Clang19,
        flags: &["-O2", "-g", "-flto=full"],
        link: &["-object_path_lto", LTO_OBJECTS],
        sources: &[Ours],
        ..MACHO
    },
    Variant {
        name: "macho-thin-lto",
        compiler: Clang19,
        flags: &["-O2", "-g", "-flto=thin"],
        link: &["-object_path_lto", LTO_OBJECTS],
        sources: &[Ours],
        ..MACHO
    },
    // GCC. Versions that Debian's release lacks are skipped.
    Variant { name: "gcc", compiler: Gcc(""), sources: &[Sqlite, HarfBuzz], ..ELF },
    Variant {
        name: "gcc-small",
        compiler: Gcc(""),
        flags: &["-Os", "-g"],
        sources: &[Sqlite, HarfBuzz],
        ..ELF
    },
    Variant { name: "gcc-lto", compiler: Gcc(""), flags: &["-O2", "-g", "-flto"], ..ELF },
    Variant { name: "gcc-14", compiler: Gcc("-14"), sources: &[Sqlite, Layout, Ours], ..ELF },
    // Rust.
    Variant { name: "rust", compiler: Rust, flags: &[], sources: &[Markdown], ..ELF },
    Variant {
        name: "rust-lto",
        compiler: Rust,
        flags: &["--config", "profile.release.lto='fat'"],
        sources: &[Markdown],
        ..ELF
    },
    Variant {
        name: "rust-thin-lto",
        compiler: Rust,
        flags: &["--config", "profile.release.lto='thin'"],
        sources: &[Markdown],
        ..ELF
    },
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn variants_have_distinct_names_and_sources_that_their_compiler_reads() {
        let mut names = HashSet::new();
        for Variant { name, compiler, target, sources, .. } in VARIANTS {
            assert!(names.insert(name), "{name} comes twice");
            assert!(sources.iter().all(|source| (*source == Markdown) == (*compiler == Rust)), "{name}");
            assert!(*target == Target::Elf || matches!(compiler, Clang19 | Clang22), "{name}");
        }
    }
}
