//! What has become of a new index.

use serde::{Deserialize, Serialize};
use symdex::{Grade, Metadata};
use symdex_store::PublishOutcome;

use crate::image::BuiltIndex;

/// An image whose index was built and put into stores, for people and as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct PublishedIndex {
    /// The `LC_UUID` or the build id.
    pub id: String,
    /// The file name of the image.
    pub name: String,
    /// The architecture.
    pub arch: String,
    /// The debug file. Of an archive: the path of the archive, a colon, a space, and the name of the entry.
    pub file: String,
    /// Other files of the image, whose symbols are in the index too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<String>,
    /// Where the index is in the first store: a path, or a URL with a key. `None` if it was not published.
    pub location: Option<String>,
    /// What the first store did: [`PublishOutcome::name`], or `rejected` if the index has a wrong answer and was
    /// therefore not published.
    pub outcome: String,
    /// Whether a store had an index of another debug file of the same id.
    pub conflict: bool,
    /// The size of the index, in bytes.
    pub index_size: u64,
    /// The size of the debug information, in bytes.
    pub debug_size: u64,
    /// Whether the image has debug information. Otherwise only its symbols are indexed.
    pub has_dwarf: bool,
    /// The most that the new index answers: `lines`, `names`, `bounds` or `nothing`.
    pub grade: Grade,
    /// Functions with debug information.
    pub functions: u64,
    /// Entries of the symbol table.
    pub symbols: u64,
    /// What is odd about the debug file, or was wrong with an index that is replaced.
    pub warnings: Vec<String>,
    /// How long the build took.
    pub seconds: f64,
}

impl PublishedIndex {
    /// Describes `built`, which has this metadata. Several stores, the first of them at `location`, had these
    /// `outcomes`; none if it was not published.
    #[must_use]
    pub fn new(
        built: &BuiltIndex,
        metadata: &Metadata,
        outcomes: &[PublishOutcome],
        location: Option<String>,
    ) -> Self {
        let mut warnings = built.warnings.clone();
        for outcome in outcomes {
            if let PublishOutcome::Repaired { damage } = outcome {
                warnings.push(format!("the old index is replaced: {damage}"));
            }
        }
        Self {
            id: metadata.id.to_string(),
            name: metadata.image_name.clone(),
            arch: metadata.arch.name.clone(),
            file: built.file.to_string_lossy().into_owned(),
            joined: built.joined.iter().map(|file| file.to_string_lossy().into_owned()).collect(),
            location,
            outcome: outcomes.first().map_or("rejected", PublishOutcome::name).to_owned(),
            conflict: outcomes.iter().any(PublishOutcome::is_conflict),
            index_size: built.index_size,
            debug_size: built.debug_size,
            has_dwarf: built.has_dwarf,
            grade: metadata.grade(),
            functions: metadata.counts.functions,
            symbols: metadata.counts.symbols,
            warnings,
            seconds: built.time.as_secs_f64(),
        }
    }
}
