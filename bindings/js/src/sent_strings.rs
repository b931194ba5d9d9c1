//! The strings that JavaScript has already, by number: it decodes each once.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

/// The most bytes of text and the most strings with which a call begins. JavaScript and this table take about 64 bytes
/// for each string, besides its text.
const MAX_TEXT: usize = 32 << 20;
const MAX_STRINGS: u32 = 1 << 18;

/// What a string is. The readable form of a name is a string of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StringKind {
    Name,
    ReadableName,
    File,
}

/// A string of an index.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StringKey {
    /// How many indexes had been opened before this one.
    pub(crate) index: u32,
    pub(crate) kind: StringKind,
    /// The id of the name or of the file in its index.
    pub(crate) id: u32,
}

/// The strings that JavaScript has. Their numbers count from 0, in the order in which they were sent.
#[derive(Default)]
pub(crate) struct SentStrings {
    numbers: HashMap<StringKey, u32, FxBuildHasher>,
    count: u32,
    text_size: usize,
}

impl SentStrings {
    /// How many strings there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Forgets all strings if they take much memory.
    pub(crate) fn make_room(&mut self) {
        if self.text_size > MAX_TEXT || self.count > MAX_STRINGS {
            *self = Self::default();
        }
    }

    /// The number of a string that was sent.
    #[inline]
    pub(crate) fn find(&self, key: StringKey) -> Option<u32> {
        self.numbers.get(&key).copied()
    }

    /// The number of a string of `size` bytes that is sent now.
    pub(crate) fn add(&mut self, key: StringKey, size: usize) -> u32 {
        let number = self.add_text(size);
        self.numbers.insert(key, number);
        number
    }

    /// The number of a text of `size` bytes, in no index, that is sent now.
    pub(crate) fn add_text(&mut self, size: usize) -> u32 {
        let number = self.count;
        self.count += 1;
        self.text_size += size;
        number
    }

    /// States that a string is the one with this number.
    pub(crate) fn add_same(&mut self, key: StringKey, number: u32) {
        self.numbers.insert(key, number);
    }
}
