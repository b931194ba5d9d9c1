//! Puts an index into an object store.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use object_store::{
    Attribute, Attributes, Error as ClientError, GetOptions, PutMode, PutOptions as PutRequest, PutPayload,
    UpdateVersion,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use symdex::{ImageId, Index};

use super::body::transfer_time;
use super::errors::Failed;
use super::gc::{age, version_of};
use super::{
    DIGEST_FIELD, Found, MAX_NAME, NAME_FIELD, ObjectsStore, PROVENANCE_FIELD, SIZE_FIELD, provenance_of,
};
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::provenance::{Provenance, PutOptions};
use crate::publish::{PublishOutcome, compare};
use crate::store::{Store as _, runtime};

/// How often the index is compared again because another writer was faster. Each time, the object has become better, so
/// this is reached only if a server does not keep its own objects.
const ATTEMPTS: u32 = 256;

/// How long a writer pauses before it asks again whether a mark is gone.
const PAUSE: Duration = Duration::from_millis(100);

/// What the store has of an image.
enum Existing {
    Nothing,
    /// The index was removed, and the mark of this version is still to be deleted.
    Mark(UpdateVersion),
    Object(ExistingObject),
}

/// An object that exists.
struct ExistingObject {
    /// The index in it, or its damage.
    index: Result<IndexBytes, String>,
    put_by: Option<Provenance>,
    version: UpdateVersion,
    /// The time since it was written.
    age: Duration,
}

impl ObjectsStore {
    /// Puts `index`, and decides conflicts, with conditional requests: the object is created only if there is none, and
    /// replaced only if it is still the one that was compared. An old index that stays is written again: [`gc`](super::gc)
    /// goes by the age of objects.
    pub(super) fn put_index(
        &self,
        index: &Index<&[u8]>,
        options: &PutOptions,
    ) -> Result<PublishOutcome, Error> {
        let location = self.location(index.id());
        let (mut payload, mut mark, mut read_twice) = (None, None, false);
        for _ in 0..ATTEMPTS {
            let existing = self.existing(index.id())?;
            let (outcome, version) = match &existing {
                Existing::Nothing => (PublishOutcome::Written, None),
                Existing::Mark(version) => {
                    if !self.has_waited(&mut mark, version) {
                        std::thread::sleep(PAUSE);
                        continue;
                    }
                    (PublishOutcome::Written, Some(version))
                }
                Existing::Object(ExistingObject { index: Ok(bytes), put_by, version, .. }) => {
                    let outcome = compare(index, bytes, options, |_| put_by.clone());
                    let newer = |error| Error::NewerIndex { path: location.as_str().into(), error };
                    (outcome.map_err(newer)?, Some(version))
                }
                Existing::Object(ExistingObject { index: Err(damage), version, .. }) => {
                    (PublishOutcome::Repaired { damage: damage.clone() }, Some(version))
                }
            };
            // A good index is not replaced because one read of it went wrong.
            if matches!(outcome, PublishOutcome::Repaired { .. }) && !std::mem::replace(&mut read_twice, true)
            {
                continue;
            }
            let written = match (outcome.keeps_existing(), &existing) {
                (true, Existing::Object(object)) => self.renew(object),
                _ => self.write(index, &mut payload, version, options.provenance.as_ref()),
            };
            match written {
                Ok(()) => return Ok(outcome),
                // Another writer was faster.
                Err(Failed::Client(ClientError::AlreadyExists { .. } | ClientError::Precondition { .. })) => {
                }
                // The object was removed in the meantime.
                Err(Failed::Client(ClientError::NotFound { .. })) if version.is_some() => {}
                Err(error) => return Err(error.at(location, "write")),
            }
        }
        let reason = format!("other writers have changed the object {ATTEMPTS} times; put the index again");
        Err(Error::Store { location, action: "write", reason, is_unavailable: true })
    }

    /// What the store has of the image `id`.
    fn existing(&self, id: &ImageId) -> Result<Existing, Error> {
        let object = match self.find(id, GetOptions::default())? {
            Some(Found::Object(object)) => object,
            Some(Found::Mark(version)) => return Ok(Existing::Mark(version)),
            Some(Found::Unchanged) | None => return Ok(Existing::Nothing),
        };
        let (version, age, put_by) = (version_of(&object.meta), age(&object.meta), provenance_of(&object));
        let index = match self.fetch(id, object) {
            Err(Error::DamagedObject { what, .. }) => Err(what),
            bytes => Ok(bytes?),
        };
        Ok(Existing::Object(ExistingObject { index, put_by, version, age }))
    }

    /// Writes the index of `object` again if it is old.
    fn renew(&self, object: &ExistingObject) -> Result<(), Failed> {
        let Ok(bytes) = object.index.as_ref() else { return Ok(()) };
        match Index::open(&bytes[..]) {
            Ok(index) if object.age >= self.renewed_after => {
                self.write(&index, &mut None, Some(&object.version), object.put_by.as_ref())
            }
            _ => Ok(()),
        }
    }

    /// The bytes of the object.
    fn payload(&self, index: &Index<&[u8]>) -> io::Result<PutPayload> {
        let bytes = index.as_bytes();
        if !self.compresses() {
            return Ok(PutPayload::from(bytes.to_vec()));
        }
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), self.zstd_level)?;
        encoder.include_checksum(true)?;
        encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
        encoder.write_all(bytes)?;
        encoder.finish().map(PutPayload::from)
    }

    /// Writes the object if the store still has `version` of it; if there is none, for `None`. `payload` keeps the bytes
    /// of the object for further attempts.
    fn write(
        &self,
        index: &Index<&[u8]>,
        payload: &mut Option<PutPayload>,
        version: Option<&UpdateVersion>,
        provenance: Option<&Provenance>,
    ) -> Result<(), Failed> {
        let payload = match payload {
            Some(payload) => payload.clone(),
            none => none.insert(self.payload(index)?).clone(),
        };
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::ContentType, "application/octet-stream".into());
        if self.compresses() {
            attributes.insert(Attribute::ContentEncoding, "zstd".into());
        }
        let size = index.as_bytes().len().to_string();
        attributes.insert(Attribute::Metadata(SIZE_FIELD.into()), size.into());
        let digest = format!("{:032x}", u128::from_be_bytes(index.digest()));
        attributes.insert(Attribute::Metadata(DIGEST_FIELD.into()), digest.into());
        let name = &index.metadata().image_name;
        let name = utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
        if name.len() <= MAX_NAME {
            attributes.insert(Attribute::Metadata(NAME_FIELD.into()), name.into());
        }
        if let Some(provenance) = provenance {
            let provenance = provenance.to_string().into();
            attributes.insert(Attribute::Metadata(PROVENANCE_FIELD.into()), provenance);
        }
        let mode = version.cloned().map_or(PutMode::Create, PutMode::Update);
        let request = PutRequest { mode, attributes, ..PutRequest::default() };
        let timeout = transfer_time(payload.content_length() as u64, self.timeout);
        let (client, key) = (std::sync::Arc::clone(&self.client), self.key(index.id()));
        let put = async move { client.put_opts(&key, payload, request).await };
        runtime::wait(timeout, put)??;
        Ok(())
    }

    /// Whether the writer has waited long enough for the mark `version` to be deleted. `seen` has the mark that it waits
    /// for.
    fn has_waited(&self, seen: &mut Option<(UpdateVersion, Instant)>, version: &UpdateVersion) -> bool {
        match seen {
            Some((mark, since)) if mark == version => since.elapsed() >= self.writers_wait,
            _ => {
                *seen = Some((version.clone(), Instant::now()));
                false
            }
        }
    }
}
