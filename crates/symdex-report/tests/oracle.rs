//! A report of each format about an image of testdata. Every frame has the functions, files and lines that
//! llvm-symbolizer finds, also the inlined ones.

use std::path::{Path, PathBuf};

use crate::common::stacks::{BASE, ID, OFFSETS, Sample, samples};
use serde_json::Value;
use symdex::{Index, Scratch};
use symdex_report::{
    Answers, Format, Options, Question, Report, Source, Symbolicated, Unanswered, answer_from_index, formats,
    symbolicate,
};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

/// The index of the image. It answers by id, and by name for reports without ids.
struct OneIndex(Index<Vec<u8>>, Scratch);

impl OneIndex {
    fn new() -> Self {
        let bytes = std::fs::read(testdata().join("golden/v1/inline-dwarf4-1.symdex")).expect("the index");
        Self(Index::open(bytes).expect("an index"), Scratch::default())
    }
}

impl OneIndex {
    fn answer_one(&mut self, question: &Question<'_>) -> Result<Answers, Unanswered> {
        let image = question.image;
        let Self(index, scratch) = self;
        let is_it = match &image.id {
            Some(id) => id == index.id(),
            None => image.file_name() == "inline-dwarf4",
        };
        if !is_it {
            return Err(Unanswered::Missing);
        }
        Ok(answer_from_index(index, question, scratch)?.into())
    }
}

impl Source for OneIndex {
    fn answer(&mut self, questions: &[Question<'_>]) -> Vec<Result<Answers, Unanswered>> {
        questions.iter().map(|question| self.answer_one(question)).collect()
    }
}

/// A function with its file and line.
type Location = (String, String, u32);

/// The functions at each address of the image, innermost first, as llvm-symbolizer prints them.
fn oracle(addresses: &[u64]) -> Vec<Vec<Location>> {
    let image = testdata().join("dsyms/inline-dwarf4.dSYM/Contents/Resources/DWARF/inline-dwarf4");
    let addresses = addresses.iter().map(|address| format!("{address:#x}"));
    let output = symdex_testkit::program("llvm-symbolizer-19", "--version")
        .args(["--output-style=JSON", "--inlines", "-e"])
        .arg(image)
        .args(addresses)
        .output()
        .expect("it runs");
    let answers: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let location = |symbol: &Value| {
        let text = |key: &str| symbol[key].as_str().expect("a string").to_owned();
        (
            text("FunctionName"),
            text("FileName"),
            u32::try_from(symbol["Line"].as_u64().expect("a line")).expect("small"),
        )
    };
    let answers = answers.as_array().expect("a list").iter();
    answers
        .map(|answer| answer["Symbol"].as_array().expect("a list").iter().map(location).collect())
        .collect()
}

/// The functions of each frame of the image, by the frame's offset as the report states it.
fn answers(symbolicated: &Symbolicated<'_, '_>) -> Vec<Vec<Location>> {
    let chain = |(thread, frame): (usize, usize)| {
        let resolution = symbolicated.resolution(thread, frame)?;
        let location = |function: &symdex_report::Function| {
            let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
            (text(function.readable()), text(function.file()), function.line.unwrap_or_default())
        };
        Some(resolution.frames.iter().map(location).collect())
    };
    symbolicated.frames().filter_map(chain).collect()
}

fn written(text: &[u8]) -> Vec<u8> {
    let report = Report::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let mut out = Vec::new();
    symbolicate(&report, &mut OneIndex::new(), &Options::new()).write(&mut out).expect("memory");
    out
}

pub(crate) fn every_frame_has_the_functions_that_llvm_symbolizer_finds() {
    for Sample { format, text, adjusted, .. } in samples() {
        let report = Report::parse(&text).unwrap_or_else(|error| panic!("{format}: {error}"));
        assert_eq!(report.format_name(), format);
        let symbolicated = symbolicate(&report, &mut OneIndex::new(), &Options::new());
        let answers = answers(&symbolicated);
        assert_eq!(answers.len(), OFFSETS.len(), "{format}");
        let lookups =
            OFFSETS.iter().enumerate().map(|(number, offset)| BASE + offset - u64::from(adjusted(number)));
        let expected = oracle(&lookups.collect::<Vec<_>>());
        for ((answer, expected), offset) in answers.iter().zip(&expected).zip(OFFSETS) {
            assert_eq!(answer, expected, "{format}, offset {offset:#x}");
        }
    }
}

pub(crate) fn the_written_report_names_every_function_and_its_line() {
    for Sample { format, text, has_lines, .. } in samples() {
        let report = Report::parse(&text).expect("a report");
        let symbolicated = symbolicate(&report, &mut OneIndex::new(), &Options::new());
        let mut readable = Vec::new();
        symbolicated.write_text(&mut readable).expect("memory");
        let written = String::from_utf8_lossy(&written(&text)).into_owned();
        // minidump-stackwalk has spaces before the line.
        let readable = String::from_utf8_lossy(&readable).replace(" : ", ":");
        let answers = answers(&symbolicated);
        let concrete = answers.iter().filter_map(|chain| chain.last());
        concrete.for_each(|(function, ..)| {
            assert!(written.contains(function), "{format}, {function}: {written}")
        });
        for (function, file, line) in answers.into_iter().flatten() {
            let file = file.rsplit('/').next().expect("a name");
            assert!(
                readable.contains(&format!("{file}:{line}")) && readable.contains(&function),
                "{format}: {readable}"
            );
            // The numbers of a binary format are no text.
            let number =
                if matches!(format, "pprof" | "otlp-profile") { String::new() } else { line.to_string() };
            for part in [function.as_str(), file, &number].into_iter().filter(|_| has_lines) {
                assert!(written.contains(part), "{format}, {part}: {written}");
            }
        }
    }
}

/// Formats that append answers to lines do not read them back.
const NOT_READ_BACK: [&str; 8] = [
    "glibc-backtrace",
    "swift-backtrace",
    "go-panic",
    "dart",
    "kernel-panic",
    "linux-kernel",
    "runtime-stack",
    "address-list",
];

pub(crate) fn the_written_report_is_read_back_with_its_functions() {
    for Sample { format, text, .. } in
        samples().into_iter().filter(|sample| !NOT_READ_BACK.contains(&sample.format))
    {
        let report = Report::parse(&text).expect("a report");
        let symbolicated = symbolicate(&report, &mut OneIndex::new(), &Options::new());
        let answers = answers(&symbolicated);
        // Sentry's events and the output of sanitizers do not mark inlined functions.
        let marks_inlined = !["sentry-event", "sanitizer"].contains(&format);
        let expected = answers.iter().flat_map(|chain| match chain.split_last() {
            Some((concrete, _)) if marks_inlined => std::slice::from_ref(concrete),
            _ => chain,
        });
        let expected: Vec<_> = expected.map(|(name, ..)| name.clone()).collect();
        let written = written(&text);
        let again = Report::parse(&written).expect("a report");
        let symbols = again.existing_symbols();
        let frames = again
            .threads()
            .iter()
            .zip(&symbols)
            .flat_map(|(thread, symbols)| thread.frames.iter().zip(symbols));
        let known = report.existing_symbols().concat();
        let new = frames.filter(|(frame, symbol)| !frame.inlined && !known.contains(symbol));
        let functions: Vec<_> = new.filter_map(|(_, symbol)| symbol.function.clone()).collect();
        assert_eq!(functions, expected, "{format}");
    }
}

/// A source that has no index.
fn nothing(_: &Question<'_>) -> Result<Answers, Unanswered> {
    Err(Unanswered::Missing)
}

pub(crate) fn without_an_index_every_byte_stays() {
    for Sample { format, text, .. } in samples() {
        let report = Report::parse(&text).expect("a report");
        let mut out = Vec::new();
        symbolicate(&report, &mut nothing, &Options::new()).write(&mut out).expect("memory");
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&text), "{format}");
    }
}

pub(crate) fn the_second_time_changes_nothing() {
    for Sample { format, text, .. } in samples() {
        let once = written(&text);
        assert_ne!(once, text, "{format}");
        assert_eq!(String::from_utf8_lossy(&written(&once)), String::from_utf8_lossy(&once), "{format}");
    }
}

pub(crate) fn each_report_and_its_answer_have_one_taker() {
    for Sample { format, text, .. } in samples() {
        for text in [text.clone(), written(&text)] {
            let report = Report::parse(&text).expect("a report");
            let takers = formats().iter().filter(|format| format.recognises(report.text())).map(Format::name);
            assert_eq!(takers.collect::<Vec<_>>(), [format], "{}", String::from_utf8_lossy(&text));
        }
    }
}

pub(crate) fn each_format_has_a_sample() {
    let samples = samples();
    let without = formats().iter().map(Format::name);
    let without = without.filter(|name| !samples.iter().any(|sample| sample.format == *name));
    assert_eq!(without.collect::<Vec<_>>(), [""; 0]);
}

pub(crate) fn the_index_has_the_id_of_the_reports() {
    assert_eq!(OneIndex::new().0.id().to_string(), ID);
}
