//! Other tools read what is exported, and answer every address as the index does.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use breakpad_symbols::{FrameSymbolizer, SimpleModule, SymbolFile};
use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_build::{Companions, Image, build, find, slices};
use symdex_export::{Error, breakpad, gsym, json};
use symdex_testkit::program;

symdex_testkit::main!(
    breakpad_answers_are_those_of_the_index,
    gsym_answers_are_those_of_the_index,
    json_has_every_answer_of_the_index,
    damage_is_an_error,
);

const POLICIES: [LinePolicy; 2] = [LinePolicy::Statement, LinePolicy::Exact];

/// A frame: function, file and line.
type Frame = (String, Option<(String, u32)>);

fn raw(name: &[u8]) -> Vec<u8> {
    name.to_vec()
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// Calls `each` with the index of every image of `testdata`.
fn each_index(mut each: impl FnMut(&str, &Index<Vec<u8>>)) {
    let mut count = 0;
    for path in find(&testdata()) {
        let path = path.expect("readable");
        let bytes = std::fs::read(&path).expect("readable");
        for slice in slices(&bytes).expect("a debug file") {
            let companions = Companions::default();
            let image = Image::load(&slice, &path, &companions).expect("loads");
            let index = Index::open(build(&image).expect("builds").bytes).expect("opens");
            each(&path.display().to_string(), &index);
            count += 1;
        }
    }
    assert!(count > 20, "{count} images");
}

/// The first and the last address of every range, and the addresses around it.
fn addresses(index: &Index<Vec<u8>>) -> BTreeSet<u64> {
    let ranges = Table::ALL
        .into_iter()
        .flat_map(|table| index.chunks(table))
        .flat_map(|chunk| chunk.expect("intact").1.ranges);
    ranges.flat_map(|range| [range.start.saturating_sub(1), range.start, range.end - 1, range.end]).collect()
}

/// The answer of the index, the concrete function first. A caller without a file has the file `??` in all formats.
fn answer(index: &Index<Vec<u8>>, address: u64, policy: LinePolicy, scratch: &mut Scratch) -> Vec<Frame> {
    let frames = index.lookup(ImageOffset(address), policy, scratch).expect("intact");
    let mut answer = Vec::new();
    for frame in frames.iter().flat_map(|frames| frames.iter()).rev() {
        let name = frame.name_lossy().unwrap_or("??".into()).into_owned();
        answer.push((name, frame.file_lossy().map(|file| (file.into_owned(), frame.line.unwrap_or(0)))));
    }
    answer
}

/// What Breakpad's reader finds at an address.
#[derive(Default)]
struct BreakpadAnswer {
    address: u64,
    function: Option<String>,
    line: Option<(String, u32)>,
    inlined: Vec<Frame>,
}

impl FrameSymbolizer for BreakpadAnswer {
    fn get_instruction(&self) -> u64 {
        self.address
    }

    fn set_function(&mut self, name: &str, _base: u64, _parameter_size: u32) {
        self.function = Some(name.to_owned());
    }

    fn set_source_file(&mut self, file: &str, line: u32, _base: u64) {
        self.line = Some((file.to_owned(), line));
    }

    fn add_inline_frame(&mut self, name: &str, file: Option<&str>, line: Option<u32>) {
        // The reader leaves out line 0 of the innermost function.
        self.inlined.push((name.to_owned(), file.map(|file| (file.to_owned(), line.unwrap_or(0)))));
    }
}

fn breakpad_answers_are_those_of_the_index() {
    let module = SimpleModule::default();
    let mut compared = 0;
    each_index(|path, index| {
        for policy in POLICIES {
            let mut file = Vec::new();
            breakpad(index, policy, &raw, "Linux", &mut file).expect("exports");
            let symbols = SymbolFile::from_bytes(&file).expect("is read");
            let mut scratch = Scratch::default();
            for address in addresses(index) {
                let mut found = BreakpadAnswer { address, ..BreakpadAnswer::default() };
                symbols.fill_symbol(&module, &mut found);
                let concrete = found.function.map(|name| (name, found.line));
                let found: Vec<Frame> = concrete.into_iter().chain(found.inlined).collect();
                let mut expected = answer(index, address, policy, &mut scratch);
                if let Some((_, callers)) = expected.split_last_mut() {
                    callers.iter_mut().for_each(|(_, at)| *at = at.take().or(Some(("??".to_owned(), 0))));
                }
                assert_eq!(found, expected, "{path} {address:#x} {policy:?}");
                compared += found.len();
            }
        }
    });
    assert!(compared > 10_000, "{compared} frames");
}

fn gsym_answers_are_those_of_the_index() {
    drop(program("llvm-gsymutil-19", "--version"));
    let folder = tempfile::tempdir().expect("a folder");
    let mut compared = 0;
    each_index(|path, index| {
        let base = index.metadata().base;
        for policy in POLICIES {
            let file = folder.path().join("index.gsym");
            let mut bytes = Vec::new();
            gsym(index, policy, &raw, &mut bytes).expect("exports");
            std::fs::write(&file, bytes).expect("written");
            let addresses = addresses(index);
            let found = gsym_answers(&file, addresses.iter().map(|address| base.wrapping_add(*address)));
            assert_eq!(found.len(), addresses.len(), "{path}");
            let mut scratch = Scratch::default();
            for (address, found) in addresses.into_iter().zip(found) {
                let mut expected = answer(index, address, policy, &mut scratch);
                expected.reverse();
                // Code without a line has no inlined calls in GSYM.
                if expected.first().is_some_and(|(_, at)| at.is_none()) {
                    expected.drain(..expected.len() - 1);
                    expected[0].1 = None;
                }
                assert_eq!(found, expected, "{path} {address:#x} {policy:?}");
                compared += found.len();
            }
        }
    });
    assert!(compared > 10_000, "{compared} frames");
}

/// What llvm-gsymutil finds at each address, the innermost function first.
fn gsym_answers(file: &Path, addresses: impl Iterator<Item = u64>) -> Vec<Vec<Frame>> {
    let mut command = program("llvm-gsymutil-19", "--version");
    command.arg("--addresses-from-stdin").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = command.spawn().expect("starts");
    let mut stdin = running.stdin.take().expect("piped");
    let questions: String = addresses.map(|address| format!("{address:#x} {}\n", file.display())).collect();
    let asking = std::thread::spawn(move || stdin.write_all(questions.as_bytes()));
    let mut answers: Vec<Vec<Frame>> = Vec::new();
    for line in BufReader::new(running.stdout.take().expect("piped")).lines() {
        let line = line.expect("text");
        let text = match line.split_once(": ") {
            Some((address, text)) if address.starts_with("0x") => {
                answers.push(Vec::new());
                text
            }
            _ => line.trim(),
        };
        if !text.is_empty() && !text.starts_with("error: ") {
            answers.last_mut().expect("begins with an address").push(gsym_frame(text));
        }
    }
    asking.join().expect("no panic").expect("reads all");
    assert!(running.wait().expect("ends").success());
    answers
}

/// Reads `NAME + BYTES @ FILE:LINE [inlined]`, of which only the name is always there.
fn gsym_frame(text: &str) -> Frame {
    let text = text.strip_suffix(" [inlined]").unwrap_or(text);
    let (name, place) = text.rsplit_once(" @ ").map_or((text, None), |(name, place)| (name, Some(place)));
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let name = name.rsplit_once(" + ").filter(|(_, bytes)| is_number(bytes)).map_or(name, |(name, _)| name);
    let place = place.map(|place| {
        let (file, line) = place.rsplit_once(':').expect("a line");
        (file.to_owned(), line.parse().expect("a number"))
    });
    (name.to_owned(), place)
}

/// The functions of an exported file.
fn json_functions(index: &Index<Vec<u8>>, policy: LinePolicy) -> Vec<serde_json::Value> {
    let mut text = Vec::new();
    json(index, policy, &raw, &mut text).expect("exports");
    let mut lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let image: serde_json::Value = serde_json::from_slice(lines.next().expect("a line")).expect("JSON");
    assert_eq!(image["id"], index.id().to_string());
    lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect()
}

/// The number in a string such as `0x3a0`.
fn number(of: &serde_json::Value) -> u64 {
    let digits = of.as_str().and_then(|text| text.strip_prefix("0x")).expect("0x");
    u64::from_str_radix(digits, 16).expect("hexadecimal digits")
}

/// The answer at `address`, the concrete function first.
fn json_answer(function: &serde_json::Value, address: u64) -> Vec<Frame> {
    let covers =
        |start: &serde_json::Value, end: &serde_json::Value| (number(start)..number(end)).contains(&address);
    let name = |of: &serde_json::Value| of["name"].as_str().unwrap_or("??").to_owned();
    let empty = Vec::new();
    let mut frames = vec![(name(function), None)];
    for call in function["inlined"].as_array().unwrap_or(&empty) {
        if call["ranges"].as_array().expect("ranges").iter().any(|range| covers(&range[0], &range[1])) {
            let line = u32::try_from(call["call_line"].as_u64().unwrap_or(0)).expect("a line");
            frames.last_mut().expect("not empty").1 =
                call["call_file"].as_str().map(|file| (file.to_owned(), line));
            frames.push((name(call), None));
        }
    }
    let line = function["lines"]
        .as_array()
        .unwrap_or(&empty)
        .iter()
        .find(|line| covers(&line["start"], &line["end"]));
    frames.last_mut().expect("not empty").1 = line.map(|line| {
        let number = u32::try_from(line["line"].as_u64().expect("a number")).expect("a line");
        (line["file"].as_str().expect("a file").to_owned(), number)
    });
    frames
}

fn json_has_every_answer_of_the_index() {
    each_index(|path, index| {
        for policy in POLICIES {
            let functions = json_functions(index, policy);
            let start = |function: &serde_json::Value| number(&function["start"]);
            let end = |function: &serde_json::Value| number(&function["end"]);
            assert!(functions.windows(2).all(|pair| end(&pair[0]) <= start(&pair[1])), "{path}: in order");
            let mut scratch = Scratch::default();
            for address in addresses(index) {
                let next = functions.partition_point(|function| start(function) <= address);
                let function =
                    next.checked_sub(1).map(|last| &functions[last]).filter(|last| address < end(last));
                let found = function.map_or_else(Vec::new, |function| json_answer(function, address));
                let expected = answer(index, address, policy, &mut scratch);
                assert_eq!(found, expected, "{path} {address:#x} {policy:?}");
            }
        }
    });
}

fn damage_is_an_error() {
    let path = testdata().join("golden/v1/inline-dwarf4-1.symdex");
    let whole = std::fs::read(path).expect("readable");
    let index = Index::open(whole.clone()).expect("opens");
    let chunks = index.sections()[2];
    let mut damaged = whole;
    damaged[usize::try_from(chunks.offset + chunks.size / 2).expect("small")] ^= 1;
    let index = Index::open(damaged).expect("opens: only what is read is checked");
    let policy = LinePolicy::Statement;
    let mut out = Vec::new();
    assert!(matches!(breakpad(&index, policy, &raw, "mac", &mut out), Err(Error::Index(_))));
    assert!(matches!(gsym(&index, policy, &raw, &mut out), Err(Error::Index(_))));
    assert!(matches!(json(&index, policy, &raw, &mut out), Err(Error::Index(_))));
}
