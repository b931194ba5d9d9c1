//! Images whose index or debug file is chosen by the user.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use symdex::ImageId;
use symdex_report::{KnownImage, ReportImage, Unanswered};

use symdex_store::IdPrefix;

/// The name of an image in reports, and the source that answers it.
///
/// As text it is `NAME=FILE` or `NAME=ID`. Text that is an id, or the start of one, is read as an id unless a file of
/// that name exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    pub(crate) name: String,
    pub(crate) target: AssumptionTarget,
}

/// The source that answers the image of an [`Assumption`].
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssumptionTarget {
    /// An index, a debug file or a folder of debug files.
    Path(PathBuf),
    /// The image of this id, or the only image whose id begins with these digits.
    Id(IdPrefix),
}

/// Text that is not an [`Assumption`].
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected NAME=FILE or NAME=ID: the name of an image, and the index, debug file or id that answers it"
)]
pub struct ParseAssumptionError;

impl Assumption {
    /// Answers images of this name from `target`.
    pub fn new(name: impl Into<String>, target: AssumptionTarget) -> Self {
        Self { name: name.into(), target }
    }
}

impl FromStr for Assumption {
    type Err = ParseAssumptionError;

    fn from_str(text: &str) -> Result<Self, ParseAssumptionError> {
        match text.split_once('=') {
            Some((name, target)) if !name.is_empty() && !target.is_empty() => {
                let path = PathBuf::from(target);
                let id = target.parse().ok().filter(|_| !path.exists());
                Ok(Self::new(name, id.map_or(AssumptionTarget::Path(path), AssumptionTarget::Id)))
            }
            _ => Err(ParseAssumptionError),
        }
    }
}

/// An [`Assumption`] whose file or id was found.
pub(crate) struct ResolvedAssumption {
    name: String,
    target: ResolvedTarget,
    is_used: AtomicBool,
}

/// The images that a [`ResolvedAssumption`] can use.
pub(crate) enum ResolvedTarget {
    Id(ImageId),
    /// One of these images of one file: the one that fits. The list is not empty.
    OneOf(Vec<KnownImage>),
}

impl ResolvedAssumption {
    pub(crate) fn new(name: &str, target: ResolvedTarget) -> Self {
        Self { name: name.to_owned(), target, is_used: AtomicBool::new(false) }
    }

    /// Whether `image` has the name of the assumption, in frames or as the last part of its path. If so, the assumption
    /// counts as used.
    pub(crate) fn applies_to(&self, image: &ReportImage) -> bool {
        let is_of = [image.name.as_str(), image.file_name()].contains(&self.name.as_str());
        if is_of {
            self.is_used.store(true, Ordering::Relaxed);
        }
        is_of
    }

    /// The id of the image that answers `image`. If several images fit its architecture, this is the one with its id,
    /// otherwise the one with exactly its architecture, otherwise the one with its name.
    pub(crate) fn id_for(&self, image: &ReportImage) -> Result<&ImageId, Unanswered> {
        let images = match &self.target {
            ResolvedTarget::Id(id) => return Ok(id),
            ResolvedTarget::OneOf(images) => images,
        };
        let fitting: Vec<_> = images.iter().filter(|known| known.fits(image)).collect();
        if fitting.is_empty() {
            let archs: Vec<_> = images.iter().map(|known| known.arch.as_str()).collect();
            return Err(Unanswered::other_arch(&archs.join(", ")));
        }
        let arch = image.arch.as_ref().map(|arch| arch.name.as_str());
        let is_any = |_: &KnownImage| true;
        let is_id = |known: &KnownImage| image.id.as_ref() == Some(&known.id);
        let is_arch = |known: &KnownImage| arch == Some(known.arch.as_str());
        let is_named = |known: &KnownImage| known.has_name_of(image);
        let is_both = |known: &KnownImage| is_arch(known) && is_named(known);
        let tests: [&dyn Fn(&KnownImage) -> bool; 5] = [&is_any, &is_id, &is_arch, &is_named, &is_both];
        let only_one = |test: &dyn Fn(&KnownImage) -> bool| {
            let mut ids: Vec<_> = fitting.iter().filter(|known| test(known)).map(|known| &known.id).collect();
            ids.sort();
            ids.dedup();
            if let [id] = ids[..] { Some(id) } else { None }
        };
        let ambiguous = || Unanswered::ambiguous(fitting.iter().copied());
        tests.into_iter().find_map(only_one).ok_or_else(ambiguous)
    }

    /// The name of the image in reports.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use symdex::Arch;

    use super::*;

    fn known(name: &str, arch: &str, id: u8) -> KnownImage {
        let id = ImageId::new(&[id; 16]).expect("16 bytes are an id");
        KnownImage { name: name.to_owned(), arch: arch.to_owned(), id }
    }

    #[test]
    fn the_fitting_image_of_a_file_with_several_is_used() {
        let image = |arch: &str| {
            let mut image = ReportImage::default();
            (image.name, image.arch) = ("App".to_owned(), Arch::from_name(arch));
            image
        };
        let universal = vec![known("App", "arm64", 1), known("App", "arm64e", 2), known("App", "x86_64", 3)];
        let assumed = ResolvedAssumption::new("App", ResolvedTarget::OneOf(universal.clone()));
        assert!(!assumed.is_used());
        assert!(assumed.applies_to(&image("arm64")) && assumed.is_used());
        assert_eq!(assumed.id_for(&image("arm64e")), Ok(&universal[1].id));
        assert_eq!(assumed.id_for(&image("x86_64h")), Ok(&universal[2].id));
        assert_eq!(assumed.id_for(&image("unknown")), Err(Unanswered::ambiguous(&universal)));
        let mut with_id = image("unknown");
        with_id.id = Some(universal[0].id.clone());
        assert_eq!(assumed.id_for(&with_id), Ok(&universal[0].id));
        let other = Unanswered::other_arch("arm64, arm64e, x86_64");
        assert_eq!(assumed.id_for(&image("armv7")), Err(other));
        let folder = ResolvedAssumption::new(
            "App",
            ResolvedTarget::OneOf(vec![known("Kit", "arm64", 4), known("App", "arm64", 1)]),
        );
        assert_eq!(folder.id_for(&image("arm64")), Ok(&universal[0].id));
    }

    #[test]
    fn an_assumption_has_a_name_and_a_file_or_an_id() {
        let parsed = |text: &str| {
            let assumption: Assumption = text.parse().ok()?;
            Some((assumption.name, matches!(assumption.target, AssumptionTarget::Id(_))))
        };
        assert_eq!(parsed("App=a/b=c.dSYM"), Some(("App".to_owned(), false)));
        for id in ["0c37c502-aba0-3641-a08f-84c794684f36", "0C37"] {
            assert_eq!(parsed(&format!("App={id}")), Some(("App".to_owned(), true)));
        }
        for text in ["App", "=a", "App="] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
