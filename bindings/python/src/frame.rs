//! One frame of an answer.

use pyo3::prelude::*;
use symdex::{Frame as FoundFrame, Table};

use crate::errors::of_argument;

/// A function at an address: the innermost inlined one comes first in an answer.
///
/// Frames compare equal if all their attributes are equal, can be counted in a dict, and can be pickled.
#[pyclass(frozen, eq, hash, module = "symdex")]
#[derive(PartialEq, Hash)]
pub(crate) struct Frame {
    name: Option<Vec<u8>>,
    file: Option<Vec<u8>>,
    line: Option<u32>,
    inlined: bool,
    function_start: Option<u64>,
    table: Table,
}

impl From<FoundFrame<'_>> for Frame {
    fn from(frame: FoundFrame<'_>) -> Self {
        Self {
            name: frame.name.map(<[u8]>::to_vec),
            file: frame.file.map(<[u8]>::to_vec),
            line: frame.line,
            inlined: frame.inlined,
            function_start: frame.function_start.map(|start| start.0),
            table: frame.table,
        }
    }
}

/// What [`Frame::__getnewargs__`] gives to [`Frame::new`]: the members in their order. Names and paths are bytes,
/// because they need not be UTF-8.
type Parts<'f> = (Option<&'f [u8]>, Option<&'f [u8]>, Option<u32>, bool, Option<u64>, &'static str);

fn text(bytes: &Option<Vec<u8>>) -> Option<String> {
    bytes.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

#[pymethods]
impl Frame {
    #[new]
    fn new(
        name: Option<Vec<u8>>,
        file: Option<Vec<u8>>,
        line: Option<u32>,
        inlined: bool,
        function_start: Option<u64>,
        table: &str,
    ) -> PyResult<Self> {
        let of_name = Table::ALL.iter().copied().find(|known| known.name() == table);
        let table = of_name.ok_or_else(|| of_argument(format_args!("there is no table {table:?}")))?;
        Ok(Self { name, file, line, inlined, function_start, table })
    }

    /// What pickle and copy give to the constructor.
    fn __getnewargs__(&self) -> Parts<'_> {
        let Self { name, file, line, inlined, function_start, table } = self;
        (name.as_deref(), file.as_deref(), *line, *inlined, *function_start, table.name())
    }

    /// The readable name, such as ``ns::Widget::draw(int) const``; ``None`` if the code has no name.
    #[getter]
    fn function(&self) -> Option<String> {
        self.name.as_deref().map(|name| symdex_demangle::demangle(name).into_owned())
    }

    /// The mangled name, as linkers see it, without the underscore that Mach-O files begin names with.
    #[getter]
    fn name(&self) -> Option<String> {
        text(&self.name)
    }

    /// The path of the source file, as the debug information states it.
    #[getter]
    fn file(&self) -> Option<String> {
        text(&self.file)
    }

    /// The line, from 1 on; 0 for code that the compiler generated; ``None`` if there is no line.
    #[getter]
    fn line(&self) -> Option<u32> {
        self.line
    }

    /// Whether the function is inlined into the next frame. The last frame is not inlined.
    #[getter]
    fn inlined(&self) -> bool {
        self.inlined
    }

    /// The image offset at which the function starts that is not inlined.
    #[getter]
    fn function_start(&self) -> Option<u64> {
        self.function_start
    }

    /// Where the frame comes from: ``"dwarf"`` (debug information) or ``"symbol_table"`` (names only).
    #[getter]
    fn table(&self) -> &'static str {
        self.table.name()
    }

    fn __repr__(&self) -> String {
        let Self { line, inlined, .. } = self;
        let function = self.function().unwrap_or_else(|| "??".to_owned());
        let file = self.file().map(|file| format!(" at {file}")).unwrap_or_default();
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("<Frame {function}{file}{line}{}>", if *inlined { " [inlined]" } else { "" })
    }
}

/// Returns the readable text of a mangled name. A name that no demangler reads is returned unchanged.
///
/// >>> demangle("_ZN3foo3barEi")
/// 'foo::bar(int)'
#[pyfunction]
pub(crate) fn demangle(name: &str) -> String {
    symdex_demangle::demangle(name.as_bytes()).into_owned()
}
