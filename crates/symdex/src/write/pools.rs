//! The two string pools of an index, ready to be put into a file.

use crate::error::Error;
use crate::format::{
    BuildOptions, Compressor, Entry, FrameKey, MAX_STRING, PoolInfo, SectionKind, encode_block,
    strings_per_block,
};
use crate::image::ImageId;
use crate::names::{GROUP_LEN, encode_names};

/// An index's names.
pub struct EncodedNames {
    pub(super) info: PoolInfo,
    pub(super) section: Vec<u8>,
}

impl EncodedNames {
    /// `names`, in the order of their ids.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] where a name is longer than [`MAX_STRING`], or there are more than the format has room for.
    pub fn new<S: AsRef<[u8]>>(names: &[S]) -> Result<Self, Error> {
        let info = PoolInfo { strings: names.len() as u64, strings_per_block: GROUP_LEN };
        check_lengths(names)?;
        Ok(Self { info, section: encode_names(names)? })
    }
}

/// An index's file paths, in compressed blocks.
pub struct EncodedFiles {
    pub(super) info: PoolInfo,
    pub(super) section: Vec<u8>,
    pub(super) entries: Vec<Entry>,
}

impl EncodedFiles {
    /// The paths `files` of the image `id`, in the order of their ids.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] where a path is longer than [`MAX_STRING`], [`Error::Io`] where zstd refuses the compression level.
    pub fn new<S: AsRef<[u8]>>(id: &ImageId, files: &[S], options: BuildOptions) -> Result<Self, Error> {
        check_lengths(files)?;
        let info = PoolInfo { strings: files.len() as u64, strings_per_block: strings_per_block(files) };
        let mut compressor = Compressor::new(options.compression_level)?;
        let (mut section, mut entries) = (Vec::new(), Vec::new());
        for (index, block) in (0..).zip(files.chunks(info.strings_per_block as usize)) {
            let payload = encode_block(block.iter().map(AsRef::as_ref));
            let frame = compressor.frame(FrameKey { id, section: SectionKind::Files, index }, &payload)?;
            let a_size = u32::try_from(frame.len());
            let a_size = a_size.map_err(|_| Error::Unwritable { what: "a string block of over 4 GiB" })?;
            entries.push(Entry { a_size, b_size: 0 });
            section.extend(frame);
        }
        Ok(Self { info, section, entries })
    }
}

fn check_lengths<S: AsRef<[u8]>>(strings: &[S]) -> Result<(), Error> {
    match strings.iter().any(|string| string.as_ref().len() > MAX_STRING) {
        true => Err(Error::Unwritable { what: "a name or a file path of more than 64 KiB" }),
        false => Ok(()),
    }
}
