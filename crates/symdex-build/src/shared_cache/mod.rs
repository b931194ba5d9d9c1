//! dyld shared caches: the system libraries of one OS and architecture, linked together into one file or several.
//!
//! The main file lists the images and the other parts, which are files beside it. Each part maps ranges of itself to
//! addresses. An image may use several parts; its bytes are found by their addresses. The local symbols of all images
//! are in one table, in the main file or in a part without addresses (`.symbols`).

mod locals;
mod parts;

use std::collections::{BTreeMap, HashSet};
use std::ffi::CStr;
use std::fmt;
use std::io::Read as _;
use std::path::Path;

use object::Endianness;
use object::macho::DyldCacheHeader;
use symdex::{Arch, MappedFile};

use self::locals::Locals;
use self::parts::{Mapping, Wanted};
use crate::error::Error;
use crate::image::{CachedParts, Identity, Image, cached_identity, claimed_size, load_cached};
use crate::slice::arch_of;
use crate::symbols::macho::LocalSymbols;

const ENDIAN: Endianness = Endianness::Little;
const MAGIC: &[u8] = b"dyld_v1";

type Header = DyldCacheHeader<Endianness>;

/// Makes errors that name the part of the shared cache that does not parse.
fn malformed(what: &str) -> impl FnOnce(object::Error) -> Error {
    move |error| Error::Malformed { what: format!("{what} of the shared cache: {error}") }
}

/// A shared cache: its files, mapped into memory.
///
/// ```no_run
/// use symdex_build::{SharedCache, build};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cache = SharedCache::open("dyld_shared_cache_arm64e".as_ref())?;
/// for missing in cache.missing() {
///     eprintln!("{missing}");
/// }
/// for image in cache.images() {
///     let built = build(&image.load()?)?;
///     println!("{}: {} bytes", image.path, built.bytes.len());
/// }
/// # Ok(())
/// # }
/// ```
pub struct SharedCache {
    /// The files that were found, the main file first.
    files: Vec<MappedFile>,
    /// The ranges of addresses that they map, sorted by address.
    mappings: Vec<Mapping>,
    /// The missing parts, by the address at which each begins.
    missing: BTreeMap<u64, Wanted>,
    /// The local symbols, or the reason why they are missing.
    locals: Result<Option<Locals>, String>,
}

/// One image of a cache.
pub struct SharedCacheImage<'c> {
    cache: &'c SharedCache,
    /// The path under which it is installed.
    pub path: String,
    /// The address of its header.
    address: u64,
    /// Whether the tables of the images before it already take as many bytes as the cache has.
    is_too_much: bool,
}

impl SharedCache {
    /// Whether the file at `path` begins like a shared cache or a part of one. False if it cannot be read.
    #[must_use]
    pub fn is_cache(path: &Path) -> bool {
        let mut magic = Vec::new();
        let read = symdex::open_regular_file(path)
            .and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut magic));
        read.is_ok() && magic == MAGIC
    }

    /// Opens the cache with the main file at `path`. The other parts are searched beside it; see [`Self::missing`].
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the main file cannot be read, [`Error::Malformed`] if it contradicts itself or is cut
    /// short, [`Error::NotADebugFile`] if it is one of the other parts.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let unreadable = |source| Error::Io { doing: "read", path: path.to_owned(), source };
        let main = symdex::map_file(path).map_err(unreadable)?;
        let header = Header::parse(&*main).map_err(malformed("the header"))?;
        if header.images(ENDIAN, &*main).map_err(malformed("the list of images"))?.is_empty() {
            let found =
                "a part of a shared cache; its main file, which lists the images, is wanted".to_owned();
            return Err(Error::NotADebugFile { found });
        }
        let mut mappings = parts::mappings(&main, 0)?;
        let base = mappings.first().map_or(0, |mapping| mapping.address);
        let (mut files, mut missing) = (Vec::new(), BTreeMap::new());
        for part in parts::listed(header, &main)? {
            match part.open(path, 1 + files.len()) {
                Ok((bytes, of_part)) => {
                    mappings.extend(of_part);
                    files.push(bytes);
                }
                Err(wanted) => {
                    missing.insert(base.wrapping_add(part.vm_offset), wanted);
                }
            }
        }
        mappings.sort_unstable();
        let locals = locals::find(path, &main, base);
        files.insert(0, main);
        Ok(Self { files, mappings, missing, locals })
    }

    /// The missing parts, each as an [`Error::CachePart`]. Images that need none of them can be loaded.
    #[must_use]
    pub fn missing(&self) -> Vec<Error> {
        self.missing.values().map(Wanted::error).collect()
    }

    /// Every image once, in the order of the cache's list. The list may have several paths of one image.
    #[must_use]
    pub fn images(&self) -> Vec<SharedCacheImage<'_>> {
        let main = self.main();
        let header = Header::parse(main).ok();
        let listed = header.and_then(|header| header.images(ENDIAN, main).ok()).unwrap_or_default();
        let mut seen = HashSet::new();
        let mut left: u64 = self.files.iter().map(|file| file.len() as u64).sum();
        let mut images = Vec::new();
        for info in listed {
            let address = info.address.get(ENDIAN);
            if !seen.insert(address) {
                continue;
            }
            let path = text_at(main, info.path_file_offset.get(ENDIAN));
            let mut image = SharedCacheImage { cache: self, path, address, is_too_much: false };
            // The tables of valid images do not overlap, so their sizes add up to less than the cache.
            match left.checked_sub(image.size()) {
                Some(rest) => left = rest,
                None => image.is_too_much = true,
            }
            images.push(image);
        }
        images
    }

    fn main(&self) -> &[u8] {
        self.files.first().map_or(&[], |main| main)
    }

    /// The file that `address` is mapped from, and the offset there.
    fn file_at(&self, address: u64) -> Result<(&[u8], u64), Error> {
        let after = self.mappings.partition_point(|mapping| mapping.address <= address);
        let mapping = after.checked_sub(1).map(|index| &self.mappings[index]);
        let found = mapping.and_then(|mapping| {
            let inside = address.checked_sub(mapping.address).filter(|inside| *inside < mapping.size)?;
            Some((&**self.files.get(mapping.file)?, mapping.offset.checked_add(inside)?))
        });
        found.ok_or_else(|| {
            // The address belongs to the last part that begins at or below it. That part may be missing.
            let there = mapping.map_or(0, |mapping| mapping.address);
            match self.missing.range(..=address).next_back().filter(|(start, _)| **start >= there) {
                Some((_, wanted)) => wanted.error(),
                None => Error::Malformed { what: format!("the shared cache maps nothing to {address:#x}") },
            }
        })
    }
}

impl fmt::Debug for SharedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedCache({} files, {} missing)", self.files.len(), self.missing.len())
    }
}

impl fmt::Debug for SharedCacheImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedCacheImage({})", self.path)
    }
}

/// The text at `offset`, up to its end or the end of the file.
fn text_at(bytes: &[u8], offset: u32) -> String {
    const LONGEST_PATH: usize = 1024;
    let text = bytes.get(offset as usize..).unwrap_or_default();
    let text = &text[..text.len().min(LONGEST_PATH)];
    String::from_utf8_lossy(CStr::from_bytes_until_nul(text).map_or(text, CStr::to_bytes)).into_owned()
}

impl<'c> SharedCacheImage<'c> {
    /// The architecture in the image's header.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn arch(&self) -> Result<Arch, Error> {
        let what = format!("there is no Mach-O header at {:#x} of the shared cache", self.address);
        arch_of(self.commands()?).map_err(|_| Error::Malformed { what })
    }

    /// The identity of the image, from its header and load commands.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn identity(&self) -> Result<Identity, Error> {
        cached_identity(self.commands()?)
    }

    /// How many bytes its load commands and symbol tables have, as the load commands state. 0 if they cannot be read.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.commands().map_or(0, claimed_size)
    }

    /// Loads the headers and symbols of the image. Images of a cache have no debug information.
    ///
    /// # Errors
    ///
    /// [`Error::CachePart`] if it needs a part that is missing, [`Error::Truncated`] if something reaches past
    /// the end of a file, [`Error::Malformed`] if headers do not parse or nothing is mapped to an address.
    pub fn load(&self) -> Result<Image<'c>, Error> {
        let arch = self.arch()?;
        if self.is_too_much {
            return Err(Error::Malformed {
                what: "images of the shared cache share their tables".to_owned(),
            });
        }
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let linkedit = |address| self.cache.file_at(address).map(|(file, _)| file);
        let missing = self.cache.locals.as_ref().err().cloned().into_iter().collect();
        let parts = CachedParts { linkedit: &linkedit, locals: self.local_symbols(), missing };
        load_cached(&arch, self.commands()?, name, parts)
    }

    /// The image's header and load commands.
    fn commands(&self) -> Result<&'c [u8], Error> {
        // The size of the larger header. Both state the size of the commands at the same offset.
        const HEADER_SIZE: u64 = 32;
        let (file, offset) = self.cache.file_at(self.address)?;
        let bytes = usize::try_from(offset).ok().and_then(|offset| file.get(offset..));
        let size = bytes.and_then(|bytes| bytes.get(20..24)?.try_into().ok()).map(u32::from_le_bytes);
        let size = HEADER_SIZE + u64::from(size.unwrap_or(0));
        let commands = bytes.and_then(|bytes| bytes.get(..usize::try_from(size).ok()?));
        commands.ok_or_else(|| Error::Truncated {
            what: format!("the load commands of {}", self.path),
            end: offset.saturating_add(size),
            size: file.len() as u64,
        })
    }

    /// The image's local symbols, if the cache has any.
    fn local_symbols(&self) -> Option<LocalSymbols<'c>> {
        let locals = self.cache.locals.as_ref().ok()?.as_ref()?;
        locals.of_image(self.cache.main(), self.address)
    }
}
