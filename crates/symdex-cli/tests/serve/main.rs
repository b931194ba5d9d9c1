//! `symdex serve`: the command as it is, over HTTP, some of it with a browser, openssl and Redis.

mod abuse;
mod applecrashreport;
mod browser;
mod dead_store;
mod deploy;
mod hung_store;
mod image_list;
mod jobs;
mod lookup;
mod miss;
mod mozilla;
mod operation;
mod page;
mod poisoned;
mod redis;
#[cfg(unix)]
mod reload;
mod replicas;
mod resolve;
#[cfg(unix)]
mod restart;
mod secrets;
mod sent_indexes;
mod sentry;
mod server;
mod shared_jobs;
mod symbolicate;
mod tls;
#[cfg(all(feature = "otel", unix))]
mod trace;
mod upload;

symdex_testkit::main! {
    #[cfg(unix)]
    abuse::connections_beyond_the_limit_of_open_files_are_refused_and_others_stay,
    #[cfg(unix)]
    abuse::the_soft_limit_of_open_files_is_raised,
    #[cfg(target_os = "linux")]
    abuse::an_address_with_many_connections_leaves_others_to_other_addresses,
    abuse::strangers_write_little_to_the_log,
    abuse::a_request_names_one_host_and_one_token,
    abuse::a_body_in_chunks_is_refused_when_it_is_too_long,
    abuse::a_head_that_is_too_long_is_refused,
    abuse::a_lookup_of_too_many_addresses_is_refused,
    abuse::a_request_for_too_many_images_is_refused,
    abuse::an_error_quotes_little_of_a_request,
    abuse::answers_that_nobody_reads_do_not_fill_the_memory,
    #[cfg(all(feature = "jemalloc", target_os = "linux"))]
    abuse::memory_that_no_request_has_reserved_counts_and_small_requests_go_last,
    abuse::an_address_with_megabytes_of_names_is_marked_and_the_others_are_answered,
    abuse::answers_of_a_lookup_past_the_limit_are_marked,
    abuse::requests_that_do_not_fit_into_the_memory_are_refused,
    browser::a_pasted_crash_shows_the_expected_frames,
    browser::a_report_is_read_with_the_keyboard_alone,
    browser::names_of_a_hostile_report_run_nothing,
    browser::the_page_is_accessible_in_both_colour_schemes_and_fits_a_phone,
    browser::images_are_found_and_asked_for_an_address,
    browser::a_token_is_asked_for_and_kept_in_the_tab,
    browser::a_report_is_kept_without_a_server_without_a_token_and_over_a_reload,
    browser::threads_say_where_a_program_crashed_and_are_searched_and_copied,
    browser::images_without_ids_are_matched_by_name_on_the_page,
    browser::frames_that_a_search_of_the_stack_has_found_are_marked,
    browser::a_profile_is_shown_as_a_flame_graph_with_the_images_that_lack_names,
    browser::an_uploaded_debug_file_answers_the_open_report,
    browser::a_report_is_asked_for_again_while_the_server_fetches_debug_files,
    dead_store::a_store_that_cannot_be_asked_is_503_and_the_server_is_not_ready,
    dead_store::a_store_that_does_not_answer_is_not_ready_either,
    dead_store::a_server_is_ready_while_one_store_answers,
    #[cfg(unix)]
    dead_store::a_folder_that_has_vanished_is_unavailable_until_it_is_back,
    dead_store::a_store_that_is_full_still_answers,
    dead_store::images_that_another_store_has_are_answered,
    dead_store::a_store_that_is_back_is_asked_again,
    dead_store::an_index_is_put_again_when_the_store_takes_it,
    dead_store::a_job_outlives_a_restart_of_its_store,
    dead_store::a_job_without_a_store_waits_for_an_operator_and_keeps_its_upload,
    dead_store::a_job_waits_for_a_store_that_may_have_another_index,
    dead_store::a_job_that_replaces_takes_the_place_of_one_that_waits_for_an_operator,
    dead_store::an_upload_is_done_only_if_the_store_has_its_index_now,
    deploy::the_container_runs_a_command_that_exists,
    deploy::the_unit_runs_a_command_that_exists,
    deploy::the_socket_is_where_the_server_listens,
    deploy::the_manifests_have_a_command_and_a_configuration_that_exist,
    deploy::the_manifests_send_a_client_to_one_pod_and_stop_pods_without_errors,
    deploy::prometheus_accepts_the_alerts_and_they_fire_as_their_tests_say,
    deploy::the_dashboard_has_the_form_that_grafana_imports,
    #[cfg(unix)]
    hung_store::a_redis_server_that_hangs_delays_neither_images_in_memory_nor_readiness,
    hung_store::a_web_server_that_hangs_delays_neither_images_in_memory_nor_readiness,
    image_list::images_are_found_by_name_and_by_the_first_digits_of_their_ids,
    jobs::an_upload_is_built_and_a_lookup_finds_it_at_once,
    jobs::indexes_of_uploads_have_unwind_rows_if_asked_for,
    jobs::archives_are_unpacked_and_built_and_their_uploads_deleted,
    jobs::the_same_upload_is_the_same_job_until_the_stores_lose_its_images,
    jobs::an_upload_repairs_a_damaged_index,
    jobs::an_upload_continues_after_a_cut_connection,
    jobs::wrong_uploads_are_refused,
    jobs::uploads_that_have_no_image_fail_with_their_reason,
    #[cfg(target_os = "linux")]
    jobs::a_build_that_a_limit_ends_says_so,
    jobs::jobs_survive_a_killed_server,
    jobs::a_job_during_which_the_server_is_killed_three_times_waits_for_an_operator,
    jobs::a_kill_while_an_upload_is_unpacked_is_an_attempt,
    #[cfg(unix)]
    jobs::an_orderly_stop_loses_no_upload_and_is_no_attempt,
    jobs::a_state_folder_has_one_server,
    jobs::uploads_need_their_scope,
    jobs::a_partial_upload_is_continued_and_replaced_by_its_token_only,
    jobs::jobs_are_canceled_by_their_token_and_put_first_by_operators,
    jobs::the_build_of_a_canceled_job_ends,
    jobs::an_uploader_learns_which_images_are_there,
    lookup::answers_are_those_of_the_command,
    lookup::each_image_is_a_line_of_ndjson,
    lookup::wrong_requests_are_refused_with_problem_details,
    resolve::answers_are_those_of_lookup_as_arrow_and_as_json,
    resolve::a_million_addresses_are_resolved_in_parts_within_the_memory,
    resolve::wrong_requests_are_refused_with_a_reason,
    miss::many_requests_for_a_missing_image_fetch_it_once,
    miss::an_image_that_no_source_has_is_asked_for_once,
    miss::a_slow_source_is_pending_and_the_image_is_built_although_nobody_waits,
    miss::files_that_cannot_be_used_are_failures_with_a_reason,
    miss::both_foreign_interfaces_fetch_too,
    miss::a_lost_index_is_said_to_be_lost_and_built_again,
    mozilla::frames_have_functions_lines_and_inlined_functions,
    mozilla::line_0_is_left_out_and_names_are_demangled,
    mozilla::version_4_has_only_names,
    mozilla::a_debug_id_of_an_elf_image_has_the_start_of_its_build_id,
    mozilla::the_header_debug_adds_counts_and_times,
    mozilla::requests_that_are_wrong_are_refused_with_a_title,
    mozilla::the_firefox_profiler_may_ask_if_its_origin_is_allowed,
    operation::a_server_says_that_it_is_alive_and_counts_requests,
    operation::operators_see_the_process_the_queues_and_who_asks,
    operation::tokens_have_scopes,
    operation::without_tokens_a_server_is_for_this_machine_only,
    operation::without_tokens_a_page_of_another_origin_cannot_use_a_server,
    #[cfg(unix)]
    operation::sigterm_stops_a_server_without_an_error,
    page::every_file_has_its_type_and_a_strict_policy,
    page::a_browser_that_has_a_file_does_not_get_it_again,
    page::no_file_has_scripts_or_styles_in_html_or_makes_html_of_text,
    page::the_page_needs_no_token,
    poisoned::an_upload_of_somebody_else_does_not_replace_an_index,
    poisoned::an_admin_replaces_and_deletes_a_poisoned_index,
    poisoned::the_rule_for_conflicts_can_be_chosen,
    poisoned::an_index_in_another_store_is_kept_as_well,
    poisoned::a_new_token_needs_scopes_and_says_what_they_are,
    redis::an_image_in_redis_is_found_by_its_id_and_answers,
    #[cfg(unix)]
    reload::sighup_replaces_the_tokens_and_keeps_the_connections,
    replicas::an_image_is_found_as_soon_as_it_is_no_longer_missing,
    replicas::a_replaced_index_is_seen_by_another_server_after_its_time,
    replicas::a_job_of_another_server_is_missing_and_its_upload_can_be_sent_again,
    #[cfg(unix)]
    restart::a_server_that_stops_still_answers_and_closes_its_connections,
    #[cfg(unix)]
    restart::a_socket_of_a_supervisor_keeps_clients_waiting_during_a_restart,
    secrets::secrets_of_urls_are_in_no_answer_no_metric_and_no_log,
    #[cfg(unix)]
    secrets::folders_for_uploads_and_archives_are_private_whatever_the_umask,
    sent_indexes::a_sent_index_answers_at_once_and_says_that_it_was_sent,
    sent_indexes::the_documented_commands_send_indexes,
    sent_indexes::an_index_is_sent_in_parts,
    sent_indexes::the_same_bytes_for_another_image_are_another_job,
    sent_indexes::only_the_whole_index_of_its_image_is_taken,
    sent_indexes::forged_indexes_harm_neither_the_server_nor_other_images,
    sent_indexes::a_better_index_replaces_a_poorer_one,
    sent_indexes::indexes_need_their_scope,
    sentry::frames_are_symbolicated_with_inlined_functions,
    sentry::only_the_first_frame_has_the_address_of_an_instruction,
    sentry::addresses_may_be_offsets_in_modules,
    sentry::frames_may_be_sent_in_the_other_order,
    sentry::an_elf_image_is_found_by_its_build_id_or_its_debug_id,
    sentry::a_damaged_index_is_malformed,
    sentry::an_answer_that_is_not_ready_in_time_is_fetched_later,
    applecrashreport::a_crash_report_is_symbolicated_as_llvm_symbolizer_does,
    applecrashreport::a_crash_report_keeps_its_packages_registers_and_thread_names,
    applecrashreport::forms_without_a_readable_report_are_refused,
    sentry::requests_that_are_wrong_are_refused_with_problem_details,
    sentry::answers_have_the_form_of_symbolicators_own,
    sentry::candidates_say_what_each_store_has,
    shared_jobs::servers_that_get_the_same_upload_at_once_make_one_job,
    shared_jobs::every_server_knows_the_jobs_of_a_bucket_and_a_killed_server_loses_none,
    #[cfg(unix)]
    shared_jobs::a_rolling_restart_over_a_bucket_loses_nothing_and_is_no_attempt,
    symbolicate::the_answer_is_what_the_command_writes,
    symbolicate::json_is_that_of_the_command,
    symbolicate::a_minidump_is_answered_as_by_the_command,
    symbolicate::images_without_ids_are_matched_by_name_or_assumed_as_by_the_command,
    symbolicate::an_assumption_names_one_image_of_a_store_and_never_a_file,
    symbolicate::compressed_reports_are_read_and_other_encodings_refused,
    symbolicate::a_body_past_the_limit_is_refused_before_and_after_it_is_decompressed,
    symbolicate::a_batch_has_a_line_for_each_report,
    tls::tls_is_spoken_with_a_certificate_and_a_key,
    #[cfg(target_os = "linux")]
    tls::an_upload_trusts_the_authorities_of_the_system_only,
    #[cfg(unix)]
    tls::sighup_replaces_the_certificate_and_keeps_the_connections,
    #[cfg(all(feature = "otel", unix))]
    trace::a_collector_gets_the_span_of_a_request,
    upload::an_upload_sends_a_part_of_the_debug_files_and_the_next_one_nothing,
    upload::indexes_of_real_dsyms_have_a_few_per_cent_of_their_bytes,
    upload::an_upload_goes_on_after_broken_connections_and_an_overloaded_server,
    upload::a_server_that_asks_for_a_longer_pause_is_a_failure,
    upload::a_killed_client_sends_only_the_rest_in_its_next_run,
    upload::two_hundred_images_are_sent_in_one_run,
    upload::the_whole_index_is_sent_after_that_of_a_stripped_library,
    upload::a_dry_run_sends_nothing,
    upload::debug_files_are_sent_as_archives_and_once,
    upload::a_token_needs_its_scopes_and_is_not_shown,
    upload::what_is_no_symdex_server_is_named,
    upload::an_index_that_is_too_large_for_the_server_does_not_stop_the_others,
    upload::a_server_that_is_lost_after_the_uploads_leaves_them_unconfirmed,
    upload::an_upload_that_always_fails_does_not_stop_the_others,
    upload::each_part_of_an_upload_that_arrives_renews_the_patience,
    upload::an_upload_whose_job_outlasts_the_wait_is_not_confirmed,
    upload::debug_files_without_an_id_or_a_wanted_architecture_are_failures,
    upload::a_server_of_a_found_file_gets_no_token,
    upload::what_builds_leave_is_found_and_printed_first,
    upload::every_line_of_json_conforms_to_its_schema;
    on request: browser::pictures_for_the_documentation,
}
