//! What is exported and imported again answers as before, and what other tools have exported answers as they do.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_build::{BuildOptions, find};
use symdex_symbol_files::{Error, write_breakpad, write_gsym, write_json};
use symdex_testkit::{corpora, program};

use crate::common::{
    POLICIES, addresses, answer, each_index, each_index_of_testdata, gsym_answers, raw, testdata,
};

/// The index of a symbol file with a function of 1 MB, and these further records.
fn of_records(records: impl IntoIterator<Item = String>) -> Index<Vec<u8>> {
    let records: Vec<String> = records.into_iter().collect();
    let module = "MODULE Linux x86_64 000102030405060708090A0B0C0D0E0F0 x\n";
    imported(format!("{module}{}\n", records.join("\n")).as_bytes())
}

/// Lines of one byte with gaps between them.
fn lines_with_gaps(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("{:x} 1 {} 0", 0x1000 + 2 * number, number % 100 + 1))
}

const FUNCTION: &str = "FUNC 1000 100000 0 f";

/// GSYM needs a function for each line and for each gap. If each of these had all calls, they would exceed what an
/// index may make.
pub(crate) fn calls_and_lines_with_gaps_are_exported_once() {
    const COUNT: usize = 20_000;
    let head = ["FILE 0 /a/b.c", "INLINE_ORIGIN 0 g", FUNCTION].map(str::to_owned);
    let calls = (0..COUNT).map(|number| format!("INLINE 0 {} 0 0 {:x} 1", number + 1, 0x1000 + 2 * number));
    let index = of_records(head.into_iter().chain(calls).chain(lines_with_gaps(COUNT)));
    let mut bytes = Vec::new();
    write_gsym(&index, LinePolicy::Exact, &raw, &mut bytes).expect("within the limits");
    assert!(bytes.len() < 200 * COUNT, "{}", bytes.len());
    let again = imported(&bytes);
    let mut scratch = Scratch::default();
    for address in [0x1000, 0x1001, 0x1000 + COUNT as u64, 0x1000 + 2 * COUNT as u64 - 2, 0xf_0000] {
        let (expected, _) = expressible(full_answer(&index, address, LinePolicy::Exact, &mut scratch).0);
        let (found, _) = expressible(full_answer(&again, address, LinePolicy::Exact, &mut scratch).0);
        assert_eq!(found, expected, "{address:#x}");
    }
}

pub(crate) fn small_indexes_that_make_much_output_are_refused() {
    const COUNT: usize = 4000;
    let long = "p".repeat(65_000);
    let [short_file, long_file] = ["b.c", &long].map(|name| format!("FILE 0 /{name}"));
    let [short_name, long_name] = ["g", &long].map(|name| format!("INLINE_ORIGIN 0 {name}"));
    let calls = |name: &str| {
        let head = [short_file.clone(), name.to_owned(), FUNCTION.to_owned()];
        let calls =
            (0..COUNT).map(|number| format!("INLINE 0 {} 0 0 {:x} 1", number + 1, 0x1000 + 2 * number));
        of_records(head.into_iter().chain(calls))
    };
    let lines = |file: &str| {
        let head = [file.to_owned(), FUNCTION.to_owned()];
        of_records(head.into_iter().chain(lines_with_gaps(COUNT)))
    };
    let is_refused = |index: &Index<Vec<u8>>| {
        let policy = LinePolicy::Exact;
        [
            write_breakpad(index, policy, &raw, "Linux", &mut std::io::sink()),
            write_gsym(index, policy, &raw, &mut std::io::sink()),
            write_json(index, policy, &raw, &mut std::io::sink()),
        ]
        .map(|result| match result {
            Ok(()) => false,
            Err(Error::Expands { limit }) => limit >= 64 << 20,
            Err(error) => panic!("{error}"),
        })
    };
    // Each line has its path in JSON, and each call its name.
    assert_eq!(is_refused(&lines(&short_file)), [false; 3]);
    assert_eq!(is_refused(&lines(&long_file)), [false, false, true]);
    assert_eq!(is_refused(&calls(&short_name)), [false; 3]);
    assert_eq!(is_refused(&calls(&long_name)), [false, false, true]);
}

/// What one address answers: its frames, the start of its function, and the table.
type Answer = (Vec<Answered>, Option<u64>, Option<Table>);

/// A frame with a line that may be there without a file.
#[derive(Clone, Debug, PartialEq)]
struct Answered {
    name: Option<String>,
    file: Option<String>,
    line: Option<u32>,
}

fn full_answer(index: &Index<Vec<u8>>, address: u64, policy: LinePolicy, scratch: &mut Scratch) -> Answer {
    let frames = index.lookup(ImageOffset(address), policy, scratch).expect("intact");
    let Some(frames) = frames else { return (Vec::new(), None, None) };
    let start = frames.iter().last().and_then(|frame| frame.function_start).map(|start| start.0);
    let table = frames.iter().next().map(|frame| frame.table);
    let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
    let frames = frames.iter().map(|frame| Answered {
        name: owned(frame.name_lossy()),
        file: owned(frame.file_lossy()),
        line: frame.line,
    });
    (frames.collect(), start, table)
}

/// The answer that is left after a way through either format, and what the formats cannot say of it.
fn expressible(mut frames: Vec<Answered>) -> (Vec<Answered>, Vec<&'static str>) {
    let mut lost = Vec::new();
    for (number, frame) in frames.iter_mut().enumerate() {
        if frame.file.is_none() && frame.line.is_some_and(|line| number == 0 || line == 0) {
            lost.push("a line without a file");
            frame.line = None;
        }
    }
    (frames, lost)
}

/// The differences between the answers of indexes and those of the indexes that are exported and imported again,
/// counted by what the format cannot say.
#[derive(Debug, Default)]
struct RoundTrips {
    answers: u64,
    classes: BTreeMap<&'static str, u64>,
}

impl RoundTrips {
    /// Exports an index in both formats under both policies, and imports what was exported. Compares the answers at
    /// every address where one may change.
    fn compare(&mut self, path: &str, index: &Index<Vec<u8>>) {
        for policy in POLICIES {
            let mut bytes = Vec::new();
            let os = if index.id().as_bytes().len() == 16 { "mac" } else { "Linux" };
            write_breakpad(index, policy, &raw, os, &mut bytes).expect("exports");
            let again = imported(&bytes);
            let (old, new) = (index.metadata(), again.metadata());
            assert_eq!(
                (&new.id, &new.arch.name, &new.image_name),
                (&old.id, &old.arch.name, &old.image_name),
                "{path}"
            );
            self.answers(path, (index, &again), policy);
            bytes.clear();
            write_gsym(index, policy, &raw, &mut bytes).expect("exports");
            let again = imported(&bytes);
            assert_eq!((again.id(), again.metadata().base), (index.id(), index.metadata().base), "{path}");
            self.answers(path, (index, &again), policy);
        }
    }

    fn answers(
        &mut self,
        path: &str,
        (index, again): (&Index<Vec<u8>>, &Index<Vec<u8>>),
        policy: LinePolicy,
    ) {
        let (mut scratch, mut scratch_again) = (Scratch::default(), Scratch::default());
        for address in addresses(index).union(&addresses(again)) {
            let (frames, start, table) = full_answer(index, *address, policy, &mut scratch);
            let (expected, mut lost) = expressible(frames);
            let (found, new_start, new_table) = full_answer(again, *address, policy, &mut scratch_again);
            assert_eq!(found, expected, "{path} {address:#x} {policy:?}");
            if new_start != start {
                lost.push("code in several pieces has a function for each");
            }
            if new_table != table {
                lost.push("a function without lines is in the symbol table");
            }
            lost.into_iter().for_each(|class| *self.classes.entry(class).or_default() += 1);
            self.answers += 1;
        }
    }

    /// Checks that these classes of differences occurred, and no others.
    fn check(self, least: u64, classes: &[&str]) {
        println!("{self:#?}");
        assert!(self.answers > least, "{} answers", self.answers);
        assert!(self.classes.keys().eq(classes), "{:#?}", self.classes);
    }
}

pub(crate) fn what_is_imported_again_answers_as_before() {
    let mut compared = RoundTrips::default();
    each_index_of_testdata(|path, index| compared.compare(path, index));
    let classes =
        ["a function without lines is in the symbol table", "code in several pieces has a function for each"];
    compared.check(10_000, &classes);
}

pub(crate) fn corpora_that_are_imported_again_answer_as_before() {
    let (corpora, mut compared) = (corpora(), RoundTrips::default());
    for folder in ["small", "swift"] {
        each_index(&corpora.join(folder), |path, index| compared.compare(path, index));
    }
    let classes = [
        "a function without lines is in the symbol table",
        "a line without a file",
        "code in several pieces has a function for each",
    ];
    compared.check(100_000, &classes);
}

/// The index of a symbol file whose records are all read.
fn imported(bytes: &[u8]) -> Index<Vec<u8>> {
    let file = symdex_symbol_files::read(bytes).expect("a symbol file").named("a.gsym");
    let built = BuildOptions::new().build_symbol_file_into(&file, Vec::new()).expect("builds");
    let index = Index::open(built.bytes).expect("opens");
    index.verify().expect("intact");
    assert_eq!(index.metadata().partial, []);
    index
}

/// Converts a debug file with llvm-gsymutil. Returns `None` if it makes nothing of it.
fn converted(debug_file: &Path, output: &Path) -> Option<Vec<u8>> {
    let mut convert = program("llvm-gsymutil-19", "--version");
    let paths = [Path::new("--convert"), debug_file, Path::new("--out-file"), output];
    convert.args(paths).output().expect("starts");
    std::fs::read(output).ok()
}

/// Compares the answers of llvm-gsymutil and of the imported index at every address where one may change. Returns how
/// many were compared.
fn compare(gsym_file: &Path, bytes: &[u8], differences: &mut BTreeMap<&'static str, u64>) -> usize {
    let index = imported(bytes);
    let base = index.metadata().base;
    let addresses = addresses(&index);
    let found = gsym_answers(gsym_file, addresses.iter().map(|address| base.wrapping_add(*address)));
    let mut scratch = Scratch::default();
    for (address, theirs) in addresses.iter().zip(&found) {
        let mut ours = answer(&index, *address, LinePolicy::Exact, &mut scratch);
        ours.reverse();
        if ours == *theirs {
            continue;
        }
        // It puts a slash after the folder `/`, too.
        let one_slash =
            |path: &str| path.strip_prefix('/').filter(|path| path.starts_with('/')).map(str::to_owned);
        let mut theirs = theirs.clone();
        for (path, _) in theirs.iter_mut().flat_map(|frame| &mut frame.1) {
            *path = one_slash(path).unwrap_or(std::mem::take(path));
        }
        if ours == theirs {
            continue;
        }
        let has_no_line = ours.first().is_some_and(|(_, at)| at.is_none());
        let class = match (theirs.is_empty(), has_no_line) {
            (true, true) => "before the first line of a function, llvm-gsymutil has no answer",
            _ => panic!("{} {address:#x}: {ours:?}, llvm-gsymutil: {theirs:?}", gsym_file.display()),
        };
        *differences.entry(class).or_default() += 1;
    }
    found.len()
}

pub(crate) fn gsym_of_llvm_answers_as_llvm_does() {
    drop(program("llvm-gsymutil-19", "--version"));
    let folder = tempfile::tempdir().expect("a folder");
    let (mut compared, mut differences) = (0, BTreeMap::new());
    for path in find(&testdata()) {
        let path = path.expect("readable");
        let output = folder.path().join("out.gsym");
        // Of files of several architectures, llvm-gsymutil makes several files.
        if let Some(bytes) = converted(&path, &output) {
            compared += compare(&output, &bytes, &mut differences);
            std::fs::remove_file(&output).expect("there");
        }
    }
    println!("{compared} answers: {differences:#?}");
    assert!(compared > 2000, "{compared} answers");
}

/// A program for a big-endian machine, linked without a library.
pub(crate) fn big_endian_gsym_of_llvm_answers_as_llvm_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let source = "static inline int twice(int a) { return a * 2 + (a & 3); }\n\
        int other(int a) { return twice(a) + twice(a ^ 5) / 3; }\n\
        int _start(int a) { return twice(a) + other(a); }\n";
    std::fs::write(path("a.c"), source).expect("written");
    let run = |mut command: Command, arguments: &[&Path]| {
        let run = command.args(arguments).output().expect("starts");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    };
    let mut compile = program("clang-19", "--version");
    compile.args(["--target=powerpc64-linux-gnu", "-O1", "-g", "-c", "-o"]);
    run(compile, &[&path("a.o"), &path("a.c")]);
    let mut link = program("ld.lld-19", "--version");
    link.args(["--build-id", "-o"]);
    run(link, &[&path("a"), &path("a.o")]);
    let bytes = converted(&path("a"), &path("a.gsym")).expect("converts");
    assert!(bytes.starts_with(b"GSYM"), "big-endian");
    let mut differences = BTreeMap::new();
    assert!(compare(&path("a.gsym"), &bytes, &mut differences) > 20);
    assert_eq!(differences, BTreeMap::new());
}
