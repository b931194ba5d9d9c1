//! Standard output that cannot be written: a full disk is an error, and a closed pipe ends the command quietly.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{CommandOutput, command, folder, index_of, names_in, testdata};

/// Each command that writes to standard output, with arguments for `index`.
fn commands(root: &Path, index: &Path) -> Vec<Command> {
    let index = index.to_str().expect("UTF-8");
    let (report, demo) = (testdata().join("demo/demo.crash"), testdata().join("demo"));
    let [report, demo] = [&report, &demo].map(|path| path.to_str().expect("UTF-8"));
    let [store, output] = ["store", "output"].map(|name| root.join(name));
    let [store, output] = [&store, &output].map(|path| path.to_str().expect("UTF-8"));
    let lines: [&[&str]; 15] = [
        &["--help"],
        &["--version"],
        &["completions", "zsh"],
        &["build", demo, "-o", output],
        &["build", demo, "-o", output, "--json"],
        &["lookup", index, "0x400"],
        &["lookup", index, "0x400", "--json"],
        &["atos", "-o", index, "-offset", "0x400"],
        &["ids", index],
        &["inspect", index],
        &["verify", index],
        &["verify", index, "--json"],
        &["symbolicate", report, "--dsym", demo, "--store", store],
        &["symbolicate", report, "--dsym", demo, "--store", store, "--format", "json"],
        &["symbolicate", report, "--dsym", demo, "--store", store, "--needs"],
    ];
    let commands = lines.map(|line| {
        let mut run = command();
        run.args(line);
        run
    });
    commands.into()
}

#[test]
fn a_full_disk_below_standard_output_is_an_error() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    for mut run in commands(root.path(), &index) {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("a device of Linux");
        let done = CommandOutput::from(run.stdout(full).output().expect("the command starts"));
        assert_eq!(done.code, Some(1), "{run:?}: {}", done.err);
        let message = "cannot write to standard output: No space left on device";
        assert!(done.err.contains(message), "{run:?}: {}", done.err);
        assert!(!done.err.contains("panicked"), "{run:?}: {}", done.err);
    }
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    for mut run in commands(root.path(), &index) {
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let done =
            CommandOutput::from(run.stdout(writer).stderr(Stdio::piped()).output().expect("it starts"));
        assert_eq!(done.code, Some(0), "{run:?}: {}", done.err);
        assert!(
            !done.err.contains("standard output") && !done.err.contains("panicked"),
            "{run:?}: {}",
            done.err
        );
    }
}

#[test]
fn a_build_publishes_all_indexes_although_nobody_reads_its_output() {
    let root = folder();
    for options in [&[][..], &["--json"]] {
        let output = root.path().join(format!("output{}", options.len()));
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let mut run = command();
        run.arg("build").arg(testdata().join("demo")).args(options).arg("-o").arg(&output);
        let done =
            CommandOutput::from(run.stdout(writer).stderr(Stdio::piped()).output().expect("it starts"));
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert_eq!(names_in(&output).len(), 3, "{}", done.err);
    }
}
