//! The sources of debug files that a command line names.

use std::convert::Infallible;
use std::sync::OnceLock;

use symdex_answer::fetch::{FetchError, SourceUrl};
use symdex_store::StoreUrlError;

use crate::config::{Config, DEBUG_SOURCE};
use crate::failure::{Cause, Failure};

/// The variable that names servers for elfutils, GDB and LLVM.
const OF_DEBUGINFOD: &str = "DEBUGINFOD_URLS";

/// The sources of the configuration file, and where it names them.
static OF_FILE: OnceLock<(Vec<String>, String)> = OnceLock::new();

/// A URL of the command line. If it is wrong, clap would print it with its secrets.
type GivenUrl = Result<SourceUrl, StoreUrlError>;

#[expect(clippy::unnecessary_wraps, reason = "clap wants a result")]
fn given(text: &str) -> Result<GivenUrl, Infallible> {
    Ok(SourceUrl::from_argument(text))
}

/// The option that names sources of debug files.
#[derive(clap::Args)]
pub(crate) struct DebugSourceArgs {
    /// The source from which to fetch the debug file of an image without an index: https://HOST or http://HOST (a
    /// debuginfod server), a folder, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX. May be repeated;
    /// the sources are asked in this order. unified+, lldb+, gdb+, debuginfod+ or ssqp+ before the URL chooses the
    /// layout; folders and buckets are searched in all of them otherwise. The default is in the environment variable
    /// SYMDEX_DEBUG_SOURCE, separated by spaces, or in symdex.toml
    #[arg(long = DEBUG_SOURCE.name, value_name = "URL", value_parser = given)]
    debug_sources: Vec<GivenUrl>,
}

impl DebugSourceArgs {
    /// The URLs of the command line; without any, those of the environment or the configuration file.
    pub(crate) fn urls(&self) -> Result<Vec<SourceUrl>, Failure> {
        if !self.debug_sources.is_empty() {
            let given = self.debug_sources.iter().cloned();
            return given.map(|url| url.map_err(|error| usage("--debug-source", &error))).collect();
        }
        match (std::env::var_os(DEBUG_SOURCE.variable), OF_FILE.get()) {
            (Some(urls), _) => read(urls.to_string_lossy().split_whitespace(), DEBUG_SOURCE.variable),
            (None, Some((urls, place))) => read(urls.iter().map(String::as_str), place),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// As [`urls`](Self::urls); without any, those of `DEBUGINFOD_URLS`. Servers in it, which systems name for other
    /// programs, are ignored by a build that reads folders only.
    pub(crate) fn urls_or_debuginfod(&self) -> Result<Vec<SourceUrl>, Failure> {
        let urls = self.urls()?;
        if !urls.is_empty() || std::env::var_os(DEBUG_SOURCE.variable).is_some() {
            return Ok(urls);
        }
        let servers = std::env::var_os(OF_DEBUGINFOD).unwrap_or_default();
        let servers = servers.to_string_lossy().into_owned();
        // Words such as ima:enforcing are not servers.
        let servers = servers.split_whitespace().filter_map(|server| match server.split_once("://")? {
            ("file", path) => Some(format!("debuginfod+dir:{path}")),
            _ => cfg!(feature = "stores").then(|| server.to_owned()),
        });
        read(servers.collect::<Vec<_>>().iter().map(String::as_str), OF_DEBUGINFOD)
    }
}

fn read<'u>(urls: impl Iterator<Item = &'u str>, place: &str) -> Result<Vec<SourceUrl>, Failure> {
    urls.map(|url| url.parse().map_err(|error| usage(place, &error))).collect()
}

fn usage(place: &str, error: &StoreUrlError) -> Failure {
    Failure::new(Cause::Usage, format!("{place}: {error}"))
}

/// Sets the sources of the configuration file. Call this once, before the command runs.
pub(crate) fn configure(config: &Config) {
    if let Some((urls, place)) = config.values(&DEBUG_SOURCE) {
        // Fails if it is set already.
        let _ = OF_FILE.set((urls.to_vec(), place));
    }
}

/// Debug files cannot be fetched.
pub(crate) fn cannot_fetch(error: &FetchError) -> Failure {
    Failure::new(Cause::Other, error.to_string())
}
