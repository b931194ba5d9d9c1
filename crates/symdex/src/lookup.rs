//! From an image offset to frames.

use std::sync::Arc;

use crate::address::ImageOffset;
use crate::answer::{Frames, LinePolicy, Located, Source};
use crate::answers::Question;
use crate::cache::{ChunkCache, Key, Part};
use crate::chunk::LocalStrings;
use crate::error::Error;
use crate::format::{Decompressor, SectionKind, Table};
use crate::id32::Id32;
use crate::index::{Index, Pool};
use crate::names::{Memo, NameReader};
use crate::scratch::Scratch;

impl<B: AsRef<[u8]>> Index<B> {
    /// The frames at `offset`, innermost first; `None` for a gap, where neither table knows the address.
    ///
    /// The `dwarf` table answers first, the `symbol_table` where that has a gap. Code that has a line but no function in the
    /// `dwarf` table is named by the `symbol_table`. At most one chunk of each table is read, and the blocks of the strings
    /// that are returned; a chunk or block that `scratch` still holds is not read again.
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
    /// `offsets` and its answer. It is called once for each, in the order of the addresses, so that no chunk is decoded twice.
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
        let plain = plain(&mut scratch.plain)?;
        let key = (self.serial(), table.structure(), index);
        let load = || self.load_chunk(table, index, plain).map(Part::Chunk);
        let recent = match table {
            Table::Dwarf => &mut scratch.recent[0],
            Table::SymbolTable => &mut scratch.recent[1],
        };
        let part = match recent {
            Some((recent, part)) if *recent == key => &*part,
            _ => &recent.insert((key, scratch.cache.get_or_load(key, load)?)).1,
        };
        let Part::Chunk(Some(chunk)) = &**part else { return Ok(false) };
        scratch.local.clear();
        let found =
            chunk.structure.find(offset.0, policy.is_statement(), &mut scratch.locs, &mut scratch.local);
        let malformed = || self.key(table.structure(), index).malformed("a run does not decode");
        if !found.ok_or_else(malformed)? {
            return Ok(false);
        }
        let LocalStrings::PoolIds { names, files } = &chunk.strings else {
            return Err(self.key(table.strings(), index).malformed("its strings are no pool ids"));
        };
        let mut strings = BlockReader {
            index: self,
            names: self.names(),
            plain: &mut scratch.plain,
            with_dictionary: &mut scratch.names,
            cache: &scratch.cache,
            memo: &mut scratch.memo,
            last: None,
        };
        for local in scratch.local.iter().take(at_most) {
            let name = *names.get(local.name as usize).ok_or_else(malformed)?;
            let file = *files.get(local.file as usize).ok_or_else(malformed)?;
            scratch.frames.push(Located {
                name: strings.copy(Pool::Names, name, &mut scratch.text)?,
                file: strings.copy(Pool::Files, file, &mut scratch.text)?,
                line: local.line.map(Id32::get),
                function_start: local.function_start.map(ImageOffset),
                table,
            });
        }
        Ok(true)
    }
}

/// The decompressor in `slot`, made where there is none yet.
fn plain<'s>(slot: &'s mut Option<Decompressor<'static>>) -> Result<&'s mut Decompressor<'static>, Error> {
    match slot {
        Some(made) => Ok(made),
        None => Ok(slot.insert(Decompressor::plain()?)),
    }
}

/// Reads strings through a cache of blocks.
struct BlockReader<'a, B> {
    index: &'a Index<B>,
    /// `None` in version 1, whose names are in blocks too.
    names: Option<NameReader<'a>>,
    plain: &'a mut Option<Decompressor<'static>>,
    with_dictionary: &'a mut Option<Decompressor<'static>>,
    cache: &'a ChunkCache,
    memo: &'a mut Memo,
    /// The block that was used last: neighbouring frames often have their files in one.
    last: Option<(Key, Arc<Part>)>,
}

impl<B: AsRef<[u8]>> BlockReader<'_, B> {
    fn get(&mut self, pool: Pool, id: Id32) -> Result<&[u8], Error> {
        let index = self.index;
        let per_block = index.pool(pool).strings_per_block.max(1);
        let (block, within) = (u64::from(id.get() / per_block), (id.get() % per_block) as usize);
        let section = match pool {
            Pool::Names => SectionKind::Names,
            Pool::Files => SectionKind::Files,
        };
        let key = (index.serial(), section, block);
        if self.last.as_ref().is_none_or(|(last, _)| *last != key) {
            let (slot, with_dictionary) = (&mut *self.plain, &mut *self.with_dictionary);
            let part = self.cache.get_or_load(key, || {
                let decompressor = match pool {
                    Pool::Files => plain(slot)?,
                    Pool::Names => match with_dictionary {
                        Some(made) => made,
                        None => with_dictionary.insert(Decompressor::with_dictionary(index.dictionary()?)?),
                    },
                };
                index.load_block(pool, block, decompressor).map(Part::Block)
            })?;
            self.last = Some((key, part));
        }
        let string = match self.last.as_ref().map(|(_, part)| &**part) {
            Some(Part::Block(block)) => block.get(within),
            _ => None,
        };
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
        match self.names {
            Some(names) if pool == Pool::Names => names.append(id.get(), self.memo, text)?,
            _ => text.extend_from_slice(self.get(pool, id)?),
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
        let Scratch { plain, names, cache, memo, text, .. } = &mut self.scratch;
        let (index, grammar) = (self.index, self.index.names());
        let mut reader =
            BlockReader { index, names: grammar, plain, with_dictionary: names, cache, memo, last: None };
        let at = reader.copy(pool, Some(id), text)?;
        Ok(at.and_then(|at| text.get(at)).unwrap_or_default())
    }
}
