//! `symdex symbolicate --list-formats`, and which format takes each report of the corpora.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{corpus, folder, symdex, testdata};
use symdex_report::{Format, formats};

#[test]
fn formats_are_listed_with_an_example_each() {
    let text = symdex(["symbolicate", "--list-formats"]).ok();
    let json = symdex(["symbolicate", "--list-formats", "--json"]);
    assert_eq!(json.json().len(), formats().len());
    for (format, json) in formats().iter().zip(json.json()) {
        assert!(text.contains(&format!("\n    {}\n", format.example().trim_start())), "{text}");
        assert!(text.contains(&format!("{:<16} {}\n", format.name(), format.description())), "{text}");
        assert_eq!(json["format"], format.name());
        assert_eq!(
            (&json["description"], &json["example"]),
            (&format.description().into(), &format.example().into())
        );
    }
}

/// No report has two takers, so that the order of the table does not decide.
#[test]
fn every_report_of_the_corpora_has_at_most_one_taker() {
    let root = folder();
    let mut reports = Vec::new();
    for name in [
        "real-reports",
        "atos-reports",
        "memory-leaking-app",
        "crashprobe-ios",
        "kscrash-testers",
        "ndk-stack",
    ] {
        let Some(corpus) = corpus(name, root.path()) else { return };
        files(&corpus, &mut reports);
    }
    files(&testdata().join("demo"), &mut reports);
    let (mut taken, mut disputed) = (0, Vec::new());
    for path in reports {
        let text = fs::read(&path).expect("readable");
        let takers: Vec<_> =
            formats().iter().filter(|format| format.recognises(&text)).map(Format::name).collect();
        taken += takers.len();
        if takers.len() > 1 {
            disputed.push((path, takers));
        }
    }
    assert!(disputed.is_empty(), "{disputed:#?}");
    assert!(taken > 100, "{taken}");
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}
