//! What a build has made: images whose indexes are in a store, and failures.

use serde::{Deserialize, Serialize};
use symdex::{Grade, Metadata};
use symdex_pipeline::{BuiltIndex, Failure};
use symdex_store::{PublishOutcome, StoreUrl};
use utoipa::ToSchema;

use super::job::short;

/// How many other files and how many warnings an image lists.
const MAX_TEXTS: usize = 16;

/// An image whose index was built and put into a store.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct PublishedImage {
    /// The `LC_UUID` or the build id.
    pub(crate) id: String,
    /// The architecture.
    pub(crate) arch: String,
    /// The file name of the image.
    pub(crate) name: String,
    /// The debug file: the archive and the name in it, or the name of the upload.
    pub(crate) file: String,
    /// Other files of the image, whose symbols are in the index too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) joined: Vec<String>,
    /// Whether the new index was written.
    pub(crate) outcome: PublishedOutcome,
    /// The store that has the index.
    pub(crate) store: String,
    /// The size of the index, in bytes.
    pub(crate) index_size: u64,
    /// The size of the debug information, in bytes.
    pub(crate) debug_size: u64,
    /// The most that the new index answers: `lines`, `names`, `bounds` or `nothing`.
    #[serde(default)]
    pub(crate) grade: Grade,
    /// Functions with debug information.
    pub(crate) functions: u64,
    /// Entries of the symbol table.
    pub(crate) symbols: u64,
    /// Oddities of the debug file, and the parts that could not be indexed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    /// How long the build took.
    pub(crate) seconds: f64,
}

/// Whether a new index was written, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PublishedOutcome {
    /// The store had no index of the image.
    Written,
    /// The store had the same index.
    Unchanged,
    /// The new index has replaced a damaged one.
    Repaired,
    /// The store has a different index of this image, which is kept.
    Kept,
    /// The store had a different index of this image, which is replaced.
    Replaced,
}

impl PublishedOutcome {
    /// The name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Unchanged => "unchanged",
            Self::Repaired => "repaired",
            Self::Kept => "kept",
            Self::Replaced => "replaced",
        }
    }
}

impl From<&PublishOutcome> for PublishedOutcome {
    fn from(outcome: &PublishOutcome) -> Self {
        match outcome {
            PublishOutcome::Written => Self::Written,
            PublishOutcome::Unchanged => Self::Unchanged,
            PublishOutcome::Repaired { .. } => Self::Repaired,
            PublishOutcome::Kept | PublishOutcome::ConflictKept => Self::Kept,
            PublishOutcome::Replaced | PublishOutcome::ConflictReplaced => Self::Replaced,
        }
    }
}

impl PublishedImage {
    /// The same image with short texts and lists. What is in debug files is untrusted.
    pub(super) fn shortened(mut self) -> Self {
        for text in [&mut self.arch, &mut self.name, &mut self.file, &mut self.store] {
            *text = short(std::mem::take(text));
        }
        for texts in [&mut self.joined, &mut self.warnings] {
            texts.truncate(MAX_TEXTS);
            *texts = std::mem::take(texts).into_iter().map(short).collect();
        }
        self
    }

    /// `built` has this metadata and was put into `store`.
    pub(super) fn new(
        built: &BuiltIndex,
        metadata: &Metadata,
        outcome: &PublishOutcome,
        store: &StoreUrl,
    ) -> Self {
        let mut warnings = built.warnings.clone();
        if let PublishOutcome::Repaired { damage } = outcome {
            warnings.push(format!("the old index is replaced: {damage}"));
        }
        if !built.has_dwarf {
            warnings.push("no debug information: only the symbol table is indexed".to_owned());
        }
        let partial = metadata.partial.iter();
        warnings.extend(partial.map(|partial| format!("partial: {} x {}", partial.count, partial.reason)));
        Self {
            id: built.id.clone(),
            arch: metadata.arch.name.clone(),
            name: metadata.image_name.clone(),
            file: built.file.to_string_lossy().into_owned(),
            joined: built.joined.iter().map(|file| file.to_string_lossy().into_owned()).collect(),
            outcome: outcome.into(),
            store: store.to_string(),
            index_size: built.index_size,
            debug_size: built.debug_size,
            grade: metadata.grade(),
            functions: metadata.counts.functions,
            symbols: metadata.counts.symbols,
            warnings,
            seconds: built.time.as_secs_f64(),
        }
    }
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
#[derive(Debug, Default)]
pub(crate) struct BuildResults {
    /// The images in the order of the files, and the files that have no index.
    pub(crate) images: Vec<Result<PublishedImage, Failure>>,
    /// Entries that were left out although valid archives have them.
    pub(crate) warnings: Vec<String>,
    /// Why no store accepts an index that was built. It is one of the failures of `images`, too.
    pub(crate) store_error: Option<String>,
}
