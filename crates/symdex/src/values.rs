//! An index taken apart into the values of a key-value store.

use std::borrow::Cow;

use zstd::dict::EncoderDictionary;

use crate::chunk::{EncodedStructure, LocalStrings, encode_strings, encode_structure, encode_value};
use crate::error::Error;
use crate::format::{
    Compressor, Decompressor, MAX_PAYLOAD, Table, encode_dictionary, prepare, raw_dictionary, value_checksum,
};
use crate::id32::Id32;
use crate::index::{Index, Pool};

/// The values that a key-value store keeps of an index.
pub struct Values<'i, B> {
    index: &'i Index<B>,
    dictionary: Vec<u8>,
    prepared: EncoderDictionary<'static>,
}

impl<B: AsRef<[u8]>> Index<B> {
    /// The index as the values of a key-value store. Makes the dictionary, which takes as long as reading all names once; so ask for
    /// many chunks of one [`Values`].
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] where the names or the dictionary are damaged.
    pub fn values(&self) -> Result<Values<'_, B>, Error> {
        let level = self.metadata().options.compression_level;
        let dictionary = match self.strings_of(Pool::Names) {
            Some(names) => raw_dictionary(&names.most_used()?),
            None => self.dictionary()?.to_vec(),
        };
        let prepared = prepare(&dictionary, level)?;
        Ok(Values { index: self, dictionary: encode_dictionary(self.id(), &dictionary), prepared })
    }
}

impl<B: AsRef<[u8]>> Values<'_, B> {
    /// The value of the metadata; [`crate::Metadata::decode`] reads it.
    #[must_use]
    pub fn metadata(&self) -> &[u8] {
        self.index.metadata_section()
    }

    /// The value of the dictionary, which most chunk values need; empty where there is none. [`crate::Dictionary::decode`] reads it.
    #[must_use]
    pub fn dictionary(&self) -> &[u8] {
        &self.dictionary
    }

    /// The value of chunk `index` of `table`, which [`crate::Chunk::decode`] reads; `None` for an empty chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] where the chunk or its strings are damaged; [`Error::Unwritable`] where the
    /// strings are too large for one value.
    pub fn chunk(&self, table: Table, index: u64) -> Result<Option<Vec<u8>>, Error> {
        let index_of = self.index;
        let key = |section| index_of.key(section, index);
        // In version 1 the structure lies in the index as it is in a value.
        let (frame_a, names, files) = match index_of.chunk_reader() {
            Some(_) => {
                let contents = index_of.chunk(table, index)?;
                if contents.ranges.is_empty() {
                    return Ok(None);
                }
                let span = index_of.metadata().chunk_span;
                let EncodedStructure { payload, names, files } =
                    encode_structure(index.saturating_mul(span.into()), &contents);
                let level = index_of.metadata().options.compression_level;
                (Cow::Owned(Compressor::new(level)?.frame(key(table.structure()), &payload)?), names, files)
            }
            None => {
                let frames = index_of.frames(table, index)?;
                let chunk = index_of.load_chunk(table, index, &mut Decompressor::plain()?)?;
                let Some(((frame_a, _), chunk)) = frames.zip(chunk) else { return Ok(None) };
                let LocalStrings::PoolIds { names, files } = chunk.strings else {
                    return Err(key(table.strings()).malformed("its strings are no pool ids"));
                };
                (Cow::Borrowed(frame_a), names, files)
            }
        };
        let strings = encode_strings(&self.own(Pool::Names, &names)?, &self.own(Pool::Files, &files)?);
        let frame_b = Compressor::with_dictionary(&self.prepared)?.frame(key(table.strings()), &strings)?;
        let made_with = (index_of.format_version() > 1).then(|| value_checksum(&self.dictionary));
        encode_value(made_with, &frame_a, &frame_b).map(Some)
    }

    /// The strings with these ids.
    fn own(&self, pool: Pool, ids: &[Option<Id32>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut strings = crate::lookup::Strings::new(self.index);
        let mut own = vec![None; ids.len()];
        let mut size = 0;
        // In the order of the pool, so that no block is read twice.
        let mut order: Vec<_> =
            ids.iter().zip(&mut own).filter_map(|(id, own)| Some(((*id)?, own))).collect();
        order.sort_by_key(|(id, _)| *id);
        for (id, own) in order {
            let string = strings.get(pool, id)?;
            size += string.len();
            if size > MAX_PAYLOAD {
                return Err(Error::Unwritable {
                    what: "the strings of one chunk are larger than the format allows",
                });
            }
            *own = Some(string.to_vec());
        }
        Ok(own)
    }
}
