//! Debug files on disk that refer to other files beside them.

use std::fs;
use std::path::Path;

use symdex::Index;
use symdex_audit::{ADDR2LINE, audit};
use symdex_build::{Companions, Image, slices};

use super::found;

/// The answers of the file. Checks that its index is not partial, and that the audit passes.
pub(crate) fn all(path: &Path) -> Vec<String> {
    let (answers, missing) = found(path, &Companions::default());
    assert_eq!(missing, [""; 0]);
    let (file, companions) = (fs::read(path).expect("there"), Companions::default());
    let image = Image::load(&slices(&file).expect("an ELF file")[0], path, &companions).expect("loads");
    let built = symdex_build::build(&image).expect("builds");
    let report = audit(&image, &Index::open(built.bytes).expect("just written")).expect("is read");
    assert_eq!(report.failures(), [""; 0], "{report}");
    assert!(report.peers[ADDR2LINE].agreements > 0);
    answers
}
