//! Crash reports of all formats: parse, symbolicate, write.

use std::collections::HashMap;

use symdex_report::{Options, Report, formats, symbolicate};

use crate::input::files;
use crate::source::{app, nothing};

pub fn run(data: &[u8]) {
    let Ok(report) = Report::parse(data) else { return };
    let (mut same, mut out) = (Vec::new(), Vec::new());
    symbolicate(&report, &mut nothing, &Options::new()).write(&mut same).expect("memory");
    assert!(same == data, "without answers a byte changed");
    let symbolicated = symbolicate(&report, &mut app, &Options::new());
    symbolicated.write(&mut out).expect("memory");
    symbolicated.write_text(&mut Vec::new()).expect("memory");
    serde_json::to_string(&symbolicated.view(&[])).expect("JSON");
    let answered =
        symbolicated.frames().filter(|(thread, frame)| symbolicated.resolution(*thread, *frame).is_some());
    // Each answer changes at most one line of the report, but for the indentation of the lines below it in a tree.
    let mut lines: HashMap<&[u8], isize> = HashMap::new();
    text_of_lines(data).for_each(|line| *lines.entry(line).or_default() += 1);
    text_of_lines(&out).for_each(|line| *lines.entry(line).or_default() -= 1);
    let changed: isize = lines.into_values().filter(|count| *count > 0).sum();
    assert!(changed.unsigned_abs() <= answered.count(), "{changed} lines of the report changed");
}

/// The lines of a report without their indentation.
fn text_of_lines(report: &[u8]) -> impl Iterator<Item = &[u8]> {
    report.split(|byte| *byte == b'\n').map(|line| {
        let indent = line.iter().take_while(|byte| b" +!:|*\t".contains(byte)).count();
        &line[indent..]
    })
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let examples = formats().iter().map(|format| format.example().as_bytes().to_vec());
    let examples = examples.filter(|example| !example.is_empty());
    let demo = files("testdata/demo", |path| path.ends_with("demo.crash"));
    [files("fuzz/seeds/report", |_| true), demo, examples.collect()].concat()
}
