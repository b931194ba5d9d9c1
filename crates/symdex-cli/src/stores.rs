//! The stores that a command line names.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use symdex::ImageId;
use symdex_store::{
    IdPrefix, OpenImage, ReaderOptions, Store, StoreOptions, StoreReader, StoreUrl, StoreUrlError, open_store,
};

use crate::config::{Config, STORE};
use crate::failure::{Cause, Failure, complain};
use crate::open::AccessOption;
use crate::{number, text};

/// The stores of the configuration file, and where it names them. They are used if the command line and the environment
/// name none.
static OF_FILE: OnceLock<(Vec<String>, String)> = OnceLock::new();

/// The digits of a UUID. Only longer ids begin with as many digits.
const WHOLE_ID: usize = 32;

/// A URL of the command line. If it is wrong, clap would print it with its secrets.
type GivenUrl = Result<StoreUrl, StoreUrlError>;

#[expect(clippy::unnecessary_wraps, reason = "clap wants a result")]
fn given(text: &str) -> Result<GivenUrl, Infallible> {
    Ok(StoreUrl::from_argument(text))
}

/// The help of `--store`.
fn help() -> String {
    format!(
        "A store of indexes: {}. May be repeated; the stores are asked in this order. Credentials are read from the \
         environment. The default is in the environment variable SYMDEX_STORE, separated by spaces, or in symdex.toml",
        StoreUrl::kinds().map(|(expected, _)| expected).collect::<Vec<_>>().join(", ")
    )
}

/// The options that name stores.
#[derive(clap::Args)]
pub(crate) struct StoreArgs {
    #[arg(long = STORE.name, value_name = "URL", value_parser = given, help = help())]
    urls: Vec<GivenUrl>,
    /// The size of the cache for indexes of object stores, in the user's cache folder. 0 disables the cache
    #[arg(long, value_name = "SIZE", default_value = "10GB", value_parser = number::parse_size)]
    cache_size: usize,
    /// How long a store may take to answer. After that, the next store is asked, and this one not again for a while
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = number::parse_time)]
    store_timeout: Duration,
}

impl StoreArgs {
    /// Whether the command line names a store.
    pub(crate) fn are_given(&self) -> bool {
        !self.urls.is_empty()
    }

    /// The URLs of the command line; without any, those of the environment or the configuration file.
    pub(crate) fn urls(&self) -> Result<Vec<StoreUrl>, Failure> {
        if self.are_given() {
            let usage = |error: StoreUrlError| Failure::new(Cause::Usage, format!("--store: {error}"));
            return self.urls.iter().map(|url| url.clone().map_err(usage)).collect();
        }
        configured_urls()
    }

    pub(crate) fn options(&self, access: AccessOption) -> StoreOptions {
        let options = StoreOptions::new().access(access.access()).timeout(self.store_timeout);
        match user_cache().filter(|_| self.cache_size != 0) {
            Some(folder) => options.cache(folder.join("objects"), self.cache_size as u64),
            None => options,
        }
    }

    /// Opens the stores, in their order.
    pub(crate) fn open(&self, access: AccessOption) -> Result<Vec<Box<dyn Store>>, Failure> {
        self.open_with(&self.options(access))
    }

    /// Opens the stores, in their order, with `options`.
    pub(crate) fn open_with(&self, options: &StoreOptions) -> Result<Vec<Box<dyn Store>>, Failure> {
        self.urls()?.iter().map(|url| Ok(open_store(url, options)?)).collect()
    }

    /// The image `id` of the first store that has it. If a store fails, the next one is asked. `None` if the command
    /// line names no store.
    pub(crate) fn find(
        &self,
        id: Option<&IdPrefix>,
        access: AccessOption,
    ) -> Result<Option<OpenImage>, Failure> {
        if !self.are_given() {
            return Ok(None);
        }
        let reader = StoreReader::new(self.open(access)?, &ReaderOptions::of_one_run());
        let names = || text::list(reader.stores().iter().map(|store| store.url()));
        let Some(prefix) = id else {
            let message = format!("{}: choose an index of the store with --id", names());
            return Err(Failure::new(Cause::Usage, message));
        };
        let stores = reader.stores();
        let mut failures = reader.no_failures();
        let mut found = prefix.to_id().and_then(|id| reader.find_noting(&id, &mut failures));
        if found.is_none() {
            let id = id_of(stores.iter().map(|store| store.store()), prefix, &mut failures)?;
            found = id.and_then(|id| reader.find_noting(&id, &mut failures));
        }
        let failures = failures.into_iter().flatten();
        let Some(image) = found else {
            // A store that has failed may have the image.
            if let Some(gravest) = failures.map(Failure::from).max_by_key(|failure| failure.cause) {
                return Err(gravest);
            }
            let message = format!("{}: no index has an id that begins with {prefix}", names());
            return Err(Failure::new(Cause::NotFound, message));
        };
        for error in failures {
            complain(&format!("warning: {error}; answered from {}", image.location()));
        }
        Ok(Some(image))
    }
}

/// Calls `ask` with `image` as its store has it now.
pub(crate) fn ask<T>(
    image: &OpenImage,
    ask: impl FnMut(&OpenImage) -> Result<T, symdex_store::Error>,
) -> Result<T, Failure> {
    image.ask(ask)?.ok_or_else(|| {
        let message = format!("{}: the index was removed from the store", image.location());
        Failure::new(Cause::Missing, message)
    })
}

/// Sets the stores of the configuration file. Call this once, before the command runs.
pub(crate) fn configure(config: &Config) {
    if let Some((urls, place)) = config.values(&STORE) {
        // Fails if it is set already.
        let _ = OF_FILE.set((urls.to_vec(), place));
    }
}

/// The URLs in the environment; without the variable, those of the configuration file. They may have secrets.
pub(crate) fn configured_urls() -> Result<Vec<StoreUrl>, Failure> {
    let read = |url: &str, place: &str| {
        let wrong = |error| Failure::new(Cause::Usage, format!("{place}: {error}"));
        url.parse().map_err(|error: StoreUrlError| wrong(error))
    };
    match (std::env::var_os(STORE.variable), OF_FILE.get()) {
        (Some(urls), _) => {
            urls.to_string_lossy().split_whitespace().map(|url| read(url, STORE.variable)).collect()
        }
        (None, Some((urls, place))) => urls.iter().map(|url| read(url, place)).collect(),
        (None, None) => Ok(Vec::new()),
    }
}

/// The id that `prefix` is, if it has as many digits as a UUID.
pub(crate) fn whole_id(prefix: &IdPrefix) -> Option<ImageId> {
    prefix.to_id().filter(|id| id.to_string().len() >= WHOLE_ID)
}

/// The one id in `stores` that begins with `prefix`. A list of all indexes takes long, so it is made for few digits
/// only. Stores that have failed before are left out.
pub(crate) fn id_of<'s>(
    stores: impl IntoIterator<Item = &'s dyn Store>,
    prefix: &IdPrefix,
    failures: &mut [Option<symdex_store::Error>],
) -> Result<Option<ImageId>, Failure> {
    let mut ids: Vec<ImageId> = Vec::new();
    for (store, failure) in stores.into_iter().zip(failures).filter(|(_, failure)| failure.is_none()) {
        *failure = add_ids(store, prefix, &mut ids).err();
    }
    ids.sort();
    one_of(prefix, ids)
}

/// The one of `ids` that `prefix` means.
pub(crate) fn one_of(
    prefix: &IdPrefix,
    ids: impl IntoIterator<Item = ImageId>,
) -> Result<Option<ImageId>, Failure> {
    let mut ids: Vec<_> = ids.into_iter().filter(|id| prefix.matches(id)).collect();
    if ids.len() < 2 {
        return Ok(ids.pop());
    }
    match ids.iter().position(|id| Some(id) == prefix.to_id().as_ref()) {
        Some(whole) => Ok(Some(ids.swap_remove(whole))),
        None => {
            let message = format!("several ids begin with {prefix}: {}; give more digits", text::list(ids));
            Err(Failure::new(Cause::Usage, message))
        }
    }
}

/// Adds the ids in `store` that begin with `prefix` to `ids`.
fn add_ids(store: &dyn Store, prefix: &IdPrefix, ids: &mut Vec<ImageId>) -> Result<(), symdex_store::Error> {
    if let Some(start) = whole_id(prefix) {
        // Debug ids of ELF images are the first 16 bytes of longer ids.
        let found = store.ids_from(&[start]).pop().unwrap_or(Ok(Vec::new()))?;
        ids.extend(found.into_iter().filter(|id| !ids.contains(id)).collect::<Vec<_>>());
        return Ok(());
    }
    store.list(&mut |entry| {
        if prefix.matches(&entry.id) && !ids.contains(&entry.id) {
            ids.push(entry.id);
        }
        // More ids would not make the message better.
        if ids.len() > 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
}

/// The folder of symdex in the user's cache folder; `None` if there is no cache folder.
pub(crate) fn user_cache() -> Option<PathBuf> {
    use etcetera::BaseStrategy as _;
    Some(etcetera::base_strategy::choose_native_strategy().ok()?.cache_dir().join("symdex"))
}
