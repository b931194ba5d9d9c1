//! Tests that need programs or corpora, and are reported as ignored without them.

mod python_reader;

symdex_testkit::main! {
    python_reader::the_reader_in_python_answers_addresses_of_the_golden_indexes_as_this_one,
    python_reader::the_reader_in_python_has_the_unwind_rows_of_this_one,
}
