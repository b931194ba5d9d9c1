//! Errors of object stores as errors of stores, without secrets.

use std::io;

use super::body::Failure;
use crate::error::Error;

/// Why a request failed.
#[derive(Debug)]
pub(super) enum Failed {
    Client(object_store::Error),
    /// The time-out, or the runtime failed.
    Runtime(io::Error),
}

impl From<object_store::Error> for Failed {
    fn from(error: object_store::Error) -> Self {
        Self::Client(error)
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Runtime(error)
    }
}

impl Failed {
    /// The error for the object at `location`.
    pub(super) fn at(self, location: String, action: &'static str) -> Error {
        use object_store::Error as Client;
        let (reason, is_unavailable) = match &self {
            // The client has tried again.
            Self::Client(error @ (Client::Generic { .. } | Client::JoinError { .. })) => {
                (reason(error), true)
            }
            Self::Client(error) => (reason(error), false),
            Self::Runtime(error) if error.kind() == io::ErrorKind::TimedOut => {
                ("no answer within the time-out".to_owned(), true)
            }
            Self::Runtime(error) => (error.to_string(), true),
        };
        Error::Store { location, action, reason, is_unavailable }
    }
}

/// The error of [`decode`](super::body::decode) for the object at `location`.
pub(super) fn of_body(error: io::Error, location: String) -> Error {
    match error.downcast::<Failure>() {
        Ok(Failure::Store(error)) => error.at(location, "read"),
        Ok(Failure::Damaged(what)) => Error::DamagedObject { location, what },
        Err(error) => {
            let reason = format!("its temporary file cannot be written: {error}");
            Error::Store { location, action: "keep", reason, is_unavailable: false }
        }
    }
}

impl Failed {
    /// Whether there is no such object. A missing bucket is another error: every index would seem to be missing.
    pub(super) fn is_not_found(&self) -> bool {
        let Self::Client(object_store::Error::NotFound { source, .. }) = self else { return false };
        let text = full_text(&**source);
        !["NoSuchBucket", "ContainerNotFound", "bucket does not exist"]
            .iter()
            .any(|other| text.contains(other))
    }
}

/// The reason of `error`, without the users and the queries of URLs. If a server has sent a document about it, the
/// reason is the server's code and message.
pub(super) fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    // The client does not say which setting it obeys.
    let permitted = "plain http is not allowed, unless AWS_ALLOW_HTTP=true (AZURE_ALLOW_HTTP=true) is set";
    let text = full_text(error).replace("URL scheme is not allowed", permitted);
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once("</")?.0)
    };
    match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => without_secrets(&format!("{code}: {message}")),
        _ => without_secrets(&text),
    }
}

/// The text of `error` and of its causes.
fn full_text(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// `text` without the users and the queries of the URLs in it.
fn without_secrets(text: &str) -> String {
    let word = |word: &str| {
        let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
        let (rest, end) = match rest.split_once('?') {
            Some((rest, query)) => (rest, query.find(['"', ')', '>']).map_or("", |end| &query[end..])),
            None => (rest, ""),
        };
        let end_of_host = rest.find('/').unwrap_or(rest.len());
        let start = rest[..end_of_host].rfind('@').map_or(0, |at| at + 1);
        format!("{scheme}://{}{end}", &rest[start..])
    };
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_tls_names_the_setting() {
        let source = "builder error: URL scheme is not allowed".into();
        let error = object_store::Error::Generic { store: "S3", source };
        assert!(reason(&error).contains("not allowed, unless AWS_ALLOW_HTTP=true"), "{}", reason(&error));
    }

    #[test]
    fn urls_in_errors_lose_users_and_queries() {
        let text = "GET (https://me:secret@host/a@b/c?token=secret) failed:\n  at http://host/x";
        assert_eq!(without_secrets(text), "GET (https://host/a@b/c) failed: at http://host/x");
    }
}
