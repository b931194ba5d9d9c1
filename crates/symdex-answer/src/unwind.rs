//! Unwind rows, for walks of stacks.

use std::sync::Arc;

use symdex::{ImageId, ImageOffset, Index, OwnedUnwindRow};
use symdex_report::{ReportImage, Unanswered, image_offsets};
use symdex_store::{IndexBytes, OpenImage};

use super::Symbolicator;
use super::debug_files::DebugImage;
use super::found::{FetchedIndex, FoundIndex};

/// What may have the unwind rows of an image.
pub(crate) enum RowSource<'a> {
    File(Arc<Index<IndexBytes>>),
    Stored(OpenImage),
    Fetched(Arc<FetchedIndex>),
    /// A debug file, whose unwind tables are read when they are needed.
    DebugFile(&'a DebugImage),
}

impl Symbolicator {
    /// What may have the unwind rows of the image `id`, in the order in which indexes are asked. Indexes that cannot be
    /// opened are left out: they are reported when functions are asked for. Debug files are left out unless
    /// `with_debug_files` is set.
    pub(crate) fn row_sources(&self, id: &ImageId, with_debug_files: bool) -> Vec<RowSource<'_>> {
        let ids = std::slice::from_ref(id);
        let found = self.places().flat_map(|place| self.find(place, ids)).flatten().flatten();
        let indexes = found.filter_map(|index| match index {
            FoundIndex::File(path) => {
                let index = self.open_file(&path, id).ok()?;
                index.has_unwind_rows().then_some(RowSource::File(index))
            }
            FoundIndex::Stored(image) => Some(RowSource::Stored(image)),
            FoundIndex::Fetched(index) => Some(RowSource::Fetched(index)),
        });
        let file = self.debug_files().image(id).filter(|_| with_debug_files);
        indexes.chain(file.map(RowSource::DebugFile)).collect()
    }

    /// The unwind row of `source` at an offset of `image`.
    pub(crate) fn row_of(
        &self,
        source: &RowSource<'_>,
        image: &ReportImage,
        offset: ImageOffset,
    ) -> Result<Option<OwnedUnwindRow>, Unanswered> {
        match source {
            RowSource::File(index) => row_in(index, image, offset),
            RowSource::Fetched(fetched) => row_in(&fetched.index, image, offset),
            RowSource::DebugFile(file) => row_in(self.debug_files().unwind_index(file)?, image, offset),
            RowSource::Stored(stored) => {
                let [offset] = image_offsets(stored.metadata(), image, &[offset])?[..] else {
                    return Ok(None);
                };
                let row = stored.ask(|stored| stored.unwind_row(offset));
                row.map(Option::flatten).map_err(super::unanswered_by_store)
            }
        }
    }
}

/// The unwind row of an index at an offset of `image`.
fn row_in<B: AsRef<[u8]>>(
    index: &Index<B>,
    image: &ReportImage,
    offset: ImageOffset,
) -> Result<Option<OwnedUnwindRow>, Unanswered> {
    let [offset] = image_offsets(index.metadata(), image, &[offset])?[..] else { return Ok(None) };
    let row =
        index.unwind_row(offset).map_err(|error| Unanswered::Failed(error.cause(), error.to_string()))?;
    Ok(row.map(OwnedUnwindRow::from))
}
