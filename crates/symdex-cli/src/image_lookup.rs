//! Answers from an index, from an image in a store, or from a debug file.

use std::path::Path;

use symdex::{Frames, ImageOffset, Index, LinePolicy, Metadata, OwnedUnwindRow, Scratch};
use symdex_build::DirectLookup;
use symdex_store::OpenImage;

use crate::failure::Failure;
use crate::stores::ask;

/// The index or debug file that answers.
pub(crate) enum ImageLookup<'i, 'd> {
    Index(OpenImage),
    /// `far` has the parts of the image that are too far away for an index.
    DebugFile {
        lookup: Box<DirectLookup<'i, 'd>>,
        far: Vec<DirectLookup<'i, 'd>>,
        path: &'i Path,
    },
}

impl ImageLookup<'_, '_> {
    /// Where the index or debug file is, for messages.
    pub(crate) fn location(&self) -> String {
        match self {
            Self::Index(image) => image.location(),
            Self::DebugFile { path, .. } => path.display().to_string(),
        }
    }

    /// The metadata of the image.
    pub(crate) fn metadata(&self) -> &Metadata {
        match self {
            Self::Index(image) => image.metadata(),
            Self::DebugFile { lookup, .. } => lookup.index().metadata(),
        }
    }

    /// Whether `offset` is in a part of a debug file that is too far away for an index. Such an offset wraps around if
    /// the part is below the image's base.
    pub(crate) fn is_far(&self, offset: ImageOffset) -> bool {
        matches!(self, Self::DebugFile { far, .. } if far.iter().any(|part| part.has_code(offset)))
    }

    /// Prepares [`Self::lookup`] for `offsets`. From a debug file, this reads the units that have code there;
    /// afterwards, other offsets may have no answer. From a store, this fetches what the lookups need at once.
    pub(crate) fn prepare(&mut self, offsets: &[ImageOffset]) -> Result<(), Failure> {
        match self {
            // If the index was replaced, the new one answers from now on.
            Self::Index(image) => {
                *image = ask(image, |image| image.prefetch(offsets).map(|()| image.clone()))?;
                Ok(())
            }
            Self::DebugFile { lookup, far, path } => {
                let mut parts = std::iter::once(&mut **lookup).chain(far);
                let read = parts.try_for_each(|part| part.answer(offsets).map(|_| ()));
                read.map_err(|error| Failure::debug_file(path, &error))
            }
        }
    }

    /// Makes the files of frames from a debug file have columns; see [`DirectLookup::state_columns`].
    #[cfg(feature = "drop-in")]
    pub(crate) fn state_columns(&mut self) {
        if let Self::DebugFile { lookup, far, .. } = self {
            std::iter::once(&mut **lookup).chain(far).for_each(DirectLookup::state_columns);
        }
    }

    /// As [`Index::lookup`].
    pub(crate) fn lookup<'s>(
        &self,
        offset: ImageOffset,
        policy: LinePolicy,
        scratch: &'s mut Scratch,
    ) -> Result<Option<Frames<'s>>, Failure> {
        match self {
            Self::Index(image) => Ok(image.lookup(offset, policy, scratch)?),
            Self::DebugFile { lookup, far, path } => {
                let found = part_at(lookup, far, offset).lookup(offset, policy, scratch);
                found.map_err(|error| Failure::index(path, &error))
            }
        }
    }

    /// Whether there are unwind rows; of an image that a store keeps as values, in the value that answers `offset`.
    /// A debug file has none.
    pub(crate) fn has_unwind_rows(&self, offset: ImageOffset) -> Result<bool, Failure> {
        let Self::Index(image) = self else { return Ok(false) };
        let part = ask(image, |image| image.part_at(offset))?;
        Ok(part.is_none_or(|part| part.has_unwind_rows()))
    }

    /// The unwind row of the code at `offset`; see [`Index::unwind_row`]. A debug file has none.
    pub(crate) fn unwind_row(&self, offset: ImageOffset) -> Result<Option<OwnedUnwindRow>, Failure> {
        let Self::Index(image) = self else { return Ok(None) };
        ask(image, |image| image.unwind_row(offset))
    }

    /// The names other than `name` of the function that starts at `start`. Empty unless several symbols name it.
    pub(crate) fn aliases(
        &self,
        name: Option<&[u8]>,
        start: ImageOffset,
        scratch: &mut Scratch,
    ) -> Result<Vec<Vec<u8>>, Failure> {
        let names = match self {
            Self::Index(image) => ask(image, |image| image.function_names(start, scratch))?,
            Self::DebugFile { lookup, far, path } => {
                let names = part_at(lookup, far, start).function_names(start, scratch);
                names.map_err(|error| Failure::index(path, &error))?.map(<[u8]>::to_vec).collect()
            }
        };
        // A single symbol is not an alias, even if its name differs from the one in the debug information.
        let several = names.len() > 1;
        Ok(names.into_iter().filter(|other| several && Some(&other[..]) != name).collect())
    }
}

/// The index of the part of an image that has the code at `offset`: `first`, unless it is one of the others.
fn part_at<'l, 'i, 'd>(
    first: &'l DirectLookup<'i, 'd>,
    others: &'l [DirectLookup<'i, 'd>],
    offset: ImageOffset,
) -> &'l Index<Vec<u8>> {
    others.iter().find(|other| other.has_code(offset)).unwrap_or(first).index()
}
