//! The files of a shared cache beside its main file, and the addresses that they map.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use object::read::macho::{DyldCacheMappingSlice, DyldSubCacheSlice};
use symdex::MappedFile;

use super::{ENDIAN, Header, MAGIC, malformed};
use crate::error::Error;

/// The most parts of a cache. Real ones have less than a hundred.
const MAX_PARTS: usize = 1000;

/// A range of a file that is mapped to addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mapping {
    pub(super) address: u64,
    pub(super) size: u64,
    /// The number of the file.
    pub(super) file: usize,
    pub(super) offset: u64,
}

/// A part as the main file lists it.
pub(super) struct Part {
    /// What is appended to the name of the main file.
    pub(super) suffix: String,
    pub(super) uuid: [u8; 16],
    /// The distance of its first address from the first one of the cache.
    pub(super) vm_offset: u64,
}

/// A missing part.
pub(super) struct Wanted {
    file: PathBuf,
    uuid: [u8; 16],
    why: String,
}

impl Wanted {
    pub(super) fn error(&self) -> Error {
        Error::CachePart { file: self.file.clone(), uuid: hex(&self.uuid), why: self.why.clone() }
    }

    /// The same without the folder, because an index must not depend on the cache's folder.
    pub(super) fn without_folder(self) -> Self {
        Self { file: self.file.file_name().map(PathBuf::from).unwrap_or_default(), ..self }
    }
}

fn hex(uuid: &[u8; 16]) -> String {
    uuid.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The parts that the main file lists, without the one of the local symbols.
pub(super) fn listed(header: &Header, main: &[u8]) -> Result<Vec<Part>, Error> {
    let part = |suffix, uuid, vm_offset| Part { suffix, uuid, vm_offset };
    let parts: Vec<Part> = match header.subcaches(ENDIAN, main).map_err(malformed("the list of parts"))? {
        Some(DyldSubCacheSlice::V1(parts)) => (1..)
            .zip(parts.iter().take(MAX_PARTS + 1))
            .map(|(number, entry)| part(format!(".{number}"), entry.uuid, entry.cache_vm_offset.get(ENDIAN)))
            .collect(),
        Some(DyldSubCacheSlice::V2(parts)) => {
            let suffix = |bytes: &[u8]| {
                let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
                String::from_utf8_lossy(text).into_owned()
            };
            let parts = parts.iter().take(MAX_PARTS + 1);
            parts
                .map(|entry| part(suffix(&entry.file_suffix), entry.uuid, entry.cache_vm_offset.get(ENDIAN)))
                .collect()
        }
        _ => Vec::new(),
    };
    let is_name = |part: &Part| part.suffix.starts_with('.') && !part.suffix.contains(['/', '\\']);
    // A hostile cache could list a file many times, and each would be mapped.
    let mut seen = HashSet::new();
    let mut is_new = |part: &Part| seen.insert(part.suffix.clone());
    if parts.len() > MAX_PARTS || !parts.iter().all(is_name) || !parts.iter().all(&mut is_new) {
        let what = "the list of parts of the shared cache has too many, one of them twice, or names of other folders";
        let what = what.to_owned();
        return Err(Error::Malformed { what });
    }
    Ok(parts)
}

/// The mappings of file number `file`, in its order.
pub(super) fn mappings(bytes: &[u8], file: usize) -> Result<Vec<Mapping>, Error> {
    let header = Header::parse(bytes).map_err(malformed("the header"))?;
    let mapping = |address, size, offset| Mapping { address, size, file, offset };
    Ok(match header.mappings(ENDIAN, bytes).map_err(malformed("the mappings"))? {
        DyldCacheMappingSlice::V1(mappings) => mappings
            .iter()
            .map(|m| mapping(m.address.get(ENDIAN), m.size.get(ENDIAN), m.file_offset.get(ENDIAN)))
            .collect(),
        DyldCacheMappingSlice::V2(mappings) => mappings
            .iter()
            .map(|m| mapping(m.address.get(ENDIAN), m.size.get(ENDIAN), m.file_offset.get(ENDIAN)))
            .collect(),
        _ => Vec::new(),
    })
}

impl Part {
    /// Maps the part of the cache at `main`, as the file with the number `file`, and reads what it maps.
    pub(super) fn open(&self, main: &Path, file: usize) -> Result<(MappedFile, Vec<Mapping>), Wanted> {
        let bytes = self.file(main)?;
        let mappings = mappings(&bytes, file).map_err(|error| self.wanted(main, error.to_string()))?;
        Ok((bytes, mappings))
    }

    /// Maps the part of the cache at `main`.
    pub(super) fn file(&self, main: &Path) -> Result<MappedFile, Wanted> {
        let bytes = symdex::map_file(&self.path(main));
        let bytes = bytes.map_err(|error| self.wanted(main, format!("cannot read: {error}")))?;
        match Header::parse(&*bytes) {
            Ok(header) if !header.magic.starts_with(MAGIC) => {
                Err(self.wanted(main, "not a part of a shared cache".to_owned()))
            }
            Ok(header) if header.uuid != self.uuid => {
                Err(self.wanted(main, format!("it is the part {} of another cache", hex(&header.uuid))))
            }
            Ok(_) => Ok(bytes),
            Err(_) => Err(self.wanted(main, "cut short".to_owned())),
        }
    }

    fn wanted(&self, main: &Path, why: String) -> Wanted {
        Wanted { file: self.path(main), uuid: self.uuid, why }
    }

    /// The path of the part. A part of `cache.development` is `cache.01.development`, or belongs to all caches in the
    /// folder, as `.symbols` does.
    fn path(&self, main: &Path) -> PathBuf {
        let name = main.file_name().unwrap_or_default().to_string_lossy();
        let path = main.with_file_name(format!("{name}{}", self.suffix));
        match name.strip_suffix(".development") {
            Some(base) if !path.exists() => main.with_file_name(format!("{base}{}", self.suffix)),
            _ => path,
        }
    }
}
