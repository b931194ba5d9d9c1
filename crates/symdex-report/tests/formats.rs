//! The table of formats: every format recognises its own example, and no other format does.

mod common;

use std::path::Path;

use symdex_report::{Format, Report, formats};

/// The names of the formats that recognise `text`.
fn takers(text: &[u8]) -> Vec<&'static str> {
    formats().iter().filter(|format| format.recognises(text)).map(Format::name).collect()
}

#[test]
fn each_example_is_a_report_of_its_format_alone() {
    for format in formats().iter().filter(|format| !format.example().is_empty()) {
        let text = format.example();
        assert_eq!(takers(text.as_bytes()), [format.name()], "{text}");
        let report = Report::parse(text.as_bytes()).expect("a report");
        assert_eq!(report.format_name(), format.name());
        assert!(report.threads().iter().any(|thread| !thread.frames.is_empty()), "{text}");
        assert!(!text.contains('\n') && !format.description().is_empty(), "{text}");
    }
}

#[test]
fn binary_formats_have_no_example() {
    let binary = formats().iter().filter(|format| format.example().is_empty()).map(Format::name);
    assert_eq!(binary.collect::<Vec<_>>(), ["plcrash", "pprof", "android-protobuf"]);
}

#[test]
fn the_sample_of_each_format_has_one_taker() {
    for (name, text) in common::samples::samples() {
        assert_eq!(takers(text.as_bytes()), [name], "{text}");
    }
}

fn document(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(path).expect("a document")
}

/// If this fails, replace the table's rows by those of the message.
#[test]
fn the_table_of_the_document_has_each_format() {
    let rows: String = formats()
        .iter()
        .map(|format| format!("| {} | {} |\n", format.name(), format.description()))
        .collect();
    let table = format!("| format | reports |\n| --- | --- |\n{rows}\n");
    assert!(document("docs/REPORTS.md").contains(&table), "{rows}");
}

#[test]
fn the_readme_has_the_number_of_formats() {
    assert!(document("README.md").contains(&format!("[{} formats of", formats().len())));
}
