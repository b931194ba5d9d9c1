//! An abbreviation, compiled.

use gimli::{Abbreviation, constants};

use super::varying::{Spare, Varying};
use crate::dwarf::slots::{Class, Slot, states_code};

/// An abbreviation, compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) of: Of,
    pub(crate) has_children: bool,
    /// Whether its entries are functions and state where their code is.
    pub(crate) states_code: bool,
    pub(super) entry_size: EntrySize,
    /// The numbers of the steps that read a function or a scope. Empty if gimli has to read the entry.
    pub(super) read: (u32, u32),
}

/// The kind of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Subprogram,
    Inlined,
    Namespace,
    /// A type that functions can be members of.
    Type,
    Other,
}

/// How many bytes the attributes of an entry take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntrySize {
    /// They take this many bytes.
    Fixed(u32),
    /// Steps, by their numbers in [`Shapes::steps`].
    Steps(u32, u32),
    /// gimli has to read them.
    Unknown,
}

/// A step over the attributes of an entry.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// The number of bytes between the end of the last attribute of variable size, or the start of the attributes, and
    /// this attribute.
    pub(crate) skip: u32,
    pub(crate) then: Then,
}

/// What a step does with an attribute.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    Skip(Varying),
    /// Read a number by `sized`.
    Sized(Slot, Class, Spare),
    Leb(Slot, Class),
    /// The abbreviation states the number, which is a constant.
    Const(Slot, u32),
    /// The end of the attributes.
    End,
}

impl Shape {
    /// The shape of an abbreviation whose entries gimli has to read.
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
            entry_size: EntrySize::Unknown,
            read: (0, 0),
        }
    }

    /// Whether it is a subprogram with children but without code. An inlined subroutine in it is part of an abstract
    /// function. It is not inlined into the function that encloses the subprogram.
    #[inline]
    pub(crate) fn hides(&self) -> bool {
        self.of == Of::Subprogram && !self.states_code && self.has_children
    }

    /// Whether it is a namespace or a type.
    #[inline]
    pub(crate) fn is_scope(&self) -> bool {
        matches!(self.of, Of::Namespace | Of::Type)
    }

    /// Whether it is a namespace, a type or a subprogram.
    #[inline]
    pub(crate) fn is_scope_or_in_one(&self) -> bool {
        self.of == Of::Subprogram || self.is_scope()
    }
}
