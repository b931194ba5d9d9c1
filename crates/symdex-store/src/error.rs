//! Why an index could not be found, opened or published.

use std::io;
use std::path::{Path, PathBuf};

use symdex::{Cause, ImageId};

use crate::id_prefix::IdPrefix;
use crate::store::StoreUrl;

/// Why an index could not be found, opened or published.
///
/// The text has the text of the error that is the cause, so that [`source`](std::error::Error::source) is `None`.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read.
    #[error("{}: cannot read: {error}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        error: io::Error,
    },
    /// A file or folder could not be changed to publish an index or to write another file.
    #[error("{}: cannot {action}: {error}", path.display())]
    NotPublished {
        /// What failed, for example `write`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        error: io::Error,
    },
    /// An index could not be opened.
    #[error("{}: {error}", path.display())]
    Index {
        /// The index file, or where the index is in a store.
        path: PathBuf,
        /// What is wrong with it.
        error: symdex::Error,
    },
    /// An index file has the name of one image but is the index of another.
    #[error("{}: this is the index of {found}, not of {wanted}", path.display())]
    OtherImage {
        /// The index file.
        path: PathBuf,
        /// The id in the file.
        found: ImageId,
        /// The id that was asked for.
        wanted: ImageId,
    },
    /// The existing index was made by a newer version of symdex. It is not replaced.
    #[error("{}: this index is not replaced: {error}", path.display())]
    NewerIndex {
        /// The existing index.
        path: PathBuf,
        /// Why this version cannot read it.
        error: symdex::Error,
    },
    /// Several indexes in a folder have ids that begin with the same digits.
    #[error("{}: several ids begin with {prefix}: {}; give more digits", folder.display(), first_of(ids))]
    AmbiguousId {
        /// The folder.
        folder: PathBuf,
        /// The digits that were asked for.
        prefix: IdPrefix,
        /// The ids that begin with them, as in the names of the files.
        ids: Vec<String>,
    },
    /// This build has no code for the kind of store.
    #[error(
        "{url}: this build of symdex cannot use such stores; compile symdex-store with the feature {feature}"
    )]
    NotCompiled {
        /// The URL of the store.
        url: StoreUrl,
        /// The feature that is needed.
        feature: &'static str,
    },
    /// An object or a value of a store is damaged.
    #[error("{location}: {what}; put the index into the store again")]
    DamagedObject {
        /// The URL of the store and the key.
        location: String,
        /// What is wrong with it.
        what: String,
    },
    /// A store has lost a value of an index.
    #[error("{location}: the store has lost value {number} of the index; put the index into the store again")]
    LostValue {
        /// Where the index is: a URL with a key.
        location: String,
        /// The number of the value. See [`Metadata::value_number`](symdex::Metadata::value_number).
        number: u64,
    },
    /// The index was removed from the store or replaced, or has expired, since it was opened. Open it again.
    #[error(
        "{location}: the index was removed or replaced, or has expired, after it was opened; open it again"
    )]
    Replaced {
        /// Where the index was: a URL with a key.
        location: String,
    },
    /// A store has failed, or cannot do what was asked.
    #[error("{location}: cannot {action}: {reason}")]
    Store {
        /// The URL of the store, with the key if one key is concerned. It has no secrets.
        location: String,
        /// What failed, for example `read`.
        action: &'static str,
        /// Why it failed. It has no secrets.
        reason: String,
        /// Whether the store cannot be reached or is overloaded. The same call may succeed later.
        is_unavailable: bool,
    },
}

impl Error {
    /// `path` could not be read.
    pub(crate) fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), error }
    }

    /// The index at `path` could not be opened: [`Unreadable`](Self::Unreadable) if it could not be read, otherwise
    /// [`Index`](Self::Index).
    #[must_use]
    pub fn index(path: &Path, error: symdex::Error) -> Self {
        match error {
            symdex::Error::Io(error) => Self::unreadable(path, error),
            error => Self::Index { path: path.to_owned(), error },
        }
    }

    /// The store at `url` can only be read, so that it cannot do `action`.
    #[must_use]
    pub fn read_only(url: &StoreUrl, action: &'static str) -> Self {
        let reason =
            "the store is read only; write to the folder or the bucket that the server shows".to_owned();
        Self::Store { location: url.to_string(), action, reason, is_unavailable: false }
    }

    /// The cause. Bytes that are stored as an index, and are not an index, are damaged.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Unreadable { error, .. } => Cause::of_io(error),
            Self::Index { error, .. } | Self::NewerIndex { error, .. } => cause_of_stored(error),
            Self::OtherImage { .. } => Cause::NotFound,
            Self::AmbiguousId { .. } => Cause::Usage,
            Self::NotCompiled { .. } => Cause::Unsupported,
            Self::DamagedObject { .. } => Cause::Damaged,
            Self::LostValue { .. } => Cause::Lost,
            Self::Store { is_unavailable: true, .. } => Cause::Unavailable,
            Self::NotPublished { .. } | Self::Replaced { .. } | Self::Store { .. } => Cause::Other,
        }
    }
}

/// The cause of an error of bytes that are stored as an index. Bytes that do not begin like an index are damaged.
pub(crate) fn cause_of_stored(error: &symdex::Error) -> Cause {
    match error {
        symdex::Error::NotAnIndex { .. } => Cause::Damaged,
        error => error.cause(),
    }
}

/// The first ten of `ids` for a message, and how many more there are.
fn first_of(ids: &[String]) -> String {
    const SHOWN: usize = 10;
    let more = ids.len().saturating_sub(SHOWN);
    let shown = ids[..ids.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}
