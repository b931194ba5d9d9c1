//! Finds functions by their names.

use crate::error::Error;
use crate::format::Table;
use crate::image::ImageOffset;
use crate::index::{Index, StringPool};
use crate::ranges::{ChunkRanges, CodeRange, NonMaxU32};

impl<B: AsRef<[u8]>> Index<B> {
    /// Returns where the function with the linkage name `name` starts, by the `symbol_table`. A name that it has as an
    /// alias counts. `None` if no function has the name, or if several have it, as static functions of several files
    /// can.
    ///
    /// An index has no order of names, so that this reads all of them, and then the whole table: the time is in
    /// proportion to the index. Nothing but one chunk at a time is kept.
    ///
    /// ```
    /// let index = symdex::Index::open(std::fs::read("../../testdata/golden/v1/inline-dwarf4-1.symdex")?)?;
    /// assert_eq!(index.function_start(b"pyramid")?, Some(symdex::ImageOffset(0x3a0)));
    /// assert_eq!(index.function_start(b"pyrami")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] if the names or the table are damaged.
    pub fn function_start(&self, name: &[u8]) -> Result<Option<ImageOffset>, Error> {
        let Some(id) = self.name_id(name)? else { return Ok(None) };
        let mut found = None;
        for chunk in self.chunks(Table::SymbolTable) {
            let (_, chunk) = chunk?;
            for range in &chunk.ranges {
                let Some(start) = range.function_start.filter(|_| has_name(&chunk, range, id)) else {
                    continue;
                };
                if found.replace(start).is_some_and(|other| other != start) {
                    return Ok(None);
                }
            }
        }
        Ok(found.map(ImageOffset))
    }

    /// The id of `name`; `None` if the index does not have it.
    fn name_id(&self, name: &[u8]) -> Result<Option<NonMaxU32>, Error> {
        let names = self.strings_of(StringPool::Names);
        let mut text = Vec::new();
        for id in 0..self.metadata().counts.names {
            let Some(id) = NonMaxU32::new(id) else { break };
            text.clear();
            names.append(id.get(), &mut text)?;
            if text == name {
                return Ok(Some(id));
            }
        }
        Ok(None)
    }
}

/// Whether `id` is the name of the function of `range`, or one of its aliases.
fn has_name(chunk: &ChunkRanges, range: &CodeRange, id: NonMaxU32) -> bool {
    let frame = |number: u32| chunk.frames.get(number as usize);
    // The chain ends: a frame comes after its parent.
    let names = std::iter::successors(frame(range.exact), |at| frame(at.parent?.get()));
    names.map(|frame| frame.name).any(|name| name == Some(id))
}
