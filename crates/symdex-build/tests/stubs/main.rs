//! Symbol stubs of Mach-O and ELF (docs/DEBUG-INFO.md, "Symbol stubs").

#[path = "../checks/mod.rs"]
mod checks;
mod elf;
mod linked;
mod macho;

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
    checks::image_answers(image, Table::SymbolTable)
}

fn assert_audited(image: &Image<'_>) {
    let index = Index::open(build(image).expect("builds").bytes).expect("just written");
    let report = audit(image, &index).expect("is read");
    assert_eq!(report.failures(), [""; 0], "{report}");
}

symdex_testkit::main! {
    macho::stubs_have_the_names_of_their_indirect_symbols,
    macho::a_dsym_has_the_stubs_of_its_binary,
    macho::a_symbol_of_a_stub_names_it,
    macho::stubs_without_a_table_have_no_name_and_belong_to_no_function,
    macho::wrong_numbers_of_stubs_name_none,
    macho::stubs_share_no_indirect_symbols,
    macho::names_of_stubs_that_overlap_are_refused,
    macho::stubs_beyond_the_limit_have_no_names,
    elf::stubs_have_the_names_of_the_relocations_of_their_slots,
    elf::stubs_of_every_form_are_recognised,
    elf::stubs_of_resolvers_have_the_names_of_their_symbols,
    elf::stubs_without_a_relocation_have_no_name_and_belong_to_no_function,
    elf::a_debug_file_has_the_stubs_of_its_binary,
    elf::wrong_relocations_name_no_stubs,
    linked::stubs_of_clang_and_lld_have_the_names_that_llvm_objdump_prints,
    linked::stubs_of_the_c_compiler_have_the_names_that_objdump_prints,
}
