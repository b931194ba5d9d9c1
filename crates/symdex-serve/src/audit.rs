//! The audit log: who has sent debug files, and what has changed in the stores.

use std::fs::File;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use serde::Serialize;

use crate::auth::Access;
use crate::jobs::Timestamp;
use crate::problem::Reason;

/// What has happened.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// A whole upload was received.
    #[default]
    Upload,
    /// An index is in a store: it was written, or the store had the same one.
    Publish,
    /// A new index has replaced a different one.
    Replace,
    /// A new index was not written, because the store keeps a different one.
    Keep,
    /// An index was deleted.
    Delete,
    /// A request that would have changed something was refused, or has failed.
    Refuse,
}

/// An entry of the log. What is not known, or does not belong to the action, is left out.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Entry<'e> {
    pub(crate) action: Action,
    /// The name of the token of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<&'e str>,
    /// The address that the request came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<IpAddr>,
    /// The SHA-256 of the upload. Its first half is the id of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<&'e str>,
    /// The name of the upload, or the debug file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<&'e str>,
    /// The image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<&'e str>,
    /// The URL of the store, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<&'e str>,
    /// The outcome of a publication, as jobs state it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<&'e str>,
    /// The method and the path of a request that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request: Option<&'e str>,
    /// The status of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'e str>,
}

/// A line of the file.
#[derive(Serialize)]
struct Line<'e> {
    time: Timestamp,
    #[serde(flatten)]
    entry: &'e Entry<'e>,
}

/// Where entries go: to a file, or to the log of the server.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    file: Option<Mutex<File>>,
}

impl Audit {
    /// Appends entries to the file at `path`, which is made if it does not exist. `None` stands for the server's log.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the file cannot be opened.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let open = |path| File::options().create(true).append(true).open(path).map(Mutex::new);
        Ok(Self { file: path.map(open).transpose()? })
    }

    /// Logs `entry`. A file that cannot be written does not stop the server: the entry is then in its log.
    pub(crate) fn log(&self, entry: &Entry<'_>) {
        let Some(file) = &self.file else { return to_log(entry) };
        // An entry has only text and numbers, which are always JSON.
        let mut line = serde_json::to_vec(&Line { time: Timestamp::now(), entry }).unwrap_or_default();
        line.push(b'\n');
        let written = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
        if let Err(error) = written {
            tracing::error!(%error, "the audit log cannot be written");
            to_log(entry);
        }
    }
}

fn to_log(entry: &Entry<'_>) {
    let Entry { action, token, client, sha256, file, image, store, outcome, request, status, reason } = entry;
    let (action, client) = (format!("{action:?}").to_lowercase(), client.map(|client| client.to_string()));
    tracing::info!(
        action, token, client, sha256, file, image, store, outcome, request, status, reason, "audit"
    );
}

/// Tells the handlers of requests that change something who sends them, and logs those that are refused or fail.
pub(crate) async fn watch(
    State((access, audit)): State<(Arc<Access>, Arc<Audit>)>,
    mut request: Request,
    next: Next,
) -> Response {
    let requester = access.requester(request.headers());
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let what = format!("{} {}", request.method(), request.uri().path());
    request.extensions_mut().insert(requester.clone());
    let response = next.run(request).await;
    let status = response.status();
    if changes && (status.is_client_error() || status.is_server_error()) {
        audit.log(&Entry {
            action: Action::Refuse,
            token: requester.token.as_deref(),
            client: requester.client,
            request: Some(&what),
            status: Some(status.as_u16()),
            reason: response.extensions().get().map(|Reason(reason)| reason.as_str()),
            ..Entry::default()
        });
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_a_line_for_each_entry() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("audit.log");
        for file in ["a\nb", "c"] {
            // A restarted server appends.
            let audit = Audit::open(Some(&path)).expect("opened");
            audit.log(&Entry { file: Some(file), status: Some(202), ..Entry::default() });
        }
        let text = std::fs::read_to_string(&path).expect("text");
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let member = |at: usize, name: &str| lines[at][name].to_string();
        assert_eq!(
            (lines.len(), member(0, "file"), member(1, "file")),
            (2, r#""a\nb""#.into(), r#""c""#.into())
        );
        assert_eq!(
            (member(0, "action"), lines[0].as_object().map(|line| line.len())),
            (r#""upload""#.into(), Some(4))
        );
    }
}
