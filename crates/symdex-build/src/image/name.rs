//! The name of an image, which is that of one of its files.

use std::borrow::Cow;
use std::path::Path;

use super::ImageKind;
use crate::companions::file_name;

/// The name that a file gives to its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageName {
    rank: Rank,
    pub(crate) text: String,
}

/// How well a file names its image. Reports have the name of the binary that is installed, and that of the debug file
/// may differ. The first difference between two files counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// As opposed to a file in `.build-id`, whose name is a part of the id.
    has_name: bool,
    is_binary: bool,
    is_stripped: bool,
}

impl ImageName {
    /// The name of the image in the file at `path`. `has_dwarf` says whether the file has debug information of its own.
    pub(crate) fn of(path: &Path, kind: ImageKind, has_dwarf: bool) -> Self {
        let is_binary = !matches!(kind, ImageKind::Dsym | ImageKind::ElfDebugFile);
        let rank = Rank { has_name: true, is_binary, is_stripped: !has_dwarf };
        Self { rank, text: String::new() }.at(path)
    }

    /// The name of the same file at another path, such as that in an archive.
    pub(crate) fn at(self, path: &Path) -> Self {
        let is_by_id = |path: &Path| path.components().any(|part| part.as_os_str() == ".build-id");
        // Distributions have links there to the files with names.
        let target = is_by_id(path).then(|| std::fs::canonicalize(path).ok()).flatten();
        let path = target.map_or(Cow::Borrowed(path), Cow::Owned);
        Self {
            rank: Rank { has_name: !is_by_id(&path), ..self.rank },
            text: name_in_reports(file_name(&path)),
        }
    }

    /// The better of both names; this one if they are equally good.
    pub(crate) fn or(self, other: Self) -> Self {
        if other.rank > self.rank { other } else { self }
    }
}

/// The name that reports have for the image in a file of this name. The Linux kernel names its modules after their
/// files, with `_` in place of `-`.
fn name_in_reports(file: String) -> String {
    let module = file.strip_suffix(".debug").unwrap_or(&file).strip_suffix(".ko");
    module.map(|module| module.replace('-', "_")).unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_have_the_names_that_the_kernel_prints() {
        let names = ["snd-hda-intel.ko", "tun.ko.debug", "liba.so.debug", "a-b.so"];
        let expected = ["snd_hda_intel", "tun", "liba.so.debug", "a-b.so"];
        assert_eq!(names.map(|name| name_in_reports(name.to_owned())), expected);
    }
}
