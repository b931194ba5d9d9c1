//! Indexes of a debug file.
//!
//! The numbers of the result are how many architectures the file has, and then two for each of them, in the order of
//! the file: how many bytes of the text are its index, and how many are its failure, which is JSON. One of them is 0.

use std::path::Path;

use symdex_build::{BuildOptions, Companions, Image, Slice, slices};

use crate::answers::EncodedAnswers;
use crate::failure::Failure;

/// How many bytes of memory a build may take. WebAssembly has 4 GiB, and the debug file is there, too. There is no
/// temporary file for units that wait.
const MAX_MEMORY: usize = 1 << 30;

/// Builds the index of each architecture of the debug file `bytes`, whose file is named `name`.
///
/// # Errors
///
/// [`Failure`] if it is not a debug file. What is wrong with one of the architectures is in its place in `out`.
pub(crate) fn build_indexes(name: &str, bytes: &[u8], out: &mut EncodedAnswers) -> Result<(), Failure> {
    let slices = slices(bytes)?;
    out.numbers.push(u32::try_from(slices.len()).unwrap_or(u32::MAX));
    for slice in &slices {
        let (index, failure) = match build_index(name, slice) {
            Ok(index) => (index, Vec::new()),
            // Text alone is always serialized.
            Err(failure) => (Vec::new(), serde_json::to_vec(&failure).unwrap_or_default()),
        };
        for part in [index, failure] {
            out.numbers.push(u32::try_from(part.len()).unwrap_or(u32::MAX));
            out.text.extend_from_slice(&part);
        }
    }
    Ok(())
}

fn build_index(name: &str, slice: &Slice<'_>) -> Result<Vec<u8>, Failure> {
    let companions = Companions::default().max_memory(MAX_MEMORY);
    let image = Image::load(slice, Path::new(name), &companions)?;
    Ok(BuildOptions::new().max_memory(MAX_MEMORY).build(&image)?.bytes)
}
