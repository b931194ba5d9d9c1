//! From an image offset to frames.

use crate::address::ImageOffset;
use crate::answer::{Frames, LinePolicy, Located, Source};
use crate::answers::Question;
use crate::chunk::{Loc, LocalStrings};
use crate::error::Error;
use crate::format::{Block, Decompressor, SectionKind, Table};
use crate::id32::Id32;
use crate::index::{Index, Pool};
use crate::names::{Memo, NameReader};
use crate::scratch::Scratch;

impl<B: AsRef<[u8]>> Index<B> {
    /// The frames at `offset`, innermost first; `None` for a gap, where neither table knows the address.
    ///
    /// The `dwarf` table answers first, the `symbol_table` where that has a gap. Code that has a line but no function in the
    /// `dwarf` table is named by the `symbol_table`. Of each table a few kilobytes of one chunk are read, and of the strings that are
    /// returned; nothing where `scratch` still keeps the answer. In an index of version 1 a chunk is decompressed, unless the last
    /// lookup was in it.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] or [`Error::Malformed`] where what had to be read is damaged.
    pub fn lookup<'s>(
        &self,
        offset: ImageOffset,
        policy: LinePolicy,
        scratch: &'s mut Scratch,
    ) -> Result<Option<Frames<'s>>, Error> {
        let question = Question::new(self.serial(), offset, policy);
        if let Some(place) = question.and_then(|question| scratch.answers.find(question)) {
            return Ok(scratch.kept(place));
        }
        scratch.attach(self.serial());
        if !self.find(Table::Dwarf, offset, policy, usize::MAX, scratch)? {
            self.find(Table::SymbolTable, offset, policy, 1, scratch)?;
        } else if scratch.frames.last().is_some_and(|frame| frame.function_start.is_none()) {
            self.name_from_symbol_table(offset, policy, scratch)?;
        }
        if let Some(question) = question {
            scratch.answers.put(question, &scratch.frames, &scratch.text);
        }
        Ok(scratch.answer())
    }

    /// Looks up many offsets, in any order and with repetitions, as [`Self::lookup`] does one: `each` gets the place of an offset in
    /// `offsets` and its answer. It is called once for each, in the order of the addresses, so that neighbours find what they share
    /// read already.
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
        for (offset, place) in order {
            each(place, self.lookup(offset, policy, scratch));
        }
    }

    /// Every name that the `symbol_table` has for the function that starts at exactly `start`: the one that lookups answer, then
    /// its aliases, the better ones first. Nothing where no such function starts there, or none that has a name.
    ///
    /// [`crate::Frame::function_start`] is what to ask for. A linker that folds identical functions into one leaves the code of
    /// many names at one address, and a crash may be in any of them.
    ///
    /// # Errors
    ///
    /// As [`Self::lookup`].
    pub fn function_names<'s>(
        &self,
        start: ImageOffset,
        scratch: &'s mut Scratch,
    ) -> Result<impl Iterator<Item = &'s [u8]> + use<'s, B>, Error> {
        scratch.attach(self.serial());
        self.find(Table::SymbolTable, start, LinePolicy::Exact, usize::MAX, scratch)?;
        let Scratch { frames, text, .. } = scratch;
        frames.retain(|frame| frame.function_start == Some(start));
        Ok(Frames(Source::Found(frames, text)).iter().filter_map(|frame| frame.name))
    }

    /// Gives the last frame, a line without a function, the symbol's name and start.
    fn name_from_symbol_table(
        &self,
        offset: ImageOffset,
        policy: LinePolicy,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        if !self.find(Table::SymbolTable, offset, policy, 1, scratch)? {
            return Ok(());
        }
        let symbol = scratch.frames.pop();
        if let (Some(frame), Some(symbol)) = (scratch.frames.last_mut(), symbol) {
            frame.name = symbol.name;
            frame.function_start = symbol.function_start;
        }
        Ok(())
    }

    /// Appends the first `at_most` locs of one table's answer to `scratch.frames`; whether there are any. In the `symbol_table` only
    /// the first one is a frame, the others are aliases.
    fn find(
        &self,
        table: Table,
        offset: ImageOffset,
        policy: LinePolicy,
        at_most: usize,
        scratch: &mut Scratch,
    ) -> Result<bool, Error> {
        let index = offset.0 / u64::from(self.metadata().chunk_span);
        if !self.metadata().chunks(table).contains(&index) {
            return Ok(false);
        }
        scratch.found.clear();
        let function_start = match self.chunk_reader() {
            Some(reader) => {
                let Some(chunk) = reader.chunk(self.metadata(), table, index)? else { return Ok(false) };
                let Scratch { packed, found, .. } = scratch;
                chunk.find(offset.0, policy.is_statement(), at_most, packed, found)?
            }
            None => self.find_decoded(table, index, offset, policy, scratch)?,
        };
        let Some(function_start) = function_start else { return Ok(false) };
        let mut strings = BlockReader {
            index: self,
            pools: [Pool::Names, Pool::Files].map(|pool| self.strings_of(pool)),
            plain: &mut scratch.plain,
            with_dictionary: &mut scratch.names,
            memo: &mut scratch.memo,
            last: None,
        };
        for loc in scratch.found.iter().take(at_most) {
            scratch.frames.push(Located {
                name: strings.copy(Pool::Names, loc.name, &mut scratch.text)?,
                file: strings.copy(Pool::Files, loc.file, &mut scratch.text)?,
                line: loc.line.map(Id32::get),
                function_start: function_start.map(ImageOffset),
                table,
            });
        }
        Ok(true)
    }

    /// Appends the locs of an answer in an index of version 1 to `scratch.found`; where the function starts, or `None` for a gap.
    fn find_decoded(
        &self,
        table: Table,
        index: u64,
        offset: ImageOffset,
        policy: LinePolicy,
        scratch: &mut Scratch,
    ) -> Result<Option<Option<u64>>, Error> {
        let plain = plain(&mut scratch.plain)?;
        let key = (self.serial(), table.structure(), index);
        let recent = match table {
            Table::Dwarf => &mut scratch.recent[0],
            Table::SymbolTable => &mut scratch.recent[1],
        };
        let chunk = match recent {
            Some((recent, chunk)) if *recent == key => &*chunk,
            _ => &recent.insert((key, self.load_chunk(table, index, plain)?)).1,
        };
        let Some(chunk) = chunk else { return Ok(None) };
        scratch.local.clear();
        let found =
            chunk.structure.find(offset.0, policy.is_statement(), &mut scratch.locs, &mut scratch.local);
        let malformed = || self.key(table.structure(), index).malformed("a run does not decode");
        if !found.ok_or_else(malformed)? {
            return Ok(None);
        }
        let LocalStrings::PoolIds { names, files } = &chunk.strings else {
            return Err(self.key(table.strings(), index).malformed("its strings are no pool ids"));
        };
        for local in &scratch.local {
            let name = *names.get(local.name as usize).ok_or_else(malformed)?;
            let file = *files.get(local.file as usize).ok_or_else(malformed)?;
            scratch.found.push(Loc { parent: None, name, file, line: local.line });
        }
        Ok(Some(scratch.local.first().and_then(|local| local.function_start)))
    }
}

/// The decompressor in `slot`, made where there is none yet.
fn plain<'s>(slot: &'s mut Option<Decompressor<'static>>) -> Result<&'s mut Decompressor<'static>, Error> {
    match slot {
        Some(made) => Ok(made),
        None => Ok(slot.insert(Decompressor::plain()?)),
    }
}

/// Reads strings.
struct BlockReader<'a, B> {
    index: &'a Index<B>,
    /// Names and files; `None` in version 1, where both are in blocks.
    pools: [Option<NameReader<'a>>; 2],
    plain: &'a mut Option<Decompressor<'static>>,
    with_dictionary: &'a mut Option<Decompressor<'static>>,
    memo: &'a mut Memo,
    /// The block that was used last: neighbouring frames often have their files in one.
    last: Option<((SectionKind, u64), Block)>,
}

impl<B: AsRef<[u8]>> BlockReader<'_, B> {
    /// A string of an index of version 1.
    fn get(&mut self, pool: Pool, id: Id32) -> Result<&[u8], Error> {
        let index = self.index;
        let per_block = index.pool(pool).strings_per_block.max(1);
        let (block, within) = (u64::from(id.get() / per_block), (id.get() % per_block) as usize);
        let section = match pool {
            Pool::Names => SectionKind::Names,
            Pool::Files => SectionKind::Files,
        };
        let key = (section, block);
        if self.last.as_ref().is_none_or(|(last, _)| *last != key) {
            let (slot, with_dictionary) = (&mut *self.plain, &mut *self.with_dictionary);
            let decompressor = match pool {
                Pool::Files => plain(slot)?,
                Pool::Names => match with_dictionary {
                    Some(made) => made,
                    None => with_dictionary.insert(Decompressor::with_dictionary(index.dictionary()?)?),
                },
            };
            self.last = Some((key, index.load_block(pool, block, decompressor)?));
        }
        let string = self.last.as_ref().and_then(|(_, block)| block.get(within));
        string.ok_or_else(|| index.key(section, block).malformed("no such string"))
    }

    /// Appends the string to `text`; where it then lies there.
    fn copy(
        &mut self,
        pool: Pool,
        id: Option<Id32>,
        text: &mut Vec<u8>,
    ) -> Result<Option<std::ops::Range<usize>>, Error> {
        let Some(id) = id else { return Ok(None) };
        let start = text.len();
        let [names, files] = &self.pools;
        let paged = match pool {
            Pool::Names => names,
            Pool::Files => files,
        };
        match paged {
            Some(strings) => strings.append(id.get(), self.memo, text)?,
            None => text.extend_from_slice(self.get(pool, id)?),
        }
        Ok(Some(start..text.len()))
    }
}

/// Reads strings of an index one after the other, for whoever walks through all of it.
pub(crate) struct Strings<'i, B> {
    index: &'i Index<B>,
    scratch: Scratch,
}

impl<'i, B: AsRef<[u8]>> Strings<'i, B> {
    pub(crate) fn new(index: &'i Index<B>) -> Self {
        Self { index, scratch: Scratch::default() }
    }

    pub(crate) fn get(&mut self, pool: Pool, id: Id32) -> Result<&[u8], Error> {
        self.scratch.attach(self.index.serial());
        let Scratch { plain, names, memo, text, .. } = &mut self.scratch;
        let index = self.index;
        let pools = [Pool::Names, Pool::Files].map(|pool| index.strings_of(pool));
        let mut reader = BlockReader { index, pools, plain, with_dictionary: names, memo, last: None };
        let at = reader.copy(pool, Some(id), text)?;
        Ok(at.and_then(|at| text.get(at)).unwrap_or_default())
    }
}
