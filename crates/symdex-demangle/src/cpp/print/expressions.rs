//! Expressions, with the parentheses that operator precedence needs.

use super::super::nodes::{Id, List, Node};
use super::super::operators::{Operator, Precedence};
use super::{Printer, Task};

/// The precedence of a node. Nodes that are not operators have the precedence of names.
pub(super) fn precedence(node: &Node<'_>) -> Precedence {
    match node {
        Node::Binary(operator, ..)
        | Node::PrefixOperator(operator, _)
        | Node::PostfixOperator(operator, _)
        | Node::Subscript(operator, ..)
        | Node::Member(operator, ..)
        | Node::NamedCast(operator, ..) => operator.precedence,
        Node::Conditional(..) => Precedence::Conditional,
        Node::New { .. } | Node::Delete { .. } | Node::MemberConversion(..) => Precedence::Unary,
        Node::Call { .. } => Precedence::Postfix,
        Node::Conversion(..) => Precedence::Cast,
        Node::Enclosing { precedence, .. } => *precedence,
        _ => Precedence::Primary,
    }
}

impl<'a> Printer<'_, 'a> {
    pub(super) fn expression(&mut self, node: Node<'a>) {
        match node {
            Node::Binary(operator, first, second) => self.binary(operator, first, second),
            Node::PrefixOperator(operator, of) => {
                self.then([Task::Text(operator.symbol()), Task::Operand(of, operator.precedence, false)]);
            }
            Node::PostfixOperator(operator, of) => {
                self.then([Task::Operand(of, operator.precedence, true), Task::Text(operator.symbol())]);
            }
            Node::Subscript(operator, of, index) => self.then([
                Task::Operand(of, operator.precedence, false),
                Task::Open("["),
                Task::Operand(index, Precedence::Lowest, false),
                Task::Close("]"),
            ]),
            Node::Member(operator, of, member) => self.then([
                Task::Operand(of, operator.precedence, true),
                Task::Text(operator.symbol()),
                Task::Operand(member, operator.precedence, false),
            ]),
            Node::Conditional(condition, first, second) => self.then([
                Task::Operand(condition, Precedence::Conditional, false),
                Task::Text(" ? "),
                Task::Operand(first, Precedence::Lowest, false),
                Task::Text(" : "),
                Task::Operand(second, Precedence::Assign, true),
            ]),
            Node::New { .. } => self.new_expression(node),
            Node::Delete { operand, is_global, is_array } => self.then([
                Task::Text(if is_global { "::" } else { "" }),
                Task::Text(if is_array { "delete[] " } else { "delete " }),
                Task::Print(operand),
            ]),
            Node::Call { callee, arguments, has_parentheses } => {
                self.parenthesized(arguments);
                if has_parentheses {
                    self.then([Task::Open("("), Task::Print(callee), Task::Close(")")])
                } else {
                    self.tasks.push(Task::Print(callee));
                }
            }
            Node::Conversion(to, from) => {
                self.parenthesized(from);
                self.then([Task::Open("("), Task::Print(to), Task::Close(")")]);
            }
            Node::NamedCast(operator, to, from) => self.then([
                Task::Text(operator.name),
                Task::OpenBrackets(0),
                Task::Text("<"),
                Task::Left(to),
                Task::Text(">"),
                Task::OpenBrackets(self.open_brackets),
                Task::Open("("),
                Task::Operand(from, Precedence::Lowest, false),
                Task::Close(")"),
            ]),
            Node::Enclosing { operator, operand, .. } => {
                self.then([Task::Text(operator), Task::Open("("), Task::Print(operand), Task::Close(")")]);
            }
            Node::SizeOfPack(pack) => {
                self.tasks.push(Task::Close(")"));
                self.then([Task::Text("sizeof..."), Task::Open("("), Task::Expand(pack)]);
            }
            Node::Fold { operator, is_left, pack, initial } => self.fold(operator, is_left, pack, initial),
            _ => self.value(node),
        }
    }

    /// Braced lists, literals and requirements.
    fn value(&mut self, node: Node<'a>) {
        match node {
            Node::Braced(of, values) => {
                self.then([Self::optional(of), Task::Text("{"), Self::elements(values), Task::Text("}")]);
            }
            Node::Field(field, value) => {
                let equals = self.equals(value);
                self.then([Task::Text("."), Task::Print(field), equals, Task::Print(value)]);
            }
            Node::Index(index, value) => {
                let equals = self.equals(value);
                self.then([Task::Text("["), Task::Print(index), Task::Text("]"), equals, Task::Print(value)]);
            }
            Node::Range(first, last, value) => {
                let equals = self.equals(value);
                self.then([
                    Task::Text("["),
                    Task::Print(first),
                    Task::Text(" ... "),
                    Task::Print(last),
                    Task::Text("]"),
                    equals,
                    Task::Print(value),
                ]);
            }
            Node::MemberConversion(to, from) => self.then([
                Task::Open("("),
                Task::Print(to),
                Task::Close(")"),
                Task::Open("("),
                Task::Print(from),
                Task::Close(")"),
            ]),
            Node::Subobject { of, expression, offset } => {
                let offset = match self.arena.node(offset) {
                    Node::Text("") => "0",
                    Node::Text(offset) => offset,
                    _ => "",
                };
                let (sign, digits) = signed(offset);
                self.then([
                    Task::Print(expression),
                    Task::Text(".<"),
                    Task::Print(of),
                    Task::Text(" at offset "),
                    Task::Text(sign),
                    Task::Text(digits),
                    Task::Text(">"),
                ]);
            }
            Node::Requires(parameters, requirements) => self.requires(parameters, requirements),
            Node::ExpressionRequirement { expression, is_noexcept, constraint } => {
                let has_braces = is_noexcept || constraint.is_some();
                self.then([
                    Task::Text(if is_noexcept { " noexcept" } else { "" }),
                    Task::Text(if constraint.is_some() { " -> " } else { "" }),
                    Self::optional(constraint),
                    Task::Text(";"),
                ]);
                if has_braces {
                    self.then([Task::Text(" "), Task::Open("{"), Task::Print(expression), Task::Close("}")])
                } else {
                    self.then([Task::Text(" "), Task::Print(expression)])
                }
            }
            _ => self.literal(node),
        }
    }

    fn literal(&mut self, node: Node<'a>) {
        match node {
            Node::FunctionParameter(number) => self.then([Task::Text("fp"), Task::Text(number)]),
            Node::Integer(of, number) => {
                let (sign, digits) = signed(number);
                let of = integer_type(of);
                // A long type name is a cast before the literal. A short one is a suffix.
                if of.len() > 3 {
                    self.then([
                        Task::Text("("),
                        Task::Text(of),
                        Task::Text(")"),
                        Task::Text(sign),
                        Task::Text(digits),
                    ]);
                } else {
                    self.then([Task::Text(sign), Task::Text(digits), Task::Text(of)]);
                }
            }
            Node::Enumerator(of, number) => {
                let (sign, digits) = signed(number);
                self.then([
                    Task::Open("("),
                    Task::Print(of),
                    Task::Close(")"),
                    Task::Text(sign),
                    Task::Text(digits),
                ]);
            }
            Node::FloatLiteral(kind, digits) => super::float::write(&mut self.out, kind, digits),
            Node::StringLiteral(of) => self.then([Task::Text("\"<"), Task::Print(of), Task::Text(">\"")]),
            Node::Lambda(closure) => {
                self.tasks.push(Task::Text("{...}"));
                self.lambda_parameters(self.arena.node(closure));
                self.out.push_str("[]");
            }
            _ => {}
        }
    }

    fn binary(&mut self, operator: &'static Operator, first: Id, second: Id) {
        let symbol = operator.symbol();
        let has_parentheses = self.open_brackets == 0 && matches!(symbol, ">" | ">>");
        if has_parentheses {
            self.tasks.push(Task::Close(")"));
        }
        // Assignments are right-associative.
        let is_assignment = operator.precedence == Precedence::Assign;
        let left = if is_assignment { Precedence::OrIf } else { operator.precedence };
        self.then([
            Task::Operand(first, left, !is_assignment),
            Task::Text(if symbol == "," { "" } else { " " }),
            Task::Text(symbol),
            Task::Text(" "),
            Task::Operand(second, operator.precedence, is_assignment),
        ]);
        if has_parentheses {
            self.tasks.push(Task::Open("("));
        }
    }

    fn new_expression(&mut self, node: Node<'a>) {
        let Node::New { placement, of, initializers, is_global, is_array } = node else { return };
        if initializers.len > 0 {
            self.parenthesized(initializers);
        }
        self.tasks.push(Task::Print(of));
        self.tasks.push(Task::Text(" "));
        if placement.len > 0 {
            self.parenthesized(placement);
        }
        self.then([
            Task::Text(if is_global { "::" } else { "" }),
            Task::Text(if is_array { "new[]" } else { "new" }),
        ]);
    }

    /// `(pack op ... op initial)` and its other forms.
    fn fold(&mut self, operator: &'static Operator, is_left: bool, pack: Id, initial: Option<Id>) {
        let symbol = Task::Text(operator.symbol());
        let space = Task::Text(" ");
        let initial = initial.map(|initial| Task::Operand(initial, Precedence::Cast, true));
        self.tasks.push(Task::Close(")"));
        match (is_left, initial) {
            (true, _) => self.then([Task::Open("("), Task::Expand(pack), Task::Close(")")]),
            (false, Some(initial)) => self.tasks.push(initial),
            (false, None) => {}
        }
        if is_left || initial.is_some() {
            self.then([space, symbol, space]);
        }
        self.tasks.push(Task::Text("..."));
        match (is_left, initial) {
            (true, None) => {}
            (true, Some(initial)) => self.then([initial, space, symbol, space]),
            (false, _) => {
                self.then([Task::Open("("), Task::Expand(pack), Task::Close(")"), space, symbol, space]);
            }
        }
        self.tasks.push(Task::Open("("));
    }

    fn requires(&mut self, parameters: List, requirements: List) {
        self.then([Task::Open("{"), Task::Each(requirements, 0), Task::Text(" "), Task::Close("}")]);
        self.tasks.push(Task::Text(" "));
        if parameters.len > 0 {
            self.parenthesized(parameters);
            self.tasks.push(Task::Text(" "));
        }
        self.tasks.push(Task::Text("requires"));
    }

    fn parenthesized(&mut self, list: List) {
        self.then([Task::Open("("), Self::elements(list), Task::Close(")")]);
    }

    /// The task that prints ` = ` before a value, and nothing before a further designator.
    fn equals(&self, value: Id) -> Task<'a> {
        match self.arena.node(value) {
            Node::Field(..) | Node::Index(..) | Node::Range(..) => Task::Text(""),
            _ => Task::Text(" = "),
        }
    }
}

/// The sign and the digits of a number. A negative number begins with `n`.
fn signed(number: &str) -> (&'static str, &str) {
    number.strip_prefix('n').map_or(("", number), |digits| ("-", digits))
}

/// The text that LLVM prints for the type of an integer literal, by the type's code. A text of up to three letters is a
/// suffix. A longer text is the name of the type and stands before the literal.
fn integer_type(letter: u8) -> &'static str {
    match letter {
        b'w' => "wchar_t",
        b'c' => "char",
        b'a' => "signed char",
        b'h' => "unsigned char",
        b's' => "short",
        b't' => "unsigned short",
        b'j' => "u",
        b'l' => "l",
        b'm' => "ul",
        b'x' => "ll",
        b'y' => "ull",
        b'n' => "__int128",
        b'o' => "unsigned __int128",
        _ => "",
    }
}
