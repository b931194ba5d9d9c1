//! Unnamed entities: lambdas, blocks, unnamed types, structured bindings.

use super::super::nodes::{Id, Node};
use super::{Level, Parser};

impl Parser<'_> {
    /// An unnamed type, a lambda, or a block.
    pub(super) fn unnamed_type(&mut self, is_of_encoding: bool) -> Option<Id> {
        if is_of_encoding {
            self.levels.clear();
        }
        let kind = [self.look(), self.look_at(1)];
        self.at += 2;
        match &kind {
            b"Ut" => {
                let number = self.digits();
                self.expect(b'_')?;
                self.add(Node::Unnamed(number))
            }
            b"Ul" => self.closure(),
            b"Ub" => {
                self.digits();
                self.expect(b'_')?;
                self.text("'block-literal'")
            }
            _ => None,
        }
    }

    /// A lambda. Its `Ul` is already read.
    fn closure(&mut self) -> Option<Id> {
        let level = self.levels.len();
        let outer_level = self.lambda_level.replace(level);
        self.levels.push(Level::Own(Vec::new()));
        let start = self.pending.len();
        while self.is_parameter_declaration() {
            let declaration = self.parameter_declaration(Some(level))?;
            self.pending.push(declaration);
        }
        let template_parameters = self.finish_list(start)?;
        if template_parameters.len == 0 {
            self.levels.truncate(level);
        }
        let template_constraint = if self.eat(b'Q') { Some(self.constraint()?) } else { None };
        if !self.eat(b'v') {
            loop {
                let parameter = self.a_type()?;
                self.pending.push(parameter);
                if matches!(self.look(), b'E' | b'Q') {
                    break;
                }
            }
        }
        let parameters = self.finish_list(start)?;
        let constraint = if self.eat(b'Q') { Some(self.constraint()?) } else { None };
        self.expect(b'E')?;
        let number = self.digits();
        self.expect(b'_')?;
        self.levels.truncate(level);
        self.lambda_level = outer_level;
        let number = self.text(number)?;
        self.add(Node::Closure { template_parameters, template_constraint, parameters, constraint, number })
    }

    /// `DC name... E`: the variables that a structured binding declares.
    pub(super) fn structured_binding(&mut self) -> Option<Id> {
        self.at += 2;
        let start = self.pending.len();
        loop {
            let name = self.source_name()?;
            self.pending.push(name);
            if self.eat(b'E') {
                let names = self.finish_list(start)?;
                return self.add(Node::StructuredBinding(names));
            }
        }
    }
}
