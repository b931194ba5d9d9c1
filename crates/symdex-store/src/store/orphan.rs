//! What a store has that no reader can find.

use std::time::Duration;

use symdex::ImageId;

/// What a store has of an image that belongs to no index.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The image.
    pub id: ImageId,
    /// Where it is: a path, or the URL of the store with what its keys begin with.
    pub location: String,
    /// What it is.
    pub kind: OrphanKind,
    /// The time since it was written or read. `None` if the store does not record it.
    pub unused: Option<Duration>,
}

impl Orphan {
    /// How many values or files it has.
    #[must_use]
    pub fn parts(&self) -> u64 {
        match self.kind {
            OrphanKind::Values(count) => count as u64,
            OrphanKind::Provenance => 1,
        }
    }
}

/// The kinds of [`Orphan`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrphanKind {
    /// This many values that no metadata names, in Redis.
    Values(usize),
    /// A file that states who has put an index that is not there, in a folder.
    Provenance,
}
