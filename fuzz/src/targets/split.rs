//! Split DWARF: object files (`.dwo`) and packages (`.dwp`) with the units of a skeleton.

use symdex_testkit::images::debug_file::{ID, debug_addr, image, object, package, rnglists, split_unit};

use crate::{checks, input};

pub fn run(data: &[u8]) {
    let (kind, file) = input::choice(data);
    let folder = tempfile::tempdir().expect("a folder");
    let (path, version) = (folder.path().join("liba.so"), if kind % 2 == 0 { 4 } else { 5 });
    let split = if kind & 2 == 0 { "a.dwo" } else { "liba.so.dwp" };
    std::fs::write(folder.path().join(split), file).expect("written");
    let (skeleton, _) = split_unit(version, 0x1000, ID, 8);
    let skeleton = image(&[skeleton]).section(".debug_addr", debug_addr(&[0x1000]));
    checks::debug_file(&skeleton.bytes(), &path);
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let files = |version: u16| {
        let split = object(&[split_unit(version, 0x1000, ID, 8).1]);
        let split = split.section(".debug_rnglists.dwo", rnglists());
        let kind = u8::from(version == 5);
        let package = package(version, std::slice::from_ref(&split));
        [[vec![kind], split.bytes()].concat(), [vec![kind | 2], package.bytes()].concat()]
    };
    [4, 5].into_iter().flat_map(files).collect()
}
