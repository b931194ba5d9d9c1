//! Types.

use super::super::nodes::{Id, Node, Reference};
use super::super::operators::Precedence;
use super::{Dialect, Parser};

/// The built-in type with the code `letter`.
fn builtin(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'v' => "void",
        b'w' => "wchar_t",
        b'b' => "bool",
        b'c' => "char",
        b'a' => "signed char",
        b'h' => "unsigned char",
        b's' => "short",
        b't' => "unsigned short",
        b'i' => "int",
        b'j' => "unsigned int",
        b'l' => "long",
        b'm' => "unsigned long",
        b'x' => "long long",
        b'y' => "unsigned long long",
        b'n' => "__int128",
        b'o' => "unsigned __int128",
        b'f' => "float",
        b'd' => "double",
        b'e' => "long double",
        b'g' => "__float128",
        b'z' => "...",
        _ => return None,
    })
}

/// The built-in type with the code `D` and `letter`.
fn extended_builtin(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'd' => "decimal64",
        b'e' => "decimal128",
        b'f' => "decimal32",
        b'h' => "half",
        b'i' => "char32_t",
        b's' => "char16_t",
        b'u' => "char8_t",
        b'a' => "auto",
        b'c' => "decltype(auto)",
        b'n' => "std::nullptr_t",
        _ => return None,
    })
}

impl Parser<'_> {
    /// A type. It becomes a substitution unless it is a built-in type.
    pub(super) fn a_type(&mut self) -> Option<Id> {
        if let Some(name) = builtin(self.look()) {
            self.at += 1;
            return self.text(name);
        }
        self.enter()?;
        let id = match self.look() {
            b'D' => self.extended_type(),
            b'S' if self.look_at(1) != b't' => self.substituted_type(),
            _ => self.compound_type().and_then(|id| self.substitutable(id)),
        }?;
        self.leave(id)
    }

    fn substitutable(&mut self, id: Id) -> Option<Id> {
        self.substitutions.push(id);
        Some(id)
    }

    fn compound_type(&mut self) -> Option<Id> {
        match self.look() {
            b'r' | b'V' | b'K' if self.is_qualified_function() => self.function_type(),
            b'r' | b'V' | b'K' | b'U' => self.qualified_type(),
            b'u' => self.vendor_type(),
            b'F' => self.function_type(),
            b'A' => self.array_type(),
            b'M' => self.member_pointer(),
            b'T' if !matches!(self.look_at(1), b's' | b'u' | b'e') => self.template_parameter_type(),
            b'P' => self.wrapped_type(Node::Pointer),
            b'R' => self.wrapped_type(|of| Node::Reference(of, Reference::Lvalue)),
            b'O' => self.wrapped_type(|of| Node::Reference(of, Reference::Rvalue)),
            b'C' => self.wrapped_type(|of| Node::Postfixed(of, " complex")),
            b'G' => self.wrapped_type(|of| Node::Postfixed(of, " imaginary")),
            _ => self.class_type(),
        }
    }

    /// One letter and a type. `wrap` makes the node from the type.
    fn wrapped_type(&mut self, wrap: fn(Id) -> Node<'static>) -> Option<Id> {
        self.at += 1;
        let of = self.a_type()?;
        self.add(wrap(of))
    }

    /// Returns whether the next characters are cv-qualifiers and a function type.
    fn is_qualified_function(&self) -> bool {
        let mut distance = 0;
        for qualifier in [b'r', b'V', b'K'] {
            distance += usize::from(self.look_at(distance) == qualifier);
        }
        match self.look_at(distance) {
            b'F' => true,
            b'D' => matches!(self.look_at(distance + 1), b'o' | b'O' | b'w' | b'x'),
            _ => false,
        }
    }

    /// A type that begins with `D`.
    fn extended_type(&mut self) -> Option<Id> {
        let letter = self.look_at(1);
        if let Some(name) = extended_builtin(letter) {
            self.at += 2;
            return self.text(name);
        }
        match letter {
            b'F' => self.binary_float(),
            b'B' | b'U' => self.bit_int(),
            b'k' | b'K' => self.constrained_auto(),
            _ => {
                let id = self.extended_compound(letter)?;
                self.substitutable(id)
            }
        }
    }

    fn extended_compound(&mut self, letter: u8) -> Option<Id> {
        match letter {
            b't' | b'T' => self.decltype(),
            b'v' => self.vector_type(),
            b'p' => {
                self.at += 2;
                let of = self.a_type()?;
                self.add(Node::Expansion(of))
            }
            b'o' | b'O' | b'w' | b'x' => self.function_type(),
            _ => None,
        }
    }

    /// `Dk constraint` or `DK constraint`.
    fn constrained_auto(&mut self) -> Option<Id> {
        let text = if self.look_at(1) == b'k' { " auto" } else { " decltype(auto)" };
        self.at += 2;
        let constraint = self.a_name(None)?;
        self.add(Node::Postfixed(constraint, text))
    }

    fn binary_float(&mut self) -> Option<Id> {
        self.at += 2;
        if self.eat_text("16b") {
            return self.text("std::bfloat16_t");
        }
        let bits = self.number()?;
        self.expect(b'_')?;
        self.add(Node::BinaryFloat(bits))
    }

    fn bit_int(&mut self) -> Option<Id> {
        let is_signed = self.look_at(1) == b'B';
        self.at += 2;
        let size = self.dimension()?;
        self.expect(b'_')?;
        self.add(Node::BitInt { size, is_signed })
    }

    /// The dimension of an array or vector type: a number or an expression.
    fn dimension(&mut self) -> Option<Id> {
        if !self.look().is_ascii_digit() {
            return self.expression();
        }
        let number = self.number()?;
        self.text(number)
    }

    /// An unscoped name or a substitution, with template arguments if it is a template.
    fn substituted_type(&mut self) -> Option<Id> {
        let (name, is_substitution) = self.unscoped_name(None)?;
        if self.look() == b'I' && (!is_substitution || self.allows_arguments) {
            if !is_substitution {
                self.substitutions.push(name);
            }
            return self.type_with_arguments(name);
        }
        if is_substitution { Some(name) } else { self.substitutable(name) }
    }

    fn type_with_arguments(&mut self, name: Id) -> Option<Id> {
        let arguments = self.template_arguments(false)?;
        let id = self.add(Node::WithArguments(name, arguments))?;
        self.substitutable(id)
    }

    /// A template parameter. A template template parameter can have template arguments.
    fn template_parameter_type(&mut self) -> Option<Id> {
        let parameter = self.template_parameter()?;
        if !self.allows_arguments || self.look() != b'I' {
            return Some(parameter);
        }
        // By the ABI, the parameter without arguments is a substitution too. LLVM does not add it.
        if self.dialect == Dialect::Gnu {
            self.substitutions.push(parameter);
        }
        let arguments = self.template_arguments(false)?;
        self.add(Node::WithArguments(parameter, arguments))
    }

    /// A type with cv-qualifiers or vendor qualifiers.
    fn qualified_type(&mut self) -> Option<Id> {
        self.enter()?;
        let id = if self.eat(b'U') { self.vendor_qualified() } else { self.cv_qualified() }?;
        self.leave(id)
    }

    fn cv_qualified(&mut self) -> Option<Id> {
        let qualifiers = self.cv_qualifiers();
        let of = self.a_type()?;
        if qualifiers.is_empty() { Some(of) } else { self.add(Node::Qualified(of, qualifiers)) }
    }

    fn vendor_qualified(&mut self) -> Option<Id> {
        let vendor = self.bare_name()?;
        if let Some(protocol) = vendor.strip_prefix("objcproto") {
            let digits =
                protocol.len() - protocol.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
            let (len, rest) = protocol.split_at(digits);
            let protocol = rest.get(..len.parse().ok()?).filter(|protocol| !protocol.is_empty())?;
            let of = self.qualified_type()?;
            return self.add(Node::ObjcProtocol(of, protocol));
        }
        let arguments = if self.look() == b'I' { Some(self.template_arguments(false)?) } else { None };
        let of = self.qualified_type()?;
        self.add(Node::VendorQualified { of, vendor, arguments })
    }

    /// A vendor's built-in type, or a vendor's type transformation with the type that it transforms.
    fn vendor_type(&mut self) -> Option<Id> {
        self.at += 1;
        let name = self.bare_name()?;
        if !self.eat(b'I') {
            return self.text(name);
        }
        let of = self.a_type()?;
        self.expect(b'E')?;
        self.add(Node::Transformed(name, of))
    }

    fn function_type(&mut self) -> Option<Id> {
        let qualifiers = self.cv_qualifiers();
        let exceptions = self.exceptions()?;
        // `transaction_safe`.
        self.eat_text("Dx");
        self.expect(b'F')?;
        // extern "C".
        self.eat(b'Y');
        let result = self.a_type()?;
        let start = self.pending.len();
        let mut reference = None;
        while !self.eat(b'E') {
            if self.eat(b'v') {
                continue;
            }
            if self.eat_text("RE") {
                reference = Some(Reference::Lvalue);
                break;
            }
            if self.eat_text("OE") {
                reference = Some(Reference::Rvalue);
                break;
            }
            let parameter = self.a_type()?;
            self.pending.push(parameter);
        }
        let parameters = self.finish_list(start)?;
        self.add(Node::Function { result, parameters, qualifiers, reference, exceptions })
    }

    /// The optional exception specification of a function type.
    fn exceptions(&mut self) -> Option<Option<Id>> {
        if self.eat_text("Do") {
            return Some(Some(self.text("noexcept")?));
        }
        if self.eat_text("DO") {
            let operand = self.expression()?;
            self.expect(b'E')?;
            return Some(Some(self.add(Node::Enclosing {
                operator: "noexcept",
                operand,
                precedence: Precedence::Primary,
            })?));
        }
        if self.eat_text("Dw") {
            let types = self.list_until_end(Self::a_type)?;
            return Some(Some(self.add(Node::Throws(types))?));
        }
        Some(None)
    }

    fn array_type(&mut self) -> Option<Id> {
        self.at += 1;
        let dimension = if self.look() == b'_' { None } else { Some(self.dimension()?) };
        self.expect(b'_')?;
        let of = self.a_type()?;
        self.add(Node::Array(of, dimension))
    }

    fn member_pointer(&mut self) -> Option<Id> {
        self.at += 1;
        let class = self.a_type()?;
        let member = self.a_type()?;
        self.add(Node::MemberPointer { class, member })
    }

    fn vector_type(&mut self) -> Option<Id> {
        self.at += 2;
        if self.look().is_ascii_digit() {
            let number = self.number()?;
            self.expect(b'_')?;
            if self.eat(b'p') {
                return self.add(Node::PixelVector(number));
            }
            let dimension = self.text(number)?;
            let of = self.a_type()?;
            return self.add(Node::Vector(of, Some(dimension)));
        }
        if self.eat(b'_') {
            let of = self.a_type()?;
            return self.add(Node::Vector(of, None));
        }
        let dimension = self.expression()?;
        self.expect(b'_')?;
        let of = self.a_type()?;
        self.add(Node::Vector(of, Some(dimension)))
    }

    /// A class or an enumeration, optionally with an elaborated type keyword.
    fn class_type(&mut self) -> Option<Id> {
        let keyword = match (self.look(), self.look_at(1)) {
            (b'T', b's') => "struct ",
            (b'T', b'u') => "union ",
            (b'T', b'e') => "enum ",
            _ => return self.a_name(None),
        };
        self.at += 2;
        let name = self.a_name(None)?;
        self.add(Node::Prefixed(keyword, name))
    }

    /// `Dt expression E` or `DT expression E`.
    pub(super) fn decltype(&mut self) -> Option<Id> {
        self.at += 2;
        let operand = self.expression()?;
        self.expect(b'E')?;
        self.add(Node::Enclosing { operator: "decltype", operand, precedence: Precedence::Primary })
    }
}
