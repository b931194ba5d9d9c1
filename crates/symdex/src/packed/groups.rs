//! Numbers that are read one after the other from the start of a group, and what of the last groups was read.

use super::origins::Origin;
use super::triples::Triple;

/// Which group of what: the index by its serial number, the chunk or none, the group.
pub(super) type Key = (u64, Option<(crate::format::Table, u64)>, usize);

/// The group that was read last, up to where it was needed.
pub(super) struct Group<S, T> {
    key: Option<Key>,
    state: S,
    values: Vec<T>,
}

impl<S: Default, T> Default for Group<S, T> {
    fn default() -> Self {
        Self { key: None, state: S::default(), values: Vec::new() }
    }
}

impl<S: Default, T: Copy> Group<S, T> {
    /// Value `within` of the group `key`, where `begin` says what reading begins with and `read` appends values until there are as many as
    /// it is told; `None` where that is `None`.
    #[inline]
    pub(super) fn get(
        &mut self,
        key: Key,
        within: usize,
        begin: impl FnOnce() -> Option<S>,
        read: impl FnOnce(&mut S, &mut Vec<T>, usize) -> Option<()>,
    ) -> Option<T> {
        if self.key != Some(key) {
            // Until its beginning is known: what is kept of the last group is none of this one, nor of that any more.
            self.key = None;
            self.values.clear();
            self.state = begin()?;
        }
        if self.values.len() <= within {
            // Until it is read: nothing is taken from a group that is damaged.
            self.key = None;
            read(&mut self.state, &mut self.values, within + 1)?;
            self.key = Some(key);
        }
        self.values.get(within).copied()
    }
}

/// The last groups of each kind.
#[derive(Default)]
pub(super) struct Groups {
    pub(super) triples: Group<super::triples::State, Triple>,
    /// Ids of names as they are stored.
    pub(super) names: Group<super::triples::NameState, u32>,
    pub(super) origins: Group<super::origins::State, Origin>,
}
