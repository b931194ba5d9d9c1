//! Loading images and their identities, by the kind of their files.

use std::path::Path;
use std::time::{Duration, Instant};

use object::LittleEndian as Little;
use object::read::elf::FileHeader;
use symdex::{Arch, ImageId};

use super::debug_link::with_debug_file;
use super::elf_file::ElfFile;
use super::{Identity, Image, elf, macho};
use crate::companions::{Companions, file_name};
use crate::error::Error;
use crate::slice::{self, Slice};

impl Identity {
    /// The identity of the image in `slice`.
    ///
    /// # Errors
    ///
    /// As [`Image::load`].
    pub fn of(slice: &Slice<'_>) -> Result<Self, Error> {
        let bytes = slice.bytes()?;
        match bytes.first() {
            Some(0x7f) => elf::identity(bytes),
            _ => macho::identity(bytes),
        }
    }
}

impl<'d> Image<'d> {
    /// Reads the headers, sections and symbols of `slice`, a part of the file at `path`.
    ///
    /// Of the debug information, only the references to other files are read. Those files and decompressed sections are
    /// kept in `companions`. A file that is not found is not an error: the metadata of the index then states what
    /// the index lacks.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] if a section or the symbol table reaches past the end of the slice,
    /// [`Error::Malformed`] if headers do not parse, [`Error::Unsupported`] for files that are not linked yet.
    /// [`Error::TooLarge`] and [`Error::TooSlow`] past the limits of `companions`.
    pub fn load(
        slice: &Slice<'d>,
        path: impl AsRef<Path>,
        companions: &'d Companions,
    ) -> Result<Self, Error> {
        // WebAssembly has no clock. Builds there have no limit of time.
        let begun = (!cfg!(target_family = "wasm")).then(Instant::now);
        companions.begin();
        let bytes = slice.bytes()?;
        let image = match bytes.first() {
            Some(0x7f) => load_elf(&slice.arch, bytes, path.as_ref(), companions),
            _ => macho::load(&slice.arch, bytes, &file_name(path.as_ref()), companions),
        }?;
        companions.check_loaded()?;
        Ok(Self { load_time: begun.map_or(Duration::ZERO, |begun| begun.elapsed()), ..image })
    }

    /// Loads the image with this id and architecture from the file at `path`. Returns `None` if the file has no such
    /// image.
    ///
    /// # Errors
    ///
    /// As [`Self::load`] and [`crate::slices`], [`Error::Io`] if the file cannot be read.
    pub fn find(
        path: &Path,
        id: &ImageId,
        arch: &str,
        companions: &'d Companions,
    ) -> Result<Option<Self>, Error> {
        let failed = |source| Error::Io { doing: "read", path: path.to_owned(), source };
        let bytes = companions.map(path).map_err(failed)?;
        for slice in slice::slices_for(bytes, Some(arch))? {
            let image = Self::load(&slice, path, companions)?;
            if image.info.id == *id {
                return Ok(Some(image));
            }
        }
        Ok(None)
    }
}

/// The image in `bytes`, an ELF file, joined with its debug file if it has no debug information of its own.
fn load_elf<'d>(
    arch: &Arch,
    bytes: &'d [u8],
    path: &Path,
    companions: &'d Companions,
) -> Result<Image<'d>, Error> {
    match bytes.get(4) {
        Some(1) => load_elf_class::<object::elf::FileHeader32<Little>>(arch, bytes, path, companions),
        _ => load_elf_class::<object::elf::FileHeader64<Little>>(arch, bytes, path, companions),
    }
}

fn load_elf_class<'d, Header: FileHeader<Endian = Little>>(
    arch: &Arch,
    bytes: &'d [u8],
    path: &Path,
    companions: &'d Companions,
) -> Result<Image<'d>, Error> {
    let file = ElfFile::<Header>::load(bytes, companions)?;
    let image = elf::image(&file, arch, path, None, companions)?;
    if image.has_dwarf() {
        return Ok(image);
    }
    Ok(with_debug_file(image, &file, arch, path, companions))
}
