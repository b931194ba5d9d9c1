//! The answers of lookups, as numbers and one text.
//!
//! Building JavaScript's objects from JSON takes longer than the lookup. So the answers are numbers of 32 bits, and
//! their strings one text, which JavaScript decodes in one call. `answers.js` reads both.
//!
//! | answer | numbers |
//! | --- | --- |
//! | frames | their count, then those of each frame |
//! | a gap | 0 |
//! | damage | [`DAMAGED`], the length of the message |
//!
//! A frame has seven numbers: [flags](INLINED), the line, the start of its function (low half, high half), and the
//! lengths of name, readable name and file. Lengths count UTF-16 units, as JavaScript does. An absent line, start or
//! string is [`NONE`]. A readable name that is the name itself is [`SAME`].

use symdex::{Error, Frame, Frames, Table};

use crate::failure::Failure;

/// In place of a count: the index is damaged at this offset.
const DAMAGED: u32 = u32::MAX;
/// No value.
const NONE: u32 = u32::MAX;
/// The readable name is the name.
const SAME: u32 = u32::MAX - 1;

/// The frame is inlined into the next one.
const INLINED: u32 = 1;
/// The frame is from the symbol table.
const FROM_SYMBOL_TABLE: u32 = 2;

/// The answers of one call.
#[derive(Debug, Default)]
pub(crate) struct EncodedAnswers {
    pub(crate) numbers: Vec<u32>,
    pub(crate) text: Vec<u8>,
}

impl EncodedAnswers {
    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
        self.text.clear();
    }

    /// Adds one answer. With `demangle`, its frames have readable names.
    pub(crate) fn add(&mut self, answer: Result<Option<Frames<'_>>, Error>, demangle: bool) {
        match answer {
            Ok(None) => self.numbers.push(0),
            Ok(Some(frames)) => {
                self.numbers.push(u32::try_from(frames.len()).unwrap_or(u32::MAX));
                frames.iter().for_each(|frame| self.frame(&frame, demangle));
            }
            Err(error) => {
                self.numbers.push(DAMAGED);
                self.string(Failure::from(&error).message.as_bytes());
            }
        }
    }

    fn frame(&mut self, frame: &Frame<'_>, demangle: bool) {
        let inlined = if frame.inlined { INLINED } else { 0 };
        let from_symbol_table = if frame.table == Table::SymbolTable { FROM_SYMBOL_TABLE } else { 0 };
        let start = frame.function_start.map_or(u64::MAX, |start| start.0);
        let [low, high] = [start, start >> 32].map(|half| u32::try_from(half & 0xffff_ffff).unwrap_or(NONE));
        self.numbers.extend([inlined | from_symbol_table, frame.line.unwrap_or(NONE), low, high]);
        match frame.name {
            Some(name) => {
                self.string(name);
                match frame.readable.filter(|_| demangle) {
                    Some(stored) => self.string(stored),
                    None => self.readable(name, demangle),
                }
            }
            None => self.numbers.extend([NONE, NONE]),
        }
        match frame.file {
            Some(file) => self.string(file),
            None => self.numbers.push(NONE),
        }
    }

    fn readable(&mut self, name: &[u8], demangle: bool) {
        // Names in no mangling, such as those of C, need no copy.
        let readable = demangle && symdex_demangle::language(name).is_some();
        match readable.then(|| symdex_demangle::demangle(name)) {
            Some(readable) if readable.as_bytes() != name => self.string(readable.as_bytes()),
            _ => self.numbers.push(SAME),
        }
    }

    /// Appends a string. Bytes that are not UTF-8 become U+FFFD.
    fn string(&mut self, bytes: &[u8]) {
        if bytes.is_ascii() {
            self.text.extend_from_slice(bytes);
            self.numbers.push(u32::try_from(bytes.len()).unwrap_or(NONE));
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        self.text.extend_from_slice(text.as_bytes());
        self.numbers.push(u32::try_from(text.encode_utf16().count()).unwrap_or(NONE));
    }
}
