//! Split DWARF: units in `.dwo` files, or in a `.dwp` file with others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{Dwarf, DwarfPackage, LittleEndian, Reader as _, Section as _, SectionId, UnitHeader};
use object::LittleEndian as Little;
use object::read::elf::FileHeader;

use super::elf_file::ElfFile;
use crate::companions::{Candidate, Companions, NOT_FOUND, Reference, Refusal, path_of, shown};
use crate::dwarf::{Root, Skeleton, Table, TableReader, headers, skeletons};
use crate::error::Error;
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
        packages: Vec::new(),
        unread: package_candidates(file, path, companions),
        refused: None,
        objects: HashMap::new(),
        files: 0,
        size: 0,
        searched: 0,
        budget: file.budget.get(),
    };
    if file.section(".debug_cu_index").is_some() {
        // Every unit of an unreadable package is reported as missing.
        let own = files.package(file).ok();
        files.packages.extend(own);
    }
    let mut not_named = 0;
    for skeleton in skeletons {
        if companions.deadline().is_over() {
            // The image fails to load.
            break;
        }
        let packed = files.in_packages::<Header>(skeleton.id.0);
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

/// The split units of one file.
#[derive(Default)]
struct Units<'d> {
    /// The units by their ids. Each is used once, however many skeletons refer to it.
    unused: KeyedMap<u64, Split<'d>>,
    /// The id of the first unit.
    first: Option<u64>,
}

impl<'d> Units<'d> {
    fn add(&mut self, (id, split): (u64, Split<'d>)) {
        self.first.get_or_insert(id);
        self.unused.entry(id).or_insert(split);
    }

    /// What the file has instead of a unit that it lacks.
    fn others(&self) -> Refusal {
        Refusal::Other(match self.first {
            Some(id) => format!("other units, the first with the dwo id {id:016x}"),
            None => "no split units".to_owned(),
        })
    }
}

/// The files that split units are searched in.
struct SplitFiles<'a, 'd> {
    parent: &'a Dwarf<Reader<'d>>,
    companions: &'d Companions,
    /// The units of the packages that were read.
    packages: Vec<Units<'d>>,
    /// Packages that are read if the others have not all units.
    unread: std::vec::IntoIter<Candidate>,
    /// Why the first package with the name of the debug file has not all units.
    refused: Option<String>,
    /// The `.dwo` files that were read, or the reasons why they cannot be read.
    objects: HashMap<PathBuf, Result<Units<'d>, Refusal>>,
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
    /// The split unit with this id in a package. Returns `None` if no package has it.
    fn in_packages<Header: FileHeader<Endian = Little>>(&mut self, id: u64) -> Option<Split<'d>> {
        loop {
            if let Some(split) = self.packages.iter_mut().find_map(|package| package.unused.remove(&id)) {
                return Some(split);
            }
            let candidate = self.unread.next().filter(|_| !self.companions.deadline().is_over())?;
            let Some(file) = self.open::<Header>(&candidate.path) else { continue };
            let units = file.and_then(|file| {
                let units = self.package(&file).map_err(Refusal::unreadable);
                self.budget = file.budget.get();
                units
            });
            if candidate.is_named {
                let refusal = units.as_ref().map_or_else(Refusal::clone, Units::others);
                self.refused.get_or_insert(refusal.of(&candidate.name));
            }
            self.packages.extend(units.ok());
        }
    }

    /// The skeleton's split unit in a `.dwo` file, or the reason why there is none.
    fn in_objects<Header: FileHeader<Endian = Little>>(
        &mut self,
        skeleton: &Skeleton<'d>,
        path: &Path,
    ) -> Result<Split<'d>, String> {
        if self.searched > limits::SEARCHED {
            return Err("is not searched: the paths of other split units were too long".to_owned());
        }
        let folders = 1 + self.companions.debug_dirs().count();
        self.searched += folders * (skeleton.name.len() + skeleton.folder.len());
        let reference = Reference { from: path, paths: paths(skeleton), build_id: None, is_any_given: false };
        let found = self.companions.find(&reference, |candidate| {
            // A file may be referred to by any number of paths.
            let candidate = std::fs::canonicalize(candidate).ok()?;
            if !self.objects.contains_key(&candidate) {
                let units = self.open::<Header>(&candidate)?.and_then(|file| {
                    let units = self.object(&file).map_err(Refusal::unreadable);
                    self.budget = file.budget.get();
                    units
                });
                self.objects.insert(candidate.clone(), units);
            }
            Some(match self.objects.get_mut(&candidate)? {
                Ok(units) => units.unused.remove(&skeleton.id.0).ok_or_else(|| units.others()),
                Err(refusal) => Err(refusal.clone()),
            })
        });
        found.map_err(|why| match &self.refused {
            _ if why != NOT_FOUND => why,
            Some(refused) => refused.clone(),
            None => "is not found: copy it, or the .dwp file, beside the debug file, or give its folder with --debug-dir"
                .to_owned(),
        })
    }

    /// The ELF file at `path`. Returns `None` if there is no such file.
    fn open<Header: FileHeader<Endian = Little>>(
        &mut self,
        path: &Path,
    ) -> Option<Result<ElfFile<'d, Header>, Refusal>> {
        let bytes = self.companions.open(path).ok()?;
        let file = match ElfFile::<Header>::parse_any(bytes) {
            Ok(file) => file,
            Err(error) => return Some(Err(Refusal::unreadable(error))),
        };
        self.size += bytes.len() as u64;
        self.budget = self.budget.saturating_add(limits::DECOMPRESSED_RATIO * bytes.len() as u64);
        // All files share one budget.
        file.budget.set(self.budget);
        Some(Ok(file))
    }

    /// The units of a `.dwo` file.
    fn object<Header: FileHeader<Endian = Little>>(
        &mut self,
        file: &ElfFile<'d, Header>,
    ) -> Result<Units<'d>, Error> {
        let mut dwarf = file.dwarf(SectionId::dwo_name, self.companions)?;
        dwarf.make_dwo(self.parent);
        let mut tables = TableReader::new(dwarf.debug_abbrev.reader().len());
        let mut units = Units::default();
        let (dwarf, number) = (Arc::new(dwarf), self.next_file());
        for header in headers(&dwarf).units {
            split_unit(&dwarf, header, number, &mut tables).into_iter().for_each(|unit| units.add(unit));
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
            let unit = split_unit(&Arc::new(dwarf), header, number, &mut tables);
            unit.into_iter().for_each(|unit| units.add(unit));
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

/// The packages that may belong to `file` at `path`: `FILE.dwp`, also for `FILE.debug`, those with its build id, and those
/// that were given.
fn package_candidates<Header: FileHeader<Endian = Little>>(
    file: &ElfFile<'_, Header>,
    path: &Path,
    companions: &Companions,
) -> std::vec::IntoIter<Candidate> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".dwp");
    let mut paths = vec![PathBuf::from(name)];
    if path.extension().is_some_and(|extension| extension == "debug" || extension == "dbg") {
        paths.extend(path.with_extension("dwp").file_name().map(PathBuf::from));
    }
    let id = file.build_id();
    let build_id = id.as_ref().map(|id| (id, &["dwp", "debug.dwp"][..]));
    companions.candidates(&Reference { from: path, paths, build_id, is_any_given: true }).into_iter()
}

/// The possible paths of the `.dwo` file of a skeleton unit: those that it states, and the name alone.
fn paths(skeleton: &Skeleton<'_>) -> Vec<PathBuf> {
    let (Some(name), Some(written_in)) = (path_of(skeleton.name), path_of(skeleton.folder)) else {
        return Vec::new();
    };
    let Some(base) = name.file_name().map(PathBuf::from) else { return Vec::new() };
    let mut paths = vec![written_in.join(&name), name, base];
    paths.dedup();
    paths
}
