//! The answers of many lookups as columns, for NumPy, pandas and Arrow.

use std::collections::HashMap;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use symdex::{Frames, Table};

/// The frames of many lookups, as columns with one row for each frame.
///
/// The columns are ``array.array`` objects, which ``numpy.asarray`` takes without a copy. The frames of offset ``i``
/// are the rows ``starts[i]`` to ``starts[i + 1]``, the innermost first. A gap has no rows.
///
/// >>> columns = index.lookup_columns(offsets)                         # doctest: +SKIP
/// >>> lines = numpy.asarray(columns.line)                             # doctest: +SKIP
/// >>> depths = numpy.diff(numpy.asarray(columns.starts))              # doctest: +SKIP
/// >>> functions = numpy.array(columns.functions)[columns.name]        # doctest: +SKIP
#[pyclass(frozen, get_all, module = "symdex")]
pub(crate) struct Columns {
    /// The first row of each offset, and at the end the number of rows (64 bits).
    starts: Py<PyAny>,
    /// The position in ``functions`` and ``names``; -1 if the code has no name (32 bits).
    name: Py<PyAny>,
    /// The position in ``files``; -1 if there is no file (32 bits).
    file: Py<PyAny>,
    /// The line; 0 for code that the compiler generated, -1 if there is no line (64 bits).
    line: Py<PyAny>,
    /// 1 if the function is inlined into that of the next row, otherwise 0 (8 bits).
    inlined: Py<PyAny>,
    /// The image offset at which the function starts that is not inlined; -1 if it is not known (64 bits).
    function_start: Py<PyAny>,
    /// 1 if the frame comes from debug information, 0 if from the symbol table (8 bits).
    has_debug_information: Py<PyAny>,
    /// The readable names. Two mangled names can have the same readable name.
    functions: Vec<String>,
    /// The mangled names, in the order of ``functions``.
    names: Vec<String>,
    /// The paths of source files.
    files: Vec<String>,
}

#[pymethods]
impl Columns {
    /// The number of rows.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.line.bind(py).len()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Columns of {} frames>", self.__len__(py)?))
    }
}

/// Distinct strings, numbered in the order in which they come.
#[derive(Default)]
struct Strings {
    numbers: HashMap<Vec<u8>, i32>,
    all: Vec<Vec<u8>>,
}

impl Strings {
    /// The number of `string`; -1 if there is none.
    fn number(&mut self, string: Option<&[u8]>) -> PyResult<i32> {
        let Some(string) = string else { return Ok(-1) };
        if let Some(number) = self.numbers.get(string) {
            return Ok(*number);
        }
        let number = i32::try_from(self.all.len())
            .map_err(|_| PyOverflowError::new_err("the answers have more than 2^31 distinct strings"))?;
        self.numbers.insert(string.to_owned(), number);
        self.all.push(string.to_owned());
        Ok(number)
    }

    fn texts(&self, text: impl Fn(&[u8]) -> String) -> Vec<String> {
        self.all.iter().map(|string| text(string)).collect()
    }
}

#[derive(Clone, Copy)]
struct Row {
    name: i32,
    file: i32,
    line: i64,
    inlined: i8,
    function_start: i64,
    has_debug_information: i8,
}

/// The answers so far.
pub(crate) struct AnswerColumns {
    names: Strings,
    files: Strings,
    /// In the order of the answers.
    rows: Vec<Row>,
    /// For each offset, where its rows are.
    places: Vec<std::ops::Range<usize>>,
}

impl AnswerColumns {
    /// No answers yet for this many offsets.
    pub(crate) fn new(offsets: usize) -> Self {
        let (names, files, rows) = Default::default();
        Self { names, files, rows, places: vec![0..0; offsets] }
    }

    /// Adds the answer for the offset at `place`.
    pub(crate) fn add(&mut self, place: usize, frames: Option<Frames<'_>>) -> PyResult<()> {
        let first = self.rows.len();
        for frame in frames.iter().flat_map(Frames::iter) {
            let far = |_| PyOverflowError::new_err("a function starts beyond 2^63 bytes from its image");
            self.rows.push(Row {
                name: self.names.number(frame.name)?,
                file: self.files.number(frame.file)?,
                line: frame.line.map_or(-1, i64::from),
                inlined: frame.inlined.into(),
                function_start: frame
                    .function_start
                    .map_or(Ok(-1), |start| start.0.try_into().map_err(far))?,
                has_debug_information: (frame.table == Table::Dwarf).into(),
            });
        }
        self.places[place] = first..self.rows.len();
        Ok(())
    }

    /// The rows in the order of the offsets, and where the rows of each offset start.
    fn in_order(&self) -> (Vec<Row>, Vec<i64>) {
        let mut rows = Vec::with_capacity(self.rows.len());
        let mut starts = vec![0];
        for place in &self.places {
            rows.extend_from_slice(&self.rows[place.clone()]);
            // A Vec has at most 2^63 - 1 bytes.
            starts.push(rows.len() as i64);
        }
        (rows, starts)
    }

    /// The columns. Other threads run while the names are demangled.
    pub(crate) fn columns(self, py: Python<'_>) -> PyResult<Columns> {
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let ((rows, starts), functions, names, files) = py.detach(|| {
            let functions = self.names.texts(|name| symdex_demangle::demangle(name).into_owned());
            (self.in_order(), functions, self.names.texts(lossy), self.files.texts(lossy))
        });
        let of = |code, bytes: Vec<u8>| array(py, code, &bytes);
        Ok(Columns {
            starts: of("q", starts.iter().copied().flat_map(i64::to_ne_bytes).collect())?,
            name: of("i", rows.iter().flat_map(|row| row.name.to_ne_bytes()).collect())?,
            file: of("i", rows.iter().flat_map(|row| row.file.to_ne_bytes()).collect())?,
            line: of("q", rows.iter().flat_map(|row| row.line.to_ne_bytes()).collect())?,
            inlined: of("b", rows.iter().flat_map(|row| row.inlined.to_ne_bytes()).collect())?,
            function_start: of("q", rows.iter().flat_map(|row| row.function_start.to_ne_bytes()).collect())?,
            has_debug_information: of(
                "b",
                rows.iter().flat_map(|row| row.has_debug_information.to_ne_bytes()).collect(),
            )?,
            functions,
            names,
            files,
        })
    }
}

/// An `array.array` with items of the type `code`.
fn array(py: Python<'_>, code: &str, bytes: &[u8]) -> PyResult<Py<PyAny>> {
    let class = py.import("array")?.getattr("array")?;
    Ok(class.call1((code, PyBytes::new(py, bytes)))?.unbind())
}
