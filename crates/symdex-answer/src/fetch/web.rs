//! Files of web servers.

use std::error::Error;
use std::io::{self, Read};
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use symdex_store::wait_for;

use super::error::Failure;
use super::reach::{Reachable, Resolver};

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// The files below the URL of a web server.
#[derive(Debug)]
pub(crate) struct WebFiles {
    base: Url,
    client: Client,
    timeout: Duration,
}

/// The bytes of a file as they arrive.
pub(crate) struct WebBody {
    /// `None` at the end.
    response: Option<Response>,
    part: Bytes,
    timeout: Duration,
}

impl WebFiles {
    /// The files below `base`. Nothing is connected yet.
    pub(crate) fn new(base: Url, timeout: Duration) -> Result<Self, Failure> {
        // Another part of the program may have chosen an implementation of TLS. Then that one is used.
        _ = rustls::crypto::ring::default_provider().install_default();
        let reachable = Arc::new(Reachable::of(&base));
        let resolver = Resolver(Arc::clone(&reachable));
        let policy = Policy::custom(move |attempt| {
            let is_tls = |url: &Url| url.scheme() == "https";
            match attempt.previous().last() {
                _ if attempt.previous().len() > MAX_REDIRECTS => attempt.error("too many redirects"),
                Some(from) if is_tls(from) && !is_tls(attempt.url()) => {
                    attempt.error("a redirect leads from https:// to http://")
                }
                _ => match reachable.check(attempt.url()) {
                    Err(why) => attempt.error(why),
                    Ok(()) => attempt.follow(),
                },
            }
        });
        let client = Client::builder()
            .user_agent(concat!("symdex/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(timeout.min(Duration::from_secs(10)))
            .redirect(policy)
            // The query of the base may be a secret. It is not for the target of a redirect.
            .referer(false)
            .dns_resolver(resolver)
            .build()
            .map_err(|error| Failure::lasting(client_error_text(error)))?;
        Ok(Self { base, client, timeout })
    }

    /// The file `key`, whose parts are separated by `/`, and its size if the server states it. `None` if there is none.
    pub(crate) fn get(&self, key: &str) -> Result<Option<(WebBody, Option<u64>)>, Failure> {
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut path) => _ = path.pop_if_empty().extend(key.split('/')),
            Err(()) => return Err(Failure::lasting("its URL has no path")),
        }
        let sent = wait_for(self.timeout, self.client.get(url).send()).map_err(of_runtime)?;
        let response = sent.map_err(of_client)?;
        let status = response.status();
        match status {
            StatusCode::OK => {
                let size = response.content_length();
                let body = WebBody { response: Some(response), part: Bytes::new(), timeout: self.timeout };
                Ok(Some((body, size)))
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            _ => {
                let is_transient = status.is_server_error()
                    || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status);
                Err(Failure { reason: format!("the server answers {status}"), is_transient })
            }
        }
    }
}

impl Read for WebBody {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            let Some(mut response) = self.response.take() else { return Ok(0) };
            let next = wait_for(self.timeout, async move { (response.chunk().await, response) });
            let (part, response) = next.map_err(|error| of_runtime(error).into_io())?;
            match part.map_err(|error| of_client(error).into_io())? {
                Some(part) => self.part = part,
                None => return Ok(0),
            }
            self.response = Some(response);
        }
        let len = out.len().min(self.part.len());
        out[..len].copy_from_slice(&self.part.split_to(len));
        Ok(len)
    }
}

fn of_runtime(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::TimedOut => Failure::transient("no answer within the time-out"),
        _ => Failure::transient(error.to_string()),
    }
}

fn of_client(error: reqwest::Error) -> Failure {
    let is_transient = !error.is_builder() && !error.is_redirect();
    Failure { reason: client_error_text(error), is_transient }
}

/// The text of `error` and of its causes, without the URL, which may have secrets.
pub fn client_error_text(error: reqwest::Error) -> String {
    let error: &(dyn Error + 'static) = &error.without_url();
    let texts = iter::successors(Some(error), |&error| error.source()).map(ToString::to_string);
    texts.collect::<Vec<_>>().join(": ")
}
