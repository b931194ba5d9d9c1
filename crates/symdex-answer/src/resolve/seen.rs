//! The strings of an index that a batch has already, by their ids.

use symdex::NonMaxU32;

use super::columns::NONE;

/// The ids of names and of files of one index.
#[derive(Default)]
pub(super) struct SeenIds {
    pub(super) names: Seen,
    pub(super) files: Seen,
}

/// A slot for each id modulo their number. Neighbouring code has few strings, whose ids are close.
pub(super) struct Seen(Vec<(Option<NonMaxU32>, i32)>);

const SLOTS: usize = 1 << 12;

impl Default for Seen {
    fn default() -> Self {
        Self(vec![(None, NONE); SLOTS])
    }
}

impl Seen {
    /// The number of the string with this id. `add` adds it if it is not known.
    #[inline]
    pub(super) fn number(&mut self, id: Option<NonMaxU32>, add: impl FnOnce() -> i32) -> i32 {
        let Some(known) = id else { return NONE };
        let Some(slot) = self.0.get_mut(known.get() as usize % SLOTS) else { return add() };
        if slot.0 != id {
            *slot = (id, add());
        }
        slot.1
    }
}
