//! The verbs that stand in for other tools, beside these tools and under their clients.

mod clients;
#[path = "../common/mod.rs"]
mod common;
mod compared;
mod data;
mod gnu;
mod input;
mod llvm;
mod modes;

symdex_testkit::main! {
    clients::sanitizers_print_the_frames_of_llvm_symbolizer,
    clients::asan_symbolize_reads_llvm_symbolizer,
    clients::the_address_sanitizer_reads_addr2line_too,
    clients::perf_prints_the_source_lines_of_addr2line,
    clients::pprof_reads_llvm_symbolizer,
    data::data_has_the_answers_of_llvm_symbolizer,
    gnu::every_difference_from_addr2line_has_a_class,
    input::each_line_is_answered_before_the_next_one,
    input::modules_are_answered_from_the_indexes_of_their_ids,
    input::files_that_a_module_lacks_are_named_once_on_standard_error,
    input::a_dsym_of_another_build_is_named_and_not_used,
    input::a_link_has_the_verb_of_its_name,
    input::arguments_come_from_files_and_the_environment,
    input::addresses_can_be_offsets_in_a_section,
    input::addr2line_reads_symbols_as_gnu_does,
    input::lines_that_are_no_requests_are_answered_as_by_llvm_symbolizer,
    input::modules_that_cannot_be_read_do_not_end_the_run,
    llvm::every_difference_from_llvm_symbolizer_has_a_class,
    llvm::every_option_has_the_output_of_llvm_symbolizer,
    llvm::symbols_have_the_code_of_llvm_symbolizer,
    modes::every_mode_has_the_answers_of_the_tools_for_each_language,
    ; on request:
    gnu::table_of_the_corpora,
    llvm::table_of_the_corpora,
}
