//! Errors as the package throws them.

use serde::Serialize;

/// Why a call fails. The package throws it as a `SymdexError`.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
}

impl From<&symdex::Error> for Failure {
    fn from(error: &symdex::Error) -> Self {
        let kind = match error {
            symdex::Error::NotAnIndex { .. } => "not_an_index",
            error if error.is_unsupported() => "unsupported",
            _ => "damaged",
        };
        Self { kind, message: error.to_string() }
    }
}

impl From<symdex_report::Error> for Failure {
    fn from(error: symdex_report::Error) -> Self {
        let kind = match error {
            symdex_report::Error::UnknownFormat { .. } => "unknown_report",
            symdex_report::Error::Malformed { .. } => "malformed_report",
            _ => "unsupported",
        };
        Self { kind, message: error.to_string() }
    }
}

impl From<symdex_build::Error> for Failure {
    fn from(error: symdex_build::Error) -> Self {
        use symdex_build::Error;
        match error {
            Error::NotADebugFile { .. } => Self { kind: "not_a_debug_file", message: error.to_string() },
            Error::TooLarge { .. } | Error::TemporaryFile { .. } => Self {
                kind: "out_of_memory",
                message: "the debug file needs more memory than WebAssembly has; build its index with the command symdex"
                    .to_owned(),
            },
            error if error.is_unsupported() => Self { kind: "unsupported", message: error.to_string() },
            error => Self { kind: "damaged", message: error.to_string() },
        }
    }
}

/// The options of a call, which are JSON, are not as the types of the package say.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self { kind: "usage", message: error.to_string() }
    }
}
