//! Stores in Redis, against servers of this machine.
//!
//! Without `redis-server`, these tests are ignored.

#[path = "../common/mod.rs"]
mod common;

mod access;
mod eviction;
mod expiry;
mod faults;
mod layout;
mod publishing;

use symdex_store::{RedisStore, StoreOptions};
use symdex_testkit::redis::Server;

/// The store at `url`.
fn store(url: &str, options: &StoreOptions) -> RedisStore {
    let url = url.parse().unwrap_or_else(|error| panic!("{error}"));
    RedisStore::open(&url, options).unwrap_or_else(|error| panic!("{error}"))
}

/// The store in the first database of `server`.
fn store_in(server: &Server) -> RedisStore {
    store(&server.url(), &StoreOptions::new())
}

symdex_testkit::main! {
    access::passwords_are_needed_and_never_shown,
    access::users_have_the_permissions_that_the_documentation_lists,
    access::a_cluster_is_named_as_one,
    access::replicas_and_full_servers_say_what_to_do,
    access::tls_trusts_the_certificates_of_the_given_file_only,
    eviction::a_put_for_which_the_memory_does_not_suffice_leaves_no_values,
    expiry::a_used_image_does_not_expire_and_an_unused_one_expires_as_a_whole,
    expiry::all_values_of_an_image_expire_at_one_time,
    expiry::gc_removes_what_was_not_used_for_a_time,
    expiry::the_set_of_long_ids_lives_as_long_as_their_values,
    faults::lost_connections_and_half_answers_are_retried,
    faults::a_bit_that_flips_on_the_way_is_no_damage,
    faults::a_publisher_with_lost_connections_leaves_a_whole_index,
    faults::late_answers_are_awaited_and_silence_is_a_time_out,
    faults::a_server_that_is_not_there_is_unavailable,
    faults::a_restarted_server_answers_again_through_the_same_store,
    layout::one_server_behaves_as_a_store,
    layout::a_cluster_behaves_as_a_store,
    layout::a_report_on_one_server_is_two_round_trips_cold_and_one_warm,
    layout::values_of_a_real_index_answer_as_the_index,
    layout::a_lost_value_is_missing_until_the_index_is_put_again,
    layout::damaged_values_and_metadata_are_damage_until_the_index_is_put_again,
    layout::an_open_image_answers_for_a_while_after_it_was_replaced_and_is_then_to_be_opened_again,
    layout::a_report_is_answered_from_one_version,
    layout::values_are_copied_to_another_redis_and_not_to_files,
    publishing::writers_of_several_processes_leave_the_best_index,
    publishing::a_killed_publisher_leaves_nothing_the_old_or_the_whole_new_index;
    on request: publishing::writers_of_several_processes_leave_the_best_index_of_1000_rounds,
        expiry::gc_among_writers_and_readers_removes_nothing_fresh,
        eviction::what_each_policy_of_eviction_leaves;
    children: publishing::one_process_of_writers, publishing::one_publisher
}
