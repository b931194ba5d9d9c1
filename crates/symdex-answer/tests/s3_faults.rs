//! Reports from S3 while the server fails: other sources answer, and the failure is reported.
//!
//! Without the server, these tests are ignored.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::reports::{IMAGES, NAMES, OFFSETS, names, put, report, symbolicator};
use symdex_answer::SymbolicatorOptions;
use symdex_store::{IndexFolder, ReaderOptions, StoreOptions, open_store};
use symdex_testkit::indexes::index;
use symdex_testkit::moto::{BUCKET, Server, environment};
use symdex_testkit::proxy::{Fault, Proxy};

const DSYM: &str = "../../testdata/dsyms/inline-dwarf4.dSYM";
/// An image that only the bucket has.
const ONLY_IN_BUCKET: u8 = IMAGES + 1;
/// The variables of child processes: the folder that answers in place of the bucket, and which sources must answer.
const FOLDER: &str = "SYMDEX_TEST_FOLDER";
const ANSWERS: &str = "SYMDEX_TEST_ANSWERS";

/// Runs the function `name` in a process of its own. Its object store is at this port.
fn child(name: &str, port: u16, folder: &Path, answers: &str) -> Child {
    let mut command = symdex_testkit::child(&format!("s3_faults::{name}"));
    command.envs(environment(port));
    command.env(FOLDER, folder).env(ANSWERS, answers).stdout(Stdio::null()).spawn().expect("started")
}

fn succeeds(mut child: Child) -> bool {
    child.wait().expect("waited").success()
}

/// The URL of the bucket and the path of the folder, for a child process.
fn stores() -> [String; 2] {
    [format!("s3://{BUCKET}/faults"), std::env::var(FOLDER).expect("set")]
}

/// A server with all images, and a folder with all but one.
fn filled() -> (Server, tempfile::TempDir) {
    let (server, root) = (Server::start(), tempfile::tempdir().expect("a folder"));
    let folder = IndexFolder::new(root.path()).fan_out();
    (1..=IMAGES).for_each(|byte| put(&folder, &index(byte, 40)));
    assert!(succeeds(child("child_fills_the_bucket", server.port, root.path(), "")));
    (server, root)
}

pub(crate) fn child_fills_the_bucket() {
    let [url, _] = stores();
    let store = open_store(&url.parse().expect("a URL"), &StoreOptions::new().zstd_level(1)).expect("opened");
    (1..=ONLY_IN_BUCKET).for_each(|byte| put(&*store, &index(byte, 40)));
}

pub(crate) fn a_folder_and_debug_files_answer_while_the_object_store_is_lost_slow_or_cut_off() {
    let (server, root) = filled();
    let proxy = Proxy::start(server.port);
    let answers = |from: &str| succeeds(child("child_answers", proxy.port, root.path(), from));
    assert!(answers("bucket"));
    for fault in [Fault::Refused, Fault::CutAfter(60), Fault::CutAfter(500), Fault::Silent, Fault::Error500] {
        proxy.spoil(fault, u32::MAX);
        assert!(answers("others"), "{fault:?}");
    }
    for fault in
        [Fault::Refused, Fault::CutAfter(60), Fault::Late(Duration::from_millis(20)), Fault::Error500]
    {
        proxy.spoil(fault, 2);
        assert!(answers("bucket"), "{fault:?}");
    }
    drop(server);
    assert!(answers("others"), "no server");
}

/// Answers a report from the bucket, the folder and a debug file.
pub(crate) fn child_answers() {
    let urls = stores();
    let is_down = std::env::var(ANSWERS).expect("set") == "others";
    let timeout = Duration::from_secs(if is_down { 1 } else { 60 });
    let options = SymbolicatorOptions::new().debug_files(DSYM);
    let options = options.store_options(StoreOptions::new().timeout(timeout));
    let symbolicator = symbolicator(urls.iter().map(String::as_str), options);
    let known = symbolicator.known();
    let of_debug_file = known.iter().find(|known| known.name.starts_with("inline"));
    let of_debug_file = &of_debug_file.expect("the debug file").id;
    let mut text = report(1..=ONLY_IN_BUCKET, &OFFSETS);
    text += &format!("App 0x1000003d0 0x100000000 {of_debug_file}\n");
    let (names, failures) = names(&symbolicator, &text);
    let (of_folder, others) = names.split_at(usize::from(IMAGES) * NAMES.len());
    assert_eq!(of_folder, (0..IMAGES).flat_map(|_| NAMES).collect::<Vec<_>>());
    let (only_in_bucket, of_debug_file) = others.split_at(NAMES.len());
    assert!(of_debug_file[0].contains("cell"), "{of_debug_file:?}");
    if is_down {
        assert_eq!(only_in_bucket, ["Some(NoAnswer)"; 5]);
        assert_eq!(failures.len(), usize::from(IMAGES) + 2, "{failures:?}");
        assert!(failures.iter().all(|why| why.contains("s3://indexes/faults")), "{failures:?}");
    } else {
        assert_eq!((only_in_bucket, failures), (&NAMES.map(str::to_owned)[..], vec![]));
    }
}

pub(crate) fn no_answer_is_lost_while_the_object_store_is_killed_and_restarted() {
    let (server, root) = filled();
    let proxy = Proxy::start(server.port);
    let mut child = child("child_answers_again_and_again", proxy.port, root.path(), "");
    let mut wait_until = |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(child.try_wait().expect("a child").is_none(), "the child ended early");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    wait_until(&|| root.path().join("found").exists());
    drop(server);
    // The child tries to connect to nobody.
    let before = proxy.connections();
    wait_until(&|| proxy.connections() >= before + 2);
    let server = Server::start();
    proxy.set_target(server.port);
    std::fs::write(root.path().join("restarted"), b"").expect("written");
    assert!(succeeds(child));
}

pub(crate) fn child_answers_again_and_again() {
    let urls = stores();
    let restarted = Path::new(&urls[1]).join("restarted");
    let none = Duration::ZERO;
    // Nothing is kept, so that each report asks the server.
    let reader = ReaderOptions::new().memory(0).fresh(none).absent(none).pause(Duration::from_millis(50));
    let options = SymbolicatorOptions::new().reader_options(reader);
    let options = options.store_options(StoreOptions::new().timeout(Duration::from_secs(1)));
    let symbolicator = symbolicator(urls.iter().map(String::as_str), options);
    let expected: Vec<_> = NAMES.into_iter().chain(NAMES).collect();
    let absent = || symbolicator.store_counts()[0].absent;
    let from_bucket = names(&symbolicator, &report([ONLY_IN_BUCKET], &OFFSETS));
    assert_eq!(from_bucket, (NAMES.map(str::to_owned).into(), vec![]));
    std::fs::write(Path::new(&urls[1]).join("found"), b"").expect("written");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (restarted, symbolicator, expected) = (&restarted, &symbolicator, &expected);
            scope.spawn(move || {
                let text = report([thread * 4 + 1, thread * 4 + 2], &OFFSETS);
                // Until the new server, which has no images, has answered.
                while !restarted.exists() || absent() == 0 {
                    assert_eq!(names(symbolicator, &text).0, *expected);
                }
            });
        }
    });
    let counts = &symbolicator.store_counts()[0];
    assert!(counts.failed > 0, "{counts:?}");
}
