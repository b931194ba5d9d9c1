//! Finds functions by their names.

#[cfg(test)]
mod tests;

use crate::error::Error;
use crate::format::Table;
use crate::image::ImageOffset;
use crate::index::{Index, StringPool};
use crate::ranges::{ChunkRanges, NonMaxU32};

/// A search takes at most `MIN_STEPS`, and `STEPS_PER_BYTE` for each byte of the index. A step reads a symbol of a
/// name, a range or a frame. Three indexes of large libraries took less than a tenth of a step for each byte. A forged
/// index can have names of 64 KiB in less than a byte each, and ranges that take no bits.
const MIN_STEPS: u64 = 1 << 20;
const STEPS_PER_BYTE: u64 = 4;

impl<B: AsRef<[u8]>> Index<B> {
    /// Returns where the function with the linkage name `name` starts, by the `symbol_table`. A name that it has as an
    /// alias counts. `None` if no function has the name, or if several have it, as static functions of several files
    /// can.
    ///
    /// Names are not sorted, so this compares all of them, and then reads the whole table: the time is
    /// at most in proportion to the size of the index. Nothing but one chunk at a time is kept.
    ///
    /// ```
    /// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
    /// let index = symdex::Index::open(std::fs::read(path)?)?;
    /// assert_eq!(index.function_start(b"pyramid")?, Some(symdex::ImageOffset(0x3a0)));
    /// assert_eq!(index.function_start(b"pyrami")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] if the names or the table are damaged. Names are read in part,
    /// so not all damage is found. [`Error::SearchTooLong`] if the names and ranges are many times more than those
    /// of real images in an index of this size.
    pub fn function_start(&self, name: &[u8]) -> Result<Option<ImageOffset>, Error> {
        let mut steps = Steps::of(self.as_bytes().len());
        match self.name_id(name, &mut steps)? {
            Some(id) => self.start_of(id, &mut steps),
            None => Ok(None),
        }
    }

    /// Returns the start of the function with the name `id`, or `None` if none or several have it.
    fn start_of(&self, id: NonMaxU32, steps: &mut Steps) -> Result<Option<ImageOffset>, Error> {
        let mut found = None;
        for chunk in self.chunks(Table::SymbolTable) {
            let (_, chunk) = chunk?;
            steps.take((chunk.ranges.len() + chunk.frames.len()) as u64)?;
            let named = named(&chunk, id);
            for range in &chunk.ranges {
                let has_name = named.get(range.exact as usize) == Some(&true);
                let Some(start) = range.function_start.filter(|_| has_name) else { continue };
                if found.replace(start).is_some_and(|other| other != start) {
                    return Ok(None);
                }
            }
        }
        Ok(found.map(ImageOffset))
    }

    /// The id of `name`; `None` if the index does not have it.
    fn name_id(&self, name: &[u8], steps: &mut Steps) -> Result<Option<NonMaxU32>, Error> {
        let names = self.strings_of(StringPool::Names);
        for id in 0..self.metadata().counts.names {
            let Some(id) = NonMaxU32::new(id) else { break };
            let (found, read) = names.is(id.get(), name)?;
            if found {
                return Ok(Some(id));
            }
            steps.take(read)?;
        }
        Ok(None)
    }
}

/// The remaining steps of a search.
struct Steps(u64);

impl Steps {
    /// The steps of a search in an index of this many bytes.
    fn of(bytes: usize) -> Self {
        Self((bytes as u64).saturating_mul(STEPS_PER_BYTE).saturating_add(MIN_STEPS))
    }

    fn take(&mut self, steps: u64) -> Result<(), Error> {
        self.0 = self.0.checked_sub(steps).ok_or(Error::SearchTooLong)?;
        Ok(())
    }
}

/// For each frame of `chunk`, whether `id` is its name or that of a frame above it: in the `symbol_table`, whether
/// `id` is one of the names of the function.
fn named(chunk: &ChunkRanges, id: NonMaxU32) -> Vec<bool> {
    let mut named: Vec<bool> = Vec::with_capacity(chunk.frames.len());
    for frame in &chunk.frames {
        // A frame comes after its parent.
        let above = frame.parent.is_some_and(|parent| named.get(parent.index()) == Some(&true));
        named.push(above || frame.name == Some(id));
    }
    named
}
