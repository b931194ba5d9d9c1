//! The options of a symbolicator.

use std::path::PathBuf;

use symdex_build::debug_files::DebugFile;

use super::{Assumption, Refill};
use symdex_store::{ReaderOptions, StoreOptions, StoreUrl};

/// The sources of a [`Symbolicator`](super::Symbolicator), and how they are used.
///
/// ```
/// use std::path::Path;
/// use symdex_answer::SymbolicatorOptions;
///
/// let store = Path::new("/var/cache/symdex");
/// let options = SymbolicatorOptions::new().index("indexes").store(store).match_by_name(true);
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct SymbolicatorOptions {
    pub(crate) indexes: Vec<PathBuf>,
    pub(crate) stores: Vec<StoreUrl>,
    pub(crate) private_store: bool,
    pub(crate) store_options: StoreOptions,
    pub(crate) reader_options: ReaderOptions,
    pub(crate) always_store: bool,
    pub(crate) debug_files: Vec<PathBuf>,
    pub(crate) unpacked: Vec<DebugFile>,
    pub(crate) debug_dirs: Vec<PathBuf>,
    pub(crate) assumptions: Vec<Assumption>,
    pub(crate) match_by_name: bool,
    pub(crate) unwind_rows: bool,
    pub(crate) on_refill: Option<fn(&Refill)>,
}

impl SymbolicatorOptions {
    /// Options without sources. Add at least one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the index at `path`, or the folder of indexes with the folders below it. It is read as a store:
    /// [`store_options`](Self::store_options) and [`reader_options`](Self::reader_options) hold for it, too. Nothing is
    /// written to it.
    pub fn index(mut self, path: impl Into<PathBuf>) -> Self {
        self.indexes.push(path.into());
        self
    }

    /// Adds a store of indexes: a folder, or another [`Store`](symdex_store::Store) by its URL. Stores are searched
    /// after all other indexes, in the order in which they were added. New indexes of debug files are put into the
    /// first one that can be written.
    pub fn store(mut self, url: impl Into<StoreUrl>) -> Self {
        self.stores.push(url.into());
        self
    }

    /// Sets the options of all stores.
    pub fn store_options(mut self, options: StoreOptions) -> Self {
        self.store_options = options;
        self
    }

    /// Sets how stores are read: memory, and the times for which stores are not asked.
    pub fn reader_options(mut self, options: ReaderOptions) -> Self {
        self.reader_options = options;
        self
    }

    /// How stores are read.
    pub fn reader(&self) -> &ReaderOptions {
        &self.reader_options
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

    /// Adds a debug file that was taken out of an archive.
    pub fn unpacked(mut self, file: DebugFile) -> Self {
        self.unpacked.push(file);
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

    /// Sets what is called after an index that a store had lost was put into it again, or could not be. It is called on
    /// another thread.
    pub fn on_refill(mut self, on_refill: fn(&Refill)) -> Self {
        self.on_refill = Some(on_refill);
        self
    }

    /// Sets whether an image without an id is answered from the only index or debug file of its name and architecture.
    /// Such an answer may be of another build; [`MatchedBy::Name`](symdex_report::MatchedBy::Name) marks it. The
    /// default is `false`.
    pub fn match_by_name(mut self, match_by_name: bool) -> Self {
        self.match_by_name = match_by_name;
        self
    }

    /// Sets whether new indexes get unwind rows, for walks of stacks. The default is `false`.
    pub fn unwind_rows(mut self, unwind_rows: bool) -> Self {
        self.unwind_rows = unwind_rows;
        self
    }
}
