//! Indexes to export, their answers, and those of llvm-gsymutil.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use symdex::{ImageOffset, Index, LinePolicy, Scratch, Table};
use symdex_build::{Companions, Image, build, find, slices};
use symdex_testkit::program;

pub(crate) const POLICIES: [LinePolicy; 2] = [LinePolicy::Statement, LinePolicy::Exact];

/// A frame: function, file and line.
pub(crate) type Frame = (String, Option<(String, u32)>);

pub(crate) fn raw(name: &[u8]) -> Vec<u8> {
    name.to_vec()
}

pub(crate) fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// Calls `each` with the index of every image below `folder`. Returns the number of images.
pub(crate) fn each_index(folder: &Path, mut each: impl FnMut(&str, &Index<Vec<u8>>)) -> usize {
    let mut count = 0;
    for path in find(folder) {
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
    count
}

/// Calls `each` with the index of every image of `testdata`.
pub(crate) fn each_index_of_testdata(each: impl FnMut(&str, &Index<Vec<u8>>)) {
    assert!(each_index(&testdata(), each) > 20);
}

/// The first and the last address of every range, and the addresses around it.
pub(crate) fn addresses(index: &Index<Vec<u8>>) -> BTreeSet<u64> {
    let ranges = Table::ALL
        .iter()
        .flat_map(|table| index.chunks(*table))
        .flat_map(|chunk| chunk.expect("intact").1.ranges);
    ranges.flat_map(|range| [range.start.saturating_sub(1), range.start, range.end - 1, range.end]).collect()
}

/// The answer of the index, the concrete function first. A caller without a file has the file `??` in all formats.
pub(crate) fn answer(
    index: &Index<Vec<u8>>,
    address: u64,
    policy: LinePolicy,
    scratch: &mut Scratch,
) -> Vec<Frame> {
    let frames = index.lookup(ImageOffset(address), policy, scratch).expect("intact");
    let mut answer = Vec::new();
    for frame in frames.iter().flat_map(|frames| frames.iter()).rev() {
        let name = frame.name_lossy().unwrap_or("??".into()).into_owned();
        answer.push((name, frame.file_lossy().map(|file| (file.into_owned(), frame.line.unwrap_or(0)))));
    }
    answer
}

/// What llvm-gsymutil finds at each address, the innermost function first.
pub(crate) fn gsym_answers(file: &Path, addresses: impl Iterator<Item = u64>) -> Vec<Vec<Frame>> {
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
pub(crate) fn gsym_frame(text: &str) -> Frame {
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
