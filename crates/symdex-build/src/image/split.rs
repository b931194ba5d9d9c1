//! Split DWARF: units in `.dwo` files, or in a `.dwp` file with others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{Dwarf, DwarfPackage, LittleEndian, Reader as _, Section as _, SectionId, UnitHeader};
use object::LittleEndian as Little;
use object::read::elf::FileHeader;
use symdex::ImageId;

use super::elf_file::ElfFile;
use crate::companions::{Candidate, Companions, NOT_FOUND, Reference, Refusal, path_of, shown};
use crate::dwarf::{Root, Skeleton, Table, TableReader, headers, skeletons};
use crate::error::Error;
use crate::image::Reader;
use crate::keyed::{KeyedMap, KeyedSet};
use crate::limits;

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

/// Finds the split units of the skeleton units of `dwarf`, the debug sections of `file` at `path`. A package may have
/// the name of `binary` instead. Returns the units, and how many bytes their files have. Adds units that are not found
/// to `missing`.
pub(super) fn find<'d, Header: FileHeader<Endian = Little>>(
    dwarf: &Dwarf<Reader<'d>>,
    file: &ElfFile<'d, Header>,
    path: &Path,
    binary: Option<&Path>,
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
    let candidates = package_candidates(file.build_id().as_ref(), path, binary, companions);
    let (named, given): (Vec<_>, Vec<_>) = candidates.into_iter().partition(|candidate| candidate.is_named);
    let mut files = SplitFiles {
        parent: dwarf,
        companions,
        packages: Vec::new(),
        named: named.into_iter(),
        given: given.into_iter(),
        given_ids: Vec::new(),
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
    /// Packages with the name or the id of the debug file. They are read if those before them have not all units.
    named: std::vec::IntoIter<Candidate>,
    /// Other packages that were given together with the debug file. Those of large folders are many and large, so one
    /// is read only if its index has a unit that no other file has.
    given: std::vec::IntoIter<Candidate>,
    /// Those of `given` that are not read, with the ids in their indexes.
    given_ids: Vec<(Candidate, KeyedSet<u64>)>,
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
            if self.companions.deadline().is_over() {
                return None;
            }
            let candidate = self.named.next().or_else(|| self.given_with::<Header>(id))?;
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

    /// A package that was given and is not read, and whose index has the unit with this id.
    fn given_with<Header: FileHeader<Endian = Little>>(&mut self, id: u64) -> Option<Candidate> {
        let companions = self.companions;
        let ids = |path: &Path| {
            let file = ElfFile::<Header>::parse_any(companions.open(path)?.ok()?).ok()?;
            Some(ids_in(file.contents(".debug_cu_index")?))
        };
        let given = std::mem::take(&mut self.given);
        self.given_ids.extend(given.filter_map(|given| ids(&given.path).map(|ids| (given, ids))));
        let at = self.given_ids.iter().position(|(_, ids)| ids.contains(&id))?;
        Some(self.given_ids.swap_remove(at).0)
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
            Some(refused) if why == NOT_FOUND => refused.clone(),
            _ => why,
        })
    }

    /// The ELF file at `path`. Returns `None` if there is no such file.
    fn open<Header: FileHeader<Endian = Little>>(
        &mut self,
        path: &Path,
    ) -> Option<Result<ElfFile<'d, Header>, Refusal>> {
        let bytes = self.companions.open(path)?;
        Some(bytes.and_then(|bytes| {
            let file = ElfFile::<Header>::parse_any(bytes).map_err(Refusal::unreadable)?;
            self.size += bytes.len() as u64;
            self.budget = self.budget.saturating_add(limits::DECOMPRESSED_RATIO * bytes.len() as u64);
            // All files share one budget.
            file.budget.set(self.budget);
            Ok(file)
        }))
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

/// The ids of the units in `.debug_cu_index` (DWARF 5, 7.3.5.3): a header, whose last number is the size of a hash
/// table, and the table. Empty slots are 0.
fn ids_in(index: &[u8]) -> KeyedSet<u64> {
    let Some((header, table)) = index.split_first_chunk::<16>() else { return KeyedSet::default() };
    let slots = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    let ids = table.as_chunks::<8>().0.iter().take(slots as usize);
    ids.map(|id| u64::from_le_bytes(*id)).filter(|id| *id != 0).collect()
}

/// The packages that may belong to the debug file at `path`: `FILE.dwp`, also for `FILE.debug`, `BINARY.dwp`, those
/// with its build id, and those that were given.
fn package_candidates(
    id: Option<&ImageId>,
    path: &Path,
    binary: Option<&Path>,
    companions: &Companions,
) -> Vec<Candidate> {
    let of = |path: &Path, is_any_given| {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".dwp");
        let mut paths = vec![PathBuf::from(name)];
        if path.extension().is_some_and(|extension| extension == "debug" || extension == "dbg") {
            paths.extend(path.with_extension("dwp").file_name().map(PathBuf::from));
        }
        let build_id = id.map(|id| (id, &["dwp", "debug.dwp"][..]));
        companions.candidates(&Reference { from: path, paths, build_id, is_any_given })
    };
    let mut candidates = binary.map_or_else(Vec::new, |binary| of(binary, false));
    candidates.extend(of(path, true));
    candidates
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
