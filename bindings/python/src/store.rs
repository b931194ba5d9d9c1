//! Stores of indexes.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pyo3::prelude::*;
use symdex_store::{PutOptions, ReaderOptions, SharedStore, StoreOptions, StoreUrl, open_store};

use crate::arguments::{Id, StoreLocation};
use crate::errors::{of_argument, of_index, of_store};
use crate::index::Index;

/// A store of indexes: a folder, or a server.
///
/// ``url`` is the path of a folder or one of the URLs that the command takes: ``s3://BUCKET/PREFIX``, ``gs://...``,
/// ``az://...``, ``https://HOST/PATH`` (read only), ``redis://HOST:PORT/DB``, ``redis+cluster://...`` and their forms
/// with TLS. Credentials are read from the environment, as docs/STORES.md says. Nothing is connected until a method is
/// called.
///
/// ``timeout`` is the time in seconds that a store may take to answer. ``cache`` is a folder in which indexes of object
/// stores are kept, up to ``cache_size`` bytes.
///
/// >>> store = Store("/srv/indexes")                                   # doctest: +SKIP
/// >>> index = store.find("4C4C4477-5555-3144-A170-308419376AFA")      # doctest: +SKIP
#[pyclass(frozen, module = "symdex")]
pub(crate) struct Store(Arc<SharedStore>);

/// The options of a store.
pub(crate) fn options(timeout: f64, cache: Option<PathBuf>, cache_size: u64) -> PyResult<StoreOptions> {
    let timeout =
        Duration::try_from_secs_f64(timeout).map_err(|error| of_argument(format!("timeout: {error}")))?;
    let options = StoreOptions::new().timeout(timeout);
    Ok(match cache {
        Some(folder) => options.cache(folder, cache_size),
        None => options,
    })
}

impl Store {
    pub(crate) fn shared(&self) -> &Arc<SharedStore> {
        &self.0
    }

    pub(crate) fn open(url: &StoreUrl, options: &StoreOptions) -> PyResult<Self> {
        let store = open_store(url, options).map_err(of_store)?;
        Ok(Self(SharedStore::new(store, &ReaderOptions::new())))
    }
}

#[pymethods]
impl Store {
    #[new]
    #[pyo3(signature = (url, *, timeout=10.0, cache=None, cache_size=10_000_000_000))]
    fn new(url: StoreLocation, timeout: f64, cache: Option<PathBuf>, cache_size: u64) -> PyResult<Self> {
        Self::open(&url.0, &options(timeout, cache, cache_size)?)
    }

    /// The URL of the store, without user names, passwords and queries.
    #[getter]
    fn url(&self) -> String {
        self.0.url().to_string()
    }

    /// Whether the store can only be read.
    #[getter]
    fn is_read_only(&self) -> bool {
        self.0.store().is_read_only()
    }

    /// Opens the index of the image ``id``; returns ``None`` if the store has none. Dashes and upper case in the id
    /// are accepted, as reports write ids. An index that lookups do not need whole is fetched in parts.
    ///
    /// Raises DamagedError if the index is damaged, and UnavailableError if the store cannot be reached.
    fn find(&self, py: Python<'_>, id: Id) -> PyResult<Option<Index>> {
        let image = py.detach(|| self.0.open(&id.0)).map_err(of_store)?;
        Ok(image.map(Index::stored))
    }

    /// Puts ``index`` into the store, unless the store has the same index or a better one of the image.
    ///
    /// Returns what became of it: ``"written"``, ``"unchanged"``, ``"kept"`` (the other index), ``"replaced"`` or
    /// ``"repaired"`` (the other index was damaged). Readers find the old index or the whole new one.
    fn put(&self, py: Python<'_>, index: &Index) -> PyResult<&'static str> {
        let bytes = index.whole()?.as_bytes();
        let outcome = py.detach(|| {
            let index = symdex::Index::open(bytes).map_err(of_index)?;
            self.0.put(&index, &PutOptions::new()).map_err(of_store)
        })?;
        Ok(outcome.name())
    }

    /// Returns what the store states of the index of ``id``, without reading it; ``None`` if it has none.
    fn stat(&self, py: Python<'_>, id: Id) -> PyResult<Option<StoreEntry>> {
        let entry = py.detach(|| self.0.stat(&id.0)).map_err(of_store)?;
        Ok(entry.map(StoreEntry::from))
    }

    /// Removes the index of ``id``. Returns whether the store had it.
    fn remove(&self, py: Python<'_>, id: Id) -> PyResult<bool> {
        py.detach(|| self.0.remove(&id.0)).map_err(of_store)
    }

    /// Returns the ids of all images in the store, in no particular order.
    fn ids(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let mut ids = Vec::new();
        let listed = py.detach(|| {
            self.0.store().list(&mut |entry| {
                ids.push(entry.id.to_string());
                ControlFlow::Continue(())
            })
        });
        listed.map_err(of_store)?;
        Ok(ids)
    }

    fn __contains__(&self, py: Python<'_>, id: Id) -> PyResult<bool> {
        Ok(self.stat(py, id)?.is_some())
    }

    fn __repr__(&self) -> String {
        format!("<Store {}>", self.0.url())
    }
}

/// What a store states of one index. An attribute is ``None`` if the store does not state it.
#[pyclass(frozen, get_all, module = "symdex")]
pub(crate) struct StoreEntry {
    /// The id of the image.
    id: String,
    /// The name of the image.
    image_name: Option<String>,
    /// Where the index is: a path, or a URL with a key.
    location: String,
    /// How many bytes the store keeps, compressed or not.
    stored_size: u64,
    /// The size of the index in bytes.
    index_size: Option<u64>,
    /// When the index was written.
    written: Option<SystemTime>,
    /// When the index was used last. Stores record uses at most once a day.
    last_use: Option<SystemTime>,
    /// When the store removes the index by itself.
    expires: Option<SystemTime>,
}

impl From<symdex_store::StoreEntry> for StoreEntry {
    fn from(entry: symdex_store::StoreEntry) -> Self {
        let symdex_store::StoreEntry {
            id,
            image_name,
            location,
            stored_size,
            index_size,
            written,
            last_use,
            expires,
            ..
        } = entry;
        Self { id: id.to_string(), image_name, location, stored_size, index_size, written, last_use, expires }
    }
}

#[pymethods]
impl StoreEntry {
    fn __repr__(&self) -> String {
        format!("<StoreEntry {}>", self.location)
    }
}
