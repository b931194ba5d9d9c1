//! The local variables of a function.

use std::fmt;

use gimli::{
    AttributeValue, DebuggingInformationEntry, DwAt, Expression, Operation, RawLocListEntry, Register,
    UnitOffset, constants,
};

use super::claims::Claims;
use super::lines::Lines;
use super::origins::Origins;
use super::type_size::type_size;
use super::units::{UnitEntry, Units};
use super::walk::Walker;
use crate::error::Error;
use crate::image::Image;
use crate::limits::{self, Reads, UnitError, UnitLimits};
use crate::memory::Memory;
use crate::options::MAX_MEMORY;
use crate::reader::Reader;
use crate::report::Problems;

/// [`Local::tag_offset`]. clang states it for code that tags memory: `-fsanitize=hwaddress` and `memtag-stack`.
const DW_AT_LLVM_TAG_OFFSET: DwAt = DwAt(0x3e03);

/// An entry of the debug information.
type Entry<'d> = DebuggingInformationEntry<Reader<'d>>;

/// A local variable or a parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// The name of its function, without scopes and not mangled.
    pub function: Option<Vec<u8>>,
    /// Its own name.
    pub name: Option<Vec<u8>>,
    /// The path of the source file that declares it, as [`symdex::Frame::file`] has paths.
    pub file: Option<Vec<u8>>,
    /// The line of the declaration, 1-based.
    pub line: Option<u64>,
    /// How many bytes after the frame base it is, if it is in the stack frame of the function.
    pub frame_offset: Option<i64>,
    /// The size of its type in bytes.
    pub size: Option<u64>,
    /// The number that is combined with the tag of the stack frame to the tag of its memory, if it is tagged
    /// (`DW_AT_LLVM_tag_offset`).
    pub tag_offset: Option<u64>,
}

/// Finds the local variables of the functions of an image.
pub struct Locals<'a, 'd> {
    image: &'a Image<'d>,
    units: Units<'d>,
    claims: Claims,
}

impl fmt::Debug for Locals<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Locals({:?})", self.image)
    }
}

impl<'a, 'd> Locals<'a, 'd> {
    /// Reads the headers and root entries of the units of `image`, and the functions of units whose root entry states
    /// no code.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] if the list of units takes too much memory.
    pub fn of(image: &'a Image<'d>) -> Result<Self, Error> {
        let memory = Memory::new(MAX_MEMORY);
        let limits = UnitLimits::without_deadline(image, &memory);
        let units = Units::read(image, limits, &mut Problems::default())?;
        let claims = Claims::new(image, &units, limits);
        Ok(Self { image, units, claims })
    }

    /// The local variables and parameters of the function at the address `svma`, as the file states addresses, and of
    /// the functions that are inlined into it, in the order of the debug information. If an inlined function is at
    /// `svma`, they are those of the innermost one. Empty if no function of the debug information is there.
    ///
    /// Each call reads the functions of the unit that has the code. Of a damaged unit, what comes before the damage is
    /// used. A list of more than 16 MiB is cut.
    #[must_use]
    pub fn at(&self, svma: u64) -> Vec<Local> {
        let Some((offset, _)) = self.image.executable_part(svma, svma.saturating_add(1)) else {
            return Vec::new();
        };
        let units = self.claims.units_at(&[offset]);
        let mut functions = units.into_iter().filter_map(|unit| self.function_at(unit, offset));
        let Some((unit, function)) = functions.next() else { return Vec::new() };
        let mut walk = Walk::new(self, unit);
        // The variables before damage or a limit are the answer.
        let _end = walk.run(function);
        walk.found
    }

    /// The function or inlined function of unit number `unit` whose range at `offset` starts last; of several, the last
    /// one, which is inlined into the others.
    fn function_at(&self, unit: usize, offset: u64) -> Option<(usize, UnitOffset)> {
        let entry = &self.units.all[unit];
        let (mut left, mut last) = (self.image.range_budget(), None);
        let table = entry.table().ok()?;
        let mut entries = Walker::new(entry, &table).ok()?;
        while let Ok(Some(found)) = entries.next() {
            if !found.states_code {
                continue;
            }
            let each = |start, end| {
                let range = self.image.executable_part(start, end);
                if let Some((start, _)) = range.filter(|(start, end)| (*start..*end).contains(&offset))
                    && last.is_none_or(|(last, _)| last <= start)
                {
                    last = Some((start, found.offset));
                }
            };
            // If a list is damaged, the ranges before the damage are used.
            let _damage = entries.attributes().each_range(&entry.dwarf, &entry.unit, &mut left, each);
        }
        last.map(|(_, offset)| (unit, offset))
    }
}

/// A function that the walk is in.
struct Function<'d> {
    /// The depth of its entry.
    depth: isize,
    name: Option<&'d [u8]>,
    /// The register that is its frame base. `None` for an inlined function, and if the frame base is computed.
    frame_base: Option<Register>,
}

/// A walk through the entries of a function.
struct Walk<'a, 'd> {
    locals: &'a Locals<'a, 'd>,
    number: usize,
    unit: &'a UnitEntry<'d>,
    reads: Reads,
    /// The functions that the current entry is in, outermost first.
    functions: Vec<Function<'d>>,
    /// The files of the unit with this number, which was needed last.
    lines: Option<(usize, Lines<'d>)>,
    found: Vec<Local>,
    /// How many bytes `found` may still grow by.
    left: usize,
}

impl<'a, 'd> Walk<'a, 'd> {
    fn new(locals: &'a Locals<'a, 'd>, number: usize) -> Self {
        let unit = &locals.units.all[number];
        let reads = Reads::of_unit(locals.units.size(number));
        let (functions, lines, found, left) = (Vec::new(), None, Vec::new(), limits::LOCALS);
        Self { locals, number, unit, reads, functions, lines, found, left }
    }

    /// Visits the entry at `function` and all below it. As for llvm-symbolizer, parameters of methods of local types
    /// are local variables, too.
    fn run(&mut self, function: UnitOffset) -> Result<(), UnitError> {
        let table = self.unit.table()?;
        let (mut entries, mut entry) = (self.unit.entries(&table, Some(function))?, Entry::default());
        loop {
            let is_entry = entries.read_entry(&mut entry)?;
            self.reads.add(1 + entry.attrs().len())?;
            while self.functions.pop_if(|function| entry.depth() <= function.depth).is_some() {}
            match entry.tag() {
                _ if !is_entry => {}
                constants::DW_TAG_variable | constants::DW_TAG_formal_parameter => self.variable(&entry)?,
                constants::DW_TAG_inlined_subroutine => self.enter(&entry),
                // The walk begins with a function. Functions in it are types' methods.
                _ if entry.depth() == 0 => self.enter(&entry),
                _ => {}
            }
            if entries.next_depth() <= 0 {
                return Ok(());
            }
        }
    }

    fn enter(&mut self, entry: &Entry<'d>) {
        let Locals { image, units, .. } = self.locals;
        let name = Origins::read(units, (self.number, entry.offset()), &mut self.reads).name(image, units);
        let is_inlined = entry.tag() == constants::DW_TAG_inlined_subroutine;
        let frame_base = entry.attr_value(constants::DW_AT_frame_base).filter(|_| !is_inlined);
        let frame_base = frame_base.and_then(|value| match self.operations(value.exprloc_value()?)[..] {
            [Operation::Register { register }, ..] => Some(register),
            _ => None,
        });
        self.functions.push(Function { depth: entry.depth(), name, frame_base });
    }

    fn variable(&mut self, entry: &Entry<'d>) -> Result<(), UnitError> {
        let Locals { image, units, .. } = self.locals;
        let stated = Origins::read(units, (self.number, entry.offset()), &mut self.reads);
        let ty = stated.find(constants::DW_AT_type).and_then(|(unit, of)| units.entry(unit, of));
        let tag_offset = entry.attr_value(DW_AT_LLVM_TAG_OFFSET);
        let local = Local {
            function: self.functions.last().and_then(|function| function.name).map(<[u8]>::to_vec),
            name: stated.name(image, units).map(<[u8]>::to_vec),
            file: stated.file().and_then(|(unit, index)| self.path(unit, index)),
            line: stated.line(),
            frame_offset: entry
                .attr_value(constants::DW_AT_location)
                .and_then(|value| self.frame_offset(value)),
            size: ty.and_then(|ty| type_size(units, ty, &mut self.reads)),
            tag_offset: tag_offset.and_then(|value| value.udata_value()),
        };
        let text = [&local.function, &local.name, &local.file].map(|text| text.as_ref().map_or(0, Vec::len));
        let size = size_of::<Local>() + text.iter().sum::<usize>();
        self.left = self.left.checked_sub(size).ok_or(UnitError::TooManyReads)?;
        self.found.push(local);
        Ok(())
    }

    /// The path of file `index` of unit number `unit`.
    fn path(&mut self, unit: usize, index: u64) -> Option<Vec<u8>> {
        let Locals { image, units, .. } = self.locals;
        let entry = &units.all[unit];
        if self.lines.as_ref().is_none_or(|(of, _)| *of != unit) {
            let lines = Lines::without_rows(image, entry);
            self.reads.add(lines.files()).ok()?;
            self.lines = Some((unit, lines));
        }
        self.lines.as_ref()?.1.path(image, entry, index)
    }

    /// The distance from the frame base, in the first of the locations that are stated for a variable and that have
    /// one.
    fn frame_offset(&mut self, location: AttributeValue<Reader<'d>>) -> Option<i64> {
        if let Some(expression) = location.exprloc_value() {
            return self.offset_of(expression);
        }
        let UnitEntry { dwarf, unit, .. } = self.unit;
        let list = dwarf.attr_locations_offset(unit, location).ok()??;
        let mut list = dwarf.raw_locations(unit, list).ok()?;
        while let Ok(Some(entry)) = list.next() {
            self.reads.add(1).ok()?;
            let (RawLocListEntry::AddressOrOffsetPair { data, .. }
            | RawLocListEntry::StartxEndx { data, .. }
            | RawLocListEntry::StartxLength { data, .. }
            | RawLocListEntry::OffsetPair { data, .. }
            | RawLocListEntry::DefaultLocation { data }
            | RawLocListEntry::StartEnd { data, .. }
            | RawLocListEntry::StartLength { data, .. }) = entry
            else {
                continue;
            };
            if let Some(offset) = self.offset_of(data) {
                return Some(offset);
            }
        }
        None
    }

    /// The distance that an expression adds to the frame base, or to the register that is the frame base. What is there
    /// may be the address of the variable.
    fn offset_of(&self, expression: Expression<Reader<'d>>) -> Option<i64> {
        let operations = self.operations(expression);
        let ([first] | [first, Operation::Deref { space: false, .. }]) = &operations[..] else { return None };
        let frame_base = self.functions.last().and_then(|function| function.frame_base);
        match first {
            Operation::FrameOffset { offset } => Some(*offset),
            Operation::RegisterOffset { register, offset, .. } if Some(*register) == frame_base => {
                Some(*offset)
            }
            _ => None,
        }
    }

    /// The first three operations of an expression.
    fn operations(&self, expression: Expression<Reader<'d>>) -> Vec<Operation<Reader<'d>>> {
        let mut operations = expression.operations(self.unit.unit.encoding());
        std::iter::from_fn(|| operations.next().ok().flatten()).take(3).collect()
    }
}
