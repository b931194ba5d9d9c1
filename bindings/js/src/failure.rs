//! Errors as the package throws them.

use serde::Serialize;
use symdex::Cause;

/// Why a call fails. The package throws it as a `SymdexError`.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) kind: Cause,
    pub(crate) message: String,
}

impl From<&symdex::Error> for Failure {
    fn from(error: &symdex::Error) -> Self {
        Self { kind: error.cause(), message: error.to_string() }
    }
}

impl From<symdex_report::Error> for Failure {
    fn from(error: symdex_report::Error) -> Self {
        Self { kind: error.cause(), message: error.to_string() }
    }
}

impl From<symdex_build::Error> for Failure {
    fn from(error: symdex_build::Error) -> Self {
        use symdex_build::Error;
        match error {
            Error::TooLarge { .. } | Error::TemporaryFile { .. } => Self {
                kind: Cause::Limit,
                message: "the debug file needs more memory than WebAssembly has; build its index with the command symdex"
                    .to_owned(),
            },
            error => Self { kind: error.cause(), message: error.to_string() },
        }
    }
}

/// The options of a call, which are JSON, are not as the types of the package say.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self { kind: Cause::Usage, message: error.to_string() }
    }
}
