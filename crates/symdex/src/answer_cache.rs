//! A cache of answers, because crash reports ask for the same addresses again and again.
//!
//! Answers and strings lie in one arena, each string once. A place is an offset in the arena, of 28 bits:
//!
//! ```text
//! string: 0  4  for a name the place of the file beside it, 0 for none and for a file
//!         4  4  the index's serial number times two; plus 1 for a file
//!         8  4  the string's id plus one, 0 for no name beside a file
//!        12  2  length; READABLE
//!        14     bytes
//!            2  for a name with READABLE: length of its readable name
//!               bytes of that
//! answer: 0  4  2^31 plus the index's serial number times two; plus 1 for `statement`. Places are smaller
//!         4  4  bytes from the function's start to the start of the range, plus one; 0 for no start
//!         8  6  start of the range of offsets that have the answer
//!        14  2  frames; FROM_SYMBOLS, LAST_STARTS
//!        16  4  bytes of the range
//!        20     6 bytes for each frame: the place of its name, and in 20 bits its line plus one, 0 for none
//! ```
//!
//! An answer is found from all offsets of its range that are in a granule ([`GRANULE_BITS`]) where it was asked for.
//!
//! An answer is not cached if a string or a line does not fit its field, or if the answer takes more than 1/[`SHARE`]
//! of the cache.

mod slots;
#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::answer::{FoundFrame, Frame, LinePolicy};
use crate::error::Error;
use crate::format::Table;
use crate::image::ImageOffset;
use crate::index::StringPool;
use crate::names::low_half;
use crate::packed::SourceLocation;

use slots::{Rejected, Slots};

/// Bits of a place.
const PLACE_BITS: u32 = 28;
const PLACES: u32 = (1 << PLACE_BITS) - 1;
/// How many answers are not cached at first, because a few lookups are faster without a cache.
const UNHURRIED: usize = 4;
/// Slots of the first table. The full table touches more memory than a few hundred answers are worth.
const FIRST_SLOTS: usize = 4096;
/// A smaller cache stores nothing.
const SMALLEST: usize = 64 << 10;
/// Bytes of the cache for each slot. An answer takes about a hundred bytes with its strings, and a few slots.
const BYTES_PER_SLOT: usize = 64;
/// An answer takes at most 1/`SHARE` of the cache.
const SHARE: usize = 64;
/// A full cache is emptied if more than one in this many lookups asks again for an answer that it rejected.
const PATIENCE: usize = 6;
const LINE_BITS: u32 = 48 - PLACE_BITS;
const TEXT_HEAD: usize = 14;
/// The name has a readable name.
const READABLE: u16 = 1 << 15;
/// The length that stands for "no name".
const NO_NAME: u16 = READABLE - 1;
const ANSWER_HEAD: usize = 20;
const FRAME_SIZE: usize = 6;
/// The frames are from the `symbol_table`.
const FROM_SYMBOLS: u16 = 1 << 15;
/// Only the last frame has a function's start.
const LAST_STARTS: u16 = 1 << 14;

/// Answers by key, in a limited number of bytes.
///
/// A full cache does not change, so that most addresses are found if slightly more than fit are asked in turns. It is
/// emptied when other addresses are asked again and again. Addresses that are asked once do not empty it.
#[derive(Default)]
pub(crate) struct AnswerCache {
    /// The most bytes that it takes.
    capacity: usize,
    /// The first answers, which were not cached.
    passed: usize,
    kept: usize,
    /// Lookups since the last check of a full cache.
    asked: usize,
    /// How many of them asked for a rejected answer again.
    again: usize,
    rejected: Rejected,
    slots: Slots,
    arena: Vec<u8>,
}

/// Binary logarithm of the bytes of a granule, whose answers are found from one hash. A larger granule has more of a
/// range, and more other ranges, which are passed on the way to it.
const GRANULE_BITS: u32 = 5;

/// The index, the offset and the policy of a question.
#[derive(Clone, Copy)]
pub(crate) struct AnswerKey {
    /// The first four bytes of the answer.
    asked: u32,
    offset: u64,
}

impl AnswerKey {
    /// Returns `None` for a serial number or an offset that does not fit. Such answers are not cached.
    #[inline]
    pub(crate) fn new(serial: u64, offset: ImageOffset, policy: LinePolicy) -> Option<Self> {
        let serial = u32::try_from(serial).ok().filter(|serial| *serial < 1 << 30)?;
        let asked = 1 << 31 | serial << 1 | u32::from(policy.is_statement());
        (offset.0 >> 48 == 0).then_some(Self { asked, offset: offset.0 })
    }

    #[inline]
    fn hash(self) -> u64 {
        (u64::from(self.asked) << 40 ^ self.offset >> GRANULE_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A string of the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CachedString<'a> {
    pub(crate) text: &'a [u8],
    /// The readable name of a name, if the index has it.
    pub(crate) readable: Option<&'a [u8]>,
}

/// An answer of the cache. It has at least one frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedAnswer<'a> {
    function_start: Option<ImageOffset>,
    flags: u16,
    frames: &'a [[u8; FRAME_SIZE]],
    arena: &'a [u8],
}

impl AnswerCache {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { capacity: capacity.min(PLACES as usize), ..Self::default() }
    }

    /// The place of the answer to `key`. Counts as a lookup.
    #[inline]
    pub(crate) fn find(&mut self, key: AnswerKey) -> Option<u32> {
        self.asked = self.asked.saturating_add(1);
        self.place(key)
    }

    #[inline]
    fn place(&self, key: AnswerKey) -> Option<u32> {
        self.slots.find(key.hash(), |place| {
            let Some([a, b, c, d, _, _, _, _, rest @ ..]) = read::<ANSWER_HEAD>(&self.arena, place) else {
                return false;
            };
            let [e, f, g, h, i, j, _, _, k, l, m, n] = rest;
            let start = u64::from_le_bytes([e, f, g, h, i, j, 0, 0]);
            let len = u32::from_le_bytes([k, l, m, n]);
            u32::from_le_bytes([a, b, c, d]) == key.asked && key.offset.wrapping_sub(start) < len.into()
        })
    }

    /// Returns the answer at `place`, which [`Self::find`] returned, or `None` for a gap.
    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<CachedAnswer<'_>> {
        let place = place as usize;
        let distance = u32::from_le_bytes(read(&self.arena, place + 4)?);
        let bytes = read(&self.arena, place + 8)?;
        let (offset, [.., low, high]) = (u64::from_le_bytes(bytes), bytes);
        let flags = u16::from_le_bytes([low, high]);
        let frames = usize::from(flags & !(FROM_SYMBOLS | LAST_STARTS));
        let start = place + ANSWER_HEAD;
        let (frames, _) = self.arena.get(start..start + frames * FRAME_SIZE)?.as_chunks();
        let offset = offset & ((1 << 48) - 1);
        let function_start =
            distance.checked_sub(1).map(|distance| ImageOffset(offset - u64::from(distance)));
        (!frames.is_empty()).then_some(CachedAnswer { function_start, flags, frames, arena: &self.arena })
    }

    /// Stores the answer to `key`, which is the same for all offsets of `range`, if there is room and it fits. Returns
    /// its place. `read_string` reads a string that is not in the cache yet into `buffer`, which is empty, and after a
    /// name its readable name. It returns where that begins.
    pub(crate) fn put(
        &mut self,
        key: AnswerKey,
        range: Range<u64>,
        frames: &[FoundFrame],
        buffer: &mut Vec<u8>,
        read_string: impl Fn(StringPool, u32, &mut Vec<u8>) -> Result<Option<usize>, Error>,
    ) -> Result<Option<u32>, Error> {
        let Ok(len) = u32::try_from(range.end.saturating_sub(range.start)) else { return Ok(None) };
        let start = AnswerKey { offset: range.start, ..key };
        let Some((distance, flags)) = summary(start, frames) else { return Ok(None) };
        let is_elsewhere = start.hash() != key.hash();
        if is_elsewhere && let Some(place) = self.place(start) {
            if self.slots.have_room(1) {
                self.slots.enter(key.hash(), place as usize);
            }
            return Ok(Some(place));
        }
        let share = self.capacity / SHARE;
        let size = ANSWER_HEAD + frames.len() * FRAME_SIZE;
        if size > share || !self.has_room(start.hash(), share, 2 + 2 * frames.len()) {
            return Ok(None);
        }
        let place = self.arena.len();
        self.arena.extend_from_slice(&key.asked.to_le_bytes());
        self.arena.extend_from_slice(&distance.to_le_bytes());
        self.arena.extend_from_slice(&(start.offset | u64::from(flags) << 48).to_le_bytes());
        self.arena.extend_from_slice(&len.to_le_bytes());
        // New strings follow the frames.
        let mut at = self.arena.len();
        let end = place + share;
        self.arena.resize(at + frames.len() * FRAME_SIZE, 0);
        let names = key.asked & !(1 << 31 | 1);
        // The file of the frame before, and its place. Neighbouring frames are often in one file.
        let mut last = (0, 0);
        for frame in frames {
            let SourceLocation { name, file, line } = frame.source;
            if file != last.0 {
                let place = match file {
                    0 => Some(0),
                    file => self.text(0, names | 1, file, end, buffer, &read_string)?,
                };
                let Some(place) = place else { return Ok(None) };
                last = (file, place);
            }
            let (_, file) = last;
            let name = match (file, name) {
                (0, 0) => Some(0),
                (_, name) => self.text(file, names, name, end, buffer, &read_string)?,
            };
            let Some(name) = name else { return Ok(None) };
            let [a, b, c, d, e, f, ..] = (u64::from(name) | u64::from(line) << PLACE_BITS).to_le_bytes();
            if let Some(kept) = self.arena.get_mut(at..).and_then(|from| from.first_chunk_mut()) {
                *kept = [a, b, c, d, e, f];
            }
            at += FRAME_SIZE;
        }
        self.slots.enter(start.hash(), place);
        if is_elsewhere {
            self.slots.enter(key.hash(), place);
        }
        self.kept += 1;
        Ok(u32::try_from(place).ok())
    }

    /// The place of a string. Returns `None` if the string is too long, or would end after `end`.
    fn text(
        &mut self,
        file: u32,
        pool: u32,
        stored: u32,
        end: usize,
        buffer: &mut Vec<u8>,
        read_string: impl Fn(StringPool, u32, &mut Vec<u8>) -> Result<Option<usize>, Error>,
    ) -> Result<Option<u32>, Error> {
        let (hash, head) = text_key(file, pool, stored);
        if let Some(place) = self.slots.find(hash, |place| read(&self.arena, place) == Some(head)) {
            return Ok(Some(place));
        }
        buffer.clear();
        let readable_at = match stored.checked_sub(1) {
            Some(id) if pool & 1 == 0 => read_string(StringPool::Names, id, buffer)?,
            Some(id) => read_string(StringPool::Files, id, buffer)?,
            None => None,
        };
        let (own, readable) = buffer.split_at(readable_at.unwrap_or(buffer.len()).min(buffer.len()));
        let place = self.arena.len();
        let lens = (u16::try_from(own.len()).ok().filter(|len| *len < NO_NAME))
            .zip(u16::try_from(readable.len()).ok())
            .filter(|_| place + TEXT_HEAD + buffer.len() + size_of::<u16>() <= end);
        let Some((len, readable_len)) = lens else { return Ok(None) };
        let len = if stored != 0 { len } else { NO_NAME };
        self.arena.extend_from_slice(&head);
        self.arena.extend_from_slice(&(len | readable_at.map_or(0, |_| READABLE)).to_le_bytes());
        self.arena.extend_from_slice(own);
        if readable_at.is_some() {
            self.arena.extend_from_slice(&readable_len.to_le_bytes());
            self.arena.extend_from_slice(readable);
        }
        self.slots.enter(hash, place);
        Ok(u32::try_from(place).ok())
    }

    /// A cached string, and its place. `file` is the place of the file beside a name, 0 for none and for a file.
    pub(crate) fn string(
        &self,
        serial: u64,
        pool: StringPool,
        stored: u32,
        file: u32,
    ) -> Option<(u32, CachedString<'_>)> {
        let pool = u32::try_from(serial).ok()?.checked_mul(2)? | u32::from(pool == StringPool::Files);
        let (hash, head) = text_key(file, pool, stored);
        let place = self.slots.find(hash, |place| read(&self.arena, place) == Some(head))?;
        let (_, string) = string_at(&self.arena, place as usize)?;
        Some((place, string?))
    }

    /// Makes room for this many bytes and slots, for an answer with this hash. Returns whether there is room.
    fn has_room(&mut self, hash: u64, size: usize, slots: usize) -> bool {
        let all_slots = self.capacity / BYTES_PER_SLOT;
        let arena_size = self.capacity - all_slots * size_of::<u32>() - Rejected::size(all_slots);
        if self.slots.len() == 0 {
            self.passed += 1;
            if self.passed <= UNHURRIED || self.capacity < SMALLEST {
                return false;
            }
            self.slots = Slots::new(FIRST_SLOTS.min(all_slots));
            // Reserved at once, so that it is never copied. Systems provide the memory when it is first written.
            self.arena = Vec::with_capacity(arena_size);
            self.clear();
        }
        if !self.slots.have_room(slots) && self.slots.len() < all_slots {
            self.slots = Slots::new(all_slots);
            self.clear();
        }
        if self.arena.len() + size > arena_size || !self.slots.have_room(slots) {
            self.again += usize::from(self.rejected.insert(hash, all_slots));
            // Addresses that are asked in turns are rejected in rows. So a check counts as many lookups as answers.
            if self.asked < self.kept {
                return false;
            }
            let is_outdated = self.again > self.asked / PATIENCE;
            (self.asked, self.again) = (0, 0);
            if !is_outdated {
                return false;
            }
            self.slots.clear();
            self.clear();
        }
        true
    }

    fn clear(&mut self) {
        (self.kept, self.asked, self.again) = (0, 0, 0);
        self.rejected.clear();
        self.arena.clear();
        // Place 0 means "none".
        self.arena.push(0);
    }
}

/// The fields of an answer after its key: the distance from the function's start, the flags and the number of frames.
/// Returns `None` for an answer that cannot be cached.
fn summary(key: AnswerKey, frames: &[FoundFrame]) -> Option<(u32, u16)> {
    let Some((last, others)) = frames.split_last() else { return Some((0, 0)) };
    let is_plain = |frame: &FoundFrame| frame.table == last.table && frame.source.line < 1 << LINE_BITS;
    if !frames.iter().all(is_plain) {
        return None;
    }
    let mut flags = u16::try_from(frames.len()).ok().filter(|len| *len < LAST_STARTS)?;
    if last.table == Table::SymbolTable {
        flags |= FROM_SYMBOLS;
    }
    if others.iter().any(|frame| frame.function_start != last.function_start) {
        flags |= LAST_STARTS;
        others.iter().all(|frame| frame.function_start.is_none()).then_some(())?;
    }
    let distance = match last.function_start {
        None => 0,
        Some(start) => u32::try_from(key.offset.checked_sub(start.0)?).ok()?.checked_add(1)?,
    };
    Some((distance, flags))
}

/// The hash of a string, and the bytes that its entry in the arena begins with.
fn text_key(file: u32, pool: u32, id: u32) -> (u64, [u8; TEXT_HEAD - 2]) {
    let hash =
        (u64::from(id) << 32 | u64::from(file)).wrapping_add(u64::from(pool) << 57 | u64::from(pool) << 20);
    let [a, b, c, d] = file.to_le_bytes();
    let [e, f, g, h] = pool.to_le_bytes();
    let [i, j, k, l] = id.to_le_bytes();
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15), [a, b, c, d, e, f, g, h, i, j, k, l])
}

/// The place of the file of the text at `place`, and the text. `None` for place 0.
#[inline]
fn string_at(arena: &[u8], place: usize) -> Option<(usize, Option<CachedString<'_>>)> {
    if place == 0 {
        return None;
    }
    let [a, b, c, d, .., e, f]: [u8; TEXT_HEAD] = read(arena, place)?;
    let (file, len) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]));
    let start = place + TEXT_HEAD;
    let end = start + usize::from(len & !READABLE);
    let text = arena.get(start..end).filter(|_| len != NO_NAME);
    let readable = if len & READABLE == 0 { None } else { readable_at(arena, end) };
    Some((file as usize, text.map(|text| CachedString { text, readable })))
}

/// The readable name at `place`.
fn readable_at(arena: &[u8], place: usize) -> Option<&[u8]> {
    let start = place + size_of::<u16>();
    arena.get(start..start + usize::from(u16::from_le_bytes(read(arena, place)?)))
}

#[inline]
fn read<const N: usize>(arena: &[u8], place: usize) -> Option<[u8; N]> {
    arena.get(place..)?.first_chunk().copied()
}

impl<'a> CachedAnswer<'a> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Frame `number`, counted from the innermost.
    #[inline]
    pub(crate) fn frame(&self, number: usize) -> Frame<'a> {
        let inlined = number + 1 < self.frames.len();
        let (place, line) = self.place_and_line(number);
        // A frame without a name and a file has no text.
        let (file, name) = string_at(self.arena, place).unwrap_or_default();
        Frame {
            name: name.map(|name| name.text),
            readable: name.and_then(|name| name.readable),
            file: string_at(self.arena, file).and_then(|(_, file)| Some(file?.text)),
            line: line.checked_sub(1),
            inlined,
            function_start: self.function_start.filter(|_| !inlined || self.flags & LAST_STARTS == 0),
            table: if self.flags & FROM_SYMBOLS == 0 { Table::Dwarf } else { Table::SymbolTable },
        }
    }

    /// The ids of the name and of the file of frame `number`, plus one; 0 for none.
    pub(crate) fn stored_ids(&self, number: usize) -> [u32; 2] {
        let (name, _) = self.place_and_line(number);
        let file = read(self.arena, name).filter(|_| name != 0).map_or(0, u32::from_le_bytes) as usize;
        let id_at =
            |place: usize| read(self.arena, place + 8).filter(|_| place != 0).map_or(0, u32::from_le_bytes);
        [name, file].map(id_at)
    }

    /// The place of the name of frame `number`, and its line plus one.
    #[inline]
    fn place_and_line(&self, number: usize) -> (usize, u32) {
        // `number` is less than `len`. All zeros would be a frame without a name.
        let [a, b, c, d, e, f] = self.frames.get(number).copied().unwrap_or_default();
        let frame = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        ((low_half(frame) & PLACES) as usize, low_half(frame >> PLACE_BITS))
    }
}
