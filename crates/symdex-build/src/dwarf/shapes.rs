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
    Read(Slot, Number, Class),
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

/// How a number is written.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    U8,
    U16,
    U32,
    U64,
    Leb,
    /// In the abbreviation.
    Const(u32),
}

/// An attribute as a step sees it.
enum Part {
    Bytes(u8),
    Then(Then),
}

impl Shapes {
    /// The shapes of a table in units of this encoding. Takes memory in proportion to the table's.
    pub(crate) fn new(table: &Abbreviations, encoding: Encoding) -> Self {
        let mut shapes = Self { all: Vec::new(), steps: Vec::new() };
        for abbreviation in (1..).map_while(|code| table.get(code)) {
            let shape = Shape::unknown(abbreviation);
            let attributes = abbreviation.attributes();
            let layout = shapes.layout(attributes, encoding).unwrap_or(Layout::Unknown);
            let read = (shape.of != Of::Other).then(|| shapes.compile(attributes, encoding, true));
            shapes.all.push(Shape { layout, read: read.flatten().unwrap_or_default(), ..shape });
        }
        shapes
    }

    /// The shape of abbreviation `code`; `None` where only gimli may know it.
    #[inline]
    pub(crate) fn get(&self, code: u64) -> Option<&Shape> {
        self.all.get(usize::try_from(code.checked_sub(1)?).ok()?)
    }

    /// What follows an entry's attributes, which `input` stands before. `None` where gimli has to go there, or knows what is wrong.
    ///
    /// Readers go through here by value, as most of a walk is spent here: what is pointed to does not stay in a register.
    #[inline]
    pub(crate) fn behind<'d>(&self, shape: &Shape, mut input: Reader<'d>) -> Option<Reader<'d>> {
        match shape.layout {
            Layout::Fixed(size) => input.skip(size as usize).ok()?,
            Layout::Steps(first, end) => {
                for step in self.steps.get(first as usize..end as usize)? {
                    input.skip(step.skip as usize).ok()?;
                    if let Then::Skip(varying) = step.then {
                        input = varying.behind(input)?;
                    }
                }
            }
            Layout::Unknown => return None,
        }
        Some(input)
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

    /// Whether an entry of this shape matters: it is a function with code, or something may be in it.
    #[inline]
    pub(crate) fn is_function(&self) -> bool {
        matches!(self.of, Of::Subprogram | Of::Inlined) && (self.states_code || self.has_children)
    }

    /// Whether it is one of a namespace, or of a type.
    #[inline]
    pub(crate) fn is_scope(&self) -> bool {
        matches!(self.of, Of::Namespace | Of::Type)
    }
}

/// What an attribute takes, and what it is to a function if `wants`; `None` where gimli has to read it.
fn part(specification: &AttributeSpecification, encoding: Encoding, wants: bool) -> Option<Part> {
    if let Some(slot) = Slot::of(specification.name()).filter(|_| wants) {
        let (number, class) = read(specification, slot, encoding)?;
        return Some(Part::Then(Then::Read(slot, number, class)));
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

/// How a wanted attribute is written, and what its number is.
fn read(specification: &AttributeSpecification, slot: Slot, encoding: Encoding) -> Option<(Number, Class)> {
    let sized = |size: u8| match size {
        4 => Some(Number::U32),
        8 => Some(Number::U64),
        _ => None,
    };
    let offset = || sized(encoding.format.word_size());
    let form = specification.form();
    let (number, class) = match form {
        constants::DW_FORM_addr => (sized(encoding.address_size)?, Class::Address),
        constants::DW_FORM_addrx1 => (Number::U8, Class::AddressIndex),
        constants::DW_FORM_addrx2 => (Number::U16, Class::AddressIndex),
        constants::DW_FORM_addrx4 => (Number::U32, Class::AddressIndex),
        constants::DW_FORM_addrx | constants::DW_FORM_GNU_addr_index => (Number::Leb, Class::AddressIndex),
        // Before DWARF 4 this was the form of offsets.
        constants::DW_FORM_data4 if slot == Slot::Ranges && encoding.format == Format::Dwarf32 => {
            (Number::U32, Class::RangeList)
        }
        constants::DW_FORM_data1 => (Number::U8, Class::Constant),
        constants::DW_FORM_data2 => (Number::U16, Class::Constant),
        constants::DW_FORM_data4 => (Number::U32, Class::Constant),
        constants::DW_FORM_data8 => (Number::U64, Class::Constant),
        constants::DW_FORM_udata => (Number::Leb, Class::Constant),
        constants::DW_FORM_implicit_const => {
            let value = u32::try_from(specification.implicit_const_value()?).ok()?;
            (Number::Const(value), Class::Constant)
        }
        constants::DW_FORM_strp => (offset()?, Class::Text),
        constants::DW_FORM_line_strp => (offset()?, Class::LineText),
        constants::DW_FORM_strp_sup | constants::DW_FORM_GNU_strp_alt => (offset()?, Class::TextSup),
        constants::DW_FORM_strx1 => (Number::U8, Class::TextIndex),
        constants::DW_FORM_strx2 => (Number::U16, Class::TextIndex),
        constants::DW_FORM_strx4 => (Number::U32, Class::TextIndex),
        constants::DW_FORM_strx | constants::DW_FORM_GNU_str_index => (Number::Leb, Class::TextIndex),
        constants::DW_FORM_ref1 => (Number::U8, Class::InUnit),
        constants::DW_FORM_ref2 => (Number::U16, Class::InUnit),
        constants::DW_FORM_ref4 => (Number::U32, Class::InUnit),
        constants::DW_FORM_ref8 => (Number::U64, Class::InUnit),
        constants::DW_FORM_ref_udata => (Number::Leb, Class::InUnit),
        constants::DW_FORM_ref_addr if encoding.version != 2 => (offset()?, Class::InFile),
        constants::DW_FORM_GNU_ref_alt => (offset()?, Class::InSup),
        constants::DW_FORM_ref_sup4 => (Number::U32, Class::InSup),
        constants::DW_FORM_ref_sup8 => (Number::U64, Class::InSup),
        constants::DW_FORM_sec_offset => (offset()?, Class::RangeList),
        constants::DW_FORM_rnglistx => (Number::Leb, Class::RangeListIndex),
        _ => return None,
    };
    slot.takes(class).then_some((number, class))
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

    /// What follows an attribute that `input` stands before.
    #[inline]
    pub(crate) fn behind(self, mut input: Reader<'_>) -> Option<Reader<'_>> {
        let size = match self {
            Self::Leb => return input.skip_leb128().ok().map(|()| input),
            Self::String => return input.read_null_terminated_slice().ok().map(|_| input),
            Self::Block1 => usize::from(input.read_u8().ok()?),
            Self::Block2 => usize::from(input.read_u16().ok()?),
            Self::Block4 => usize::try_from(input.read_u32().ok()?).ok()?,
            Self::Block => usize::try_from(leb(&mut input)?).ok()?,
        };
        input.skip(size).ok()?;
        Some(input)
    }
}

impl Number {
    #[inline]
    pub(crate) fn read(self, input: &mut Reader<'_>) -> Option<u64> {
        match self {
            Self::U8 => input.read_u8().ok().map(u64::from),
            Self::U16 => input.read_u16().ok().map(u64::from),
            Self::U32 => input.read_u32().ok().map(u64::from),
            Self::U64 => input.read_u64().ok(),
            Self::Leb => leb(input),
            Self::Const(value) => Some(u64::from(value)),
        }
    }
}

/// A LEB128 number, which most often is one byte.
#[inline]
pub(crate) fn leb(input: &mut Reader<'_>) -> Option<u64> {
    match input.slice().first() {
        Some(&byte) if byte < 0x80 => {
            input.skip(1).ok()?;
            Some(u64::from(byte))
        }
        _ => input.read_uleb128().ok(),
    }
}
