//! The recipes of `testdata/dsyms`: data that says how to make each debug file.

/// An architecture and how its images are linked.
pub(crate) struct Arch {
    pub(crate) name: &'static str,
    pub(crate) triple: &'static str,
    /// The platform and its version.
    pub(crate) platform: [&'static str; 2],
    /// The CPU subtype to set, if ld64.lld would set it to "all".
    pub(crate) subtype: Option<u32>,
}

pub(crate) static ARM64: Arch =
    Arch { name: "arm64", triple: "arm64-apple-macos13.0", platform: ["macos", "13.0"], subtype: None };
pub(crate) static ARM64_IOS: Arch =
    Arch { name: "arm64", triple: "arm64-apple-ios15.0", platform: ["ios", "15.0"], subtype: None };
static ARM64E: Arch = Arch {
    name: "arm64e",
    triple: "arm64e-apple-macos13.0",
    platform: ["macos", "13.0"],
    subtype: Some(0x8000_0002),
};
static X86_64: Arch =
    Arch { name: "x86_64", triple: "x86_64-apple-macos13.0", platform: ["macos", "13.0"], subtype: None };

/// A source file, as a path in the source folder, and its compiler flags.
///
/// The extension tells the language: `.c`, `.m`, `.cpp`, `.cppm`, `.mm`, `.s`, `.ll`. `.swift.c` is C with Swift names;
/// see [`super::image`].
pub(crate) struct Unit {
    pub(crate) source: &'static str,
    pub(crate) flags: &'static [&'static str],
}

/// An image to link, and its debug file.
pub(crate) struct Recipe {
    /// The image's file name.
    pub(crate) name: &'static str,
    /// The file name of the bundle without `.dSYM`; `None` for the name of the image.
    pub(crate) bundle: Option<&'static str>,
    pub(crate) arches: &'static [&'static Arch],
    pub(crate) dylib: bool,
    pub(crate) units: &'static [Unit],
    pub(crate) link: &'static [&'static str],
    pub(crate) dsymutil: &'static [&'static str],
}

/// A thin arm64 executable; its base is 0x100000000.
pub(crate) const EXECUTABLE: Recipe =
    Recipe { name: "", bundle: None, arches: &[&ARM64], dylib: false, units: &[], link: &[], dsymutil: &[] };

/// A thin arm64 dylib; its base is 0.
pub(crate) const DYLIB: Recipe = Recipe { dylib: true, ..EXECUTABLE };

const fn unit(source: &'static str, flags: &'static [&'static str]) -> Unit {
    Unit { source, flags }
}

const G: &[&str] = &["-O2", "-g"];
const PLAIN: Unit = unit("inline/plain.c", &["-O2"]);
/// The unit of `inline` without a `main`, for dylibs.
const INLINE: Unit = unit("inline/main.c", &["-O2", "-g", "-DLIBRARY"]);
const INLINE_UNITS: &[Unit] = &[unit("inline/main.c", G), PLAIN];

const OUTLINE: &[&str] = &["-Oz", "-g", "-mllvm", "-enable-machine-outliner"];
const OUTLINE_SECOND: &[&str] = &["-Oz", "-g", "-mllvm", "-enable-machine-outliner", "-DSECOND"];
const SPLIT: &[&str] = &["-O2", "-g", "-mllvm", "-hot-cold-split", "-mllvm", "-hotcoldsplit-threshold=-10"];
const LTO: &[&str] = &["-O2", "-g", "-flto"];
const FOLD_UNITS: &[Unit] = &[unit("layout/fold.c", G), INLINE, PLAIN];

/// All debug files in `testdata/dsyms`.
pub(crate) static RECIPES: &[Recipe] = &[
    // DWARF versions.
    Recipe {
        name: "inline-dwarf2",
        units: &[unit("inline/main.c", &["-O2", "-gdwarf-2"]), PLAIN],
        ..EXECUTABLE
    },
    Recipe {
        name: "inline-dwarf3",
        units: &[unit("inline/main.c", &["-O2", "-gdwarf-3"]), PLAIN],
        ..EXECUTABLE
    },
    Recipe {
        name: "inline-dwarf4",
        units: &[unit("inline/main.c", &["-O2", "-gdwarf-4"]), PLAIN],
        ..EXECUTABLE
    },
    Recipe {
        name: "inline-dwarf5",
        units: &[unit("inline/main.c", &["-O2", "-gdwarf-5"]), PLAIN],
        ..EXECUTABLE
    },
    Recipe {
        name: "mixed-dwarf",
        units: &[
            unit("inline/main.c", &["-O2", "-gdwarf-2", "-DLIBRARY"]),
            unit("layout/lines.c", &["-O2", "-gdwarf-3"]),
            unit("layout/cold.c", &["-O2", "-gdwarf-4"]),
            unit("shapes/shapes.cpp", &["-O2", "-gdwarf-5"]),
            PLAIN,
        ],
        ..DYLIB
    },
    // Architectures.
    Recipe { name: "fat", arches: &[&ARM64, &ARM64E, &X86_64], units: INLINE_UNITS, ..EXECUTABLE },
    Recipe {
        name: "fat64",
        arches: &[&ARM64, &X86_64],
        units: INLINE_UNITS,
        dsymutil: &["--fat64"],
        ..EXECUTABLE
    },
    // Languages.
    Recipe { name: "cxx", units: &[unit("shapes/shapes.cpp", G), INLINE, PLAIN], ..DYLIB },
    Recipe {
        name: "cxx-line-tables-only",
        units: &[
            unit("shapes/shapes.cpp", &["-O2", "-gline-tables-only"]),
            unit("inline/main.c", &["-O2", "-gline-tables-only", "-DLIBRARY"]),
            PLAIN,
        ],
        ..DYLIB
    },
    Recipe {
        name: "cxx20",
        units: &[
            unit("modern/coroutine.cpp", &["-O0", "-g"]),
            unit("modern/coroutine.cpp", &["-O2", "-g", "-DSECOND"]),
            unit("modern/geometry.cppm", G),
        ],
        ..DYLIB
    },
    Recipe { name: "objc", units: &[unit("objc/Player.m", G), INLINE, PLAIN], ..DYLIB },
    Recipe {
        name: "swift-names",
        units: &[unit("swift/Feed.swift.c", G), unit("swift/Labels.c", G)],
        ..DYLIB
    },
    // Optimisations and linker options.
    Recipe {
        name: "outliner",
        units: &[unit("layout/outline.c", OUTLINE), unit("layout/outline.c", OUTLINE_SECOND), INLINE, PLAIN],
        ..DYLIB
    },
    Recipe {
        name: "lto",
        units: &[unit("lto/entry.cpp", LTO), unit("lto/left.cpp", LTO), unit("lto/right.cpp", LTO)],
        link: &["-object_path_lto", "lto.o"],
        ..EXECUTABLE
    },
    Recipe { name: "icf", units: FOLD_UNITS, link: &["--icf=all"], ..DYLIB },
    Recipe {
        name: "dead-strip",
        units: FOLD_UNITS,
        link: &["-dead_strip", "-exported_symbol", "_fold_entry", "-exported_symbol", "_paint"],
        ..DYLIB
    },
    Recipe { name: "cold-split", units: &[unit("layout/cold.c", SPLIT), INLINE, PLAIN], ..DYLIB },
    // Unusual contents.
    Recipe {
        name: "odd-lines",
        units: &[
            unit("layout/lines.c", G),
            unit("odd paths/größe 尺寸.c", G),
            unit("asm/leaf_arm64.s", &["-g"]),
            INLINE,
            PLAIN,
        ],
        ..DYLIB
    },
    Recipe {
        name: "calls",
        units: &[unit("modern/no_return.cpp", G), unit("modern/thunk.ll", &["-O2", "-Wno-override-module"])],
        ..DYLIB
    },
];

/// The images of the demo, in the order in which they are linked: each links against those before it. The first has no
/// debug file.
pub(crate) static DEMO: [Recipe; 3] = [
    Recipe { name: "DemoPlain.dylib", arches: IOS, units: &[unit("demo/Plain/plain.c", BLOCKS)], ..DYLIB },
    Recipe {
        name: "DemoKit",
        bundle: Some("DemoKit.framework"),
        arches: IOS,
        units: &[
            unit("demo/Kit/Decoder.cpp", DEMO_FLAGS),
            unit("demo/Kit/Prefetcher.cpp", DEMO_FLAGS),
            unit("demo/Kit/TileCache.cpp", DEMO_FLAGS),
            unit("demo/Kit/rle.c", DEMO_FLAGS),
        ],
        link: &["../DemoPlain.dylib/DemoPlain.dylib"],
        ..DYLIB
    },
    Recipe {
        name: "DemoApp",
        bundle: Some("DemoApp.app"),
        arches: IOS,
        units: &[
            unit("demo/App/main.m", DEMO_FLAGS),
            unit("demo/App/Canvas.mm", DEMO_FLAGS),
            unit("demo/App/Engine.cpp", DEMO_FLAGS),
            unit("demo/App/TileLoader.swift.c", DEMO_FLAGS),
            unit("demo/App/ViewController.swift.c", DEMO_FLAGS),
        ],
        link: &["../DemoKit/DemoKit", "../DemoPlain.dylib/DemoPlain.dylib"],
        ..EXECUTABLE
    },
];

const IOS: &[&Arch] = &[&ARM64_IOS];
const BLOCKS: &[&str] = &["-O2", "-fblocks"];
const DEMO_FLAGS: &[&str] = &["-O2", "-g", "-fblocks"];
