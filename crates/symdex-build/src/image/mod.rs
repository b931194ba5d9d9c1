//! An image: one slice with its id, its addresses, its debug sections and its symbols.

mod code;
mod compressed;
mod debug_link;
mod elf;
mod elf_file;
mod kernel_module;
mod load;
mod macho;
mod name;
mod split;
mod supplementary;

use std::sync::Arc;
use std::time::Duration;

use gimli::{EndianSlice, LittleEndian, Section as _};
use memchr::memmem;
use symdex::write::ImageInfo;
use symdex::{Arch, ImageId};

use crate::go::GoFunctions;
use crate::limits;
use crate::report::{Problems, TOO_FAR};
use crate::symbol_map::SymbolMap;
use crate::symbols::FunctionSymbols;
use crate::unwind::UnwindTables;

pub(crate) use self::code::{MAX_OFFSET, short};
pub(crate) use self::elf_file::ElfFile;
pub(crate) use self::macho::{CachedParts, cached_identity, claimed_size, load_cached};
pub(crate) use self::name::ImageName;
pub(crate) use self::split::{Split, Splits};

/// The type that gimli reads debug sections from. Every architecture that crash reports come from is little-endian.
pub(crate) type Reader<'d> = EndianSlice<'d, LittleEndian>;

/// Whether Go's compiler is one of the producers that `dwarf` states.
fn states_go(dwarf: &gimli::Dwarf<Reader<'_>>) -> bool {
    let sections = [dwarf.debug_info.reader(), dwarf.debug_str.reader()];
    sections.iter().any(|section| memmem::find(section, b"Go cmd/compile").is_some())
}

/// One slice of a debug file, ready to be indexed.
///
/// It borrows the bytes of the file, and those of other files from a [`Companions`](crate::Companions).
///
/// ```
/// # use std::path::Path;
/// use symdex_build::{Companions, Image, slices};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = "../../testdata/dsyms/inline-dwarf4.dSYM/Contents/Resources/DWARF/inline-dwarf4";
/// # let path = &Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
/// let bytes = symdex::map_file(path)?;
/// let companions = Companions::default();
/// for slice in slices(&bytes)? {
///     let image = Image::load(&slice, path, &companions)?;
///     println!("{} {}: {} symbols", image.info().id, slice.arch.name, image.symbols().len());
///     assert!(image.has_dwarf());
/// }
/// # Ok(())
/// # }
/// ```
pub struct Image<'d> {
    pub(crate) info: ImageInfo,
    /// Executable sections that no image offset reaches; see [`Image::outside`].
    pub(crate) outside: Vec<(u64, u64)>,
    /// The name in `info`, and how good it is.
    pub(crate) name: ImageName,
    pub(crate) debug_size: u64,
    pub(crate) files: Vec<&'d [u8]>,
    /// The debug sections of the slice, and of the supplementary file if there is one.
    pub(crate) dwarf: Arc<gimli::Dwarf<Reader<'d>>>,
    /// The units that are in other files.
    pub(crate) splits: Splits<'d>,
    /// The unwind tables of each file.
    pub(crate) unwind: Vec<UnwindTables<'d>>,
    /// The functions of the symbol table, of function starts and of unwind information.
    pub(crate) symbols: FunctionSymbols<'d>,
    /// The functions that the tables of a Go program state, if the DWARF does not state them.
    pub(crate) go: Option<GoFunctions<'d>>,
    /// How many function symbols lie outside of the executable sections.
    pub(crate) symbols_outside: u64,
    pub(crate) symbol_map: Option<&'d SymbolMap>,
    /// The files that the image refers to and that were not found or not readable, in sentences.
    pub(crate) missing: Vec<String>,
    /// How many bytes of decompressed sections are in memory. Other images of the same file may have some of them.
    pub(crate) decompressed: usize,
    /// How long the loading took.
    pub(crate) load_time: Duration,
}

/// The identity of an image, which is read from the headers alone.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The image's id.
    pub id: ImageId,
    /// Whether the file has debug information in DWARF.
    pub has_dwarf: bool,
    /// Whether the file states functions with lines: in DWARF, or in the tables of the Go runtime.
    pub has_lines: bool,
    /// The kind of file.
    pub kind: ImageKind,
}

/// A kind of file that holds images.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageKind {
    /// The Mach-O file inside a dSYM bundle.
    Dsym,
    /// A Mach-O file that is run.
    MachOExecutable,
    /// A Mach-O library or a bundle that is loaded at run time.
    MachOLibrary,
    /// A Mach-O file that is not linked yet.
    MachOObject,
    /// Any other Mach-O file: a kernel extension, a dynamic linker.
    OtherMachO,
    /// An ELF file whose code was stripped, so that only its debug information or symbols are left.
    ElfDebugFile,
    /// An ELF file that is run.
    ElfExecutable,
    /// An ELF shared library.
    ElfLibrary,
    /// An image of a dyld shared cache.
    Cached,
}

impl ImageKind {
    /// The kind in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dsym => "dSYM",
            Self::MachOExecutable => "Mach-O executable",
            Self::MachOLibrary => "Mach-O library",
            Self::MachOObject => "Mach-O object file",
            Self::OtherMachO => "Mach-O file",
            Self::ElfDebugFile => "ELF debug file",
            Self::ElfExecutable => "ELF executable",
            Self::ElfLibrary => "ELF library",
            Self::Cached => "shared cache image",
        }
    }
}

impl<'d> Image<'d> {
    /// What the index states of the image: its id, name, architecture and addresses.
    #[must_use]
    pub fn info(&self) -> &ImageInfo {
        &self.info
    }

    /// Executable code that is too far from the image's base to have an image offset: half-open ranges of addresses as
    /// stated in the file (SVMAs), sorted. An index has no answers there, and its metadata says so. See
    /// [`Companions::load_near`](crate::Companions::load_near).
    #[must_use]
    pub fn outside(&self) -> &[(u64, u64)] {
        &self.outside
    }

    /// The functions of the symbol table, sorted by address. No two start at the same address.
    #[must_use]
    pub fn symbols(&self) -> &FunctionSymbols<'d> {
        &self.symbols
    }

    /// How many bytes the slice has, and the files that its debug information refers to. For an image in a shared
    /// cache, how many bytes its load commands, symbols and names have.
    #[must_use]
    pub fn debug_size(&self) -> u64 {
        self.debug_size
    }

    /// The bytes of the slice, and then those of the other files that the image was joined from. Empty for an image in
    /// a shared cache.
    #[must_use]
    pub fn files(&self) -> &[&'d [u8]] {
        &self.files
    }

    /// The symbol map that resolves hidden names, if there is one.
    #[must_use]
    pub fn symbol_map(&self) -> Option<&'d SymbolMap> {
        self.symbol_map
    }

    /// Whether `other` can be a file of the same image, such as the stripped binary of a debug file.
    #[must_use]
    pub fn can_join(&self, other: &Self) -> bool {
        let (own, others) = (&self.info, &other.info);
        // Names are compared, because a binary's subtype has capability bits (LIB64) that its dSYM's lacks.
        own.arch.name == others.arch.name && own.base == others.base
    }

    /// Joins two files of one image. The result has the symbols of both. It has the debug information of the file that
    /// has more, and the name of the binary, not that of the debug file. Add a symbol map after this, not before.
    #[must_use]
    pub fn join(mut self, other: Self) -> Self {
        let size = |image: &Self| image.dwarf.debug_info.reader().len();
        if size(&other) > size(&self) {
            (self.dwarf, self.splits) = (other.dwarf, other.splits);
            // The file that `self` lists as missing may be that of `other`.
            self.missing = other.missing;
        } else if !self.has_dwarf() {
            self.missing.extend(other.missing);
        }
        self = Self { name: self.name.clone().or(other.name), ..self }.named();
        // A debug file without code does not have them.
        if self.info.segments.as_ref().is_none_or(Vec::is_empty) {
            self.info.segments = other.info.segments;
        }
        self.debug_size += other.debug_size;
        self.decompressed = self.decompressed.max(other.decompressed);
        self.load_time += other.load_time;
        self.files.extend(other.files);
        self.unwind.extend(other.unwind);
        self.go = self.go.or(other.go).filter(|_| !states_go(&self.dwarf));
        self.symbols_outside = self.symbols_outside.max(other.symbols_outside);
        self.symbols = self.symbols.join(other.symbols, &self.info.executable);
        self
    }

    /// The image with this id. For an image whose file states none: its id is then a hash, see [`ImageId::is_hash`].
    #[must_use]
    pub fn with_id(mut self, id: ImageId) -> Self {
        self.info.id = id;
        self
    }

    /// The image with its `name` in `info`.
    pub(crate) fn named(mut self) -> Self {
        self.info.image_name.clone_from(&self.name.text);
        self
    }

    /// Replaces hidden names by those in `map`.
    #[must_use]
    pub fn with_symbol_map(mut self, map: &'d SymbolMap) -> Self {
        self.symbols.resolve(|name| map.resolve_symbol(name));
        Self { symbol_map: Some(map), ..self }
    }

    /// The resolved name or path, or `text` itself if it is not hidden.
    pub(crate) fn resolve(&self, text: &'d [u8]) -> &'d [u8] {
        self.symbol_map.map_or(text, |map| map.resolve(text))
    }

    /// How many range-list entries may be read: a few times as many as the sections can have, because lists are rarely
    /// shared.
    pub(crate) fn range_budget(&self) -> u64 {
        self.debug_size / limits::RANGE_BYTES + limits::RANGES
    }

    /// About how many bytes of memory it takes, excluding the bytes of its files.
    pub(crate) fn memory(&self) -> usize {
        self.decompressed
            + self.symbol_map.map_or(0, SymbolMap::memory)
            + self.symbols.memory()
            + self.go.as_ref().map_or(0, GoFunctions::memory)
    }

    /// Whether the slice has debug information in DWARF.
    #[must_use]
    pub fn has_dwarf(&self) -> bool {
        !self.dwarf.debug_info.reader().is_empty()
    }

    /// Whether the slice states functions with lines: in DWARF or, as a Go program without DWARF, in the tables of the
    /// runtime.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        self.has_dwarf() || self.go.is_some()
    }

    /// Whether the slice has `.debug_aranges`. Newer tools omit it.
    pub(crate) fn has_aranges(&self) -> bool {
        !self.dwarf.debug_aranges.reader().is_empty()
    }

    /// `start..end` (SVMAs) as image offsets. Returns `None` if it is empty or begins below the image.
    pub(crate) fn offsets(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let range = (start.checked_sub(self.info.base)?, end.checked_sub(self.info.base)?);
        (start < end).then_some(range)
    }

    /// The part of `start..end` (SVMAs) that lies in the executable section that holds `start`, as image offsets.
    pub(crate) fn executable_part(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (start, end) = self.offsets(start, end)?;
        let end = end.min(self.section_end(start)?);
        (start < end).then_some((start, end))
    }

    /// Whether image offset `offset` lies in an executable section.
    pub(crate) fn is_executable(&self, offset: u64) -> bool {
        self.section_end(offset).is_some_and(|end| offset < end)
    }

    /// The end of the last executable section that starts at or before image offset `offset`.
    fn section_end(&self, offset: u64) -> Option<u64> {
        let after = self.info.executable.partition_point(|section| section.0 <= offset);
        Some(self.info.executable.get(after.checked_sub(1)?)?.1)
    }

    /// What answers lack because of missing files.
    pub(crate) fn missing(&self) -> Problems {
        let mut problems = Problems::default();
        self.missing.iter().for_each(|missing| problems.add(missing, 1));
        problems
    }

    /// What an index lacks because of missing files, and because code lies too far apart.
    pub(crate) fn problems(&self) -> Problems {
        // A hostile file can have any number of sections.
        const LISTED: usize = 8;
        let mut problems = self.missing();
        self.go.iter().for_each(|functions| problems.merge(functions.problems.clone()));
        let (listed, others) = self.outside.split_at(self.outside.len().min(LISTED));
        let base = self.info.base;
        for (start, end) in listed {
            problems.add(&format!("the code at {start:#x}..{end:#x} is {TOO_FAR} {base:#x} of the image"), 1);
        }
        problems.add(&format!("more code is {TOO_FAR} {base:#x} of the image"), others.len() as u64);
        problems
    }
}

impl std::fmt::Debug for Image<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Arch { name, .. } = &self.info.arch;
        write!(f, "Image({} {name} {})", self.info.image_name, self.info.id)
    }
}
