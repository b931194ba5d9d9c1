//! The strings that JavaScript has already, by number: it decodes each once.

/// The most bytes of text and of tables, and the most strings, with which a call begins. JavaScript takes some 50 bytes
/// for each string, besides its text.
const MAX_SIZE: usize = 32 << 20;
const MAX_STRINGS: u32 = 1 << 18;

/// What a string of an index is. The readable form of a name is a string of its own.
#[derive(Clone, Copy)]
pub(crate) enum StringKind {
    Name,
    ReadableName,
    File,
}

/// A string of an index.
#[derive(Clone, Copy)]
pub(crate) struct StringKey {
    pub(crate) kind: StringKind,
    /// The id of the name or of the file in its index.
    pub(crate) id: u32,
}

/// How many strings JavaScript has. Their numbers count from 0, in the order in which they were sent.
#[derive(Default)]
pub(crate) struct SentStrings {
    count: u32,
    size: usize,
    /// How often all strings were forgotten.
    forgotten: u32,
}

impl SentStrings {
    /// How many strings there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Forgets all strings if they take much memory.
    pub(crate) fn make_room(&mut self) {
        if self.size > MAX_SIZE || self.count > MAX_STRINGS {
            self.forget();
        }
    }

    /// Forgets all strings.
    pub(crate) fn forget(&mut self) {
        *self = Self { forgotten: self.forgotten.wrapping_add(1), ..Self::default() };
    }

    /// The number of a text of `size` bytes that is sent now.
    pub(crate) fn add_text(&mut self, size: usize) -> u32 {
        let number = self.count;
        self.count += 1;
        self.size += size;
        number
    }
}

/// The numbers of the strings of one index that JavaScript has.
#[derive(Default)]
pub(crate) struct SentNumbers {
    /// By [`StringKind`].
    blocks: [Blocks; 3],
    /// The [`SentStrings::forgotten`] of the numbers.
    forgotten: u32,
}

const BLOCK: usize = 64;

/// Numbers plus one by the id of the string, or 0 for a string that was not sent. They are in blocks, because most ids
/// of a large index are never asked for.
type Blocks = Vec<Option<Box<[u32; BLOCK]>>>;

impl SentNumbers {
    /// Forgets the numbers of strings that `sent` has forgotten.
    pub(crate) fn refresh(&mut self, sent: &SentStrings) {
        if self.forgotten != sent.forgotten {
            *self = Self { forgotten: sent.forgotten, ..Self::default() };
        }
    }

    /// The number of a string that was sent.
    #[inline]
    pub(crate) fn find(&self, key: StringKey) -> Option<u32> {
        let blocks = self.blocks.get(key.kind as usize)?;
        let (block, within) = place(key);
        blocks.get(block)?.as_ref()?.get(within)?.checked_sub(1)
    }

    /// States that a string is the one with this number.
    pub(crate) fn add(&mut self, key: StringKey, number: u32, sent: &mut SentStrings) {
        let Some(blocks) = self.blocks.get_mut(key.kind as usize) else { return };
        let (block, within) = place(key);
        if block >= blocks.len() {
            sent.size += (block + 1 - blocks.len()) * size_of::<usize>();
            blocks.resize_with(block + 1, || None);
        }
        let Some(numbers) = blocks.get_mut(block) else { return };
        let numbers = numbers.get_or_insert_with(|| {
            sent.size += size_of::<[u32; BLOCK]>();
            Box::new([0; BLOCK])
        });
        if let Some(place) = numbers.get_mut(within) {
            *place = number + 1;
        }
    }
}

/// The block of a string, and the place in it.
fn place(key: StringKey) -> (usize, usize) {
    (key.id as usize / BLOCK, key.id as usize % BLOCK)
}
