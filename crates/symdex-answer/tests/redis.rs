//! Whole crash reports from Redis, and how many round trips they take.
//!
//! Without `redis-server`, these tests are ignored.

use std::any::Any;
use std::fmt::Write as _;
use std::time::Duration;

use symdex::{ImageId, ImageOffset, LinePolicy};
use symdex_answer::{Symbolicator, SymbolicatorOptions};
use symdex_report::{Answer, Question, ReportImage, Source as _, Unanswered};
use symdex_store::{IndexFolder, ReaderOptions, RedisStore, StoreOptions};

use crate::reports::{IMAGES, NAMES, OFFSETS, names, put, report, symbolicator};
use symdex_testkit::indexes::{id, index, index_of, long_id};
use symdex_testkit::proxy::{Fault, Proxy};
use symdex_testkit::redis::{Cluster, Server};

/// The store at `url`.
fn store(url: &str, options: &StoreOptions) -> RedisStore {
    let url = url.parse().unwrap_or_else(|error| panic!("{error}"));
    RedisStore::open(&url, options).unwrap_or_else(|error| panic!("{error}"))
}

/// The round trips of the store with this number while `work` runs.
fn round_trips(symbolicator: &Symbolicator, store: usize, work: impl FnOnce()) -> u64 {
    let any: &dyn Any = symbolicator.stores().stores()[store].store();
    let redis: &RedisStore = any.downcast_ref().expect("a store in Redis");
    let before = redis.counts().round_trips;
    work();
    redis.counts().round_trips - before
}

/// Puts all images into `store`.
fn put_all(store: &RedisStore) {
    (1..=IMAGES).for_each(|byte| put(store, &index(byte, 40)));
}

fn a_report_is_two_round_trips_cold_one_with_known_metadata_and_none_warm(url: &str) {
    put_all(&store(url, &StoreOptions::new()));
    let root = tempfile::tempdir().expect("a folder");
    let empty = root.path().display().to_string();
    // An empty folder before the store changes nothing.
    for (urls, number) in [(vec![url], 0), (vec![&empty, url], 1)] {
        let symbolicator = symbolicator(urls, SymbolicatorOptions::new());
        let all = || report(1..=IMAGES, &OFFSETS);
        let expected: Vec<_> = (0..IMAGES).flat_map(|_| NAMES).collect();
        let ask = |text: &str, expected: &[&str]| {
            round_trips(&symbolicator, number, || assert_eq!(names(&symbolicator, text).0, expected))
        };
        assert_eq!(ask(&all(), &expected), 2, "cold");
        assert_eq!(ask(&all(), &expected), 0, "warm");
        let others: Vec<_> = (0..IMAGES).flat_map(|_| ["f20", "f39"]).collect();
        let other_values = [0x1_4009, 0x2_7009];
        assert_eq!(ask(&report(1..=IMAGES, &other_values), &others), 1, "the metadata is known");
        // What the store does not have is asked for once, together with the rest.
        let absent = report(IMAGES + 1..=IMAGES + 5, &OFFSETS[..1]);
        let mixed = format!("{absent}{}", report(1..=1, &[0x1_e009]));
        let missing = ["Some(NoAnswer)"; 5].into_iter().chain(["f30"]);
        assert_eq!(ask(&mixed, &missing.clone().collect::<Vec<_>>()), 2, "images that are not there");
        assert_eq!(ask(&mixed, &missing.collect::<Vec<_>>()), 0, "they are not asked for again");
    }
}

pub(crate) fn a_report_from_one_server_is_two_round_trips_cold_one_with_known_metadata_and_none_warm() {
    let server = Server::start(&[]);
    a_report_is_two_round_trips_cold_one_with_known_metadata_and_none_warm(&server.url());
}

pub(crate) fn a_report_from_a_cluster_is_two_round_trips_cold_one_with_known_metadata_and_none_warm() {
    let cluster = Cluster::start();
    a_report_is_two_round_trips_cold_one_with_known_metadata_and_none_warm(&cluster.url());
}

pub(crate) fn a_report_of_many_images_needs_few_round_trips() {
    const MANY: u16 = 1520;
    let server = Server::start(&[]);
    let store = store(&server.url(), &StoreOptions::new().zstd_level(1));
    let image = |number: u16| ImageId::new(&number.to_be_bytes().repeat(8)).expect("an id");
    let mut text = String::new();
    for number in 1..=MANY {
        put(&store, &index_of(image(number), 8));
        let load = 0x1_0000_0000 + u64::from(number) * 0x10_0000;
        // In two values.
        for offset in [9, 0x5009] {
            writeln!(text, "App {:#x} {load:#x} {}", load + offset, image(number)).expect("memory");
        }
    }
    let symbolicator = symbolicator([&*server.url()], SymbolicatorOptions::new());
    let expected: Vec<_> = (0..MANY).flat_map(|_| ["f0", "f5"]).collect();
    let ask = || assert_eq!(names(&symbolicator, &text).0, expected);
    // One for the metadata, and one for the values.
    assert_eq!(round_trips(&symbolicator, 0, ask), 1 + 1);
    assert_eq!(round_trips(&symbolicator, 0, ask), 0, "warm");
}

pub(crate) fn images_that_a_folder_has_are_not_asked_for() {
    let server = Server::start(&[]);
    put_all(&store(&server.url(), &StoreOptions::new()));
    let root = tempfile::tempdir().expect("a folder");
    put(&IndexFolder::new(root.path()).fan_out(), &index(1, 40));
    let folder = root.path().display().to_string();
    for (urls, options, number) in [
        (vec![server.url()], SymbolicatorOptions::new().index(root.path()), 0),
        (vec![folder, server.url()], SymbolicatorOptions::new(), 1),
    ] {
        let symbolicator = symbolicator(urls.iter().map(String::as_str), options);
        let trips = |images| {
            round_trips(&symbolicator, number, || _ = names(&symbolicator, &report(images, &OFFSETS)))
        };
        assert_eq!((trips(1..=1), trips(1..=2)), (0, 2));
    }
}

pub(crate) fn a_better_index_that_comes_between_two_reports_answers_the_second_one() {
    let server = Server::start(&[]);
    let store = store(&server.url(), &StoreOptions::new());
    put(&store, &index(1, 40));
    let symbolicator = symbolicator([&*server.url()], SymbolicatorOptions::new());
    assert_eq!(names(&symbolicator, &report(1..=1, &OFFSETS)).0, NAMES);
    let old: Vec<_> = server.keys().into_iter().filter(|key| !key.ends_with("metadata")).collect();
    put(&store, &index(1, 44));
    old.iter().for_each(|key| _ = server.run(&["DEL", key]));
    // The first offset is in a value in memory, the others are not, and the last is only in the new index.
    let offsets = [0x9, 0x1_4009, 0x2_b009];
    assert_eq!(
        names(&symbolicator, &report(1..=1, &offsets)),
        (["f0", "f20", "f43"].map(str::to_owned).into(), vec![])
    );
    assert_eq!(symbolicator.store_counts()[0].failed, 0);
}

pub(crate) fn a_folder_answers_while_the_server_is_lost_slow_or_cut_off() {
    let mut server = Server::start(&[]);
    put_all(&store(&server.url(), &StoreOptions::new()));
    let root = tempfile::tempdir().expect("a folder");
    (1..=IMAGES).for_each(|byte| put(&IndexFolder::new(root.path()).fan_out(), &index(byte, 40)));
    let expected: Vec<_> = (0..IMAGES).flat_map(|_| NAMES).collect();
    let text = report(1..=IMAGES, &OFFSETS);
    let proxy = Proxy::start(server.port);
    let url = format!("redis://127.0.0.1:{}/0", proxy.port);
    let ask = |timeout| {
        let options = SymbolicatorOptions::new().store_options(StoreOptions::new().timeout(timeout));
        names(&symbolicator([&*url, &root.path().display().to_string()], options), &text)
    };
    let (short, long) = (Duration::from_millis(300), Duration::from_secs(60));
    for (fault, timeout) in [
        (Fault::Refused, short),
        (Fault::CutAfter(0), short),
        (Fault::CutAfter(400), short),
        (Fault::Silent, short),
    ] {
        proxy.spoil(fault, u32::MAX);
        let (names, failures) = ask(timeout);
        assert_eq!(names, expected, "{fault:?}");
        assert_eq!(failures.len(), usize::from(IMAGES), "{fault:?}: {failures:?}");
        assert!(failures[0].contains("redis://127.0.0.1"), "{failures:?}");
    }
    for fault in [Fault::Late(Duration::from_millis(50)), Fault::CutAfter(400), Fault::Refused] {
        proxy.spoil(fault, 2);
        assert_eq!(ask(long), (expected.iter().map(ToString::to_string).collect(), vec![]));
    }
    server.kill();
    assert_eq!(ask(short).0, expected);
}

pub(crate) fn no_answer_is_lost_while_the_server_is_killed_and_restarted() {
    let mut server = Server::start(&[]);
    put_all(&store(&server.url(), &StoreOptions::new()));
    let root = tempfile::tempdir().expect("a folder");
    (1..=IMAGES).for_each(|byte| put(&IndexFolder::new(root.path()).fan_out(), &index(byte, 40)));
    // Nothing is kept, so that each report asks the server.
    let none = Duration::ZERO;
    let reader = ReaderOptions::new().memory(0).fresh(none).absent(none).pause(Duration::from_millis(50));
    let options = SymbolicatorOptions::new().reader_options(reader);
    let options = options.store_options(StoreOptions::new().timeout(Duration::from_secs(1)));
    let symbolicator = symbolicator([&*server.url(), &root.path().display().to_string()], options);
    let expected: Vec<_> = (0..IMAGES).flat_map(|_| NAMES).collect();
    std::thread::scope(|scope| {
        let reader = || {
            for _ in 0..8 {
                assert_eq!(names(&symbolicator, &report(1..=IMAGES, &OFFSETS)).0, expected);
            }
        };
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(reader)).collect();
        server.kill();
        server.restart();
        readers.into_iter().for_each(|reader| reader.join().expect("every frame was answered"));
    });
    let counts = &symbolicator.store_counts()[0];
    assert!(counts.failed + counts.absent > 0, "the server was lost: {counts:?}");
}

fn images_are_found_by_the_first_16_bytes_of_their_ids(url: &str) {
    let redis = store(url, &StoreOptions::new());
    (1..=IMAGES).for_each(|byte| put(&redis, &index_of(long_id(byte, 7), 40)));
    let symbolicator = symbolicator([url], SymbolicatorOptions::new());
    let cut = |byte| {
        let mut image = ReportImage::default();
        (image.id, image.is_id_cut) = (Some(id(byte)), true);
        image
    };
    let images: Vec<_> = (1..=IMAGES).map(cut).collect();
    let offsets = [ImageOffset(0x5009)];
    let ask = || {
        let mut session = symbolicator.session(&|_| ());
        let questions = images.iter().map(|image| (image, &offsets[..]));
        session.answer(&Question::of_images(questions, LinePolicy::Statement))
    };
    let mut answered = Vec::new();
    // The sets of ids, whether the images are there, metadata, values.
    assert_eq!(round_trips(&symbolicator, 0, || answered = ask()), 4);
    for answers in answered {
        let Answer::Functions(functions) = &answers.expect("found").answers[0] else { panic!("a function") };
        assert_eq!(functions[0].name(), Some("f5"));
    }
    assert_eq!(round_trips(&symbolicator, 0, || _ = ask()), 0, "the ids are in memory");

    // An image that another process puts makes the start ambiguous, for a new symbolicator.
    put(&redis, &index_of(long_id(1, 8), 3));
    let symbolicator = crate::reports::symbolicator([url], SymbolicatorOptions::new());
    let mut session = symbolicator.session(&|_| ());
    let mut answer = |image: &ReportImage| {
        session.answer(&[Question::new(image, &offsets, LinePolicy::Statement)]).remove(0)
    };
    let error = answer(&cut(1)).expect_err("two images");
    assert!(matches!(error, Unanswered::Ambiguous { count: 2, .. }), "{error}");
    assert!(error.to_string().contains("demo arm64 01010101"), "{error}");
    let missing = answer(&cut(0xee));
    assert_eq!(missing.expect_err("not there"), Unanswered::Missing);
}

pub(crate) fn images_on_one_server_are_found_by_the_first_16_bytes_of_their_ids() {
    let server = Server::start(&[]);
    images_are_found_by_the_first_16_bytes_of_their_ids(&server.url());
}

pub(crate) fn images_in_a_cluster_are_found_by_the_first_16_bytes_of_their_ids() {
    let cluster = Cluster::start();
    images_are_found_by_the_first_16_bytes_of_their_ids(&cluster.url());
}
