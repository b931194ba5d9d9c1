//! The functions and inlined subroutines of a unit, as its DIEs state them.

use gimli::{Abbreviation, Attribute, AttributeValue, DebugInfoOffset, EntriesRaw, UnitRef};
use symdex_build::Image;

use crate::budget::{Budget, TooMuch};
use crate::image::{Reader, executable_part, resolve};
use crate::intervals::{Interval, Intervals};

/// A function, by the numbers of its unit and of itself in [`Dies::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FunctionId {
    pub(crate) unit: u32,
    pub(crate) function: u32,
}

/// The name that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name<'d> {
    /// As an attribute or the symbol table states it.
    Stated(&'d [u8]),
    /// A plain name in a scope (number of the unit, number of its scope).
    Scoped(u32, u32, &'d [u8]),
    None,
}

/// A subprogram with code in the image.
pub(crate) struct Function<'d> {
    /// The number of its DIE: its offset, as if the `.debug_info` of all files were joined.
    pub(crate) die: usize,
    /// Image offsets, sorted. Adjacent ranges are joined.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// The image offset at which a call enters the function; `None` if it lies below the image or is not stated.
    pub(crate) entry: Option<u64>,
    /// The offset in `.debug_line` of the sequence with its rows, if it states one.
    pub(crate) line_sequence: Option<u64>,
    pub(crate) name: Name<'d>,
}

/// An inlined subroutine with code in the image.
pub(crate) struct Inlined<'d> {
    /// The number of its DIE.
    pub(crate) die: usize,
    pub(crate) function: u32,
    /// The number of the inlined subroutine around it, smaller than its own; `None` if only the function is around it.
    pub(crate) parent: Option<u32>,
    /// The same, but it may be one without code.
    pub(crate) stated_parent: Option<u32>,
    /// Whether it has no code of its own.
    pub(crate) is_empty: bool,
    pub(crate) name: Name<'d>,
    /// The file of the call, by its number in the unit's line program.
    pub(crate) call_file: Option<u64>,
    pub(crate) call_line: Option<u32>,
}

/// What the DIEs of a unit state.
#[derive(Default)]
pub(crate) struct Dies<'d> {
    pub(crate) functions: Vec<Function<'d>>,
    pub(crate) inlined: Vec<Inlined<'d>>,
    /// The ranges of `inlined` inside of those of the functions and inlined subroutines around them.
    pub(crate) by_address: Intervals,
    /// Their other ranges inside of those of their functions.
    pub(crate) outside: Intervals,
    /// Their ranges outside of those of their functions. They are not used.
    pub(crate) beyond: Intervals,
    /// Both ends (SVMAs) of every range of a subprogram or inlined subroutine, inside or outside of the image.
    pub(crate) addresses: Vec<u64>,
    /// Namespaces and types that contain subprograms: the number of the enclosing one, and the name.
    pub(crate) scopes: Vec<(Option<u32>, &'d [u8])>,
    /// The scope of each subprogram that has one, by the number of the subprogram's DIE.
    pub(crate) scope_of: rustc_hash::FxHashMap<usize, u32>,
    /// The unit's own ranges (SVMAs) as its root DIE states them. `root_has_list` says whether it states a list.
    pub(crate) in_root: Vec<(u64, u64)>,
    pub(crate) root_has_list: bool,
    /// Whether the unit's folder is named in the supplementary file.
    pub(crate) folder_is_supplementary: bool,
    /// Whether it is a partial unit. The line program that it names belongs to a unit that imports it.
    pub(crate) is_part: bool,
    /// The unit's own ranges (SVMAs) as `.debug_aranges` states them.
    pub(crate) in_aranges: Vec<(u64, u64)>,
    /// The error at which the reading of the DIEs stopped.
    pub(crate) error: Option<String>,
}

/// The DIEs around a DIE.
#[derive(Clone, Copy, Default)]
struct Within {
    function: Option<u32>,
    inlined: Option<u32>,
    stated_inlined: Option<u32>,
    scope: Option<u32>,
    /// The ranges of the innermost one with code: an index range of [`Walk::code`].
    code: (usize, usize),
    /// The same for the function.
    function_code: (usize, usize),
}

/// The attributes of a DIE that are used.
#[derive(Default)]
struct Attributes<'d> {
    low_pc: Option<u64>,
    high_pc: Option<AttributeValue<Reader<'d>>>,
    entry_pc: Option<AttributeValue<Reader<'d>>>,
    ranges: Option<AttributeValue<Reader<'d>>>,
    name: Option<&'d [u8]>,
    call_file: Option<u64>,
    call_line: Option<u32>,
    line_sequence: Option<u64>,
    folder_is_supplementary: bool,
}

/// The line sequence of a function, as LLVM states it. gimli has no name for it.
const DW_AT_LLVM_STMT_SEQUENCE: gimli::DwAt = gimli::DwAt(0x3e0c);
/// About how many bytes of memory a namespace, a type, a function or an inlined subroutine takes.
const SCOPE: u64 = 96;

struct Walk<'a, 'd> {
    unit: UnitRef<'a, Reader<'d>>,
    /// The number of the first byte of the file's `.debug_info`.
    base: usize,
    image: &'a Image<'d>,
    budget: &'a Budget,
    dies: Dies<'d>,
    /// The ranges of the inlined subroutines, inside and outside of those around them.
    ranges: Vec<Interval>,
    outside: Vec<Interval>,
    beyond: Vec<Interval>,
    /// The ranges of each function and inlined subroutine, sorted, adjacent ones joined.
    code: Vec<(u64, u64)>,
}

/// Reads the DIEs of `unit` in order, up to the first error. `base` is the number of the first byte of the file's
/// `.debug_info`.
pub(crate) fn read<'d>(
    unit: UnitRef<'_, Reader<'d>>,
    base: usize,
    image: &Image<'d>,
    budget: &Budget,
) -> Result<Dies<'d>, TooMuch> {
    let dies = Dies::default();
    let (ranges, outside, beyond, code) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut walk = Walk { unit, base, image, budget, dies, ranges, outside, beyond, code };
    let walked = walk.walk()?;
    let Walk { mut dies, ranges, outside, beyond, .. } = walk;
    dies.error = walked.err().map(|error| error.to_string());
    dies.by_address = Intervals::new(ranges);
    dies.outside = Intervals::new(outside);
    dies.beyond = Intervals::new(beyond);
    dies.addresses.sort_unstable();
    dies.addresses.dedup();
    dies.root_has_list = matches!(root_has_ranges(unit), Ok(true));
    Ok(dies)
}

impl Dies<'_> {
    /// The DIEs of a split unit, with the unit's ranges from those of its `skeleton`.
    pub(crate) fn with_skeleton(mut self, skeleton: Self) -> Self {
        (self.in_root, self.root_has_list) = (skeleton.in_root, skeleton.root_has_list);
        // Some skeletons have inlined subroutines. Their addresses are compared, too.
        self.addresses.extend(skeleton.addresses);
        self.addresses.sort_unstable();
        self.addresses.dedup();
        self
    }

    /// Removes functions and inlined subroutines. The remaining DIEs are those to which other units can refer.
    pub(crate) fn without_code(self) -> Self {
        Self { scopes: self.scopes, scope_of: self.scope_of, ..Self::default() }
    }
}

fn root_has_ranges(unit: UnitRef<'_, Reader<'_>>) -> gimli::Result<bool> {
    let mut entries = unit.entries_raw(None)?;
    let root = entries.read_abbreviation()?;
    let is_ranges = |spec: &gimli::AttributeSpecification| spec.name() == gimli::DW_AT_ranges;
    Ok(root.is_some_and(|root| root.attributes().iter().any(is_ranges)))
}

impl<'d> Walk<'_, 'd> {
    fn walk(&mut self) -> Result<gimli::Result<()>, TooMuch> {
        let mut entries = match self.unit.entries_raw(None) {
            Ok(entries) => entries,
            Err(error) => return Ok(Err(error)),
        };
        // The DIEs around the next one, with their depths. A damaged unit can make a depth negative.
        let mut within: Vec<(isize, Within)> = Vec::new();
        while !entries.is_empty() {
            let offset = entries.next_offset();
            let depth = entries.next_depth();
            let read = entries.read_abbreviation().and_then(|abbreviation| {
                abbreviation.map(|a| Ok((a, self.attributes(&mut entries, a)?))).transpose()
            });
            let (abbreviation, attributes) = match read {
                Ok(Some(read)) => read,
                Ok(None) => continue,
                Err(error) => return Ok(Err(error)),
            };
            while within.pop_if(|(above, _)| *above >= depth).is_some() {}
            self.budget.check_depth(within.len())?;
            let parent = within.last().map_or(Within::default(), |(_, within)| *within);
            let die = offset.to_debug_info_offset(&self.unit.header).map_or(0, |DebugInfoOffset(die)| die);
            let die = self.base + die;
            within.push((depth, self.die(die, abbreviation.tag(), attributes, parent)?));
        }
        Ok(Ok(()))
    }

    fn attributes(
        &self,
        entries: &mut EntriesRaw<'_, Reader<'d>>,
        abbreviation: &Abbreviation,
    ) -> gimli::Result<Attributes<'d>> {
        let wanted = matches!(
            abbreviation.tag(),
            gimli::DW_TAG_subprogram
                | gimli::DW_TAG_inlined_subroutine
                | gimli::DW_TAG_compile_unit
                | gimli::DW_TAG_partial_unit
                | gimli::DW_TAG_skeleton_unit
        ) || is_scope(abbreviation.tag());
        let mut attributes = Attributes::default();
        if !wanted {
            entries.skip_attributes(abbreviation.attributes())?;
            return Ok(attributes);
        }
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec)?;
            self.attribute(&attribute, &mut attributes);
        }
        Ok(attributes)
    }

    fn attribute(&self, attribute: &Attribute<Reader<'d>>, attributes: &mut Attributes<'d>) {
        let value = attribute.value();
        match attribute.name() {
            gimli::DW_AT_low_pc => attributes.low_pc = self.unit.attr_address(value).ok().flatten(),
            gimli::DW_AT_high_pc => attributes.high_pc = Some(value),
            gimli::DW_AT_entry_pc => attributes.entry_pc = Some(value),
            gimli::DW_AT_ranges => attributes.ranges = Some(value),
            gimli::DW_AT_name => {
                let name = self.unit.attr_string(value).ok();
                attributes.name = name.map(|name| resolve(self.image, name.slice()));
            }
            gimli::DW_AT_comp_dir => {
                attributes.folder_is_supplementary = matches!(value, AttributeValue::DebugStrRefSup(_));
            }
            gimli::DW_AT_call_file => {
                attributes.call_file = match value {
                    AttributeValue::FileIndex(file) => Some(file),
                    _ => attribute.udata_value(),
                };
            }
            gimli::DW_AT_call_line => {
                attributes.call_line = attribute.udata_value().and_then(|line| u32::try_from(line).ok());
            }
            DW_AT_LLVM_STMT_SEQUENCE => {
                attributes.line_sequence = match value {
                    AttributeValue::SecOffset(offset) => Some(offset as u64),
                    _ => attribute.udata_value(),
                };
            }
            _ => {}
        }
    }

    /// Stores what the DIE states. Returns the DIEs around its children.
    fn die(
        &mut self,
        die: usize,
        tag: gimli::DwTag,
        attributes: Attributes<'d>,
        parent: Within,
    ) -> Result<Within, TooMuch> {
        match tag {
            gimli::DW_TAG_subprogram => self.subprogram(die, &attributes, parent),
            gimli::DW_TAG_inlined_subroutine => self.inlined(die, &attributes, parent),
            gimli::DW_TAG_compile_unit | gimli::DW_TAG_partial_unit | gimli::DW_TAG_skeleton_unit => {
                self.dies.in_root = self.stated_ranges(&attributes)?;
                self.dies.folder_is_supplementary = attributes.folder_is_supplementary;
                self.dies.is_part = tag == gimli::DW_TAG_partial_unit;
                Ok(parent)
            }
            tag if is_scope(tag) => {
                let name = attributes.name.unwrap_or(match tag {
                    gimli::DW_TAG_namespace => b"(anonymous namespace)",
                    _ => b"(anonymous)",
                });
                self.budget.take_memory(SCOPE)?;
                let scope = number(self.dies.scopes.len());
                self.dies.scopes.push((parent.scope, name));
                Ok(Within { scope: Some(scope), ..parent })
            }
            _ => Ok(parent),
        }
    }

    fn subprogram(
        &mut self,
        die: usize,
        attributes: &Attributes<'d>,
        parent: Within,
    ) -> Result<Within, TooMuch> {
        if let Some(scope) = parent.scope {
            self.dies.scope_of.insert(die, scope);
        }
        self.budget.take_memory(SCOPE)?;
        let stated = self.stated_ranges(attributes)?;
        let entry = self.entry(attributes, stated.first().map(|first| first.0));
        self.dies.addresses.extend(stated.iter().flat_map(|(start, end)| [*start, *end]));
        let parts = stated.iter().filter_map(|&(start, end)| executable_part(self.image, start, end));
        let ranges = joined(parts.collect());
        let first = self.code.len();
        self.code.extend_from_slice(&ranges);
        let code = (first, self.code.len());
        let function = (!ranges.is_empty()).then(|| {
            let line_sequence = attributes.line_sequence;
            self.dies.functions.push(Function { die, ranges, entry, line_sequence, name: Name::None });
            number(self.dies.functions.len() - 1)
        });
        // A nested subprogram is an independent function, whether or not the one around it has code.
        Ok(Within { function, scope: parent.scope, code, function_code: code, ..Within::default() })
    }

    fn inlined(
        &mut self,
        die: usize,
        attributes: &Attributes<'d>,
        parent: Within,
    ) -> Result<Within, TooMuch> {
        self.budget.take_memory(SCOPE)?;
        let stated = self.stated_ranges(attributes)?;
        self.dies.addresses.extend(stated.iter().flat_map(|(start, end)| [*start, *end]));
        let Some(function) = parent.function else { return Ok(parent) };
        let parts = stated.iter().filter_map(|&(start, end)| executable_part(self.image, start, end));
        let stated = joined(parts.collect());
        let item = number(self.dies.inlined.len());
        if stated.is_empty() {
            self.push_inlined(die, function, attributes, parent, true);
            return Ok(Within { stated_inlined: Some(item), ..parent });
        }
        let first = self.code.len();
        self.add_outside(&stated, parent, item)?;
        let (mut around, end_of_around) = parent.code;
        around += self.code[around..end_of_around].partition_point(|range| range.1 <= stated[0].0);
        for (start, end) in stated {
            around += self.code[around..end_of_around].iter().take_while(|outer| outer.1 <= start).count();
            for number in around..end_of_around {
                let outer = self.code[number];
                if end <= outer.0 {
                    break;
                }
                self.budget.take(1)?;
                self.code.push((start.max(outer.0), end.min(outer.1)));
            }
        }
        let ranges = self.code[first..].iter().map(|&(start, end)| Interval { start, end, item });
        self.ranges.extend(ranges);
        self.push_inlined(die, function, attributes, parent, false);
        let code = (first, self.code.len());
        Ok(Within { inlined: Some(item), stated_inlined: Some(item), code, ..parent })
    }

    /// Adds the code of inlined subroutine number `item` that is outside of the code around it, in its function or
    /// beyond.
    fn add_outside(&mut self, stated: &[(u64, u64)], parent: Within, item: u32) -> Result<(), TooMuch> {
        let Self { code, budget, .. } = &*self;
        let (around, function) = (parent.code, parent.function_code);
        let (around, function) = (&code[around.0..around.1], &code[function.0..function.1]);
        let is_in = |all: &[(u64, u64)], (start, end): (u64, u64)| {
            let outer = all[..all.partition_point(|outer| outer.0 <= start)].last();
            outer.is_some_and(|outer| end <= outer.1)
        };
        let (mut outside, mut beyond) = (Vec::new(), Vec::new());
        for &range in stated.iter().filter(|range| !is_in(around, **range)) {
            let rest = cut(vec![range], function, budget)?;
            let inside = cut(vec![range], &rest, budget)?;
            outside.extend(cut(inside, around, budget)?);
            beyond.extend(rest);
        }
        let interval = |(start, end)| Interval { start, end, item };
        self.outside.extend(outside.into_iter().map(interval));
        self.beyond.extend(beyond.into_iter().map(interval));
        Ok(())
    }

    fn push_inlined(
        &mut self,
        die: usize,
        function: u32,
        attributes: &Attributes<'d>,
        parent: Within,
        is_empty: bool,
    ) {
        let Attributes { call_file, call_line, .. } = *attributes;
        // File 0 is invalid up to DWARF 4.
        let call_file = call_file.filter(|file| *file != 0 || self.unit.header.version() >= 5);
        self.dies.inlined.push(Inlined {
            die,
            function,
            parent: parent.inlined,
            stated_parent: parent.stated_inlined,
            is_empty,
            name: Name::None,
            call_file,
            call_line,
        });
    }

    /// The image offset of the entry address (DWARF 5, 2.18): DW_AT_entry_pc, which counts from the base address if it
    /// is a number, or else the base address (2.17): DW_AT_low_pc, or else the start of the `first` range.
    fn entry(&self, attributes: &Attributes<'d>, first: Option<u64>) -> Option<u64> {
        let base = attributes.low_pc.or(first);
        let entry = match &attributes.entry_pc {
            None => base,
            Some(value) => match value.udata_value() {
                Some(distance) => base.and_then(|base| base.checked_add(distance)),
                None => self.unit.attr_address(*value).ok().flatten().or(base),
            },
        };
        entry?.checked_sub(self.image.info().base)
    }

    /// The ranges (SVMAs) that the attributes state, without empty and inverted ones.
    fn stated_ranges(&self, attributes: &Attributes<'d>) -> Result<Vec<(u64, u64)>, TooMuch> {
        let mut ranges = Vec::new();
        if let Some(value) = attributes.ranges {
            let mut list = self.unit.attr_ranges(value).ok().flatten();
            while let Some(Ok(Some(range))) = list.as_mut().map(gimli::RngListIter::next) {
                self.budget.take(1)?;
                ranges.push((range.begin, range.end));
            }
        } else if let (Some(low), Some(high)) = (attributes.low_pc, &attributes.high_pc) {
            let end = match *high {
                AttributeValue::Udata(size) => low.checked_add(size),
                ref address => self.unit.attr_address(*address).ok().flatten(),
            };
            ranges.extend(end.map(|end| (low, end)));
        }
        ranges.retain(|(start, end)| start < end);
        Ok(ranges)
    }
}

/// What remains of `ranges` without `others`.
fn cut(
    mut ranges: Vec<(u64, u64)>,
    others: &[(u64, u64)],
    budget: &Budget,
) -> Result<Vec<(u64, u64)>, TooMuch> {
    for other in others {
        budget.take(1 + ranges.len())?;
        let sides = |(start, end): (u64, u64)| [(start, end.min(other.0)), (start.max(other.1), end)];
        ranges = ranges.into_iter().flat_map(sides).filter(|(start, end)| start < end).collect();
    }
    Ok(ranges)
}

/// `ranges`, sorted. Overlapping and adjacent ranges are joined.
fn joined(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (start, end) in ranges {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// Whether the name of a DIE with this tag is part of the qualified names inside it.
fn is_scope(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_namespace
            | gimli::DW_TAG_class_type
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type
            | gimli::DW_TAG_interface_type
    )
}

/// `index` as 32 bits. There are no more items than the file has bytes.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
