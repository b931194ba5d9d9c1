//! Where symbolicated reports go.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use symdex_report::{KnownImage, ReportView, Symbolicated};

use super::shown;
use super::summary::{Counted, ReportTotals};
use crate::failure::{Failure, FailureView, Kind, Stop};

/// Standard output, a file, or a folder for many reports.
pub(super) enum Output {
    Stdout(BufWriter<io::StdoutLock<'static>>),
    File(PathBuf),
    Folder(PathBuf),
}

impl Output {
    /// The output at `path` for these reports.
    pub(super) fn open(path: Option<&Path>, reports: &[PathBuf]) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Output::Stdout(BufWriter::new(io::stdout().lock()))) };
        if reports.len() < 2 && !path.is_dir() {
            return Ok(Output::File(path.to_owned()));
        }
        let mut names = HashSet::new();
        if let Some(twice) = reports.iter().find(|report| !names.insert(name_of(report))) {
            let message = format!(
                "{}: another report of that name would be overwritten in {}",
                shown(twice),
                path.display()
            );
            return Err(Failure::new(Kind::Usage, message));
        }
        fs::create_dir_all(path).map_err(|error| unwritable(path, &error))?;
        Ok(Output::Folder(path.to_owned()))
    }

    /// Writes what became of the report at `report`.
    pub(super) fn write(&mut self, report: &Path, text: &[u8]) -> Result<(), Stop> {
        let path = match self {
            Output::Stdout(out) => return Ok(out.write_all(text)?),
            Output::File(path) => path.clone(),
            Output::Folder(folder) => folder.join(name_of(report)),
        };
        Ok(fs::write(&path, text).map_err(|error| unwritable(&path, &error))?)
    }

    pub(super) fn finish(self) -> Result<(), Stop> {
        match self {
            Output::Stdout(mut out) => Ok(out.flush()?),
            Output::File(_) | Output::Folder(_) => Ok(()),
        }
    }
}

/// What a report is called in a folder of them.
fn name_of(report: &Path) -> OsString {
    if report.as_os_str() == "-" { "stdin".into() } else { report.file_name().unwrap_or_default().to_owned() }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Kind::Other, format!("{}: cannot write: {error}", path.display()))
}

/// The report with its frames symbolicated, in the format it came in.
pub(super) fn native(symbolicated: &Symbolicated<'_, '_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(symbolicated.report.text.len());
    // Writing to memory does not fail.
    let _ = symbolicated.write(&mut out);
    out
}

/// The report as text that people read.
pub(super) fn text(symbolicated: &Symbolicated<'_, '_>) -> Vec<u8> {
    let mut out = Vec::new();
    // Writing to memory does not fail.
    let _ = symbolicated.write_text(&mut out);
    out
}

#[derive(Serialize)]
struct OneReport<'s> {
    report: String,
    #[serde(flatten)]
    view: ReportView<'s>,
    totals: ReportTotals,
}

/// One line of JSON. `known` are the images that there are indexes or debug files of.
pub(super) fn json(
    path: &Path,
    symbolicated: &Symbolicated<'_, '_>,
    counted: &Counted,
    known: &[KnownImage],
) -> Vec<u8> {
    line(&OneReport { report: shown(path), view: symbolicated.view(known), totals: counted.totals() })
}

#[derive(Serialize)]
struct FailedReport<'f> {
    report: String,
    error: FailureView<'f>,
}

/// One line of JSON for a report that could not be read.
pub(super) fn json_failure(path: &Path, failure: &Failure) -> Vec<u8> {
    line(&FailedReport { report: shown(path), error: failure.view() })
}

fn line(value: &impl Serialize) -> Vec<u8> {
    // Text and numbers are always JSON.
    let mut out = serde_json::to_vec(value).unwrap_or_default();
    out.push(b'\n');
    out
}
