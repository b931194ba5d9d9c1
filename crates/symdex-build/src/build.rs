//! From an image to the bytes of its index.

use crate::error::Error;
use crate::image::Image;

/// How an index is built.
pub struct Options {
    /// zstd's compression level.
    pub compression_level: i32,
}

impl Default for Options {
    fn default() -> Self {
        Self { compression_level: 3 }
    }
}

/// An index, and what is worth saying about how it came to be.
pub struct Built {
    /// The index file's bytes.
    pub bytes: Vec<u8>,
    /// Oddities of the debug file that cost no answers; what did cost answers is in the index's metadata.
    pub warnings: Vec<String>,
}

/// Builds the index of `image`, on the threads of the rayon pool it is called in; the bytes do not depend on how many there are.
///
/// `progress` is told now and then how many bytes of debug information are done, and how many there are.
///
/// # Errors
///
/// [`Error::Malformed`] where the debug information as a whole cannot be read. A unit or a function that cannot be read
/// is left out and counted in the metadata.
pub fn build(
    _image: &Image<'_>,
    _options: &Options,
    _progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Built, Error> {
    unimplemented!("the builder is written next")
}
