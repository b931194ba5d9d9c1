//! The answers of lookups, as numbers and one text.
//!
//! Building JavaScript's objects from JSON takes longer than the lookup. So the answers are numbers of 32 bits, and
//! their new strings one text, which JavaScript decodes in one call. It keeps the strings, and later answers refer to
//! them by number. `answers.js` reads both.
//!
//! The first number of a call is [how many strings](SentStrings) JavaScript has before the call; it forgets all others.
//! Then come the address and the size of the text, the address of the lengths of the new strings in it, and their
//! count. Lengths count UTF-16 units, as JavaScript does. Then come the answers:
//!
//! | answer | numbers |
//! | --- | --- |
//! | frames | their count, then those of each frame |
//! | a gap | 0 |
//! | damage | [`DAMAGED`], the number of the message among the strings |
//!
//! The seven numbers of a frame are [flags](INLINED), the line, the start of its function (low half, high half), and
//! the numbers of its name, readable name and file. An absent line, start or string is [`NONE`].

use std::borrow::Cow;

use symdex::{Error, Frame, Frames, NonMaxU32, Table};

use crate::failure::Failure;
use crate::sent_strings::{SentNumbers, SentStrings, StringKey, StringKind};

/// In place of a count: the index is damaged at this offset.
const DAMAGED: u32 = u32::MAX;
/// No value.
const NONE: u32 = u32::MAX;

/// The frame is inlined into the next one.
const INLINED: u32 = 1;
/// The frame is from the symbol table.
const FROM_SYMBOL_TABLE: u32 = 2;

/// The answers of one call.
#[derive(Debug, Default)]
pub(crate) struct EncodedAnswers {
    pub(crate) numbers: Vec<u32>,
    pub(crate) text: Vec<u8>,
    /// The lengths of the new strings in the text.
    lengths: Vec<u32>,
}

impl EncodedAnswers {
    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
        self.text.clear();
        self.lengths.clear();
    }
}

/// Encodes the answers of one call.
pub(crate) struct AnswerEncoder<'a> {
    out: &'a mut EncodedAnswers,
    sent: &'a mut SentStrings,
    numbers: &'a mut SentNumbers,
    demangle: bool,
}

impl<'a> AnswerEncoder<'a> {
    /// Begins the answers of an index. `numbers` are those of its strings. With `demangle`, frames have readable names.
    pub(crate) fn begin(
        out: &'a mut EncodedAnswers,
        sent: &'a mut SentStrings,
        numbers: &'a mut SentNumbers,
        demangle: bool,
    ) -> Self {
        sent.make_room();
        numbers.refresh(sent);
        out.clear();
        out.numbers.extend([sent.count(), NONE, NONE, NONE, NONE]);
        Self { out, sent, numbers, demangle }
    }

    /// Ends the answers. Returns where their numbers are.
    pub(crate) fn end(self) -> *const u32 {
        let EncodedAnswers { numbers, text, lengths } = self.out;
        let buffers = [text.as_ptr().addr(), text.len(), lengths.as_ptr().addr(), lengths.len()];
        if let Some([_, head @ ..]) = numbers.first_chunk_mut::<5>() {
            // Addresses of WebAssembly have 32 bits.
            *head = buffers.map(|number| u32::try_from(number).unwrap_or(NONE));
        }
        numbers.as_ptr()
    }

    /// Adds one answer.
    pub(crate) fn add(&mut self, answer: Result<Option<Frames<'_>>, Error>) {
        match answer {
            Ok(None) => self.out.numbers.push(0),
            Ok(Some(frames)) => {
                self.out.numbers.push(u32::try_from(frames.len()).unwrap_or(u32::MAX));
                for (frame, ids) in frames.iter().zip(frames.string_ids()) {
                    self.frame(&frame, ids);
                }
            }
            Err(error) => {
                let message = Failure::from(&error).message;
                self.out.numbers.extend([DAMAGED, self.sent.add_text(message.len())]);
                self.text(message.as_bytes());
            }
        }
    }

    fn frame(&mut self, frame: &Frame<'_>, [name_id, file_id]: [Option<NonMaxU32>; 2]) {
        let inlined = if frame.inlined { INLINED } else { 0 };
        let from_symbol_table = if frame.table == Table::SymbolTable { FROM_SYMBOL_TABLE } else { 0 };
        let start = frame.function_start.map_or(u64::MAX, |start| start.0);
        let [low, high] = [start, start >> 32].map(|half| u32::try_from(half & 0xffff_ffff).unwrap_or(NONE));
        self.out.numbers.extend([inlined | from_symbol_table, frame.line.unwrap_or(NONE), low, high]);
        match (frame.name, name_id) {
            (Some(name), Some(id)) => {
                let id = id.get();
                let number = self.string(StringKey { kind: StringKind::Name, id }, name);
                self.readable(StringKey { kind: StringKind::ReadableName, id }, name, number, frame.readable);
            }
            _ => self.out.numbers.extend([NONE, NONE]),
        }
        match (frame.file, file_id) {
            (Some(file), Some(id)) => {
                self.string(StringKey { kind: StringKind::File, id: id.get() }, file);
            }
            _ => self.out.numbers.push(NONE),
        }
    }

    /// Adds the readable form of a name with this number. `stored` is the one that the index has.
    fn readable(&mut self, key: StringKey, name: &[u8], number: u32, stored: Option<&[u8]>) {
        if !self.demangle {
            return self.out.numbers.push(number);
        }
        if let Some(known) = self.numbers.find(key) {
            return self.out.numbers.push(known);
        }
        let readable = match stored {
            Some(stored) => Cow::Borrowed(stored),
            None => match symdex_demangle::demangle(name) {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            },
        };
        if readable == name {
            self.numbers.add(key, number, self.sent);
            self.out.numbers.push(number);
        } else {
            self.string(key, &readable);
        }
    }

    /// Adds a string. Returns its number.
    fn string(&mut self, key: StringKey, bytes: &[u8]) -> u32 {
        if let Some(number) = self.numbers.find(key) {
            self.out.numbers.push(number);
            return number;
        }
        let number = self.sent.add_text(bytes.len());
        self.numbers.add(key, number, self.sent);
        self.out.numbers.push(number);
        self.text(bytes);
        number
    }

    /// Appends a string to the text. Bytes that are not UTF-8 become U+FFFD.
    fn text(&mut self, bytes: &[u8]) {
        let EncodedAnswers { text, lengths, .. } = &mut *self.out;
        if bytes.is_ascii() {
            text.extend_from_slice(bytes);
            lengths.push(u32::try_from(bytes.len()).unwrap_or(NONE));
            return;
        }
        let shown = String::from_utf8_lossy(bytes);
        text.extend_from_slice(shown.as_bytes());
        lengths.push(u32::try_from(shown.encode_utf16().count()).unwrap_or(NONE));
    }
}
