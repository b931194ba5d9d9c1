//! What reports cost for each of their bytes, in each format, is bounded and linear: counted as allocated bytes.

mod common;

use std::alloc::System;

use cap::Cap;
use common::shapes::shapes;
use symdex_report::{Answers, Options, Question, Report, Unanswered, formats, symbolicate};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Most bytes of memory for each byte of the report that its text takes, with what is read from it, beside frames,
/// stacks and images. `symdex serve` reserves as many.
const TEXT: usize = 8;

/// A constant that does not depend on the report.
const BASE: usize = 8 << 10;

/// The size of the smallest report.
const SIZE: usize = 8 << 10;

/// The costs of a report of a shape.
#[derive(Debug)]
struct Cost {
    size: usize,
    /// The most bytes that were allocated at a time, with the text.
    peak: usize,
    /// The sum of all allocations.
    total: usize,
    /// The bytes that frames, stacks and images may take.
    counted: usize,
}

fn nothing(_: &Question<'_>) -> Result<Answers, Unanswered> {
    Err(Unanswered::Missing)
}

/// Makes another text of a text.
type Paste = fn(&[u8]) -> Vec<u8>;

/// What people put around a text: quotes in two layers, and a string in JSON.
fn quoted(text: &[u8]) -> Vec<u8> {
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    lines.flat_map(|line| [b"> > ", line].concat()).collect()
}

fn in_string(text: &[u8]) -> Vec<u8> {
    serde_json::json!({ "log": String::from_utf8_lossy(text) }).to_string().into_bytes()
}

/// The costs of reading a report, and of writing it in each way. `None` if `text` is no report.
fn cost(text: &[u8]) -> Option<Cost> {
    // With this, as much is allocated as ever was, so that the most that is allocated grows from here.
    let _rest: Vec<u8> = Vec::with_capacity(ALLOCATOR.max_allocated() - ALLOCATOR.allocated());
    let (most, total) = (ALLOCATOR.max_allocated(), ALLOCATOR.total_allocated());
    let report = Report::parse(text).ok()?;
    let counted = report.memory();
    let most_counted = symdex_report::most_memory(text.len());
    assert!(counted <= most_counted, "{counted}, {most_counted}");
    let symbolicated = symbolicate(&report, &mut nothing, &Options::new());
    symbolicated.write(std::io::sink()).expect("no error");
    symbolicated.write_text(&mut std::io::sink()).expect("no error");
    serde_json::to_writer(std::io::sink(), &symbolicated.view(&[])).expect("no error");
    let peak = ALLOCATOR.max_allocated() - most + text.len();
    Some(Cost { size: text.len(), peak, total: ALLOCATOR.total_allocated() - total, counted })
}

/// One test, because the allocator counts for all threads.
#[test]
fn memory_is_linear_and_within_what_is_reserved() {
    let shapes = shapes();
    for format in formats() {
        assert!(shapes.iter().any(|shape| shape.format == format.name()), "{}", format.name());
    }
    let mut wrong = Vec::new();
    let ways: [(&str, Paste); 3] =
        [("plain", <[u8]>::to_vec), ("quoted", quoted), ("in a string", in_string)];
    for (shape, (way, paste)) in shapes.iter().flat_map(|shape| ways.map(|way| (shape, way))) {
        let costs = [1, 2, 4].map(|times| {
            let text = shape.text(times * SIZE);
            let plain = cost(&text)?;
            let pasted = cost(&paste(&text))?;
            // The reading that counts may have less than one that was tried.
            Some(Cost { counted: pasted.counted.max(plain.counted), ..pasted })
        });
        let [Some(once), Some(twice), Some(four_times)] = costs else {
            assert_ne!(way, "plain", "{} is a report", shape.name());
            continue;
        };
        // A table that doubles its memory just before the end may take half as much again.
        let is_linear = four_times.total <= 4 * once.total + once.total / 2;
        let is_reserved = |cost: &Cost| cost.peak <= TEXT * cost.size + cost.counted + BASE;
        if !is_linear || ![&once, &twice, &four_times].into_iter().all(is_reserved) {
            wrong.push(format!("{}, {way}\n    {:?}", shape.name(), [once, twice, four_times]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
