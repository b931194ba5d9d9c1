//! Stores in S3, against moto's server of the protocol on this machine.
//!
//! Without the server, these tests are ignored.

mod common;
#[path = "common/moto.rs"]
mod moto;

use std::process::{Child, Stdio};
use std::time::Duration;

use common::{behaves_as_a_store, entries, id, index, index_of, put};
use moto::{BUCKET, Server, environment};
use symdex::ImageId;
use symdex_store::{Store, StoreOptions, open_store};

/// The variables of child processes.
const ROUNDS: &str = "SYMDEX_TEST_ROUNDS";
const PROCESS: &str = "SYMDEX_TEST_PROCESS";
const PROCESSES: u16 = 4;
const THREADS: u16 = 16;

impl Server {
    fn child(&self, name: &str, rounds: u16, process: u16) -> Child {
        child(self.port, name, rounds, process)
    }
}

/// Runs the function `name` in a process of its own, whose environment has the address of a server.
fn child(port: u16, name: &str, rounds: u16, process: u16) -> Child {
    let mut command = symdex_testkit::child(name);
    command.envs(environment(port));
    command.env(ROUNDS, rounds.to_string()).env(PROCESS, process.to_string());
    command.stdout(Stdio::null()).spawn().expect("started")
}

/// The store below `prefix`, for a child process.
fn store(prefix: &str, options: &StoreOptions) -> Box<dyn Store> {
    let url = format!("s3://{BUCKET}/{prefix}").parse().expect("a URL");
    open_store(&url, options).expect("opened")
}

fn number(name: &str) -> u16 {
    std::env::var(name).expect("set").parse().expect("a number")
}

fn s3_behaves_as_a_store() {
    let server = Server::start();
    assert!(server.child("child_uses_a_store", 0, 0).wait().expect("waited").success());
}

fn child_uses_a_store() {
    let folder = tempfile::tempdir().expect("a folder");
    for (prefix, options) in [
        ("compressed", StoreOptions::new()),
        ("plain", StoreOptions::new().zstd_level(0)),
        ("cached", StoreOptions::new().cache(folder.path().join("cache"), 1 << 20)),
    ] {
        let store = store(prefix, &options);
        behaves_as_a_store(&*store);
    }
    let store = store("many", &StoreOptions::new().zstd_level(1));
    for byte in 0..64 {
        put(&*store, &index(byte, 1));
    }
    assert_eq!(entries(&*store).len(), 64);
    assert_eq!(store.gc(Duration::from_secs(3600)).expect("collected").kept, 64);
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(store.gc(Duration::ZERO).expect("collected").removed, 64);
}

fn errors_name_the_object_and_have_no_secrets() {
    let server = Server::start();
    assert!(server.child("child_reads_a_missing_bucket", 0, 0).wait().expect("waited").success());
    let port = server.port;
    drop(server);
    assert!(child(port, "child_cannot_connect", 0, 0).wait().expect("waited").success());
}

fn child_reads_a_missing_bucket() {
    let url = "s3://no-such-bucket/x".parse().expect("a URL");
    let store = open_store(&url, &StoreOptions::new()).expect("opened");
    let bytes = index(0xab, 1);
    let error =
        store.put(&symdex::Index::open(&bytes[..]).expect("an index")).expect_err("no bucket").to_string();
    assert!(error.starts_with("s3://no-such-bucket/x/ab/abab") && error.contains("NoSuchBucket"), "{error}");
    assert!(!error.contains("secret") && !error.contains('<'), "{error}");
    // Otherwise every index would seem to be missing.
    for error in [store.open(&id(0xab)).map(drop), store.get(&id(0xab)).map(drop)].map(Result::unwrap_err) {
        assert!(error.to_string().contains("NoSuchBucket"), "{error}");
    }
}

fn child_cannot_connect() {
    let options = StoreOptions::new().timeout(Duration::from_secs(5));
    let store = store("x", &options);
    let error = store.open(&id(0xab)).expect_err("nobody listens");
    assert!(error.is_unavailable() && error.to_string().starts_with("s3://indexes/x/ab/abab"), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}

/// The image that is written in a round.
fn image(round: u16) -> ImageId {
    ImageId::new(format!("the round {round:06}").as_bytes()).expect("16 bytes are an id")
}

/// Writes as one of the processes of [`race`].
fn child_writes() {
    // The server answers one request after the other.
    let options = StoreOptions::new().zstd_level(1).timeout(Duration::from_secs(300));
    let store = store("", &options);
    let (rounds, process) = (number(ROUNDS), number(PROCESS));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &*store;
            scope.spawn(move || {
                for round in 0..rounds {
                    put(store, &index_of(image(round), process * THREADS + thread + 1));
                }
            });
        }
    });
}

/// Checks what [`race`] has left.
fn child_reads_the_best() {
    let store = store("", &StoreOptions::new());
    for round in 0..number(ROUNDS) {
        let best = index_of(image(round), PROCESSES * THREADS);
        let kept = store.get(&image(round)).expect("readable").expect("there");
        let counts = symdex::Index::open(&kept[..]).expect("whole").metadata().counts;
        assert!(
            *kept == best[..],
            "round {round}: {} of {} functions",
            counts.functions,
            PROCESSES * THREADS
        );
    }
}

/// In each round, 64 writers in 4 processes put 64 different indexes of one id into the store.
fn race(rounds: u16) {
    let server = Server::start();
    let writers: Vec<_> =
        (0..PROCESSES).map(|process| server.child("child_writes", rounds, process)).collect();
    for mut writer in writers {
        assert!(writer.wait().expect("waited").success());
    }
    assert!(server.child("child_reads_the_best", rounds, 0).wait().expect("waited").success());
}

fn writers_of_several_processes_leave_the_best_index() {
    race(2);
}

fn writers_of_several_processes_leave_the_best_index_of_1000_rounds() {
    race(1000);
}

symdex_testkit::main! {
    s3_behaves_as_a_store,
    errors_name_the_object_and_have_no_secrets,
    writers_of_several_processes_leave_the_best_index;
    on request: writers_of_several_processes_leave_the_best_index_of_1000_rounds;
    children: child_uses_a_store, child_reads_a_missing_bucket, child_cannot_connect, child_writes, child_reads_the_best
}
