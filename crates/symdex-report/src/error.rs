//! What can go wrong when a report is read.

/// Why a report could not be read.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No format recognises the text.
    #[error(
        "not a crash report of a known format; expected one of Apple's (.crash, .ips, sample, spindump, MetricKit), of \
         PLCrashReporter's, KSCrash's, Sentry's (JSON events), Android's (tombstone, logcat), HarmonyOS's (cppcrash) or a \
         sanitizer's, or a list of `image address load`"
    )]
    UnknownFormat,
    /// A report of this kind has no stacks, or none that are read.
    #[error("{what}")]
    Unsupported {
        /// What it is, and what was expected.
        what: String,
    },
    /// The text is of a known format, and broken or cut.
    #[error("malformed report: {what} at byte {at}")]
    Malformed {
        /// What is wrong.
        what: &'static str,
        /// Where, in bytes from the start.
        at: usize,
    },
    /// The text is too long.
    #[error("the report has {size} bytes; 4 GiB are the most that is read")]
    TooLarge {
        /// How long it is, in bytes.
        size: usize,
    },
}
