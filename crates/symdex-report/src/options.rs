//! The options of symbolication.

use symdex::LinePolicy;

/// How [`symbolicate`](crate::symbolicate()) answers frames.
///
/// ```
/// use symdex::LinePolicy;
/// use symdex_report::Options;
///
/// // The answers of atos: as given, without inlined functions.
/// let like_atos = Options::new().lines(LinePolicy::Exact).as_given(true).inlines(false);
/// assert_ne!(like_atos, Options::default());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) lines: LinePolicy,
    pub(crate) as_given: bool,
    pub(crate) inlines: bool,
    pub(crate) demangle: bool,
    pub(crate) only_missing: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lines: LinePolicy::Statement,
            as_given: false,
            inlines: true,
            demangle: true,
            only_missing: false,
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

    /// Sets whether return addresses are looked up unchanged, as atos does. The default is `false`: they are looked up
    /// one byte before, which is in the call instruction.
    #[must_use]
    pub fn as_given(self, as_given: bool) -> Self {
        Self { as_given, ..self }
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
}
