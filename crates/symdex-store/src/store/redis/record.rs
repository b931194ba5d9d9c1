//! The metadata of an image in Redis.

use std::time::{Duration, SystemTime};

use symdex::{Cause, ImageId, Index, Metadata};

use super::keys::{Generation, metadata_key, value_key};
use super::seal::{seal, unseal};
use crate::error::cause_of_stored;
use crate::provenance::Provenance;
use crate::publish::{Rank, rank_of};

/// The numbers of a record: generation, digest (two), written, TTL, stored size, index size.
const NUMBERS: usize = 7;

/// The longest [`Record::renewal_interval`] in milliseconds.
const RENEWAL_INTERVAL: u64 = 3_600_000;

/// An image with more values is refused. 65,536 values are 16 GiB of code in chunks of 64 KiB.
pub(super) const MAX_VALUES: usize = 1 << 16;

/// What the store states of one image. Its values exist before readers can see the record.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 8 | [checksum](super::seal) with the key of the metadata |
/// | 8 | 8 | generation |
/// | 16 | 16 | digest of the index |
/// | 32 | 8 | when the index was written: milliseconds since 1970 |
/// | 40 | 8 | time until the image expires after a use, in milliseconds |
/// | 48 | 8 | bytes of all values |
/// | 56 | 8 | bytes of the index |
/// | 64 | | the first bytes of the index: header and metadata |
/// | | | who has put the index, as text, if that is known |
///
/// Numbers are little-endian.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Record {
    pub(super) generation: Generation,
    pub(super) digest: [u8; 16],
    pub(super) written: u64,
    pub(super) ttl: u64,
    pub(super) stored_size: u64,
    pub(super) index_size: u64,
    pub(super) prefix: Vec<u8>,
    pub(super) metadata: Metadata,
    pub(super) provenance: Option<Provenance>,
}

/// What [`Record::decode`] cannot read.
#[derive(Debug)]
pub(super) enum BadRecord {
    /// The bytes are damaged. The text says how.
    Damaged(String),
    /// The index was written by a newer or a much older version.
    Unsupported(symdex::Error),
}

impl Record {
    /// The record of `index`, whose values do not exist yet.
    pub(super) fn new(index: &Index<&[u8]>, ttl: Duration, provenance: Option<Provenance>) -> Self {
        let end = index.sections().first().map_or(0, |section| section.offset + section.size);
        let end = usize::try_from(end).unwrap_or(usize::MAX);
        Self {
            generation: Generation::new(),
            digest: index.digest(),
            written: milliseconds(
                SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default(),
            ),
            ttl: milliseconds(ttl).max(1),
            stored_size: 0,
            index_size: index.as_bytes().len() as u64,
            prefix: index.as_bytes().get(..end).unwrap_or_default().to_vec(),
            metadata: index.metadata().clone(),
            provenance,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut content = self.generation.0.to_le_bytes().to_vec();
        content.extend(self.digest);
        for number in [self.written, self.ttl, self.stored_size, self.index_size] {
            content.extend(number.to_le_bytes());
        }
        content.extend(&self.prefix);
        content.extend(self.provenance.iter().flat_map(|provenance| provenance.to_string().into_bytes()));
        seal(&metadata_key(&self.metadata.id), &content)
    }

    pub(super) fn decode(id: &ImageId, bytes: &[u8]) -> Result<Self, BadRecord> {
        let damaged = |what: &str| BadRecord::Damaged(what.to_owned());
        let content = unseal(&metadata_key(id), bytes);
        let content = content.ok_or_else(|| damaged("the checksum of the metadata does not match"))?;
        let head = content.split_first_chunk::<{ 8 * NUMBERS }>();
        let (head, rest) = head.ok_or_else(|| damaged("the metadata is too short"))?;
        let (words, _) = head.as_chunks::<8>();
        let number = |at: usize| u64::from_le_bytes(words[at]);
        let bad = |error: symdex::Error| match cause_of_stored(&error) {
            Cause::Unsupported => BadRecord::Unsupported(error),
            _ => BadRecord::Damaged(error.to_string()),
        };
        let metadata = Metadata::from_prefix(rest).map_err(bad)?;
        let size = Metadata::prefix_size(rest).map_err(bad)?;
        let split = usize::try_from(size).ok().and_then(|size| rest.split_at_checked(size));
        let (prefix, provenance) = split.ok_or_else(|| damaged("the metadata is too short"))?;
        if metadata.id != *id {
            return Err(damaged("the metadata is that of another image"));
        }
        Ok(Self {
            generation: Generation(number(0)),
            digest: [words[1], words[2]].concat().try_into().unwrap_or_default(),
            written: number(3),
            ttl: number(4),
            stored_size: number(5),
            index_size: number(6),
            prefix: prefix.to_vec(),
            metadata,
            provenance: str::from_utf8(provenance).ok().and_then(Provenance::parse),
        })
    }

    pub(super) fn rank(&self) -> Rank {
        // The prefix was decoded before.
        let has_optional = [Metadata::prefix_has_readable_names, Metadata::prefix_has_unwind_rows]
            .map(|has| has(&self.prefix).unwrap_or(false));
        rank_of(&self.metadata, has_optional, self.digest)
    }

    /// The numbers of all values.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> + use<> {
        self.metadata.value_numbers().into_iter().flatten()
    }

    /// How many values there are.
    pub(super) fn value_len(&self) -> u64 {
        let lengths = self.metadata.value_numbers().into_iter().map(|numbers| numbers.end - numbers.start);
        lengths.fold(0, u64::saturating_add)
    }

    /// The mean size of the parts of the index.
    pub(super) fn value_size(&self) -> u64 {
        self.index_size / self.value_len().max(1)
    }

    /// The keys of all values.
    pub(super) fn value_keys(&self) -> impl Iterator<Item = String> + '_ {
        // A hostile record must not make the caller allocate without bound.
        let numbers = self.numbers().take(MAX_VALUES);
        numbers.map(|number| value_key(&self.metadata.id, self.generation, number))
    }

    /// Milliseconds for which values outlive the metadata. A reader that has just seen the metadata finds the values.
    pub(super) fn value_ttl(&self) -> u64 {
        self.ttl.saturating_add((self.ttl / 10).clamp(1, 3_600_000))
    }

    /// How many milliseconds pass between two uses that are recorded: at most an hour. A recorded use renews all keys
    /// of the image, so that a server that is short of memory does not evict some of them as least recently used.
    pub(super) fn renewal_interval(&self) -> u64 {
        (self.ttl / 10).min(RENEWAL_INTERVAL)
    }

    /// The image is used, and expires later, if it would expire in less than this many milliseconds.
    pub(super) fn renew_below(&self) -> u64 {
        self.ttl - self.renewal_interval()
    }
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_indexes;

    fn record() -> Record {
        let index = test_indexes::index(0xab, 3, 4, "x");
        let index = Index::open(index.as_bytes()).expect("an index");
        Record { stored_size: 5, ..Record::new(&index, Duration::from_secs(10), None) }
    }

    #[test]
    fn a_record_reads_as_written() {
        let record = record();
        let put_by = Provenance::parse("received=7;token=ci");
        let by_somebody = Record { provenance: put_by, ..record.clone() };
        let read = Record::decode(&record.metadata.id, &by_somebody.encode()).expect("as written");
        assert_eq!(read, by_somebody);
        let bytes = record.encode();
        let read = Record::decode(&record.metadata.id, &bytes).expect("as written");
        assert_eq!((&read, read.ttl, read.encode()), (&record, 10_000, bytes));
        assert_eq!((read.value_ttl(), read.renew_below()), (11_000, 9_000));
    }

    #[test]
    fn every_cut_every_change_and_every_other_image_is_damage() {
        let record = record();
        let (id, bytes) = (&record.metadata.id, record.encode());
        let is_damaged = |id: &ImageId, bytes: &[u8]| {
            matches!(Record::decode(id, bytes).expect_err("damaged"), BadRecord::Damaged(_))
        };
        assert!((0..bytes.len()).all(|len| is_damaged(id, &bytes[..len])));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(is_damaged(id, &changed), "{at}");
        }
        assert!(is_damaged(&ImageId::new(&[1]).expect("an id"), &bytes));
    }

    #[test]
    fn a_newer_index_is_unsupported() {
        let mut newer = record();
        newer.prefix[8] = 2;
        symdex_testkit::images::seal::seal_header(&mut newer.prefix);
        let error = Record::decode(&newer.metadata.id, &newer.encode()).expect_err("newer");
        assert!(
            matches!(error, BadRecord::Unsupported(symdex::Error::UnsupportedVersion { .. })),
            "{error:?}"
        );
    }
}
