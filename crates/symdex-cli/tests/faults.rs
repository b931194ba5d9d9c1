//! Faults while files are written: full disks, failing devices, interrupted calls, and killed processes. Afterwards
//! each file is absent, old or whole, and only a killed process leaves a temporary file.
//!
//! strace makes the N-th call of a system call fail, or kills the process there, for every N that a run without faults
//! has. So every step is reached.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use crate::common::{command, debug_file, folder, index_of, names_in};

/// The system calls that write files.
const SYSTEM_CALLS: [&str; 15] = [
    "openat",
    "mkdir",
    "write",
    "writev",
    "pwrite64",
    "ftruncate",
    "fsync",
    "fdatasync",
    "fchmod",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "flock",
];
const SIGKILL: i32 = 9;

/// What happens at a system call, in the syntax of strace.
const FAULTS: [&str; 4] = ["error=ENOSPC", "error=EIO", "error=EINTR", KILL];
const KILL: &str = "signal=KILL";

/// A program that writes one file.
struct Program {
    root: tempfile::TempDir,
    args: Vec<PathBuf>,
    /// Below `root`, in a folder of its own.
    target: PathBuf,
    /// Whether the folder exists before.
    has_folder: bool,
    /// What the file has before, if it exists.
    old: Option<Vec<u8>>,
    /// What the program writes.
    new: Vec<u8>,
    /// The system calls of a run without faults: which one, and which of the calls of its thread.
    calls: BTreeSet<(&'static str, usize)>,
}

impl Program {
    /// The program that writes `target`, a path below `root`.
    fn new(
        root: tempfile::TempDir,
        target: &str,
        old: Option<&[u8]>,
        has_folder: bool,
        args: Vec<PathBuf>,
    ) -> Self {
        let target = root.path().join(target);
        let (old, new, calls) = (old.map(Vec::from), Vec::new(), BTreeSet::new());
        let mut program = Self { root, args, target, has_folder, old, new, calls };
        let (done, log) = program.strace(&format!("trace={}", SYSTEM_CALLS.join(",")));
        assert!(done.status.success(), "{}", text(&done.stderr));
        program.new = fs::read(&program.target).expect("written");
        assert_ne!(program.old.as_ref(), Some(&program.new));
        program.calls = program.calls_in(&log);
        program
    }

    fn folder(&self) -> &Path {
        self.target.parent().expect("a folder")
    }

    /// Restores the state before the program runs.
    fn prepare(&self) {
        if self.folder().exists() {
            fs::remove_dir_all(self.folder()).expect("removed");
        }
        if self.has_folder {
            fs::create_dir(self.folder()).expect("a folder");
        }
        if let Some(old) = &self.old {
            fs::write(&self.target, old).expect("written");
        }
    }

    /// Runs the program under strace with these expressions. Returns its output and the log.
    fn strace(&self, expressions: &str) -> (Output, String) {
        self.prepare();
        let log = self.root.path().join("log");
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o"]).arg(&log);
        expressions.split(' ').for_each(|expression| _ = strace.arg("-e").arg(expression));
        let done = strace.arg(command().get_program()).args(&self.args).output().expect("strace starts");
        (done, text(&fs::read(&log).unwrap_or_default()))
    }

    /// The calls in a log of strace. Of the calls that open files, only those in the folder of the target count.
    fn calls_in(&self, log: &str) -> BTreeSet<(&'static str, usize)> {
        let folder = self.folder().display().to_string();
        let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
        let mut calls = BTreeSet::new();
        for (thread, call) in log.lines().filter_map(|line| line.split_once(' ')) {
            let (name, arguments) = call.trim_start().split_once('(').unwrap_or_default();
            let Some(name) = SYSTEM_CALLS.into_iter().find(|known| *known == name) else { continue };
            let count = counts.entry((thread, name)).or_default();
            *count += 1;
            if name != "openat" || arguments.contains(&folder) {
                calls.insert((name, *count));
            }
        }
        calls
    }

    /// Runs the program with a fault at the `number`-th call of `system_call` in each thread. Returns its output, and
    /// whether the fault has happened.
    fn run(&self, system_call: &str, fault: &str, number: usize) -> (Output, bool) {
        let inject = format!("inject={system_call}:{fault}:when={number}");
        let (done, log) = self.strace(&format!("trace={system_call} {inject}"));
        let is_hit = match fault {
            KILL => done.status.signal() == Some(SIGKILL),
            _ => log.contains("(INJECTED)"),
        };
        (done, is_hit)
    }

    /// Whether the file is whole, and not as it was. Fails if it is neither.
    fn is_new(&self, context: &str) -> bool {
        let found = fs::read(&self.target).ok();
        let is_new = found.as_ref() == Some(&self.new);
        assert!(is_new || found == self.old, "{context}: the file is neither old nor new");
        is_new
    }

    /// The files beside the target.
    fn others(&self) -> Vec<String> {
        let name = self.target.file_name().expect("a name").to_string_lossy().into_owned();
        let mut names = names_in(self.folder());
        names.retain(|other| *other != name);
        names
    }

    /// Runs the program with `fault` at each call that writes the file.
    fn fails_everywhere_with(&self, fault: &str) {
        let names: BTreeSet<_> = self.calls.iter().map(|(name, _)| *name).collect();
        let renames = ["rename", "renameat", "renameat2", "link", "linkat"];
        assert!(["openat", "write"].iter().all(|name| names.contains(name)), "{names:?}");
        assert!(renames.iter().any(|name| names.contains(name)), "{names:?}");
        for (system_call, number) in &self.calls {
            let context = format!("{} {system_call} {number} {fault}", self.args[0].display());
            let (done, is_hit) = self.run(system_call, fault, *number);
            assert!(is_hit, "{context}: {done:?}");
            self.check(&done, fault, &context);
        }
    }

    /// Checks what a fault has left.
    fn check(&self, done: &Output, fault: &str, context: &str) {
        let error = text(&done.stderr);
        let is_new = self.is_new(context);
        if fault == KILL {
            assert!(self.others().iter().all(|name| is_temporary(name)), "{context}: {:?}", self.others());
            return;
        }
        assert_eq!(self.others(), [""; 0], "{context}");
        assert!(done.status.code().is_some() && !error.contains("panicked"), "{context}: {done:?}");
        if done.status.success() {
            assert!(is_new, "{context}: {error}");
        } else if !is_new {
            let folder = self.folder().display().to_string();
            assert!(error.contains(&folder) && error.contains(": cannot "), "{context}: {error}");
        }
    }

    /// Checks that a later run deletes the temporary file of a killed one, once it is older than a day.
    fn deletes_the_temporary_file_of_a_killed_run(&self) {
        let (_, is_hit) = self.run("fsync", KILL, 1);
        let [left] = &self.others()[..] else { panic!("one temporary file: {:?}", self.others()) };
        assert!(is_hit && is_temporary(left) && !self.is_new("fsync"));
        let again = || command().args(&self.args).output().expect("the command starts").status.success();
        assert!(again() && self.others() == [left.clone()], "it may belong to a living process");
        let file = fs::OpenOptions::new().write(true).open(self.folder().join(left)).expect("there");
        file.set_modified(SystemTime::now() - Duration::from_secs(25 * 60 * 60)).expect("a time");
        fs::remove_file(&self.target).expect("removed");
        assert!(again() && self.others().is_empty() && self.is_new("again"));
    }
}

fn is_temporary(name: &str) -> bool {
    name.starts_with(".symdex-") && name.ends_with(".tmp")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Ends the test as ignored if strace does not work. Some containers forbid it.
fn need_strace() {
    let works = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    if !works.is_ok_and(|done| done.status.success()) {
        symdex_testkit::ignore(symdex_testkit::Need::Programs, "strace is not installed, or may not trace");
    }
}

/// `symdex build -o`, with one job so that faults always hit the same step. Without an old index, it creates the
/// folder.
fn build(old: Option<&[u8]>) -> Program {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let name = index.file_name().expect("a name").to_string_lossy();
    let words = ["build", "--jobs", "1", "-o"].map(PathBuf::from);
    let args = words.into_iter().chain([root.path().join("indexes"), debug_file("inline-dwarf4")]).collect();
    Program::new(root, &format!("indexes/{name}"), old, old.is_some(), args)
}

/// `symdex symbolicate -o`, to the file or the folder `output`.
fn symbolicate(output: &str, old: Option<&[u8]>) -> Program {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let report = root.path().join("report.crash");
    let id = index.file_stem().expect("an id").to_string_lossy();
    let notes = "Notes: a line that makes the report longer\n".repeat(50);
    let text = format!(
        "{notes}Thread 0 Crashed:\n0   App   0x0000000104a343cf 0x104a34000 + 975\n\n\
         Binary Images:\n0x104a34000 - 0x104a37fff App arm64  <{id}> /var/App.app/App\n"
    );
    fs::write(&report, text).expect("written");
    let [store, output] = ["store", output].map(|name| root.path().join(name));
    let words = ["symbolicate", "--index"].map(PathBuf::from).into_iter();
    let args = words.chain([index, "--store".into(), store, "-o".into(), output, report]).collect();
    Program::new(root, "out/report.crash", old, true, args)
}

/// The command, with a limit of `blocks` for the size of the files that it writes. A block has 512 or 1,024 bytes.
fn with_largest_file(blocks: u32) -> Command {
    let mut limited = Command::new("sh");
    let script = format!("ulimit -f {blocks}; trap '' XFSZ; exec \"$0\" \"$@\"");
    limited.arg("-c").arg(script).arg(command().get_program());
    limited
}

pub(crate) fn an_index_is_absent_old_or_whole_after_a_fault_at_any_step() {
    need_strace();
    for old in [None, Some(&b"a damaged index"[..])] {
        let program = build(old);
        assert!(program.calls.iter().any(|(name, _)| *name == "fsync"), "{:?}", program.calls);
        FAULTS.into_iter().for_each(|fault| program.fails_everywhere_with(fault));
    }
    build(None).deletes_the_temporary_file_of_a_killed_run();
}

pub(crate) fn a_report_is_absent_old_or_whole_after_a_fault_at_any_step() {
    need_strace();
    for (output, old) in [("out/report.crash", Some(&b"an old report"[..])), ("out", None)] {
        let program = symbolicate(output, old);
        // Syncing would take longer than all else of many reports.
        assert!(program.calls.iter().all(|(name, _)| *name != "fsync"), "{:?}", program.calls);
        FAULTS.into_iter().for_each(|fault| program.fails_everywhere_with(fault));
    }
}

pub(crate) fn a_file_that_is_written_in_part_is_not_left() {
    need_strace();
    for program in [build(None), symbolicate("out", Some(b"an old report"))] {
        program.prepare();
        // The first write is short, and the next one fails.
        let done = with_largest_file(1).args(&program.args).output().expect("sh starts");
        let error = text(&done.stderr);
        assert!(program.new.len() > 1024 && done.status.code() == Some(1), "{done:?}");
        assert!(error.contains("cannot write: File too large"), "{error}");
        assert!(!program.is_new("short") && program.others().is_empty(), "{:?}", program.others());
    }
}

pub(crate) fn a_temporary_file_that_cannot_be_kept_is_an_error_that_says_what_helps() {
    let root = folder();
    let debug_files = symdex_testkit::corpus("cbundle.dSYM", root.path());
    let [temporary, indexes] = ["temporary", "indexes"].map(|name| root.path().join(name));
    fs::create_dir(&temporary).expect("a folder");
    // The chunks take more than 4 MiB. So they are kept in a file, which may not have so many bytes.
    let mut build = with_largest_file(4096);
    build.arg("build").arg(&debug_files).arg("-o").arg(&indexes).env("TMPDIR", &temporary);
    let done = build.output().expect("sh starts");
    let error = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{error}");
    let message = format!("cannot keep a temporary file in {}: File too large", temporary.display());
    assert!(error.contains(&message), "{error}");
    assert!(
        error.contains("free space there, name another folder with TMPDIR") && error.contains("--max-memory")
    );
    assert_eq!([names_in(&temporary), names_in(&indexes)], [[""; 0], [""; 0]]);
}
