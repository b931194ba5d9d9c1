//! Types, functions and declarations of template parameters. They have left and right parts.

use super::super::nodes::{Id, Node, Qualifiers, Reference};
use super::super::operators::Precedence;
use super::{Printer, Shape, Task};
use crate::limits::MAX_STEPS;

impl<'a> Printer<'_, 'a> {
    /// Prints the left part of a type. Returns `false` if `node` is not a type.
    pub(super) fn type_left(&mut self, node: Node<'a>) -> bool {
        match node {
            Node::Pointer(of) => match self.objc_protocol(of) {
                Some(protocol) => self.then([Task::Text("id<"), Task::Text(protocol), Task::Text(">")]),
                None => self.then([Task::Left(of), Task::PointerMark(of, "*")]),
            },
            Node::Reference(of, kind) => {
                let (of, kind) = self.collapsed(of, kind);
                let mark = if kind == Reference::Lvalue { "&" } else { "&&" };
                self.then([Task::Left(of), Task::PointerMark(of, mark)]);
            }
            Node::MemberPointer { class, member } => self.then([
                Task::Left(member),
                Task::MemberMark(member),
                Task::Print(class),
                Task::Text("::*"),
            ]),
            Node::Qualified(of, qualifiers) => self.then([Task::Left(of), Task::Text(words(qualifiers))]),
            Node::Array(of, _) => self.tasks.push(Task::Left(of)),
            Node::Function { result, .. } => self.then([Task::Left(result), Task::Text(" ")]),
            Node::Encoding { result, name, .. } => {
                self.tasks.push(Task::Print(name));
                if let Some(result) = result {
                    self.then([Task::Left(result), Task::SpaceUnlessRight(result)]);
                }
            }
            Node::TypeParameter(_) => self.out.push_str("typename "),
            Node::ConstrainedParameter { constraint, .. } => {
                self.then([Task::Print(constraint), Task::Text(" ")]);
            }
            Node::NonTypeParameter { of, .. } => self.then([Task::Left(of), Task::SpaceUnlessRight(of)]),
            Node::TemplateParameter { parameters, .. } => self.then([
                Task::OpenBrackets(0),
                Task::Text("template<"),
                Self::elements(parameters),
                Task::Text("> typename "),
                Task::OpenBrackets(self.open_brackets),
            ]),
            Node::ParameterPackDeclaration(of) => self.then([Task::Left(of), Task::Text("...")]),
            _ => return self.other_type(node),
        }
        true
    }

    /// Prints a type without a right part. Returns `false` if `node` is not such a type.
    fn other_type(&mut self, node: Node<'a>) -> bool {
        match node {
            Node::VendorQualified { of, vendor, arguments } => {
                self.then([Task::Print(of), Task::Text(" "), Task::Text(vendor), Self::optional(arguments)])
            }
            Node::ObjcProtocol(of, protocol) => {
                self.then([Task::Print(of), Task::Text("<"), Task::Text(protocol), Task::Text(">")]);
            }
            Node::Throws(types) => {
                self.then([Task::Text("throw"), Task::Open("("), Self::elements(types), Task::Close(")")])
            }
            Node::Vector(of, dimension) => {
                self.then([
                    Task::Print(of),
                    Task::Text(" vector["),
                    Self::optional(dimension),
                    Task::Text("]"),
                ]);
            }
            Node::PixelVector(dimension) => {
                self.then([Task::Text("pixel vector["), Task::Text(dimension), Task::Text("]")]);
            }
            Node::BinaryFloat(bits) => self.then([Task::Text("_Float"), Task::Text(bits)]),
            Node::BitInt { size, is_signed } => self.then([
                Task::Text(if is_signed { "_BitInt" } else { "unsigned _BitInt" }),
                Task::Open("("),
                Task::Operand(size, Precedence::Lowest, false),
                Task::Close(")"),
            ]),
            Node::Transformed(name, of) => {
                self.then([Task::Text(name), Task::Text("("), Task::Print(of), Task::Text(")")]);
            }
            _ => return false,
        }
        true
    }

    pub(super) fn type_right(&mut self, node: Node<'a>) {
        match node {
            Node::Pointer(of) if self.objc_protocol(of).is_some() => {}
            Node::Pointer(of) | Node::MemberPointer { member: of, .. } => {
                self.then([Task::PointerEnd(of), Task::Right(of)]);
            }
            Node::Reference(of, kind) => {
                let (of, _) = self.collapsed(of, kind);
                self.then([Task::PointerEnd(of), Task::Right(of)]);
            }
            Node::Qualified(of, _) | Node::ParameterPackDeclaration(of) => self.tasks.push(Task::Right(of)),
            Node::Array(of, dimension) => {
                self.then([Task::Dimension, Self::optional(dimension), Task::Text("]"), Task::Right(of)]);
            }
            Node::Function { result, parameters, qualifiers, reference, exceptions } => {
                let space = Task::Text(if exceptions.is_some() { " " } else { "" });
                self.then([
                    Task::Open("("),
                    Self::elements(parameters),
                    Task::Close(")"),
                    Task::Right(result),
                    Task::Text(words(qualifiers)),
                    Task::Text(reference_word(reference)),
                    space,
                    Self::optional(exceptions),
                ]);
            }
            Node::Encoding { result, parameters, qualifiers, reference, attributes, constraint, .. } => {
                self.then([
                    Task::Open("("),
                    Self::elements(parameters),
                    Task::Close(")"),
                    result.map_or(Task::Text(""), Task::Right),
                    Task::Text(words(qualifiers)),
                    Task::Text(reference_word(reference)),
                    Self::optional(attributes),
                    requires_word(constraint),
                    Self::optional(constraint),
                ]);
            }
            Node::TypeParameter(name) | Node::ConstrainedParameter { name, .. } => {
                self.tasks.push(Task::Print(name))
            }
            Node::NonTypeParameter { name, of } => self.then([Task::Print(name), Task::Right(of)]),
            Node::TemplateParameter { name, constraint, .. } => {
                self.then([Task::Print(name), requires_word(constraint), Self::optional(constraint)]);
            }
            _ => {}
        }
    }

    /// Returns the protocol `P` if `of` is `objc_object<P>`. A pointer to this type is printed as `id<P>`.
    fn objc_protocol(&self, of: Id) -> Option<&'a str> {
        match self.arena.node(of) {
            Node::ObjcProtocol(object, protocol) => match self.arena.node(object) {
                Node::Text("objc_object") => Some(protocol),
                _ => None,
            },
            _ => None,
        }
    }

    /// Collapses references to references. The result is an rvalue reference only if all of them are rvalue references.
    fn collapsed(&mut self, of: Id, kind: Reference) -> (Id, Reference) {
        let (mut of, mut kind) = (of, kind);
        while let Some(Node::Reference(inner, inner_kind)) = self.referred(of) {
            (of, kind) = (inner, kind.min(inner_kind));
        }
        (of, kind)
    }

    /// The node that a template parameter or a pack currently refers to.
    fn referred(&mut self, of: Id) -> Option<Node<'a>> {
        let mut id = of;
        loop {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return None;
            }
            id = match self.arena.node(id) {
                Node::Forward { target, .. } => self.forward_target(id, target)?,
                Node::ParameterPack(elements) => self.pack_element(elements)?,
                node => return Some(node),
            }
        }
    }

    pub(super) fn pointer_mark(&mut self, of: Id, mark: &'static str) {
        let is_array = self.has(Shape::IsArray, of);
        if is_array {
            self.out.push(' ');
        }
        if is_array || self.has(Shape::IsFunction, of) {
            self.out.push('(');
        }
        self.out.push_str(mark);
    }
}

fn words(qualifiers: Qualifiers) -> &'static str {
    let Qualifiers { is_const, is_volatile, is_restrict } = qualifiers;
    match (is_const, is_volatile, is_restrict) {
        (false, false, false) => "",
        (true, false, false) => " const",
        (false, true, false) => " volatile",
        (false, false, true) => " restrict",
        (true, true, false) => " const volatile",
        (true, false, true) => " const restrict",
        (false, true, true) => " volatile restrict",
        (true, true, true) => " const volatile restrict",
    }
}

fn reference_word(reference: Option<Reference>) -> &'static str {
    match reference {
        None => "",
        Some(Reference::Lvalue) => " &",
        Some(Reference::Rvalue) => " &&",
    }
}

pub(super) fn requires_word<'a>(constraint: Option<Id>) -> Task<'a> {
    Task::Text(if constraint.is_some() { " requires " } else { "" })
}

/// Returns whether [`Printer::right`] can print text for the node.
pub(super) fn may_have_right(node: &Node<'_>) -> bool {
    matches!(
        node,
        Node::Pointer(_)
            | Node::Reference(..)
            | Node::MemberPointer { .. }
            | Node::Qualified(..)
            | Node::Array(..)
            | Node::Function { .. }
            | Node::Encoding { .. }
            | Node::Forward { .. }
            | Node::ParameterPack(_)
            | Node::ParameterPackDeclaration(_)
            | Node::TypeParameter(_)
            | Node::ConstrainedParameter { .. }
            | Node::NonTypeParameter { .. }
            | Node::TemplateParameter { .. }
    )
}
