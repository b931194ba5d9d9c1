//! The Python package `symdex`: the extension module behind it. `python/symdex/_symdex.pyi` has its types.
//!
//! Every function that reads files, asks stores, builds, or looks up many addresses lets other Python threads run
//! meanwhile. A lookup of one address in an open index takes microseconds and does not.

mod arguments;
mod build;
mod columns;
mod errors;
mod frame;
mod index;
mod metadata;
mod resolve;
mod store;
mod symbolicator;

use pyo3::prelude::*;

/// Symbol indexes: built from debug files, read, stored, and used to symbolicate crash reports.
#[pymodule]
mod _symdex {
    use super::*;

    #[pymodule_export]
    use crate::build::{BuildResult, BuiltImage, build};
    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::errors::{DamagedError, Error, SourceWarning, UnavailableError, UnsupportedError};
    #[pymodule_export]
    use crate::frame::{Frame, demangle};
    #[pymodule_export]
    use crate::index::Index;
    #[pymodule_export]
    use crate::metadata::Metadata;
    #[pymodule_export]
    use crate::store::{Store, StoreEntry};
    #[pymodule_export]
    use crate::symbolicator::Symbolicator;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python tools look for")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Adds the exception with two bases, and gives every exception the attribute that `build` sets.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("MissingError", crate::errors::missing_error(py)?)?;
        py.get_type::<Error>().setattr("result", py.None())
    }
}
