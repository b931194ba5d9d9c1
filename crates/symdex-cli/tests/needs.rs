//! Tests that need programs or corpora, and are reported as ignored without them.

#[cfg(target_os = "linux")]
mod capture;
mod common;
mod corpora;
mod drop_in;
#[cfg(target_os = "linux")]
mod faults;
mod many_images;
mod schema;
mod store_lookups;
mod store_servers;
mod stores;

symdex_testkit::main! {
    #[cfg(target_os = "linux")]
    capture::a_crash_is_captured_and_symbolicated,
    #[cfg(target_os = "linux")]
    capture::a_crash_on_aarch64_is_captured_and_symbolicated,
    #[cfg(target_os = "linux")]
    capture::a_stack_overflow_is_captured_on_another_stack,
    #[cfg(target_os = "linux")]
    capture::a_stack_is_captured_without_a_crash,
    #[cfg(target_os = "linux")]
    capture::a_panic_is_captured_and_symbolicated,
    corpora::companions::lookup_finds_a_file_that_a_debug_file_refers_to_in_a_debug_dir,
    corpora::companions::symbolicate_finds_files_that_a_debug_file_refers_to_in_a_debug_dir,
    corpora::companions::an_isolated_build_reads_a_file_in_a_debug_dir,
    corpora::count::every_real_report_has_the_frames_that_a_count_without_the_parsers_finds,
    corpora::crashdx::atos_prints_what_apples_atos_prints,
    corpora::crashdx::reports_have_the_frames_of_crash_symbolicator,
    corpora::crashprobe::crashes_have_their_known_frames,
    corpora::golden::answers_equal_those_of_apples_atos,
    corpora::hostile::hostile_files_become_whole_indexes_or_errors,
    corpora::hostile::the_output_of_hostile_names_is_bounded,
    corpora::kscrash::testers_have_the_expected_backtraces,
    corpora::native_reports::frames_have_the_answers_of_ndk_stack,
    corpora::native_reports::a_build_id_that_is_missing_has_a_reason_and_what_is_near,
    corpora::native_reports::without_debug_files_reports_come_back_as_they_were,
    corpora::native_reports::addresses_are_those_of_the_file,
    corpora::profiles::profiles_of_go_programs_are_read_back_by_pprof,
    corpora::profiles::a_profile_without_an_index_stays_byte_for_byte,
    corpora::real_reports::frames_have_the_answers_of_atos,
    corpora::real_reports::everything_that_is_not_symbolicated_stays_byte_for_byte,
    corpora::real_reports::json_keeps_everything_but_the_frames_of_the_app,
    corpora::real_reports::a_report_of_another_build_names_the_missing_image_and_the_near_one,
    corpora::real_reports::samples_have_the_answers_of_atos,
    corpora::report_corpora::no_report_of_the_corpora_has_two_takers,
    corpora::report_corpora::without_an_index_every_report_stays_byte_for_byte,
    corpora::report_corpora::a_second_symbolication_changes_nothing,
    corpora::text_output::an_ips_of_ios_equals_apples_translation,
    corpora::text_output::an_ips_of_macos_has_the_stacks_and_registers_of_apples_translation,
    corpora::text_output::text_of_a_real_ips_is_symbolicated_as_the_ips_is,
    corpora::text_output::a_text_report_changes_only_in_its_frames,
    drop_in::clients::sanitizers_print_the_frames_of_llvm_symbolizer,
    drop_in::clients::asan_symbolize_reads_llvm_symbolizer,
    drop_in::clients::the_address_sanitizer_reads_addr2line_too,
    drop_in::clients::perf_prints_the_source_lines_of_addr2line,
    drop_in::clients::pprof_reads_llvm_symbolizer,
    drop_in::data::data_has_the_answers_of_llvm_symbolizer,
    drop_in::gnu::every_difference_from_addr2line_has_a_class,
    drop_in::input::each_line_is_answered_before_the_next_one,
    drop_in::input::modules_are_answered_from_the_indexes_of_their_ids,
    drop_in::input::files_that_a_module_lacks_are_named_once_on_standard_error,
    drop_in::input::a_dsym_of_another_build_is_named_and_not_used,
    drop_in::input::a_link_has_the_verb_of_its_name,
    drop_in::input::arguments_come_from_files_and_the_environment,
    drop_in::input::addresses_can_be_offsets_in_a_section,
    drop_in::input::addr2line_reads_symbols_as_gnu_does,
    drop_in::input::lines_that_are_no_requests_are_answered_as_by_llvm_symbolizer,
    drop_in::input::modules_that_cannot_be_read_do_not_end_the_run,
    drop_in::llvm::every_difference_from_llvm_symbolizer_has_a_class,
    drop_in::llvm::every_option_has_the_output_of_llvm_symbolizer,
    drop_in::llvm::symbols_have_the_code_of_llvm_symbolizer,
    drop_in::modes::every_mode_has_the_answers_of_the_tools_for_each_language,
    #[cfg(target_os = "linux")]
    faults::an_index_is_absent_old_or_whole_after_a_fault_at_any_step,
    #[cfg(target_os = "linux")]
    faults::a_report_is_absent_old_or_whole_after_a_fault_at_any_step,
    #[cfg(target_os = "linux")]
    faults::a_file_that_is_written_in_part_is_not_left,
    #[cfg(target_os = "linux")]
    faults::a_temporary_file_that_cannot_be_kept_is_an_error_that_says_what_helps,
    many_images::a_missing_image_costs_one_request_and_the_next_command_asks_for_none,
    schema::images_failures_and_totals_of_a_build_conform,
    schema::the_id_of_an_image_without_a_stated_id_conforms,
    schema::reports_and_failures_conform,
    schema::needed_images_and_answers_matched_by_name_conform,
    schema::a_report_that_failed_has_its_object_in_its_own_file,
    schema::real_reports_conform,
    schema::answers_of_addresses_conform,
    schema::exported_indexes_conform,
    schema::the_help_lists_the_members,
    schema::an_index_and_its_ranges_conform,
    schema::an_index_in_redis_conforms,
    schema::every_line_of_the_commands_for_stores_conforms,
    store_lookups::redis_answers_as_the_index,
    store_lookups::redis_is_asked_once_for_all_addresses_of_a_command,
    store_lookups::inspect_shows_of_values_what_the_store_states_and_says_what_is_missing,
    store_lookups::a_lost_value_is_damage_and_the_other_addresses_are_answered,
    store_lookups::a_report_says_what_a_store_has_lost_and_puts_it_again,
    store_lookups::an_object_answers_as_the_index,
    store_lookups::a_folder_finds_a_long_id_by_its_debug_id,
    store_lookups::redis_finds_a_long_id_by_its_debug_id,
    store_lookups::an_object_store_finds_a_long_id_by_its_debug_id,
    store_servers::every_verb_works_on_s3,
    store_servers::every_verb_works_on_redis,
    store_servers::verify_names_lost_and_damaged_values,
    stores::every_command_reads_a_store_as_it_reads_the_index,
    stores::an_index_that_no_store_has_is_not_found,
    stores::an_index_is_put_into_the_folder_and_into_all_stores,
    stores::an_index_that_one_store_cannot_take_is_still_put_into_the_others,
    stores::the_environment_names_the_stores_if_the_command_line_does_not,
    stores::urls_with_secrets_are_refused_on_the_command_line_and_errors_say_what_is_accepted,
    stores::a_report_is_answered_from_redis_in_two_calls_and_the_summary_says_which_store_answered,
    stores::an_index_in_redis_expires_after_the_time_of_the_option,
    stores::a_report_names_the_images_that_no_store_could_be_asked_for,
    stores::lookups_answer_from_another_store_and_fail_if_nobody_else_has_the_image,
    stores::build_asks_its_stores_before_it_reads_an_input_and_a_lost_one_once,
    ; on request:
    drop_in::gnu::table_of_the_corpora,
    drop_in::llvm::table_of_the_corpora,
    many_images::the_table_of_missing_images,
    many_images::the_table_of_2000_indexes,
}
