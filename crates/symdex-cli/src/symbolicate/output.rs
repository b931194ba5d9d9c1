//! Where symbolicated reports go.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use symdex_report::{ReportView, Symbolicated};

use super::shown;
use crate::failure::{Failure, Kind, Stop};

/// Standard output, a file, or a folder for many reports.
pub(super) enum Output {
    Stdout {
        out: BufWriter<io::StdoutLock<'static>>,
        headers: Headers,
    },
    File(PathBuf),
    /// The folder, and the path in it of each report.
    Folder(PathBuf, HashMap<PathBuf, PathBuf>),
}

/// Whether a line with its path stands before each report, as `head` and `tail` print it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Headers {
    None,
    BeforeFirst,
    BeforeNext,
}

impl Output {
    /// The output at `path` for these reports. `is_json` tells that each report names itself.
    pub(super) fn open(path: Option<&Path>, reports: &[PathBuf], is_json: bool) -> Result<Self, Failure> {
        let Some(path) = path else {
            let headers = if reports.len() < 2 || is_json { Headers::None } else { Headers::BeforeFirst };
            return Ok(Output::Stdout { out: BufWriter::new(io::stdout().lock()), headers });
        };
        if reports.len() < 2 && !path.is_dir() {
            return Ok(Output::File(path.to_owned()));
        }
        let names = names(reports)?;
        fs::create_dir_all(path).map_err(|error| unwritable(path, &error))?;
        Ok(Output::Folder(path.to_owned(), names))
    }

    /// Writes what became of the report at `report`.
    pub(super) fn write(&mut self, report: &Path, text: &[u8]) -> Result<(), Stop> {
        let path = match self {
            Output::Stdout { out, headers } => {
                match headers {
                    Headers::None => {}
                    Headers::BeforeFirst => writeln!(out, "==> {} <==", shown(report))?,
                    Headers::BeforeNext => writeln!(out, "\n==> {} <==", shown(report))?,
                }
                if *headers == Headers::BeforeFirst {
                    *headers = Headers::BeforeNext;
                }
                return Ok(out.write_all(text)?);
            }
            Output::File(path) => path.clone(),
            Output::Folder(folder, names) => {
                let path = folder.join(names.get(report).map_or(report, PathBuf::as_path));
                let parent = path.parent().unwrap_or(folder);
                fs::create_dir_all(parent).map_err(|error| unwritable(parent, &error))?;
                path
            }
        };
        Ok(fs::write(&path, text).map_err(|error| unwritable(&path, &error))?)
    }

    pub(super) fn finish(self) -> Result<(), Stop> {
        match self {
            Output::Stdout { mut out, .. } => Ok(out.flush()?),
            Output::File(_) | Output::Folder(..) => Ok(()),
        }
    }
}

/// What each report is called in a folder of them: its own name, or, if two have the same, its path below the folder that all of them
/// are in.
fn names(reports: &[PathBuf]) -> Result<HashMap<PathBuf, PathBuf>, Failure> {
    let mut flat = HashSet::new();
    if reports.iter().all(|report| flat.insert(name_of(report))) {
        return Ok(reports.iter().map(|report| (report.clone(), name_of(report).into())).collect());
    }
    let places: Vec<_> = reports.iter().map(|report| place_of(report)).collect();
    let folders = places.iter().filter_map(|place| Some(place.parent()?.to_owned()));
    let common = folders.reduce(|a, b| common(&a, &b)).unwrap_or_default();
    let mut names = HashMap::new();
    let mut taken = HashMap::new();
    for (report, place) in reports.iter().zip(&places) {
        let below = place.strip_prefix(&common).unwrap_or(place);
        // Nothing but names of folders: a drive or a root would lead out of the output.
        let below: PathBuf = below.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        if let Some(other) = taken.insert(below.clone(), report) {
            let (report, other) = (shown(report), shown(other));
            let message =
                format!("{report}: the output of {other} would be overwritten; give each report once");
            return Err(Failure::new(Kind::Usage, message));
        }
        names.insert(report.clone(), below);
    }
    Ok(names)
}

/// Where a report lies, links to its folder resolved. Standard input counts as a file of the current folder.
fn place_of(report: &Path) -> PathBuf {
    let name = name_of(report);
    let folder = report.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let absolute = || std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    folder.canonicalize().unwrap_or_else(|_| absolute()).join(name)
}

/// The folder that both paths are in.
fn common(a: &Path, b: &Path) -> PathBuf {
    a.components().zip(b.components()).take_while(|(a, b)| a == b).map(|(part, _)| part).collect()
}

/// The name of a report's file.
fn name_of(report: &Path) -> OsString {
    if report.as_os_str() == "-" { "stdin".into() } else { report.file_name().unwrap_or_default().to_owned() }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Kind::Other, format!("{}: cannot write: {error}", path.display()))
}

/// The report with its frames symbolicated.
pub(super) fn text(symbolicated: &Symbolicated<'_, '_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(symbolicated.report.text.len());
    // Writing to memory does not fail.
    let _ = symbolicated.write(&mut out);
    out
}

#[derive(Serialize)]
struct OneReport<'s> {
    report: String,
    #[serde(flatten)]
    view: ReportView<'s>,
}

/// One line of JSON.
pub(super) fn json(path: &Path, symbolicated: &Symbolicated<'_, '_>) -> Vec<u8> {
    let view = OneReport { report: shown(path), view: symbolicated.view() };
    // Text and numbers are always JSON.
    let mut out = serde_json::to_vec(&view).unwrap_or_default();
    out.push(b'\n');
    out
}
