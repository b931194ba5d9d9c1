//! Crash reports in, symbolicated reports out.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use symdex_answer::{SourceError, SymbolicatorOptions};
use symdex_pipeline::{Batch, Failure, Input, Intake};
use symdex_report::{Addresses, Options, OutputFormat, Report, symbolicate};

use crate::arguments::{Paths, StoreLocations, line_policy, one_of, paths};
use crate::errors::{SourceWarning, of_failure, of_report, of_source};
use crate::{resolve, store};

/// Symbolicates crash reports from indexes, stores and debug files. Threads can share it.
///
/// Name at least one source. They are asked in this order:
///
/// * ``indexes``: index files, and folders of them that are searched with the folders below;
/// * ``stores``: paths of folders or URLs, as for :class:`Store`; ``timeout``, ``cache`` and ``cache_size`` are those
///   of :class:`Store`;
/// * ``debug_files``: dSYMs, ELF files, archives, and folders of debug files. ``debug_dirs`` are searched for files
///   that these refer to. With a store, the index of a debug file is put into the first store that can be written.
///
/// ``match_by_name`` also answers images without an id, from the only index of their name and architecture. Such an
/// answer can be of another build.
///
/// A source that cannot be read is left out with a :class:`SourceWarning`. MissingError is raised if an index or a
/// folder of indexes does not exist.
#[pyclass(frozen, module = "symdex")]
pub(crate) struct Symbolicator {
    symbolicator: symdex_answer::Symbolicator,
    /// Own the debug files that were taken out of archives.
    _unpacked: Vec<Batch>,
}

/// The output of a symbolicated report, before it is a Python object.
enum Output {
    Native(Vec<u8>),
    Text(Vec<u8>),
    Json(String),
}

#[pymethods]
impl Symbolicator {
    #[new]
    #[pyo3(signature = (*, indexes=None, stores=None, debug_files=None, debug_dirs=None, match_by_name=false,
                        timeout=10.0, cache=None, cache_size=10_000_000_000))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        indexes: Option<Paths>,
        stores: Option<StoreLocations>,
        debug_files: Option<Paths>,
        debug_dirs: Option<Paths>,
        match_by_name: bool,
        timeout: f64,
        cache: Option<PathBuf>,
        cache_size: u64,
    ) -> PyResult<Self> {
        let stores = stores.map(|stores| stores.0).unwrap_or_default();
        let mut options = SymbolicatorOptions::new()
            .always_store(!stores.is_empty())
            .match_by_name(match_by_name)
            .store_options(store::options(timeout, cache, cache_size)?);
        options = paths(indexes).into_iter().fold(options, SymbolicatorOptions::index);
        options = paths(debug_dirs).into_iter().fold(options, SymbolicatorOptions::debug_dir);
        options = stores.into_iter().fold(options, |options, store| options.store(store.0));
        let mut warnings = Vec::new();
        let opened = py.detach(|| {
            let mut unpacked = Vec::new();
            for path in &paths(debug_files) {
                options = add_debug_files(options, path, &mut unpacked, &mut warnings).map_err(of_failure)?;
            }
            let skipped = &mut |error: SourceError| warnings.push(error.to_string());
            let symbolicator = symdex_answer::Symbolicator::open(&options, skipped).map_err(of_source)?;
            PyResult::Ok(Self { symbolicator, _unpacked: unpacked })
        })?;
        warnings.iter().try_for_each(|message| warn(py, message))?;
        Ok(opened)
    }

    /// Returns ``report`` with functions, files and lines.
    ///
    /// ``report`` is the text of the report, its bytes, or a path object with its path. The format is recognised by the
    /// content: docs/REPORTS.md lists the formats.
    ///
    /// ``format`` chooses the output:
    ///
    /// * ``"native"``: the same report with symbolicated frames, a ``str`` if the report is one, otherwise ``bytes``;
    /// * ``"text"``: a ``str`` that people read, also if the report is JSON or binary;
    /// * ``"json"``: a dict of the images, threads and frames. It has the members that ``symdex symbolicate --json``
    ///   prints, without ``report``. Images have a ``status``, such as ``"found"`` or ``"missing"``, and a
    ///   ``reason``.
    ///
    /// A frame without an answer stays as it is. ``lines`` is as in :meth:`Index.lookup`. ``addresses="as-given"``
    /// looks up return addresses as atos does. ``inlines=False`` leaves out inlined functions, and ``demangle=False``
    /// writes mangled names. ``only_missing`` leaves frames alone that have a name already.
    ///
    /// Raises UnsupportedError if the report is of no known format, DamagedError if it is broken.
    #[pyo3(signature = (report, *, format="native", lines="statement", addresses="adjusted", inlines=true,
                        demangle=true, only_missing=false))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn symbolicate<'py>(
        &self,
        py: Python<'py>,
        report: &Bound<'py, PyAny>,
        format: &str,
        lines: &str,
        addresses: &str,
        inlines: bool,
        demangle: bool,
        only_missing: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let formats =
            [("native", OutputFormat::Native), ("text", OutputFormat::Text), ("json", OutputFormat::Json)];
        let format = one_of(format, "format", &formats)?;
        let kinds = [("adjusted", Addresses::Adjusted), ("as-given", Addresses::AsGiven)];
        let options = Options::new()
            .lines(line_policy(lines)?)
            .addresses(one_of(addresses, "addresses", &kinds)?)
            .inlines(inlines)
            .demangle(demangle)
            .only_missing(only_missing);
        let (text, is_text) = report_text(py, report)?;
        let output = py.detach(|| self.output(&text, &options, format))?;
        Ok(match output {
            Output::Native(bytes) if !is_text => PyBytes::new(py, &bytes).into_any(),
            Output::Native(bytes) | Output::Text(bytes) => {
                PyString::new(py, &String::from_utf8_lossy(&bytes)).into_any()
            }
            Output::Json(json) => py.import("json")?.call_method1("loads", (json,))?,
        })
    }

    /// Resolves many addresses of any number of images. Returns a ``pyarrow.Table`` with a row for each address, in
    /// their order. Needs pyarrow.
    ///
    /// ``ids`` are the ids of the images: one for each address, or a ``str`` for all. ``addresses`` are image offsets.
    /// Both are arrays of pyarrow or NumPy, or lists. They may be in any order and repeat; ascending addresses of one
    /// image after the other are the fastest. ``lines`` is as in :meth:`Index.lookup`.
    ///
    /// The columns are ``status`` (``"symbolicated"``, ``"missing_symbol"``, or why the image or the address has no
    /// answer, such as ``"missing"`` or ``"damaged"``), ``reason``, ``function_start``, ``table`` and ``frames``: a list
    /// of ``function``, ``name``, ``file`` and ``line``, the innermost function first. All but the last are inlined into
    /// the next one. Texts are dictionaries, each chunk of the table has its own, and the memory is not copied.
    ///
    /// Raises ValueError if an id or an address is wrong or null.
    ///
    /// >>> table = symbolicator.resolve(ids, addresses)                    # doctest: +SKIP
    /// >>> table.column("frames")[0].as_py()[0]["function"]                # doctest: +SKIP
    #[pyo3(signature = (ids, addresses, *, lines="statement"))]
    fn resolve<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        addresses: &Bound<'py, PyAny>,
        lines: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        resolve::table(py, &self.symbolicator, ids, addresses, line_policy(lines)?)
    }
}

impl Symbolicator {
    fn output(&self, text: &[u8], options: &Options, format: OutputFormat) -> PyResult<Output> {
        let report = Report::parse(text).map_err(of_report)?;
        let ignored = |_: symdex_answer::Event<'_>| {};
        let mut session = self.symbolicator.session(&ignored);
        let symbolicated = symbolicate(&report, &mut session, options);
        let mut out = Vec::new();
        match format {
            OutputFormat::Native => symbolicated.write(&mut out).map(|()| Output::Native(out)),
            OutputFormat::Text => symbolicated.write_text(&mut out).map(|()| Output::Text(out)),
            OutputFormat::Json => {
                let mut images = report.images().iter().zip(symbolicated.images());
                let is_any_missing = images.any(|(image, outcome)| outcome.lacks_index_of(image));
                let known = if is_any_missing { self.symbolicator.known() } else { Default::default() };
                serde_json::to_string(&symbolicated.view(&known)).map(Output::Json).map_err(Into::into)
            }
        }
        .map_err(PyErr::from)
    }
}

/// The report, and whether it was given as text.
fn report_text(py: Python<'_>, report: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, bool)> {
    if let Ok(text) = report.cast::<PyString>() {
        return Ok((text.to_str()?.into(), true));
    }
    if let Ok(bytes) = pyo3::buffer::PyBuffer::<u8>::get(report) {
        return Ok((bytes.to_vec(py)?, false));
    }
    let Ok(path) = report.extract::<PathBuf>() else {
        return Err(PyTypeError::new_err("report is neither str, bytes nor a path object"));
    };
    let read = py.detach(|| std::fs::read(&path));
    Ok((read.map_err(|error| of_failure(Failure::unreadable(&path, &error)))?, false))
}

/// Adds the debug files at `path` to `options`: those of an archive are unpacked into `batches`.
fn add_debug_files(
    mut options: SymbolicatorOptions,
    path: &Path,
    batches: &mut Vec<Batch>,
    warnings: &mut Vec<String>,
) -> Result<SymbolicatorOptions, Failure> {
    let input = Input::Path(path.to_owned());
    if path.is_dir() || !input.is_archive_or_pipe() {
        return Ok(options.debug_files(path));
    }
    let mut intake = Intake::new(vec![input]);
    while let Some(mut batch) = intake.next_batch(&())? {
        warnings.extend(batch.failures.iter().map(ToString::to_string));
        for file in std::mem::take(&mut batch.files).into_files() {
            match file {
                Ok(file) => options = options.unpacked(file),
                Err(error) => warnings.push(error.to_string()),
            }
        }
        batches.push(batch);
    }
    Ok(options)
}

/// Issues a `SourceWarning`.
pub(crate) fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    let message = CString::new(message.replace('\0', "\u{fffd}"))?;
    PyErr::warn(py, &py.get_type::<SourceWarning>(), &message, 1)
}
