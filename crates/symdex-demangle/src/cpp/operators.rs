//! The operators of C++ with their codes in mangled names, as the ABI lists them.

/// What an operator's operands are, which decides how it is read and printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Prefix,
    /// `x++`. With `_` after the code it precedes its operand.
    Postfix,
    Binary,
    Subscript,
    /// `.` and `->`. Only the ones that can be overloaded name functions.
    Member {
        is_name: bool,
    },
    New {
        is_array: bool,
    },
    Delete {
        is_array: bool,
    },
    Call {
        has_parentheses: bool,
    },
    /// `(type)expression`; the name of a conversion function.
    Conversion,
    Conditional,
    /// Names a function, but is written in no expression.
    NameOnly,
    /// `static_cast<type>(expression)`.
    NamedCast,
    /// `sizeof (type)`.
    OfType,
    /// `sizeof (expression)`.
    OfExpression,
}

/// How strongly an operator binds its operands, strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    Primary,
    Postfix,
    Unary,
    Cast,
    MemberPointer,
    Multiplicative,
    Additive,
    Shift,
    Spaceship,
    Relational,
    Equality,
    And,
    Xor,
    Or,
    AndIf,
    OrIf,
    Conditional,
    Assign,
    Comma,
    Lowest,
}

/// One row of the table.
#[derive(Debug)]
pub(super) struct Operator {
    code: [u8; 2],
    pub(super) kind: Kind,
    pub(super) precedence: Precedence,
    /// As it is named: `operator+`, `static_cast`, `sizeof `.
    pub(super) name: &'static str,
}

impl Operator {
    /// The operator with this code.
    pub(super) fn of(code: [u8; 2]) -> Option<&'static Self> {
        let at = OPERATORS.binary_search_by_key(&code, |operator| operator.code).ok()?;
        OPERATORS.get(at)
    }

    /// As it is written in an expression: `+`.
    pub(super) fn symbol(&self) -> &'static str {
        self.name.strip_prefix("operator").map_or(self.name, str::trim_start)
    }

    /// Whether a function can have this name. A conversion function's name has a type, too.
    pub(super) fn is_name(&self) -> bool {
        match self.kind {
            Kind::Member { is_name } => is_name,
            Kind::Call { has_parentheses } => !has_parentheses,
            Kind::NamedCast | Kind::OfType | Kind::OfExpression | Kind::Conversion => false,
            _ => true,
        }
    }
}

const fn row(code: &[u8; 2], kind: Kind, precedence: Precedence, name: &'static str) -> Operator {
    Operator { code: *code, kind, precedence, name }
}

use Kind::{Binary, Call, Delete, Member, NamedCast, New, OfExpression, OfType, Postfix, Prefix, Subscript};
use Precedence as P;

/// Sorted by code.
static OPERATORS: &[Operator] = &[
    row(b"aN", Binary, P::Assign, "operator&="),
    row(b"aS", Binary, P::Assign, "operator="),
    row(b"aa", Binary, P::AndIf, "operator&&"),
    row(b"ad", Prefix, P::Unary, "operator&"),
    row(b"an", Binary, P::And, "operator&"),
    row(b"at", OfType, P::Unary, "alignof "),
    row(b"aw", Kind::NameOnly, P::Primary, "operator co_await"),
    row(b"az", OfExpression, P::Unary, "alignof "),
    row(b"cc", NamedCast, P::Postfix, "const_cast"),
    row(b"cl", Call { has_parentheses: false }, P::Postfix, "operator()"),
    row(b"cm", Binary, P::Comma, "operator,"),
    row(b"co", Prefix, P::Unary, "operator~"),
    row(b"cp", Call { has_parentheses: true }, P::Postfix, "operator()"),
    row(b"cv", Kind::Conversion, P::Cast, "operator"),
    row(b"dV", Binary, P::Assign, "operator/="),
    row(b"da", Delete { is_array: true }, P::Unary, "operator delete[]"),
    row(b"dc", NamedCast, P::Postfix, "dynamic_cast"),
    row(b"de", Prefix, P::Unary, "operator*"),
    row(b"dl", Delete { is_array: false }, P::Unary, "operator delete"),
    row(b"ds", Member { is_name: false }, P::MemberPointer, "operator.*"),
    row(b"dt", Member { is_name: false }, P::Postfix, "operator."),
    // Not multiplicative: LLVM writes parentheses around quotients.
    row(b"dv", Binary, P::Assign, "operator/"),
    row(b"eO", Binary, P::Assign, "operator^="),
    row(b"eo", Binary, P::Xor, "operator^"),
    row(b"eq", Binary, P::Equality, "operator=="),
    row(b"ge", Binary, P::Relational, "operator>="),
    row(b"gt", Binary, P::Relational, "operator>"),
    row(b"ix", Subscript, P::Postfix, "operator[]"),
    row(b"lS", Binary, P::Assign, "operator<<="),
    row(b"le", Binary, P::Relational, "operator<="),
    row(b"ls", Binary, P::Shift, "operator<<"),
    row(b"lt", Binary, P::Relational, "operator<"),
    row(b"mI", Binary, P::Assign, "operator-="),
    row(b"mL", Binary, P::Assign, "operator*="),
    row(b"mi", Binary, P::Additive, "operator-"),
    row(b"ml", Binary, P::Multiplicative, "operator*"),
    row(b"mm", Postfix, P::Postfix, "operator--"),
    row(b"na", New { is_array: true }, P::Unary, "operator new[]"),
    row(b"ne", Binary, P::Equality, "operator!="),
    row(b"ng", Prefix, P::Unary, "operator-"),
    row(b"nt", Prefix, P::Unary, "operator!"),
    row(b"nw", New { is_array: false }, P::Unary, "operator new"),
    row(b"oR", Binary, P::Assign, "operator|="),
    row(b"oo", Binary, P::OrIf, "operator||"),
    row(b"or", Binary, P::Or, "operator|"),
    row(b"pL", Binary, P::Assign, "operator+="),
    row(b"pl", Binary, P::Additive, "operator+"),
    row(b"pm", Member { is_name: true }, P::MemberPointer, "operator->*"),
    row(b"pp", Postfix, P::Postfix, "operator++"),
    row(b"ps", Prefix, P::Unary, "operator+"),
    row(b"pt", Member { is_name: true }, P::Postfix, "operator->"),
    row(b"qu", Kind::Conditional, P::Conditional, "operator?"),
    row(b"rM", Binary, P::Assign, "operator%="),
    row(b"rS", Binary, P::Assign, "operator>>="),
    row(b"rc", NamedCast, P::Postfix, "reinterpret_cast"),
    row(b"rm", Binary, P::Multiplicative, "operator%"),
    row(b"rs", Binary, P::Shift, "operator>>"),
    row(b"sc", NamedCast, P::Postfix, "static_cast"),
    row(b"ss", Binary, P::Spaceship, "operator<=>"),
    row(b"st", OfType, P::Unary, "sizeof "),
    row(b"sz", OfExpression, P::Unary, "sizeof "),
    row(b"te", OfExpression, P::Postfix, "typeid "),
    row(b"ti", OfType, P::Postfix, "typeid "),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_by_code() {
        assert!(OPERATORS.is_sorted_by(|first, second| first.code < second.code));
    }
}
