//! Puts an index into an object store.

use std::io::Write as _;
use std::time::Duration;

use object_store::{
    Attribute, Attributes, Error as ClientError, GetOptions, PutMode, PutOptions as PutRequest, PutPayload,
    UpdateVersion,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use symdex::{ImageId, Index};

use super::errors::{Failed, reason};
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
/// Bytes that a slow connection sends in a second.
const SLOW: u64 = 1 << 20;

/// An object that exists.
struct Existing {
    /// The index in it, or its damage.
    index: Result<IndexBytes, String>,
    put_by: Option<Provenance>,
    version: UpdateVersion,
}

impl ObjectsStore {
    /// Puts `index`, and decides conflicts, with conditional requests: the object is created only if there is none, and
    /// replaced only if it is still the one that was compared.
    pub(super) fn put_index(
        &self,
        index: &Index<&[u8]>,
        options: &PutOptions,
    ) -> Result<PublishOutcome, Error> {
        let location = self.location(index.id());
        let mut payload = None;
        for _ in 0..ATTEMPTS {
            let (outcome, version) = match self.existing(index.id())? {
                None => (PublishOutcome::Written, None),
                Some(Existing { index: Ok(bytes), put_by, version }) => {
                    let outcome = compare(index, &bytes, options, |_| put_by);
                    let newer = |error| Error::NewerIndex { path: location.as_str().into(), error };
                    (outcome.map_err(newer)?, Some(version))
                }
                Some(Existing { index: Err(damage), version, .. }) => {
                    (PublishOutcome::Repaired { damage }, Some(version))
                }
            };
            if outcome.keeps_existing() {
                return Ok(outcome);
            }
            let payload = match &payload {
                Some(payload) => payload,
                None => payload.insert(self.payload(index)?),
            };
            match self.write(index, payload.clone(), version, options) {
                Ok(()) => return Ok(outcome),
                // Another writer was faster.
                Err(Failed::Client(ClientError::AlreadyExists { .. } | ClientError::Precondition { .. })) => {
                }
                // The object was removed in the meantime.
                Err(Failed::Client(ClientError::NotFound { .. })) if outcome != PublishOutcome::Written => {}
                Err(error) => return Err(error.at(location, "write")),
            }
        }
        let reason = format!("other writers have changed the object {ATTEMPTS} times; put the index again");
        Err(Error::Store { location, action: "write", reason, is_unavailable: true })
    }

    /// The object that the store has.
    fn existing(&self, id: &ImageId) -> Result<Option<Existing>, Error> {
        let Some(Found::Object(object)) = self.find(id, GetOptions::default())? else { return Ok(None) };
        let version =
            UpdateVersion { e_tag: object.meta.e_tag.clone(), version: object.meta.version.clone() };
        let put_by = provenance_of(&object);
        let index = match self.fetch(id, object) {
            Err(Error::DamagedObject { what, .. }) => Err(what),
            bytes => Ok(bytes?),
        };
        Ok(Some(Existing { index, put_by, version }))
    }

    /// The bytes of the object.
    fn payload(&self, index: &Index<&[u8]>) -> Result<PutPayload, Error> {
        let bytes = index.as_bytes();
        let encode = || {
            let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), self.zstd_level)?;
            encoder.include_checksum(true)?;
            encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
            encoder.write_all(bytes)?;
            encoder.finish()
        };
        match self.compresses() {
            false => Ok(PutPayload::from(bytes.to_vec())),
            true => encode().map(PutPayload::from).map_err(|error| {
                let (location, reason) = (self.location(index.id()), reason(&error));
                Error::Store { location, action: "compress", reason, is_unavailable: false }
            }),
        }
    }

    /// Writes the object if the store still has `version` of it; if there is none, for `None`.
    fn write(
        &self,
        index: &Index<&[u8]>,
        payload: PutPayload,
        version: Option<UpdateVersion>,
        options: &PutOptions,
    ) -> Result<(), Failed> {
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
        if let Some(provenance) = &options.provenance {
            let provenance = provenance.to_string().into();
            attributes.insert(Attribute::Metadata(PROVENANCE_FIELD.into()), provenance);
        }
        let mode = version.map_or(PutMode::Create, PutMode::Update);
        let request = PutRequest { mode, attributes, ..PutRequest::default() };
        let timeout = self.timeout + Duration::from_secs(payload.content_length() as u64 / SLOW);
        let (client, key) = (std::sync::Arc::clone(&self.client), self.key(index.id()));
        let put = async move { client.put_opts(&key, payload, request).await };
        runtime::wait(timeout, put)??;
        Ok(())
    }
}
