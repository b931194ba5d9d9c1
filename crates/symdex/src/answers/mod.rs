//! Answers that were given before: crash reports ask for the same addresses again and again.
//!
//! They lie in one arena, and so does each text that they have, once, however many have it. A place there is a number of 28 bits:
//!
//! ```text
//! text:   0  4  place of the text that is its file, 0 for none
//!         4  2  length, 65535 for no name, of code that has a file alone
//!         6     bytes
//! answer: 0  4  2^31, which no text begins with; the index's serial number times two; 1 for the statement policy
//!         4  4  bytes from the function's start to the offset, plus one; 0 for no start
//!         8  6  offset
//!        14  2  frames; FROM_SYMBOLS, LAST_STARTS
//!        16     6 bytes for each frame: the place of its name, and in 20 bits its line plus one, 0 for none
//! ```
//!
//! An answer with a longer text or a larger line is not kept, nor one that takes more than its share.

mod slots;
#[cfg(test)]
mod tests;

use std::hash::Hasher as _;
use std::ops::Range;

use rustc_hash::FxHasher;

use self::slots::{PLACE_BITS, Slots};
use crate::address::ImageOffset;
use crate::answer::{Frame, LinePolicy, Located};
use crate::format::Table;
use crate::id32::Id32;

/// Answers that are passed over before any is kept: a few are sooner made without memory for many.
const UNHURRIED: usize = 256;
/// A memo of fewer bytes keeps nothing.
const SMALLEST: usize = 64 << 10;
/// Bytes for each slot: an answer takes some hundred with what it adds to the texts, and as many slots as texts and one.
const BYTES_PER_SLOT: usize = 64;
/// The part of the memo that an answer may take at the most.
const SHARE: usize = 64;
const LARGEST_PLACE: usize = (1 << PLACE_BITS) - 1;
const LINE_BITS: u32 = 48 - PLACE_BITS;
const TEXT_HEAD: usize = 6;
const ANSWER_HEAD: usize = 16;
const FRAME_SIZE: usize = 6;
const NO_NAME: u16 = u16::MAX;
/// The frames are from the `symbol_table`.
const FROM_SYMBOLS: u16 = 1 << 15;
/// No frame has a function's start but the last.
const LAST_STARTS: u16 = 1 << 14;

/// What was answered to which question, under a budget of bytes.
///
/// When it is full it stays as it is until as many answers found no room as it keeps, and then starts anew. So it never makes
/// more lookups slow than were slow anyway, and of addresses that come round in turns, a few too many, most are still found.
#[derive(Default)]
pub(crate) struct AnswerMemo {
    /// Bytes it may take.
    capacity: usize,
    /// Answers that were not kept, first because there were few, later for want of room.
    passed: usize,
    kept: usize,
    slots: Slots,
    arena: Vec<u8>,
}

/// What an answer is an answer to.
#[derive(Clone, Copy)]
pub(crate) struct Question {
    /// The first four bytes of the answer.
    asked: u32,
    offset: u64,
}

impl Question {
    /// `None` for what no answer is kept to: an index of a number that no process gets to, an offset in no image.
    #[inline]
    pub(crate) fn new(serial: u64, offset: ImageOffset, policy: LinePolicy) -> Option<Self> {
        let serial = u32::try_from(serial).ok().filter(|serial| *serial < 1 << 30)?;
        let asked = 1 << 31 | serial << 1 | u32::from(policy.is_statement());
        (offset.0 >> 48 == 0).then_some(Self { asked, offset: offset.0 })
    }

    #[inline]
    fn hash(self) -> u64 {
        (u64::from(self.asked) << 40 ^ self.offset).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// An answer that was kept; it has a frame at least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept<'a> {
    function_start: Option<ImageOffset>,
    flags: u16,
    frames: &'a [[u8; FRAME_SIZE]],
    arena: &'a [u8],
}

impl AnswerMemo {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { capacity: capacity.min(LARGEST_PLACE), ..Self::default() }
    }

    /// The place of the answer to `question`.
    #[inline]
    pub(crate) fn find(&self, question: Question) -> Option<u32> {
        self.slots.find(question.hash(), |place| {
            let asked = read(&self.arena, place).map(u32::from_le_bytes);
            let offset = read(&self.arena, place + 8).map(u64::from_le_bytes);
            asked == Some(question.asked)
                && offset.is_some_and(|offset| offset << 16 == question.offset << 16)
        })
    }

    /// The answer at a place that was found; `None` for a gap.
    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<Kept<'_>> {
        let place = place as usize;
        let distance = u32::from_le_bytes(read(&self.arena, place + 4)?);
        let offset = u64::from_le_bytes(read(&self.arena, place + 8)?);
        let flags = u16::try_from(offset >> 48).unwrap_or_default();
        let frames = usize::from(flags & !(FROM_SYMBOLS | LAST_STARTS));
        let start = place + ANSWER_HEAD;
        let (frames, _) = self.arena.get(start..start + frames * FRAME_SIZE)?.as_chunks();
        let offset = offset & ((1 << 48) - 1);
        let function_start =
            distance.checked_sub(1).map(|distance| ImageOffset(offset - u64::from(distance)));
        (!frames.is_empty()).then_some(Kept { function_start, flags, frames, arena: &self.arena })
    }

    /// Keeps the answer to `question`, whose strings lie in `text`, if there is room and it is not an odd one.
    pub(crate) fn put(&mut self, question: Question, frames: &[Located], text: &[u8]) {
        let Some((distance, flags)) = summary(question, frames) else { return };
        let size = |frame: &Located| FRAME_SIZE + 2 * TEXT_HEAD + len(&frame.name) + len(&frame.file);
        let size = ANSWER_HEAD + frames.iter().map(size).sum::<usize>();
        if size > self.capacity / SHARE || !self.has_room(size, 1 + 2 * frames.len()) {
            return;
        }
        let place = self.arena.len();
        self.arena.extend_from_slice(&question.asked.to_le_bytes());
        self.arena.extend_from_slice(&distance.to_le_bytes());
        self.arena.extend_from_slice(&(question.offset | u64::from(flags) << 48).to_le_bytes());
        // The texts that are new follow the frames.
        let mut at = self.arena.len();
        self.arena.resize(at + frames.len() * FRAME_SIZE, 0);
        for frame in frames {
            let string = |at: &Option<Range<usize>>| text.get(at.clone()?);
            let file = string(&frame.file).map_or(0, |file| self.text(0, Some(file)));
            let name = self.text(file, string(&frame.name));
            let line = Id32::stored(frame.line.and_then(|line| Id32::new(line.into())));
            let [a, b, c, d, e, f, ..] = (u64::from(name) | u64::from(line) << PLACE_BITS).to_le_bytes();
            if let Some(kept) = self.arena.get_mut(at..).and_then(|from| from.first_chunk_mut()) {
                *kept = [a, b, c, d, e, f];
            }
            at += FRAME_SIZE;
        }
        self.slots.enter(question.hash(), place);
        self.kept += 1;
    }

    /// The place of a name whose file is at place `file`, or of a file, whose is 0; 0 for neither.
    fn text(&mut self, file: u32, text: Option<&[u8]>) -> u32 {
        if file == 0 && text.is_none() {
            return 0;
        }
        let len = text.map_or(NO_NAME, |text| u16::try_from(text.len()).unwrap_or(NO_NAME));
        let text = text.unwrap_or_default();
        let mut hash = FxHasher::default();
        hash.write_u32(file);
        hash.write(text);
        let hash = hash.finish();
        let ([a, b, c, d], [e, f]) = (file.to_le_bytes(), len.to_le_bytes());
        let head: [u8; TEXT_HEAD] = [a, b, c, d, e, f];
        let found = self.slots.find(hash, |place| {
            let start = place + TEXT_HEAD;
            read(&self.arena, place) == Some(head) && self.arena.get(start..start + text.len()) == Some(text)
        });
        found.unwrap_or_else(|| {
            let place = self.arena.len();
            self.arena.extend_from_slice(&head);
            self.arena.extend_from_slice(text);
            self.slots.enter(hash, place);
            u32::try_from(place).unwrap_or_default()
        })
    }

    /// Makes room for so many bytes and slots; whether there is.
    fn has_room(&mut self, size: usize, slots: usize) -> bool {
        let all_slots = self.capacity / BYTES_PER_SLOT;
        let arena_size = self.capacity - Slots::size_of(all_slots);
        if self.slots.is_empty() {
            self.passed += 1;
            if self.passed <= UNHURRIED || self.capacity < SMALLEST {
                return false;
            }
            self.slots = Slots::new(all_slots);
            // All of it at once: systems give memory when it is first written, and nothing is ever copied.
            self.arena = Vec::with_capacity(arena_size);
            self.clear();
        }
        if self.arena.len() + size > arena_size || !self.slots.have_room(slots) {
            self.passed += 1;
            if self.passed <= self.kept {
                return false;
            }
            self.slots.clear();
            self.clear();
        }
        true
    }

    fn clear(&mut self) {
        (self.passed, self.kept) = (0, 0);
        self.arena.clear();
        // So that place 0 is nothing's.
        self.arena.push(0);
    }
}

/// What an answer's head says after the question: how far before the offset the function starts, and how many frames there are, and
/// which. `None` for an answer that is not kept.
fn summary(question: Question, frames: &[Located]) -> Option<(u32, u16)> {
    let Some((last, others)) = frames.split_last() else { return Some((0, 0)) };
    let is_plain = |frame: &Located| {
        frame.table == last.table
            && len(&frame.name).max(len(&frame.file)) < usize::from(NO_NAME)
            && frame.line.is_none_or(|line| line < (1 << LINE_BITS) - 1)
    };
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
        Some(start) => u32::try_from(question.offset.checked_sub(start.0)?).ok()?.checked_add(1)?,
    };
    Some((distance, flags))
}

fn len(string: &Option<Range<usize>>) -> usize {
    string.as_ref().map_or(0, Range::len)
}

#[inline]
fn read<const N: usize>(arena: &[u8], place: usize) -> Option<[u8; N]> {
    arena.get(place..)?.first_chunk().copied()
}

impl<'a> Kept<'a> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Frame `number`, counted from the innermost.
    #[inline]
    pub(crate) fn frame(&self, number: usize) -> Frame<'a> {
        let inlined = number + 1 < self.frames.len();
        let [a, b, c, d, e, f] = self.frames.get(number).copied().unwrap_or_default();
        let frame = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        let place = usize::try_from(frame & LARGEST_PLACE as u64).unwrap_or_default();
        let line = u32::try_from(frame >> PLACE_BITS).unwrap_or_default();
        let (file, name) = self.text(place).unwrap_or_default();
        Frame {
            name,
            file: self.text(file).and_then(|(_, file)| file),
            line: Id32::from_stored(line).map(Id32::get),
            inlined,
            function_start: self.function_start.filter(|_| !inlined || self.flags & LAST_STARTS == 0),
            table: if self.flags & FROM_SYMBOLS == 0 { Table::Dwarf } else { Table::SymbolTable },
        }
    }

    /// The place of the file of the text at `place`, and the text.
    #[inline]
    fn text(&self, place: usize) -> Option<(usize, Option<&'a [u8]>)> {
        if place == 0 {
            return None;
        }
        let [a, b, c, d, e, f] = read(self.arena, place)?;
        let (file, len) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]));
        let start = place + TEXT_HEAD;
        let text = self.arena.get(start..start + usize::from(len)).filter(|_| len != NO_NAME);
        Some((file as usize, text))
    }
}
