//! The records before the sections: header and metadata. [`crate::format`] reads them.

use crate::error::Error;
use crate::format::header::{ALIASES, HEADER_SIZE, Header, MAGIC, VERSION};
use crate::format::metadata::{Metadata, Stored, config};
use crate::format::{Checksums, MAX_METADATA, SectionKind};

impl Header {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.encode_fields();
        out.extend_from_slice(&self.digest);
        let checksum = crc32fast::hash(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// The fields before the digest.
    pub(crate) fn encode_fields(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_SIZE);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[HEADER_SIZE.to_le_bytes()[0], HEADER_SIZE.to_le_bytes()[1]]);
        out.extend_from_slice(&[self.id.as_bytes().len().to_le_bytes()[0], self.id.kind, 0, 0]);
        out.extend_from_slice(&if self.aliases { ALIASES } else { 0 }.to_le_bytes());
        out.extend_from_slice(&self.optional.features.to_le_bytes());
        out.extend_from_slice(self.id.padded());
        out.extend_from_slice(&self.file_size.to_le_bytes());
        self.sections.iter().for_each(|section| out.extend_from_slice(&section.size.to_le_bytes()));
        out
    }
}

impl Metadata {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Error> {
        if let Some(what) = self.first_wrong() {
            return Err(Error::Unwritable { what });
        }
        let too_large = Error::Unwritable { what: "the metadata takes more than 1 MiB" };
        let body = self.encode_fields().filter(|body| body.len() <= MAX_METADATA).ok_or(too_large)?;
        let checksum = Checksums::new(&self.id, SectionKind::Metadata).of(0, &body);
        Ok([&checksum[..], &body].concat())
    }

    /// The fields without a checksum. The limit of their size holds for decoding only.
    pub(crate) fn encode_fields(&self) -> Option<Vec<u8>> {
        let mut body = bincode::serde::encode_to_vec(Stored(self.clone()), config()).ok()?;
        if let Some(segments) = &self.segments {
            body.extend(bincode::serde::encode_to_vec(segments, config()).ok()?);
        }
        Some(body)
    }
}
