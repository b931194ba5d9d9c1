//! The table of formats: every format recognises its own example, and no other format does.

use std::path::Path;

use serde_json::Value;
use symdex_report::{Format, FormatKind, Report, formats};

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
fn only_binary_formats_have_no_example_and_only_those_of_json_are_json() {
    for format in formats() {
        let is_json = serde_json::from_str::<Value>(format.example()).is_ok();
        let kind = match format.example() {
            "" => FormatKind::Binary,
            _ if is_json => FormatKind::Json,
            _ => FormatKind::Text,
        };
        assert_eq!(format.kind(), kind, "{}", format.name());
    }
}

fn document(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(path).expect("a document")
}

/// The first column of the table with this heading in docs/REPORTS.md.
fn first_column(heading: &str) -> Vec<String> {
    let document = document("docs/REPORTS.md");
    let (_, table) = document.split_once(heading).expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| "));
    rows.map(|row| row.split('|').nth(1).expect("a cell").trim().to_owned()).collect()
}

#[test]
fn the_table_of_what_is_written_and_the_schema_have_each_format() {
    let names: Vec<_> = formats().iter().map(Format::name).collect();
    assert_eq!(first_column("| format | what is written"), names);
    let schema: Value = serde_json::from_str(&document("docs/schema/symbolicate.schema.json")).expect("JSON");
    assert_eq!(schema["$defs"]["report"]["properties"]["format"]["enum"], serde_json::json!(names));
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
