//! Symbol stubs of Mach-O and ELF (docs/DEBUG-INFO.md, "Symbol stubs").

pub(crate) mod elf;
pub(crate) mod linked;
pub(crate) mod macho;

use symdex::{Index, Table};
use symdex_audit::audit;
use symdex_build::{Companions, Image, build, slices};

/// The answers of the symbol table of a file's first slice.
fn symbols(file: &[u8]) -> Vec<String> {
    let companions = Companions::default();
    symbols_of(&Image::load(&slices(file).expect("a file")[0], "made-up", &companions).expect("loads"))
}

/// The answers of the symbol table. The audit has to find the same ones.
fn symbols_of(image: &Image<'_>) -> Vec<String> {
    assert_audited(image);
    crate::checks::image_answers(image, Table::SymbolTable)
}

fn assert_audited(image: &Image<'_>) {
    let index = Index::open(build(image).expect("builds").bytes).expect("just written");
    let report = audit(image, &index).expect("is read");
    assert_eq!(report.failures(), [""; 0], "{report}");
}
