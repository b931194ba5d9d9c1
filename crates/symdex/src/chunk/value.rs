//! A chunk as one value, the way a key-value store keeps it.
//!
//! ```text
//!  0  4  bytes of frame A (u32), plus 2^31
//!  4  8  the first 8 bytes of the dictionary's value, which are its checksum; 0 where the image has no dictionary
//! 12  .  frame A, byte for byte as in an index file
//!  .  .  frame B with the strings themselves, compressed with the image's dictionary where it has one
//! ```
//!
//! Values of version 1 have neither the 2^31 nor the 8 bytes.

use super::{Answers, LocalFrame, LocalStrings, Structure};
use crate::address::ImageOffset;
use crate::answer::{Frame, LinePolicy};
use crate::error::{Error, Place};
use crate::format::{Cursor, Decompressor, Dictionary, FrameKey, Metadata, Table};

/// One table's ranges within one stretch of the image, names and files included: answers without its index.
pub struct Chunk {
    table: Table,
    index: u64,
    structure: Structure,
    names: Vec<Option<Box<[u8]>>>,
    files: Vec<Option<Box<[u8]>>>,
}

/// The bit of the first number that tells values of version 2 from those of version 1.
const VERSION_2: u32 = 1 << 31;

/// The value of a chunk, made of its frames. `made_with` is the checksum of the dictionary; without one it is a value of version 1.
pub(crate) fn encode_value(made_with: Option<u64>, frame_a: &[u8], frame_b: &[u8]) -> Result<Vec<u8>, Error> {
    let a_size = u32::try_from(frame_a.len()).ok().filter(|size| *size < VERSION_2);
    let a_size = a_size.ok_or(Error::Unwritable { what: "a chunk of over 2 GiB" })?;
    Ok(match made_with {
        Some(checksum) => {
            let a_size = a_size | VERSION_2;
            [&a_size.to_le_bytes(), checksum.to_le_bytes().as_slice(), frame_a, frame_b].concat()
        }
        None => [a_size.to_le_bytes().as_slice(), frame_a, frame_b].concat(),
    })
}

impl Chunk {
    /// Chunk `index` of `table` from its value, for the image that `metadata` describes.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] where the value changed or belongs to another image, table or index; [`Error::Malformed`] where it
    /// does not make sense or wants a dictionary it was not given.
    pub fn decode(
        metadata: &Metadata,
        dictionary: &Dictionary,
        table: Table,
        index: u64,
        value: &[u8],
    ) -> Result<Self, Error> {
        let place = Place { section: table.structure(), index };
        let malformed = |what| Error::Malformed { place, what };
        let mut cursor = Cursor::new(value);
        let short = || malformed("the value is shorter than its frame A");
        let a_size = cursor.u32().ok_or_else(short)?;
        let answers = if a_size & VERSION_2 == 0 { Answers::Apart } else { Answers::Together };
        if answers == Answers::Together && cursor.u64().ok_or_else(short)? != dictionary.checksum() {
            return Err(malformed("its strings were compressed with another dictionary than the one given"));
        }
        let frame_a = usize::try_from(a_size & !VERSION_2).ok().and_then(|size| cursor.bytes(size));
        let frame_a = frame_a.ok_or_else(short)?;
        let frame_b = value.get(cursor.position(value)..).unwrap_or_default();

        let mut plain = Decompressor::plain()?;
        let structure = decode_structure(metadata, table, index, frame_a, answers, &mut plain)?;
        let key = FrameKey { id: &metadata.id, section: table.strings(), index };
        let strings = match dictionary.prepared() {
            Some(dictionary) => Decompressor::with_prepared(dictionary)?.payload(key, frame_b)?,
            None => plain.payload(key, frame_b)?,
        };
        match LocalStrings::decode(&strings) {
            Some(LocalStrings::Strings { names, files })
                if (names.len(), files.len()) == structure.lens() =>
            {
                Ok(Self { table, index, structure, names, files })
            }
            _ => Err(malformed("frame B does not hold the strings of frame A")),
        }
    }

    /// The frames at `offset`, innermost first; `None` for a gap, and for what lies in another chunk.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] where the chunk's structure does not make sense.
    pub fn lookup(&self, offset: ImageOffset, policy: LinePolicy) -> Result<Option<Vec<Frame<'_>>>, Error> {
        let mut found = self.find(offset, policy)?;
        if self.table == Table::SymbolTable {
            // What follows are other names of the same function.
            found.truncate(1);
        }
        let len = found.len();
        let frame = |(index, frame): (usize, LocalFrame)| {
            Some(Frame {
                name: self.names.get(frame.name as usize)?.as_deref(),
                file: self.files.get(frame.file as usize)?.as_deref(),
                line: frame.line.map(crate::id32::Id32::get),
                inlined: index + 1 < len,
                function_start: frame.function_start.map(ImageOffset),
                table: self.table,
            })
        };
        let frames = found.into_iter().enumerate().map(frame).collect::<Option<Vec<_>>>();
        let frames = frames.ok_or_else(|| self.malformed())?;
        Ok((!frames.is_empty()).then_some(frames))
    }

    /// Every name of the function that starts at exactly `start`, as [`crate::Index::function_names`] gives them, from the chunk of
    /// the `symbol_table` that holds `start`; nothing from any other.
    ///
    /// # Errors
    ///
    /// As [`Self::lookup`].
    pub fn function_names(&self, start: ImageOffset) -> Result<Vec<&[u8]>, Error> {
        if self.table != Table::SymbolTable {
            return Ok(Vec::new());
        }
        let mut found = self.find(start, LinePolicy::Exact)?;
        found.retain(|name| name.function_start == Some(start.0));
        Ok(found.iter().filter_map(|name| self.names.get(name.name as usize)?.as_deref()).collect())
    }

    /// The locs that answer `offset`; none for a gap.
    fn find(&self, offset: ImageOffset, policy: LinePolicy) -> Result<Vec<LocalFrame>, Error> {
        let mut found = Vec::new();
        let decoded = self.structure.find(offset.0, policy.is_statement(), &mut Vec::new(), &mut found);
        decoded.map(|_| found).ok_or_else(|| self.malformed())
    }

    fn malformed(&self) -> Error {
        let place = Place { section: self.table.structure(), index: self.index };
        Error::Malformed { place, what: "a run does not decode" }
    }
}

/// A chunk's structure from its frame A.
pub(crate) fn decode_structure(
    metadata: &Metadata,
    table: Table,
    index: u64,
    frame: &[u8],
    answers: Answers,
    decompressor: &mut Decompressor<'_>,
) -> Result<Structure, Error> {
    let key = FrameKey { id: &metadata.id, section: table.structure(), index };
    let payload = decompressor.payload(key, frame)?;
    let structure = index
        .checked_mul(u64::from(metadata.chunk_span))
        .and_then(|start| Structure::decode(&payload, start, metadata.chunk_span, answers));
    structure.ok_or_else(|| key.malformed("its structure does not decode"))
}
