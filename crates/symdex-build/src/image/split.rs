//! Split DWARF: units in `.dwo` files, or in a `.dwp` file with others.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{Dwarf, DwarfPackage, LittleEndian, Reader as _, Section as _, SectionId, UnitHeader};
use object::LittleEndian as Little;
use object::read::elf::FileHeader;

use super::elf_file::ElfFile;
use crate::companions::{Companions, file_name, path_of, shown};
use crate::dwarf::{Root, Skeleton, Table, TableReader, headers, skeletons};
use crate::keyed::KeyedMap;
use crate::limits;
use crate::reader::Reader;

/// The split units of an image, by the offset of their skeleton's header in `.debug_info`.
pub(crate) type Splits<'d> = KeyedMap<usize, Split<'d>>;

/// A split unit.
pub(crate) struct Split<'d> {
    /// The sections of the file; in a package, the unit's contributions.
    pub(crate) dwarf: Arc<Dwarf<Reader<'d>>>,
    // The second parameter keeps `Image` covariant in `'d`.
    pub(crate) header: UnitHeader<Reader<'d>, usize>,
    pub(crate) table: Arc<Table>,
    /// The number of the file among those of the image. Each unit of a package has a number of its own.
    pub(crate) file: u32,
}

/// Finds the split units of the skeleton units of `dwarf`, the debug sections of `file` at `path`. Returns the units,
/// and how many bytes their files have. Adds units that are not found to `missing`.
pub(super) fn find<'d, Header: FileHeader<Endian = Little>>(
    dwarf: &Dwarf<Reader<'d>>,
    file: &ElfFile<'d, Header>,
    path: &Path,
    companions: &'d Companions,
    missing: &mut Vec<String>,
) -> (Splits<'d>, u64) {
    /// How many missing units are named. The others are likely missing for the same reason.
    const NAMED: usize = 20;
    let skeletons = skeletons(dwarf);
    let mut splits = Splits::default();
    if skeletons.is_empty() {
        return (splits, 0);
    }
    let mut files = SplitFiles {
        parent: dwarf,
        companions,
        objects: HashMap::new(),
        files: 0,
        size: 0,
        searched: 0,
        budget: file.budget.get(),
    };
    let mut packages = files.packages(file, path);
    let mut not_named = 0;
    for skeleton in skeletons {
        if companions.deadline().is_over() {
            // The image fails to load.
            break;
        }
        let packed = packages.iter_mut().find_map(|package| package.remove(&skeleton.id.0));
        match packed.map_or_else(|| files.in_objects::<Header>(&skeleton, path), Ok) {
            Ok(split) => {
                splits.insert(skeleton.offset, split);
            }
            Err(why) if missing.len() < NAMED => {
                let name = shown(skeleton.name);
                missing.push(format!("the split unit {name} (dwo id {:016x}) {why}", skeleton.id.0));
            }
            Err(_) => not_named += 1,
        }
    }
    if not_named != 0 {
        missing.push(format!("{not_named} more split units are not found"));
    }
    (splits, files.size)
}

/// The split units of one file by their ids. Each is used once, however many skeletons refer to it.
type Units<'d> = KeyedMap<u64, Split<'d>>;

/// The files that split units are searched in.
struct SplitFiles<'a, 'd> {
    parent: &'a Dwarf<Reader<'d>>,
    companions: &'d Companions,
    /// The `.dwo` files that were read, or the reasons why they cannot be read.
    objects: HashMap<PathBuf, Result<Units<'d>, String>>,
    /// How many files there are. Each unit of a package counts as one.
    files: u32,
    /// How many bytes they have.
    size: u64,
    /// The bytes that [`limits::SEARCHED`] limits.
    searched: usize,
    /// How many bytes their sections may still take once they are decompressed.
    budget: u64,
}

impl<'d> SplitFiles<'_, 'd> {
    /// The packages that may belong to `file` at `path`: the file itself, and `FILE.dwp`, also for `FILE.debug`.
    fn packages<Header: FileHeader<Endian = Little>>(
        &mut self,
        file: &ElfFile<'d, Header>,
        path: &Path,
    ) -> Vec<Units<'d>> {
        let mut packages = Vec::new();
        if file.section(".debug_cu_index").is_some() {
            packages.extend(self.package(file).ok());
        }
        let mut beside = path.as_os_str().to_owned();
        beside.push(".dwp");
        let mut candidates = vec![PathBuf::from(beside)];
        if path.extension().is_some_and(|extension| extension == "debug" || extension == "dbg") {
            candidates.push(path.with_extension("dwp"));
        }
        for candidate in candidates {
            // Every unit of an unreadable package is reported as missing.
            let Ok(file) = self.open::<Header>(&candidate) else { continue };
            packages.extend(self.package(&file).ok());
            self.budget = file.budget.get();
        }
        packages
    }

    /// The skeleton's split unit in a `.dwo` file, or the reason why there is none.
    fn in_objects<Header: FileHeader<Endian = Little>>(
        &mut self,
        skeleton: &Skeleton<'d>,
        path: &Path,
    ) -> Result<Split<'d>, String> {
        let mut why =
            "is not found: copy it, or the .dwp file, beside the debug file, or give its folder with \
                       --debug-dir"
                .to_owned();
        if self.searched > limits::SEARCHED {
            return Err("is not searched: the paths of other split units were too long".to_owned());
        }
        let folders = 1 + self.companions.debug_dirs().count();
        self.searched += folders * (skeleton.name.len() + skeleton.folder.len());
        for candidate in candidates(skeleton, path, self.companions) {
            // A file may be referred to by any number of paths.
            let Ok(candidate) = std::fs::canonicalize(candidate) else { continue };
            if !self.objects.contains_key(&candidate) {
                let units = self.open::<Header>(&candidate).and_then(|file| {
                    let units = self.object(&file);
                    self.budget = file.budget.get();
                    units
                });
                self.objects.insert(candidate.clone(), units);
            }
            match self.objects.get_mut(&candidate) {
                Some(Ok(units)) => match units.remove(&skeleton.id.0) {
                    Some(split) => return Ok(split),
                    None => why = format!("is not found: {} has no such unit", file_name(&candidate)),
                },
                Some(Err(error)) => why = format!("is not found: {}: {error}", file_name(&candidate)),
                None => {}
            }
        }
        Err(why)
    }

    /// The ELF file at `path`.
    fn open<Header: FileHeader<Endian = Little>>(
        &mut self,
        path: &Path,
    ) -> Result<ElfFile<'d, Header>, String> {
        let bytes = self.companions.open(path).map_err(|error| error.to_string())?;
        let file = ElfFile::<Header>::parse_any(bytes).map_err(|error| error.to_string())?;
        self.size += bytes.len() as u64;
        self.budget = self.budget.saturating_add(limits::DECOMPRESSED_RATIO * bytes.len() as u64);
        // All files share one budget.
        file.budget.set(self.budget);
        Ok(file)
    }

    /// The units of a `.dwo` file.
    fn object<Header: FileHeader<Endian = Little>>(
        &mut self,
        file: &ElfFile<'d, Header>,
    ) -> Result<Units<'d>, String> {
        let dwarf = file.dwarf(SectionId::dwo_name, self.companions);
        let mut dwarf = dwarf.map_err(|error| error.to_string())?;
        dwarf.make_dwo(self.parent);
        let mut tables = TableReader::new(dwarf.debug_abbrev.reader().len());
        let mut units = Units::default();
        let (dwarf, number) = (Arc::new(dwarf), self.next_file());
        for header in headers(&dwarf).units {
            if let Some((id, split)) = split_unit(&dwarf, header, number, &mut tables) {
                units.entry(id).or_insert(split);
            }
        }
        Ok(units)
    }

    /// The units of a `.dwp` file.
    fn package<Header: FileHeader<Endian = Little>>(
        &mut self,
        file: &ElfFile<'d, Header>,
    ) -> Result<Units<'d>, Box<dyn std::error::Error>> {
        let section = |id: SectionId| -> Result<Reader<'d>, Box<dyn std::error::Error>> {
            let Some(name) = id.dwo_name() else { return Ok(Reader::default()) };
            Ok(Reader::new(file.debug_section(name, self.companions)?, LittleEndian))
        };
        let package = DwarfPackage::load(section, Reader::default())?;
        let mut tables = TableReader::new(package.debug_abbrev.reader().len());
        // Units must not overlap. If the index of a package states more units than fit into it, the rest is ignored.
        let mut left = package.debug_info.reader().len();
        let mut units = Units::default();
        for row in 1..=package.cu_index.unit_count() {
            let Ok(dwarf) = package.cu_sections(row, self.parent) else { continue };
            // The id in the index may be wrong, so the unit's own id is used.
            let Ok(Some(header)) = dwarf.units().next() else { continue };
            let Some(rest) = left.checked_sub(header.length_including_self()) else { break };
            left = rest;
            let number = self.next_file();
            if let Some((id, split)) = split_unit(&Arc::new(dwarf), header, number, &mut tables) {
                units.entry(id).or_insert(split);
            }
        }
        Ok(units)
    }

    fn next_file(&mut self) -> u32 {
        self.files += 1;
        self.files
    }
}

/// The unit of `header` with its id, if it is a split unit.
fn split_unit<'d>(
    dwarf: &Arc<Dwarf<Reader<'d>>>,
    header: UnitHeader<Reader<'d>>,
    file: u32,
    tables: &mut TableReader,
) -> Option<(u64, Split<'d>)> {
    let table = match header.type_() {
        gimli::UnitType::SplitCompilation(_) => tables.read(dwarf, &header),
        // The id of DWARF 4, in the GNU extension.
        gimli::UnitType::Compilation if header.version() < 5 => tables.read(dwarf, &header),
        _ => return None,
    };
    let table = table.ok()?;
    let root = Root::read(dwarf, header, &table.abbreviations).ok()??;
    Some((root.unit.dwo_id?.0, Split { dwarf: Arc::clone(dwarf), header, table, file }))
}

/// The possible paths of the `.dwo` file of a skeleton unit of the debug file at `path`: the stated path, beside the
/// debug file, and in the debug folders.
fn candidates(skeleton: &Skeleton<'_>, path: &Path, companions: &Companions) -> Vec<PathBuf> {
    let (Some(name), Some(written_in)) = (path_of(skeleton.name), path_of(skeleton.folder)) else {
        return Vec::new();
    };
    let base = name.file_name().unwrap_or(OsStr::new(""));
    let in_folder =
        |folder: &Path| [folder.join(&written_in).join(&name), folder.join(&name), folder.join(base)];
    let beside = path.parent().unwrap_or(Path::new(""));
    let mut candidates =
        companions.within(path, [beside].into_iter().chain(companions.debug_dirs()).flat_map(in_folder));
    candidates.dedup();
    candidates
}
