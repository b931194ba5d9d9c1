//! All reports of the corpora: their formats, their frames, and what stays of their text.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{folder, testdata};
use crate::corpora::made_up::{MadeUp, Shape};
use symdex_report::{Format, Options, Report, Source, formats, symbolicate};
use symdex_testkit::corpus;

/// The corpora that have reports.
const CORPORA: [&str; 7] = [
    "real-reports",
    "atos-reports",
    "memory-leaking-app",
    "crashprobe-ios",
    "kscrash-testers",
    "ndk-stack",
    "hostile-finds",
];

/// The largest file that is read. Debug files of the corpora are larger.
const MAX_SIZE: u64 = 4 << 20;

/// Calls `check` for each file of `corpora` and of `testdata`, with its name and its text.
pub(crate) fn each_file(corpora: &[&str], mut check: impl FnMut(&str, &[u8])) {
    let root = folder();
    let mut paths = Vec::new();
    for name in corpora {
        files(&corpus(name, root.path()), &mut paths);
    }
    files(&testdata().join("demo"), &mut paths);
    for path in paths {
        if path.metadata().expect("readable").len() <= MAX_SIZE {
            let name = path.file_name().expect("a name").to_string_lossy();
            check(&name, &fs::read(&path).expect("readable"));
        }
    }
}

/// Adds the files below `folder` to `found`, in the order of their names.
pub(crate) fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// The report with the answers of `source`. `None` if it is refused.
fn rewritten(text: &[u8], source: &mut impl Source) -> Option<Vec<u8>> {
    let report = Report::parse(text).ok()?;
    let mut out = Vec::new();
    symbolicate(&report, source, &Options::new()).write(&mut out).expect("memory");
    Some(out)
}

/// The order of the table of formats does not matter for real reports.
pub(crate) fn no_report_of_the_corpora_has_two_takers() {
    let (mut taken, mut disputed) = (0, Vec::new());
    each_file(&CORPORA, |name, text| {
        let takers: Vec<_> =
            formats().iter().filter(|format| format.recognises(text)).map(Format::name).collect();
        taken += takers.len();
        if takers.len() > 1 {
            disputed.push((name.to_owned(), takers));
        }
    });
    assert!(disputed.is_empty(), "{disputed:#?}");
    assert!(taken > 100, "{taken}");
}

pub(crate) fn without_an_index_every_report_stays_byte_for_byte() {
    let mut changed = Vec::new();
    each_file(&CORPORA, |name, text| {
        if rewritten(text, &mut MadeUp::new(Shape::Nothing)).is_some_and(|after| after != text) {
            changed.push(name.to_owned());
        }
    });
    assert!(changed.is_empty(), "{changed:#?}");
}

/// Symbolicating twice is the same as symbolicating once, whatever the answers look like.
pub(crate) fn a_second_symbolication_changes_nothing() {
    let mut changed = Vec::new();
    // The last corpus has hostile files, whose answers are long.
    each_file(&CORPORA[..CORPORA.len() - 1], |name, text| {
        for shape in Shape::ALL {
            let Some(once) = rewritten(text, &mut MadeUp::new(shape)) else { return };
            let twice = rewritten(&once, &mut MadeUp::new(shape));
            if twice.as_ref() != Some(&once) {
                let twice = String::from_utf8_lossy(twice.as_deref().unwrap_or_default()).into_owned();
                let once = String::from_utf8_lossy(&once).into_owned();
                let line = once.lines().zip(twice.lines()).find(|(once, twice)| once != twice);
                changed.push(format!("{name}, {shape:?}: {line:?}"));
            }
        }
    });
    assert!(changed.is_empty(), "{changed:#?}");
}
