//! Running the command, and the debug files it runs on.
#![allow(dead_code, unused_imports, reason = "each test file uses some of it")]

pub(crate) mod store_verbs;

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use symdex_testkit::command::CommandOutput;
pub(crate) use symdex_testkit::folders::{folder, indexes_in, names_in};
pub(crate) use symdex_testkit::testdata::{
    debug_file, demo_files, dsym, testdata, without_debug_information,
};

pub(crate) fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_symdex"))
}

/// Runs `symdex ARGS`.
pub(crate) fn symdex<A: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = A>) -> CommandOutput {
    CommandOutput::from(command().args(args).output().expect("the command starts"))
}

/// Runs `symdex` with the arguments in `line`, separated by spaces. `{}` stands for `path`.
pub(crate) fn symdex_on(path: &Path, line: &str) -> CommandOutput {
    symdex(symdex_testkit::command::arguments(line, path))
}

/// A copy of a debug file whose headers can be read and whose symbol table cannot: it is outside of the file.
pub(crate) fn with_damaged_symbols(debug_file: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(debug_file).expect("a debug file");
    let command =
        bytes.windows(8).position(|command| command == [2, 0, 0, 0, 24, 0, 0, 0]).expect("LC_SYMTAB");
    bytes[command + 8..command + 12].fill(0xff);
    bytes
}

/// Builds the index of a bundle with one image into `folder`. Returns its path.
pub(crate) fn index_of(name: &str, folder: &Path) -> PathBuf {
    let built = symdex([
        "build".as_ref(),
        dsym(name).as_os_str(),
        "--json".as_ref(),
        "-o".as_ref(),
        folder.as_os_str(),
    ]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    let [summary] = &built.images()[..] else { panic!("more than one image: {}", built.out) };
    PathBuf::from(summary["location"].as_str().expect("a path"))
}

/// Runs `symdex symbolicate` on `reports`, with the debug files below `dsym` and a store below `root`.
pub(crate) fn symbolicate<R: AsRef<std::ffi::OsStr>>(
    root: &Path,
    dsym: &Path,
    options: &[&str],
    reports: impl IntoIterator<Item = R>,
) -> CommandOutput {
    let mut run = command();
    run.arg("symbolicate").args(options).arg("--dsym").arg(dsym).arg("--store").arg(root.join("store"));
    CommandOutput::from(run.args(reports).output().expect("the command starts"))
}
