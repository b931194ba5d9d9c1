//! The URL of a store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The URL of a store: what kind of store it is, and where it is.
///
/// | URL | store |
/// |---|---|
/// | `PATH`, `dir:PATH` | a folder |
/// | `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` | an object store |
/// | `https://HOST/PATH` | a web server, read only; `http://` only for this machine |
/// | `redis://HOST:PORT/DB`, `rediss://...` (TLS) | Redis or Valkey |
/// | `redis+cluster://HOST:PORT,HOST:PORT`, `rediss+cluster://...` (TLS) | a cluster of Redis or Valkey |
///
/// [`Display`](fmt::Display) and [`Debug`] leave out user names, passwords and queries, which may have tokens.
///
/// ```
/// use symdex_store::StoreUrl;
///
/// let url: StoreUrl = "rediss://app:secret@cache.example:6380/0".parse()?;
/// assert_eq!(url.to_string(), "rediss://cache.example:6380/0");
/// // Other users of a machine can read the arguments of a process.
/// assert!(StoreUrl::from_argument("rediss://app:secret@cache.example:6380/0").is_err());
/// # Ok::<(), symdex_store::StoreUrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct StoreUrl {
    scheme: Scheme,
    /// What is before `@`, without it.
    user: Option<String>,
    /// The path of a folder; otherwise the part after `//`, without the user and the query.
    place: String,
    /// The part after `?`.
    query: Option<String>,
}

/// Why text is not the URL of a store. The text of the error has no secrets.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreUrlError {
    /// The URL is of an unknown kind.
    #[error("{scheme}: is not a kind of {what}; expected {expected}")]
    UnknownScheme {
        /// The text before the colon.
        scheme: String,
        /// `store` or `source`.
        what: &'static str,
        /// What the URLs of all kinds look like.
        expected: String,
    },
    /// The scheme of a URL is not followed by `//`. The rest is not shown, because it can have a password.
    #[error(
        "{scheme}: is not followed by //; expected {expected}; a folder with such a name is ./{scheme}:... or \
         dir:{scheme}:..."
    )]
    NoSlashes {
        /// The text before the colon.
        scheme: &'static str,
        /// What the URL should look like.
        expected: &'static str,
    },
    /// A part of the URL is missing.
    #[error("{url}: {missing} is missing; expected {expected}")]
    Incomplete {
        /// The URL without secrets.
        url: String,
        /// The missing part.
        missing: &'static str,
        /// What the URL should look like.
        expected: &'static str,
    },
    /// Plain HTTP to another machine.
    #[error("{url}: http:// is accepted only for this machine, such as http://127.0.0.1:8000; use https://")]
    PlainHttp {
        /// The URL without secrets.
        url: String,
    },
    /// The URL has a secret at a place where others may read it, or where the store does not use it.
    #[error("{url}: the URL has {what}; {advice}")]
    Secret {
        /// The URL without secrets.
        url: String,
        /// The part that is refused.
        what: &'static str,
        /// Where the secret belongs.
        advice: &'static str,
    },
}

/// What the URL of a Redis server or cluster has.
#[cfg(feature = "redis")]
pub(crate) struct RedisParts<'u> {
    /// Hosts with optional ports, separated by commas.
    pub(crate) hosts: &'u str,
    pub(crate) database: Option<&'u str>,
    /// The user, and the password after a colon, percent-encoded.
    pub(crate) user: Option<&'u str>,
    pub(crate) has_query: bool,
    pub(crate) is_tls: bool,
    pub(crate) is_cluster: bool,
}

/// What the URL begins with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    Dir,
    Redis,
    RedisTls,
    RedisCluster,
    RedisClusterTls,
    S3,
    Gcs,
    Azure,
    Http,
    Https,
}

/// The kinds of stores that are implemented apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Folder,
    Redis,
    Objects,
}

/// All schemes, in the order of help texts. The first [`SOURCES`] can have debug files.
const SCHEMES: [Scheme; 10] = [
    Scheme::Dir,
    Scheme::S3,
    Scheme::Gcs,
    Scheme::Azure,
    Scheme::Https,
    Scheme::Http,
    Scheme::Redis,
    Scheme::RedisTls,
    Scheme::RedisCluster,
    Scheme::RedisClusterTls,
];

const SOURCES: usize = 6;

/// What the URLs of a scheme look like.
struct Form {
    /// The text before the colon.
    name: &'static str,
    expected: &'static str,
    /// The part of `expected` that no URL can lack.
    required: &'static str,
    /// The kind of store.
    store: &'static str,
}

const REDIS_ADVICE: &str = "put the password into the environment variable SYMDEX_REDIS_PASSWORD, or into a file that \
     SYMDEX_REDIS_PASSWORD_FILE names";
const STORE_ADVICE: &str = "put the whole URL into the environment variable SYMDEX_STORE";
const SOURCE_ADVICE: &str = "put the whole URL into the environment variable SYMDEX_DEBUG_SOURCE";
const CLOUD_ADVICE: &str = "put credentials into the environment variables of the provider, such as AWS_ACCESS_KEY_ID and \
     AWS_SECRET_ACCESS_KEY";

impl StoreUrl {
    /// Reads a URL from a command line. Other users of the machine can read it there, so secrets are refused. Use
    /// [`FromStr`] for a URL from the environment or a configuration file.
    ///
    /// # Errors
    ///
    /// [`StoreUrlError`] if the text is not a URL of a store, or has a password or a query.
    pub fn from_argument(text: &str) -> Result<Self, StoreUrlError> {
        text.parse::<Self>()?.without_secrets(STORE_ADVICE)
    }

    /// Reads the URL of a source of debug files: any of a store but Redis, and `http://` to any machine. It may have a
    /// password.
    ///
    /// # Errors
    ///
    /// [`StoreUrlError`] if the text is not the URL of a source.
    pub fn of_source(text: &str) -> Result<Self, StoreUrlError> {
        Self::read(text, &SCHEMES[..SOURCES], "source")
    }

    /// Reads the URL of a source of debug files from a command line.
    ///
    /// # Errors
    ///
    /// As [`of_source`](Self::of_source), and if the URL has a user or a query.
    pub fn of_source_argument(text: &str) -> Result<Self, StoreUrlError> {
        Self::of_source(text)?.without_secrets(SOURCE_ADVICE)
    }

    /// This URL, if it has no secrets. `advice` says where those of a web server belong.
    fn without_secrets(self, advice: &'static str) -> Result<Self, StoreUrlError> {
        let secret = |what, advice| Err(StoreUrlError::Secret { url: self.to_string(), what, advice });
        let has_password = self.user.as_ref().is_some_and(|user| user.contains(':'));
        match self.scheme.kind() {
            StoreKind::Redis if has_password => secret("a password on the command line", REDIS_ADVICE),
            StoreKind::Objects if self.user.is_some() => {
                secret("a user or a password on the command line", advice)
            }
            StoreKind::Objects if self.query.is_some() => secret("a query on the command line", advice),
            _ => Ok(self),
        }
    }

    /// What the URLs of each kind of store look like, and the kind in words, for help texts.
    pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
        SCHEMES.iter().map(|scheme| scheme.form()).map(|form| (form.expected, form.store))
    }

    /// Whether the store is in an object store that can be written.
    #[must_use]
    pub fn is_bucket(&self) -> bool {
        matches!(self.scheme, Scheme::S3 | Scheme::Gcs | Scheme::Azure)
    }

    pub(crate) fn kind(&self) -> StoreKind {
        self.scheme.kind()
    }

    /// The path of a folder. `None` for other kinds of stores: callers create and list the folder.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        (self.scheme == Scheme::Dir).then(|| PathBuf::from(&self.place))
    }

    /// The URL of a web server with its user and its query, to connect with. Never print it. `None` for other kinds.
    #[must_use]
    pub fn web(&self) -> Option<String> {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let query = self.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        matches!(self.scheme, Scheme::Http | Scheme::Https)
            .then(|| format!("{}://{user}{}{query}", self.scheme.form().name, self.place))
    }

    /// The servers of a Redis URL.
    #[cfg(feature = "redis")]
    pub(crate) fn redis_parts(&self) -> RedisParts<'_> {
        let (hosts, database) = match self.place.split_once('/') {
            Some((hosts, database)) => (hosts, Some(database)),
            None => (self.place.as_str(), None),
        };
        RedisParts {
            hosts,
            database,
            user: self.user.as_deref(),
            has_query: self.query.is_some(),
            is_tls: matches!(self.scheme, Scheme::RedisTls | Scheme::RedisClusterTls),
            is_cluster: matches!(self.scheme, Scheme::RedisCluster | Scheme::RedisClusterTls),
        }
    }

    #[cfg(feature = "object-store")]
    pub(crate) fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The bucket or container, and what all keys begin with.
    #[cfg(feature = "object-store")]
    pub(crate) fn bucket(&self) -> (&str, &str) {
        self.place.split_once('/').unwrap_or((&self.place, ""))
    }

    /// The user and the password, as `USER:PASSWORD`. Never print it.
    #[cfg(any(feature = "object-store", test))]
    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The URL with its query, to connect with. Never print it.
    #[cfg(any(feature = "object-store", test))]
    pub(crate) fn without_user(&self) -> String {
        let query = self.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{self}{query}")
    }

    /// Reads the URL of a `what`, which has one of `schemes`.
    fn read(text: &str, schemes: &[Scheme], what: &'static str) -> Result<Self, StoreUrlError> {
        let folder = |path: &str| Self::from(Path::new(path)).check();
        let Some((name, rest)) = text.split_once(':') else { return folder(text) };
        let scheme = schemes.iter().copied().find(|scheme| scheme.form().name == name);
        let (scheme, rest) = match (scheme, rest.strip_prefix("//")) {
            (Some(Scheme::Dir), _) => return folder(rest),
            (Some(scheme), Some(rest)) => (scheme, rest),
            (None, Some(_)) => {
                let expected: Vec<_> = schemes.iter().map(|scheme| scheme.form().expected).collect();
                let (scheme, expected) = (name.to_owned(), expected.join(", "));
                return Err(StoreUrlError::UnknownScheme { scheme, what, expected });
            }
            (Some(scheme), None) => {
                let Form { name: scheme, expected, .. } = scheme.form();
                return Err(StoreUrlError::NoSlashes { scheme, expected });
            }
            // A path may have a colon.
            (None, None) => return folder(text),
        };
        // The password of Redis may have any character. The path of a web server may have an `@`.
        let end_of_host = match scheme.kind() {
            StoreKind::Redis => rest.len(),
            _ => rest.find(['/', '?']).unwrap_or(rest.len()),
        };
        let (user, rest) = match rest[..end_of_host].rfind('@') {
            Some(at) => (Some(rest[..at].to_owned()), &rest[at + 1..]),
            None => (None, rest),
        };
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, Some(query.to_owned())),
            None => (rest, None),
        };
        Self { scheme, user, place: place.trim_end_matches('/').to_owned(), query }.check()
    }

    fn check(self) -> Result<Self, StoreUrlError> {
        let shown = self.to_string();
        let (host, _) = self.place.split_once('/').unwrap_or((&self.place, ""));
        if self.place.is_empty() || (self.scheme != Scheme::Dir && host.is_empty()) {
            let Form { required: missing, expected, .. } = self.scheme.form();
            return Err(StoreUrlError::Incomplete { url: shown, missing, expected });
        }
        let is_cloud = matches!(self.scheme, Scheme::S3 | Scheme::Gcs | Scheme::Azure);
        if is_cloud && (self.user.is_some() || self.query.is_some()) {
            let what = "a user, a password or a query";
            return Err(StoreUrlError::Secret { url: shown, what, advice: CLOUD_ADVICE });
        }
        Ok(self)
    }
}

/// Whether `host`, with or without a port, is this machine.
#[must_use]
pub fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl Scheme {
    fn form(self) -> Form {
        let (name, expected, required, store) = match self {
            Self::Dir => ("dir", "PATH or dir:PATH", "the path", "a folder"),
            Self::S3 => ("s3", "s3://BUCKET/PREFIX", "the bucket", "Amazon S3 and servers of its protocol"),
            Self::Gcs => ("gs", "gs://BUCKET/PREFIX", "the bucket", "Google Cloud Storage"),
            Self::Azure => ("az", "az://CONTAINER/PREFIX", "the container", "Azure Blob Storage"),
            Self::Https => {
                ("https", "https://HOST/PATH", "the host", "a folder that a web server shows; read only")
            }
            Self::Http => ("http", "http://HOST/PATH", "the host", "a web server of this machine; read only"),
            Self::Redis => ("redis", "redis://HOST:PORT/DB", "the host", "Redis or Valkey"),
            Self::RedisTls => ("rediss", "rediss://HOST:PORT/DB", "the host", "Redis or Valkey, with TLS"),
            Self::RedisCluster => (
                "redis+cluster",
                "redis+cluster://HOST:PORT,HOST:PORT",
                "the host",
                "a cluster of Redis or Valkey",
            ),
            Self::RedisClusterTls => (
                "rediss+cluster",
                "rediss+cluster://HOST:PORT,HOST:PORT",
                "the host",
                "a cluster of Redis or Valkey, with TLS",
            ),
        };
        Form { name, expected, required, store }
    }

    fn kind(self) -> StoreKind {
        match self {
            Self::Dir => StoreKind::Folder,
            Self::Redis | Self::RedisTls | Self::RedisCluster | Self::RedisClusterTls => StoreKind::Redis,
            Self::S3 | Self::Gcs | Self::Azure | Self::Http | Self::Https => StoreKind::Objects,
        }
    }
}

/// The folder at a path, whatever characters the path has.
impl From<&Path> for StoreUrl {
    fn from(path: &Path) -> Self {
        let place = path.to_string_lossy().into_owned();
        Self { scheme: Scheme::Dir, user: None, place, query: None }
    }
}

impl From<PathBuf> for StoreUrl {
    fn from(path: PathBuf) -> Self {
        Self::from(path.as_path())
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    /// Reads a URL from the environment or a configuration file. It may have a password.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url = Self::read(text, &SCHEMES, "store")?;
        let host = url.place.split('/').next().unwrap_or_default();
        if url.scheme == Scheme::Http && !is_this_machine(host) {
            return Err(StoreUrlError::PlainHttp { url: url.to_string() });
        }
        Ok(url)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scheme {
            Scheme::Dir => f.write_str(&self.place),
            scheme => write!(f, "{}://{}", scheme.form().name, self.place),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        text.parse::<StoreUrl>().map(|url| url.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn paths_and_urls_are_told_apart() {
        for (text, shown, kind) in [
            ("indexes", "indexes", StoreKind::Folder),
            ("dir:/a b/c", "/a b/c", StoreKind::Folder),
            ("C:\\indexes", "C:\\indexes", StoreKind::Folder),
            ("./s3:bucket", "./s3:bucket", StoreKind::Folder),
            ("dir:s3:bucket", "s3:bucket", StoreKind::Folder),
            ("s3://bucket/a/b/", "s3://bucket/a/b", StoreKind::Objects),
            ("gs://bucket", "gs://bucket", StoreKind::Objects),
            ("http://127.0.0.1:9000/x", "http://127.0.0.1:9000/x", StoreKind::Objects),
            ("http://[::1]:9000", "http://[::1]:9000", StoreKind::Objects),
            ("redis+cluster://a:1,b:2", "redis+cluster://a:1,b:2", StoreKind::Redis),
        ] {
            let url: StoreUrl = text.parse().expect(text);
            assert_eq!((url.to_string().as_str(), url.kind()), (shown, kind));
        }
    }

    #[test]
    fn errors_say_what_is_accepted() {
        let error = |text| read(text).expect_err(text);
        assert!(error("ftp://host/x").contains("expected PATH or dir:PATH, s3://BUCKET/PREFIX, "));
        for scheme in ["s3", "az", "https", "redis", "redis+cluster"] {
            let error = read(&format!("{scheme}:me:secret@bucket/x")).expect_err("no slashes");
            assert!(
                error.contains(&format!("{scheme}: is not followed by //; expected {scheme}://")),
                "{error}"
            );
            assert!(error.contains(&format!("./{scheme}:... or dir:{scheme}:...")), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(error("s3://").contains("the bucket is missing; expected s3://BUCKET/PREFIX"));
        assert!(error("redis:///0").contains("the host is missing"));
        assert!(error("dir:").contains("the path is missing"));
        assert!(error("http://example.com/x").contains("use https://"));
        assert!(error("http://127.0.0.1.example.com/x").contains("use https://"));
    }

    #[test]
    fn the_document_lists_the_schemes() {
        let document = include_str!("../../../../docs/STORES.md");
        for scheme in SCHEMES {
            assert!(document.contains(&format!("`{}:", scheme.form().name)), "{}", scheme.form().name);
        }
    }

    #[test]
    fn secrets_are_not_shown_and_are_refused_on_a_command_line() {
        for text in [
            "rediss://me:pass@word@host:1/0",
            "redis://me:a/b?token=@word@host",
            "https://me:password@host/x?token=password",
        ] {
            let url: StoreUrl = text.parse().expect("allowed in the environment");
            let (scheme, rest) =
                url.without_user().split_once("://").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("two");
            assert_eq!(format!("{scheme}://{}@{rest}", url.user().expect("a user")), text);
            let refused = StoreUrl::from_argument(text).expect_err("on a command line").to_string();
            for shown in [url.to_string(), format!("{url:?}"), refused] {
                assert!(
                    !shown.contains("word@") && !shown.contains("token") && !shown.contains("me:"),
                    "{shown}"
                );
            }
        }
        let refused = StoreUrl::from_argument("redis://:x@host").expect_err("a password").to_string();
        assert!(refused.contains("SYMDEX_REDIS_PASSWORD_FILE"), "{refused}");
        assert!(StoreUrl::from_argument("redis://user@host").is_ok(), "a user's name is not secret");
        let refused = read("s3://key:secret@bucket/x").expect_err("credentials of a provider");
        assert!(refused.contains("AWS_ACCESS_KEY_ID") && !refused.contains("key:secret"), "{refused}");
    }
}
