//! Lists everything in an index, and checks all of it.

use crate::error::Error;
use crate::format::Table;
use crate::index::{Index, StringPool};
use crate::packed::PackedScratch;
use crate::ranges::NonMaxU32;
use crate::ranges::{ChunkRanges, InlineFrame};

/// Counts of what [`Index::verify`] checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifiedCounts {
    /// Non-empty chunks of both tables.
    pub chunks: u64,
    /// Ranges in these chunks. A range that touches several chunks counts in each.
    pub ranges: u64,
    /// Unwind rows.
    pub unwind_rows: u64,
    /// Pages of all sections.
    pub pages: u64,
}

impl<B: AsRef<[u8]>> Index<B> {
    /// Returns the ranges of chunk `index` of `table`, sorted, and their inline frames, with names and files by id;
    /// nothing for an empty chunk. [`Index::strings`] turns the ids into strings.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] if the chunk is damaged.
    pub fn chunk(&self, table: Table, index: u64) -> Result<ChunkRanges, Error> {
        match self.chunk_reader().chunk(table, index)? {
            Some(chunk) => chunk.ranges(&mut PackedScratch::default()),
            None => Ok(ChunkRanges::default()),
        }
    }

    /// Iterates over the non-empty chunks of `table` in address order, as [`Index::chunk`] returns them, with their
    /// indexes.
    pub fn chunks(&self, table: Table) -> impl Iterator<Item = Result<(u64, ChunkRanges), Error>> + '_ {
        let chunk = move |index| self.chunk(table, index).map(|contents| (index, contents));
        self.metadata()
            .chunks(table)
            .map(chunk)
            .filter(|chunk| !matches!(chunk, Ok((_, c)) if c.ranges.is_empty()))
    }

    /// Reads names and files by id.
    ///
    /// ```
    /// use symdex::{Index, Table};
    ///
    /// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
    /// let index = Index::open(std::fs::read(path)?)?;
    /// let mut strings = index.strings();
    /// for chunk in index.chunks(Table::Dwarf) {
    ///     let (_, chunk) = chunk?;
    ///     for range in &chunk.ranges {
    ///         let innermost = &chunk.frames[range.statement as usize];
    ///         let name = innermost.name.map(|id| strings.name(id)).transpose()?.unwrap_or_default();
    ///         println!("{:#x} {}", range.start, String::from_utf8_lossy(name));
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn strings(&self) -> StringReader<'_, B> {
        StringReader { index: self, text: Vec::new() }
    }

    /// Checks the digest of the whole index, which finds bytes that were changed by accident. Nothing is decoded.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] if bytes were changed.
    pub fn verify_digest(&self) -> Result<(), Error> {
        self.header.verify_digest(self.as_bytes())
    }

    /// Checks all of the index: the digest, every page, the codes, that chunks fill their section, and that every
    /// chunk, every string, readable names among them, and every unwind row decodes, each chunk to sorted ranges within
    /// its span whose names and files exist.
    ///
    /// ```
    /// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
    /// let index = symdex::Index::open(std::fs::read(path)?)?;
    /// assert!(index.verify()?.ranges > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first damage found.
    pub fn verify(&self) -> Result<VerifiedCounts, Error> {
        self.verify_digest()?;
        let mut verified =
            VerifiedCounts { pages: self.chunk_reader().verify()?, ..VerifiedCounts::default() };
        for pool in [StringPool::Names, StringPool::Files] {
            verified.pages += self.strings_of(pool).verify()?;
        }
        if let Some(readable) = self.readable() {
            verified.pages += readable.verify()?;
        }
        if let Some(unwind) = self.unwind_reader()? {
            let [pages, rows] = unwind.verify()?;
            verified.pages += pages;
            verified.unwind_rows = rows;
        }
        for &table in Table::ALL {
            for chunk in self.chunks(table) {
                let (index, contents) = chunk?;
                let wrong = self.first_wrong(table, index, &contents);
                wrong.map_or(Ok(()), |what| Err(table.location_of(index).malformed(what)))?;
                verified.chunks += 1;
                verified.ranges += contents.ranges.len() as u64;
            }
        }
        Ok(verified)
    }

    /// Checks a chunk that decodes. Returns what is wrong with it, or `None`.
    fn first_wrong(&self, table: Table, index: u64, contents: &ChunkRanges) -> Option<&'static str> {
        if contents.has_aliases(table) && !self.header.aliases {
            return Some("a function has other names, and the header says that none has");
        }
        let span = u64::from(self.metadata().chunk_span);
        let start = index.saturating_mul(span);
        let counts = self.metadata().counts;
        let outside = |id: Option<NonMaxU32>, len| id.is_some_and(|id| u64::from(id.get()) >= len);
        contents.depths(start, start.saturating_add(span)).err().or_else(|| {
            let unknown =
                |frame: &InlineFrame| outside(frame.name, counts.names) || outside(frame.file, counts.files);
            contents
                .frames
                .iter()
                .any(unknown)
                .then_some("an inline frame has a name or a file that is not in the pool")
        })
    }
}

/// Reads the names and files of an index by id; see [`Index::strings`].
pub struct StringReader<'i, B> {
    index: &'i Index<B>,
    text: Vec<u8>,
}

impl<B: AsRef<[u8]>> StringReader<'_, B> {
    /// The name with this id.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] if the name is damaged or does not exist.
    pub fn name(&mut self, id: NonMaxU32) -> Result<&[u8], Error> {
        self.string(StringPool::Names, id)
    }

    /// The file path with this id.
    ///
    /// # Errors
    ///
    /// Like [`Self::name`].
    pub fn file(&mut self, id: NonMaxU32) -> Result<&[u8], Error> {
        self.string(StringPool::Files, id)
    }

    /// The readable form of the name with this id. `None` if the index does not have readable names, or if the name is
    /// its own readable form.
    ///
    /// # Errors
    ///
    /// Like [`Self::name`].
    pub fn readable_name(&mut self, id: NonMaxU32) -> Result<Option<&[u8]>, Error> {
        let Some(readable) = self.index.readable() else { return Ok(None) };
        self.text.clear();
        Ok(readable.append(id.get(), &mut self.text)?.then_some(&self.text))
    }

    fn string(&mut self, pool: StringPool, id: NonMaxU32) -> Result<&[u8], Error> {
        self.text.clear();
        self.index.strings_of(pool).append(id.get(), &mut self.text)?;
        Ok(&self.text)
    }
}
