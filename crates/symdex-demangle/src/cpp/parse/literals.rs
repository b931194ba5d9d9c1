//! Literals and unresolved names.

use super::super::nodes::{Float, Id, Node};
use super::{Dialect, Parser};

impl Parser<'_> {
    /// `L type value E`, and `L_Z encoding E`.
    pub(super) fn literal(&mut self) -> Option<Id> {
        self.expect(b'L')?;
        let letter = self.look();
        let id = match letter {
            b'w' | b'c' | b'a' | b'h' | b's' | b't' | b'i' | b'j' | b'l' | b'm' | b'x' | b'y' | b'n'
            | b'o' => {
                self.at += 1;
                let number = self.signed_number()?;
                self.add(Node::Integer(letter, number))?
            }
            b'b' => return self.boolean(),
            b'f' => self.float(Float::Single, 8)?,
            b'd' => self.float(Float::Double, 16)?,
            b'e' => self.float(Float::Extended, 20)?,
            b'_' => {
                self.expect_text("_Z")?;
                self.encoding()?
            }
            b'A' => {
                let of = self.a_type()?;
                self.add(Node::StringLiteral(of))?
            }
            b'D' if self.eat_text("Dn") => {
                self.eat(b'0');
                self.text("nullptr")?
            }
            b'U' if self.look_at(1) == b'l' => {
                let closure = self.unnamed_type(false)?;
                self.add(Node::Lambda(closure))?
            }
            b'D' | b'T' | b'U' => return None,
            _ => {
                let of = self.a_type()?;
                let number = self.signed_number()?;
                self.add(Node::Enumerator(of, number))?
            }
        };
        self.expect(b'E')?;
        Some(id)
    }

    fn boolean(&mut self) -> Option<Id> {
        if self.eat_text("b0E") {
            return self.text("false");
        }
        self.expect_text("b1E")?;
        self.text("true")
    }

    /// A floating point literal of `digits` lowercase hexadecimal digits.
    fn float(&mut self, kind: Float, digits: usize) -> Option<Id> {
        self.at += 1;
        let value = self.name.get(self.at..self.at + digits)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        value.bytes().all(is_digit).then_some(())?;
        self.at += digits;
        self.add(Node::FloatLiteral(kind, value))
    }

    /// An unresolved name: its meaning depends on a template parameter.
    pub(super) fn unresolved_name(&mut self, is_global: bool) -> Option<Id> {
        if self.dialect == Dialect::Gnu && self.eat_text("sr") {
            let scope = self.a_type()?;
            return self.in_scope(scope);
        }
        if self.eat_text("srN") {
            let mut scope = self.unresolved_type_with_arguments()?;
            while !self.eat(b'E') {
                let name = self.simple_name()?;
                scope = self.add(Node::Nested(scope, name))?;
            }
            return self.in_scope(scope);
        }
        if !self.eat_text("sr") {
            let name = self.base_unresolved_name()?;
            return if is_global { self.add(Node::Prefixed("::", name)) } else { Some(name) };
        }
        if !self.look().is_ascii_digit() {
            let scope = self.unresolved_type_with_arguments()?;
            return self.in_scope(scope);
        }
        let mut scope = self.simple_name()?;
        if is_global {
            scope = self.add(Node::Prefixed("::", scope))?;
        }
        while !self.eat(b'E') {
            let name = self.simple_name()?;
            scope = self.add(Node::Nested(scope, name))?;
        }
        self.in_scope(scope)
    }

    fn in_scope(&mut self, scope: Id) -> Option<Id> {
        let name = self.base_unresolved_name()?;
        self.add(Node::Nested(scope, name))
    }

    fn unresolved_type_with_arguments(&mut self) -> Option<Id> {
        let of = self.unresolved_type()?;
        self.with_optional_arguments(of)
    }

    /// A template parameter, a decltype, or a substitution.
    fn unresolved_type(&mut self) -> Option<Id> {
        let id = match self.look() {
            b'T' => self.template_parameter()?,
            b'D' if matches!(self.look_at(1), b't' | b'T') => self.decltype()?,
            _ => return self.substitution(),
        };
        self.substitutions.push(id);
        Some(id)
    }

    fn with_optional_arguments(&mut self, name: Id) -> Option<Id> {
        if self.look() != b'I' {
            return Some(name);
        }
        let arguments = self.template_arguments(false)?;
        self.add(Node::WithArguments(name, arguments))
    }

    fn base_unresolved_name(&mut self) -> Option<Id> {
        if self.look().is_ascii_digit() {
            return self.simple_name();
        }
        if self.eat_text("dn") {
            let name =
                if self.look().is_ascii_digit() { self.simple_name() } else { self.unresolved_type() }?;
            return self.add(Node::Prefixed("~", name));
        }
        self.eat_text("on");
        let name = self.operator_name(None)?;
        self.with_optional_arguments(name)
    }

    fn simple_name(&mut self) -> Option<Id> {
        let name = self.source_name()?;
        self.with_optional_arguments(name)
    }
}
