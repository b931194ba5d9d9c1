//! A 32-bit number whose absence costs nothing.

use std::num::NonZeroU32;

/// A number from 0 to 2^32 - 2, stored plus one: `Option<Id32>` takes four bytes, and "none" needs no sentinel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id32(NonZeroU32);

impl Id32 {
    /// The number `value`; `None` for 2^32 - 1 and more.
    #[must_use]
    pub fn new(value: u64) -> Option<Self> {
        u32::try_from(value.checked_add(1)?).ok().and_then(NonZeroU32::new).map(Self)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get() - 1
    }

    /// How an optional number is stored: 0 for none, else the number plus one.
    pub(crate) fn stored(number: Option<Self>) -> u32 {
        number.map_or(0, |number| number.0.get())
    }

    /// The optional number that [`Self::stored`] stores so.
    pub(crate) fn from_stored(stored: u32) -> Option<Self> {
        NonZeroU32::new(stored).map(Self)
    }

    /// The number as an index into a slice.
    #[must_use]
    pub fn index(self) -> usize {
        self.get() as usize
    }
}

impl std::fmt::Debug for Id32 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}
