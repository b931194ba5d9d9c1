//! Tests that need programs or corpora, and are reported as ignored without them.

#[cfg(feature = "remote")]
mod fetch_s3;
mod redis;
mod reports;
#[cfg(feature = "remote")]
mod s3_faults;
#[cfg(feature = "remote")]
mod slow_and_lost;

symdex_testkit::main! {
    #[cfg(feature = "remote")]
    fetch_s3::a_bucket_has_debug_files,
    redis::a_report_from_one_server_is_two_round_trips_cold_one_with_known_metadata_and_none_warm,
    redis::a_report_from_a_cluster_is_two_round_trips_cold_one_with_known_metadata_and_none_warm,
    redis::a_report_of_many_images_needs_few_round_trips,
    redis::images_that_a_folder_has_are_not_asked_for,
    redis::a_better_index_that_comes_between_two_reports_answers_the_second_one,
    redis::a_folder_answers_while_the_server_is_lost_slow_or_cut_off,
    redis::no_answer_is_lost_while_the_server_is_killed_and_restarted,
    redis::images_on_one_server_are_found_by_the_first_16_bytes_of_their_ids,
    redis::images_in_a_cluster_are_found_by_the_first_16_bytes_of_their_ids,
    #[cfg(feature = "remote")]
    s3_faults::a_folder_and_debug_files_answer_while_the_object_store_is_lost_slow_or_cut_off,
    #[cfg(feature = "remote")]
    s3_faults::no_answer_is_lost_while_the_object_store_is_killed_and_restarted,
    #[cfg(unix)]
    #[cfg(feature = "remote")]
    slow_and_lost::a_frozen_store_times_out_and_the_next_one_answers,
    #[cfg(unix)]
    #[cfg(feature = "remote")]
    slow_and_lost::a_frozen_server_of_redis_costs_one_time_out,
    #[cfg(feature = "remote")]
    slow_and_lost::a_frozen_web_server_costs_one_time_out,
    #[cfg(feature = "remote")]
    slow_and_lost::lost_values_are_said_to_be_lost_and_the_others_answer,
    #[cfg(feature = "remote")]
    slow_and_lost::a_damaged_value_fails_its_own_frames_only,
    #[cfg(feature = "remote")]
    slow_and_lost::what_a_store_has_lost_is_answered_by_the_next_one_and_put_again,
    #[cfg(feature = "remote")]
    slow_and_lost::a_cut_file_is_answered_by_the_next_store_and_replaced,
    #[cfg(feature = "remote")]
    slow_and_lost::what_a_store_has_lost_is_built_again_from_a_debug_file,
    ; children:
    fetch_s3::child_fetches,
    s3_faults::child_fills_the_bucket,
    s3_faults::child_answers,
    s3_faults::child_answers_again_and_again,
}
