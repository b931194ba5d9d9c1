//! Every home behind a network that is bad at random: no wrong answer, and no lost put that was reported as done.
//!
//! The faults come from a seed. This prints the table of docs/bench/2026-11-23-faults.md:
//!
//!     SYMDEX_TEST_OPERATIONS=2000 cargo test -p symdex-store --all-features --test needs faults -- --ignored

use std::hash::Hasher as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{id, index, name_at, put};
use symdex::{ImageOffset, Index};
use symdex_store::{Error, IndexFolder, Store, StoreOptions, StoredImage, open_store};
use symdex_testkit::http_proxy::{HttpFault, HttpProxy};
use symdex_testkit::proxy::{Fault, Proxy};
use symdex_testkit::web::{Reply, WebServer};
use symdex_testkit::{moto, redis};

/// The environment variable with the seed.
const SEED: &str = "SYMDEX_TEST_SEED";
/// The environment variable with the number of operations.
const OPERATIONS: &str = "SYMDEX_TEST_OPERATIONS";
const IMAGES: u8 = 12;
/// The functions of the indexes of a store that can only be read.
const KNOWN: u16 = 30;
/// Of 100 requests or connections, so many are spoiled.
const SPOILED: u64 = 25;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |number| number.parse().expect("a number"))
}

/// Random numbers that depend on the seed only.
struct Random(AtomicU64);

impl Random {
    /// The numbers of `purpose`: each has its own.
    fn of(purpose: u64) -> Self {
        Self(AtomicU64::new(number(SEED, 29).wrapping_mul(1_000_003).wrapping_add(purpose << 32)))
    }

    /// A number below `end`.
    fn below(&self, end: u64) -> u64 {
        let mut hash = std::hash::DefaultHasher::new();
        hash.write_u64(self.0.fetch_add(1, Ordering::Relaxed));
        hash.finish() % end
    }

    /// One of `all` for some requests, or nothing.
    fn one_of<T: Copy>(&self, all: &[T]) -> Option<T> {
        let is_spoiled = self.below(100) < SPOILED;
        let one = all[usize::try_from(self.below(all.len() as u64)).expect("few")];
        is_spoiled.then_some(one)
    }
}

/// What came of the operations.
#[derive(Default)]
struct Outcomes {
    puts_done: u64,
    puts_failed: u64,
    reads_right: u64,
    reads_failed: u64,
    /// Of the reads that failed, those that said that the index is damaged.
    said_damaged: u64,
    /// Wrong answers, and puts that were reported as done and are lost. There must be none.
    wrong: Vec<String>,
}

/// The versions of an image that were put: an index with more functions is better.
#[derive(Clone, Copy, Default)]
struct Versions {
    /// The best one that was reported as done.
    done: u16,
    /// The best one that may have been written.
    tried: u16,
}

impl Versions {
    /// Returns what is wrong with `functions`, the number in the store; 0 if there is no index.
    fn wrong(self, functions: u64) -> Option<String> {
        let range = u64::from(self.done)..=u64::from(self.tried);
        (!range.contains(&functions)).then(|| format!("{functions} functions are there, expected {range:?}"))
    }
}

/// Puts and reads indexes of a few images, at random, each time with the store that `open` returns. If the store is
/// read-only, it has indexes of [`KNOWN`] functions. In the end, `calm` returns a store without faults.
fn work(open: &dyn Fn(&Random) -> Arc<dyn Store>, calm: impl FnOnce() -> Box<dyn Store>) -> Outcomes {
    let random = Random::of(1);
    let mut outcomes = Outcomes::default();
    let known = if open(&Random::of(3)).is_read_only() { KNOWN } else { 0 };
    let mut images = [Versions { done: known, tried: known }; IMAGES as usize];
    for _ in 0..number(OPERATIONS, 40) {
        let store = open(&random);
        let image = u8::try_from(random.below(u64::from(IMAGES))).expect("small");
        let versions = &mut images[usize::from(image)];
        if !store.is_read_only() && random.below(2) == 0 {
            let functions = u16::try_from(1 + random.below(60)).expect("small");
            versions.tried = versions.tried.max(functions);
            let bytes = index(image + 1, functions);
            match store.put(&Index::open(&bytes[..]).expect("an index")) {
                Ok(_) => {
                    outcomes.puts_done += 1;
                    versions.done = versions.done.max(functions);
                }
                Err(_) => outcomes.puts_failed += 1,
            }
            continue;
        }
        match read(&*store, image) {
            Ok((functions, wrong)) => {
                outcomes.reads_right += 1;
                outcomes.wrong.extend(wrong.or(versions.wrong(functions)));
            }
            Err(error) => {
                outcomes.reads_failed += 1;
                outcomes.said_damaged += u64::from(error.cause().is_damage());
            }
        }
    }
    let calm = calm();
    for (image, versions) in (0..).zip(images) {
        let (functions, wrong) = read(&*calm, image).unwrap_or_else(|error| panic!("{error}"));
        outcomes
            .wrong
            .extend(wrong.or(versions.wrong(functions)).map(|wrong| format!("in the end, {wrong}")));
    }
    outcomes
}

/// Reads the index of `image`: its number of functions, 0 if there is none, and the first wrong answer.
fn read(store: &dyn Store, image: u8) -> Result<(u64, Option<String>), Error> {
    let Some(found) = store.open(&id(image + 1))? else { return Ok((0, None)) };
    let functions = found.metadata().counts.functions;
    if let StoredImage::Values(values) = &found {
        // A fault is an error, and no lost value.
        let numbers: Vec<u64> = values.metadata().value_numbers().into_iter().flatten().collect();
        if values.fetch(&numbers)?.iter().any(|value| value.found().is_none()) {
            return Ok((functions, Some("a value is said to be lost or damaged".to_owned())));
        }
    }
    for function in [0, functions / 2, functions - 1] {
        let answer = match &found {
            StoredImage::Values(values) => {
                let offset = ImageOffset(function * 0x1000 + 8);
                let parts = values.fetch(&[values.metadata().value_number(offset)])?;
                parts[0].found().and_then(|part| crate::common::name_in(part, offset))
            }
            _ => name_at(&found, ImageOffset(function * 0x1000 + 8)),
        };
        if answer != Some(format!("f{function}")) {
            return Ok((functions, Some(format!("{answer:?} instead of f{function}"))));
        }
    }
    Ok((functions, None))
}

/// Prints a row of the table, and checks that nothing is wrong.
fn check(home: &str, faults: u64, outcomes: &Outcomes) {
    let Outcomes { puts_done, puts_failed, reads_right, reads_failed, said_damaged, wrong } = outcomes;
    let wrong_len = wrong.len();
    println!(
        "| {home} | {faults} | {puts_done} | {puts_failed} | {reads_right} | {reads_failed} | {said_damaged} | {wrong_len} |"
    );
    assert!(wrong.is_empty(), "{home}: {wrong:#?}");
    assert!(faults > 0 && *reads_right > 0, "{home}: the run proves nothing");
}

/// The image that is asked for when the faults are to end.
const CALM: u8 = 0xff;

/// A proxy of `port` that makes these faults until somebody asks for [`CALM`], and how many it has made.
fn http_faults(port: u16, faults: &'static [HttpFault]) -> (HttpProxy, Arc<AtomicU64>) {
    let (random, made) = (Random::of(2), Arc::<AtomicU64>::default());
    let (counting, is_calm) = (Arc::clone(&made), AtomicBool::new(false));
    let proxy = HttpProxy::start(port, move |request| {
        is_calm.fetch_or(request.contains(&id(CALM).to_string()), Ordering::Relaxed);
        let fault = random.one_of(faults).filter(|_| !is_calm.load(Ordering::Relaxed));
        counting.fetch_add(u64::from(fault.is_some()), Ordering::Relaxed);
        fault.unwrap_or(HttpFault::None)
    });
    (proxy, made)
}

/// The options of a store behind faults.
fn hasty() -> StoreOptions {
    StoreOptions::new().zstd_level(1).timeout(Duration::from_millis(600))
}

/// A store that waits long enough, at `url`, whose faults end.
fn calm_store(url: &str) -> Box<dyn Store> {
    let options = StoreOptions::new().timeout(Duration::from_secs(60));
    let store = open_store(&url.parse().expect("a URL"), &options).expect("opened");
    assert!(store.stat(&id(CALM)).expect("readable").is_none());
    store
}

pub(crate) fn s3_behind_faults_answers_right_and_loses_no_put() {
    s3("child_works_without_a_cache");
}

pub(crate) fn s3_with_a_cache_behind_faults_answers_right_and_loses_no_put() {
    s3("child_works_with_a_cache");
}

fn s3(name: &str) {
    // Bits that flip have a test of their own, in s3.rs: what is damaged twice counts as damaged.
    const FAULTS: [HttpFault; 6] = [
        HttpFault::Error500,
        HttpFault::LostAnswer,
        HttpFault::Cut,
        HttpFault::Drip,
        HttpFault::WrongTag,
        HttpFault::Late,
    ];
    let server = moto::Server::start();
    let (proxy, made) = http_faults(server.port, &FAULTS);
    let done = symdex_testkit::child(&format!("faults::{name}"))
        .envs(moto::environment(proxy.port))
        .output()
        .expect("started");
    let (said, faults) = (String::from_utf8_lossy(&done.stdout), made.load(Ordering::Relaxed));
    print!("{}", said.replace("FAULTS | 1 |", &format!("{faults} |")));
    assert!(done.status.success() && faults > 0, "{}", String::from_utf8_lossy(&done.stderr));
}

pub(crate) fn child_works_without_a_cache() {
    work_in_s3("S3 | FAULTS", &hasty());
}

pub(crate) fn child_works_with_a_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    work_in_s3("S3 with a cache | FAULTS", &hasty().cache(folder.path().join("cache"), 1 << 20));
}

/// Works in S3. The parent knows the number of faults.
fn work_in_s3(home: &str, options: &StoreOptions) {
    let url = format!("s3://{}/faults", moto::BUCKET);
    let store: Arc<dyn Store> = open_store(&url.parse().expect("a URL"), options).expect("opened").into();
    let outcomes = work(&|_| Arc::clone(&store), || calm_store(&url));
    check(home, 1, &outcomes);
}

pub(crate) fn a_web_server_behind_faults_answers_right() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = IndexFolder::new(root.path()).fan_out();
    (1..=IMAGES).for_each(|image| _ = put(&folder, &index(image, KNOWN)));
    let path = root.path().to_owned();
    let server = WebServer::start(move |request| {
        match std::fs::read(path.join(request.path.trim_start_matches("/indexes/"))) {
            Ok(body) => Reply::Body(body),
            Err(_) => Reply::Status(404),
        }
    });
    let (proxy, made) = http_faults(server.port(), &HttpFault::ALL);
    let url = format!("http://127.0.0.1:{}/indexes", proxy.port);
    let store: Arc<dyn Store> = open_store(&url.parse().expect("a URL"), &hasty()).expect("opened").into();
    let outcomes = work(&|_| Arc::clone(&store), || calm_store(&url));
    check("web server", made.load(Ordering::Relaxed), &outcomes);
}

pub(crate) fn redis_behind_faults_answers_right_and_loses_no_put() {
    let server = redis::Server::start(&[]);
    let (proxy, made) = (Proxy::start(server.port), AtomicU64::new(0));
    let url = format!("redis://127.0.0.1:{}/0", proxy.port);
    let open = |random: &Random| -> Arc<dyn Store> {
        let cut = usize::try_from(random.below(3000)).expect("small");
        let late = Fault::Late(Duration::from_millis(50));
        let faults = [Fault::Refused, Fault::CutAfter(cut), Fault::Silent, late];
        let connections = 1 + u32::try_from(random.below(2)).expect("small");
        let fault = random.one_of(&faults);
        made.fetch_add(u64::from(fault.is_some()), Ordering::Relaxed);
        proxy.spoil(fault.unwrap_or(Fault::None), connections);
        open_store(&url.parse().expect("a URL"), &hasty()).expect("opened").into()
    };
    let outcomes = work(&open, || calm_store(&server.url()));
    check("Redis", made.into_inner(), &outcomes);
}

/// Prints the table of docs/bench/2026-11-23-faults.md.
pub(crate) fn the_table_of_faults() {
    println!(
        "| home | faults | puts done | puts failed | reads right | reads failed | said damaged | wrong or lost |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    s3_behind_faults_answers_right_and_loses_no_put();
    s3_with_a_cache_behind_faults_answers_right_and_loses_no_put();
    a_web_server_behind_faults_answers_right();
    redis_behind_faults_answers_right_and_loses_no_put();
}
