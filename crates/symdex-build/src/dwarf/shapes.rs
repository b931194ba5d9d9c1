//! Abbreviations, compiled: how many bytes an entry takes, and where in it stands what is wanted of functions.
//!
//! Most entries describe types and variables, of which nothing is wanted but their end. An abbreviation says where that is: after
//! a number of bytes that is fixed, or after a few steps that depend on the entry's bytes. What is uncommon, a form that only the
//! entry itself names, say, has no shape: gimli reads such entries.

use gimli::{
    Abbreviation, Abbreviations, AttributeSpecification, DwForm, Encoding, Format, Reader as _, constants,
};

use super::attributes::{Class, Slot, states_code};
use crate::image::Reader;

/// An abbreviation table, compiled.
#[derive(Default)]
pub(crate) struct Shapes {
    /// Those of the codes from 1 on, as far as the table has them without a gap, as tables do.
    all: Vec<Shape>,
    steps: Vec<Step>,
    /// How a walk that stops at functions passes entries.
    pub(crate) functions: Passes,
    /// The same of one that stops at scopes and what is in them.
    pub(crate) scopes: Passes,
}

/// How a walk passes entries that nothing is wanted of.
pub(crate) struct Passes {
    /// By the first byte, which most often is the whole code.
    pub(crate) by_byte: [Pass; 256],
    /// By the codes of abbreviations, of which 0 is the end of children.
    by_code: Vec<Pass>,
    /// The size of the longest entry that is passed by its size alone.
    pub(crate) longest: usize,
}

/// How an entry is passed. Most of a walk is spent with these: they are small, and there is no branch for what sets one apart.
#[derive(Clone, Copy, Default)]
#[repr(align(8))]
pub(crate) struct Pass {
    /// How many bytes the entry takes, its code with it; 0 where there is more to know.
    pub(crate) size: u8,
    /// From the depth below it how far up the next entry is: 0 for children, 2 behind the last one.
    pub(crate) up: u8,
    /// Whether it is as [`Shape::hides`] says.
    pub(crate) hides: bool,
    stops: bool,
    /// Where one block is all in the entry that has no fixed size, the bytes before and behind it; else 0.
    before_block: u8,
    behind_block: u8,
}

/// An abbreviation, compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) of: Of,
    pub(crate) has_children: bool,
    /// Whether its entries state where their code is.
    pub(crate) states_code: bool,
    layout: Layout,
    /// Of a function or a scope the steps to read it, by their numbers; none where gimli has to.
    read: (u32, u32),
}

/// What is to know of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Subprogram,
    Inlined,
    Namespace,
    /// A type that functions can be members of.
    Type,
    Other,
}

/// How the attributes of an entry are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// They take so many bytes.
    Fixed(u32),
    /// Steps, by their numbers in [`Shapes::steps`].
    Steps(u32, u32),
    /// Gimli knows.
    Unknown,
}

/// Some bytes that are of no interest, and an attribute behind them.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) skip: u32,
    pub(crate) then: Then,
}

/// What is to do with an attribute.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    Skip(Varying),
    /// Read a number of so many bytes.
    Sized(Slot, Class, u8),
    Leb(Slot, Class),
    /// The abbreviation has the number, a constant.
    Const(Slot, u32),
    /// There is none: it was the end.
    End,
}

/// Attributes whose size their bytes tell.
#[derive(Clone, Copy)]
pub(crate) enum Varying {
    Leb,
    Block1,
    Block2,
    Block4,
    Block,
    String,
}

/// An attribute as a step sees it.
enum Part {
    Bytes(u8),
    Then(Then),
}

impl Shapes {
    /// The shapes of a table in units of this encoding. Takes memory in proportion to the table's.
    pub(crate) fn new(table: &Abbreviations, encoding: Encoding) -> Self {
        let mut shapes = Self::default();
        for abbreviation in (1..).map_while(|code| table.get(code)) {
            let shape = Shape::unknown(abbreviation);
            let attributes = abbreviation.attributes();
            let layout = shapes.layout(attributes, encoding).unwrap_or(Layout::Unknown);
            let read = (shape.of != Of::Other).then(|| shapes.compile(attributes, encoding, true));
            shapes.all.push(Shape { layout, read: read.flatten().unwrap_or_default(), ..shape });
        }
        shapes.functions = Passes::new(&shapes, |shape| shape.states_code);
        shapes.scopes = Passes::new(&shapes, Shape::is_scope_or_in_one);
        shapes
    }

    /// The shape of abbreviation `code`; `None` where only gimli may know it.
    #[inline]
    pub(crate) fn get(&self, code: u64) -> Option<&Shape> {
        self.all.get(usize::try_from(code.checked_sub(1)?).ok()?)
    }

    /// How the entry at `at` is passed, and where the next one is, if the entry's first byte does not say. `None` where the walk
    /// stops, or something is uncommon.
    #[inline]
    pub(crate) fn pass(&self, passes: &Passes, bytes: &[u8], at: usize) -> Option<(Pass, usize)> {
        let (mut code, mut attributes) = (usize::from(*bytes.get(at)?), at + 1);
        if code >= 0x80 {
            let high = usize::from(*bytes.get(at + 1)?);
            // Nobody writes a code with more bytes than it takes, or has that many.
            if high == 0 || high >= 0x80 {
                return None;
            }
            (code, attributes) = (code & 0x7f | high << 7, at + 2);
        }
        let pass = passes.by_code.get(code).filter(|pass| !pass.stops)?;
        if pass.size != 0 {
            return Some((*pass, at + usize::from(pass.size)));
        }
        // Most often it is where a variable lies, in a few bytes.
        let block = at + usize::from(pass.before_block);
        if let Some(size @ 0..0x80) = bytes.get(block).copied().filter(|_| pass.before_block != 0) {
            let behind = block + 1 + usize::from(size) + usize::from(pass.behind_block);
            return Some((*pass, behind)).filter(|_| behind <= bytes.len());
        }
        Some((*pass, self.behind(self.get(code as u64)?, bytes, attributes)?))
    }

    /// Where the attributes of an entry end that begin at `at`. `None` where gimli has to go there, or knows what is wrong.
    #[inline]
    pub(crate) fn behind(&self, shape: &Shape, bytes: &[u8], mut at: usize) -> Option<usize> {
        match shape.layout {
            Layout::Fixed(size) => at = at.saturating_add(size as usize),
            Layout::Steps(first, end) => {
                for step in self.steps.get(first as usize..end as usize)? {
                    at = at.saturating_add(step.skip as usize);
                    if let Then::Skip(varying) = step.then {
                        at = varying.behind(bytes, at)?;
                    }
                }
            }
            Layout::Unknown => return None,
        }
        Some(at).filter(|at| *at <= bytes.len())
    }

    /// What to do to read a function or a scope of this shape; `None` where gimli has to.
    #[inline]
    pub(crate) fn steps(&self, shape: &Shape) -> Option<&[Step]> {
        let (first, end) = shape.read;
        self.steps.get(first as usize..end as usize).filter(|steps| !steps.is_empty())
    }

    /// How entries with these attributes are skipped.
    fn layout(&mut self, attributes: &[AttributeSpecification], encoding: Encoding) -> Option<Layout> {
        let (first, end) = self.compile(attributes, encoding, false)?;
        if end - first == 1 {
            return Some(Layout::Fixed(self.steps.pop()?.skip));
        }
        Some(Layout::Steps(first, end))
    }

    /// Adds the steps behind an entry's attributes, of which those that are wanted of functions are read if `wants`; their numbers.
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
                Some(Part::Then(then)) => self.steps.push(Step { skip: std::mem::take(&mut skip), then }),
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

impl Passes {
    fn new(shapes: &Shapes, stops: impl Fn(&Shape) -> bool) -> Self {
        let end = Pass { size: 1, up: 2, ..Pass::default() };
        let pass = |(code, shape): (usize, &Shape)| {
            let (up, hides, stops) = (u8::from(!shape.has_children), shape.hides(), stops(shape));
            let pass = Pass { up, hides, stops, ..Pass::default() };
            let with_code = |size: u32| u8::try_from(size.saturating_add(1 + u32::from(code >= 0x80)));
            match shape.layout {
                Layout::Fixed(size) if !stops => Pass { size: with_code(size).unwrap_or(0), ..pass },
                Layout::Steps(first, end) => match shapes.steps[first as usize..end as usize] {
                    [Step { skip: before, then: Then::Skip(Varying::Block | Varying::Block1) }, behind] => {
                        match (with_code(before), u8::try_from(behind.skip), behind.then) {
                            (Ok(before_block), Ok(behind_block), Then::End) => {
                                Pass { before_block, behind_block, ..pass }
                            }
                            _ => pass,
                        }
                    }
                    _ => pass,
                },
                _ => pass,
            }
        };
        let by_code: Vec<_> = std::iter::once(end).chain((1..).zip(&shapes.all).map(pass)).collect();
        let mut by_byte = [Pass::default(); 256];
        // The other bytes are the first of two.
        by_byte.iter_mut().zip(&by_code).take(0x80).for_each(|(of_byte, pass)| *of_byte = *pass);
        let longest = by_code.iter().map(|pass| usize::from(pass.size)).max().unwrap_or_default();
        Self { by_byte, by_code, longest }
    }
}

impl Default for Passes {
    /// All is uncommon.
    fn default() -> Self {
        Self { by_byte: [Pass::default(); 256], by_code: Vec::new(), longest: 0 }
    }
}

impl Shape {
    /// That of an abbreviation whose entries gimli has to read.
    pub(crate) fn unknown(abbreviation: &Abbreviation) -> Self {
        let of = match abbreviation.tag() {
            constants::DW_TAG_subprogram => Of::Subprogram,
            constants::DW_TAG_inlined_subroutine => Of::Inlined,
            constants::DW_TAG_namespace => Of::Namespace,
            constants::DW_TAG_class_type
            | constants::DW_TAG_structure_type
            | constants::DW_TAG_union_type
            | constants::DW_TAG_enumeration_type
            | constants::DW_TAG_interface_type => Of::Type,
            _ => Of::Other,
        };
        let is_function = matches!(of, Of::Subprogram | Of::Inlined);
        let states_code = is_function && states_code(abbreviation.attributes());
        Self {
            of,
            has_children: abbreviation.has_children(),
            states_code,
            layout: Layout::Unknown,
            read: (0, 0),
        }
    }

    /// Whether it is one of a subprogram without code that something may be in. An inlined subroutine in it is part of an abstract
    /// function, and is not inlined into what is around that.
    #[inline]
    pub(crate) fn hides(&self) -> bool {
        self.of == Of::Subprogram && !self.states_code && self.has_children
    }

    /// Whether it is one of a namespace, or of a type.
    #[inline]
    pub(crate) fn is_scope(&self) -> bool {
        matches!(self.of, Of::Namespace | Of::Type)
    }

    /// The same, or whether it is one of a subprogram.
    #[inline]
    pub(crate) fn is_scope_or_in_one(&self) -> bool {
        self.of == Of::Subprogram || self.is_scope()
    }
}

/// What an attribute takes, and what it is to a function if `wants`; `None` where gimli has to read it.
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

/// How a wanted attribute is read; `None` where gimli has to.
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
        constants::DW_FORM_sec_offset => (Class::RangeList, Some(offset)),
        constants::DW_FORM_rnglistx => (Class::RangeListIndex, None),
        _ => return None,
    };
    slot.takes(class).then_some(match size {
        Some(size) => Then::Sized(slot, class, size),
        None => Then::Leb(slot, class),
    })
}

impl Varying {
    fn of(form: DwForm) -> Option<Self> {
        Some(match form {
            constants::DW_FORM_block1 => Self::Block1,
            constants::DW_FORM_block2 => Self::Block2,
            constants::DW_FORM_block4 => Self::Block4,
            constants::DW_FORM_block | constants::DW_FORM_exprloc => Self::Block,
            constants::DW_FORM_string => Self::String,
            constants::DW_FORM_udata
            | constants::DW_FORM_sdata
            | constants::DW_FORM_ref_udata
            | constants::DW_FORM_strx
            | constants::DW_FORM_GNU_str_index
            | constants::DW_FORM_addrx
            | constants::DW_FORM_GNU_addr_index
            | constants::DW_FORM_loclistx
            | constants::DW_FORM_rnglistx => Self::Leb,
            _ => return None,
        })
    }

    /// Where an attribute ends that begins at `at`; perhaps behind the end of `bytes`.
    #[inline]
    pub(crate) fn behind(self, bytes: &[u8], mut at: usize) -> Option<usize> {
        let size = match self {
            Self::Leb => return leb(bytes, &mut at).map(|_| at),
            Self::String => memchr::memchr(0, bytes.get(at..)?)? + 1,
            Self::Block1 => usize::try_from(sized(1, bytes, &mut at)?).ok()?,
            Self::Block2 => usize::try_from(sized(2, bytes, &mut at)?).ok()?,
            Self::Block4 => usize::try_from(sized(4, bytes, &mut at)?).ok()?,
            Self::Block => usize::try_from(leb(bytes, &mut at)?).ok()?,
        };
        Some(at.saturating_add(size))
    }
}

/// The number of `size` bytes at `at`, which goes behind it; `size` is 1 to 8.
#[inline]
pub(crate) fn sized(size: u8, bytes: &[u8], at: &mut usize) -> Option<u64> {
    let rest = bytes.get(*at..)?;
    *at += usize::from(size);
    // All sizes in one go: which one comes next nobody foresees.
    if let Some(eight) = rest.first_chunk() {
        return Some(u64::from_le_bytes(*eight) & u64::MAX >> (64 - 8 * u32::from(size)));
    }
    let number = rest.get(..usize::from(size))?;
    Some(number.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The LEB128 number at `at`, which goes behind it; most often it is one byte.
#[inline]
pub(crate) fn leb(bytes: &[u8], at: &mut usize) -> Option<u64> {
    match *bytes.get(*at)? {
        byte @ 0..0x80 => {
            *at += 1;
            Some(u64::from(byte))
        }
        _ => {
            let mut input = Reader::new(&bytes[*at..], gimli::LittleEndian);
            let number = input.read_uleb128().ok()?;
            *at = bytes.len() - input.len();
            Some(number)
        }
    }
}
