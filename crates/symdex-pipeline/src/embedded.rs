//! Indexes that debug files carry, in a folder of their dSYM bundle or in a section of an ELF file, so that a debug
//! file answers as fast as its index.

use std::io;
use std::path::{Path, PathBuf};

use symdex::{ImageId, Index};
use symdex_build::debug_files::ImageFiles;
use symdex_build::{index_section, is_carrier, is_in_bundle, slices_for};
use symdex_store::{EMBEDDED_FOLDER, IndexBytes, IndexFolder};

/// The index that the debug file of `files` carries, if it answers what the debug file does. `None` if it carries none,
/// or if the image has several files, whose symbols together are not in that index.
///
/// The index has to be undamaged, not partial, and written by this version of symdex, with the id, the architecture and
/// the name of the image. It has to state the layout and the samples of the debug file
/// ([`symdex_build::is_carrier`]), and all of its bytes if the debug file was modified after it. So a debug file that
/// was made again is noticed. One that was changed in place counts as the same if its sections keep their sizes, no
/// sample is changed, and it is not newer than the index, or the index is in the file itself.
///
/// # Errors
///
/// Why the index must not be used. The debug file then answers.
pub fn embedded_index(files: &ImageFiles) -> Result<Option<Index<IndexBytes>>, String> {
    let mut all = files.files();
    let (Some(file), None, true) = (all.next(), all.next(), files.has_lines()) else { return Ok(None) };
    fitting(file.path(), files)
        .map_err(|why| format!("{}: the index that it carries is not used: {why}", files.name().display()))
}

fn fitting(file: &Path, files: &ImageFiles) -> Result<Option<Index<IndexBytes>>, String> {
    let unreadable = |error: io::Error| error.to_string();
    let Some(Carried { bytes, is_older }) = carried(file, files.id()).map_err(unreadable)? else {
        return Ok(None);
    };
    let index = Index::open(bytes).map_err(|error| error.to_string())?;
    let metadata = index.metadata();
    if metadata.builder != env!("CARGO_PKG_VERSION") {
        return Err("another version of symdex wrote it".to_owned());
    }
    let is_image = metadata.arch.name == files.arch() && metadata.image_name == files.image_name();
    if metadata.id != *files.id() || !is_image {
        return Err(format!("it is of {} {}", metadata.arch.name, metadata.image_name));
    }
    if !metadata.partial.is_empty() {
        return Err("it lacks a part of the debug information".to_owned());
    }
    let debug_file = symdex::map_file(file).map_err(unreadable)?;
    let slice =
        slices_for(&debug_file, Some(files.arch())).ok().and_then(|slices| slices.first()?.bytes().ok());
    let states = |digest| slice.is_some_and(|slice| is_carrier(slice, digest, is_older));
    if !metadata.input_digest.is_some_and(states) {
        return Err("it is of a debug file with other contents".to_owned());
    }
    index.verify_digest().map_err(|error| error.to_string())?;
    Ok(Some(index))
}

/// An index that a debug file carries.
struct Carried {
    bytes: IndexBytes,
    /// Whether the debug file was modified after it.
    is_older: bool,
}

fn carried(file: &Path, id: &ImageId) -> io::Result<Option<Carried>> {
    let Some(folder) = embedded_folder(file) else {
        return Ok(section_of(file)?.map(|bytes| Carried { bytes, is_older: false }));
    };
    let Some(path) = IndexFolder::new(folder).find(id).ok().flatten() else { return Ok(None) };
    let is_older = path.metadata()?.modified()? < file.metadata()?.modified()?;
    Ok(Some(Carried { bytes: symdex::map_file(&path)?.into(), is_older }))
}

/// The folder for the indexes of the debug file `file`, `X.dSYM/Contents/Resources/symdex`; `None` if the file is not
/// in a bundle on disk.
#[must_use]
pub fn embedded_folder(file: &Path) -> Option<PathBuf> {
    let bundle = file.ancestors().nth(4).filter(|_| is_in_bundle(file) && file.is_file());
    bundle.map(|bundle| bundle.join(EMBEDDED_FOLDER))
}

/// The index of the image `id` that the debug file `file` carries, whether it fits or not.
#[must_use]
pub fn embedded_bytes(file: &Path, id: &ImageId) -> Option<IndexBytes> {
    carried(file, id).ok()?.map(|carried| carried.bytes)
}

/// The index in the section `.symdex` of the ELF file `file`, whether it fits or not; `None` if it has none.
///
/// # Errors
///
/// [`io::Error`] if the file cannot be read.
pub fn section_of(file: &Path) -> io::Result<Option<IndexBytes>> {
    let section = index_section(&symdex::map_file(file)?);
    let map = |part: std::ops::Range<usize>| symdex::map_file_part(file, part.start as u64, part.len());
    section.map(|part| map(part).map(IndexBytes::from)).transpose()
}
