//! Symbolication over HTTP: crash reports, addresses, and uploads of debug files.
//!
//! [`Server::bind`] takes [`ServerOptions`] and listens; [`Server::run`] serves until it is told to stop. A request is
//! read by an asynchronous thread, answered on a thread of its own pool ([`ServerOptions::threads`]), because stores
//! and indexes are read by blocking calls, and written by an asynchronous thread again.
//!
//! docs/SERVICE.md describes the requests.

mod answers;
mod app;
mod audit;
mod auth;
mod headers;
mod health;
mod jobs;
mod limits;
mod metrics;
mod misses;
mod mozilla;
mod openapi;
mod operation;
mod options;
mod origin;
#[cfg(feature = "otel")]
mod otel;
mod page;
mod problem;
mod process;
mod refusals;
mod router;
mod sentry;
mod server;
mod tls;
mod token;
mod trace;
mod unasked;
mod v1;

pub use self::options::ServerOptions;
pub use self::server::{Reloader, Server, ServerError};
pub use self::token::{NewToken, ParseScopeError, ParseTokenError, SCOPES_TEXT, Scope, Token};
pub use self::trace::{Logging, init_logging};
