//! Why a debug file could not be turned into an index.

use std::path::{Path, PathBuf};

use symdex::Cause;

/// Why a debug file could not be turned into an index.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not a debug file of a supported kind.
    #[error(
        "not a debug file: {found}; expected a Mach-O file (a dSYM, the DWARF file inside one, a binary) or an ELF file"
    )]
    NotADebugFile {
        /// What it looks like instead.
        found: String,
    },
    /// The file is not a symbol file of a supported kind.
    #[error(
        "not a symbol file: {found}; expected a symbol file of Breakpad, a text that begins with MODULE; GSYM of LLVM; \
         or /proc/kallsyms or System.map of Linux"
    )]
    NotASymbolFile {
        /// What it looks like instead.
        found: String,
    },
    /// The symbol file does not state the id of its image.
    #[error("the file states no id of its image; give it with `id`")]
    NoId,
    /// The file ends before something that its headers state.
    #[error("the file is cut short: {what} reaches to byte {end}, the file has {size}; copy it again")]
    Truncated {
        /// The part that is missing or incomplete.
        what: String,
        /// The offset of its end, in bytes.
        end: u64,
        /// The size of the file in bytes.
        size: u64,
    },
    /// The file contradicts itself.
    #[error("damaged debug file: {what}")]
    Malformed {
        /// What is wrong.
        what: String,
    },
    /// The file has code and nothing that answers an address there.
    #[error(
        "nothing to answer: it has code and no functions, neither in debug information nor in symbols nor in unwind information; {} \
         (`debug_dirs` names folders of debug files, `allow_empty` publishes an empty index)",
        if lost.is_empty() { "give the file as it was before it was stripped, or its debug file" } else { lost }
    )]
    NothingFound {
        /// What could not be read, such as a debug file that is not found; empty if there is nothing.
        lost: String,
    },
    /// The file has something to answer, and its index would have none of it.
    #[error("it has {found}, and its index would not have them: {why}")]
    NothingIndexed {
        /// What was found in the file.
        found: String,
        /// Why the index lacks it.
        why: String,
    },
    /// Files of this kind are not supported.
    #[error("unsupported debug file: {what}")]
    Unsupported {
        /// The kind of the file.
        what: String,
    },
    /// The file is no image, but a companion of debug files.
    #[error("{kind}, which is no image of its own; give it together with the debug files that refer to it")]
    Companion {
        /// The kind of the file, such as a package of split units.
        kind: &'static str,
    },
    /// The file has no slice of the architecture asked for.
    #[error("no slice for {wanted:?}; the file has {}", available.join(", "))]
    NoSuchArch {
        /// The architecture asked for.
        wanted: String,
        /// The architectures of the file.
        available: Vec<String>,
    },
    /// A folder without debug files.
    #[error(
        "{}: no debug file in this folder; expected a .dSYM bundle or a linked Mach-O or ELF file inside{}",
        folder.display(),
        unread(folder, archives)
    )]
    NoDebugFile {
        /// The folder.
        folder: PathBuf,
        /// The files in it that look like archives. They may hold debug files, but are not read.
        archives: Vec<PathBuf>,
    },
    /// A part of a shared cache is missing, or belongs to another cache.
    #[error("{}: {why}; wanted is the part {uuid} of the shared cache", file.display())]
    CachePart {
        /// Where it should be.
        file: PathBuf,
        /// Its UUID, as 32 digits.
        uuid: String,
        /// What is wrong.
        why: String,
    },
    /// A file or folder could not be read or written.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The operation that failed, as in "cannot read".
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A temporary file, for pending units or for chunks, could not be written or read.
    #[error(
        "cannot keep a temporary file in {}: {source}; free space there, name another folder with TMPDIR, or keep more \
         in memory with `max_memory`",
        folder.display()
    )]
    TemporaryFile {
        /// The folder for temporary files.
        folder: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A file that was given as a symbol map is not a symbol map.
    #[error("{}: not a symbol map: {found}", path.display())]
    NotASymbolMap {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        found: String,
    },
    /// The build took too long.
    #[error(
        "the build takes longer than {seconds} s, the limit of `max_seconds`; raise it to build this file"
    )]
    TooSlow {
        /// The limit in seconds.
        seconds: u64,
    },
    /// The flag that stops the build was set.
    #[error("the build was stopped")]
    Stopped,
    /// The build needs more memory than it may take.
    #[error(
        "the build needs more memory than {} MB, the limit of `max_memory`, for {what}; raise it to build this file",
        limit / 1_000_000
    )]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
        /// What takes the memory.
        what: &'static str,
    },
    /// The limit of memory is too low for any build.
    #[error("the limit of {limit} bytes of memory is too low; `max_memory` has to be at least {least} bytes")]
    TooLittleMemory {
        /// The limit in bytes.
        limit: usize,
        /// The lowest limit.
        least: usize,
    },
    /// The index could not be written.
    #[error(transparent)]
    Index(#[from] symdex::Error),
}

/// The end of a message that names archives in `folder` that are not read. If there are many, it names the first ten.
fn unread(folder: &Path, archives: &[PathBuf]) -> String {
    if archives.is_empty() {
        return String::new();
    }
    let names = first_paths(archives, folder);
    format!("; archives in a folder are not read: {names}; give them to symdex build as inputs")
}

/// The first ten of `paths`, without `folder` at their beginning, and how many more there are.
pub(crate) fn first_paths(paths: &[PathBuf], folder: &Path) -> String {
    const SHOWN: usize = 10;
    let name = |path: &PathBuf| path.strip_prefix(folder).unwrap_or(path).display().to_string();
    let mut names = paths.iter().take(SHOWN).map(name).collect::<Vec<_>>().join(", ");
    if paths.len() > SHOWN {
        names += &format!(" and {} more", paths.len() - SHOWN);
    }
    names
}

impl Error {
    /// The message with a file name: begins with `path` and a colon, unless the error names a file itself.
    #[must_use]
    pub fn with_path(&self, path: &Path) -> String {
        match self {
            Self::Io { .. }
            | Self::NoDebugFile { .. }
            | Self::NotASymbolMap { .. }
            | Self::CachePart { .. } => self.to_string(),
            error => format!("{}: {error}", path.display()),
        }
    }

    /// The cause.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Error::NotADebugFile { .. }
            | Error::NotASymbolFile { .. }
            | Error::NotASymbolMap { .. }
            | Error::NothingIndexed { .. }
            | Error::Unsupported { .. }
            | Error::Companion { .. } => Cause::Unsupported,
            Error::Truncated { .. } | Error::Malformed { .. } => Cause::Damaged,
            Error::NoSuchArch { .. } | Error::NothingFound { .. } => Cause::NotFound,
            Error::NoId => Cause::Usage,
            Error::NoDebugFile { .. } | Error::CachePart { .. } => Cause::Missing,
            // Only a file that cannot be read is a missing input. A folder that cannot be created is not.
            Error::Io { doing: "read", source, .. } => Cause::of_io(source),
            Error::TooSlow { .. } | Error::TooLarge { .. } | Error::TooLittleMemory { .. } => Cause::Limit,
            Error::Io { .. } | Error::TemporaryFile { .. } | Error::Stopped => Cause::Other,
            Error::Index(error) => error.cause(),
        }
    }
}
