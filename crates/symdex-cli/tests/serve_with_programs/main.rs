//! `symdex serve` with a browser, openssl and Redis.

#[path = "../common/mod.rs"]
mod common;
#[path = "../serve/server.rs"]
#[allow(dead_code, reason = "other tests of the service use the rest")]
mod server;

mod browser;
mod dead_store;
mod redis;
mod tls;

symdex_testkit::main! {
    browser::a_pasted_crash_shows_the_expected_frames,
    browser::a_report_is_read_with_the_keyboard_alone,
    browser::names_of_a_hostile_report_run_nothing,
    browser::the_page_is_accessible_in_both_colour_schemes_and_fits_a_phone,
    browser::an_image_shows_its_functions_and_files,
    browser::a_token_is_asked_for_and_kept_in_the_tab,
    browser::an_uploaded_debug_file_answers_the_open_report,
    browser::a_report_is_asked_for_again_while_the_server_fetches_debug_files,
    redis::an_image_in_redis_cannot_be_browsed,
    tls::tls_is_spoken_with_a_certificate_and_a_key,
    dead_store::a_store_that_cannot_be_asked_is_503_and_the_server_is_not_ready,
    dead_store::a_store_that_does_not_answer_is_not_ready_either,
    dead_store::images_that_another_store_has_are_answered,
    dead_store::a_store_that_is_back_is_asked_again,
    dead_store::an_index_is_put_again_when_the_store_takes_it,
    dead_store::a_job_outlives_a_restart_of_its_store,
    dead_store::a_job_without_a_store_waits_for_an_operator_and_keeps_its_upload,
    dead_store::a_job_waits_for_a_store_that_may_have_another_index,
    dead_store::a_job_that_replaces_takes_the_place_of_one_that_waits_for_an_operator,
    dead_store::an_upload_is_done_only_if_the_store_has_its_index_now;
    on request: browser::pictures_for_the_documentation
}
