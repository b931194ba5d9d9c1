//! Answers from an index or from a debug file.

use std::path::Path;

use symdex::{Error, Frames, ImageOffset, Index, LinePolicy, Metadata, Scratch};
use symdex_build::DirectLookup;

use crate::failure::Failure;

/// The index or debug file that answers.
pub(crate) enum ImageAnswers<'i, 'd, B> {
    Index { index: &'i Index<B>, path: &'i Path },
    DebugFile { lookup: Box<DirectLookup<'i, 'd>>, path: &'i Path },
}

impl<'i, B: AsRef<[u8]>> ImageAnswers<'i, '_, B> {
    /// The index or debug file, for messages.
    pub(crate) fn path(&self) -> &'i Path {
        match self {
            Self::Index { path, .. } | Self::DebugFile { path, .. } => path,
        }
    }

    /// The metadata of the image.
    pub(crate) fn metadata(&self) -> &Metadata {
        match self {
            Self::Index { index, .. } => index.metadata(),
            Self::DebugFile { lookup, .. } => lookup.index().metadata(),
        }
    }

    /// Prepares [`Self::lookup`] of `offsets`. From a debug file, this reads the units that have code there;
    /// afterwards, other offsets may have no answer.
    pub(crate) fn prepare(&mut self, offsets: &[ImageOffset]) -> Result<(), Failure> {
        match self {
            Self::Index { .. } => Ok(()),
            Self::DebugFile { lookup, path } => match lookup.answer(offsets) {
                Ok(_) => Ok(()),
                Err(error) => Err(Failure::debug_file(path, &error)),
            },
        }
    }

    /// As [`Index::lookup`].
    pub(crate) fn lookup<'s>(
        &self,
        offset: ImageOffset,
        policy: LinePolicy,
        scratch: &'s mut Scratch,
    ) -> Result<Option<Frames<'s>>, Error> {
        match self {
            Self::Index { index, .. } => index.lookup(offset, policy, scratch),
            Self::DebugFile { lookup, .. } => lookup.index().lookup(offset, policy, scratch),
        }
    }

    /// The names other than `name` of the function that starts at `start`. Empty unless several symbols name it.
    ///
    /// # Errors
    ///
    /// As [`Index::function_names`].
    pub(crate) fn aliases(
        &self,
        name: Option<&[u8]>,
        start: ImageOffset,
        scratch: &mut Scratch,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let owned = |name: &[u8]| name.to_vec();
        let names: Vec<_> = match self {
            Self::Index { index, .. } => index.function_names(start, scratch)?.map(owned).collect(),
            Self::DebugFile { lookup, .. } => {
                lookup.index().function_names(start, scratch)?.map(owned).collect()
            }
        };
        // A single symbol is not an alias, even if its name differs from the one in the debug information.
        let several = names.len() > 1;
        Ok(names.into_iter().filter(|other| several && Some(&other[..]) != name).collect())
    }
}
