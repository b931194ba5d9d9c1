//! The stores that the commands of `symdex store` work on.

use std::convert::Infallible;
use std::fs;

use symdex_store::{Store, StoreOptions, StoreUrl, StoreUrlError, open_store};

use crate::config::STORE;
use crate::failure::{Cause, Failure};
use crate::put_args::PutArgs;
use crate::stores;

/// The word that stands for the stores in the environment, or else in the configuration file.
const CONFIGURED: &str = "-";

/// A URL as an argument. If it is wrong, clap would print it with its secrets.
#[derive(Clone)]
pub(super) enum UrlArgument {
    Url(Result<StoreUrl, StoreUrlError>),
    Configured,
}

/// Reads a URL. A wrong one is reported when it is used.
#[expect(clippy::unnecessary_wraps, reason = "clap wants a result")]
pub(super) fn argument(text: &str) -> Result<UrlArgument, Infallible> {
    Ok(match text {
        CONFIGURED => UrlArgument::Configured,
        text => UrlArgument::Url(StoreUrl::from_argument(text)),
    })
}

impl UrlArgument {
    /// The URLs that the argument stands for, at least one.
    fn urls(&self) -> Result<Vec<StoreUrl>, Failure> {
        let usage = |message: String| Failure::new(Cause::Usage, message);
        match self {
            Self::Url(url) => Ok(vec![url.clone().map_err(|error| usage(error.to_string()))?]),
            Self::Configured => match stores::configured_urls()? {
                urls if urls.is_empty() => {
                    Err(usage(format!("- stands for the stores in {}, which is not set", STORE.variable)))
                }
                urls => Ok(urls),
            },
        }
    }

    /// Opens the one store that the argument stands for.
    fn open(&self, options: &StoreOptions) -> Result<Box<dyn Store>, Failure> {
        match &self.urls()?[..] {
            [url] => Ok(open_store(url, options)?),
            urls => {
                let (count, variable) = (urls.len(), STORE.variable);
                let message =
                    format!("{variable} or symdex.toml names {count} stores; this command takes one URL");
                Err(Failure::new(Cause::Usage, message))
            }
        }
    }

    /// Opens the one store that the argument stands for, to write to it. A folder is created if it does not exist.
    pub(super) fn open_target(&self, options: &PutArgs) -> Result<Box<dyn Store>, Failure> {
        self.open(&options.add_to(StoreOptions::new()))
    }

    /// Opens the one store that the argument stands for. A folder must exist.
    pub(super) fn open_existing(&self) -> Result<Box<dyn Store>, Failure> {
        let store = self.open(&StoreOptions::new())?;
        check_existence(&*store)?;
        Ok(store)
    }
}

/// Opens the stores that `arguments` stand for. Folders must exist.
pub(super) fn open_all(arguments: &[UrlArgument]) -> Result<Vec<Box<dyn Store>>, Failure> {
    let mut stores = Vec::new();
    for argument in arguments {
        for url in argument.urls()? {
            let store = open_store(&url, &StoreOptions::new())?;
            check_existence(&*store)?;
            stores.push(store);
        }
    }
    Ok(stores)
}

/// A folder that does not exist is an empty store. When it is listed, its path is probably wrong.
fn check_existence(store: &dyn Store) -> Result<(), Failure> {
    let Some(path) = store.url().folder() else { return Ok(()) };
    match fs::metadata(&path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => {
            let message = format!("{}: this is a file; expected the folder of a store", path.display());
            Err(Failure::new(Cause::Usage, message))
        }
        Err(error) => Err(Failure::unreadable(&path, &error)),
    }
}
