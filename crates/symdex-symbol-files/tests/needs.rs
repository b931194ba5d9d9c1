//! Tests that need programs or corpora, and are reported as ignored without them.

mod blazesym;
mod common;
mod imported;
mod read_back;

symdex_testkit::main! {
    blazesym::blazesym_has_the_answers_of_the_index,
    blazesym::blazesym_has_the_answers_of_large_indexes,
    imported::what_is_imported_again_answers_as_before,
    imported::corpora_that_are_imported_again_answer_as_before,
    imported::gsym_of_llvm_answers_as_llvm_does,
    imported::big_endian_gsym_of_llvm_answers_as_llvm_does,
    imported::calls_and_lines_with_gaps_are_exported_once,
    imported::small_indexes_that_make_much_output_are_refused,
    read_back::breakpad_answers_are_those_of_the_index,
    read_back::gsym_answers_are_those_of_the_index,
    read_back::json_has_every_answer_of_the_index,
    read_back::damage_is_an_error,
}
