//! Tests that need programs or corpora, and are reported as ignored without them.

mod checks;
mod direct;
mod go_programs;
mod kernel_modules;
mod stubs;
mod symbol_map;
mod unwind_rows;

symdex_testkit::main! {
    direct::columns_are_those_of_the_row_and_of_the_calls,
    direct::every_answer_for_testdata_is_that_of_the_index,
    direct::every_answer_for_the_shared_corpora_is_that_of_the_index,
    kernel_modules::modules_answer_as_once_they_are_linked,
    go_programs::a_stripped_program_answers_as_its_twin_with_dwarf,
    stubs::macho::stubs_have_the_names_of_their_indirect_symbols,
    stubs::macho::a_dsym_has_the_stubs_of_its_binary,
    stubs::macho::a_symbol_of_a_stub_names_it,
    stubs::macho::stubs_without_a_table_have_no_name_and_belong_to_no_function,
    stubs::macho::wrong_numbers_of_stubs_name_none,
    stubs::macho::stubs_share_no_indirect_symbols,
    stubs::macho::names_of_stubs_that_overlap_are_refused,
    stubs::macho::stubs_beyond_the_limit_have_no_names,
    stubs::elf::stubs_have_the_names_of_the_relocations_of_their_slots,
    stubs::elf::stubs_of_every_form_are_recognised,
    stubs::elf::stubs_of_resolvers_have_the_names_of_their_symbols,
    stubs::elf::stubs_without_a_relocation_have_no_name_and_belong_to_no_function,
    stubs::elf::a_debug_file_has_the_stubs_of_its_binary,
    stubs::elf::wrong_relocations_name_no_stubs,
    stubs::linked::stubs_of_clang_and_lld_have_the_names_that_llvm_objdump_prints,
    stubs::linked::stubs_of_the_c_compiler_have_the_names_that_objdump_prints,
    symbol_map::hidden_names_become_what_they_would_be_in_the_clear,
    symbol_map::without_a_map_names_stay_as_they_are_and_are_counted,
    symbol_map::names_that_the_map_lacks_stay_as_they_are_and_are_counted,
    symbol_map::only_version_two_is_read,
    symbol_map::maps_are_found_by_the_id_or_the_original_id,
    symbol_map::what_is_no_symbol_map_is_named,
    symbol_map::hostile_property_lists_cost_nothing_but_themselves,
    symbol_map::a_symbol_map_takes_no_more_than_its_limit,
    symbol_map::every_hidden_name_of_a_real_debug_file_is_resolved,
    unwind_rows::rows_of_elf_files_are_those_of_gimli,
    unwind_rows::rows_of_the_c_library_are_those_of_gimli,
    unwind_rows::rows_of_compact_unwind_information_are_those_of_its_encodings,
    unwind_rows::rows_of_compilers_are_those_of_gimli,
    unwind_rows::rows_of_the_exception_index_are_those_of_debug_frame_at_calls,
    unwind_rows::rows_of_mach_o_files_are_those_of_macho_unwind_info,
    unwind_rows::rows_of_another_file_are_found_to_be_wrong,
    unwind_rows::rows_of_damaged_tables_are_lost_one_by_one,
    unwind_rows::rows_of_damaged_compact_unwind_information_are_lost_or_those_of_its_encodings,
    unwind_rows::entries_that_share_many_instructions_are_left_out_and_counted,
    unwind_rows::values_have_the_rows_of_their_parts,
    ; on request:
    direct::random_answers_for_a_large_debug_file_are_those_of_the_index,
    unwind_rows::rows_of_a_given_file_are_those_of_its_tables,
}
