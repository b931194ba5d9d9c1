//! The recipes of the `android` part: data that says how to compile and link each image.

/// An ABI of Android and its target triple for clang.
pub(crate) struct Abi {
    pub(crate) name: &'static str,
    pub(crate) triple: &'static str,
}

/// All ABIs. `armeabi-v7a` is Thumb code unless a recipe says ARM.
pub(crate) static ABIS: [Abi; 4] = [
    Abi { name: "arm64-v8a", triple: "aarch64-linux-android21" },
    Abi { name: "armeabi-v7a", triple: "armv7a-linux-androideabi21" },
    Abi { name: "x86", triple: "i686-linux-android21" },
    Abi { name: X86_64, triple: "x86_64-linux-android21" },
];

/// The ABI that Debian's GCC compiles for.
const X86_64: &str = "x86_64";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compiler {
    /// With lld.
    Clang,
    /// With GNU ld.
    Gcc,
}

/// The variants that are made of an image, each in a folder with the variant's name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variants {
    /// Unstripped, stripped, and stripped with a `.gnu_debuglink`.
    Few,
    /// All variants in `variants.rs`.
    All,
    /// Split DWARF: the image beside its `.dwo` files.
    Dwo,
    /// Split DWARF: the image beside its `.dwp`, and alone.
    Dwp,
}

/// A way to compile and link [`UNITS`].
pub(crate) struct Recipe {
    /// The name of the recipe and of its image, `libNAME.so`.
    pub(crate) name: &'static str,
    /// The ABIs; empty for all.
    pub(crate) abis: &'static [&'static str],
    pub(crate) compiler: Compiler,
    pub(crate) flags: &'static [&'static str],
    /// Additional flags for every second unit.
    pub(crate) second: &'static [&'static str],
    pub(crate) link: &'static [&'static str],
    pub(crate) variants: Variants,
}

impl Recipe {
    pub(crate) fn is_for(&self, abi: &Abi) -> bool {
        self.abis.is_empty() || self.abis.contains(&abi.name)
    }
}

/// The sources of every image, as paths in `testdata/src`.
pub(crate) static UNITS: [&str; 12] = [
    "elf/drain.cpp",
    "elf/fill.cpp",
    "elf/aliases.c",
    "elf/flow.c",
    "elf/leaf.S",
    "shapes/shapes.cpp",
    "inline/main.c",
    "layout/cold.c",
    "layout/fold.c",
    "layout/lines.c",
    "layout/outline.c",
    // This unit has no debug information.
    PLAIN,
];

/// The unit that is always compiled without `-g`.
pub(crate) const PLAIN: &str = "inline/plain.c";

const SHARED: &[&str] = &["-shared", "-Wl,--build-id=sha1"];

const CLANG: Recipe = Recipe {
    name: "",
    abis: &[],
    compiler: Compiler::Clang,
    flags: &[],
    second: &[],
    link: SHARED,
    variants: Variants::Few,
};

const GCC: Recipe = Recipe { abis: &[X86_64], compiler: Compiler::Gcc, ..CLANG };

/// All recipes.
pub(crate) static RECIPES: &[Recipe] = &[
    // DWARF versions and forms.
    Recipe { name: "dwarf5", flags: &["-O2", "-gdwarf-5"], variants: Variants::All, ..CLANG },
    Recipe { name: "dwarf4", flags: &["-O2", "-gdwarf-4"], variants: Variants::All, ..CLANG },
    Recipe { name: "dwarf2", flags: &["-O2", "-gdwarf-2"], ..CLANG },
    Recipe { name: "mixed-dwarf", flags: &["-O2", "-gdwarf-5"], second: &["-gdwarf-4"], ..CLANG },
    Recipe {
        name: "dwarf64",
        abis: &["arm64-v8a", X86_64],
        flags: &["-O2", "-gdwarf-5", "-gdwarf64"],
        ..CLANG
    },
    Recipe { name: "types4", flags: &["-O2", "-gdwarf-4", "-fdebug-types-section"], ..CLANG },
    Recipe { name: "types5", flags: &["-O2", "-gdwarf-5", "-fdebug-types-section"], ..CLANG },
    Recipe { name: "lines-only", flags: &["-O2", "-gline-tables-only"], ..CLANG },
    Recipe { name: "half-without", flags: &["-O2", "-g"], second: &["-g0"], ..CLANG },
    Recipe { name: "without", flags: &["-O2"], variants: Variants::All, ..CLANG },
    // C++ keeps the unwind information of its exceptions.
    Recipe {
        name: "without-unwind",
        flags: &["-O2", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables"],
        ..CLANG
    },
    // Split DWARF.
    Recipe { name: "dwo5", flags: &["-O2", "-gdwarf-5", "-gsplit-dwarf"], variants: Variants::Dwo, ..CLANG },
    Recipe { name: "dwo4", flags: &["-O2", "-gdwarf-4", "-gsplit-dwarf"], variants: Variants::Dwo, ..CLANG },
    Recipe { name: "dwp5", flags: &["-O2", "-gdwarf-5", "-gsplit-dwarf"], variants: Variants::Dwp, ..CLANG },
    Recipe { name: "dwp4", flags: &["-O2", "-gdwarf-4", "-gsplit-dwarf"], variants: Variants::Dwp, ..CLANG },
    Recipe {
        name: "dwo-inlining",
        flags: &["-O2", "-g", "-gsplit-dwarf", "-fsplit-dwarf-inlining"],
        variants: Variants::Dwo,
        ..CLANG
    },
    // Optimisations.
    Recipe { name: "unoptimised5", flags: &["-O0", "-gdwarf-5"], ..CLANG },
    Recipe { name: "unoptimised4", flags: &["-O0", "-gdwarf-4"], ..CLANG },
    Recipe { name: "small", flags: &["-Oz", "-g"], ..CLANG },
    // LLVM 19 cannot outline position-independent code of 32-bit x86.
    Recipe {
        name: "outlined",
        abis: &["arm64-v8a", "armeabi-v7a", X86_64],
        flags: &["-Oz", "-g", "-mllvm", "-enable-machine-outliner"],
        ..CLANG
    },
    Recipe {
        name: "cold-split",
        flags: &["-O2", "-g", "-mllvm", "-hot-cold-split", "-mllvm", "-hotcoldsplit-threshold=-10"],
        ..CLANG
    },
    // Functions with several ranges: DW_AT_ranges, `NAME.__part.1`.
    Recipe { name: "blocks", abis: &[X86_64], flags: &["-O2", "-g", "-fbasic-block-sections=all"], ..CLANG },
    Recipe { name: "lto", flags: &["-O2", "-g", "-flto"], ..CLANG },
    Recipe { name: "thin-lto", flags: &["-O2", "-g", "-flto=thin"], ..CLANG },
    Recipe { name: "arm", abis: &["armeabi-v7a"], flags: &["-O2", "-g", "-marm"], ..CLANG },
    Recipe {
        name: "arm-and-thumb",
        abis: &["armeabi-v7a"],
        flags: &["-O2", "-g", "-mthumb"],
        second: &["-marm"],
        ..CLANG
    },
    // Linker options.
    Recipe {
        name: "folded",
        flags: &["-O2", "-g", "-ffunction-sections", "-fdata-sections", "-fvisibility=hidden"],
        link: &[
            "-shared",
            "-Wl,--build-id=fast",
            "-Wl,--icf=all",
            "-Wl,--gc-sections",
            "-Wl,-u,drain_entry,-u,fill_entry,-u,aliases_entry,-u,flow_entry",
        ],
        ..CLANG
    },
    Recipe {
        name: "without-build-id",
        flags: &["-O2", "-g"],
        link: &["-shared", "-Wl,--build-id=none"],
        ..CLANG
    },
    // Older NDKs link like this: the code is in the first segment.
    Recipe {
        name: "one-segment",
        flags: &["-O2", "-g"],
        link: &["-shared", "-Wl,--build-id=sha1", "-Wl,--no-rosegment", "-Wl,--pack-dyn-relocs=android"],
        ..CLANG
    },
    Recipe {
        name: "large-pages",
        flags: &["-O2", "-g"],
        link: &["-shared", "-Wl,--build-id=sha1", "-Wl,-z,max-page-size=65536,-z,separate-loadable-segments"],
        ..CLANG
    },
    // An executable whose base is not 0.
    Recipe {
        name: "executable",
        flags: &["-O2", "-g"],
        link: &[
            "-no-pie",
            "-static",
            "-Wl,--build-id=sha1",
            "-Wl,--image-base=0x8400000",
            "-Wl,-e,flow_entry",
            "-Wl,--unresolved-symbols=ignore-all",
        ],
        ..CLANG
    },
    // The line tables, names (.constprop, .part, .isra, .cold) and linker of another compiler.
    Recipe { name: "gcc5", flags: &["-O2", "-gdwarf-5"], variants: Variants::All, ..GCC },
    Recipe { name: "gcc4", flags: &["-O2", "-gdwarf-4"], ..GCC },
    Recipe { name: "gcc-unoptimised", flags: &["-O0", "-gdwarf-5"], ..GCC },
    Recipe { name: "gcc-hardest", flags: &["-O3", "-g", "-ffunction-sections"], ..GCC },
    Recipe { name: "gcc-dwo", flags: &["-O2", "-g", "-gsplit-dwarf"], variants: Variants::Dwo, ..GCC },
    Recipe { name: "gcc-without", flags: &["-O2"], variants: Variants::All, ..GCC },
];

/// Images that dwz processes together. They and the file of their common parts go to one folder with this name. An ABI
/// that lacks one of the images is skipped.
pub(crate) struct Shared {
    pub(crate) name: &'static str,
    pub(crate) recipes: [&'static str; 2],
    pub(crate) flags: &'static [&'static str],
}

/// dwz reads clang's output up to DWARF 4, and GCC's DWARF 5.
pub(crate) static SHARED_BY_DWZ: [Shared; 3] = [
    Shared { name: "dwz4", recipes: ["dwarf4", "unoptimised4"], flags: &[] },
    Shared { name: "dwz-gcc5", recipes: ["gcc5", "gcc-unoptimised"], flags: &[] },
    // With .debug_sup instead of .gnu_debugaltlink.
    Shared { name: "dwz-sup", recipes: ["gcc5", "gcc-unoptimised"], flags: &["--dwarf-5"] },
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn images_have_distinct_names() {
        let mut seen = HashSet::new();
        let names = RECIPES.iter().map(|recipe| recipe.name);
        let names = names.chain(SHARED_BY_DWZ.iter().map(|shared| shared.name));
        names.for_each(|name| assert!(seen.insert(name), "{name} comes twice"));
    }

    // If no ABI had both images, dwz would never run and nobody would notice.
    #[test]
    fn images_for_dwz_are_made_for_at_least_one_abi() {
        for shared in &SHARED_BY_DWZ {
            let has = |abi: &Abi, name| RECIPES.iter().any(|made| made.name == name && made.is_for(abi));
            let is_made = |abi| shared.recipes.iter().all(|name| has(abi, *name));
            assert!(ABIS.iter().any(is_made), "{}", shared.name);
        }
    }

    #[test]
    fn recipes_name_existing_abis() {
        for name in RECIPES.iter().flat_map(|recipe| recipe.abis) {
            assert!(ABIS.iter().any(|abi| abi.name == *name), "{name}");
        }
    }
}
