//! Tests that need programs or corpora, and are reported as ignored without them.

mod common;
mod oracle;

symdex_testkit::main! {
    oracle::every_frame_has_the_functions_that_llvm_symbolizer_finds,
    oracle::the_written_report_names_every_function_and_its_line,
    oracle::the_written_report_is_read_back_with_its_functions,
    oracle::without_an_index_every_byte_stays,
    oracle::the_second_time_changes_nothing,
    oracle::each_report_and_its_answer_have_one_taker,
    oracle::each_format_has_a_sample,
    oracle::the_index_has_the_id_of_the_reports,
}
