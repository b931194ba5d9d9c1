//! Images for which the user says which index or debug file to take.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use symdex::ImageId;
use symdex_report::{Image, KnownImage, Unanswered};

use crate::text;

/// The images of one name, and what answers for them.
pub(super) struct Assumed {
    name: String,
    /// The images in the file that was given, at least one.
    images: Vec<KnownImage>,
    is_used: AtomicBool,
}

/// Reads `NAME=PATH`.
pub(super) fn parse(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok((name.to_owned(), path.into())),
        _ => {
            Err("expected NAME=FILE: an image's name, and the index or debug file to answer it from"
                .to_owned())
        }
    }
}

impl Assumed {
    pub(super) fn new(name: &str, images: Vec<KnownImage>) -> Self {
        Self { name: name.to_owned(), images, is_used: AtomicBool::new(false) }
    }

    /// Whether the order is for `image`: by the name that frames have for it, or the last part of its path.
    pub(super) fn is_of(&self, image: &Image) -> bool {
        let is_of = [image.name.as_str(), image.file_name()].contains(&self.name.as_str());
        if is_of {
            self.is_used.store(true, Ordering::Relaxed);
        }
        is_of
    }

    /// The id of the image to take: the one with the report's architecture, and of several that fit it the one with the image's id or
    /// name.
    pub(super) fn id_for(&self, image: &Image) -> Result<&ImageId, Unanswered> {
        let fitting: Vec<_> = self.images.iter().filter(|known| known.fits(image)).collect();
        if fitting.is_empty() {
            let archs: Vec<_> = self.images.iter().map(|known| known.arch.as_str()).collect();
            return Err(Unanswered::OtherArch(archs.join(", ")));
        }
        let is_id = |known: &KnownImage| image.id.as_ref() == Some(&known.id);
        let is_arch = |known: &KnownImage| image.arch.as_ref().is_some_and(|arch| arch.name == known.arch);
        let is_named = |known: &KnownImage| known.name == self.name;
        let tests: [&dyn Fn(&KnownImage) -> bool; 4] =
            [&|_| true, &is_id, &|known| is_arch(known) && is_named(known), &is_named];
        let of_test = |test: &dyn Fn(&KnownImage) -> bool| {
            let mut ids: Vec<_> = fitting.iter().filter(|known| test(known)).map(|known| &known.id).collect();
            ids.sort();
            ids.dedup();
            if let [id] = ids[..] { Some(id) } else { None }
        };
        let ambiguous = || Unanswered::Ambiguous(fitting.iter().map(|known| (*known).clone()).collect());
        tests.into_iter().find_map(of_test).ok_or_else(ambiguous)
    }

    /// The name as text for people.
    pub(super) fn name(&self) -> String {
        text::printable(self.name.as_str().into()).into_owned()
    }

    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }
}
