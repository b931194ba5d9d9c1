//! The URL of a source of debug files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use symdex_store::{StoreUrl, StoreUrlError};
#[cfg(feature = "remote")]
use url::Url;

use super::layout::Layout;

/// Why a build cannot read sources that are not folders.
pub(super) const WITHOUT_REMOTE: &str =
    "this build reads folders only; it was made without the feature `remote`";

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
/// # #[cfg(feature = "remote")] {
/// let url: SourceUrl = "unified+https://me:secret@symbols.example/files".parse()?;
/// assert_eq!(url.to_string(), "unified+https://symbols.example/files");
/// # }
/// # Ok::<(), symdex_answer::fetch::SourceUrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SourceUrl {
    /// The layout that the URL names.
    layout: Option<Layout>,
    pub(crate) place: Place,
}

/// Where a source is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Folder(PathBuf),
    #[cfg(feature = "remote")]
    Web(Url),
    Objects(StoreUrl),
}

/// Why text is not the URL of a source. The text of the error has no secrets.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceUrlError {
    /// The URL is of an unknown kind.
    #[error(
        "{scheme}: is not a kind of source; expected a path, dir:PATH, https://, http://, s3://, gs:// or az://, with \
         unified+, lldb+, gdb+, debuginfod+ or ssqp+ before it for one layout"
    )]
    UnknownScheme {
        /// The text before the colon.
        scheme: String,
    },
    /// The URL of a web server cannot be read.
    #[error("the URL of a source: {reason}; expected https://HOST/PATH")]
    Web {
        /// What is wrong with it.
        reason: String,
    },
    /// The URL is that of a web server, and this build lacks the feature `remote`.
    #[error("{scheme}: {WITHOUT_REMOTE}")]
    WithoutRemote {
        /// The text before the colon.
        scheme: String,
    },
    /// The path of a folder is missing.
    #[error("the path of a source is missing; expected PATH or dir:PATH")]
    NoPath,
    /// The URL of an object store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreUrlError),
    /// The URL has a secret at a place where others may read it.
    #[error(
        "{url}: the URL has {what} on the command line; put the whole URL into the environment variable \
         SYMDEX_DEBUG_SOURCE"
    )]
    Secret {
        /// The URL without secrets.
        url: String,
        /// The part that is refused.
        what: &'static str,
    },
}

impl SourceUrl {
    /// Reads a URL from a command line. Other users of the machine can read it there, so secrets are refused. Use
    /// [`FromStr`] for a URL from the environment or a configuration file.
    ///
    /// # Errors
    ///
    /// [`SourceUrlError`] if the text is not a URL of a source, or has a user or a query.
    pub fn from_argument(text: &str) -> Result<Self, SourceUrlError> {
        let url: Self = text.parse()?;
        #[cfg(feature = "remote")]
        if let Place::Web(web) = &url.place
            && let Some(what) = secret_of(web)
        {
            return Err(SourceUrlError::Secret { url: url.to_string(), what });
        }
        Ok(url)
    }

    /// The layouts that are tried, in this order.
    #[must_use]
    pub fn layouts(&self) -> Vec<Layout> {
        match (self.layout, &self.place) {
            (Some(layout), _) => vec![layout],
            #[cfg(feature = "remote")]
            (None, Place::Web(_)) => vec![Layout::Debuginfod],
            (None, _) => Layout::ALL.into(),
        }
    }
}

impl FromStr for SourceUrl {
    type Err = SourceUrlError;

    fn from_str(text: &str) -> Result<Self, SourceUrlError> {
        let (layout, rest) = split_layout(text);
        let unknown = |scheme: &str| SourceUrlError::UnknownScheme { scheme: scheme.to_owned() };
        let place = match rest.split_once("://") {
            Some((scheme @ ("http" | "https"), _)) => web(scheme, rest)?,
            Some(("s3" | "gs" | "az", _)) => Place::Objects(rest.parse()?),
            Some((scheme, _)) => return Err(unknown(scheme)),
            None => Place::Folder(folder(rest)?),
        };
        Ok(Self { layout, place })
    }
}

/// The layout that `text` begins with, and the rest.
fn split_layout(text: &str) -> (Option<Layout>, &str) {
    let split = text.split_once('+').and_then(|(name, rest)| Some((Layout::from_name(name)?, rest)));
    split.map_or((None, text), |(layout, rest)| (Some(layout), rest))
}

/// The path of a folder.
fn folder(text: &str) -> Result<PathBuf, SourceUrlError> {
    let path = text.strip_prefix("dir:").unwrap_or(text);
    if path.is_empty() { Err(SourceUrlError::NoPath) } else { Ok(path.into()) }
}

#[cfg(not(feature = "remote"))]
fn web(scheme: &str, _text: &str) -> Result<Place, SourceUrlError> {
    Err(SourceUrlError::WithoutRemote { scheme: scheme.to_owned() })
}

#[cfg(feature = "remote")]
fn web(_scheme: &str, text: &str) -> Result<Place, SourceUrlError> {
    let mut url = Url::parse(text).map_err(|error| SourceUrlError::Web { reason: error.to_string() })?;
    url.set_fragment(None);
    Ok(Place::Web(url))
}

impl From<&Path> for SourceUrl {
    /// A folder, in all layouts.
    fn from(path: &Path) -> Self {
        Self { layout: None, place: Place::Folder(path.to_owned()) }
    }
}

impl fmt::Display for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(layout) = self.layout {
            write!(f, "{layout}+")?;
        }
        match &self.place {
            Place::Folder(path) => write!(f, "{}", path.display()),
            #[cfg(feature = "remote")]
            Place::Web(url) => f.write_str(&without_secrets(url)),
            Place::Objects(url) => write!(f, "{url}"),
        }
    }
}

impl fmt::Debug for SourceUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceUrl({self})")
    }
}

/// The part of `url` that may be a secret.
#[cfg(feature = "remote")]
fn secret_of(url: &Url) -> Option<&'static str> {
    if !url.username().is_empty() || url.password().is_some() {
        return Some("a user or a password");
    }
    url.query().map(|_| "a query")
}

/// `url` without its user, its password and its query.
#[cfg(feature = "remote")]
pub(crate) fn without_secrets(url: &Url) -> String {
    let mut shown = url.clone();
    // Fails only for URLs without a host, which have no user.
    let _ = shown.set_username("");
    let _ = shown.set_password(None);
    shown.set_query(None);
    shown.as_str().trim_end_matches('/').to_owned()
}

#[cfg(all(test, feature = "remote"))]
mod tests {
    use super::*;

    fn parse(text: &str) -> SourceUrl {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_url_has_a_place_and_layouts() {
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
