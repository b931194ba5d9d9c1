//! Images that are nearly the one that is missing.

use serde::{Serialize, Serializer};
use symdex::ImageId;

use crate::report::Image;

/// An image that there is an index or a debug file of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KnownImage {
    /// Its file's own name.
    pub name: String,
    /// Its id.
    #[serde(serialize_with = "id_as_text")]
    pub id: ImageId,
    /// The name of its architecture.
    pub arch: String,
}

/// How near a known image is to one that is missing, the nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nearness {
    /// The same id, for another architecture.
    OtherArch,
    /// The same name and architecture, another id: another build of it.
    OtherBuild,
    /// The same name, another id and architecture.
    OtherBuildAndArch,
}

fn id_as_text<S: Serializer>(id: &ImageId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

impl Nearness {
    /// The word for it in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Nearness::OtherArch => "other_arch",
            Nearness::OtherBuild => "other_build",
            Nearness::OtherBuildAndArch => "other_build_and_arch",
        }
    }
}

/// How many of the images near a missing one are named: a store may have every build of it.
const NEAREST: usize = 3;

/// The three images of `known` that are nearest to `missing`, the nearest first.
#[must_use]
pub fn nearest<'k>(missing: &Image, known: &'k [KnownImage]) -> Vec<(Nearness, &'k KnownImage)> {
    let mut near: Vec<_> = known.iter().filter_map(|known| Some((near(missing, known)?, known))).collect();
    near.sort();
    near.dedup();
    near.truncate(NEAREST);
    near
}

/// How near `known` is to `missing`; `None` where the two have nothing to do with each other.
#[must_use]
pub fn near(missing: &Image, known: &KnownImage) -> Option<Nearness> {
    let arch = missing.arch.as_ref().map(|arch| arch.name.as_str());
    let is_arch = arch.is_none_or(|arch| arch == known.arch);
    if missing.id.as_ref() == Some(&known.id) {
        return (!is_arch).then_some(Nearness::OtherArch);
    }
    let is_name = [missing.file_name(), missing.name.as_str()].contains(&known.name.as_str());
    match (is_name && !known.name.is_empty(), is_arch) {
        (true, true) => Some(Nearness::OtherBuild),
        (true, false) => Some(Nearness::OtherBuildAndArch),
        (false, _) => None,
    }
}
