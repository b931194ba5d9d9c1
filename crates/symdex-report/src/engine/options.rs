//! The options of symbolication.

use symdex::LinePolicy;

/// The format in which a symbolicated report is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub enum OutputFormat {
    /// The format of the report. Only frames are changed.
    #[default]
    Native,
    /// Text for people. A JSON or binary report gets the layout of a .crash; others are written as with native.
    Text,
    /// JSON, one object per line for each report.
    Json,
}

/// How return addresses are looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub enum Addresses {
    /// One byte before the address, which is in the call instruction.
    #[default]
    Adjusted,
    /// At the address itself, as atos does.
    AsGiven,
}

/// How [`symbolicate`](crate::symbolicate()) answers frames.
///
/// ```
/// use symdex::LinePolicy;
/// use symdex_report::{Addresses, Options};
///
/// // The answers of atos: as given, without inlined functions.
/// let like_atos = Options::new().lines(LinePolicy::Exact).addresses(Addresses::AsGiven).inlines(false);
/// assert_ne!(like_atos, Options::default());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) lines: LinePolicy,
    pub(crate) addresses: Addresses,
    pub(crate) inlines: bool,
    pub(crate) demangle: bool,
    pub(crate) only_missing: bool,
    pub(crate) output: OutputFormat,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lines: LinePolicy::Statement,
            addresses: Addresses::Adjusted,
            inlines: true,
            demangle: true,
            only_missing: false,
            output: OutputFormat::Json,
        }
    }
}

impl Options {
    /// The defaults: statement lines, adjusted return addresses, inlined functions, demangled names, and lines for
    /// frames that have a name already.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how line 0 is answered. The default is [`LinePolicy::Statement`].
    #[must_use]
    pub fn lines(self, lines: LinePolicy) -> Self {
        Self { lines, ..self }
    }

    /// Sets how return addresses are looked up. The default is [`Addresses::Adjusted`].
    #[must_use]
    pub fn addresses(self, addresses: Addresses) -> Self {
        Self { addresses, ..self }
    }

    /// Sets whether inlined functions get frames of their own. The default is `true`. If `false`, each address yields
    /// one frame: the function that is not inlined.
    #[must_use]
    pub fn inlines(self, inlines: bool) -> Self {
        Self { inlines, ..self }
    }

    /// Sets whether names are demangled. The default is `true`.
    #[must_use]
    pub fn demangle(self, demangle: bool) -> Self {
        Self { demangle, ..self }
    }

    /// Sets whether frames that have a function name stay unchanged even if they lack file and line. The default is
    /// `false`.
    #[must_use]
    pub fn only_missing(self, only_missing: bool) -> Self {
        Self { only_missing, ..self }
    }

    /// Sets the format in which the report will be written. Answers may have 64 MiB in it, or 16 times the report. The
    /// default is JSON, whose answers are the longest.
    #[must_use]
    pub fn output(self, output: OutputFormat) -> Self {
        Self { output, ..self }
    }
}
