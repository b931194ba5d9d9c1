//! Tests on the corpora: real debug files and reports, and hostile ones, which are not in the repository.

#[path = "../common/mod.rs"]
mod common;
mod companions;
mod count;
mod crashdx;
mod crashprobe;
mod golden;
mod hostile;
mod kscrash;
mod made_up;
mod native_reports;
mod real_reports;
mod report_corpora;
mod text_output;

symdex_testkit::main! {
    companions::lookup_finds_a_file_that_a_debug_file_refers_to_in_a_debug_dir,
    companions::symbolicate_finds_files_that_a_debug_file_refers_to_in_a_debug_dir,
    companions::an_isolated_build_reads_a_file_in_a_debug_dir,
    count::every_real_report_has_the_frames_that_a_count_without_the_parsers_finds,
    crashdx::atos_prints_what_apples_atos_prints,
    crashdx::reports_have_the_frames_of_crash_symbolicator,
    crashprobe::crashes_have_their_known_frames,
    golden::answers_equal_those_of_apples_atos,
    hostile::hostile_files_become_whole_indexes_or_errors,
    hostile::the_output_of_hostile_names_is_bounded,
    kscrash::testers_have_the_expected_backtraces,
    native_reports::frames_have_the_answers_of_ndk_stack,
    native_reports::a_build_id_that_is_missing_has_a_reason_and_what_is_near,
    native_reports::without_debug_files_reports_come_back_as_they_were,
    native_reports::addresses_are_those_of_the_file,
    real_reports::frames_have_the_answers_of_atos,
    real_reports::everything_that_is_not_symbolicated_stays_byte_for_byte,
    real_reports::json_keeps_everything_but_the_frames_of_the_app,
    real_reports::a_report_of_another_build_names_the_missing_image_and_the_near_one,
    real_reports::samples_have_the_answers_of_atos,
    report_corpora::no_report_of_the_corpora_has_two_takers,
    report_corpora::without_an_index_every_report_stays_byte_for_byte,
    report_corpora::a_second_symbolication_changes_nothing,
    text_output::an_ips_of_ios_equals_apples_translation,
    text_output::an_ips_of_macos_has_the_stacks_and_registers_of_apples_translation,
    text_output::text_of_a_real_ips_is_symbolicated_as_the_ips_is,
    text_output::a_text_report_changes_only_in_its_frames
}
