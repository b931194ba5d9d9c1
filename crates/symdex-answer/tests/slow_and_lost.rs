//! Reports from several stores, of which one is slow or has lost a part of what it had.
//!
//! Without `redis-server`, these tests are ignored.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use symdex::ImageId;
use symdex_answer::{Symbolicator, SymbolicatorOptions};
use symdex_report::{Options, Report, symbolicate};
use symdex_store::{IndexFolder, StoreOptions, open_store};
use symdex_testkit::indexes::{id, index};
use symdex_testkit::redis::Server;
use symdex_testkit::web::{Gate, Reply, WebServer};

use crate::reports::{IMAGES, NAMES, OFFSETS, names, put, report, symbolicator};

const DSYM: &str = "../../testdata/dsyms/inline-dwarf4.dSYM";

/// A server with all images.
fn filled() -> Server {
    let server = Server::start(&[]);
    let store = open_store(&server.url().parse().expect("a URL"), &StoreOptions::new()).expect("opened");
    (1..=IMAGES).for_each(|byte| put(&*store, &index(byte, 40)));
    server
}

/// A folder with the first of the images.
fn folder_of(images: u8) -> (tempfile::TempDir, String) {
    let root = tempfile::tempdir().expect("a folder");
    (1..=images).for_each(|byte| put(&IndexFolder::new(root.path()).fan_out(), &index(byte, 40)));
    let path = root.path().display().to_string();
    (root, path)
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    (work(), begun.elapsed())
}

#[cfg(unix)]
pub(crate) fn a_frozen_store_times_out_and_the_next_one_answers() {
    let (server, (_root, folder)) = (filled(), folder_of(IMAGES));
    let (url, text) = (server.url(), report(1..=IMAGES, &OFFSETS));
    let expected: Vec<_> = (0..IMAGES).flat_map(|_| NAMES).collect();
    let store_options = StoreOptions::new().timeout(Duration::from_secs(1));
    // Frozen before it is asked for metadata, and between metadata and values.
    for knows_metadata in [false, true] {
        let options = SymbolicatorOptions::new().store_options(store_options.clone());
        let symbolicator = symbolicator([&*url, &folder], options);
        if knows_metadata {
            assert_eq!(names(&symbolicator, &report(1..=IMAGES, &[0x2_7009])).0[0], "f39");
        }
        server.signal("STOP");
        let (names, failures) = names(&symbolicator, &text);
        server.signal("CONT");
        assert_eq!(names, expected);
        assert_eq!(failures.len(), usize::from(IMAGES));
        assert!(failures[0].contains("redis://"), "{failures:?}");
    }
}

/// A report with a frame in each of 500 images.
fn of_500_images() -> String {
    let mut text = String::new();
    for number in 1..=500_u16 {
        let id = ImageId::new(&number.to_be_bytes().repeat(8)).expect("an id");
        let load = 0x1_0000_0000 + u64::from(number) * 0x10_0000;
        writeln!(text, "App {:#x} {load:#x} {id}", load + 9).expect("memory");
    }
    text
}

/// Checks that a report of 500 images waits for the store at `url` for one time-out, and the next report not at all.
fn costs_one_time_out(url: &str) {
    let timeout = Duration::from_secs(3);
    let options = SymbolicatorOptions::new().store_options(StoreOptions::new().timeout(timeout));
    let symbolicator = symbolicator([url], options);
    let text = of_500_images();
    let ((_, failures), time) = timed(|| names(&symbolicator, &text));
    assert_eq!(failures.len(), 500);
    assert!(time >= timeout && time < 2 * timeout, "{time:?}");
    let (_, time) = timed(|| names(&symbolicator, &text));
    assert!(time < timeout, "{time:?}");
}

#[cfg(unix)]
pub(crate) fn a_frozen_server_of_redis_costs_one_time_out() {
    let server = Server::start(&[]);
    server.signal("STOP");
    costs_one_time_out(&server.url());
}

pub(crate) fn a_frozen_web_server_costs_one_time_out() {
    let gate = Gate::default();
    let held = gate.clone();
    let web = WebServer::start(move |_| Reply::Behind(held.clone(), Box::new(Reply::Status(404))));
    costs_one_time_out(&web.url());
    gate.open();
}

/// The statuses of the frames, and those of the images.
fn statuses(symbolicator: &Symbolicator, text: &str) -> (Vec<&'static str>, Vec<&'static str>) {
    let report = Report::parse(text.as_bytes()).expect("a report");
    let mut session = symbolicator.session(&|_| ());
    let symbolicated = symbolicate(&report, &mut session, &Options::new());
    let images = symbolicated.images();
    let status = |(thread, frame)| {
        let unresolved = symbolicated.unresolved(thread, frame);
        unresolved.map_or("symbolicated", |why| why.status(images.first()))
    };
    (symbolicated.frames().map(status).collect(), images.iter().map(|image| image.status()).collect())
}

/// The keys of the values of the image `id(1)`, in the order of their numbers.
fn values(server: &Server) -> Vec<String> {
    let keys = server.keys().into_iter();
    let mut keys: Vec<_> =
        keys.filter(|key| key.contains(&id(1).to_string()) && !key.ends_with("metadata")).collect();
    let number = |key: &String| key.rsplit('/').next().and_then(|number| number.parse::<u64>().ok());
    keys.sort_by_key(number);
    keys
}

pub(crate) fn lost_values_are_said_to_be_lost_and_the_others_answer() {
    let server = filled();
    let keys = values(&server);
    let text = report(1..=1, &[0x9, 0x5009, 0x9009]);
    let ask = || statuses(&symbolicator([&*server.url()], SymbolicatorOptions::new()), &text);
    server.run(&["DEL", &keys[1]]);
    assert_eq!(ask(), (vec!["symbolicated", "lost", "symbolicated"], vec!["lost"]));
    keys.iter().for_each(|key| _ = server.run(&["DEL", key]));
    assert_eq!(ask(), (vec!["lost"; 3], vec!["lost"]));
}

pub(crate) fn a_damaged_value_fails_its_own_frames_only() {
    let server = filled();
    server.run(&["SETRANGE", &values(&server)[1], "20", "damage"]);
    let symbolicator = symbolicator([&*server.url()], SymbolicatorOptions::new());
    let (frames, images) = statuses(&symbolicator, &report(1..=1, &[0x9, 0x5009, 0x9009]));
    assert_eq!((frames, images), (vec!["symbolicated", "damaged", "symbolicated"], vec!["damaged"]));
}

pub(crate) fn what_a_store_has_lost_is_answered_by_the_next_one_and_put_again() {
    let (server, (root, folder)) = (filled(), folder_of(1));
    let text = report(1..=1, &OFFSETS);
    let damages: [fn(&Server, &[String]); 3] = [
        |server, keys| _ = server.run(&["DEL", &keys[1]]),
        |server, keys| keys.iter().for_each(|key| _ = server.run(&["DEL", key])),
        |server, keys| _ = server.run(&["SETRANGE", &keys[1], "20", "damage"]),
    ];
    for damage in damages {
        damage(&server, &values(&server));
        let both = symbolicator([&*server.url(), &folder], SymbolicatorOptions::new());
        let (answers, failures) = names(&both, &text);
        assert_eq!(answers, NAMES);
        assert!(failures[0].contains("redis://") && failures[0].contains("; answered from"), "{failures:?}");
        both.finish_refills();
        // The memory of the reader has the old index no longer.
        assert_eq!(names(&both, &text), (NAMES.map(str::to_owned).into(), vec![]));
        let alone = symbolicator([&*server.url()], SymbolicatorOptions::new());
        assert_eq!(names(&alone, &text), (NAMES.map(str::to_owned).into(), vec![]));
    }
    drop(root);
}

pub(crate) fn a_cut_file_is_answered_by_the_next_store_and_replaced() {
    let ((root, first), (_root, second)) = (folder_of(1), folder_of(1));
    let path = root.path().join("01").join(IndexFolder::file_name(&id(1)));
    let whole = std::fs::read(&path).expect("there");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("written");
    let symbolicator = symbolicator([&*first, &second], SymbolicatorOptions::new());
    assert_eq!(names(&symbolicator, &report(1..=1, &OFFSETS)).0, NAMES);
    symbolicator.finish_refills();
    assert_eq!(std::fs::read(&path).expect("there"), whole);
    assert_eq!(names(&symbolicator, &report(1..=1, &OFFSETS)).1, [""; 0]);
}

pub(crate) fn what_a_store_has_lost_is_built_again_from_a_debug_file() {
    let server = Server::start(&[]);
    let open = |options: SymbolicatorOptions| symbolicator([&*server.url()], options);
    let with_file = || open(SymbolicatorOptions::new().debug_files(DSYM).always_store(true));
    let id = with_file().known()[0].id.clone();
    let text = format!("App 0x1000003d0 0x100000000 {id}\n");
    let (expected, _) = names(&with_file(), &text);
    assert!(expected[0].contains("cell"), "{expected:?}");
    let lost = server.keys().into_iter().filter(|key| !key.ends_with("metadata"));
    lost.for_each(|key| _ = server.run(&["DEL", &key]));
    assert_eq!(statuses(&open(SymbolicatorOptions::new()), &text), (vec!["lost"], vec!["lost"]));
    let (answers, failures) = names(&with_file(), &text);
    assert_eq!(answers, expected);
    assert!(failures[0].contains("has lost value"), "{failures:?}");
    assert_eq!(names(&open(SymbolicatorOptions::new()), &text), (expected, vec![]));
}
