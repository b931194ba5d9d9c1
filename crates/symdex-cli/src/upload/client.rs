//! Requests to a server of symdex: its URL, the token, repeated requests, and the causes of failures.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;
use symdex_answer::fetch::client_error_text;
use symdex_store::{is_this_machine, wait_for};

use super::args::ServerArgs;
use crate::config::{Config, SERVER, TOKEN_FILE};
use crate::failure::{Cause, Failure, complain};
use crate::text::printable;
use crate::url_password;

/// The environment variable with the token. `SYMDEX_TOKEN` configures the tokens of `symdex serve`, and is not secret.
const TOKEN: &str = "SYMDEX_SERVER_TOKEN";
/// How long a request may take, with its answer.
const TIMEOUT: Duration = Duration::from_secs(300);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How much of an answer is read. The largest are the record of a job and a list of missing images.
const MAX_ANSWER: usize = 32 << 20;
/// How much text of the server a message has, in characters.
const MAX_DETAIL: usize = 500;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What the configuration file says.
static CONFIGURED: OnceLock<Configured> = OnceLock::new();

#[derive(Default)]
struct Configured {
    server: Option<String>,
    token_file: Option<PathBuf>,
    /// Whether the file was found, and not named.
    is_found: bool,
}

/// Sets the server of the configuration file, and the file with its token. Call this once, before the command runs.
pub(crate) fn configure(config: &Config) {
    let value = |key| Some(config.values(key)?.0.first()?.clone());
    let (server, token_file) = (value(&SERVER), value(&TOKEN_FILE).map(PathBuf::from));
    _ = CONFIGURED.set(Configured { server, token_file, is_found: !config.is_named });
}

/// A server.
pub(super) struct Server {
    base: Url,
    client: Client,
    has_token: bool,
    retry_for: Duration,
    /// Why nothing more is asked.
    lost: OnceLock<Failure>,
}

/// An answer: any status but those after which the request is repeated.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: Vec<u8>,
    /// What was asked, for messages.
    request: String,
}

/// Why a request has no answer.
pub(super) struct Trouble {
    pub(super) failure: Failure,
    pub(super) kind: TroubleKind,
    retry_after: Option<Duration>,
}

/// What a trouble concerns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TroubleKind {
    /// The same request never succeeds.
    Lasting,
    /// This request only. It may succeed later.
    Request,
    /// The server has not what was sent before. The upload goes on from where the server says.
    OutOfStep,
    /// All requests: the server cannot be reached, or is overloaded.
    Server,
}

/// How long a request is repeated.
pub(super) struct Patience<'s> {
    server: &'s Server,
    /// When the request failed for the first time.
    since: Option<Instant>,
    pause: Duration,
}

impl Server {
    /// The server of the options. Nothing is connected yet.
    pub(super) fn new(args: &ServerArgs) -> Result<Self, Failure> {
        let usage = |message: String| Failure::new(Cause::Usage, message);
        let configured = CONFIGURED.get_or_init(Configured::default);
        let Some(url) = args.server.as_ref().or(configured.server.as_ref()) else {
            let message = "no server is named; give --server URL, SYMDEX_SERVER, or `server` in symdex.toml";
            return Err(usage(message.to_owned()));
        };
        let base = Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
        let base = base.filter(|url| url.username().is_empty() && url.password().is_none());
        let base = base.filter(|url| url.query().is_none() && url.fragment().is_none()).ok_or_else(|| {
            let shown = url_password::hidden(url);
            usage(format!(
                "--server {shown}: expected https://HOST or http://HOST, without a user; a token belongs in {TOKEN}"
            ))
        })?;
        let token = token(args, configured)?;
        if token.is_some() && args.server.is_none() && configured.is_found {
            return Err(usage(format!(
                "{base} gets no token, because a symdex.toml that was found names it; name the server with --server or \
                 SYMDEX_SERVER, or the file with --config"
            )));
        }
        if token.is_some() && base.scheme() == "http" && !is_this_machine(base.host_str().unwrap_or_default())
        {
            complain(&format!("warning: {base}: the token is sent without encryption; use https"));
        }
        let has_token = token.is_some();
        // Another part of the program may have chosen an implementation of TLS. Then that one is used.
        _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .user_agent(concat!("symdex/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .default_headers(token.into_iter().map(|token| (AUTHORIZATION, token)).collect())
            // The token is for this server only.
            .redirect(Policy::none())
            .build()
            .map_err(|error| Failure::new(Cause::Other, client_error_text(error)))?;
        Ok(Self { base, client, has_token, retry_for: args.retry_for, lost: OnceLock::new() })
    }

    /// A request of the path with these parts and this query.
    pub(super) fn request(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.base.clone();
        // A URL of http has a path.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1").extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.client.request(method, url)
    }

    pub(super) fn patience(&self) -> Patience<'_> {
        Patience { server: self, since: None, pause: FIRST_PAUSE }
    }

    /// Sends a request until it is answered.
    pub(super) fn ask(&self, request: impl Fn() -> RequestBuilder) -> Result<Answer, Failure> {
        let mut patience = self.patience();
        loop {
            match self.once(request()) {
                Ok(answer) => return Ok(answer),
                Err(trouble) => patience.wait(trouble)?,
            }
        }
    }

    /// Sends a request once.
    pub(super) fn once(&self, request: RequestBuilder) -> Result<Answer, Trouble> {
        if let Some(failure) = self.lost.get() {
            return Err(Trouble::lasting(failure.clone()));
        }
        let (client, request) = request.build_split();
        let request = request
            .map_err(|error| Trouble::lasting(Failure::new(Cause::Other, client_error_text(error))))?;
        let shown = format!("{} {}", request.method(), url_without_query(request.url()));
        let exchange = async move {
            let mut response = client.execute(request).await.map_err(client_error_text)?;
            let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
            let mut body = Vec::new();
            while let Some(part) = response.chunk().await.map_err(client_error_text)? {
                body.extend_from_slice(&part);
                if body.len() > MAX_ANSWER {
                    return Ok(Err(()));
                }
            }
            Ok(Ok((status, headers, body)))
        };
        let unavailable = |why: String| Trouble {
            failure: Failure::new(Cause::Unavailable, format!("{shown}: {why}")),
            kind: TroubleKind::Server,
            retry_after: None,
        };
        let answered = wait_for(TIMEOUT, exchange).map_err(|error| unavailable(error.to_string()))?;
        let (status, headers, body) = answered.map_err(unavailable)?.map_err(|()| {
            let what =
                format!("{shown}: the answer has more than {MAX_ANSWER} bytes; is this a symdex server?");
            Trouble::lasting(Failure::new(Cause::Unsupported, what))
        })?;
        let answer = Answer { status, headers, body, request: shown };
        let kind = match status.as_u16() {
            429 | 503 => TroubleKind::Server,
            408 | 500 | 502 | 504 => TroubleKind::Request,
            _ => return Ok(answer),
        };
        let seconds = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        Err(Trouble { failure: self.failure(&answer), kind, retry_after: seconds.map(Duration::from_secs) })
    }

    /// The failure of an answer that was not expected: the one place that gives each status its cause.
    pub(super) fn failure(&self, answer: &Answer) -> Failure {
        let detail = answer.detail();
        let is_symdex = detail.is_some();
        let (cause, advice) = match answer.status.as_u16() {
            300..=399 => (Cause::Usage, "redirects are not followed; name the server itself with --server"),
            401 if self.has_token => (Cause::Usage, "the server does not accept the token"),
            401 => (Cause::Usage, "give its token with --token-file or in SYMDEX_SERVER_TOKEN"),
            403 => (
                Cause::Usage,
                "symdex upload needs a token with the scopes read and index, or read and upload with --debug-files",
            ),
            404 | 405 | 501 if is_symdex => (Cause::Unsupported, "this server does not take such uploads"),
            404 | 405 | 501 => (Cause::Unsupported, "is this a symdex server?"),
            413 => (Cause::Limit, "the server does not accept uploads of this size; raise its --max-upload"),
            408 | 429 | 500 | 502..=504 => (Cause::Unavailable, "try again later"),
            507 => (Cause::Unavailable, "the server has too little free space"),
            _ => (Cause::Other, "the server refuses the request"),
        };
        let Answer { request, status, .. } = answer;
        let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
        let failure =
            Failure::new(cause, format!("{request}: the server answers {status}{detail}; {advice}"));
        if matches!(answer.status.as_u16(), 300..=399 | 401 | 403 | 404 | 405 | 501) {
            _ = self.lost.set(failure.clone());
        }
        failure
    }
}

/// Its URL.
impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.base.as_str().trim_end_matches('/'))
    }
}

impl Answer {
    /// The body as JSON.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let error = shown(&error.to_string());
            let what = format!("{}: this is not the answer of a symdex server: {error}", self.request);
            Failure::new(Cause::Unsupported, what)
        })
    }

    /// The number in a header.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.headers.get(name)?.to_str().ok()?.parse().ok()
    }

    /// What the server says is wrong. `None` if it is not a symdex server.
    fn detail(&self) -> Option<String> {
        let problem: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        problem.get("type")?.as_str()?.strip_prefix("urn:symdex:problem:")?;
        let detail = problem.get("detail").or(problem.get("title"))?.as_str()?;
        Some(shown(detail))
    }
}

impl Trouble {
    fn lasting(failure: Failure) -> Self {
        Self { failure, kind: TroubleKind::Lasting, retry_after: None }
    }

    pub(super) fn out_of_step(failure: Failure) -> Self {
        Self { failure, kind: TroubleKind::OutOfStep, retry_after: None }
    }
}

impl Patience<'_> {
    /// Waits until the request is sent again.
    ///
    /// # Errors
    ///
    /// The failure, if it lasts, or if the time for repeated requests would be over.
    pub(super) fn wait(&mut self, trouble: Trouble) -> Result<(), Failure> {
        let Trouble { failure, kind, retry_after } = trouble;
        if kind == TroubleKind::Lasting {
            return Err(failure);
        }
        let is_first = self.since.is_none();
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        let pause = retry_after.unwrap_or(self.pause).max(FIRST_PAUSE);
        self.pause = self.pause.saturating_mul(2).min(LONGEST_PAUSE);
        let retry_for = humantime::format_duration(self.server.retry_for);
        if waited.saturating_add(pause) > self.server.retry_for {
            let asked = match retry_after {
                Some(pause) => format!("the server asks for a pause of {} s", pause.as_secs()),
                None => format!("it was tried for {} s", waited.as_secs()),
            };
            let message = format!("{}; {asked}, and --retry-for is {retry_for}", failure.message);
            let failure = Failure { message, ..failure };
            if kind == TroubleKind::Server {
                _ = self.server.lost.set(failure.clone());
            }
            return Err(failure);
        }
        if is_first {
            complain(&format!("warning: {}; retrying for up to {retry_for}", failure.message));
        }
        sleep(pause);
        Ok(())
    }
}

/// The token in the file of `--token-file`, in the environment, or in the file that the configuration names, as a
/// header. No message has it.
fn token(args: &ServerArgs, configured: &Configured) -> Result<Option<HeaderValue>, Failure> {
    let variable = std::env::var_os(TOKEN).filter(|_| args.token_file.is_none());
    let (place, token) = match (variable, args.token_file.as_ref().or(configured.token_file.as_ref())) {
        (Some(token), _) => (TOKEN.to_owned(), token.to_string_lossy().into_owned()),
        (None, Some(path)) => {
            let read = std::fs::read_to_string(path);
            (path.display().to_string(), read.map_err(|error| Failure::unreadable(path, &error))?)
        }
        (None, None) => return Ok(None),
    };
    let token = token.trim();
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let header = Some(format!("Bearer {token}")).filter(|_| is_token).and_then(|text| text.try_into().ok());
    let mut header: HeaderValue = header.ok_or_else(|| {
        let what = "expected the token that `symdex serve --new-token` prints first, on one line";
        Failure::new(Cause::Usage, format!("{place}: {what}"))
    })?;
    header.set_sensitive(true);
    Ok(Some(header))
}

/// Text of the server as in messages.
pub(super) fn shown(text: &str) -> String {
    printable(text.chars().take(MAX_DETAIL).collect::<String>().into()).into_owned()
}

/// `url` as in messages.
fn url_without_query(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.into()
}
