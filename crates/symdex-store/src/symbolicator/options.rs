//! The options of a symbolicator.

use std::path::PathBuf;

use super::Assumption;
use crate::access::IndexAccess;

/// The sources of a [`Symbolicator`](super::Symbolicator), and how they are used.
///
/// ```
/// use symdex_store::symbolicator::SymbolicatorOptions;
///
/// let options = SymbolicatorOptions::new().index("indexes").store("/var/cache/symdex").match_by_name(true);
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct SymbolicatorOptions {
    pub(super) indexes: Vec<PathBuf>,
    pub(super) access: IndexAccess,
    pub(super) store: Option<PathBuf>,
    pub(super) private_store: bool,
    pub(super) always_store: bool,
    pub(super) debug_files: Vec<PathBuf>,
    pub(super) debug_dirs: Vec<PathBuf>,
    pub(super) assumptions: Vec<Assumption>,
    pub(super) match_by_name: bool,
}

impl SymbolicatorOptions {
    /// Options without sources. Add at least one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the index at `path`, or the folder of indexes with the folders below it.
    pub fn index(mut self, path: impl Into<PathBuf>) -> Self {
        self.indexes.push(path.into());
        self
    }

    /// Sets how indexes are opened, those in the store too. The default maps only files that nobody else can change.
    pub fn access(mut self, access: IndexAccess) -> Self {
        self.access = access;
        self
    }

    /// Sets the folder in which new indexes of debug files are published. It is searched after all other indexes, and
    /// created when the first index is published.
    pub fn store(mut self, folder: impl Into<PathBuf>) -> Self {
        self.store = Some(folder.into());
        self
    }

    /// Sets whether only the user of this process may open the store, if it is created. Its indexes are then mapped,
    /// because nobody else can change them. Has no effect on a folder that exists, and on other systems than Unix. The
    /// default is `false`.
    pub fn private_store(mut self, private: bool) -> Self {
        self.private_store = private;
        self
    }

    /// Sets whether the index of a debug file is built and stored even for few addresses. By default, up to 200
    /// addresses of an image are answered from its debug file directly.
    pub fn always_store(mut self, always: bool) -> Self {
        self.always_store = always;
        self
    }

    /// Adds the debug file at `path`, or all debug files below it.
    pub fn debug_files(mut self, path: impl Into<PathBuf>) -> Self {
        self.debug_files.push(path.into());
        self
    }

    /// Adds a folder, such as `/usr/lib/debug`, that is searched for files that the debug files refer to.
    pub fn debug_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.debug_dirs.push(path.into());
        self
    }

    /// Answers images of one name as `assumption` says. The id in the report is ignored.
    pub fn assume(mut self, assumption: Assumption) -> Self {
        self.assumptions.push(assumption);
        self
    }

    /// Sets whether an image without an id is answered from the only index or debug file of its name and architecture.
    /// Such an answer may be of another build; [`MatchedBy::Name`](symdex_report::MatchedBy::Name) marks it. The
    /// default is `false`.
    pub fn match_by_name(mut self, match_by_name: bool) -> Self {
        self.match_by_name = match_by_name;
        self
    }
}
