//! Compiled abbreviations: the size of an entry, and the positions of the function attributes that the build reads.
//!
//! Most entries describe types and variables, and the walk skips them. The abbreviation determines the size of an
//! entry: a fixed number of bytes, or a few steps that depend on the entry's bytes. Uncommon abbreviations have no
//! shape, for example those with `DW_FORM_indirect`. gimli reads their entries.

mod passes;
mod shape;
mod varying;

use gimli::{Abbreviations, AttributeSpecification, Encoding, Format, constants};

pub(crate) use self::passes::Passes;
use self::shape::EntrySize;
pub(crate) use self::shape::{Of, Shape, Step, Then};
use self::varying::Varying;
pub(crate) use self::varying::{Spare, leb, sized};
use super::slots::{Class, Slot};

/// A compiled abbreviation table.
#[derive(Default)]
pub(crate) struct Shapes {
    /// The shapes of the codes from 1 up to the first gap. Common tables have no gap.
    all: Vec<Shape>,
    steps: Vec<Step>,
    /// How a walk that stops at functions passes over entries.
    pub(crate) functions: Passes,
    /// How a walk that stops at scopes and subprograms passes over entries.
    pub(crate) scopes: Passes,
}

/// What an attribute adds to the steps.
enum Part {
    Bytes(u8),
    Then(Then),
}

impl Shapes {
    /// Compiles a table for units of this encoding. The result takes memory in proportion to the table.
    pub(crate) fn new(table: &Abbreviations, encoding: Encoding) -> Self {
        let mut shapes = Self::default();
        for abbreviation in (1..).map_while(|code| table.get(code)) {
            let shape = Shape::unknown(abbreviation);
            let attributes = abbreviation.attributes();
            let entry_size = shapes.entry_size(attributes, encoding).unwrap_or(EntrySize::Unknown);
            let read = (shape.of != Of::Other).then(|| shapes.compile(attributes, encoding, true));
            shapes.all.push(Shape { entry_size, read: read.flatten().unwrap_or_default(), ..shape });
        }
        shapes.functions = Passes::new(&shapes.all, &shapes.steps, |shape| shape.states_code);
        shapes.scopes = Passes::new(&shapes.all, &shapes.steps, Shape::is_scope_or_in_one);
        shapes
    }

    /// The shape of abbreviation `code`. Returns `None` if gimli has to read the entry.
    #[inline]
    pub(crate) fn get(&self, code: u64) -> Option<&Shape> {
        self.all.get(usize::try_from(code.checked_sub(1)?).ok()?)
    }

    /// The end of an entry's attributes, which begin at `at`. Returns `None` if gimli has to find it, for example
    /// because the entry is damaged.
    #[inline]
    pub(crate) fn end(&self, shape: &Shape, bytes: &[u8], mut at: usize) -> Option<usize> {
        match shape.entry_size {
            EntrySize::Fixed(size) => at = at.saturating_add(size as usize),
            EntrySize::Steps(first, end) => {
                for step in self.steps.get(first as usize..end as usize)? {
                    at = at.saturating_add(step.skip as usize);
                    if let Then::Skip(varying) = step.then {
                        at = varying.end(bytes, at)?;
                    }
                }
            }
            EntrySize::Unknown => return None,
        }
        Some(at).filter(|at| *at <= bytes.len())
    }

    /// The steps that read a function or a scope of this shape. Returns `None` if gimli has to read it.
    #[inline]
    pub(crate) fn steps(&self, shape: &Shape) -> Option<&[Step]> {
        let (first, end) = shape.read;
        self.steps.get(first as usize..end as usize).filter(|steps| !steps.is_empty())
    }

    /// How entries with these attributes are skipped.
    fn entry_size(&mut self, attributes: &[AttributeSpecification], encoding: Encoding) -> Option<EntrySize> {
        let (first, end) = self.compile(attributes, encoding, false)?;
        if end - first == 1 {
            return Some(EntrySize::Fixed(self.steps.pop()?.skip));
        }
        Some(EntrySize::Steps(first, end))
    }

    /// Adds the steps over an entry's attributes, and returns their numbers. If `wants` is set, the steps read the
    /// attributes that have a [`Slot`].
    fn compile(
        &mut self,
        attributes: &[AttributeSpecification],
        encoding: Encoding,
        wants: bool,
    ) -> Option<(u32, u32)> {
        let first = self.steps.len();
        let mut skip = 0u32;
        for attribute in attributes {
            match part(attribute, encoding, wants) {
                Some(Part::Bytes(size)) => skip = skip.saturating_add(u32::from(size)),
                Some(Part::Then(then)) => {
                    self.steps.push(Step { skip, then });
                    skip = match then {
                        Then::Sized(.., spare) => skip.saturating_add(u32::from(spare.size())),
                        Then::Const(..) => skip,
                        Then::Leb(..) | Then::Skip(_) | Then::End => 0,
                    };
                }
                None => {
                    self.steps.truncate(first);
                    return None;
                }
            }
        }
        self.steps.push(Step { skip, then: Then::End });
        Some((u32::try_from(first).ok()?, u32::try_from(self.steps.len()).ok()?))
    }
}

/// What an attribute adds to the steps. If `wants` is set and the attribute has a [`Slot`], the step reads it. Returns
/// `None` if gimli has to read it.
fn part(specification: &AttributeSpecification, encoding: Encoding, wants: bool) -> Option<Part> {
    if let Some(slot) = Slot::of(specification.name()).filter(|_| wants) {
        return Some(Part::Then(read(specification, slot, encoding)?));
    }
    let word_size = encoding.format.word_size();
    Some(match specification.form() {
        constants::DW_FORM_implicit_const | constants::DW_FORM_flag_present => Part::Bytes(0),
        constants::DW_FORM_addr => Part::Bytes(encoding.address_size),
        constants::DW_FORM_data1
        | constants::DW_FORM_flag
        | constants::DW_FORM_strx1
        | constants::DW_FORM_ref1
        | constants::DW_FORM_addrx1 => Part::Bytes(1),
        constants::DW_FORM_data2
        | constants::DW_FORM_ref2
        | constants::DW_FORM_addrx2
        | constants::DW_FORM_strx2 => Part::Bytes(2),
        constants::DW_FORM_addrx3 | constants::DW_FORM_strx3 => Part::Bytes(3),
        constants::DW_FORM_data4
        | constants::DW_FORM_ref_sup4
        | constants::DW_FORM_ref4
        | constants::DW_FORM_strx4
        | constants::DW_FORM_addrx4 => Part::Bytes(4),
        constants::DW_FORM_data8
        | constants::DW_FORM_ref8
        | constants::DW_FORM_ref_sig8
        | constants::DW_FORM_ref_sup8 => Part::Bytes(8),
        constants::DW_FORM_data16 => Part::Bytes(16),
        constants::DW_FORM_sec_offset
        | constants::DW_FORM_GNU_ref_alt
        | constants::DW_FORM_strp
        | constants::DW_FORM_strp_sup
        | constants::DW_FORM_GNU_strp_alt
        | constants::DW_FORM_line_strp => Part::Bytes(word_size),
        // An address in DWARF 2.
        constants::DW_FORM_ref_addr if encoding.version == 2 => Part::Bytes(encoding.address_size),
        constants::DW_FORM_ref_addr => Part::Bytes(word_size),
        form => Part::Then(Then::Skip(Varying::of(form)?)),
    })
}

/// The step that reads an attribute. Returns `None` if gimli has to read it.
fn read(specification: &AttributeSpecification, slot: Slot, encoding: Encoding) -> Option<Then> {
    let offset = encoding.format.word_size();
    let (class, size) = match specification.form() {
        constants::DW_FORM_addr => match encoding.address_size {
            size @ (4 | 8) => (Class::Address, Some(size)),
            _ => return None,
        },
        constants::DW_FORM_addrx1 => (Class::AddressIndex, Some(1)),
        constants::DW_FORM_addrx2 => (Class::AddressIndex, Some(2)),
        constants::DW_FORM_addrx4 => (Class::AddressIndex, Some(4)),
        constants::DW_FORM_addrx | constants::DW_FORM_GNU_addr_index => (Class::AddressIndex, None),
        // Before DWARF 4 this was the form of offsets.
        constants::DW_FORM_data4 if slot == Slot::Ranges && encoding.format == Format::Dwarf32 => {
            (Class::RangeList, Some(4))
        }
        constants::DW_FORM_data1 => (Class::Constant, Some(1)),
        constants::DW_FORM_data2 => (Class::Constant, Some(2)),
        constants::DW_FORM_data4 => (Class::Constant, Some(4)),
        constants::DW_FORM_data8 => (Class::Constant, Some(8)),
        constants::DW_FORM_udata => (Class::Constant, None),
        constants::DW_FORM_implicit_const => {
            let value = u32::try_from(specification.implicit_const_value()?).ok()?;
            return slot.takes(Class::Constant).then_some(Then::Const(slot, value));
        }
        constants::DW_FORM_strp => (Class::Text, Some(offset)),
        constants::DW_FORM_line_strp => (Class::LineText, Some(offset)),
        constants::DW_FORM_strp_sup | constants::DW_FORM_GNU_strp_alt => (Class::TextSup, Some(offset)),
        constants::DW_FORM_strx1 => (Class::TextIndex, Some(1)),
        constants::DW_FORM_strx2 => (Class::TextIndex, Some(2)),
        constants::DW_FORM_strx4 => (Class::TextIndex, Some(4)),
        constants::DW_FORM_strx | constants::DW_FORM_GNU_str_index => (Class::TextIndex, None),
        constants::DW_FORM_ref1 => (Class::InUnit, Some(1)),
        constants::DW_FORM_ref2 => (Class::InUnit, Some(2)),
        constants::DW_FORM_ref4 => (Class::InUnit, Some(4)),
        constants::DW_FORM_ref8 => (Class::InUnit, Some(8)),
        constants::DW_FORM_ref_udata => (Class::InUnit, None),
        constants::DW_FORM_ref_addr if encoding.version != 2 => (Class::InFile, Some(offset)),
        constants::DW_FORM_GNU_ref_alt => (Class::InSup, Some(offset)),
        constants::DW_FORM_ref_sup4 => (Class::InSup, Some(4)),
        constants::DW_FORM_ref_sup8 => (Class::InSup, Some(8)),
        constants::DW_FORM_sec_offset if slot == Slot::LineSequence => (Class::LineOffset, Some(offset)),
        constants::DW_FORM_sec_offset => (Class::RangeList, Some(offset)),
        constants::DW_FORM_rnglistx => (Class::RangeListIndex, None),
        _ => return None,
    };
    slot.takes(class).then_some(match size {
        Some(size) => Then::Sized(slot, class, Spare::of(size)),
        None => Then::Leb(slot, class),
    })
}
