//! The exceptions, and which of them an error of symdex becomes.

use std::path::Path;

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileNotFoundError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use symdex::Cause;
use symdex_answer::SourceError;
use symdex_pipeline::Failure;

create_exception!(
    symdex,
    Error,
    PyException,
    "Something could not be read, built, found or written.\n\nThe message says what was found, what was expected, and \
     what to do.\nThe subclasses tell the cases apart that programs treat differently."
);
create_exception!(
    symdex,
    DamagedError,
    Error,
    "A file, an index or a report is damaged. Copying or building it again helps."
);
create_exception!(
    symdex,
    UnsupportedError,
    Error,
    "A file is of a kind or version that symdex does not read, or this build has no code for a kind of store."
);
create_exception!(
    symdex,
    UnavailableError,
    Error,
    "A store cannot be reached or is overloaded. The same call may succeed later."
);
create_exception!(
    symdex,
    SourceWarning,
    PyUserWarning,
    "A source of answers or a part of an input is left out, because it cannot be read. The others are used."
);

/// The type `MissingError`, which has two bases.
///
/// # Errors
///
/// Python's error, if it cannot make the type.
pub(crate) fn missing_error(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let made = TYPE.get_or_try_init(py, || {
        let bases = (py.get_type::<Error>(), py.get_type::<PyFileNotFoundError>());
        let members = PyDict::new(py);
        members.set_item("__module__", "symdex")?;
        members
            .set_item("__doc__", "A file, an image or an architecture that was asked for is not there.")?;
        let made = py.get_type::<PyType>().call1(("MissingError", bases, members))?;
        PyResult::Ok(made.cast_into::<PyType>()?.unbind())
    });
    made.map(|made| made.bind(py))
}

/// A `MissingError` with this message.
pub(crate) fn missing(message: String) -> PyErr {
    Python::attach(|py| {
        missing_error(py).map_or_else(|error| error, |missing| PyErr::from_type(missing.clone(), message))
    })
}

/// The exception for an error of this cause.
fn of(cause: Cause, message: String) -> PyErr {
    match cause {
        Cause::Damaged | Cause::Lost => DamagedError::new_err(message),
        Cause::Unsupported => UnsupportedError::new_err(message),
        Cause::Missing | Cause::NotFound => missing(message),
        Cause::Unavailable => UnavailableError::new_err(message),
        Cause::Usage => PyValueError::new_err(message),
        _ => Error::new_err(message),
    }
}

/// The exception for `failure`.
pub(crate) fn of_failure(failure: Failure) -> PyErr {
    of(failure.cause, failure.message)
}

/// The exception for an error of an open index.
pub(crate) fn of_index(error: symdex::Error) -> PyErr {
    of(error.cause(), error.to_string())
}

/// The exception for the index file at `path`, which cannot be opened. A file that is no index is not supported.
pub(crate) fn of_index_file(path: &Path, error: symdex::Error) -> PyErr {
    of(error.cause(), symdex_store::Error::index(path, error).to_string())
}

/// The exception for an error of a store or of an index in it.
pub(crate) fn of_store(error: symdex_store::Error) -> PyErr {
    of(error.cause(), error.to_string())
}

/// The exception for a source of answers that cannot be used.
pub(crate) fn of_source(error: SourceError) -> PyErr {
    of(error.cause(), error.to_string())
}

/// The exception for a report that cannot be read.
pub(crate) fn of_report(error: symdex_report::Error) -> PyErr {
    of(error.cause(), error.to_string())
}

/// The exception for a wrong argument.
pub(crate) fn of_argument(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}
