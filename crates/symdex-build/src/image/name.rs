//! The name of an image, which is that of one of its files.

use std::borrow::Cow;
use std::path::Path;

use super::ImageKind;
use crate::companions::file_name;

/// The name that a file gives to its image. Of two names, the greater one is better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageName {
    rank: Rank,
    pub(crate) text: String,
}

/// How well a file names its image. Reports have the name of the binary. That of the debug file may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Its name is a part of the build id.
    BuildId,
    DebugFile,
    /// A binary with debug information.
    Binary,
    /// A binary without debug information. It is the one that is installed.
    Stripped,
}

impl ImageName {
    /// The name of the image in the file at `path`. `has_dwarf` says whether the file has debug information of its own.
    pub(crate) fn of(path: &Path, kind: ImageKind, has_dwarf: bool) -> Self {
        let rank = match kind {
            ImageKind::Dsym | ImageKind::ElfDebugFile => Rank::DebugFile,
            _ if has_dwarf => Rank::Binary,
            _ => Rank::Stripped,
        };
        Self { rank, text: String::new() }.at(path)
    }

    /// The name of the same file at another path, such as that in an archive.
    pub(crate) fn at(self, path: &Path) -> Self {
        let is_by_id = |path: &Path| path.components().any(|part| part.as_os_str() == ".build-id");
        // Distributions have links there to the files with names.
        let target = is_by_id(path).then(|| std::fs::canonicalize(path).ok()).flatten();
        let path = target.map_or(Cow::Borrowed(path), Cow::Owned);
        Self { rank: if is_by_id(&path) { Rank::BuildId } else { self.rank }, text: file_name(&path) }
    }

    /// The better of both names; this one if they are equally good.
    pub(crate) fn or(self, other: Self) -> Self {
        if other.rank > self.rank { other } else { self }
    }
}
