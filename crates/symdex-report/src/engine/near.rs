//! Known images that have the name or the id of a missing image.

use std::collections::HashMap;

use serde::{Serialize, Serializer};
use symdex::{Arch, ImageId};

use crate::engine::source::Unanswered;
use crate::report::ReportImage;

/// An image of which a source has an index or a debug file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct KnownImage {
    /// The name of its file, without folders.
    pub name: String,
    /// Its id.
    #[serde(serialize_with = "id_as_text")]
    pub id: ImageId,
    /// The name of its architecture.
    pub arch: String,
}

impl KnownImage {
    /// Whether its architecture is the one of `image` or of the same family, as arm64 and arm64e are. Returns `true` if
    /// the report does not state the architecture of `image`.
    #[must_use]
    pub fn fits(&self, image: &ReportImage) -> bool {
        let Some(arch) = &image.arch else { return true };
        arch.name == self.arch || Arch::from_name(&self.arch).is_some_and(|own| own.cputype == arch.cputype)
    }

    /// Whether it has the name of `image`. The extensions `.debug` and `.dbg` of debug files do not count.
    #[must_use]
    pub fn has_name_of(&self, image: &ReportImage) -> bool {
        let names = [image.file_name(), image.name.as_str()];
        self.names().any(|own| names.contains(&own))
    }

    /// The names under which reports may have the image: its name, and its name without the extension of debug files.
    fn names(&self) -> impl Iterator<Item = &str> {
        let stem = self.name.strip_suffix(".debug").or_else(|| self.name.strip_suffix(".dbg"));
        [Some(self.name.as_str()), stem].into_iter().flatten().filter(|_| !self.name.is_empty())
    }
}

fn id_as_text<S: Serializer>(id: &ImageId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// Returns the only image of `known` that has the name of `image` and fits its architecture.
///
/// A [`Source`](crate::Source) uses it for an image whose id the report does not state, if the user asked for such
/// matches. The answers may be of another build.
///
/// ```
/// use symdex_report::{ReportImage, KnownImage, match_by_name};
///
/// let known = KnownImage { name: "App".into(), id: "6dcd4e9d".parse()?, arch: "arm64".into() };
/// let mut image = ReportImage::default();
/// image.name = "App".into();
/// assert_eq!(match_by_name(&image, &[known.clone()])?, &known);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Unanswered::Missing`] if no image matches, and if the report states the id of `image`.
/// [`Unanswered::Ambiguous`] if several builds or architectures match.
pub fn match_by_name<'k>(image: &ReportImage, known: &'k [KnownImage]) -> Result<&'k KnownImage, Unanswered> {
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
        _ => Err(Unanswered::ambiguous(candidates)),
    }
}

/// How a known image relates to a missing image. The order is from the nearest to the farthest.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nearness {
    /// It has the same id, for another architecture.
    OtherArch,
    /// It has the same name and architecture. The report does not state the id.
    SameName,
    /// It has the same name and architecture, and another id: it is another build.
    OtherBuild,
    /// It has the same name, for another architecture. The report does not state the id.
    SameNameOtherArch,
    /// It has the same name, another id and another architecture.
    OtherBuildAndArch,
}

impl Nearness {
    /// The word in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Nearness::OtherArch => "other_arch",
            Nearness::OtherBuild => "other_build",
            Nearness::OtherBuildAndArch => "other_build_and_arch",
            Nearness::SameName => "same_name",
            Nearness::SameNameOtherArch => "same_name_other_arch",
        }
    }

    /// The relation as a phrase for people.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Nearness::OtherArch => "the same id for another architecture",
            Nearness::SameName => "same name; the report does not say which build",
            Nearness::SameNameOtherArch => "same name, for another architecture",
            Nearness::OtherBuild => "another build of that name",
            Nearness::OtherBuildAndArch => "another build of that name for another architecture",
        }
    }
}

/// How many images near a missing one are listed. A store can have hundreds of builds of one name.
const NEAREST: usize = 3;

/// Known images that can be searched by name and by id.
///
/// ```
/// use symdex_report::{ReportImage, KnownImage, KnownImageMap, Nearness};
///
/// let known = [KnownImage { name: "App".into(), id: "6dcd4e9d".parse()?, arch: "arm64".into() }];
/// let mut image = ReportImage::default();
/// image.name = "App".into();
/// assert_eq!(KnownImageMap::new(&known).nearest(&image), [(Nearness::SameName, &known[0])]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct KnownImageMap<'k> {
    by_name: HashMap<&'k str, Vec<&'k KnownImage>>,
    by_id: HashMap<&'k ImageId, Vec<&'k KnownImage>>,
}

impl<'k> KnownImageMap<'k> {
    /// Groups `known` by name and by id. One map serves all images of a report.
    #[must_use]
    pub fn new(known: &'k [KnownImage]) -> Self {
        let mut map = Self::default();
        for image in known {
            image.names().for_each(|name| map.by_name.entry(name).or_default().push(image));
            map.by_id.entry(&image.id).or_default().push(image);
        }
        map
    }

    /// Returns the three images that are nearest to `missing`, the nearest first. It compares only images that share
    /// the name or the id.
    #[must_use]
    pub fn nearest(&self, missing: &ReportImage) -> Vec<(Nearness, &'k KnownImage)> {
        let with_id = missing.id.as_ref().and_then(|id| self.by_id.get(id));
        let with_name = [missing.file_name(), missing.name.as_str()].map(|name| self.by_name.get(name));
        let mut near = Vec::with_capacity(NEAREST + 1);
        for known in with_name.into_iter().chain([with_id]).flatten().flatten() {
            let Some(nearness) = nearness(missing, known) else { continue };
            if let Err(position) = near.binary_search(&(nearness, *known)) {
                near.insert(position, (nearness, *known));
                near.truncate(NEAREST);
            }
        }
        near
    }
}

/// Returns how `known` relates to `missing`. `None` if they share neither id nor name, or are the same image.
#[must_use]
pub fn nearness(missing: &ReportImage, known: &KnownImage) -> Option<Nearness> {
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
