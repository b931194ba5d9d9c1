//! What a store has that no reader can find.

use std::time::Duration;

use symdex::ImageId;

/// A file that states who has put an index that is not there, in a folder.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// The image.
    pub id: ImageId,
    /// Its path.
    pub location: String,
    /// The time since it was written. `None` if the clock was set back since.
    pub unused: Option<Duration>,
}
