//! The frames of each real report, counted without the parsers of the product.

use regex::bytes::Regex;
use serde_json::Value;
use symdex_report::Report;

use crate::corpora::report_corpora::each_file;

/// The members that state the address of a frame in some format.
const ADDRESSES: [&str; 11] = [
    "imageOffset",
    "instruction_addr",
    "offsetIntoBinaryTextSegment",
    "frameAddress",
    "binary_address",
    "symbol_address",
    "instruction_address",
    "module_offset",
    "instructionAddress",
    "addressAbsolute",
    "programCounter",
];

/// The frames of a document in JSON: objects that state an address, and lines of strings.
fn in_json(value: &Value, lines: &Lines) -> usize {
    match value {
        Value::Object(members) => {
            let own = ADDRESSES.iter().any(|key| members.contains_key(*key));
            usize::from(own) + members.values().map(|value| in_json(value, lines)).sum::<usize>()
        }
        Value::Array(elements) => elements.iter().map(|value| in_json(value, lines)).sum(),
        // A string can have a document of its own.
        Value::String(text) if text.starts_with('{') => {
            serde_json::from_str(text).map_or(0, |document| in_json(&document, lines))
        }
        Value::String(text) => lines.count(text.as_bytes()),
        _ => 0,
    }
}

/// The patterns of lines with a frame.
struct Lines {
    /// A line has at most one frame, whichever pattern it fits.
    one: Vec<Regex>,
    /// All addresses of a stack in parentheses.
    bare: Regex,
    address: Regex,
}

impl Lines {
    fn new() -> Self {
        let one = [
            // The name of an image does not end with a colon: `leaks` prints `1 (32 bytes) ROOT LEAK: 0x6000013746e0`.
            r"^\s*\d+\s+(\S(.*[^:\s])?\s+)?0x[0-9a-fA-F]+\s+([^+\s]|\+\[)",
            r"#\d+\s+(native: )?pc\s+(0x)?[0-9a-fA-F]+\S*\s+\S",
            r"#\d+\s+0x[0-9a-f]+\s+(in|\()",
            r"^[\s+!:|]*\*?\d+\s+\S.*\[0x[0-9a-f]+",
            r"^ ?\d+  \S+( \+ 0x[0-9a-f]+|!.* \[.* : \d+ \+ 0x[0-9a-f]+\])$",
        ];
        let regex = |pattern: &str| Regex::new(pattern).expect("a pattern");
        Self {
            one: one.map(regex).into(),
            bare: regex(r"\(\s*0x[0-9a-f]+(\s+0x[0-9a-f]+)*\s*\)"),
            address: regex("0x[0-9a-f]+"),
        }
    }

    fn count(&self, text: &[u8]) -> usize {
        let of_line = |line: &[u8]| {
            if self.one.iter().any(|pattern| pattern.is_match(line)) {
                1
            } else {
                self.bare.find(line).map_or(0, |stack| self.address.find_iter(stack.as_bytes()).count())
            }
        };
        text.split(|byte| *byte == b'\n').map(of_line).sum()
    }
}

/// The frames in `text`, of any format.
fn counted(text: &[u8], lines: &Lines) -> usize {
    // Snapshots of tests have lines before the document.
    let is_snapshot = text.starts_with(b"---\n");
    let document = text.windows(2).position(|bytes| bytes == b"\n{").filter(|_| is_snapshot);
    let text = &text[document.unwrap_or_default()..];
    let mut documents = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let mut frames = 0;
    let mut end = 0;
    while let Some(Ok(value)) = documents.next() {
        if value.is_object() || value.is_array() {
            frames += in_json(&value, lines);
            end = documents.byte_offset();
        } else {
            break;
        }
    }
    frames + lines.count(&text[end..])
}

/// The reports whose frames the product and the count do not agree on: the name of the file, the number of frames that
/// the product reads, the number that is counted, and the reason.
const DIFFERENCES: &[(&str, usize, usize, &str)] = &[
    (
        "sentry-java--sentry_src_test_resources_json_sentry_event.json",
        0,
        2,
        "its addresses are random words and no numbers",
    ),
    (
        "sentry-java--sentry_src_test_resources_json_sentry_stack_frame.json",
        0,
        1,
        "a frame without an event, and its address is a random word",
    ),
    (
        "sentry-java--sentry_src_test_resources_json_sentry_thread.json",
        0,
        1,
        "a thread without an event, and its address is a random word",
    ),
    (
        "symbolicate-mac--spec___snapshots___symbolication.spec.js.snap",
        768,
        1055,
        "four reports of two formats in one file, of which the call trees are read",
    ),
    (
        "symbolicate-mac--spec_fixtures_sampling.txt",
        427,
        444,
        "17 lines are of the statistics, which count functions and have no stacks",
    ),
    ("demo.expected.tsv", 0, 54, "a table of expected answers, and no report"),
];

pub(crate) fn every_real_report_has_the_frames_that_a_count_without_the_parsers_finds() {
    let lines = Lines::new();
    let mut differences = Vec::new();
    each_file(&["real-reports"], |name, text| {
        let frames = Report::parse(text)
            .map_or(0, |report| report.threads().iter().map(|thread| thread.frames.len()).sum::<usize>());
        let counted = counted(text, &lines);
        if frames != counted {
            differences.push((name.to_owned(), frames, counted));
        }
    });
    let listed: Vec<_> = DIFFERENCES
        .iter()
        .map(|(name, frames, counted, _)| ((*name).to_owned(), *frames, *counted))
        .collect();
    assert_eq!(differences, listed);
}
