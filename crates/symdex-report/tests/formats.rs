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
    for format in formats() {
        let text = format.example();
        assert_eq!(takers(text.as_bytes()), [format.name()], "{text}");
        let report = Report::parse(text.as_bytes()).expect("a report");
        assert_eq!(report.format_name(), format.name());
        assert!(report.threads().iter().any(|thread| !thread.frames.is_empty()), "{text}");
        assert!(!text.contains('\n') && !format.description().is_empty(), "{text}");
    }
}

#[test]
fn the_sample_of_each_format_has_one_taker() {
    for (name, text) in common::samples::samples() {
        assert_eq!(takers(text.as_bytes()), [name], "{text}");
    }
}

/// The README's table is made of the formats. If this fails, replace the table's rows by those of the message.
#[test]
fn the_table_of_the_readme_has_each_format() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).expect("README.md");
    let rows: String = formats()
        .iter()
        .map(|format| format!("| {} | {} |\n", format.name(), format.description()))
        .collect();
    assert!(readme.contains(&format!("| format | reports |\n| --- | --- |\n{rows}\n")), "{rows}");
}
