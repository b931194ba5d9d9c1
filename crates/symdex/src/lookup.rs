//! From an image offset to frames, and the working memory of lookups.

use std::fmt;
use std::ops::Range;

use crate::answer::{FoundFrame, Frames, LinePolicy, OwnedFrame, StringRanges};
use crate::answer_cache::{AnswerCache, AnswerKey};
use crate::error::Error;
use crate::format::Table;
use crate::image::ImageOffset;
use crate::index::{Index, StringPool};
use crate::packed::{PackedScratch, TableAnswer};
use crate::recent_strings::RecentStrings;

/// The most bytes that a scratch space caches by default.
const CAPACITY: usize = 16 << 20;

/// Bytes of the scratch space for each slot of the cached answers: 32 bytes and four frames of 32 bytes.
const BYTES_PER_ANSWER: usize = 512;
/// Bytes of the scratch space for each slot of the strings: 32 bytes and 120 bytes of text.
const BYTES_PER_STRING: usize = 256;

/// A batch of this many offsets does not use the cache of the scratch space: reading each block once is faster.
const MANY: usize = 4096;

/// Working memory of lookups, one for each thread.
///
/// It caches answers and their strings, and returns them again without reading the index. It serves any number of
/// indexes. It grows as it is used, by default to 16 MiB.
pub struct Scratch {
    pub(crate) answers: AnswerCache,
    pub(crate) packed: PackedScratch,
    pub(crate) frames: Vec<FoundFrame>,
    /// Where the strings of the frames lie in the text of `recent`.
    pub(crate) strings: Vec<StringRanges>,
    pub(crate) recent: RecentStrings,
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::with_capacity(CAPACITY)
    }
}

impl Scratch {
    /// Scratch space that caches about `capacity` bytes between lookups.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            answers: AnswerCache::with_slots(capacity / BYTES_PER_ANSWER),
            packed: PackedScratch::default(),
            frames: Vec::new(),
            strings: Vec::new(),
            recent: RecentStrings::with_slots(capacity / BYTES_PER_STRING),
        }
    }

    /// Prepares for a lookup.
    pub(crate) fn begin(&mut self) {
        self.frames.clear();
        self.strings.clear();
    }
}

impl<B: AsRef<[u8]>> Index<B> {
    /// The frames at `offset`, innermost first; none for a gap. [`Self::lookup`] answers more addresses faster.
    ///
    /// # Errors
    ///
    /// As [`Self::lookup`].
    pub fn frames(&self, offset: ImageOffset, policy: LinePolicy) -> Result<Vec<OwnedFrame>, Error> {
        let mut scratch = Scratch::with_capacity(0);
        let frames = self.lookup(offset, policy, &mut scratch)?;
        Ok(frames.map(|frames| frames.to_vec()).unwrap_or_default())
    }

    /// The frames at `offset`, innermost first. Returns `None` for a gap, where neither table knows the address.
    ///
    /// The `dwarf` table answers first. If it has a gap, the `symbol_table` answers. If the `dwarf` table has a line
    /// but no function, the `symbol_table` gives the name. A lookup reads a few hundred bytes of one chunk of each
    /// table, and the strings that it returns. If `scratch` has the answer of an earlier lookup, nothing is read.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] if a part that the lookup reads is damaged.
    pub fn lookup<'s>(
        &self,
        offset: ImageOffset,
        policy: LinePolicy,
        scratch: &'s mut Scratch,
    ) -> Result<Option<Frames<'s>>, Error> {
        scratch.begin();
        let Scratch { answers, packed, frames, strings, recent } = scratch;
        let key = AnswerKey::new(self.serial, offset, policy);
        match answers.find(key) {
            Some(known) => frames.extend_from_slice(known),
            None => {
                let range = both_tables(frames, |table, at_most, frames| {
                    self.find(table, offset, policy, at_most, packed, frames)
                })?;
                answers.put(key, range, frames);
            }
        }
        self.read_strings(frames, strings, recent)?;
        let found = Frames { frames, strings, text: recent.text() };
        Ok((!found.frames.is_empty()).then_some(found))
    }

    /// Looks up many offsets, in any order and with repetitions. Calls `each` once for each offset, with its index in
    /// `offsets` and the answer of [`Self::lookup`]. The calls are in the order of the addresses, because
    /// neighbouring addresses share much of what is read.
    ///
    /// ```
    /// # use symdex::{Error, ImageOffset, Index, LinePolicy, Scratch};
    /// # fn demo(index: Index<Vec<u8>>, stack: &[ImageOffset]) {
    /// let mut depths = vec![0; stack.len()];
    /// index.lookup_many(stack, LinePolicy::Statement, &mut Scratch::default(), |place, answer| {
    ///     depths[place] = answer.ok().flatten().map_or(0, |frames| frames.len());
    /// });
    /// # }
    /// ```
    pub fn lookup_many(
        &self,
        offsets: &[ImageOffset],
        policy: LinePolicy,
        scratch: &mut Scratch,
        mut each: impl FnMut(usize, Result<Option<Frames<'_>>, Error>),
    ) {
        let mut order: Vec<(ImageOffset, usize)> = offsets.iter().copied().zip(0..).collect();
        order.sort_unstable();
        if order.len() < MANY {
            return order
                .into_iter()
                .for_each(|(offset, place)| each(place, self.lookup(offset, policy, scratch)));
        }
        let mut places = order.iter().map(|(_, place)| *place);
        self.lookup_ascending(order.iter().map(|(offset, _)| *offset), policy, |_, answer| {
            if let Some(place) = places.next() {
                each(place, answer);
            }
        });
    }

    /// Returns the names that the `symbol_table` has for the function that starts at `start`: first the name that
    /// lookups return, then its aliases. Returns no names if no function of that table starts there.
    ///
    /// `start` is a [`crate::Frame::function_start`]. A linker that folds identical functions leaves many names for
    /// one address, and a crash can be in any of these functions.
    ///
    /// ```
    /// use symdex::{ImageOffset, Index, LinePolicy, Scratch};
    ///
    /// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
    /// let index = Index::open(std::fs::read(path)?)?;
    /// let mut scratch = Scratch::default();
    /// let frames = index.lookup(ImageOffset(0x3cf), LinePolicy::Statement, &mut scratch)?;
    /// let start = frames.and_then(|frames| frames.iter().last()?.function_start).ok_or("not known")?;
    /// let names: Vec<&[u8]> = index.function_names(start, &mut scratch)?.collect();
    /// assert_eq!(names, [b"pyramid"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::lookup`].
    pub fn function_names<'s>(
        &self,
        start: ImageOffset,
        scratch: &'s mut Scratch,
    ) -> Result<impl Iterator<Item = &'s [u8]> + use<'s, B>, Error> {
        scratch.begin();
        let Scratch { packed, frames, strings, recent, .. } = scratch;
        self.find(Table::SymbolTable, start, LinePolicy::Exact, usize::MAX, packed, frames)?;
        frames.retain(|frame| frame.function_start == Some(start));
        self.read_strings(frames, strings, recent)?;
        Ok(Frames { frames, strings, text: recent.text() }.iter().filter_map(|frame| frame.name))
    }

    /// Appends the first `at_most` frames of one table's answer to `frames`. In the `symbol_table` only the first one
    /// is a frame, the others are aliases.
    fn find(
        &self,
        table: Table,
        offset: ImageOffset,
        policy: LinePolicy,
        at_most: usize,
        packed: &mut PackedScratch,
        frames: &mut Vec<FoundFrame>,
    ) -> Result<TableAnswer, Error> {
        let span = u64::from(self.metadata().chunk_span);
        let index = offset.0 / span;
        match self.chunk_reader().chunk(table, index)? {
            Some(chunk) => chunk.find(offset.0, policy.is_statement(), at_most, packed, frames),
            None => Ok(TableAnswer::gap(index, span)),
        }
    }

    /// Appends a string to `text`, and to a name its readable name. Returns where the readable name begins, if there is
    /// one.
    pub(crate) fn append_string(
        &self,
        pool: StringPool,
        id: u32,
        text: &mut Vec<u8>,
    ) -> Result<Option<usize>, Error> {
        self.strings_of(pool).append(id, text)?;
        let start = text.len();
        let readable = self.readable().filter(|_| pool == StringPool::Names);
        let is_there = readable.map_or(Ok(false), |readable| readable.append(id, text))?;
        Ok(is_there.then_some(start))
    }

    /// Appends where the strings of `frames` lie in the text of `recent` to `strings`.
    pub(crate) fn read_strings(
        &self,
        frames: &[FoundFrame],
        strings: &mut Vec<StringRanges>,
        recent: &mut RecentStrings,
    ) -> Result<(), Error> {
        recent.make_room();
        for frame in frames {
            let mut string = |pool, stored| {
                recent.string(self.serial, pool, stored, |id, text| self.append_string(pool, id, text))
            };
            let [file, _] = string(StringPool::Files, frame.source.file)?;
            let [name, readable] = string(StringPool::Names, frame.source.name)?;
            strings.push([name, file, readable]);
        }
        Ok(())
    }
}

/// Combines the answers of both tables at an address into `frames`. `find` appends the frames of one table, at most as
/// many as its second argument says. Returns the image offsets around the address with the same answer.
pub(crate) fn both_tables(
    frames: &mut Vec<FoundFrame>,
    mut find: impl FnMut(Table, usize, &mut Vec<FoundFrame>) -> Result<TableAnswer, Error>,
) -> Result<Range<u64>, Error> {
    let dwarf = find(Table::Dwarf, usize::MAX, frames)?;
    if dwarf.is_answer && frames.last().is_none_or(|frame| frame.function_start.is_some()) {
        return Ok(dwarf.range);
    }
    let symbol = find(Table::SymbolTable, 1, frames)?;
    // A line outside of any function takes the name and the function's start from the symbol table.
    if dwarf.is_answer
        && symbol.is_answer
        && let Some(symbol) = frames.pop()
        && let Some(frame) = frames.last_mut()
    {
        frame.source.name = symbol.source.name;
        frame.function_start = symbol.function_start;
    }
    Ok(dwarf.range.start.max(symbol.range.start)..dwarf.range.end.min(symbol.range.end))
}
