//! The URL of a source of debug files.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use symdex_store::{StoreUrl, StoreUrlError};

use super::layout::Layout;

/// The URL of a source of debug files: where it is, and how its files are laid out.
///
/// | URL | source |
/// |---|---|
/// | `PATH`, `dir:PATH` | a folder |
/// | `https://HOST/PATH`, `http://HOST/PATH` | a web server, with the layout of debuginfod |
/// | `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` | an object store |
///
/// The name of a [`Layout`] and `+` may stand before it, as in `unified+s3://BUCKET`. Without it, all layouts of a
/// folder and of an object store are tried.
///
/// [`Display`](fmt::Display) and [`Debug`] leave out users, passwords and queries, which may be secrets.
///
/// ```
/// use symdex_answer::fetch::SourceUrl;
///
/// let url: SourceUrl = "unified+https://me:secret@symbols.example/files".parse()?;
/// assert_eq!(url.to_string(), "unified+https://symbols.example/files");
/// # Ok::<(), symdex_store::StoreUrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SourceUrl {
    /// The layout that the URL names.
    layout: Option<Layout>,
    pub(crate) location: StoreUrl,
}

impl SourceUrl {
    /// Reads a URL from a command line. Other users of the machine can read it there, so secrets are refused. Use
    /// [`FromStr`] for a URL from the environment or a configuration file.
    ///
    /// # Errors
    ///
    /// [`StoreUrlError`] if the text is not a URL of a source, or has a user or a query.
    pub fn from_argument(text: &str) -> Result<Self, StoreUrlError> {
        let (layout, rest) = split_layout(text);
        Ok(Self { layout, location: StoreUrl::of_source_argument(rest)? })
    }

    /// The layouts that are tried, in this order.
    #[must_use]
    pub fn layouts(&self) -> Vec<Layout> {
        match self.layout {
            Some(layout) => vec![layout],
            None if self.location.web().is_some() => vec![Layout::Debuginfod],
            None => Layout::ALL.into(),
        }
    }
}

impl FromStr for SourceUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        let (layout, rest) = split_layout(text);
        Ok(Self { layout, location: StoreUrl::of_source(rest)? })
    }
}

/// The layout that `text` begins with, and the rest.
fn split_layout(text: &str) -> (Option<Layout>, &str) {
    let split = text.split_once('+').and_then(|(name, rest)| Some((Layout::from_name(name)?, rest)));
    split.map_or((None, text), |(layout, rest)| (Some(layout), rest))
}

impl From<&Path> for SourceUrl {
    /// A folder, in all layouts.
    fn from(path: &Path) -> Self {
        Self { layout: None, location: path.into() }
    }
}

impl fmt::Display for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(layout) = self.layout {
            write!(f, "{layout}+")?;
        }
        write!(f, "{}", self.location)
    }
}

impl fmt::Debug for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> SourceUrl {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_url_has_a_location_and_layouts() {
        let all = Layout::ALL.to_vec();
        for (text, shown, layouts) in [
            ("symbols", "symbols", all.clone()),
            ("dir:/a/b", "/a/b", all.clone()),
            ("c++/files", "c++/files", all.clone()),
            ("gdb+/usr/lib/debug", "gdb+/usr/lib/debug", vec![Layout::Gdb]),
            ("https://h.example/", "https://h.example", vec![Layout::Debuginfod]),
            ("http://h.example:8002/x", "http://h.example:8002/x", vec![Layout::Debuginfod]),
            ("ssqp+https://h.example/x?sig=1", "ssqp+https://h.example/x", vec![Layout::Ssqp]),
            ("s3://bucket/a", "s3://bucket/a", all),
            ("unified+gs://bucket", "unified+gs://bucket", vec![Layout::Unified]),
        ] {
            let url = parse(text);
            assert_eq!((url.to_string().as_str(), url.layouts()), (shown, layouts), "{text}");
        }
    }

    #[test]
    fn other_kinds_and_secrets_on_the_command_line_are_refused() {
        for text in ["redis://h", "ftp://h/x", "debuginfod://h", "http://", "s3://", "lldb+", "dir:"] {
            let error = text.parse::<SourceUrl>().expect_err("not a source").to_string();
            assert!(error.contains("expected"), "{error}");
        }
        assert!(
            "s3://k:pass@b/x".parse::<SourceUrl>().is_err_and(|error| !error.to_string().contains("pass@"))
        );
        for text in [
            "https://me:pass@h.example/x",
            "unified+https://h.example/?token=pass",
            "https://x@h.example/pass",
        ] {
            let error = SourceUrl::from_argument(text).expect_err("a secret").to_string();
            assert!(!error.contains("pass@") && !error.contains("token"), "{error}");
            assert!(!format!("{:?} {0}", parse(text)).contains("pass@"));
        }
        assert!(SourceUrl::from_argument("unified+s3://bucket/x").is_ok());
    }
}
