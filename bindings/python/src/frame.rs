//! One frame of an answer.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use pyo3::prelude::*;
use symdex::OwnedFrame;

/// A function at an address: the innermost inlined one comes first in an answer.
///
/// Frames compare equal if all their attributes are equal, and can be counted in a dict.
#[pyclass(frozen, eq, module = "symdex")]
#[derive(PartialEq)]
pub(crate) struct Frame(pub(crate) OwnedFrame);

fn text(bytes: &Option<Vec<u8>>) -> Option<String> {
    bytes.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

#[pymethods]
impl Frame {
    /// The readable name, such as ``ns::Widget::draw(int) const``; ``None`` if the code has no name.
    #[getter]
    fn function(&self) -> Option<String> {
        self.0.name.as_deref().map(|name| symdex_demangle::demangle(name).into_owned())
    }

    /// The mangled name, as linkers see it, without the underscore that Mach-O files begin names with.
    #[getter]
    fn name(&self) -> Option<String> {
        text(&self.0.name)
    }

    /// The path of the source file, as the debug information states it.
    #[getter]
    fn file(&self) -> Option<String> {
        text(&self.0.file)
    }

    /// The line, from 1 on; 0 for code that the compiler generated; ``None`` if there is no line.
    #[getter]
    fn line(&self) -> Option<u32> {
        self.0.line
    }

    /// Whether the function is inlined into the next frame. The last frame is not inlined.
    #[getter]
    fn inlined(&self) -> bool {
        self.0.inlined
    }

    /// The image offset at which the function starts that is not inlined.
    #[getter]
    fn function_start(&self) -> Option<u64> {
        self.0.function_start.map(|start| start.0)
    }

    /// Where the frame comes from: ``"dwarf"`` (debug information) or ``"symbol_table"`` (names only).
    #[getter]
    fn table(&self) -> &'static str {
        self.0.table.name()
    }

    fn __repr__(&self) -> String {
        let OwnedFrame { line, inlined, .. } = &self.0;
        let function = self.function().unwrap_or_else(|| "??".to_owned());
        let file = self.file().map(|file| format!(" at {file}")).unwrap_or_default();
        let line = line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("<Frame {function}{file}{line}{}>", if *inlined { " [inlined]" } else { "" })
    }

    fn __hash__(&self) -> u64 {
        let OwnedFrame { name, file, line, inlined, function_start, table, .. } = &self.0;
        let mut hasher = DefaultHasher::new();
        (name, file, line, inlined, function_start, table).hash(&mut hasher);
        hasher.finish()
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
