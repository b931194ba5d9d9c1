//! The page in headless Chromium. The scenarios are the files in `browser/`.
//!
//! They need Chromium, Node.js, and Playwright and axe in `target/playwright`. With `--ignored`, the pictures of the
//! documentation are written; a palette of 96 colours makes them small.

use std::path::{Path, PathBuf};

use symdex_testkit::folders::folder;
use symdex_testkit::minidump::{DumpedModule, DumpedProcess, DumpedThread, Processor};
use symdex_testkit::testdata::testdata;
use symdex_testkit::{Need, ignore, program, target_file};

use crate::server::{TestServer, symdex};

/// The programs that the scenarios need.
struct Programs {
    node_modules: PathBuf,
    chromium: PathBuf,
}

impl Programs {
    fn find() -> Self {
        let node_modules = target_file("playwright/node_modules");
        let chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
        match chromium.iter().map(PathBuf::from).find(|path| path.exists()) {
            Some(chromium) => Self { node_modules, chromium },
            None => ignore(Need::Programs, "Chromium is not installed"),
        }
    }

    /// Runs `browser/NAME.mjs` against `server`.
    #[track_caller]
    fn run(&self, name: &str, server: &TestServer, arguments: &[&str]) {
        let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/serve/browser/{name}.mjs"));
        let run = program("node", "--version")
            .arg(scenario)
            .args(arguments)
            .env("SYMDEX_URL", &server.url)
            .env("SYMDEX_TESTDATA", testdata())
            .env("NODE_MODULES", &self.node_modules)
            .env("CHROMIUM", &self.chromium)
            .output()
            .expect("node starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(run.status.success(), "{name}:\n{}{}", text(&run.stdout), text(&run.stderr));
    }
}

/// A server whose store has indexes of these debug files of the demo.
fn demo_server(debug_files: &[&str]) -> (tempfile::TempDir, TestServer) {
    let store = folder();
    for name in debug_files {
        let path = testdata().join("demo").join(name);
        let built =
            symdex(["build".as_ref(), path.as_os_str(), "--store".as_ref(), store.path().as_os_str()]);
        assert_eq!(built.code, Some(0), "{}", built.err);
    }
    let server = TestServer::start(store.path(), &[]);
    (store, server)
}

const BOTH: [&str; 2] = ["DemoApp.app.dSYM", "DemoKit.framework.dSYM"];
/// The UUID of DemoKit.
const KIT_ID: u128 = 0x4c4c_4427_5555_3144_a19d_bd91_3be7_90e0;

pub(crate) fn a_pasted_crash_shows_the_expected_frames() {
    let programs = Programs::find();
    let (_store, server) = demo_server(&BOTH);
    programs.run("report", &server, &[]);
}

pub(crate) fn a_report_is_read_with_the_keyboard_alone() {
    let programs = Programs::find();
    let (_store, server) = demo_server(&BOTH);
    programs.run("keyboard", &server, &[]);
}

pub(crate) fn names_of_a_hostile_report_run_nothing() {
    let programs = Programs::find();
    programs.run("hostile", &TestServer::empty(&[]), &[]);
}

pub(crate) fn the_page_is_accessible_in_both_colour_schemes_and_fits_a_phone() {
    let programs = Programs::find();
    let (_store, server) = demo_server(&BOTH[1..]);
    programs.run("accessible", &server, &[]);
}

pub(crate) fn images_are_found_and_asked_for_an_address() {
    let programs = Programs::find();
    let (_store, server) = demo_server(&BOTH);
    programs.run("image", &server, &[]);
}

pub(crate) fn a_token_is_asked_for_and_kept_in_the_tab() {
    let programs = Programs::find();
    let made = symdex(["serve", "--new-token", "read,upload"]);
    let (secret, configured) = made.out.trim_end().split_once('\n').expect("two lines");
    let token = configured.split('"').nth(1).expect("a line of symdex.toml");
    let server = TestServer::empty(&["--token", token]);
    programs.run("token", &server, &[secret]);
}

pub(crate) fn a_report_is_kept_without_a_server_without_a_token_and_over_a_reload() {
    let programs = Programs::find();
    let made = symdex(["serve", "--new-token", "read"]);
    let (secret, configured) = made.out.trim_end().split_once('\n').expect("two lines");
    let token = configured.split('"').nth(1).expect("a line of symdex.toml");
    let server = TestServer::empty(&["--token", token]);
    programs.run("kept", &server, &[secret]);
}

pub(crate) fn threads_say_where_a_program_crashed_and_are_searched_and_copied() {
    let programs = Programs::find();
    let (_store, server) = demo_server(&BOTH);
    programs.run("threads", &server, &[]);
}

pub(crate) fn images_without_ids_are_matched_by_name_on_the_page() {
    let programs = Programs::find();
    let (_store, server) = demo_server(&BOTH);
    programs.run("unnamed", &server, &[]);
}

pub(crate) fn frames_that_a_search_of_the_stack_has_found_are_marked() {
    const STACK: u64 = 0x7000_0000;
    let programs = Programs::find();
    let (store, server) = demo_server(&BOTH[1..]);
    let module = DumpedModule {
        base: 0x1_0498_c000,
        size: 0x1_0000,
        path: "/DemoKit".to_owned(),
        build_id: KIT_ID.to_be_bytes().to_vec(),
    };
    let mut registers = vec![0; 33];
    (registers[31], registers[32]) = (STACK, 0x1_0499_0158);
    let stack: Vec<u8> = [0, 0, 0x1_0499_0134, 0].into_iter().flat_map(u64::to_le_bytes).collect();
    let thread = DumpedThread { id: 1, registers, stack_address: STACK, stack };
    let process = DumpedProcess {
        modules: vec![module],
        threads: vec![thread],
        processor: Processor::Arm64,
        ..DumpedProcess::default()
    };
    let (dump, log) = (store.path().join("crash.dmp"), store.path().join("logcat.txt"));
    std::fs::write(&dump, process.to_bytes()).expect("written");
    std::fs::write(&log, process.to_microdump("F/google-breakpad( 1): ")).expect("written");
    programs.run("scanned", &server, &[&dump, &log].map(|path| path.to_str().expect("UTF-8")));
}

pub(crate) fn a_profile_is_shown_as_a_flame_graph_with_the_images_that_lack_names() {
    let programs = Programs::find();
    let (_store, server) = demo_server(&BOTH[1..]);
    programs.run("flame", &server, &[]);
}

pub(crate) fn an_uploaded_debug_file_answers_the_open_report() {
    let programs = Programs::find();
    let (_store, server) = demo_server(&BOTH[..1]);
    programs.run("upload", &server, &[]);
}

pub(crate) fn a_report_is_asked_for_again_while_the_server_fetches_debug_files() {
    let programs = Programs::find();
    let (_store, server) = demo_server(&BOTH);
    programs.run("fetching", &server, &[]);
}

pub(crate) fn pictures_for_the_documentation() {
    let programs = Programs::find();
    let (_store, server) = demo_server(&BOTH);
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    programs.run("pictures", &server, &[images.to_str().expect("text")]);
}
