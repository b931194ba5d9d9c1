//! Reads indexes of an object store, from the cache or from the server.

use std::io::Write;

use object_store::{Attribute, GetOptions, GetResult};
use symdex::{Cause, ImageId, Index};

use super::body::{Body, decode};
use super::cache::{Cache, Cached};
use super::{ObjectState, ObjectsStore, SIZE_FIELD, errors};
use crate::buffer::{IndexBuffer, IndexBytes};
use crate::error::Error;
use crate::store::Store as _;

impl ObjectsStore {
    /// Writes the index of `id`, in `object`, to `out`.
    fn read(&self, id: &ImageId, object: GetResult, out: &mut dyn Write) -> Result<(), Error> {
        let size = object.attributes.get(&Attribute::Metadata(SIZE_FIELD.into()));
        let size = size.and_then(|size| size.parse().ok());
        let stored_size = object.meta.size;
        let body = Body::new(object, self.timeout);
        decode(body, stored_size, size, out).map_err(|error| errors::of_body(error, self.location(id)))
    }

    /// The index of `id`, in `object`, in memory or in a temporary file.
    pub(super) fn fetch(&self, id: &ImageId, object: GetResult) -> Result<IndexBytes, Error> {
        let mut buffer = IndexBuffer::new();
        self.read(id, object, &mut buffer)?;
        buffer.into_bytes().map_err(|error| Error::unreadable(self.location(id).as_ref(), error))
    }

    /// Opens `bytes` as the index of `id`. If `is_new`, all bytes are checked.
    fn open_bytes(&self, id: &ImageId, bytes: IndexBytes, is_new: bool) -> Result<Index<IndexBytes>, Error> {
        let location = self.location(id);
        let index = Index::open(bytes)
            .and_then(|index| if is_new { index.verify_digest().map(|()| index) } else { Ok(index) });
        let index = index.map_err(|error| Error::index(location.as_ref(), error))?;
        if index.id() != id {
            let (found, wanted) = (index.id().clone(), id.clone());
            return Err(Error::OtherImage { path: location.into(), found, wanted });
        }
        Ok(index)
    }

    /// The index of `id`, fetched from the store.
    pub(super) fn open_uncached(&self, id: &ImageId) -> Result<Option<Index<IndexBytes>>, Error> {
        self.get(id)?.map(|bytes| self.open_bytes(id, bytes, true)).transpose()
    }

    /// The index of `id`, from the cache if the store has no other one since.
    pub(super) fn open_cached(
        &self,
        cache: &Cache,
        id: &ImageId,
    ) -> Result<Option<Index<IndexBytes>>, Error> {
        let _turn = cache.turn(id);
        let cached = cache.find(id);
        let cached = cached.and_then(|Cached { bytes, tag, is_fresh }| {
            Some((self.open_bytes(id, bytes, false).ok()?, tag, is_fresh))
        });
        let (index, tag) = match cached {
            Some((index, _, true)) => return Ok(Some(index)),
            Some((index, tag, false)) => (Some(index), Some(tag)),
            None if cache.is_absent(id) => return Ok(None),
            None => (None, None),
        };
        let options = GetOptions { if_none_match: tag.flatten(), ..GetOptions::default() };
        match (self.find(id, options), index) {
            (Ok(Some(ObjectState::Unchanged)), Some(index)) => {
                cache.renew(id);
                Ok(Some(index))
            }
            // Old answers are better than none.
            (Err(error), Some(index)) if error.cause() == Cause::Unavailable => Ok(Some(index)),
            (Ok(Some(ObjectState::Object(object))), _) => {
                let tag = object.meta.e_tag.clone();
                let mut file = cache.file(id)?;
                self.read(id, object, file.as_file_mut())?;
                let bytes = symdex::map_open_file(file.as_file());
                let bytes = bytes.map_err(|error| Error::unreadable(file.path(), error))?;
                let index = self.open_bytes(id, bytes.into(), true)?;
                cache.install(id, file, tag.as_deref())?;
                Ok(Some(index))
            }
            (Ok(_), _) => {
                cache.set_absent(id);
                Ok(None)
            }
            (Err(error), _) => Err(error),
        }
    }
}
