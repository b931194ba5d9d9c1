//! Several writers of one image, and writers that are killed.

use std::process::Command;

use symdex_store::{Store, StoreOptions};

use crate::common::{entries, id, index, put, writers};
use crate::redis::layout::whole;
use crate::redis::{store, store_in};
use symdex_testkit::redis::Server;

/// The URL of the server that child processes write to.
const URL: &str = "SYMDEX_TEST_URL";
/// How many functions the first index of [`one_publisher`] has.
const FIRST: &str = "SYMDEX_TEST_FIRST";

/// Runs the function `name` in a process of its own, which writes to the server at `url`.
fn child(name: &str, url: &str) -> Command {
    let mut command = symdex_testkit::child(&format!("redis::publishing::{name}"));
    command.env(URL, url);
    command
}

fn url_of_the_parent() -> String {
    std::env::var(URL).expect("set")
}

pub(crate) fn one_process_of_writers() {
    let url = url_of_the_parent();
    writers::write_in_a_race(|round| {
        // Each round has a database of its own.
        let store = store(&format!("{url}/{round}"), &StoreOptions::new().zstd_level(1));
        move |functions| _ = put(&store, &index(0xab, functions))
    });
}

fn race(rounds: u16) {
    let server = Server::start(&["--databases", &rounds.to_string()]);
    let url = format!("redis://127.0.0.1:{}", server.port);
    writers::race(rounds, || child("one_process_of_writers", &url));
    let best = index(0xab, writers::BEST);
    let best = symdex::Index::open(&best[..]).expect("an index");
    for round in 0..rounds {
        let store = store(&format!("{url}/{round}"), &StoreOptions::new());
        let listed = entries(&store);
        assert_eq!(listed.len(), 1, "round {round}: {listed:?}");
        let image = store.open(&id(0xab)).expect("read").expect("there");
        assert_eq!(image.metadata(), best.metadata(), "round {round}");
        assert_eq!(whole(&image), usize::from(writers::BEST / 4), "round {round}");
    }
}

pub(crate) fn writers_of_several_processes_leave_the_best_index() {
    race(5);
}

/// `SYMDEX_TEST_RACE` sets another number of rounds.
pub(crate) fn writers_of_several_processes_leave_the_best_index_of_1000_rounds() {
    race(std::env::var("SYMDEX_TEST_RACE").map_or(1000, |rounds| rounds.parse().expect("a number")));
}

/// Puts better and better indexes until it is killed.
pub(crate) fn one_publisher() {
    let first = std::env::var(FIRST).expect("set").parse().expect("a number");
    let store = store(&url_of_the_parent(), &StoreOptions::new().zstd_level(1));
    for functions in first..u16::MAX {
        writers::report_step();
        put(&store, &index(0xab, functions));
    }
}

pub(crate) fn a_killed_publisher_leaves_nothing_the_old_or_the_whole_new_index() {
    let server = Server::start(&[]);
    let store = store_in(&server);
    let mut kinds = [0; 2];
    let mut functions = 100;
    for round in 0..24 {
        let mut publisher = child("one_publisher", &server.url());
        publisher.env(FIRST, functions.to_string());
        // The first publishers are killed while they put the first index, the others later.
        writers::kill_after(publisher, 1 + round / 4);
        let image = store.open(&id(0xab)).expect("read");
        kinds[usize::from(image.is_some())] += 1;
        if let Some(image) = image {
            whole(&image);
            let found = u16::try_from(image.metadata().counts.functions).expect("small");
            assert!(found + 1 >= functions, "an old index is not better than {functions} functions");
            functions = found + 1;
        }
    }
    assert!(kinds[1] > 0, "some publishers have published: {kinds:?}");
    // Values that no metadata names expire within an hour.
    let generation = |key: &str| key.split('/').nth(3).expect("a generation").to_owned();
    let mut generations: Vec<_> = server.keys().iter().map(|key| generation(key)).collect();
    generations.dedup();
    for key in server.keys() {
        let ttl: u64 = server.text(&["PTTL", &key]).parse().expect("an expiry");
        assert!(ttl > 0, "{key}");
    }
    let lasting = server
        .keys()
        .into_iter()
        .filter(|key| server.text(&["PTTL", key]).parse::<u64>().expect("an expiry") > 60 * 60 * 1000);
    let mut lasting: Vec<_> = lasting.map(|key| generation(&key)).filter(|g| g != "metadata").collect();
    lasting.dedup();
    assert_eq!(lasting.len(), 1, "only the values that the metadata names stay");
}
