//! The page in headless Chromium. The scenarios are the files in `browser/`.
//!
//! `.ci/run` installs Chromium, and Playwright and axe into `target/playwright`. Without them or without Node.js, these
//! tests say so and pass. With `--ignored`, the pictures of the documentation are written; a palette of 96 colours makes
//! them small.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{folder, symdex, testdata};
use crate::server::{TestServer, store_of};

/// The programs that the scenarios need.
struct Programs {
    node_modules: PathBuf,
    chromium: PathBuf,
}

impl Programs {
    fn find() -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let node_modules = root.join("target/playwright/node_modules");
        let chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
        let chromium = chromium.iter().map(PathBuf::from).find(|path| path.exists());
        let has_node = Command::new("node").arg("--version").output().is_ok_and(|run| run.status.success());
        let has_modules = ["playwright-core", "axe-core"].iter().all(|name| node_modules.join(name).exists());
        match chromium {
            Some(chromium) if has_node && has_modules => Some(Self { node_modules, chromium }),
            _ => {
                eprintln!(
                    "skipped: Chromium, Node.js or target/playwright is missing; .ci/run installs them"
                );
                None
            }
        }
    }

    /// Runs `browser/NAME.mjs` against `server`.
    #[track_caller]
    fn run(&self, name: &str, server: &TestServer, arguments: &[&str]) {
        let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/serve/browser/{name}.mjs"));
        let run = Command::new("node")
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

#[test]
fn a_pasted_crash_shows_the_expected_frames() {
    let Some(programs) = Programs::find() else { return };
    let (_store, server) = demo_server(&BOTH);
    programs.run("report", &server, &[]);
}

#[test]
fn a_report_is_read_with_the_keyboard_alone() {
    let Some(programs) = Programs::find() else { return };
    let (_store, server) = demo_server(&BOTH);
    programs.run("keyboard", &server, &[]);
}

#[test]
fn names_of_a_hostile_report_run_nothing() {
    let Some(programs) = Programs::find() else { return };
    programs.run("hostile", &TestServer::start(store_of(&[]).0.path(), &[]), &[]);
}

#[test]
fn the_page_is_accessible_in_both_colour_schemes_and_fits_a_phone() {
    let Some(programs) = Programs::find() else { return };
    let (_store, server) = demo_server(&BOTH[1..]);
    programs.run("accessible", &server, &[]);
}

#[test]
fn an_image_shows_its_functions_and_files() {
    let Some(programs) = Programs::find() else { return };
    let (_store, server) = demo_server(&BOTH);
    programs.run("image", &server, &[]);
}

#[test]
fn a_token_is_asked_for_and_kept_in_the_tab() {
    let Some(programs) = Programs::find() else { return };
    let made = symdex(["serve", "--new-token", "read,upload"]);
    let (secret, configured) = made.out.trim_end().split_once('\n').expect("two lines");
    let token = configured.split('"').nth(1).expect("a line of symdex.toml");
    let server = TestServer::start(store_of(&[]).0.path(), &["--token", token]);
    programs.run("token", &server, &[secret]);
}

#[test]
fn an_uploaded_debug_file_answers_the_open_report() {
    let Some(programs) = Programs::find() else { return };
    let (_store, server) = demo_server(&BOTH[..1]);
    programs.run("upload", &server, &[]);
}

#[test]
fn a_report_is_asked_for_again_while_the_server_fetches_debug_files() {
    let Some(programs) = Programs::find() else { return };
    let (_store, server) = demo_server(&BOTH);
    programs.run("fetching", &server, &[]);
}

#[test]
#[ignore = "it writes docs/images"]
fn pictures_for_the_documentation() {
    let programs = Programs::find().expect("what .ci/run installs");
    let (_store, server) = demo_server(&BOTH);
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    programs.run("pictures", &server, &[images.to_str().expect("text")]);
}
