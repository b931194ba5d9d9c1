//! The tree of a C++ name: nodes in one vector, which refer to each other by number.
//!
//! A child is created before its parent, so the tree has no cycles. The exception is [`Node::Forward`], which is set
//! after the template arguments it refers to are read; the printer guards against a forward reference that contains
//! itself.

use std::num::NonZeroU32;

use super::operators::{Operator, Precedence};
use crate::limits::{MAX_CHILDREN, MAX_NODES};

/// The number of a node in its [`Arena`], plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(NonZeroU32);

/// Consecutive children in [`Arena::lists`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// `const`, `volatile` and `restrict`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Qualifiers {
    pub(super) is_const: bool,
    pub(super) is_volatile: bool,
    pub(super) is_restrict: bool,
}

impl Qualifiers {
    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// The reference qualifier of a member function, or the kind of a reference type. When references collapse, the smaller
/// kind is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reference {
    Lvalue,
    Rvalue,
}

/// A class of the standard library that has a substitution of two letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standard {
    Allocator,
    BasicString,
    String,
    Istream,
    Ostream,
    Iostream,
}

/// The kind of an invented template parameter name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterKind {
    Type,
    NonType,
    Template,
}

/// The width of a floating point literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Float {
    Single,
    Double,
    Extended,
}

/// One node. The comments show the text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node<'a> {
    /// A source name, a built-in type, an operator's name: the text itself.
    Text(&'a str),
    /// `text child`: special names, conversion operators, elaborated types, `::` of global names.
    Prefixed(&'static str, Id),
    /// `child text`.
    Postfixed(Id, &'static str),

    /// `scope::name`.
    Nested(Id, Id),
    /// `encoding::entity`.
    Local(Id, Id),
    /// `scope::friend name`.
    Friend(Id, Id),
    /// `parent.name`, or `parent:name` for a partition.
    Module {
        parent: Option<Id>,
        name: Id,
        is_partition: bool,
    },
    /// `name@module`.
    InModule {
        module: Id,
        name: Id,
    },
    /// `base[abi:tag]`.
    AbiTag(Id, &'a str),
    /// `name<arguments>`.
    WithArguments(Id, Id),
    /// `<arguments>`.
    Arguments(List),
    /// `argument`. The name also declares the parameter of this argument. LLVM prints operations in it without
    /// parentheses.
    DeclaredArgument(Id),
    /// `std::string`.
    Standard(Standard),
    /// `std::basic_string<char, std::char_traits<char>, std::allocator<char>>`.
    Expanded(Standard),
    /// `name` or `~name` of the class given.
    Constructor {
        class: Id,
        is_destructor: bool,
    },
    /// `'unnamed0'`.
    Unnamed(&'a str),
    /// `'lambda0'<template_parameters>(parameters)`.
    Closure {
        template_parameters: List,
        template_constraint: Option<Id>,
        parameters: List,
        constraint: Option<Id>,
        number: Id,
    },
    /// `[a, b]`.
    StructuredBinding(List),
    /// A function: `result name(parameters) const &`.
    Encoding {
        result: Option<Id>,
        name: Id,
        parameters: List,
        qualifiers: Qualifiers,
        reference: Option<Reference>,
        attributes: Option<Id>,
        constraint: Option<Id>,
    },
    /// ` [enable_if:conditions]`.
    EnableIf(List),
    /// `construction vtable for base-in-derived`.
    ConstructionVtable {
        base: Id,
        derived: Id,
    },
    /// `encoding (suffix)`.
    Suffixed(Id, &'a str),

    /// `type const volatile restrict`.
    Qualified(Id, Qualifiers),
    /// `type vendor<arguments>`.
    VendorQualified {
        of: Id,
        vendor: &'a str,
        arguments: Option<Id>,
    },
    /// `type<protocol>`.
    ObjcProtocol(Id, &'a str),
    Pointer(Id),
    Reference(Id, Reference),
    /// `type class::*`.
    MemberPointer {
        class: Id,
        member: Id,
    },
    /// `type [dimension]`.
    Array(Id, Option<Id>),
    Function {
        result: Id,
        parameters: List,
        qualifiers: Qualifiers,
        reference: Option<Reference>,
        exceptions: Option<Id>,
    },
    /// `throw(types)`.
    Throws(List),
    /// `type vector[dimension]`.
    Vector(Id, Option<Id>),
    /// `pixel vector[dimension]`.
    PixelVector(&'a str),
    /// `_Float16`.
    BinaryFloat(&'a str),
    /// `_BitInt(8)`.
    BitInt {
        size: Id,
        is_signed: bool,
    },
    /// `name(type)`.
    Transformed(&'a str, Id),

    /// A template parameter that is referred to before its argument is read.
    Forward {
        index: u32,
        target: Option<Id>,
    },
    /// An argument pack as arguments: all its elements.
    ArgumentPack(List),
    /// An argument pack that a template parameter refers to: the element of the innermost expansion.
    ParameterPack(List),
    /// The child, once for each element of the packs in it.
    Expansion(Id),
    /// `$T0`.
    Invented(ParameterKind, u32),
    /// `typename $T`.
    TypeParameter(Id),
    /// `constraint $T`.
    ConstrainedParameter {
        constraint: Id,
        name: Id,
    },
    /// `int $N`.
    NonTypeParameter {
        name: Id,
        of: Id,
    },
    /// `template<parameters> typename $TT`.
    TemplateParameter {
        name: Id,
        parameters: List,
        constraint: Option<Id>,
    },
    /// `typename ...$T`.
    ParameterPackDeclaration(Id),

    Binary(&'static Operator, Id, Id),
    PrefixOperator(&'static Operator, Id),
    PostfixOperator(&'static Operator, Id),
    Subscript(&'static Operator, Id, Id),
    Member(&'static Operator, Id, Id),
    Conditional(Id, Id, Id),
    New {
        placement: List,
        of: Id,
        initializers: List,
        is_global: bool,
        is_array: bool,
    },
    Delete {
        operand: Id,
        is_global: bool,
        is_array: bool,
    },
    /// `callee(arguments)`.
    Call {
        callee: Id,
        arguments: List,
        has_parentheses: bool,
    },
    /// `(type)(expressions)`.
    Conversion(Id, List),
    /// `static_cast<type>(expression)`.
    NamedCast(&'static Operator, Id, Id),
    /// `sizeof (operand)`.
    Enclosing {
        operator: &'static str,
        operand: Id,
        precedence: Precedence,
    },
    /// The children, separated by commas.
    Children(List),
    /// `sizeof...(pack)`.
    SizeOfPack(Id),
    /// `(pack + ... + initial)` or `(initial + ... + pack)`.
    Fold {
        operator: &'static Operator,
        is_left: bool,
        pack: Id,
        initial: Option<Id>,
    },
    /// `type{expressions}`.
    Braced(Option<Id>, List),
    /// `.field = value`.
    Field(Id, Id),
    /// `[index] = value`.
    Index(Id, Id),
    /// `[first ... last] = value`.
    Range(Id, Id, Id),
    /// `(type)(expression)`, a pointer to a member.
    MemberConversion(Id, Id),
    /// `expression.<type at offset 4>`: `offset` is a text.
    Subobject {
        of: Id,
        expression: Id,
        offset: Id,
    },
    /// `fp0`.
    FunctionParameter(&'a str),
    /// `5ul`, `(char)65`: the letter of a built-in type, and the number.
    Integer(u8, &'a str),
    /// `(type)5`.
    Enumerator(Id, &'a str),
    /// Hexadecimal digits of the value's bytes.
    FloatLiteral(Float, &'a str),
    /// `"<type>"`.
    StringLiteral(Id),
    /// `[](parameters){...}`.
    Lambda(Id),
    /// `requires (parameters) {requirements}`.
    Requires(List, List),
    /// ` {expression} noexcept -> constraint;`.
    ExpressionRequirement {
        expression: Id,
        is_noexcept: bool,
        constraint: Option<Id>,
    },
}

/// All nodes of a name.
#[derive(Debug)]
pub(super) struct Arena<'a> {
    nodes: Vec<Node<'a>>,
    lists: Vec<Id>,
}

impl<'a> Arena<'a> {
    /// An empty tree with space for this many nodes.
    pub(super) fn with_capacity(nodes: usize) -> Self {
        Self { nodes: Vec::with_capacity(nodes.min(MAX_NODES)), lists: Vec::with_capacity(16) }
    }

    /// Adds a node. Returns `None` if the name has too many nodes.
    pub(super) fn add(&mut self, node: Node<'a>) -> Option<Id> {
        if self.nodes.len() >= MAX_NODES {
            return None;
        }
        self.nodes.push(node);
        Some(Id(NonZeroU32::new(u32::try_from(self.nodes.len()).ok()?)?))
    }

    /// Adds a list. Returns `None` if the name has too many children in lists.
    pub(super) fn add_list(&mut self, children: impl IntoIterator<Item = Id>) -> Option<List> {
        let start = self.lists.len();
        self.lists.extend(children);
        let len = self.lists.len() - start;
        let list = List { start: u32::try_from(start).ok()?, len: u32::try_from(len).ok()? };
        (self.lists.len() <= MAX_CHILDREN).then_some(list)
    }

    pub(super) fn node(&self, id: Id) -> Node<'a> {
        self.nodes.get(id.index()).copied().unwrap_or(Node::Text(""))
    }

    pub(super) fn child(&self, list: List, number: u32) -> Option<Id> {
        let at = usize::try_from(list.start.checked_add(number)?).ok()?;
        (number < list.len).then(|| self.lists.get(at).copied()).flatten()
    }

    /// Sets what a forward reference refers to.
    pub(super) fn resolve(&mut self, forward: Id, to: Id) {
        if let Some(Node::Forward { target, .. }) = self.nodes.get_mut(forward.index()) {
            *target = Some(to);
        }
    }
}

impl Id {
    pub(super) fn index(self) -> usize {
        usize::try_from(self.0.get() - 1).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_of_a_name_takes_less_than_half_a_megabyte() {
        let size = MAX_NODES * size_of::<Node<'_>>() + MAX_CHILDREN * size_of::<Id>();
        assert!(size < 1 << 19, "{size} bytes");
    }
}
