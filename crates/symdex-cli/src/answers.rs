//! Answers of an index, or of a debug file that has none.

use std::path::Path;

use symdex::{Error, Frames, ImageOffset, Index, LinePolicy, Metadata, Scratch};
use symdex_build::DirectLookup;

use crate::failure::Failure;

/// What addresses are answered from.
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

    /// What there is to know of the image.
    pub(crate) fn metadata(&self) -> &Metadata {
        match self {
            Self::Index { index, .. } => index.metadata(),
            Self::DebugFile { lookup, .. } => lookup.index().metadata(),
        }
    }

    /// Reads from a debug file what [`Self::lookup`] needs to answer `offsets`. Other offsets need not be answered
    /// after that.
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

    /// The names beside `name` of the function that starts at `start`, where several symbols name it; else none.
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
        // A single symbol that is spelled otherwise than in the debug information is no alias.
        let several = names.len() > 1;
        Ok(names.into_iter().filter(|other| several && Some(&other[..]) != name).collect())
    }
}
