//! Single objects of an object store that are not indexes.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt as _};

use super::body::Body;
use super::client::{self, StoreClient};
use super::errors::{self, Failed};
use super::runtime;
use crate::error::Error;
use crate::store::StoreUrl;

/// Reads single objects of an object store, such as debug files. The objects of a [`Store`](crate::Store) are indexes.
pub struct ObjectReader {
    url: StoreUrl,
    client: Arc<dyn ObjectStore>,
    /// What all keys begin with.
    prefix: Key,
    timeout: Duration,
}

/// An object, read from its start. The error of a read has an [`Error`] inside.
pub struct ObjectBody {
    body: Body,
    size: u64,
    location: String,
}

impl ObjectReader {
    /// A reader of the objects below `url`: `s3://`, `gs://`, `az://` or `https://`. The environment has the
    /// credentials, as for stores. `timeout` is how long the object store may take to answer, with all retries, or to
    /// send the next bytes. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the environment has no valid configuration, or if `url` is not an object store.
    pub fn open(url: &StoreUrl, timeout: Duration) -> Result<Self, Error> {
        let failed = |reason| Error::Store {
            location: url.to_string(),
            action: "open",
            reason,
            is_unavailable: false,
        };
        let opened = client::of_url(url, timeout).map_err(|error| failed(errors::reason(&error)))?;
        let StoreClient { client, prefix, .. } = opened;
        Ok(Self { url: url.clone(), client, prefix, timeout })
    }

    /// The object `key`, whose parts are separated by `/`. `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the object store cannot be read.
    pub fn get(&self, key: &str) -> Result<Option<ObjectBody>, Error> {
        let location = format!("{}/{key}", self.url);
        let key = key.split('/').fold(self.prefix.clone(), |path, part| path.join(part));
        let client = Arc::clone(&self.client);
        let got = runtime::wait(self.timeout, async move { client.get(&key).await });
        let got = got.map_err(Failed::from).and_then(|got| got.map_err(Failed::from));
        match got {
            Ok(object) => {
                let size = object.meta.size;
                let body = Body::new(object, self.timeout);
                Ok(Some(ObjectBody { body, size, location }))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.at(location, "read")),
        }
    }
}

impl ObjectBody {
    /// The size of the object in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Read for ObjectBody {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let location = || self.location.clone();
        self.body.read(out).map_err(|error| io::Error::other(errors::of_body(error, location())))
    }
}

impl fmt::Debug for ObjectReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectReader").field("url", &self.url).finish_non_exhaustive()
    }
}

impl fmt::Debug for ObjectBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectBody").field("location", &self.location).finish_non_exhaustive()
    }
}
