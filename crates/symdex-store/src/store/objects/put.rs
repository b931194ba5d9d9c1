//! Puts an index into an object store.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use object_store::{
    Attribute, Attributes, Error as ClientError, GetOptions, GetResult, PutMode, PutOptions as PutRequest,
    PutPayload, UpdateVersion,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use symdex::Index;

use super::body::transfer_time;
use super::errors::Failed;
use super::gc::{age, version_of};
use super::{
    DIGEST_FIELD, GRADE_FIELD, MAX_NAME, NAME_FIELD, ObjectState, ObjectsStore, PROVENANCE_FIELD, SIZE_FIELD,
    digest_of, provenance_of,
};
use crate::buffer::IndexBytes;
use crate::error::Error;
use crate::provenance::{OnConflict, Provenance, PutOptions};
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
    /// The metadata of the object state the index that is put.
    Same(Stated),
    /// The index in another object, or its damage.
    Other(Stated, Result<IndexBytes, String>),
}

/// What an object states of itself.
struct Stated {
    put_by: Option<Provenance>,
    version: UpdateVersion,
    /// The time since it was written.
    age: Duration,
}

impl Stated {
    fn new(object: &GetResult) -> Self {
        let (version, age) = (version_of(&object.meta), age(&object.meta));
        Self { put_by: provenance_of(object), version, age }
    }
}

impl ObjectsStore {
    /// Puts `index`, and decides conflicts, with conditional requests: the object is created only if there is none, and
    /// replaced only if it is still the one that was compared. An old index that stays is written again:
    /// [`gc`](super::gc) goes by the age of objects.
    ///
    /// An object whose metadata states the digest of `index` is not read, so its damage is not seen. It is read with
    /// [`OnConflict::Replace`], and if this process has found it damaged.
    pub(super) fn put_index(
        &self,
        index: &Index<&[u8]>,
        options: &PutOptions,
    ) -> Result<PublishOutcome, Error> {
        let location = self.location(index.id());
        let (mut payload, mut mark, mut read_twice) = (None, None, false);
        let may_trust = options.on_conflict != OnConflict::Replace && !self.damaged.take(index.id());
        for _ in 0..ATTEMPTS {
            let existing = self.existing(index, may_trust)?;
            let (outcome, version) = match &existing {
                Existing::Nothing => (PublishOutcome::Written, None),
                Existing::Mark(version) => {
                    if !self.has_waited(&mut mark, version) {
                        std::thread::sleep(PAUSE);
                        continue;
                    }
                    (PublishOutcome::Written, Some(version))
                }
                Existing::Same(Stated { version, .. }) => (PublishOutcome::Unchanged, Some(version)),
                Existing::Other(Stated { put_by, version, .. }, Ok(bytes)) => {
                    let outcome = compare(index, bytes, options, |_| put_by.clone());
                    let newer = |error| Error::NewerIndex { path: location.as_str().into(), error };
                    (outcome.map_err(newer)?, Some(version))
                }
                Existing::Other(Stated { version, .. }, Err(damage)) => {
                    (PublishOutcome::Repaired { damage: damage.clone() }, Some(version))
                }
            };
            // A good index is not replaced because one read of it went wrong.
            if matches!(outcome, PublishOutcome::Repaired { .. }) && !std::mem::replace(&mut read_twice, true)
            {
                continue;
            }
            let written = match (outcome.keeps_existing(), &existing) {
                (true, Existing::Same(object)) => self.renew(index, object),
                (true, Existing::Other(object, Ok(bytes))) => match Index::open(&bytes[..]) {
                    Ok(index) => self.renew(&index, object),
                    Err(_) => Ok(()),
                },
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

    /// What the store has of the image of `index`. If the object states the digest of `index`, and `may_trust` is true,
    /// only its metadata is asked for.
    fn existing(&self, index: &Index<&[u8]>, may_trust: bool) -> Result<Existing, Error> {
        let id = index.id();
        let is_same = |object: &GetResult| may_trust && digest_of(&object.attributes) == Some(index.digest());
        let found = match self.find(id, GetOptions::new().with_head(true))? {
            Some(ObjectState::Object(object)) if !is_same(&object) => self.find(id, GetOptions::new())?,
            found => found,
        };
        let object = match found {
            Some(ObjectState::Object(object)) => object,
            Some(ObjectState::Mark(version)) => return Ok(Existing::Mark(version)),
            Some(ObjectState::Unchanged) | None => return Ok(Existing::Nothing),
        };
        if is_same(&object) {
            return Ok(Existing::Same(Stated::new(&object)));
        }
        let stated = Stated::new(&object);
        let index = match self.fetch(id, object) {
            Err(Error::DamagedObject { what, .. }) => Err(what),
            bytes => Ok(bytes?),
        };
        Ok(Existing::Other(stated, index))
    }

    /// Writes `index`, which is the one in `object`, again if the object is old.
    fn renew(&self, index: &Index<&[u8]>, object: &Stated) -> Result<(), Failed> {
        if object.age >= self.renewed_after {
            return self.write(index, &mut None, Some(&object.version), object.put_by.as_ref());
        }
        Ok(())
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

    /// Writes the object if the store still has `version` of it; if there is none, for `None`. `payload` keeps the
    /// bytes of the object for further attempts.
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
        let grade = index.metadata().grade().name();
        attributes.insert(Attribute::Metadata(GRADE_FIELD.into()), grade.into());
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

    /// Whether the writer has waited long enough for the mark `version` to be deleted. `seen` has the mark that it
    /// waits for.
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
