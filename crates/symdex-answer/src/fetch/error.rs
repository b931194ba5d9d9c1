//! Why a debug file could not be fetched.

use std::fmt;
use std::io;

use symdex::Cause;
use symdex_store::Error as StoreError;

/// Why no source has given a debug file that can be used, although not all sources lack it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchError {
    /// One for each source or file that has failed. Not empty.
    pub(crate) failures: Vec<String>,
}

impl FetchError {
    /// A text for each source or file that has failed. The texts have no secrets.
    #[must_use]
    pub fn failures(&self) -> &[String] {
        &self.failures
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.failures.join("; "))
    }
}

impl std::error::Error for FetchError {}

/// Why a file of one source cannot be fetched.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    /// Whether the same request may succeed later, so that it is repeated.
    pub(crate) is_transient: bool,
}

impl Failure {
    pub(crate) fn lasting(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_transient: false }
    }

    #[cfg(feature = "remote")]
    pub(crate) fn transient(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_transient: true }
    }

    /// This failure, as the error of a read.
    pub(crate) fn into_io(self) -> io::Error {
        io::Error::other(self)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Failure {}

/// The error of a read of a source's file. `otherwise` is said of errors that are not from the source.
pub(crate) fn of_read(error: io::Error, otherwise: &str) -> Failure {
    match error.downcast::<Failure>() {
        Ok(failure) => failure,
        Err(error) => match error.downcast::<StoreError>() {
            Ok(error) => error.into(),
            Err(error) => Failure::lasting(format!("{otherwise}: {error}")),
        },
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self { reason: error.to_string(), is_transient: error.cause() == Cause::Unavailable }
    }
}
