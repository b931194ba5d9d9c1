//! Stores in S3, against moto's server of the protocol on this machine.
//!
//! Without the server, these tests are ignored.

use std::process::Command;
use std::time::Duration;

use crate::common::{behaves_as_a_store, entries, id, index, index_of, put, writers};
use symdex::{Cause, ImageId};
use symdex_store::{PublishOutcome, Store, StoreOptions, open_store};
use symdex_testkit::http_proxy::{HttpFault, HttpProxy};
use symdex_testkit::moto::{BUCKET, Server, environment};
use symdex_testkit::proxy::{Fault, Proxy};

/// Runs the function `name` in a process of its own, whose environment has the address of a server.
fn child(port: u16, name: &str) -> Command {
    let mut command = symdex_testkit::child(&format!("s3::{name}"));
    command.envs(environment(port));
    command
}

/// Runs the function `name` in a process of its own, and waits for it.
fn run(port: u16, name: &str) {
    assert!(child(port, name).status().expect("started").success());
}

/// The store below `prefix`, for a child process.
fn store(prefix: &str, options: &StoreOptions) -> Box<dyn Store> {
    let url = format!("s3://{BUCKET}/{prefix}").parse().expect("a URL");
    open_store(&url, options).expect("opened")
}

pub(crate) fn s3_behaves_as_a_store() {
    let server = Server::start();
    run(server.port, "child_uses_a_store");
}

pub(crate) fn child_uses_a_store() {
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

pub(crate) fn errors_name_the_object_and_have_no_secrets() {
    let server = Server::start();
    run(server.port, "child_reads_a_missing_bucket");
    let port = server.port;
    drop(server);
    run(port, "child_cannot_connect");
}

pub(crate) fn child_reads_a_missing_bucket() {
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

pub(crate) fn child_cannot_connect() {
    let options = StoreOptions::new().timeout(Duration::from_secs(5));
    let store = store("x", &options);
    let error = store.open(&id(0xab)).expect_err("nobody listens");
    assert!(
        error.cause() == Cause::Unavailable && error.to_string().starts_with("s3://indexes/x/ab/abab"),
        "{error}"
    );
    assert!(!error.to_string().contains("secret"), "{error}");
}

/// The image that is written in a round.
fn image(round: u16) -> ImageId {
    ImageId::new(format!("the round {round:06}").as_bytes()).expect("16 bytes are an id")
}

pub(crate) fn child_writes() {
    // The server answers one request after the other.
    let options = StoreOptions::new().zstd_level(1).timeout(Duration::from_secs(300));
    let store = store("", &options);
    writers::write_in_a_race(|round| {
        let store = &store;
        move |functions| _ = put(&**store, &index_of(image(round), functions))
    });
}

/// Checks what [`race`] has left.
pub(crate) fn child_reads_the_best() {
    let store = store("", &StoreOptions::new());
    for round in 0..writers::rounds() {
        let best = index_of(image(round), writers::BEST);
        let kept = store.get(&image(round)).expect("readable").expect("there");
        let counts = symdex::Index::open(&kept[..]).expect("whole").metadata().counts;
        assert!(*kept == best[..], "round {round}: {} of {} functions", counts.functions, writers::BEST);
    }
}

fn race(rounds: u16) {
    let server = Server::start();
    writers::race(rounds, || child(server.port, "child_writes"));
    let mut reader = child(server.port, "child_reads_the_best");
    assert!(reader.env(writers::ROUNDS, rounds.to_string()).status().expect("started").success());
}

pub(crate) fn writers_of_several_processes_leave_the_best_index() {
    race(2);
}

pub(crate) fn writers_of_several_processes_leave_the_best_index_of_1000_rounds() {
    race(1000);
}

pub(crate) fn a_bit_that_flips_on_the_way_is_neither_damage_nor_a_reason_to_replace_an_index() {
    let server = Server::start();
    run(server.port, "child_puts_the_better_index");
    let proxy = Proxy::start(server.port);
    // The body follows some 600 bytes of headers.
    for at in (700..3000).step_by(250) {
        for reader in ["child_reads_the_better_index", "child_puts_a_worse_index"] {
            proxy.spoil(Fault::FlipAt(at), 1);
            run(proxy.port, reader);
        }
    }
}

pub(crate) fn child_puts_the_better_index() {
    let store = store("flips", &StoreOptions::new().zstd_level(0));
    assert_eq!(put(&*store, &index(0xab, 900)), PublishOutcome::Written);
    assert!(store.stat(&id(0xab)).expect("readable").expect("there").stored_size > 2500);
}

pub(crate) fn child_reads_the_better_index() {
    let store = store("flips", &StoreOptions::new());
    let image = store.open(&id(0xab)).unwrap_or_else(|error| panic!("{error}")).expect("there");
    assert_eq!(image.metadata().counts.functions, 900);
}

pub(crate) fn child_puts_a_worse_index() {
    let store = store("flips", &StoreOptions::new().zstd_level(0));
    assert_eq!(put(&*store, &index(0xab, 2)), PublishOutcome::ConflictKept);
}

/// What an index costs that is there already.
pub(crate) fn a_second_put_of_an_index_asks_for_its_metadata_only() {
    let server = Server::start();
    let proxy = HttpProxy::start(server.port, |_| HttpFault::None);
    let requests = |child| {
        run(proxy.port, child);
        proxy.take_log().into_iter().map(|(method, _)| method).collect::<Vec<_>>()
    };
    assert_eq!(requests("child_puts_the_better_index"), ["HEAD", "PUT", "HEAD"], "the last one is of `stat`");
    assert_eq!(requests("child_puts_the_better_index_again"), ["HEAD"]);
    assert_eq!(requests("child_puts_a_worse_index"), ["HEAD", "GET"]);
}

pub(crate) fn child_puts_the_better_index_again() {
    assert_eq!(put(&*store("flips", &StoreOptions::new()), &index(0xab, 900)), PublishOutcome::Unchanged);
}

pub(crate) fn a_report_is_answered_from_one_version() {
    let server = Server::start();
    run(server.port, "child_replaces_during_lookups");
}

pub(crate) fn child_replaces_during_lookups() {
    crate::common::versions::a_report_is_answered_from_one_version(|| {
        store("versions", &StoreOptions::new().zstd_level(1))
    });
}

pub(crate) fn gc_among_writers_and_readers_removes_nothing_fresh() {
    let server = Server::start();
    run(server.port, "child_collects");
}

pub(crate) fn child_collects() {
    crate::common::collected::gc_keeps_what_is_fresh(|| store("", &StoreOptions::new().zstd_level(1)));
}
