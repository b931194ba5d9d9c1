//! What a build has made: images whose indexes are in a store, and failures.

use symdex_pipeline::{Failure, PublishedIndex};

use super::job::short;

/// How many other files and how many warnings an image lists.
const MAX_TEXTS: usize = 16;

/// The image with short texts and lists, for a job. What is in debug files is untrusted.
pub(super) fn shortened(mut image: PublishedIndex) -> PublishedIndex {
    for text in [&mut image.arch, &mut image.name, &mut image.file].into_iter().chain(&mut image.location) {
        *text = short(std::mem::take(text));
    }
    for texts in [&mut image.joined, &mut image.warnings] {
        texts.truncate(MAX_TEXTS);
        *texts = std::mem::take(texts).into_iter().map(short).collect();
    }
    image
}

/// How much of the debug information is read, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BuildProgress {
    /// How much is read.
    pub(crate) done: u64,
    /// The size of all debug files.
    pub(crate) total: u64,
}

/// What was built.
#[derive(Clone, Debug, Default)]
pub(crate) struct BuildResults {
    /// The images in the order of the files, and the files that have no index.
    pub(crate) images: Vec<Result<PublishedIndex, Failure>>,
    /// Entries that were left out although valid archives have them.
    pub(crate) warnings: Vec<String>,
    /// Why no store accepts an index that was built. It is one of the failures of `images`, too.
    pub(crate) store_error: Option<String>,
}

impl BuildResults {
    /// Whether all that was to be built is published.
    pub(super) fn is_complete(&self) -> bool {
        self.store_error.is_none() && !self.images.is_empty() && self.images.iter().all(Result::is_ok)
    }
}
