//! Files of one image in parts: its debug information in one, more symbols in others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use symdex::ImageId;
use symdex_build::{Companions, Identity, Image, Slice};

use super::jobs::Input;
use crate::joined::{Joined, identities};

/// Which files each image is in, where there are several of one.
#[derive(Default)]
pub(super) struct Parts {
    /// By id and architecture: paths in the order of the inputs, and whether they have debug information.
    files: HashMap<(ImageId, String), Vec<(PathBuf, bool)>>,
}

impl Parts {
    /// Reads the headers of all files. What cannot be read has no part in this: whoever builds it says why.
    pub(super) fn of(inputs: &[Input]) -> Self {
        let paths: Vec<&Path> = inputs.iter().filter_map(Input::file).collect();
        if paths.len() < 2 {
            return Self::default();
        }
        let mut parts = Self::default();
        let identities: Vec<_> = paths.par_iter().map(|path| identities(path)).collect();
        for (path, identities) in paths.into_iter().zip(identities) {
            for (id, arch, has_dwarf) in identities.unwrap_or_default().into_iter().flatten() {
                parts.files.entry((id, arch)).or_default().push((path.to_owned(), has_dwarf));
            }
        }
        parts.files.retain(|_, files| files.len() > 1);
        parts
    }

    /// The files that `slice` of `file` is indexed with; `None` where the image is indexed as a part of another file.
    ///
    /// Files without debug information go with each that has some; where none has, with the first. Of several that have, each is
    /// indexed, and the publishing decides.
    pub(super) fn beside(&self, file: &Path, slice: &Slice<'_>) -> Option<Vec<PathBuf>> {
        if self.files.is_empty() {
            return Some(Vec::new());
        }
        let files =
            Identity::of(slice).ok().and_then(|own| self.files.get(&(own.id, slice.arch.name.clone())));
        let Some(files) = files else { return Some(Vec::new()) };
        let any_dwarf = files.iter().any(|(_, has_dwarf)| *has_dwarf);
        let is_first = files.first().is_some_and(|(path, _)| path == file);
        let has_dwarf = files.iter().any(|(path, has_dwarf)| path == file && *has_dwarf);
        let leads = if any_dwarf { has_dwarf } else { is_first };
        let others = files.iter().filter(|(path, has_dwarf)| path != file && !has_dwarf);
        leads.then(|| others.map(|(path, _)| path.clone()).collect())
    }
}

/// The image in `slice` of `file` with those of the same id in the files `beside`.
pub(super) fn join<'d>(
    file: &Path,
    slice: &Slice<'d>,
    beside: &[PathBuf],
    companions: &'d Companions,
) -> Joined<'d> {
    let mut joined = Joined::default();
    joined.add(file, Image::load(slice, file, companions));
    if beside.is_empty() {
        return joined;
    }
    let Ok(Identity { id, .. }) = Identity::of(slice) else { return joined };
    for path in beside {
        joined.add_image(path, &id, &slice.arch.name, companions);
    }
    joined
}
