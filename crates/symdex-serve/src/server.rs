//! Connections: accepting them, TLS, and stopping.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use symdex_answer::SourceError;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::app::{App, AppError, SharedApp};
use crate::auth::{self, Access};
use crate::limits;
use crate::limits::{Client, Lane, PacedWriter, Places};
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::router::router;
use crate::tls::{Tls, TlsError};
use crate::token::Token;

/// The size of the buffer of a connection, and so of the head of a request.
const MAX_HEAD: usize = 16 << 10;

/// How many connections beyond the limit get an answer at a time. More are closed at once.
const MAX_REFUSALS: usize = 64;

/// The answer for connections beyond the limit.
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A server that listens.
pub struct Server {
    app: SharedApp,
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

/// Why a server cannot be started.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is a network address, and there are no tokens.
    #[error(
        "{listen}: others can reach this address, and there are no tokens; give tokens, or set `insecure_public`"
    )]
    Public {
        /// The address.
        listen: SocketAddr,
    },
    /// The address cannot be listened at.
    #[error("{listen}: cannot listen: {error}")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The certificate or the key cannot be used.
    #[error("{}: {message}", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The new tokens cannot be used: there are none, or the server has none.
    #[error(
        "tokens cannot be introduced or removed while the server runs: it has {old} tokens, and would have {new}; \
         restart it"
    )]
    Tokens {
        /// How many tokens the server has.
        old: usize,
        /// How many it would have.
        new: usize,
    },
    /// A source of indexes cannot be used.
    #[error(transparent)]
    Source(SourceError),
    /// The bucket for uploads and jobs cannot be used.
    #[error(transparent)]
    Jobs(symdex_store::Error),
    /// The system has no threads left.
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
    /// A folder for temporary files or for the state of the server cannot be used.
    #[error("{}: {message}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// Debug files cannot be fetched.
    #[error("{0}")]
    Fetch(String),
}

impl From<AppError> for ServerError {
    fn from(error: AppError) -> Self {
        match error {
            AppError::Source(error) => Self::Source(error),
            AppError::Jobs(error) => Self::Jobs(error),
            AppError::Threads(error) => Self::Threads(error),
            AppError::Fetch(_) | AppError::NoIsolation => Self::Fetch(error.to_string()),
            AppError::Folder { path, error } => {
                Self::Folder { path, message: format!("cannot use the folder: {error}") }
            }
        }
    }
}

impl From<TlsError> for ServerError {
    fn from((path, message): TlsError) -> Self {
        Self::Tls { path, message }
    }
}

/// Replaces the tokens and the certificate of a running server. Connections stay open.
#[derive(Clone)]
pub struct Reloader {
    access: Arc<Access>,
    metrics: Arc<Metrics>,
    tls: Option<Arc<Tls>>,
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("access", &self.access).finish_non_exhaustive()
    }
}

impl Reloader {
    /// Replaces the tokens, and reads the files of [`tls`](ServerOptions::tls) again. Requests that arrive from now on
    /// need one of the new tokens, on open connections, too; new connections get the new certificate.
    ///
    /// # Errors
    ///
    /// [`ServerError::Tls`] if a file cannot be used. [`ServerError::Tokens`] if there would be the first tokens, or
    /// none any longer, because a server without tokens has other rules. The server then keeps its tokens and its
    /// certificate.
    pub fn reload(&self, tokens: &[Token]) -> Result<(), ServerError> {
        let identity = self.tls.as_deref().map(Tls::read).transpose()?;
        self.access.replace(tokens).map_err(|(old, new)| ServerError::Tokens { old, new })?;
        if let Some((tls, identity)) = self.tls.as_deref().zip(identity) {
            tls.replace(identity);
            self.metrics.set_certificate(tls);
        }
        Ok(())
    }
}

impl Server {
    /// Opens the sources and listens. Needs a runtime of tokio.
    ///
    /// # Errors
    ///
    /// [`ServerError`] if the options do not allow it, or if one of them cannot be used.
    pub async fn bind(options: ServerOptions) -> Result<Self, ServerError> {
        let listen = options.listen;
        Self::check(&options, listen)?;
        let listener = TcpListener::bind(listen).await;
        Self::new(options, listener.map_err(|error| ServerError::Listen { listen, error })?)
    }

    /// Opens the sources, and listens on a socket that the process was given, whatever
    /// [`listen`](ServerOptions::listen) is. Needs a runtime of tokio.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    pub fn on(options: ServerOptions, socket: std::net::TcpListener) -> Result<Self, ServerError> {
        let listen = options.listen;
        let failed = |error| ServerError::Listen { listen, error };
        Self::check(&options, socket.local_addr().map_err(failed)?)?;
        socket.set_nonblocking(true).map_err(failed)?;
        Self::new(options, TcpListener::from_std(socket).map_err(failed)?)
    }

    /// Checks that a server with `options` may listen at `listen`.
    fn check(options: &ServerOptions, listen: SocketAddr) -> Result<(), ServerError> {
        if !listen.ip().is_loopback() && options.tokens.is_empty() && !options.insecure_public {
            return Err(ServerError::Public { listen });
        }
        Ok(())
    }

    fn new(options: ServerOptions, listener: TcpListener) -> Result<Self, ServerError> {
        let tls = options.tls.clone().map(|(cert, key)| Tls::open(cert, key)).transpose()?.map(Arc::new);
        let app = App::new(options)?;
        if let Some(tls) = &tls {
            app.metrics.set_certificate(tls);
        }
        Ok(Self { app, listener, tls })
    }

    /// The address that the server listens at.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What replaces the tokens and the certificate while the server runs.
    #[must_use]
    pub fn reloader(&self) -> Reloader {
        let (access, metrics) = (Arc::clone(&self.app.access), Arc::clone(&self.app.metrics));
        Reloader { access, metrics, tls: self.tls.clone() }
    }

    /// Serves until `stop` is ready. Connections are accepted for [`drain`](ServerOptions::drain) after that, and
    /// requests that run then have [`grace`](ServerOptions::grace) to end.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { app, listener, tls } = self;
        let (router, graceful) = (router(&app), GracefulShutdown::new());
        // The log says which stores cannot be reached before they are needed.
        let health = app.store_health.clone();
        tokio::spawn(async move { _ = health.stores().await });
        let fitting = limits::connections_that_fit();
        if fitting < app.options.max_connections {
            tracing::warn!(fitting, "the limit of open files of this process allows no more connections");
        }
        let max = app.options.max_connections.min(fitting);
        let of_address = app.options.address_connections.min(max.div_ceil(2));
        let connections = Places::default();
        let refusals = Arc::new(Semaphore::new(MAX_REFUSALS));
        let (mut stop, mut end_of_drain) = (std::pin::pin!(stop), Instant::now());
        loop {
            let accepted = tokio::select! {
                () = &mut stop, if !app.is_stopping() => {
                    // Builds end at once, so that other servers or the next start can go on with them.
                    app.stop();
                    end_of_drain = Instant::now() + app.options.drain;
                    continue;
                }
                () = tokio::time::sleep_until(end_of_drain), if app.is_stopping() => break,
                accepted = listener.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // No file descriptors are left, for example. The next one is tried when some may be free.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let client = Client::at(peer.ip());
            let may_have = |own, all| own < of_address && all < max;
            let Some(place) = connections.take(client, may_have) else {
                app.metrics.lacks("connections");
                if let (None, Ok(permit)) = (&tls, Arc::clone(&refusals).try_acquire_owned()) {
                    tokio::spawn(async move {
                        let _permit = permit;
                        refuse(stream).await;
                    });
                }
                continue;
            };
            let lane = Lane { client, is_large: false };
            let tls = tls.as_deref().map(Tls::acceptor);
            let connection = serve(SharedApp::clone(&app), stream, tls, router.clone(), graceful.watcher());
            tokio::spawn(lane.scope(auth::from_peer(peer.ip(), async move {
                let _place = place;
                connection.await;
            })));
        }
        drop(listener);
        let end = Instant::now() + app.options.grace;
        let _ = tokio::time::timeout_at(end, graceful.shutdown()).await;
        // Threads that are late are few, and get a moment.
        let patience = end.saturating_duration_since(Instant::now()).max(Duration::from_secs(1));
        let _ = tokio::task::spawn_blocking(move || app.join(patience)).await;
    }
}

/// Answers that there are too many connections.
async fn refuse(mut stream: TcpStream) {
    let refusal = async {
        stream.write_all(REFUSAL).await?;
        stream.shutdown().await?;
        // If the request were not read, the system would reset the connection, and the client could lose the answer.
        let mut request = [0; 4 << 10];
        while stream.read(&mut request).await? != 0 {}
        io::Result::Ok(())
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), refusal).await;
}

/// Serves a connection to its end.
async fn serve(
    app: SharedApp,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    watcher: hyper_util::server::graceful::Watcher,
) {
    app.metrics.connections.inc();
    // Answers are written at once.
    let _ = stream.set_nodelay(true);
    match tls {
        None => serve_http(&app, stream, router, watcher).await,
        Some(tls) => {
            let accepted = tokio::time::timeout(app.options.idle_timeout, tls.accept(stream)).await;
            if let Ok(Ok(stream)) = accepted {
                serve_http(&app, stream, router, watcher).await;
            }
        }
    }
    app.metrics.connections.dec();
}

async fn serve_http<S>(app: &App, stream: S, router: Router, watcher: hyper_util::server::graceful::Watcher)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let stream = PacedWriter::new(stream, app.options.idle_timeout);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(app.options.idle_timeout)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection has ended early");
    }
}
