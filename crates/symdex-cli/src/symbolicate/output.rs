//! The output of symbolicated reports.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufWriter, Seek as _, Write as _};
use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use symdex_report::{FormatKind, KnownImage, OutputFormat, ReportView, Symbolicated, formats};
use symdex_store::{Durability, replace_file};

use super::input::Input;
use super::shown;
use super::walks::is_process;
use crate::failure::{Cause, CommandError, Failure, FailureView};

/// What is written of each report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Report(OutputFormat),
    /// What minidump-stackwalk writes. The reports are minidumps.
    #[cfg_attr(not(feature = "minidump"), expect(dead_code, reason = "`symdex minidump` alone asks for it"))]
    Stackwalk(StackwalkFormat),
}

/// The formats of minidump-stackwalk.
#[cfg_attr(not(feature = "minidump"), expect(dead_code, reason = "`symdex minidump` alone asks for them"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StackwalkFormat {
    Text,
    Json,
}

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

/// Whether a line with its path comes before each report, as in the output of `head` and `tail`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Headers {
    None,
    BeforeFirst,
    BeforeNext,
}

impl Output {
    /// The output at `path` for these reports. It is a folder for several reports, and if `has_folder`: a folder or an
    /// archive was given, which may have any number.
    ///
    /// # Errors
    ///
    /// [`Failure`] if an output would overwrite a report or another output, or if the folder cannot be created.
    pub(super) fn open(
        path: Option<&Path>,
        reports: &[Input],
        has_folder: bool,
        layout: Layout,
    ) -> Result<Self, Failure> {
        let Some(path) = path else {
            // The JSON of a report states its path.
            let headers = if reports.len() < 2 || layout == Layout::Report(OutputFormat::Json) {
                Headers::None
            } else {
                Headers::BeforeFirst
            };
            return Ok(Output::Stdout { out: BufWriter::new(io::stdout().lock()), headers });
        };
        if reports.len() < 2 && !has_folder && !path.is_dir() {
            keep_reports(reports, [path.to_owned()])?;
            return Ok(Output::File(path.to_owned()));
        }
        let names = names(reports, layout)?;
        keep_reports(reports, names.values().map(|name| path.join(name)))?;
        fs::create_dir_all(path).map_err(|error| unwritable(path, &error))?;
        Ok(Output::Folder(path.to_owned(), names))
    }

    /// Writes `text`, the output of the report at `report`.
    pub(super) fn write(&mut self, report: &Path, text: Text) -> Result<(), CommandError> {
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
                return Ok(text.copy_to(out)?);
            }
            Output::File(path) => path.clone(),
            Output::Folder(folder, names) => {
                let path = folder.join(names.get(report).map_or(report, PathBuf::as_path));
                let parent = path.parent().unwrap_or(folder);
                fs::create_dir_all(parent).map_err(|error| unwritable(parent, &error))?;
                path
            }
        };
        // Syncing each of many reports takes twenty times as long as all else, and a report can be answered again.
        let written = replace_file(&path, text.into_reader(), Durability::Unsynced);
        Ok(written.map_err(Failure::from)?)
    }

    /// Whether every report has an output file of its own in a folder.
    pub(super) fn is_folder(&self) -> bool {
        matches!(self, Output::Folder(..))
    }

    pub(super) fn finish(self) -> Result<(), CommandError> {
        match self {
            Output::Stdout { mut out, .. } => Ok(out.flush()?),
            Output::File(_) | Output::Folder(..) => Ok(()),
        }
    }
}

/// Fails if one of `outputs` is the file of a report.
fn keep_reports(reports: &[Input], outputs: impl IntoIterator<Item = PathBuf>) -> Result<(), Failure> {
    // Only regular files can be overwritten. A terminal may be both the input and the output.
    let file = |path: &Path| path.canonicalize().ok().filter(|path| path.is_file());
    let reports: HashMap<_, _> =
        reports.iter().filter_map(Input::source).filter_map(|report| Some((file(report)?, report))).collect();
    let overwritten = outputs.into_iter().find_map(|output| reports.get(&file(&output)?));
    overwritten.map_or(Ok(()), |report| {
        let report = shown(report);
        let message =
            format!("the output would overwrite the report {report}; choose another folder with -o");
        Err(Failure::new(Cause::Usage, message))
    })
}

/// How the extension of `format` is combined with an existing one.
#[derive(Clone, Copy)]
enum Extension {
    /// It replaces the old extension, if that is one of a report.
    Replaced,
    /// It comes after the old extension.
    Appended,
}

/// The path of each report in the output folder: its file name, with the extension of `format`. If two of these names
/// are equal, it is the path below the folder that has all reports. If two of these paths are equal, the extension is
/// appended instead of replaced.
fn names(inputs: &[Input], layout: Layout) -> Result<HashMap<PathBuf, PathBuf>, Failure> {
    let written: Vec<_> = inputs.iter().map(|input| written_extension(input, layout)).collect();
    let reports: Vec<_> = inputs.iter().map(Input::unpacked_path).collect();
    let named = |extension: Extension| -> Vec<PathBuf> {
        let name = |(report, written): (&PathBuf, &Option<&str>)| {
            with_extension(name_of(report), *written, extension)
        };
        reports.iter().zip(&written).map(name).collect()
    };
    let places: Vec<_> = reports.iter().map(|report| place_of(report)).collect();
    let folders = places.iter().filter_map(|place| Some(place.parent()?.to_owned()));
    let common = folders.reduce(|a, b| common(&a, &b)).unwrap_or_default();
    let below = |(place, name): (&PathBuf, PathBuf)| -> PathBuf {
        let place = place.with_file_name(name);
        let below = place.strip_prefix(&common).unwrap_or(&place);
        // A drive, a root or `..` would lead out of the output folder.
        below.components().filter(|part| matches!(part, Component::Normal(_))).collect()
    };
    for extension in [Extension::Replaced, Extension::Appended] {
        let flat = named(extension);
        let nested = || places.iter().zip(named(extension)).map(below).collect();
        let unique = if are_unique(&flat) {
            Some(flat)
        } else {
            Some(nested()).filter(|names: &Vec<_>| are_unique(names))
        };
        if let Some(names) = unique {
            return Ok(inputs.iter().map(|input| input.path().to_owned()).zip(names).collect());
        }
    }
    let mut taken = HashMap::new();
    let mut same = places
        .iter()
        .zip(&reports)
        .filter_map(|(place, report)| Some((taken.insert(place, report)?, report)));
    let message = match same.next() {
        Some((other, report)) => {
            let (report, other) = (shown(report), shown(other));
            format!("{report}: the output of {other} would be overwritten; give each report once")
        }
        None => "two reports would have the same output; symbolicate them one by one".to_owned(),
    };
    Err(Failure::new(Cause::Usage, message))
}

fn are_unique(names: &[PathBuf]) -> bool {
    let mut seen = HashSet::new();
    names.iter().all(|name| seen.insert(name))
}

/// The extension of a report's output; `None` if the output keeps the report's own extension.
fn written_extension(report: &Input, layout: Layout) -> Option<&'static str> {
    match layout {
        Layout::Report(OutputFormat::Json) | Layout::Stackwalk(StackwalkFormat::Json) => Some("json"),
        Layout::Report(OutputFormat::Native) if is_process_file(report) => Some("json"),
        Layout::Report(OutputFormat::Text) if is_json_or_binary(report) || is_process_file(report) => {
            Some("crash")
        }
        Layout::Report(OutputFormat::Native | OutputFormat::Text) => None,
        Layout::Stackwalk(StackwalkFormat::Text) => Some("txt"),
    }
}

/// Whether a file is a minidump or has a microdump. Returns false unless it is a regular file.
pub(super) fn is_process_file(report: &Input) -> bool {
    let start = report.start();
    // A microdump can be anywhere in a log.
    let may_be_log = !start.is_empty() && !start.starts_with(b"{") && start.iter().all(|byte| *byte >= b'\t');
    is_process(&start) || may_be_log && report.read().is_ok_and(|text| is_process(&text))
}

/// Whether a file begins as JSON does, or is a report of a binary format. Returns false unless it is a regular file.
fn is_json_or_binary(report: &Input) -> bool {
    let start = report.start();
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&start).trim_ascii_start();
    // A bracket alone does not decide: lines of a log may begin with one, too.
    let text = text.strip_prefix(b"[").map_or(text, <[u8]>::trim_ascii_start);
    // Binary files begin with a byte that no text has.
    let is_binary = |text: Vec<u8>| {
        formats().iter().any(|format| format.kind() == FormatKind::Binary && format.recognises(&text))
    };
    let may_be_binary = start.iter().any(|byte| *byte < b'\t');
    text.starts_with(b"{") || (may_be_binary && report.read().is_ok_and(is_binary))
}

/// The file name `name` with the extension `written`.
fn with_extension(name: OsString, written: Option<&str>, extension: Extension) -> PathBuf {
    let mut path = PathBuf::from(name);
    let Some(written) = written.filter(|written| path.extension().is_none_or(|own| own != *written)) else {
        return path;
    };
    let own = path.extension().and_then(OsStr::to_str);
    let is_replaced =
        own.is_some_and(|own| ["ips", "json", "crash", "plcrash", "pb", "dmp", "mdmp"].contains(&own));
    match extension {
        Extension::Replaced if is_replaced => path.set_extension(written),
        _ => path.add_extension(written),
    };
    path
}

/// The path of a report, with links in its folder resolved. Standard input counts as a file in the current folder.
fn place_of(report: &Path) -> PathBuf {
    let name = name_of(report);
    let folder = report.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let absolute = || std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    folder.canonicalize().unwrap_or_else(|_| absolute()).join(name)
}

/// The deepest folder that both paths are below.
fn common(a: &Path, b: &Path) -> PathBuf {
    a.components().zip(b.components()).take_while(|(a, b)| a == b).map(|(part, _)| part).collect()
}

/// The file name of a report; `stdin` for standard input.
fn name_of(report: &Path) -> OsString {
    if report.as_os_str() == "-" { "stdin".into() } else { report.file_name().unwrap_or_default().to_owned() }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Cause::Other, format!("{}: cannot write: {error}", path.display()))
}

/// The output of a report. That of a large report is buffered in a temporary file, not in memory.
pub(super) enum Text {
    Memory(Vec<u8>),
    File(fs::File),
}

/// The largest report whose output is kept in memory, in bytes.
const MAX_IN_MEMORY: usize = 10_000_000;

impl Text {
    /// The output that `write` writes for a report of `size` bytes.
    ///
    /// # Errors
    ///
    /// [`Failure`] if the temporary file cannot be written.
    pub(super) fn of(
        size: usize,
        write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
    ) -> Result<Self, Failure> {
        if size <= MAX_IN_MEMORY {
            // Answers are usually shorter than a quarter of the report.
            let mut text = Vec::with_capacity(size + size / 4);
            // Writing to memory does not fail.
            let _ = write(&mut text);
            return Ok(Text::Memory(text));
        }
        let to_file = || {
            let mut out = BufWriter::new(tempfile::tempfile()?);
            write(&mut out)?;
            let mut file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            Ok(Text::File(file))
        };
        to_file().map_err(|error: io::Error| {
            let message = format!("cannot write a temporary file: {error}");
            Failure::new(Cause::Other, message)
        })
    }

    fn into_reader(self) -> Box<dyn io::Read> {
        match self {
            Text::Memory(text) => Box::new(io::Cursor::new(text)),
            Text::File(file) => Box::new(file),
        }
    }

    fn copy_to(self, mut out: impl io::Write) -> io::Result<()> {
        match self {
            Text::Memory(text) => out.write_all(&text),
            Text::File(mut file) => io::copy(&mut file, &mut out).map(drop),
        }
    }
}

#[derive(Serialize)]
struct OneReport<'s> {
    report: String,
    #[serde(flatten)]
    view: ReportView<'s>,
}

/// Writes one line of JSON. `known` are the images of all indexes and debug files.
pub(super) fn json(
    path: &Path,
    symbolicated: &Symbolicated<'_, '_>,
    known: &[KnownImage],
    mut out: &mut dyn io::Write,
) -> io::Result<()> {
    let view = symbolicated.view(known);
    serde_json::to_writer(&mut out, &OneReport { report: shown(path), view })?;
    out.write_all(b"\n")
}

#[derive(Serialize)]
struct FailedReport<'f> {
    report: String,
    error: FailureView<'f>,
}

/// One line of JSON for a report that could not be read.
pub(super) fn json_failure(path: &Path, failure: &Failure) -> Text {
    // Values of text and numbers alone are always serialized.
    let failed = FailedReport { report: shown(path), error: failure.into() };
    let mut out = serde_json::to_vec(&failed).unwrap_or_default();
    out.push(b'\n');
    Text::Memory(out)
}
