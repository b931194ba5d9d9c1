//! Walking through all of an index, and checking all of it.

use crate::chunk::{ChunkRanges, Loc, LocalStrings};
use crate::error::Error;
use crate::format::{Decompressor, Table};
use crate::id32::Id32;
use crate::index::{Index, Pool};
use crate::lookup::Strings;
use crate::packed::PackedScratch;

/// The ranges of one chunk, with strings by pool id; see [`Index::chunk`].
pub type ChunkContents = ChunkRanges;

/// What [`Index::verify`] read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Non-empty chunks of both tables.
    pub chunks: u64,
    /// Ranges in them; one that touches several chunks counts in each.
    pub ranges: u64,
    /// Pages of names, files, chunks and what they share; in version 1 blocks of names and files.
    pub pages: u64,
}

impl<B: AsRef<[u8]>> Index<B> {
    /// Every range of chunk `index` of `table`, sorted, and their locs, with names and files by pool id; nothing for an empty
    /// chunk. [`Index::strings`] turns the ids into strings.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] where the chunk is damaged.
    pub fn chunk(&self, table: Table, index: u64) -> Result<ChunkContents, Error> {
        if let Some(reader) = self.chunk_reader() {
            return match reader.chunk(self.metadata(), table, index)? {
                Some(chunk) => chunk.ranges(&mut PackedScratch::default()),
                None => Ok(ChunkContents::default()),
            };
        }
        let Some(chunk) = self.load_chunk(table, index, &mut Decompressor::plain()?)? else {
            return Ok(ChunkContents::default());
        };
        let malformed = || self.key(table.structure(), index).malformed("a run does not decode");
        let mut contents = chunk.structure.ranges().ok_or_else(malformed)?;
        let LocalStrings::PoolIds { names, files } = &chunk.strings else {
            return Err(self.key(table.strings(), index).malformed("its strings are no pool ids"));
        };
        let explain = |ids: &[Option<Id32>], number: Option<Id32>| {
            number.and_then(|number| ids.get(number.index()).copied()).ok_or_else(malformed)
        };
        for Loc { name, file, .. } in &mut contents.locs {
            (*name, *file) = (explain(names, *name)?, explain(files, *file)?);
        }
        Ok(contents)
    }

    /// Every chunk of `table` that is not empty, in address order, as [`Index::chunk`] gives it, with its index.
    pub fn chunks(&self, table: Table) -> impl Iterator<Item = Result<(u64, ChunkContents), Error>> + '_ {
        let chunk = move |index| self.chunk(table, index).map(|contents| (index, contents));
        self.metadata()
            .chunks(table)
            .map(chunk)
            .filter(|chunk| !matches!(chunk, Ok((_, c)) if c.ranges.is_empty()))
    }

    /// A reader of names by pool id, for whoever walks through all of the index.
    #[must_use]
    pub fn strings(&self) -> StringReader<'_, B> {
        StringReader { strings: Strings::new(self) }
    }

    /// Checks all of the index: the digest, every checksum, that frames fill their sections, and that every chunk and block decodes
    /// to sorted ranges within its span whose locs, names and files exist.
    ///
    /// # Errors
    ///
    /// The first damage found.
    pub fn verify(&self) -> Result<Verified, Error> {
        self.trailer().verify(self.as_bytes())?;
        self.verify_directories()?;
        let mut verified = Verified { pages: self.verify_pools()?, ..Verified::default() };
        for table in Table::ALL {
            for chunk in self.chunks(table) {
                let (index, contents) = chunk?;
                let wrong = self.first_wrong(table, index, &contents);
                wrong.map_or(Ok(()), |what| Err(self.key(table.structure(), index).malformed(what)))?;
                verified.chunks += 1;
                verified.ranges += contents.ranges.len() as u64;
            }
        }
        Ok(verified)
    }

    /// Checks everything but the chunks themselves; how many pages, or in version 1 blocks, were read.
    fn verify_pools(&self) -> Result<u64, Error> {
        if let Some(chunks) = self.chunk_reader() {
            let pools = [Pool::Names, Pool::Files].into_iter().filter_map(|pool| self.strings_of(pool));
            return pools
                .map(|strings| strings.verify())
                .try_fold(chunks.verify()?, |sum, pages| Ok(sum + pages?));
        }
        let verify_blocks = |pool, dictionary| {
            let mut decompressor = Decompressor::with_dictionary(dictionary)?;
            let blocks = self.pool(pool).blocks();
            (0..blocks).try_for_each(|index| self.load_block(pool, index, &mut decompressor).map(drop))?;
            Ok::<u64, Error>(blocks)
        };
        Ok(verify_blocks(Pool::Names, self.dictionary()?)? + verify_blocks(Pool::Files, &[])?)
    }

    /// What is wrong with a chunk that decodes, if anything is.
    fn first_wrong(&self, table: Table, index: u64, contents: &ChunkContents) -> Option<&'static str> {
        if contents.has_aliases(table) && !self.has_aliases() {
            return Some("a function has other names, and the header says that none has");
        }
        let span = u64::from(self.metadata().chunk_span);
        let start = index.saturating_mul(span);
        let outside =
            |id: Option<Id32>, pool| id.is_some_and(|id| u64::from(id.get()) >= self.pool(pool).strings);
        contents.depths(start, start.saturating_add(span)).err().or_else(|| {
            let unknown = |loc: &Loc| outside(loc.name, Pool::Names) || outside(loc.file, Pool::Files);
            contents.locs.iter().any(unknown).then_some("a loc has a name or a file that is not in the pool")
        })
    }
}

/// Turns pool ids into strings, keeping the blocks it read last.
pub struct StringReader<'i, B> {
    strings: Strings<'i, B>,
}

impl<B: AsRef<[u8]>> StringReader<'_, B> {
    /// The name with this id.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] where its block is damaged or has no such name.
    pub fn name(&mut self, id: Id32) -> Result<&[u8], Error> {
        self.strings.get(Pool::Names, id)
    }

    /// The file path with this id.
    ///
    /// # Errors
    ///
    /// Like [`Self::name`].
    pub fn file(&mut self, id: Id32) -> Result<&[u8], Error> {
        self.strings.get(Pool::Files, id)
    }
}
