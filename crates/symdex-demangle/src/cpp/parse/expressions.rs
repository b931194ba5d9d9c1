//! Expressions in template arguments, `decltype`, `noexcept` and constraints.

use super::super::nodes::{Id, List, Node};
use super::super::operators::{Kind, Operator, Precedence};
use super::Parser;

impl<'a> Parser<'a> {
    pub(super) fn expression(&mut self) -> Option<Id> {
        self.enter()?;
        let is_global = self.eat_text("gs");
        let id = match Operator::of([self.look(), self.look_at(1)]) {
            Some(operator) => {
                self.at += 2;
                self.operation(operator, is_global)
            }
            None => self.other_expression(is_global),
        }?;
        self.leave(id)
    }

    /// The operands of `operator`. Its code is already read.
    fn operation(&mut self, operator: &'static Operator, is_global: bool) -> Option<Id> {
        match operator.kind {
            Kind::Binary => self.two(operator, Node::Binary),
            Kind::Subscript => self.two(operator, Node::Subscript),
            Kind::Member { .. } => self.two(operator, Node::Member),
            Kind::Prefix => self.one(operator, Node::PrefixOperator),
            Kind::Postfix if self.eat(b'_') => self.one(operator, Node::PrefixOperator),
            Kind::Postfix => self.one(operator, Node::PostfixOperator),
            Kind::New { is_array } => self.new_expression(is_global, is_array),
            Kind::Delete { is_array } => {
                let operand = self.expression()?;
                self.add(Node::Delete { operand, is_global, is_array })
            }
            Kind::Call { has_parentheses } => {
                let callee = self.expression()?;
                let arguments = self.list_until_end(Self::expression)?;
                self.add(Node::Call { callee, arguments, has_parentheses })
            }
            Kind::Conversion => self.conversion(),
            Kind::Conditional => {
                let condition = self.expression()?;
                let (first, second) = (self.expression()?, self.expression()?);
                self.add(Node::Conditional(condition, first, second))
            }
            Kind::NamedCast => {
                let (to, from) = (self.a_type()?, self.expression()?);
                self.add(Node::NamedCast(operator, to, from))
            }
            Kind::OfType => {
                let operand = self.a_type()?;
                self.add(Node::Enclosing {
                    operator: operator.name,
                    operand,
                    precedence: operator.precedence,
                })
            }
            Kind::OfExpression => {
                let operand = self.expression()?;
                self.add(Node::Enclosing {
                    operator: operator.name,
                    operand,
                    precedence: operator.precedence,
                })
            }
            Kind::NameOnly => None,
        }
    }

    fn one(
        &mut self,
        operator: &'static Operator,
        make: fn(&'static Operator, Id) -> Node<'static>,
    ) -> Option<Id> {
        let operand = self.expression()?;
        self.add(make(operator, operand))
    }

    fn two(
        &mut self,
        operator: &'static Operator,
        make: fn(&'static Operator, Id, Id) -> Node<'static>,
    ) -> Option<Id> {
        let (first, second) = (self.expression()?, self.expression()?);
        self.add(make(operator, first, second))
    }

    /// `expression... _ type [pi expression...] E`.
    fn new_expression(&mut self, is_global: bool, is_array: bool) -> Option<Id> {
        let start = self.pending.len();
        while !self.eat(b'_') {
            let argument = self.expression()?;
            self.pending.push(argument);
        }
        let placement = self.finish_list(start)?;
        let of = self.a_type()?;
        let initializers = if self.eat_text("pi") {
            self.list_until_end(Self::expression)?
        } else {
            self.expect(b'E')?;
            List::default()
        };
        self.add(Node::New { placement, of, initializers, is_global, is_array })
    }

    /// `type expression` or `type _ expression... E`.
    fn conversion(&mut self) -> Option<Id> {
        let before = std::mem::replace(&mut self.allows_arguments, false);
        let to = self.a_type()?;
        self.allows_arguments = before;
        let operands = if self.eat(b'_') {
            self.list_until_end(Self::expression)?
        } else {
            let operand = self.expression()?;
            self.arena.add_list([operand])?
        };
        self.add(Node::Conversion(to, operands))
    }

    /// An expression that does not begin with an operator's code.
    fn other_expression(&mut self, is_global: bool) -> Option<Id> {
        let code = [self.look(), self.look_at(1)];
        match &code {
            [_, 0] => return None,
            b"fp" => return self.function_parameter(),
            b"fL" if self.look_at(2).is_ascii_digit() => return self.function_parameter(),
            [b'L', _] => return self.literal(),
            [b'T', _] => return self.template_parameter(),
            [b'f', _] => return self.fold(),
            [b'u', _] => return self.vendor_expression(),
            b"rq" | b"rQ" => return self.requires_expression(),
            b"il" | b"mc" | b"nx" | b"so" | b"sp" | b"sZ" | b"sP" | b"tl" | b"tr" | b"tw" => self.at += 2,
            _ => return self.unresolved_name(is_global),
        }
        match &code {
            b"il" => self.braced(None),
            b"tl" => {
                let of = self.a_type()?;
                self.braced(Some(of))
            }
            b"mc" => self.member_conversion(),
            b"nx" => {
                let operand = self.expression()?;
                self.add(Node::Enclosing { operator: "noexcept ", operand, precedence: Precedence::Unary })
            }
            b"so" => self.subobject(),
            b"sp" => {
                let of = self.expression()?;
                self.add(Node::Expansion(of))
            }
            b"sP" => {
                let arguments = self.list_until_end(Self::template_argument)?;
                let operand = self.add(Node::Children(arguments))?;
                self.add(Node::Enclosing { operator: "sizeof... ", operand, precedence: Precedence::Primary })
            }
            b"sZ" if self.look() == b'T' => {
                let pack = self.template_parameter()?;
                self.add(Node::SizeOfPack(pack))
            }
            b"sZ" => {
                let operand = self.function_parameter()?;
                self.add(Node::Enclosing { operator: "sizeof... ", operand, precedence: Precedence::Primary })
            }
            b"tr" => self.text("throw"),
            _ => {
                let operand = self.expression()?;
                self.add(Node::Prefixed("throw ", operand))
            }
        }
    }

    fn braced(&mut self, of: Option<Id>) -> Option<Id> {
        let values = self.list_until_end(Self::braced_value)?;
        self.add(Node::Braced(of, values))
    }

    /// A value in a braced list, optionally with a designator.
    fn braced_value(&mut self) -> Option<Id> {
        let code = [self.look(), self.look_at(1)];
        if !matches!(&code, b"di" | b"dx" | b"dX") {
            return self.expression();
        }
        self.enter()?;
        self.at += 2;
        let first = if code[1] == b'i' { self.source_name()? } else { self.expression()? };
        let last = if code[1] == b'X' { Some(self.expression()?) } else { None };
        let value = self.braced_value()?;
        let id = self.add(match (code[1], last) {
            (b'i', _) => Node::Field(first, value),
            (_, Some(last)) => Node::Range(first, last, value),
            (_, None) => Node::Index(first, value),
        })?;
        self.leave(id)
    }

    /// `type expression [offset] E`. The `mc` before it is already read. The offset is not printed.
    fn member_conversion(&mut self) -> Option<Id> {
        let (to, from) = (self.a_type()?, self.expression()?);
        self.optional_offset();
        self.expect(b'E')?;
        self.add(Node::MemberConversion(to, from))
    }

    /// `type expression [offset] {_ [selector]} [p] E`. The `so` before it is already read. Selectors and `p` are not
    /// printed.
    fn subobject(&mut self) -> Option<Id> {
        let (of, expression) = (self.a_type()?, self.expression()?);
        let offset = self.optional_offset();
        while self.eat(b'_') {
            self.digits();
        }
        self.eat(b'p');
        self.expect(b'E')?;
        let offset = self.text(offset)?;
        self.add(Node::Subobject { of, expression, offset })
    }

    fn optional_offset(&mut self) -> &'a str {
        let start = self.at;
        self.signed_number().unwrap_or_else(|| {
            self.at = start;
            ""
        })
    }

    /// `fpT`, `fp [qualifiers] [number] _`, `fL number p [qualifiers] [number] _`.
    fn function_parameter(&mut self) -> Option<Id> {
        if self.eat_text("fpT") {
            return self.text("this");
        }
        if self.eat_text("fL") {
            self.number()?;
            self.expect(b'p')?;
        } else {
            self.expect_text("fp")?;
        }
        self.cv_qualifiers();
        let number = self.digits();
        self.expect(b'_')?;
        self.add(Node::FunctionParameter(number))
    }

    /// `fl` or `fr` without an initial value, `fL` or `fR` with one, then the operator and the operands.
    fn fold(&mut self) -> Option<Id> {
        let kind = self.look_at(1);
        let is_left = matches!(kind, b'l' | b'L');
        matches!(kind, b'l' | b'L' | b'r' | b'R').then_some(())?;
        self.at += 2;
        let operator = Operator::of([self.look(), self.look_at(1)])?;
        let is_member_pointer = matches!(operator.kind, Kind::Member { .. }) && operator.name.ends_with('*');
        (operator.kind == Kind::Binary || is_member_pointer).then_some(())?;
        self.at += 2;
        let first = self.expression()?;
        let second = if matches!(kind, b'L' | b'R') { Some(self.expression()?) } else { None };
        let (pack, initial) = match second {
            Some(second) if is_left => (second, Some(first)),
            _ => (first, second),
        };
        self.add(Node::Fold { operator, is_left, pack, initial })
    }

    /// `u name argument... E`. `__uuidof` has one operand instead of arguments: `t` and a type, or `z` and an
    /// expression.
    fn vendor_expression(&mut self) -> Option<Id> {
        self.at += 1;
        let callee = self.source_name()?;
        let is_uuid = matches!(self.arena.node(callee), Node::Text("__uuidof"));
        let arguments = if is_uuid && self.eat(b't') {
            let operand = self.a_type()?;
            self.arena.add_list([operand])?
        } else if is_uuid && self.eat(b'z') {
            let operand = self.expression()?;
            self.arena.add_list([operand])?
        } else {
            self.list_until_end(Self::template_argument)?
        };
        self.add(Node::Call { callee, arguments, has_parentheses: false })
    }

    /// `rq requirement... E` or `rQ type... _ requirement... E`.
    fn requires_expression(&mut self) -> Option<Id> {
        let has_parameters = self.look_at(1) == b'Q';
        self.at += 2;
        let start = self.pending.len();
        while has_parameters && !self.eat(b'_') {
            let parameter = self.a_type()?;
            self.pending.push(parameter);
        }
        let parameters = self.finish_list(start)?;
        loop {
            let requirement = self.requirement()?;
            self.pending.push(requirement);
            if self.eat(b'E') {
                break;
            }
        }
        let requirements = self.finish_list(start)?;
        self.add(Node::Requires(parameters, requirements))
    }

    fn requirement(&mut self) -> Option<Id> {
        let kind = self.look();
        self.at += 1;
        match kind {
            b'X' => {
                let expression = self.expression()?;
                let is_noexcept = self.eat(b'N');
                let constraint = if self.eat(b'R') { Some(self.a_name(None)?) } else { None };
                self.add(Node::ExpressionRequirement { expression, is_noexcept, constraint })
            }
            b'T' => {
                let of = self.a_type()?;
                let text = self.add(Node::Prefixed(" typename ", of))?;
                self.add(Node::Postfixed(text, ";"))
            }
            b'Q' => {
                let of = self.expression()?;
                let text = self.add(Node::Prefixed(" requires ", of))?;
                self.add(Node::Postfixed(text, ";"))
            }
            _ => None,
        }
    }
}
