//! An abbreviation, compiled.

use gimli::{Abbreviation, constants};

use super::varying::{Spare, Varying};
use crate::dwarf::slots::{Class, Slot, states_code};

/// An abbreviation, compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) of: Of,
    pub(crate) has_children: bool,
    /// Whether its entries state where their code is.
    pub(crate) states_code: bool,
    pub(super) layout: Layout,
    /// Of a function or a scope the steps to read it, by their numbers; none where gimli has to.
    pub(super) read: (u32, u32),
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
pub(super) enum Layout {
    /// They take so many bytes.
    Fixed(u32),
    /// Steps, by their numbers in [`Shapes::steps`].
    Steps(u32, u32),
    /// Gimli knows.
    Unknown,
}

/// An attribute, and where it is.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// How many bytes are before it, from the last attribute on whose size its bytes tell; else from the first one on.
    pub(crate) skip: u32,
    pub(crate) then: Then,
}

/// What is to do with an attribute.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    Skip(Varying),
    /// Read a number, which [`sized`] does with this.
    Sized(Slot, Class, Spare),
    Leb(Slot, Class),
    /// The abbreviation has the number, a constant.
    Const(Slot, u32),
    /// There is none: it was the end.
    End,
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
