//! Lookups of ascending offsets: each block is decoded once, and no answer is cached.

use std::ops::Range;

use crate::answer::{FoundFrame, Frames, LinePolicy, StringRanges};
use crate::error::Error;
use crate::format::Table;
use crate::image::ImageOffset;
use crate::index::Index;
use crate::lookup::both_tables;
use crate::packed::TableReader;
use crate::recent_strings::RecentStrings;

/// How many strings can be found again.
const STRINGS: usize = 4096;

/// An answer with the image offsets that have it.
struct RangeAnswer {
    range: Range<u64>,
    frames: Vec<FoundFrame>,
    /// Where the strings of the frames lie in the text of the [`RecentStrings`].
    strings: Vec<StringRanges>,
}

impl<B: AsRef<[u8]>> Index<B> {
    /// Looks up ascending offsets, for example all samples of a profile in one image. Calls `each` with each offset and
    /// the answer of [`Self::lookup`], in order.
    ///
    /// Each block of ranges is decoded once, neighbouring answers share their strings, and offsets of one range share
    /// their answer. So many offsets of one image cost a tenth of as many lookups. The memory does not depend on the
    /// number of offsets: about 1 MiB, or twice the longest answer if that is more. Offsets that do not ascend have the
    /// same answers, but their blocks are decoded again.
    ///
    /// ```
    /// use symdex::{ImageOffset, Index, LinePolicy};
    ///
    /// # let path = "../../testdata/golden/v1/inline-dwarf4-1.symdex";
    /// let index = Index::open(std::fs::read(path)?)?;
    /// let mut known = 0;
    /// index.lookup_ascending((0x3c0..0x3e0).map(ImageOffset), LinePolicy::Statement, |_, answer| {
    ///     known += u32::from(answer.is_ok_and(|frames| frames.is_some()));
    /// });
    /// assert_eq!(known, 32);
    /// # Ok::<(), symdex::Error>(())
    /// ```
    pub fn lookup_ascending(
        &self,
        offsets: impl IntoIterator<Item = ImageOffset>,
        policy: LinePolicy,
        mut each: impl FnMut(ImageOffset, Result<Option<Frames<'_>>, Error>),
    ) {
        let mut tables =
            [Table::Dwarf, Table::SymbolTable].map(|table| TableReader::new(self.chunk_reader(), table));
        let mut recent = RecentStrings::with_slots(STRINGS);
        let mut last = RangeAnswer { range: 0..0, frames: Vec::new(), strings: Vec::new() };
        for offset in offsets {
            let answer = if last.range.contains(&offset.0) {
                Ok(())
            } else {
                self.read_answer(&mut tables, offset, policy, &mut recent, &mut last)
            };
            let RangeAnswer { frames, strings, .. } = &last;
            let found = || Frames { frames, strings, text: recent.text() };
            each(offset, answer.map(|()| (!frames.is_empty()).then(found)));
        }
    }

    /// Replaces `answer` by that at `offset`. After an error, it is no answer of any offset.
    fn read_answer(
        &self,
        tables: &mut [TableReader<'_>; 2],
        offset: ImageOffset,
        policy: LinePolicy,
        recent: &mut RecentStrings,
        answer: &mut RangeAnswer,
    ) -> Result<(), Error> {
        let RangeAnswer { range, frames, strings } = answer;
        *range = 0..0;
        frames.clear();
        strings.clear();
        let [dwarf, symbols] = tables;
        let found = both_tables(frames, |table, at_most, frames| {
            let reader = if table == Table::Dwarf { &mut *dwarf } else { &mut *symbols };
            reader.find(offset.0, policy.is_statement(), at_most, frames)
        })?;
        self.read_strings(frames, strings, recent)?;
        *range = found;
        Ok(())
    }
}
