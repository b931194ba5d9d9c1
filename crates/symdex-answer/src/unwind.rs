//! Unwind rows, for walks of stacks.

use symdex::{ImageId, ImageOffset, OwnedUnwindRow};
use symdex_report::{ReportImage, Unanswered, image_offsets};
use symdex_store::{Error, OpenImage};

use super::debug_files::DebugImage;
use super::{Symbolicator, unanswered_by_store};

/// What may have the unwind rows of an image.
pub(crate) enum RowSource<'a> {
    Index(OpenImage),
    /// A debug file, whose unwind tables are read when they are needed.
    DebugFile(&'a DebugImage),
}

impl Symbolicator {
    /// What may have the unwind rows of the image `id`, in the order in which indexes are asked. Indexes that cannot be
    /// opened are left out: they are reported when functions are asked for. Debug files are left out unless
    /// `with_debug_files` is set.
    pub(crate) fn row_sources(&self, id: &ImageId, with_debug_files: bool) -> Vec<RowSource<'_>> {
        let indexes = self.find(id).flatten().map(RowSource::Index);
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
        let metadata = match source {
            RowSource::Index(index) => index.metadata(),
            RowSource::DebugFile(file) => self.debug_files().unwind_index(file)?.metadata(),
        };
        let [offset] = image_offsets(metadata, image, &[offset])?[..] else { return Ok(None) };
        let row = match source {
            RowSource::Index(index) => index.ask(|index| index.unwind_row(offset)).map(Option::flatten),
            RowSource::DebugFile(file) => {
                let row = self.debug_files().unwind_index(file)?.unwind_row(offset);
                row.map(|row| row.map(OwnedUnwindRow::from)).map_err(|error| Error::index(file.path(), error))
            }
        };
        row.map_err(unanswered_by_store)
    }
}
