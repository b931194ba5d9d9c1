//! Other tools read what is exported, and answer every address as the index does.

use breakpad_symbols::{FrameSymbolizer, SimpleModule, SymbolFile};
use symdex::{Index, LinePolicy, Scratch};
use symdex_symbol_files::{Error, write_breakpad, write_gsym, write_json};
use symdex_testkit::program;

use crate::common::{
    Frame, POLICIES, addresses, answer, each_index_of_testdata, gsym_answers, raw, testdata,
};

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

pub(crate) fn breakpad_answers_are_those_of_the_index() {
    let module = SimpleModule::default();
    let mut compared = 0;
    each_index_of_testdata(|path, index| {
        for policy in POLICIES {
            let mut file = Vec::new();
            write_breakpad(index, policy, &raw, "Linux", &mut file).expect("exports");
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

pub(crate) fn gsym_answers_are_those_of_the_index() {
    drop(program("llvm-gsymutil-19", "--version"));
    let folder = tempfile::tempdir().expect("a folder");
    let mut compared = 0;
    each_index_of_testdata(|path, index| {
        let base = index.metadata().base;
        for policy in POLICIES {
            let file = folder.path().join("index.gsym");
            let mut bytes = Vec::new();
            write_gsym(index, policy, &raw, &mut bytes).expect("exports");
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

/// The functions of an exported file.
fn json_functions(index: &Index<Vec<u8>>, policy: LinePolicy) -> Vec<serde_json::Value> {
    let mut text = Vec::new();
    write_json(index, policy, &raw, &mut text).expect("exports");
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

pub(crate) fn json_has_every_answer_of_the_index() {
    each_index_of_testdata(|path, index| {
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

pub(crate) fn damage_is_an_error() {
    let path = testdata().join("golden/v1/inline-dwarf4-1.symdex");
    let whole = std::fs::read(path).expect("readable");
    let index = Index::open(whole.clone()).expect("opens");
    let chunks = index.sections()[5];
    let mut damaged = whole;
    damaged[usize::try_from(chunks.offset + chunks.size / 2).expect("small")] ^= 1;
    let index = Index::open(damaged).expect("opens: only what is read is checked");
    let policy = LinePolicy::Statement;
    let mut out = Vec::new();
    assert!(matches!(write_breakpad(&index, policy, &raw, "mac", &mut out), Err(Error::Index(_))));
    assert!(matches!(write_gsym(&index, policy, &raw, &mut out), Err(Error::Index(_))));
    assert!(matches!(write_json(&index, policy, &raw, &mut out), Err(Error::Index(_))));
}
