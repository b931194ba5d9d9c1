//! Images of the name of one that is missing, or nearly the same.

use symdex::{Arch, ImageId};

use crate::report::Image;
use crate::source::Unanswered;

/// An image that there is an index or a debug file of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownImage {
    /// Its file's own name.
    pub name: String,
    /// Its id.
    pub id: ImageId,
    /// The name of its architecture.
    pub arch: String,
}

impl KnownImage {
    /// Whether it is of the architecture of `image`, or of another of the same family, such as arm64 and arm64e. An image whose
    /// architecture the report does not state fits every one.
    #[must_use]
    pub fn fits(&self, image: &Image) -> bool {
        let Some(arch) = &image.arch else { return true };
        arch.name == self.arch || Arch::from_name(&self.arch).is_some_and(|own| own.cputype == arch.cputype)
    }

    /// Whether it has the name of `image`. A debug file may have `.debug` or `.dbg` behind that.
    #[must_use]
    pub fn has_name_of(&self, image: &Image) -> bool {
        let stem = self.name.strip_suffix(".debug").or_else(|| self.name.strip_suffix(".dbg"));
        let names = [image.file_name(), image.name.as_str()];
        !self.name.is_empty()
            && [Some(self.name.as_str()), stem].iter().flatten().any(|own| names.contains(own))
    }
}

/// The one of `known` that has the name of `image` and fits its architecture. Only for an image whose id the report does not state:
/// where it does, the id alone decides.
///
/// # Errors
///
/// [`Unanswered::Missing`] if there is none, or if the report states the id; [`Unanswered::Ambiguous`] if there are several, which
/// are different builds or architectures.
pub fn match_by_name<'k>(image: &Image, known: &'k [KnownImage]) -> Result<&'k KnownImage, Unanswered> {
    if image.id.is_some() {
        return Err(Unanswered::Missing);
    }
    let mut candidates: Vec<_> =
        known.iter().filter(|known| known.has_name_of(image) && known.fits(image)).collect();
    candidates.sort();
    candidates.dedup_by(|a, b| a.id == b.id && a.arch == b.arch);
    match candidates[..] {
        [] => Err(Unanswered::Missing),
        [one] => Ok(one),
        _ => Err(Unanswered::Ambiguous(candidates.into_iter().cloned().collect())),
    }
}

/// How near a known image is to one that is missing, the nearest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nearness {
    /// The same id, for another architecture.
    OtherArch,
    /// The same name and architecture, and the report does not state the id.
    SameName,
    /// The same name and architecture, another id: another build of it.
    OtherBuild,
    /// The same name and another architecture, and the report does not state the id.
    SameNameOtherArch,
    /// The same name, another id and architecture.
    OtherBuildAndArch,
}

/// How near `known` is to `missing`; `None` where the two have nothing to do with each other.
#[must_use]
pub fn near(missing: &Image, known: &KnownImage) -> Option<Nearness> {
    let arch = missing.arch.as_ref().map(|arch| arch.name.as_str());
    let is_arch = arch.is_none_or(|arch| arch == known.arch);
    if missing.id.as_ref() == Some(&known.id) {
        return (!is_arch).then_some(Nearness::OtherArch);
    }
    if !known.has_name_of(missing) {
        return None;
    }
    Some(match missing.id {
        None if known.fits(missing) => Nearness::SameName,
        None => Nearness::SameNameOtherArch,
        Some(_) if is_arch => Nearness::OtherBuild,
        Some(_) => Nearness::OtherBuildAndArch,
    })
}
