//! What a build has made: images whose indexes are in a store, and failures. A job lists a bounded part of it.

use serde::Serialize;
use symdex_pipeline::{Failure, PublishedIndex};

/// How many bytes of JSON the lists of a job have together. Warnings that do not fit are left out first, then failures,
/// then images.
pub(super) const MAX_LISTED: usize = 4 << 20;
/// How many of them are kept for failures and warnings, however many images there are.
pub(super) const MAX_FAILURES: usize = 1 << 20;
/// How many bytes a text of a job has. Names of files and images are untrusted.
pub(super) const MAX_TEXT: usize = 1024;

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

/// What is left of the lists of a job.
pub(super) struct Listing {
    /// In bytes of JSON.
    pub(super) left: usize,
    /// How many entries were left out.
    pub(super) unlisted: u64,
}

impl Listing {
    /// Those of `entries` that fit.
    pub(super) fn of<T: Serialize>(&mut self, entries: impl Iterator<Item = T>) -> Vec<T> {
        let fits = |entry: &T| {
            let left = self.left.checked_sub(json_size(entry));
            self.left = left.unwrap_or(self.left);
            self.unlisted += u64::from(left.is_none());
            left.is_some()
        };
        entries.filter(fits).collect()
    }
}

/// How many bytes `value` has as JSON, with a comma after it.
pub(super) fn json_size(value: &impl Serialize) -> usize {
    // What a job has is always JSON.
    serde_json::to_vec(value).map_or(0, |json| json.len() + 1)
}

/// The beginning of `text`, of at most [`MAX_TEXT`] bytes.
pub(super) fn short(mut text: String) -> String {
    const CUT: &str = "...";
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT - CUT.len()));
        text.push_str(CUT);
    }
    text
}
