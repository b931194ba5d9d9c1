//! The abbreviation tables of units, and those of them that are not kept in memory.
//!
//! dsymutil writes one table for all units. In an ELF file each unit has its own, and 20,000 units have a gigabyte of
//! them. So only tables up to a certain total size stay in memory. The others are read again when entries of their unit
//! are read. Tables that units share always stay in memory, because any number of units could need them again and
//! again.

use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use gimli::{Abbreviation, Abbreviations, Dwarf, Encoding, Reader as _, Section as _, UnitHeader, constants};
use rustc_hash::FxHashMap;

use super::roots::offset_of;
use super::shapes::Shapes;
use crate::image::Reader;
use crate::keyed::KeyedMap;
use crate::limits;
use crate::report::Problems;

/// An abbreviation table.
pub(crate) struct Table {
    pub(crate) abbreviations: Arc<Abbreviations>,
    /// How many attributes all abbreviations have, and about how many bytes of memory the table takes once it is
    /// compiled.
    pub(super) attributes: usize,
    pub(super) size: usize,
    /// The encoding that the table is compiled for, that of the first unit.
    encoding: Encoding,
    shapes: OnceLock<Shapes>,
}

impl Table {
    pub(super) fn new(abbreviations: Arc<Abbreviations>, encoding: Encoding) -> Self {
        let count = |(all, attributes), one: &Abbreviation| (all + 1, attributes + one.attributes().len());
        let (all, attributes) = (1..).map_while(|code| abbreviations.get(code)).fold((0, 0), count);
        let (size, shapes) = (memory_of(all, attributes), OnceLock::new());
        Self { abbreviations, attributes, size, encoding, shapes }
    }

    /// The compiled table. It has no shapes if attributes take other numbers of bytes in `encoding` than in that of the
    /// first unit: compiling a table for several encodings would take many times its size.
    pub(super) fn shapes(&self, encoding: Encoding) -> &Shapes {
        static NONE: LazyLock<Shapes> = LazyLock::new(Shapes::default);
        let sizes = |of: Encoding| (of.address_size, of.format, of.version == 2);
        if sizes(encoding) != sizes(self.encoding) {
            return &NONE;
        }
        self.shapes.get_or_init(|| Shapes::new(&self.abbreviations, self.encoding))
    }
}

/// About how many bytes of memory a compiled table takes.
fn memory_of(abbreviations: usize, attributes: usize) -> usize {
    2 * size_of::<Abbreviation>() * abbreviations + 24 * attributes
}

/// The table of a unit.
pub(crate) enum UnitTable {
    Kept(Arc<Table>),
    /// It is read when it is needed.
    Recent(Arc<RecentTables>),
}

impl UnitTable {
    /// The table of the unit of `header`.
    pub(super) fn get<'d>(
        &self,
        dwarf: &Dwarf<Reader<'d>>,
        header: &UnitHeader<Reader<'d>>,
    ) -> gimli::Result<TableRef<'_>> {
        Ok(match self {
            Self::Kept(table) => TableRef::Kept(table),
            Self::Recent(recent) => TableRef::Read(recent.get(dwarf, header)?),
        })
    }
}

/// A table while entries are read.
pub(crate) enum TableRef<'a> {
    Kept(&'a Table),
    Read(Arc<Table>),
}

impl Deref for TableRef<'_> {
    type Target = Table;

    fn deref(&self) -> &Table {
        match self {
            Self::Kept(table) => table,
            Self::Read(table) => table,
        }
    }
}

/// Tables that were read a short while ago.
pub(crate) struct RecentTables {
    /// How many bytes they may take.
    most: usize,
    /// The tables by their offsets, and how many bytes they take.
    tables: Mutex<(FxHashMap<usize, Arc<Table>>, usize)>,
}

impl RecentTables {
    fn new(most: usize) -> Self {
        Self { most, tables: Mutex::default() }
    }

    /// The table that the unit of `header` refers to.
    pub(super) fn get<'d>(
        &self,
        dwarf: &Dwarf<Reader<'d>>,
        header: &UnitHeader<Reader<'d>>,
    ) -> gimli::Result<Arc<Table>> {
        let offset = header.debug_abbrev_offset().0;
        let tables = || self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = tables().0.get(&offset) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(Table::new(dwarf.abbreviations(header)?, header.encoding()));
        let (by_offset, size) = &mut *tables();
        if size.saturating_add(table.size) > self.most {
            by_offset.clear();
            *size = 0;
        }
        if by_offset.insert(offset, Arc::clone(&table)).is_none() {
            *size += table.size;
        }
        Ok(table)
    }
}

/// The abbreviation tables of the units of a file.
pub(crate) struct Tables {
    /// By their offsets. `None` is a table that is not kept.
    by_offset: FxHashMap<usize, Option<Arc<Table>>>,
    recent: Arc<RecentTables>,
    /// About how many bytes of memory they may take, those that are not kept included.
    pub(super) size: usize,
}

impl Tables {
    /// The table that the unit of `header` refers to. Returns `None` if it cannot be read.
    pub(super) fn of(&self, header: &UnitHeader<Reader<'_>>) -> Option<UnitTable> {
        Some(match self.by_offset.get(&header.debug_abbrev_offset().0)? {
            Some(table) => UnitTable::Kept(Arc::clone(table)),
            None => UnitTable::Recent(Arc::clone(&self.recent)),
        })
    }
}

/// The abbreviation tables of units with these headers. Tables of one unit each are kept until the kept ones take
/// `keep` bytes of memory. Those that are not kept were not read, and may be damaged.
pub(crate) fn tables<'d>(
    dwarf: &Dwarf<Reader<'d>>,
    headers: &[UnitHeader<Reader<'d>>],
    keep: usize,
    problems: &mut Problems,
) -> Tables {
    let recent = keep / 2;
    let mut units_of: FxHashMap<usize, usize> = FxHashMap::default();
    headers.iter().for_each(|header| *units_of.entry(header.debug_abbrev_offset().0).or_default() += 1);
    let mut reader = TableReader::new(dwarf.debug_abbrev.reader().len());
    let (mut by_offset, mut size, mut is_kept) = (FxHashMap::default(), 0usize, true);
    for header in headers {
        let offset = header.debug_abbrev_offset().0;
        if by_offset.contains_key(&offset) {
            continue;
        }
        let table = reader.check(dwarf, header).and_then(|memory| {
            let keeps = size < keep || units_of[&offset] > 1 || memory > recent;
            keeps.then(|| parse(dwarf, header)).transpose()
        });
        match table {
            Ok(table) => {
                is_kept &= table.is_some();
                size = size.saturating_add(table.as_ref().map_or(0, |table| table.size));
                by_offset.insert(offset, table);
            }
            Err(error) if error.is_limit => problems.unit_limit(offset_of(header), &error.text),
            Err(error) => problems.unit(offset_of(header), &error.text),
        }
    }
    let size = size.saturating_add(if is_kept { 0 } else { recent });
    Tables { by_offset, recent: Arc::new(RecentTables::new(recent)), size }
}

fn parse<'d>(dwarf: &Dwarf<Reader<'d>>, header: &UnitHeader<Reader<'d>>) -> Result<Arc<Table>, TableError> {
    let table = dwarf.abbreviations(header);
    let table = table.map_err(|error| TableError { text: error.to_string(), is_limit: false })?;
    Ok(Arc::new(Table::new(table, header.encoding())))
}

/// Reads abbreviation tables. A table that units share is read once.
///
/// Tables may overlap, so a small file could take any amount of memory. Once the tables read have a few times the size
/// of their section, all further tables are rejected. Units with a rejected table are left out.
pub(crate) struct TableReader {
    /// How many bytes of tables may still be read.
    left: usize,
    /// The tables by section address, section size, and table offset. Units of a package may have separate sections.
    tables: KeyedMap<(usize, usize, usize), Arc<Table>>,
}

impl TableReader {
    /// A reader for tables in a section or file of `size` bytes.
    pub(crate) fn new(size: usize) -> Self {
        Self { left: size.saturating_mul(4).saturating_add(1 << 20), tables: KeyedMap::default() }
    }

    /// The table that the unit of `header` refers to.
    pub(crate) fn read<'d>(
        &mut self,
        dwarf: &Dwarf<Reader<'d>>,
        header: &UnitHeader<Reader<'d>>,
    ) -> Result<Arc<Table>, TableError> {
        let section = dwarf.debug_abbrev.reader().slice();
        let place = (section.as_ptr().addr(), section.len(), header.debug_abbrev_offset().0);
        if let Some(table) = self.tables.get(&place) {
            return Ok(Arc::clone(table));
        }
        self.check(dwarf, header)?;
        let table = parse(dwarf, header)?;
        self.tables.insert(place, Arc::clone(&table));
        Ok(table)
    }

    /// About how many bytes of memory the table of the unit of `header` takes, if the limits allow to read it.
    fn check<'d>(
        &mut self,
        dwarf: &Dwarf<Reader<'d>>,
        header: &UnitHeader<Reader<'d>>,
    ) -> Result<usize, TableError> {
        let section = dwarf.debug_abbrev.reader().slice();
        // A damaged table counts too, because reading it takes time.
        let rest = section.get(header.debug_abbrev_offset().0..).unwrap_or_default();
        let extent = Extent::of(rest, self.left);
        self.left -= extent.size;
        if self.left == 0 {
            let text = "its abbreviations overlap too many others".to_owned();
            return Err(TableError { text, is_limit: true });
        }
        if extent.most > limits::ATTRIBUTES {
            let text = format!(
                "an abbreviation has {} attributes, the limit is {}",
                extent.most,
                limits::ATTRIBUTES
            );
            return Err(TableError { text, is_limit: true });
        }
        Ok(memory_of(extent.abbreviations, extent.attributes))
    }
}

/// Why a table is not read.
#[derive(Debug)]
pub(crate) struct TableError {
    text: String,
    /// Whether it exceeds a limit, as opposed to damage.
    is_limit: bool,
}

/// What a table has (DWARF 5, 7.5.3). For a damaged table, it is that of its readable part.
#[derive(Default)]
struct Extent {
    /// In bytes of the section.
    size: usize,
    abbreviations: usize,
    attributes: usize,
    /// The greatest number of attributes of an abbreviation.
    most: usize,
}

impl Extent {
    /// That of the table at the beginning of `bytes`, of which at most `limit` are read.
    fn of(bytes: &[u8], limit: usize) -> Self {
        let bytes = &bytes[..bytes.len().min(limit)];
        let (mut rest, mut extent) = (Reader::new(bytes, gimli::LittleEndian), Self::default());
        let _end = extent.skip(&mut rest);
        extent.size = bytes.len() - rest.len();
        extent
    }

    fn skip(&mut self, table: &mut Reader<'_>) -> gimli::Result<()> {
        while table.read_uleb128()? != 0 {
            self.abbreviations += 1;
            let (_tag, _has_children) = (table.read_uleb128()?, table.read_u8()?);
            for attributes in 0.. {
                self.most = attributes.max(self.most);
                let (attribute, form) = (table.read_uleb128()?, table.read_uleb128()?);
                if (attribute, form) == (0, 0) {
                    break;
                }
                self.attributes += 1;
                if form == u64::from(constants::DW_FORM_implicit_const.0) {
                    table.read_sleb128()?;
                }
            }
        }
        Ok(())
    }
}
