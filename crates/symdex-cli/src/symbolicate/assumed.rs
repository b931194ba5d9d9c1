//! Images for which the user says which index or debug file to take.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use symdex::ImageId;
use symdex_report::{Image, KnownImage, Unanswered};

use crate::text;

/// The images of one name, and what answers for them.
pub(super) struct Assumed {
    name: String,
    target: Target,
    is_used: AtomicBool,
}

/// What answers.
pub(super) enum Target {
    Id(ImageId),
    /// Whichever fits of these images of one file, at least one.
    OneOf(Vec<KnownImage>),
}

/// What `--assume` says of an image: its name, and what to take for it.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) name: String,
    pub(super) what: What,
}

/// What is to be taken for an image.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// An index, or a debug file.
    File(PathBuf),
    /// The image of this id.
    Id(ImageId),
}

impl FromStr for Order {
    type Err = String;

    /// Reads `NAME=FILE` or `NAME=ID`. What is an id is one unless there is a file of that name.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, what)) if !name.is_empty() && !what.is_empty() => {
                let path = PathBuf::from(what);
                let id = what.parse().ok().filter(|_| !path.exists());
                Ok(Self { name: name.to_owned(), what: id.map_or(What::File(path), What::Id) })
            }
            _ => {
                let expected = "expected NAME=FILE or NAME=ID: an image's name, and the index, the debug file or the id to take for it";
                Err(expected.to_owned())
            }
        }
    }
}

impl Assumed {
    pub(super) fn new(name: &str, target: Target) -> Self {
        Self { name: name.to_owned(), target, is_used: AtomicBool::new(false) }
    }

    /// Whether the order is for `image`: by the name that frames have for it, or the last part of its path.
    pub(super) fn is_of(&self, image: &Image) -> bool {
        let is_of = [image.name.as_str(), image.file_name()].contains(&self.name.as_str());
        if is_of {
            self.is_used.store(true, Ordering::Relaxed);
        }
        is_of
    }

    /// The id of the image to take: of several that fit the report's architecture the one with the image's id, or the one of just
    /// that architecture, or of that name.
    pub(super) fn id_for(&self, image: &Image) -> Result<&ImageId, Unanswered> {
        let images = match &self.target {
            Target::Id(id) => return Ok(id),
            Target::OneOf(images) => images,
        };
        let fitting: Vec<_> = images.iter().filter(|known| known.fits(image)).collect();
        if fitting.is_empty() {
            let archs: Vec<_> = images.iter().map(|known| known.arch.as_str()).collect();
            return Err(Unanswered::OtherArch(archs.join(", ")));
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
        let ambiguous = || Unanswered::Ambiguous(fitting.iter().map(|known| (*known).clone()).collect());
        tests.into_iter().find_map(only_one).ok_or_else(ambiguous)
    }

    /// The name as text for people.
    pub(super) fn name(&self) -> String {
        text::printable(self.name.as_str().into()).into_owned()
    }

    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}
