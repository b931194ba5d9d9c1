//! Puts an index into an object store.

use std::io::Write as _;
use std::time::Duration;

use object_store::{
    Attribute, Attributes, Error as ClientError, GetOptions, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use symdex::{ImageId, Index};

use super::body::Encoding;
use super::errors::{Failed, reason};
use super::{DIGEST_FIELD, MAX_NAME, NAME_FIELD, ObjectsStore, SIZE_FIELD};
use crate::error::Error;
use crate::publish::{PublishOutcome, compare};
use crate::store::{Store as _, runtime};

/// How often the index is compared again because another writer was faster. Each time, the object has become better, so
/// this is reached only if a server does not keep its own objects.
const ATTEMPTS: u32 = 256;
/// Bytes that a slow connection sends in a second.
const SLOW: u64 = 1 << 20;

impl ObjectsStore {
    /// Puts `index`, and decides conflicts, with conditional requests: the object is created only if there is none, and
    /// replaced only if it is still the one that was compared.
    pub(super) fn put_index(&self, index: &Index<&[u8]>) -> Result<PublishOutcome, Error> {
        let location = self.location(index.id());
        let mut payload = None;
        for _ in 0..ATTEMPTS {
            let (outcome, version) = match self.existing(index.id())? {
                None => (PublishOutcome::Written, None),
                Some((Ok(bytes), version)) => (self.outcome(index, &bytes, &location)?, Some(version)),
                Some((Err(damage), version)) => (PublishOutcome::Repaired { damage }, Some(version)),
            };
            if outcome.keeps_existing() {
                return Ok(outcome);
            }
            let payload = match &payload {
                Some(payload) => payload,
                None => payload.insert(self.payload(index)?),
            };
            match self.write(index, payload.clone(), version) {
                Ok(()) => return Ok(outcome),
                // Another writer was faster.
                Err(Failed::Client(ClientError::AlreadyExists { .. } | ClientError::Precondition { .. })) => {
                }
                // The object was removed meanwhile.
                Err(Failed::Client(ClientError::NotFound { .. })) if outcome != PublishOutcome::Written => {}
                Err(error) => return Err(error.at(location, "write")),
            }
        }
        let reason = format!("other writers have changed the object {ATTEMPTS} times; put the index again");
        Err(Error::Store { location, action: "write", reason, is_unavailable: true })
    }

    fn outcome(
        &self,
        index: &Index<&[u8]>,
        existing: &[u8],
        location: &str,
    ) -> Result<PublishOutcome, Error> {
        compare(index, existing).map_err(|error| Error::NewerIndex { path: location.into(), error })
    }

    /// The index that the store has, or its damage, and the version of the object.
    #[expect(clippy::type_complexity, reason = "used once")]
    fn existing(
        &self,
        id: &ImageId,
    ) -> Result<Option<(Result<crate::IndexBytes, String>, UpdateVersion)>, Error> {
        let (encoding, key) = (self.encoding(), self.key(id, self.encoding()));
        let options = GetOptions::default();
        let result = match self.run(&key, |client, key| async move { client.get_opts(&key, options).await }) {
            Err(error) if error.is_not_found() => return Ok(None),
            result => result.map_err(|error| error.at(self.location_of(&key), "read"))?,
        };
        let version =
            UpdateVersion { e_tag: result.meta.e_tag.clone(), version: result.meta.version.clone() };
        match self.fetch(super::Found { encoding, key, result }) {
            Err(Error::DamagedObject { what, .. }) => Ok(Some((Err(what), version))),
            bytes => Ok(Some((Ok(bytes?), version))),
        }
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
        match self.encoding() {
            Encoding::Plain => Ok(PutPayload::from(bytes.to_vec())),
            Encoding::Zstd => encode().map(PutPayload::from).map_err(|error| {
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
    ) -> Result<(), Failed> {
        let mut attributes = Attributes::new();
        attributes.insert(Attribute::ContentType, "application/octet-stream".into());
        if self.encoding() == Encoding::Zstd {
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
        let mode = version.map_or(PutMode::Create, PutMode::Update);
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        let timeout = self.timeout + Duration::from_secs(payload.content_length() as u64 / SLOW);
        let (client, key) = (std::sync::Arc::clone(&self.client), self.key(index.id(), self.encoding()));
        let put = async move { client.put_opts(&key, payload, options).await };
        runtime::wait(timeout, put)??;
        Ok(())
    }
}
