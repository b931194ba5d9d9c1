//! Images that are in several files of a build: the debug information in one file, more symbols in others.

use std::collections::HashMap;

use rayon::prelude::*;
use symdex::ImageId;

use super::{BuildInputs, DebugFile, JoinedImage, slices_of};
use crate::companions::Companions;
use crate::image::{Identity, Image};
use crate::slice::Slice;

/// The files of each image that is in several files of a build.
#[derive(Debug, Default)]
pub struct ImageGroups {
    /// By id and architecture: the files in the order of the inputs, and whether they have debug information.
    files: HashMap<(ImageId, String), Vec<(DebugFile, bool)>>,
}

impl ImageGroups {
    /// Reads the headers of all files of `inputs`, on the threads of the rayon pool it is called in. A file that cannot
    /// be read is in no group; building it reports the error.
    #[must_use]
    pub fn of(inputs: &BuildInputs) -> Self {
        let all: Vec<&DebugFile> = inputs.files().collect();
        if all.len() < 2 {
            return Self::default();
        }
        let mut groups = Self::default();
        let listed: Vec<_> = all.par_iter().map(|file| slices_of(file)).collect();
        for (file, listed) in all.into_iter().zip(listed) {
            for image in listed.unwrap_or_default().into_iter().flatten() {
                let files = groups.files.entry((image.identity.id, image.arch)).or_default();
                files.push((file.clone(), image.identity.has_dwarf));
            }
        }
        groups.files.retain(|_, files| files.len() > 1);
        groups
    }

    /// The files of each group, in the order of the inputs. A file is in several groups if it has several images that
    /// other files have, too.
    pub fn iter(&self) -> impl Iterator<Item = impl Iterator<Item = &DebugFile>> {
        self.files.values().map(|files| files.iter().map(|(file, _)| file))
    }

    /// The image in `slice` of `file`, joined with the other files of its group. Returns `None` if the
    /// image is joined into that of another file.
    ///
    /// Files without debug information are joined with each file that has some, and with the first file of the group if
    /// no file has any. If several files have debug information, each gives an index, and publishing keeps the better
    /// one.
    #[must_use]
    pub fn join<'d>(
        &self,
        file: &DebugFile,
        slice: &Slice<'d>,
        companions: &'d Companions,
    ) -> Option<JoinedImage<'d>> {
        let mut joined = JoinedImage::default();
        let id = if self.files.is_empty() { None } else { Identity::of(slice).ok().map(|own| own.id) };
        let group = id.and_then(|id| self.files.get_key_value(&(id, slice.arch.name.clone())));
        let others = group.map_or(Some(Vec::new()), |(_, files)| beside(file, files))?;
        joined.add(file.name(), file.name_of_image(Image::load(slice, file.path(), companions)));
        if let Some(((id, arch), _)) = group {
            others.into_iter().for_each(|other| joined.add_file(other, id, arch, companions));
        }
        Some(joined)
    }
}

/// The files of the group `files` that are joined with `file`; `None` if that is itself joined with another
/// file.
fn beside<'f>(file: &DebugFile, files: &'f [(DebugFile, bool)]) -> Option<Vec<&'f DebugFile>> {
    let any_dwarf = files.iter().any(|(_, has_dwarf)| *has_dwarf);
    let is_first = files.first().is_some_and(|(first, _)| first == file);
    let has_dwarf = files.iter().any(|(other, has_dwarf)| other == file && *has_dwarf);
    let leads = if any_dwarf { has_dwarf } else { is_first };
    let others = files.iter().filter(|(other, has_dwarf)| other != file && !has_dwarf);
    leads.then(|| others.map(|(other, _)| other).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_debug_information_join_those_that_have_some() {
        let files = |files: &[(&str, bool)]| -> Vec<(DebugFile, bool)> {
            files.iter().map(|(path, has_dwarf)| (DebugFile::on_disk(*path), *has_dwarf)).collect()
        };
        let beside = |path: &str, files: &[(DebugFile, bool)]| {
            let files = beside(&DebugFile::on_disk(path), files)?;
            Some(files.iter().map(|file| file.name().display().to_string()).collect::<Vec<_>>().join(" "))
        };
        let some = files(&[("a", false), ("b", true), ("c", true), ("d", false)]);
        assert_eq!(
            ["a", "b", "c", "d"].map(|path| beside(path, &some)),
            [None, Some("a d".to_owned()), Some("a d".to_owned()), None]
        );
        let none = files(&[("a", false), ("b", false)]);
        assert_eq!(["a", "b"].map(|path| beside(path, &none)), [Some("b".to_owned()), None]);
    }
}
