//! Many images: reports of them, most of which no store has, and stores of them.
//!
//! This prints the tables of docs/bench/2026-11-24-many-images.md:
//!
//!     cargo test --release -p symdex-cli --all-features --test needs many_images -- --ignored --test-threads 1

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{CommandOutput, command, folder};
use symdex::ImageId;
use symdex_store::{IndexFolder, StoreOptions, open_store};
use symdex_testkit::indexes::index_of;
use symdex_testkit::moto::{self, environment};
use symdex_testkit::object_server::{ObjectServer, Requests};
use symdex_testkit::proxy::{Fault, Proxy};
use symdex_testkit::redis;

/// The id of an image. Ids are spread evenly.
fn id(number: u32) -> ImageId {
    // An id of zeros is none.
    let digits = u64::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    ImageId::new(&digits.repeat(2)).expect("16 bytes are an id")
}

/// An Apple report that lists the images with these numbers. It has `frames` frames, one in each of the first images.
fn report(numbers: std::ops::Range<u32>, frames: usize) -> String {
    let load = |at: usize| 0x1_0000_0000 + at as u64 * 0x10_0000;
    let mut text =
        "Incident Identifier: 0\nProcess: App [1]\nReport Version: 104\n\nThread 0 Crashed:\n".to_owned();
    let images: Vec<_> = numbers.map(id).enumerate().collect();
    for (at, _) in images.iter().take(frames) {
        writeln!(text, "{at}  App{at}  {:#018x} {:#x} + 9", load(*at) + 9, load(*at)).expect("memory");
    }
    text += "\nBinary Images:\n";
    for (at, id) in images {
        let (first, last) = (load(at), load(at) + 0xffff);
        writeln!(text, "{first:#x} - {last:#x} App{at} arm64  <{id}> /App{at}").expect("memory");
    }
    text
}

/// The objects of a bucket: the index of each of these images.
fn objects(numbers: std::ops::Range<u32>) -> impl Iterator<Item = (String, Vec<u8>)> {
    numbers.map(|number| {
        let name = IndexFolder::file_name(&id(number));
        (format!("some/{}/{name}", &name[..2]), index_of(id(number), 2))
    })
}

/// Runs `symdex symbolicate` on `report` with the store at `url`. The cache is below `home`.
fn symbolicate(home: &Path, url: &str, port: u16, report: &str) -> CommandOutput {
    let file = home.join("report.crash");
    fs::write(&file, report).expect("written");
    let mut run: Command = command();
    run.envs(environment(port)).env("XDG_CACHE_HOME", home.join("cache")).env("HOME", home);
    run.arg("symbolicate").arg(file).args(["--store", url, "--format", "json"]);
    CommandOutput::from(run.output().expect("the command starts"))
}

/// How many frames have an answer, by the summary.
fn answered(done: &CommandOutput) -> Option<usize> {
    let count = |line: &str| line.strip_prefix("symdex: 1 report: ")?.split(' ').next()?.parse().ok();
    done.err.lines().find_map(count)
}

pub(crate) fn a_missing_image_costs_one_request_and_the_next_command_asks_for_none() {
    let (home, server) = (folder(), ObjectServer::start(objects(0..300)));
    let url = "s3://bucket/some";
    let text = report(297..800, 503);
    let done = symbolicate(home.path(), url, server.port, &text);
    assert_eq!(answered(&done), Some(3), "{}", done.err);
    assert_eq!(server.take_requests(), Requests { found: 3, missing: 500 });
    let again = symbolicate(home.path(), url, server.port, &text);
    let Requests { found, missing } = server.take_requests();
    assert_eq!((answered(&again), found), (Some(3), 0), "{}", again.err);
    // Some images have the same place in the table of those that are missing.
    assert!(missing < 20, "{missing}");
}

/// A row of the table: what a new process needs for `report`.
fn measure(what: &str, latency: u64, expected: usize, run: impl Fn(&Path) -> CommandOutput) -> Vec<String> {
    let home = folder();
    let mut times = Vec::new();
    for _ in 0..5 {
        let _ = fs::remove_dir_all(home.path().join("cache"));
        let begun = Instant::now();
        let done = run(home.path());
        times.push(begun.elapsed());
        assert_eq!(answered(&done), Some(expected), "{what}: {}", done.err);
    }
    times.sort();
    vec![what.to_owned(), format!("{latency} ms"), format!("{:.2} s", times[2].as_secs_f64())]
}

/// Prints how long reports of many images take, with an empty cache.
pub(crate) fn the_table_of_missing_images() {
    println!("| store | report | latency | time | requests: found | not found |");
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    let cases = [
        ("60 frames, 500 missing images", 1_000_000..1_000_500, 60, 0),
        ("500 frames in 500 missing images", 1_000_000..1_000_500, 500, 0),
        ("500 frames in 500 images that are there", 0..500, 500, 500),
    ];
    for indexes in [1_000, 100_000] {
        let server = ObjectServer::start(objects(0..indexes));
        for latency in [20, 50] {
            server.set_latency(Duration::from_millis(latency));
            for (what, numbers, frames, expected) in cases.clone() {
                let text = report(numbers, frames);
                let row = measure(what, latency, expected, |home| {
                    server.take_requests();
                    symbolicate(home, "s3://bucket/some", server.port, &text)
                });
                let Requests { found, missing } = server.take_requests();
                println!("| S3, {indexes} indexes | {} | {found} | {missing} |", row.join(" | "));
            }
        }
    }
    let server = redis::Server::start(&[]);
    let options = StoreOptions::new().zstd_level(1);
    let store = open_store(&server.url().parse().expect("a URL"), &options).expect("opened");
    for number in 0..1520 {
        let bytes = index_of(id(number), 2);
        store.put(&symdex::Index::open(&bytes[..]).expect("an index")).expect("put");
    }
    let proxy = Proxy::start(server.port);
    let url = format!("redis://127.0.0.1:{}/0", proxy.port);
    let many = ("1,520 frames in 1,520 images that are there", 0..1520, 1520, 1520);
    for latency in [20, 50] {
        proxy.spoil(Fault::Late(Duration::from_millis(latency)), u32::MAX);
        for (what, numbers, frames, expected) in cases.iter().chain([&many]) {
            let text = report(numbers.clone(), *frames);
            let row = measure(what, latency, *expected, |home| symbolicate(home, &url, 0, &text));
            println!("| Redis | {} | | |", row.join(" | "));
        }
    }
}

/// The seconds that the processor has worked for child processes that have ended.
fn seconds_of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, is the second field.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

/// Prints how long `symdex store` takes for 2,000 indexes: put, the same again, and so on.
pub(crate) fn the_table_of_2000_indexes() {
    let (root, s3, redis) = (folder(), moto::Server::start(), redis::Server::start(&[]));
    let files = root.path().join("files");
    fs::create_dir(&files).expect("created");
    for number in 0..2000 {
        // From 8 to 400 functions.
        let bytes = index_of(id(number), 8 * (1 + u16::try_from(number % 50).expect("small")));
        fs::write(files.join(IndexFolder::file_name(&id(number))), bytes).expect("written");
    }
    println!("| store | verb | time | CPU |");
    println!("| --- | --- | ---: | ---: |");
    let folder = root.path().join("store").display().to_string();
    for (name, url) in [("folder", &*folder), ("S3", "s3://indexes/many"), ("Redis", &redis.url())] {
        for (what, line) in [
            ("put", "put URL FILES"),
            ("put again", "put URL FILES"),
            ("ls", "ls URL"),
            ("verify", "verify URL"),
            ("gc that removes nothing", "gc URL --older-than 30d"),
            ("gc that removes all", "gc URL --older-than 1s --force"),
        ] {
            if what.ends_with("all") {
                // S3 states whole seconds.
                std::thread::sleep(Duration::from_millis(2500));
            }
            let (before, begun) = (seconds_of_children(), Instant::now());
            let line = line.replace("URL", url).replace("FILES", &files.display().to_string());
            let mut run = command();
            run.arg("store").args(line.split(' ')).envs(environment(s3.port));
            let done = CommandOutput::from(run.output().expect("the command starts"));
            let (time, cpu) = (begun.elapsed().as_secs_f64(), seconds_of_children() - before);
            assert_eq!(done.code, Some(0), "{name}, {what}: {}", done.err);
            println!("| {name} | {what} | {time:.1} s | {cpu:.1} s |");
        }
        let mut ls = command();
        ls.args(["store", "ls", url, "--json"]).envs(environment(s3.port));
        let left = CommandOutput::from(ls.output().expect("the command starts"));
        assert_eq!(left.json().len(), 1, "{name}: the totals only: {}", left.err);
    }
}
