//! The debug files of the repository.

use std::path::{Path, PathBuf};

use crate::needs::root;

/// The folder `testdata`.
pub fn testdata() -> PathBuf {
    root().join("testdata")
}

/// The bundle `testdata/dsyms/NAME.dSYM`.
pub fn dsym(name: &str) -> PathBuf {
    testdata().join(format!("dsyms/{name}.dSYM"))
}

/// The debug file in that bundle.
pub fn debug_file(name: &str) -> PathBuf {
    dsym(name).join("Contents/Resources/DWARF").join(name)
}

/// A copy of a debug file whose debug sections have other names, as if it were a stripped binary.
pub fn without_debug_information(debug_file: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(debug_file).expect("a debug file");
    let sections: Vec<_> =
        (0..bytes.len().min(4096)).filter(|&at| bytes[at..].starts_with(b"__debug_")).collect();
    assert!(!sections.is_empty(), "{} has debug sections", debug_file.display());
    sections.into_iter().for_each(|at| bytes[at..at + 8].copy_from_slice(b"__gone__"));
    bytes
}

/// The debug files of the demo, each with the id of its image as reports state it.
pub fn demo_files() -> [(&'static str, PathBuf); 3] {
    let demo = testdata().join("demo");
    let in_bundle = |bundle: &str, name: &str| demo.join(bundle).join("Contents/Resources/DWARF").join(name);
    [
        ("4c4c447955553144a170308419376afa", in_bundle("DemoApp.app.dSYM", "DemoApp")),
        ("4c4c442755553144a19dbd913be790e0", in_bundle("DemoKit.framework.dSYM", "DemoKit")),
        ("4c4c444e55553144a1e5129c2dc95135", demo.join("DemoPlain.dylib")),
    ]
}
