//! Signals that end `symdex build`, and what is left of temporary files.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{debug_file, folder, names_in};
use symdex_testkit::images::archive::zip_of;

const SIGNALS: [(&str, i32); 4] = [("HUP", 1), ("INT", 2), ("TERM", 15), ("KILL", 9)];

/// Starts a build with `options` whose temporary files are in `temporary`, and returns when an archive is unpacked. The
/// build then waits for a second archive on its standard input. `shell` runs before it.
fn unpacking(root: &Path, options: &[&str], shell: &str) -> Child {
    let (archive, before) = (root.join("a.zip"), folders(root));
    fs::write(&archive, zip_of(&[("cxx", &fs::read(debug_file("cxx")).expect("there"))])).expect("written");
    // Whoever runs the tests may ignore signals, and a shell cannot change that.
    let mut run = Command::new(if cfg!(target_os = "linux") { "env" } else { "sh" });
    if cfg!(target_os = "linux") {
        run.args(["--default-signal", "sh"]);
    }
    run.args(["-c", &format!("{shell} exec \"$@\""), "sh", env!("CARGO_BIN_EXE_symdex"), "build"]);
    run.arg(archive).arg("-").args(options).arg("-o").arg(root.join("out"));
    run.env("TMPDIR", root.join("tmp")).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = run.spawn().expect("started");
    let begun = Instant::now();
    let is_unpacked =
        |name: &String| !before.contains(name) && root.join("tmp").join(name).join("0").exists();
    while !folders(root).iter().any(is_unpacked) {
        assert!(begun.elapsed() < Duration::from_secs(60), "no archive is unpacked");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

fn folders(root: &Path) -> Vec<String> {
    names_in(&root.join("tmp"))
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
    assert!(sent.expect("sh starts").success());
}

/// Sends a signal that ends the build. Returns the signal that has ended it.
fn end(signal: &str, mut child: Child) -> Option<i32> {
    // Without this, waiting would close it, and the build would go on.
    let _standard_input = child.stdin.take();
    send(signal, &child);
    child.wait().expect("ended").signal()
}

#[test]
fn a_signal_deletes_temporary_folders_and_the_next_run_those_of_a_killed_one() {
    for options in [&[][..], &["--isolate"]] {
        for (signal, number) in SIGNALS {
            let root = folder();
            fs::create_dir(root.path().join("tmp")).expect("new");
            let child = unpacking(root.path(), options, "");
            // Another one runs all the time, and keeps its files.
            let mut other = unpacking(root.path(), options, "");
            let both = folders(root.path());
            assert_eq!(end(signal, child), Some(number), "{options:?}");
            let left = folders(root.path());
            match signal {
                "KILL" => assert_eq!(left, both),
                _ => assert_eq!(left.len(), both.len() / 2, "{signal} {options:?}"),
            }
            end("TERM", unpacking(root.path(), options, ""));
            drop(other.stdin.take());
            // Its standard input is no archive.
            assert_eq!(other.wait().expect("ended").code(), Some(6), "{signal} {options:?}");
            assert_eq!(names_in(&root.path().join("out")).len(), 1);
            assert_eq!(folders(root.path()), [""; 0], "{signal} {options:?}");
        }
    }
}

/// nohup does this.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_that_the_parent_process_ignores_does_not_end_a_build() {
    let root = folder();
    fs::create_dir(root.path().join("tmp")).expect("new");
    let mut child = unpacking(root.path(), &[], "trap '' HUP;");
    send("HUP", &child);
    drop(child.stdin.take());
    assert_eq!(child.wait().expect("ended").code(), Some(6));
    assert_eq!(names_in(&root.path().join("out")).len(), 1);
}
