//! Names. They have no right parts.

use super::super::nodes::{Id, Node, ParameterKind, Standard};
use super::types::requires_word;
use super::{Printer, Task};
use crate::limits::MAX_STEPS;

impl<'a> Printer<'_, 'a> {
    /// Prints a name. Returns `false` if `node` is not a name.
    pub(super) fn name(&mut self, node: Node<'a>) -> bool {
        match node {
            Node::DeclaredArgument(argument) => self.tasks.push(Task::Print(argument)),
            Node::Prefixed(text, of) => {
                self.out.push_str(text);
                self.tasks.push(Task::Print(of));
            }
            Node::Postfixed(of, text) => self.then([Task::Left(of), Task::Text(text)]),
            Node::Nested(scope, name) | Node::Local(scope, name) => {
                self.then([Task::Print(scope), Task::Text("::"), Task::Print(name)]);
            }
            Node::Friend(scope, name) => {
                self.then([Task::Print(scope), Task::Text("::friend "), Task::Print(name)]);
            }
            Node::Module { parent, name, is_partition } => {
                let separator = match (is_partition, parent) {
                    (true, _) => ":",
                    (false, Some(_)) => ".",
                    (false, None) => "",
                };
                self.then([Self::optional(parent), Task::Text(separator), Task::Print(name)]);
            }
            Node::InModule { module, name } => {
                self.then([Task::Print(name), Task::Text("@"), Task::Print(module)]);
            }
            Node::AbiTag(of, tag) => {
                self.then([Task::Left(of), Task::Text("[abi:"), Task::Text(tag), Task::Text("]")]);
            }
            Node::WithArguments(name, arguments) => self.then([Task::Print(name), Task::Print(arguments)]),
            Node::Arguments(arguments) => self.then([
                Task::OpenBrackets(0),
                Task::Text("<"),
                Self::elements(arguments),
                Task::Text(">"),
                Task::OpenBrackets(self.open_brackets),
            ]),
            Node::Standard(class) => self.then([Task::Text("std::"), Task::Text(short_name(class))]),
            Node::Expanded(class) => self.then([
                Task::Text("std::"),
                Task::Text(template_name(class)),
                Task::Text(template_arguments(class)),
            ]),
            Node::Constructor { class, is_destructor } => {
                self.out.push_str(if is_destructor { "~" } else { "" });
                let name = self.base_name(class);
                self.out.push_str(name);
            }
            Node::Suffixed(of, suffix) => {
                self.then([Task::Print(of), Task::Text(" ("), Task::Text(suffix), Task::Text(")")]);
            }
            _ => return self.made_name(node),
        }
        true
    }

    /// Prints the name of an entity that is unnamed in the source. Returns `false` if `node` is not such a name.
    fn made_name(&mut self, node: Node<'a>) -> bool {
        match node {
            Node::Unnamed(number) => self.then([Task::Text("'unnamed"), Task::Text(number), Task::Text("'")]),
            Node::Closure { number, .. } => {
                self.lambda_parameters(node);
                self.then([Task::Text("'lambda"), Task::Print(number), Task::Text("'")]);
            }
            Node::StructuredBinding(names) => {
                self.then([Task::Open("["), Self::elements(names), Task::Close("]")]);
            }
            Node::EnableIf(conditions) => {
                self.then([Task::Text(" [enable_if:"), Self::elements(conditions), Task::Text("]")]);
            }
            Node::ConstructionVtable { base, derived } => self.then([
                Task::Text("construction vtable for "),
                Task::Print(base),
                Task::Text("-in-"),
                Task::Print(derived),
            ]),
            Node::Invented(kind, number) => {
                self.out.push_str(match kind {
                    ParameterKind::Type => "$T",
                    ParameterKind::NonType => "$N",
                    ParameterKind::Template => "$TT",
                });
                if let Some(number) = number.checked_sub(1) {
                    self.out.push_str(&number.to_string());
                }
            }
            _ => return false,
        }
        true
    }

    /// Prints the template parameters and the parameters of a lambda.
    pub(super) fn lambda_parameters(&mut self, closure: Node<'a>) {
        let Node::Closure { template_parameters, template_constraint, parameters, constraint, .. } = closure
        else {
            return;
        };
        self.then([
            Task::Open("("),
            Self::elements(parameters),
            Task::Close(")"),
            requires_word(constraint),
            Self::optional(constraint),
        ]);
        if template_constraint.is_some() {
            self.then([
                requires_word(template_constraint),
                Self::optional(template_constraint),
                Task::Text(" "),
            ]);
        }
        if template_parameters.len > 0 {
            self.then([
                Task::OpenBrackets(0),
                Task::Text("<"),
                Self::elements(template_parameters),
                Task::Text(">"),
                Task::OpenBrackets(self.open_brackets),
            ]);
        }
    }

    /// The last component of a class's name. Constructors have this name.
    fn base_name(&mut self, of: Id) -> &'a str {
        let mut id = of;
        loop {
            self.steps += 1;
            id = match self.arena.node(id) {
                Node::Text(text) => return text,
                Node::Nested(_, name) | Node::Friend(_, name) => name,
                Node::InModule { name, .. } | Node::WithArguments(name, _) | Node::AbiTag(name, _) => name,
                Node::Standard(class) => return short_name(class),
                Node::Expanded(class) => return template_name(class),
                _ => return "",
            };
            if self.steps > MAX_STEPS {
                return "";
            }
        }
    }
}

fn short_name(class: Standard) -> &'static str {
    match class {
        Standard::Allocator => "allocator",
        Standard::BasicString => "basic_string",
        Standard::String => "string",
        Standard::Istream => "istream",
        Standard::Ostream => "ostream",
        Standard::Iostream => "iostream",
    }
}

fn template_name(class: Standard) -> &'static str {
    match class {
        Standard::Allocator => "allocator",
        Standard::BasicString | Standard::String => "basic_string",
        Standard::Istream => "basic_istream",
        Standard::Ostream => "basic_ostream",
        Standard::Iostream => "basic_iostream",
    }
}

fn template_arguments(class: Standard) -> &'static str {
    match class {
        Standard::Allocator | Standard::BasicString => "",
        Standard::String => "<char, std::char_traits<char>, std::allocator<char>>",
        Standard::Istream | Standard::Ostream | Standard::Iostream => "<char, std::char_traits<char>>",
    }
}
