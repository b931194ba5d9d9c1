//! Tests that need programs or corpora, and are reported as ignored without them.

mod common;
#[cfg(all(feature = "object-store", feature = "redis"))]
mod faults;
mod folder_store;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "object-store")]
mod s3;

symdex_testkit::main! {
    #[cfg(all(feature = "object-store", feature = "redis"))]
    faults::s3_behind_faults_answers_right_and_loses_no_put,
    #[cfg(all(feature = "object-store", feature = "redis"))]
    faults::s3_with_a_cache_behind_faults_answers_right_and_loses_no_put,
    #[cfg(all(feature = "object-store", feature = "redis"))]
    faults::a_web_server_behind_faults_answers_right,
    #[cfg(all(feature = "object-store", feature = "redis"))]
    faults::redis_behind_faults_answers_right_and_loses_no_put,
    folder_store::a_folder_behaves_as_a_store,
    folder_store::a_report_is_answered_from_one_version,
    folder_store::indexes_are_fanned_out_by_two_digits_and_flat_ones_are_found,
    folder_store::a_use_is_recorded_once_a_day,
    folder_store::gc_removes_unused_indexes_and_files_of_killed_processes_only,
    folder_store::a_missing_folder_is_an_empty_store,
    #[cfg(unix)]
    folder_store::a_folder_that_has_vanished_is_an_error_and_is_not_made_anew,
    folder_store::a_killed_writer_leaves_no_index_the_old_or_the_new_one,
    folder_store::writers_of_several_processes_leave_the_best_index,
    #[cfg(feature = "redis")]
    redis::access::passwords_are_needed_and_never_shown,
    #[cfg(feature = "redis")]
    redis::access::users_have_the_permissions_that_the_documentation_lists,
    #[cfg(feature = "redis")]
    redis::access::a_cluster_is_named_as_one,
    #[cfg(feature = "redis")]
    redis::access::replicas_and_full_servers_say_what_to_do,
    #[cfg(feature = "redis")]
    redis::access::tls_trusts_the_certificates_of_the_given_file_only,
    #[cfg(feature = "redis")]
    redis::eviction::a_put_for_which_the_memory_does_not_suffice_leaves_no_values,
    #[cfg(feature = "redis")]
    redis::expiry::a_used_image_does_not_expire_and_an_unused_one_expires_as_a_whole,
    #[cfg(feature = "redis")]
    redis::expiry::all_values_of_an_image_expire_at_one_time,
    #[cfg(feature = "redis")]
    redis::expiry::gc_removes_what_was_not_used_for_a_time,
    #[cfg(feature = "redis")]
    redis::expiry::the_set_of_long_ids_lives_as_long_as_their_values,
    #[cfg(feature = "redis")]
    redis::faults::lost_connections_and_half_answers_are_retried,
    #[cfg(feature = "redis")]
    redis::faults::a_bit_that_flips_on_the_way_is_no_damage,
    #[cfg(feature = "redis")]
    redis::faults::a_publisher_with_lost_connections_leaves_a_whole_index,
    #[cfg(feature = "redis")]
    redis::faults::late_answers_are_awaited_and_silence_is_a_time_out,
    #[cfg(feature = "redis")]
    redis::faults::a_server_that_is_not_there_is_unavailable,
    #[cfg(feature = "redis")]
    redis::faults::a_restarted_server_answers_again_through_the_same_store,
    #[cfg(feature = "redis")]
    redis::layout::one_server_behaves_as_a_store,
    #[cfg(feature = "redis")]
    redis::layout::a_cluster_behaves_as_a_store,
    #[cfg(feature = "redis")]
    redis::layout::a_report_on_one_server_is_two_round_trips_cold_and_one_warm,
    #[cfg(feature = "redis")]
    redis::layout::values_of_a_real_index_answer_as_the_index,
    #[cfg(feature = "redis")]
    redis::layout::a_lost_value_is_missing_until_the_index_is_put_again,
    #[cfg(feature = "redis")]
    redis::layout::damaged_values_and_metadata_are_damage_until_the_index_is_put_again,
    #[cfg(feature = "redis")]
    redis::layout::an_open_image_answers_for_a_while_after_it_was_replaced_and_is_then_to_be_opened_again,
    #[cfg(feature = "redis")]
    redis::layout::a_report_is_answered_from_one_version,
    #[cfg(feature = "redis")]
    redis::layout::values_are_copied_to_another_redis_and_not_to_files,
    #[cfg(feature = "redis")]
    redis::publishing::writers_of_several_processes_leave_the_best_index,
    #[cfg(feature = "redis")]
    redis::publishing::a_killed_publisher_leaves_nothing_the_old_or_the_whole_new_index,
    #[cfg(feature = "object-store")]
    s3::s3_behaves_as_a_store,
    #[cfg(feature = "object-store")]
    s3::errors_name_the_object_and_have_no_secrets,
    #[cfg(feature = "object-store")]
    s3::a_bit_that_flips_on_the_way_is_neither_damage_nor_a_reason_to_replace_an_index,
    #[cfg(feature = "object-store")]
    s3::a_second_put_of_an_index_asks_for_its_metadata_only,
    #[cfg(feature = "object-store")]
    s3::a_report_is_answered_from_one_version,
    #[cfg(feature = "object-store")]
    s3::writers_of_several_processes_leave_the_best_index,
    ; on request:
    faults::the_table_of_faults,
    folder_store::writers_of_several_processes_leave_the_best_index_of_1000_rounds,
    folder_store::gc_among_writers_and_readers_removes_nothing_fresh,
    redis::publishing::writers_of_several_processes_leave_the_best_index_of_1000_rounds,
    redis::expiry::gc_among_writers_and_readers_removes_nothing_fresh,
    redis::eviction::what_each_policy_of_eviction_leaves,
    s3::writers_of_several_processes_leave_the_best_index_of_1000_rounds,
    s3::gc_among_writers_and_readers_removes_nothing_fresh,
    ; children:
    faults::child_works_without_a_cache,
    faults::child_works_with_a_cache,
    folder_store::one_process_that_is_killed,
    folder_store::one_process_of_writers,
    redis::publishing::one_process_of_writers,
    redis::publishing::one_publisher,
    s3::child_uses_a_store,
    s3::child_reads_a_missing_bucket,
    s3::child_cannot_connect,
    s3::child_writes,
    s3::child_reads_the_best,
    s3::child_collects,
    s3::child_puts_the_better_index,
    s3::child_puts_the_better_index_again,
    s3::child_replaces_during_lookups,
    s3::child_reads_the_better_index,
    s3::child_puts_a_worse_index,
}
