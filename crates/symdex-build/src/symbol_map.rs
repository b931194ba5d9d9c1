//! BCSymbolMaps: the hidden names of apps that were uploaded as bitcode.
//!
//! Xcode hid the symbols of such an app before the upload: in the debug file, `__hidden#12_` stands for line 12 of
//! `<UUID>.bcsymbolmap`. The App Store recompiled the bitcode, which gave the images other UUIDs. A map is named by
//! the UUID of its image or by the original one. A dSYM states the original one in
//! `Contents/Resources/<own UUID>.plist`.

use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use symdex::ImageId;
use walkdir::WalkDir;

use crate::error::Error;

const HIDDEN: &[u8] = b"__hidden#";

/// Whether `name` stands for a line of a symbol map.
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(HIDDEN)
}

/// The text is not a symbol map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a symbol map: {found}")]
pub struct NotASymbolMap {
    /// What the text looks like instead.
    pub found: String,
}

/// The names of one symbol map.
///
/// [`SymbolMaps`] finds the map of an image. [`Image::with_symbol_map`](crate::Image::with_symbol_map) uses it.
///
/// ```
/// use symdex_build::SymbolMap;
///
/// let map = SymbolMap::parse(b"BCSymbolMap Version: 2.0\n_main\n-[Cart add:]\n".to_vec())?;
/// assert_eq!(map.resolve_symbol(b"__hidden#0_"), b"main");
/// assert_eq!(map.resolve(b"__hidden#1_"), b"-[Cart add:]");
/// assert_eq!(map.resolve(b"open"), b"open");
/// # Ok::<(), symdex_build::NotASymbolMap>(())
/// ```
pub struct SymbolMap {
    text: Vec<u8>,
    /// The offset of each name, and the end of the last one.
    borders: Vec<usize>,
}

impl SymbolMap {
    /// Reads the text of a symbol map.
    ///
    /// # Errors
    ///
    /// [`NotASymbolMap`] if the text is not a symbol map of version 2.0.
    pub fn parse(text: Vec<u8>) -> Result<Self, NotASymbolMap> {
        let failed = |found: String| Err(NotASymbolMap { found });
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        let version = lines.next().unwrap_or_default();
        match without_end(version).strip_prefix(b"BCSymbolMap Version: ") {
            Some(b"2.0") => {}
            Some(version) => {
                return failed(format!("a BCSymbolMap of version {}", String::from_utf8_lossy(version)));
            }
            None => return failed("a file without the line \"BCSymbolMap Version: 2.0\"".to_owned()),
        }
        let mut borders = vec![version.len()];
        borders.extend(lines.scan(version.len(), |at, line| {
            *at += line.len();
            Some(*at)
        }));
        Ok(Self { text, borders })
    }

    /// The resolved name, or `name` itself if it is not hidden or the map has no such line.
    #[must_use]
    pub fn resolve<'m>(&'m self, name: &'m [u8]) -> &'m [u8] {
        self.line(name).unwrap_or(name)
    }

    /// As [`Self::resolve`], for the name of a symbol: removes Mach-O's leading underscore, which the map keeps.
    #[must_use]
    pub fn resolve_symbol<'m>(&'m self, name: &'m [u8]) -> &'m [u8] {
        let symbol = self.line(name).map(|line| line.strip_prefix(b"_").unwrap_or(line));
        symbol.filter(|symbol| !symbol.is_empty()).unwrap_or(name)
    }

    /// How many bytes of memory the map of `text` takes.
    fn memory_of(text: &[u8]) -> usize {
        let lines = text.iter().filter(|byte| **byte == b'\n').count();
        text.len().saturating_add((lines + 2).saturating_mul(size_of::<usize>()))
    }

    /// How many bytes of memory it takes.
    pub(crate) fn memory(&self) -> usize {
        self.text.len() + size_of_val(&self.borders[..])
    }

    /// Bytes of text.
    pub(crate) fn size(&self) -> u64 {
        self.text.len() as u64
    }

    fn line(&self, name: &[u8]) -> Option<&[u8]> {
        let digits = name.strip_prefix(HIDDEN)?.strip_suffix(b"_")?;
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let number: usize = std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()?;
        let (start, end) = (*self.borders.get(number)?, *self.borders.get(number.checked_add(1)?)?);
        let line = without_end(&self.text[start..end]);
        // LLVM writes a byte 1 before a name that it does not mangle.
        Some(line.strip_prefix(b"\x01").unwrap_or(line)).filter(|line| !line.is_empty())
    }
}

/// A line without the characters that end it.
fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

impl std::fmt::Debug for SymbolMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SymbolMap({} names)", self.borders.len() - 1)
    }
}

/// The paths of symbol maps, by UUID.
///
/// ```no_run
/// # use std::path::Path;
/// use symdex_build::{Companions, Image, SymbolMaps, build, slices};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let maps = SymbolMaps::find(&["MyApp.xcarchive/BCSymbolMaps".into()])?;
/// let path = Path::new("MyApp.app.dSYM/Contents/Resources/DWARF/MyApp");
/// let bytes = symdex::map_file(path)?;
/// let companions = Companions::default();
/// for slice in slices(&bytes)? {
///     let image = Image::load(&slice, path, &companions)?;
///     let built = match maps.load(&image.info().id, path, None)? {
///         Some(map) => build(&image.with_symbol_map(&map))?,
///         None => build(&image)?,
///     };
///     println!("{} hidden names are left", built.report.hidden_names);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct SymbolMaps {
    maps: HashMap<ImageId, PathBuf>,
    /// The paths of property lists that state the original UUID, by the UUID of the recompiled image.
    plists: HashMap<ImageId, PathBuf>,
}

impl SymbolMaps {
    /// Finds the symbol maps in `paths`: `<UUID>.bcsymbolmap` files, and folders with such files at any depth. They are
    /// not read yet.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if something cannot be read, [`Error::NotASymbolMap`] for a file with another name.
    pub fn find(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut found = Self::default();
        for path in paths {
            for entry in WalkDir::new(path).sort_by_file_name() {
                let entry = entry.map_err(|error| {
                    let path = error.path().unwrap_or(path).to_owned();
                    Error::Io { doing: "read", path, source: error.into() }
                })?;
                let known = !entry.file_type().is_dir() && found.add(entry.path(), entry.path());
                if entry.depth() == 0 && !entry.file_type().is_dir() && !known {
                    let what = "a file that is not named <UUID>.bcsymbolmap".to_owned();
                    return Err(Error::NotASymbolMap { path: path.clone(), found: what });
                }
            }
        }
        Ok(found)
    }

    /// Whether a file of this name may be a symbol map, or a property list that states the original UUID of an image.
    #[must_use]
    pub fn may_be_one(name: &Path) -> bool {
        let kind = name.extension().unwrap_or_default();
        id_of(name).is_some() && ["bcsymbolmap", "plist"].iter().any(|known| kind.eq_ignore_ascii_case(known))
    }

    /// Adds the file at `path` if its `name` is that of a symbol map or of a property list. A file that was unpacked
    /// from an archive has another path. Returns whether it is a symbol map.
    pub fn add(&mut self, name: &Path, path: &Path) -> bool {
        let Some(id) = id_of(name) else { return false };
        let kind = name.extension().unwrap_or_default();
        if kind.eq_ignore_ascii_case("bcsymbolmap") {
            self.maps.entry(id).or_insert_with(|| path.to_owned());
            return true;
        }
        if kind.eq_ignore_ascii_case("plist") {
            self.plists.entry(id).or_insert_with(|| path.to_owned());
        }
        false
    }

    /// Reads the symbol map of the image `id` in `debug_file`, by that id or by the original one. Returns `None` if
    /// there is none. The map may take `max_memory` bytes; `None` is no limit.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be read, [`Error::NotASymbolMap`] if it is not a symbol map, [`Error::TooLarge`] if
    /// it takes more than `max_memory`.
    pub fn load(
        &self,
        id: &ImageId,
        debug_file: &Path,
        max_memory: Option<usize>,
    ) -> Result<Option<SymbolMap>, Error> {
        let path = match self.maps.get(id) {
            Some(path) => Some(path),
            None if self.maps.is_empty() => None,
            None => self.maps.get(&self.original(id, debug_file)?),
        };
        let Some(path) = path else { return Ok(None) };
        let limit = max_memory.unwrap_or(usize::MAX);
        let file = symdex::open_regular_file(path).map_err(|source| unreadable(path, source))?;
        let mut text = Vec::new();
        let read = file.take((limit as u64).saturating_add(1)).read_to_end(&mut text);
        read.map_err(|source| unreadable(path, source))?;
        if SymbolMap::memory_of(&text) > limit {
            return Err(Error::TooLarge { limit, what: "its symbol map" });
        }
        let map = SymbolMap::parse(text);
        map.map(Some).map_err(|error| Error::NotASymbolMap { path: path.clone(), found: error.found })
    }

    /// The file name that the symbol map of the image `id` in `debug_file` has: `<UUID>.bcsymbolmap`.
    #[must_use]
    pub fn file_name(&self, id: &ImageId, debug_file: &Path) -> String {
        let id = self.original(id, debug_file).unwrap_or_else(|_| id.clone());
        format!("{}.bcsymbolmap", uuid(&id))
    }

    /// The UUID that the image `id` in `debug_file` had before it was recompiled, or `id` if no property list states
    /// another.
    fn original(&self, id: &ImageId, debug_file: &Path) -> Result<ImageId, Error> {
        // In a bundle it is in Resources; the debug file is in Resources/DWARF.
        let folders = debug_file.ancestors().skip(1).take(2);
        let beside = folders.flat_map(|folder| {
            let upper = uuid(id);
            let names = [format!("{}.plist", upper.to_lowercase()), format!("{upper}.plist")];
            names.map(|name| folder.join(name))
        });
        let given = self.plists.get(id).cloned();
        let Some(path) = beside.filter(|path| path.is_file()).chain(given).next() else {
            return Ok(id.clone());
        };
        Ok(original_id(&path)?.unwrap_or_else(|| id.clone()))
    }
}

/// The UUID in the name of a symbol map or of a property list.
fn id_of(name: &Path) -> Option<ImageId> {
    let id = name.file_stem()?.to_str()?.parse::<ImageId>().ok()?;
    (id.as_bytes().len() == 16).then_some(id)
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    Error::Io { doing: "read", path: path.to_owned(), source }
}

/// `DBGOriginalUUID` of a property list, if it has one.
fn original_id(path: &Path) -> Result<Option<ImageId>, Error> {
    /// Real files have a few hundred bytes. The limit also bounds how deep values are nested.
    const MAX_SIZE: u64 = 64 << 10;
    let mut bytes = Vec::new();
    let file = symdex::open_regular_file(path).and_then(|file| file.take(MAX_SIZE).read_to_end(&mut bytes));
    file.map_err(|source| unreadable(path, source))?;
    let malformed = |error| Error::Malformed { what: format!("{}: {error}", path.display()) };
    // Binary property lists could expand to any size, and no tool writes them here.
    let value = plist::Value::from_reader_xml(io::Cursor::new(bytes)).map_err(malformed)?;
    let original = value.as_dictionary().and_then(|dictionary| dictionary.get("DBGOriginalUUID"));
    Ok(original.and_then(|original| original.as_string()?.parse().ok()))
}

/// An id as in file names: upper-case digits in groups of 8, 4, 4, 4 and 12.
fn uuid(id: &ImageId) -> String {
    let mut text = id.to_string().to_uppercase();
    for at in [20, 16, 12, 8] {
        if at < text.len() {
            text.insert(at, '-');
        }
    }
    text
}
