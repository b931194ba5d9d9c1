//! Template arguments, references to template parameters, and their declarations.

use super::super::nodes::{Id, Node, ParameterKind};
use super::{Dialect, Level, Parser};

impl Parser<'_> {
    /// `I argument... E`. The template parameters of an encoding refer to the template arguments of its name.
    pub(super) fn template_arguments(&mut self, are_of_encoding: bool) -> Option<Id> {
        self.expect(b'I')?;
        if are_of_encoding {
            self.levels.clear();
            self.levels.push(Level::Outer);
            self.outer.clear();
        }
        // A template inside the type of a conversion has its arguments.
        let allows_arguments = std::mem::replace(&mut self.allows_arguments, true);
        let start = self.pending.len();
        while !self.eat(b'E') {
            let argument = if are_of_encoding { self.own_argument() } else { self.template_argument() }?;
            self.pending.push(argument);
            // The constraint distinguishes overloads. It is not printed.
            if self.eat(b'Q') {
                self.constraint()?;
                self.expect(b'E')?;
                break;
            }
        }
        self.allows_arguments = allows_arguments;
        let arguments = self.finish_list(start)?;
        self.add(Node::Arguments(arguments))
    }

    /// A template argument of the encoding's name. It can refer to earlier arguments of the same list.
    fn own_argument(&mut self) -> Option<Id> {
        let argument = self.template_argument()?;
        let parameter = match self.arena.node(argument) {
            // LLVM does not unwrap an argument pack that has a template parameter declaration.
            Node::DeclaredArgument(argument) => argument,
            Node::ArgumentPack(elements) => self.add(Node::ParameterPack(elements))?,
            _ => argument,
        };
        self.outer.push(parameter);
        Some(argument)
    }

    pub(super) fn template_argument(&mut self) -> Option<Id> {
        self.enter()?;
        let id = match (self.look(), self.look_at(1)) {
            (b'X', _) => self.expression_argument(),
            (b'J', _) => self.argument_pack(),
            (b'I', _) if self.dialect == Dialect::Gnu => self.argument_pack(),
            (b'L', b'Z') => self.encoding_argument(),
            (b'L', _) => self.literal(),
            // The declaration distinguishes overloads. It is not printed.
            (b'T', _) if self.is_parameter_declaration() => {
                self.parameter_declaration(None)?;
                let argument = self.template_argument()?;
                self.add(Node::DeclaredArgument(argument))
            }
            _ => self.a_type(),
        }?;
        self.leave(id)
    }

    fn expression_argument(&mut self) -> Option<Id> {
        self.at += 1;
        let expression = self.expression()?;
        self.expect(b'E')?;
        Some(expression)
    }

    fn argument_pack(&mut self) -> Option<Id> {
        self.at += 1;
        let elements = self.list_until_end(Self::template_argument)?;
        self.add(Node::ArgumentPack(elements))
    }

    fn encoding_argument(&mut self) -> Option<Id> {
        self.at += 2;
        let encoding = self.encoding()?;
        self.expect(b'E')?;
        Some(encoding)
    }

    /// `T_`, `T0_`, `TL0__`.
    pub(super) fn template_parameter(&mut self) -> Option<Id> {
        let start = self.at;
        self.expect(b'T')?;
        let level = if self.eat(b'L') {
            let level = self.index()?.checked_add(1)?;
            self.expect(b'_')?;
            level
        } else {
            0
        };
        let index = self.index_after()?;
        if self.is_constraint {
            let text = self.name.get(start..self.at - 1)?;
            return self.text(text);
        }
        if self.allows_forward && level == 0 {
            let forward = self.add(Node::Forward { index: u32::try_from(index).ok()?, target: None })?;
            self.forward.push(forward);
            return Some(forward);
        }
        let known = match self.levels.get(level) {
            Some(Level::Outer) => self.outer.get(index),
            Some(Level::Own(parameters)) => parameters.get(index),
            Some(Level::Auto) | None => None,
        };
        match known {
            Some(parameter) => Some(*parameter),
            None => self.auto_parameter(level),
        }
    }

    /// The invented template parameter for an `auto` parameter of a generic lambda.
    fn auto_parameter(&mut self, level: usize) -> Option<Id> {
        if self.lambda_level != Some(level) || level > self.levels.len() {
            return None;
        }
        if level == self.levels.len() {
            self.levels.push(Level::Auto);
        }
        self.text("auto")
    }

    pub(super) fn is_parameter_declaration(&self) -> bool {
        self.look() == b'T' && matches!(self.look_at(1), b'y' | b'p' | b't' | b'n' | b'k')
    }

    /// The declaration of a template parameter. The parameter gets an invented name and is added to `level`, if any.
    pub(super) fn parameter_declaration(&mut self, level: Option<usize>) -> Option<Id> {
        self.enter()?;
        self.expect(b'T')?;
        let kind = self.look();
        self.at += 1;
        let id = match kind {
            b'y' => {
                let name = self.invent(ParameterKind::Type, level)?;
                self.add(Node::TypeParameter(name))
            }
            b'k' => {
                let constraint = self.a_name(None)?;
                let name = self.invent(ParameterKind::Type, level)?;
                self.add(Node::ConstrainedParameter { constraint, name })
            }
            b'n' => {
                let name = self.invent(ParameterKind::NonType, level)?;
                let of = self.a_type()?;
                self.add(Node::NonTypeParameter { name, of })
            }
            b't' => self.template_template_parameter(level),
            b'p' => {
                let of = self.parameter_declaration(level)?;
                self.add(Node::ParameterPackDeclaration(of))
            }
            _ => None,
        }?;
        self.leave(id)
    }

    fn template_template_parameter(&mut self, level: Option<usize>) -> Option<Id> {
        let name = self.invent(ParameterKind::Template, level)?;
        let own = self.levels.len();
        self.levels.push(Level::Own(Vec::new()));
        let start = self.pending.len();
        let mut constraint = None;
        while !self.eat(b'E') {
            let parameter = self.parameter_declaration(Some(own))?;
            self.pending.push(parameter);
            if self.eat(b'Q') {
                constraint = Some(self.constraint()?);
                self.expect(b'E')?;
                break;
            }
        }
        let parameters = self.finish_list(start)?;
        self.levels.truncate(own);
        self.add(Node::TemplateParameter { name, parameters, constraint })
    }

    fn invent(&mut self, kind: ParameterKind, level: Option<usize>) -> Option<Id> {
        let count = self.invented.get_mut(kind as usize)?;
        let number = *count;
        *count += 1;
        let name = self.add(Node::Invented(kind, number))?;
        if let Some(Level::Own(parameters)) = level.and_then(|level| self.levels.get_mut(level)) {
            parameters.push(name);
        }
        Some(name)
    }

    /// An expression in which all enclosing template parameters are in scope.
    pub(super) fn constraint(&mut self) -> Option<Id> {
        let before = std::mem::replace(&mut self.is_constraint, true);
        let expression = self.expression()?;
        self.is_constraint = before;
        Some(expression)
    }
}
