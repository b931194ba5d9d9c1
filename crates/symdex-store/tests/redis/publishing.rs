//! Several writers of one image, and writers that are killed.

use std::process::{Child, Stdio};
use std::time::Duration;

use symdex_store::{Store, StoreOptions};

use crate::common::{entries, id, index, put};
use crate::layout::whole;
use crate::server::{Server, store};

/// The variables of child processes.
const URL: &str = "SYMDEX_TEST_URL";
const ROUNDS: &str = "SYMDEX_TEST_ROUNDS";
const PROCESS: &str = "SYMDEX_TEST_PROCESS";
const PROCESSES: u16 = 4;
const THREADS: u16 = 16;

/// Runs the function `name` in a process of its own.
fn child(name: &str, url: &str, rounds: u16, process: u16) -> Child {
    let mut command = symdex_testkit::child(name);
    command.env(URL, url).env(ROUNDS, rounds.to_string());
    command.env(PROCESS, process.to_string()).stdout(Stdio::null()).stderr(Stdio::inherit());
    command.spawn().expect("started")
}

/// The URL, the rounds and the number of this child process.
fn parent() -> (String, u16, u16) {
    let variable = |name| std::env::var(name).expect("set");
    let number = |name| variable(name).parse().expect("a number");
    (variable(URL), number(ROUNDS), number(PROCESS))
}

/// Writes as one of the processes of [`race`].
pub(crate) fn one_process_of_writers() {
    let (url, rounds, process) = parent();
    let indexes: Vec<_> = (0..THREADS).map(|thread| index(0xab, process * THREADS + thread + 1)).collect();
    for round in 0..rounds {
        // Each round has a database of its own.
        let store = store(&format!("{url}/{round}"), &StoreOptions::new().zstd_level(1));
        std::thread::scope(|scope| {
            for bytes in &indexes {
                let store = &store;
                scope.spawn(move || put(store, bytes));
            }
        });
    }
}

/// 64 writers in 4 processes put 64 different indexes of one id into one store in each round.
fn race(rounds: u16) {
    let server = Server::start(&["--databases", &rounds.to_string()]);
    let url = format!("redis://127.0.0.1:{}", server.port);
    let children =
        (0..PROCESSES).map(|process| child("publishing::one_process_of_writers", &url, rounds, process));
    for mut child in children.collect::<Vec<_>>() {
        assert!(child.wait().expect("waited").success());
    }
    let best = index(0xab, PROCESSES * THREADS);
    let best = symdex::Index::open(&best[..]).expect("an index");
    for round in 0..rounds {
        let store = store(&format!("{url}/{round}"), &StoreOptions::new());
        let listed = entries(&store);
        assert_eq!(listed.len(), 1, "round {round}: {listed:?}");
        let image = store.open(&id(0xab)).expect("read").expect("there");
        assert_eq!(image.metadata(), best.metadata(), "round {round}");
        assert_eq!(whole(&image), usize::from(PROCESSES * THREADS / 4), "round {round}");
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
    let (url, _, process) = parent();
    let store = store(&url, &StoreOptions::new().zstd_level(1));
    for functions in process.. {
        put(&store, &index(0xab, functions));
    }
}

pub(crate) fn a_killed_publisher_leaves_nothing_the_old_or_the_whole_new_index() {
    let server = Server::start(&[]);
    let store = server.store();
    let mut kinds = [0; 2];
    let mut functions = 100;
    for round in 0..24 {
        let mut publisher = child("publishing::one_publisher", &server.url(), 0, functions);
        // Long enough to start, and different each time.
        std::thread::sleep(Duration::from_millis(5 + 11 * round));
        publisher.kill().expect("killed");
        publisher.wait().expect("waited");
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
