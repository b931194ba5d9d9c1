//! Single objects of an object store that are not indexes.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt as _;
use object_store::path::Path as Key;
use object_store::{
    Error as ClientError, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, UpdateVersion,
};

use super::body::{Body, transfer_time};
use super::client::{self, StoreClient};
use super::errors::{self, Failed};
use super::runtime;
use crate::error::Error;
use crate::store::StoreUrl;

/// How many bytes a part of an object has at least. An object has at most [`MAX_PARTS`].
const MIN_PART: u64 = 16 << 20;
const MAX_PARTS: u64 = 5000;

/// Single objects of an object store, such as debug files. The objects of a [`Store`](crate::Store) are indexes.
pub struct Objects {
    url: StoreUrl,
    client: Arc<dyn ObjectStore>,
    /// What all keys begin with.
    prefix: Key,
    timeout: Duration,
}

/// The version of an object, for writes over this version only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectVersion(UpdateVersion);

impl ObjectVersion {
    /// Returns whether both are the tag of the same contents. Not every list of objects has the whole version.
    #[must_use]
    pub fn has_tag_of(&self, other: &Self) -> bool {
        self.0.e_tag.is_some() && self.0.e_tag == other.0.e_tag
    }
}

/// An object in a list.
#[derive(Clone, Debug)]
pub struct ListedObject {
    /// The last part of its key.
    pub name: String,
    /// Its version, for [`ObjectVersion::has_tag_of`].
    pub version: ObjectVersion,
    /// When it was written, by the clock of the object store.
    pub written: SystemTime,
}

/// An object, read from its start. The error of a read has an [`Error`] inside.
pub struct ObjectBody {
    body: Body,
    size: u64,
    version: ObjectVersion,
    location: String,
}

impl Objects {
    /// The objects below `url`: `s3://`, `gs://`, `az://` or `https://`. The environment has the
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
        let location = self.location(key);
        match self.run(key, self.timeout, |client, key| async move { client.get(&key).await }) {
            Ok(object) => {
                let size = object.meta.size;
                let version = ObjectVersion(super::gc::version_of(&object.meta));
                let body = Body::new(object, self.timeout);
                Ok(Some(ObjectBody { body, size, version, location }))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.at(location, "read")),
        }
    }

    /// Writes the object `key` if there is none, or over the version `over`. Returns its new version; `None` if the
    /// object has another version. Nothing has changed then. Every version has other contents.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the object store cannot be written. The object may have been written nevertheless.
    pub fn put(
        &self,
        key: &str,
        bytes: Vec<u8>,
        over: Option<&ObjectVersion>,
    ) -> Result<Option<ObjectVersion>, Error> {
        let mode = over.map_or(PutMode::Create, |version| PutMode::Update(version.0.clone()));
        let (time, payload) = (transfer_time(bytes.len() as u64, self.timeout), PutPayload::from(bytes));
        let options = PutOptions::from(mode);
        let put =
            |client: Arc<dyn ObjectStore>, key| async move { client.put_opts(&key, payload, options).await };
        match self.run(key, time, put) {
            Ok(put) => Ok(Some(ObjectVersion(put.into()))),
            Err(Failed::Client(ClientError::AlreadyExists { .. } | ClientError::Precondition { .. })) => {
                Ok(None)
            }
            Err(error) if over.is_some() && error.is_not_found() => Ok(None),
            Err(error) => Err(error.at(self.location(key), "write")),
        }
    }

    /// Writes the bytes of `file` as the object `key`, over any other one, in parts if they are many.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the file cannot be read, or the object store cannot be written. There is no part of the new
    /// object then.
    pub fn put_file(&self, key: &str, file: &mut File) -> Result<(), Error> {
        self.try_put_file(key, file).map_err(|error| error.at(self.location(key), "write"))
    }

    fn try_put_file(&self, key: &str, file: &mut File) -> Result<(), Failed> {
        file.rewind()?;
        let size = file.metadata()?.len();
        let part_size = MIN_PART.max(size.div_ceil(MAX_PARTS));
        let mut part = || {
            let mut bytes = Vec::new();
            file.take(part_size).read_to_end(&mut bytes)?;
            io::Result::Ok(PutPayload::from(bytes))
        };
        let time = transfer_time(part_size, self.timeout);
        if size <= part_size {
            let payload = part()?;
            return self
                .run(key, time, |client, key| async move { client.put(&key, payload).await })
                .map(|_| ());
        }
        let begin = |client: Arc<dyn ObjectStore>, key| async move { client.put_multipart(&key).await };
        let mut upload = self.run(key, time, begin)?;
        let sent = (0..size.div_ceil(part_size)).try_for_each(|_| {
            let sending = upload.put_part(part()?);
            Ok::<_, Failed>(runtime::wait(time, sending)??)
        });
        let end = async move {
            match sent {
                Ok(()) => upload.complete().await.map(|_| Ok(())),
                Err(error) => upload.abort().await.map(|()| Err(error)),
            }
        };
        runtime::wait(time, end)??
    }

    /// Lists the objects whose keys are `folder` and one more part.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the object store cannot be read.
    pub fn list(&self, folder: &str) -> Result<Vec<ListedObject>, Error> {
        let list = |client: Arc<dyn ObjectStore>, key| async move {
            client.list(Some(&key)).try_collect::<Vec<_>>().await
        };
        // A page has 1,000 objects.
        let found = self.run(folder, transfer_time(0, 10 * self.timeout), list);
        let found = found.map_err(|error| error.at(self.location(folder), "list"))?;
        let listed = found.into_iter().filter_map(|object| {
            Some(ListedObject {
                name: object.location.filename()?.to_owned(),
                version: ObjectVersion(super::gc::version_of(&object)),
                written: object.last_modified.into(),
            })
        });
        Ok(listed.collect())
    }

    /// Deletes the object `key`, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the object store cannot be written.
    pub fn delete(&self, key: &str) -> Result<(), Error> {
        match self.run(key, self.timeout, |client, key| async move { client.delete(&key).await }) {
            Err(error) if !error.is_not_found() => Err(error.at(self.location(key), "delete")),
            _ => Ok(()),
        }
    }

    fn location(&self, key: &str) -> String {
        format!("{}/{key}", self.url)
    }

    /// Runs `work` with the client and the object `key`, at most for `time`.
    fn run<T: Send + 'static, F: Future<Output = object_store::Result<T>> + Send + 'static>(
        &self,
        key: &str,
        time: Duration,
        work: impl FnOnce(Arc<dyn ObjectStore>, Key) -> F,
    ) -> Result<T, Failed> {
        let key = key.split('/').fold(self.prefix.clone(), |path, part| path.join(part));
        Ok(runtime::wait(time, work(Arc::clone(&self.client), key))??)
    }
}

impl ObjectBody {
    /// The size of the object in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The version of the object.
    #[must_use]
    pub fn version(&self) -> &ObjectVersion {
        &self.version
    }
}

impl Read for ObjectBody {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let location = || self.location.clone();
        self.body.read(out).map_err(|error| io::Error::other(errors::of_body(error, location())))
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").field("url", &self.url).finish_non_exhaustive()
    }
}

impl fmt::Debug for ObjectBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectBody").field("location", &self.location).finish_non_exhaustive()
    }
}
