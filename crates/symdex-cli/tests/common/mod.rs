//! Running the command, and the debug files it runs on.
#![allow(dead_code, reason = "each test file uses some of it")]

pub(crate) mod store_verbs;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(crate) fn command() -> Command {
    Command::new(env!("CARGO_BIN_EXE_symdex"))
}

/// Runs `symdex ARGS`.
pub(crate) fn symdex<A: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = A>) -> CommandOutput {
    CommandOutput::from(command().args(args).output().expect("the command starts"))
}

/// Runs `symdex` with the arguments in `line`, separated by spaces. `{}` stands for `path`.
pub(crate) fn symdex_on(path: &Path, line: &str) -> CommandOutput {
    symdex(line.split(' ').map(|word| if word == "{}" { path.as_os_str().to_owned() } else { word.into() }))
}

#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl CommandOutput {
    /// The output of a command. Panics unless it succeeded without messages.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (Some(0), ""), "{}", self.out);
        self.out
    }

    /// Each line as JSON.
    pub(crate) fn json(&self) -> Vec<serde_json::Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// The images of `build --json`, without the failures and the totals.
    pub(crate) fn images(&self) -> Vec<serde_json::Value> {
        self.json().into_iter().filter(|line| line.get("image").is_some()).collect()
    }
}

pub(crate) fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// The bundle `testdata/dsyms/NAME.dSYM`.
pub(crate) fn dsym(name: &str) -> PathBuf {
    testdata().join(format!("dsyms/{name}.dSYM"))
}

/// The debug file in that bundle.
pub(crate) fn debug_file(name: &str) -> PathBuf {
    dsym(name).join("Contents/Resources/DWARF").join(name)
}

/// A copy of a debug file whose debug sections have other names, as if it were a stripped binary.
pub(crate) fn without_debug_information(debug_file: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(debug_file).expect("a debug file");
    let sections: Vec<_> =
        (0..bytes.len().min(4096)).filter(|&at| bytes[at..].starts_with(b"__debug_")).collect();
    assert!(!sections.is_empty(), "{} has debug sections", debug_file.display());
    sections.into_iter().for_each(|at| bytes[at..at + 8].copy_from_slice(b"__gone__"));
    bytes
}

/// A copy of a debug file whose headers can be read and whose symbol table cannot: it is outside of the file.
pub(crate) fn with_damaged_symbols(debug_file: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(debug_file).expect("a debug file");
    let command =
        bytes.windows(8).position(|command| command == [2, 0, 0, 0, 24, 0, 0, 0]).expect("LC_SYMTAB");
    bytes[command + 8..command + 12].fill(0xff);
    bytes
}

pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
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
    PathBuf::from(summary["index"].as_str().expect("a path"))
}

/// The names in a folder, sorted. Empty if the folder does not exist.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The names of the indexes in the store in `folder`, sorted.
pub(crate) fn indexes_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        names_in(folder).iter().flat_map(|digits| names_in(&folder.join(digits))).collect();
    names.retain(|name| name.ends_with(".symdex"));
    names.sort();
    names
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

/// The debug files of the demo, each with the id of its image as reports state it.
pub(crate) fn demo_files() -> [(&'static str, PathBuf); 3] {
    let demo = testdata().join("demo");
    let in_bundle = |bundle: &str, name: &str| demo.join(bundle).join("Contents/Resources/DWARF").join(name);
    [
        ("4c4c447955553144a170308419376afa", in_bundle("DemoApp.app.dSYM", "DemoApp")),
        ("4c4c442755553144a19dbd913be790e0", in_bundle("DemoKit.framework.dSYM", "DemoKit")),
        ("4c4c444e55553144a1e5129c2dc95135", demo.join("DemoPlain.dylib")),
    ]
}
