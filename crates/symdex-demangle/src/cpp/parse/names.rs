//! Names: nested, local and unqualified names, constructors, operators, substitutions.

use super::super::nodes::{Id, Node, Reference, Standard};
use super::super::operators::{Kind, Operator};
use super::{Dialect, Named, Parser};

impl<'a> Parser<'a> {
    /// A name. `named` is `Some` for the name of an encoding.
    pub(super) fn a_name(&mut self, named: Option<&mut Named>) -> Option<Id> {
        self.enter()?;
        let id = match self.look() {
            b'N' => self.nested_name(named),
            b'Z' => self.local_name(named),
            _ => self.unscoped_name_with_arguments(named),
        }?;
        self.leave(id)
    }

    fn unscoped_name_with_arguments(&mut self, mut named: Option<&mut Named>) -> Option<Id> {
        let (name, is_substitution) = self.unscoped_name(named.as_deref_mut())?;
        if self.look() != b'I' {
            return (!is_substitution).then_some(name);
        }
        if !is_substitution {
            self.substitutions.push(name);
        }
        let arguments = self.template_arguments(named.is_some())?;
        if let Some(named) = named {
            named.ends_with_arguments = true;
        }
        self.add(Node::WithArguments(name, arguments))
    }

    /// An unscoped name, or a substitution. Returns whether it is a substitution that no name follows.
    pub(super) fn unscoped_name(&mut self, named: Option<&mut Named>) -> Option<(Id, bool)> {
        let scope = if self.eat_text("St") { Some(self.text("std")?) } else { None };
        let mut module = None;
        if self.look() == b'S' {
            let substitution = self.substitution()?;
            match self.arena.node(substitution) {
                Node::Module { .. } => module = Some(substitution),
                _ => return scope.is_none().then_some((substitution, true)),
            }
        }
        Some((self.unqualified_name(named, scope, module)?, false))
    }

    /// `N [qualifiers] prefix... E`.
    fn nested_name(&mut self, mut named: Option<&mut Named>) -> Option<Id> {
        self.expect(b'N')?;
        self.member_qualifiers(named.as_deref_mut());
        let mut prefix = None;
        while !self.eat(b'E') {
            if let Some(named) = named.as_deref_mut() {
                named.ends_with_arguments = false;
            }
            let (next, is_new) = self.next_prefix(named.as_deref_mut(), prefix)?;
            prefix = Some(next);
            if is_new {
                self.substitutions.push(next);
                // The data member whose initializer contains a lambda.
                self.eat(b'M');
            }
        }
        // The whole nested name becomes a substitution only if it is a type. `a_type` then adds it.
        self.substitutions.pop()?;
        prefix
    }

    /// The qualifiers of a member function: `H` for an explicit object parameter, or cv- and ref-qualifiers.
    fn member_qualifiers(&mut self, named: Option<&mut Named>) {
        if self.eat(b'H') {
            if let Some(named) = named {
                named.has_explicit_object = true;
            }
            return;
        }
        let qualifiers = self.cv_qualifiers();
        let reference = match (self.eat(b'O'), self.eat(b'R')) {
            (true, _) => Some(Reference::Rvalue),
            (_, true) => Some(Reference::Lvalue),
            _ => None,
        };
        if let Some(named) = named {
            (named.qualifiers, named.reference) = (qualifiers, reference);
        }
    }

    /// `prefix` and the next part of a nested name. Returns whether the result is a new substitution.
    fn next_prefix(&mut self, named: Option<&mut Named>, prefix: Option<Id>) -> Option<(Id, bool)> {
        match (self.look(), self.look_at(1)) {
            (b'T', _) if prefix.is_none() => Some((self.template_parameter()?, true)),
            (b'I', _) => Some((self.prefix_with_arguments(named, prefix?)?, true)),
            (b'D', b't' | b'T') if prefix.is_none() => Some((self.decltype()?, true)),
            (b'T', _) | (b'D', b't' | b'T') => None,
            (b'S', b't') if prefix.is_none() => {
                self.at += 2;
                Some((self.text("std")?, false))
            }
            (b'S', _) => {
                let substitution = self.substitution()?;
                if let Node::Module { .. } = self.arena.node(substitution) {
                    return Some((self.unqualified_name(named, prefix, Some(substitution))?, true));
                }
                prefix.is_none().then_some((substitution, false))
            }
            _ => Some((self.unqualified_name(named, prefix, None)?, true)),
        }
    }

    fn prefix_with_arguments(&mut self, named: Option<&mut Named>, prefix: Id) -> Option<Id> {
        let arguments = self.template_arguments(named.is_some())?;
        if let Node::WithArguments(..) = self.arena.node(prefix) {
            return None;
        }
        if let Some(named) = named {
            named.ends_with_arguments = true;
        }
        self.add(Node::WithArguments(prefix, arguments))
    }

    /// `Z encoding E entity [discriminator]`.
    fn local_name(&mut self, mut named: Option<&mut Named>) -> Option<Id> {
        self.expect(b'Z')?;
        // Template parameters from outside are not in scope in the encoding.
        let levels = std::mem::take(&mut self.levels);
        let outer = std::mem::take(&mut self.outer);
        let encoding = self.encoding()?;
        self.expect(b'E')?;
        let entity = if self.eat(b's') {
            self.discriminator();
            self.text("string literal")?
        } else if self.eat(b'd') {
            // The number of the default argument, counted from the last parameter.
            self.digits();
            self.expect(b'_')?;
            self.a_name(named.as_deref_mut())?
        } else {
            let entity = self.a_name(named.as_deref_mut())?;
            self.discriminator();
            entity
        };
        if named.is_none() {
            (self.levels, self.outer) = (levels, outer);
        }
        self.add(Node::Local(encoding, entity))
    }

    /// `_ <digit>`, `__ [number] _`, or the old form of GCC: a number at the end of the mangled name.
    fn discriminator(&mut self) {
        let start = self.at;
        let is_valid = if self.eat_text("__") {
            self.digits();
            self.eat(b'_')
        } else if self.eat(b'_') {
            let is_digit = self.look().is_ascii_digit();
            self.at += usize::from(is_digit);
            is_digit
        } else {
            self.number().is_some() && self.rest().is_empty()
        };
        if !is_valid {
            self.at = start;
        }
    }

    /// An unqualified name, with the optional scope `scope` and the optional module `module`.
    pub(super) fn unqualified_name(
        &mut self,
        named: Option<&mut Named>,
        scope: Option<Id>,
        module: Option<Id>,
    ) -> Option<Id> {
        let module = self.module_name(module)?;
        let is_friend = scope.is_some() && self.eat(b'F');
        // Internal linkage.
        self.eat(b'L');
        let mut scope = scope;
        let mut name = match (self.look(), self.look_at(1)) {
            (b'1'..=b'9', _) => self.source_name()?,
            (b'U', _) => self.unnamed_type(named.is_some())?,
            (b'D', b'C') => self.structured_binding()?,
            (b'C' | b'D', _) if module.is_some() => return None,
            (b'C' | b'D', _) => {
                let class = self.constructed_class(scope?)?;
                scope = Some(class);
                self.constructor(class, named)?
            }
            _ => self.operator_name(named)?,
        };
        if let Some(module) = module {
            name = self.add(Node::InModule { module, name })?;
        }
        name = self.abi_tags(name)?;
        match scope {
            Some(scope) if is_friend => self.add(Node::Friend(scope, name)),
            Some(scope) => self.add(Node::Nested(scope, name)),
            None => Some(name),
        }
    }

    /// Any number of `W name` and `WP partition`. They are appended to `module`.
    pub(super) fn module_name(&mut self, module: Option<Id>) -> Option<Option<Id>> {
        let mut module = module;
        while self.eat(b'W') {
            let is_partition = self.eat(b'P');
            let name = self.source_name()?;
            let next = self.add(Node::Module { parent: module, name, is_partition })?;
            self.substitutions.push(next);
            module = Some(next);
        }
        Some(module)
    }

    pub(super) fn source_name(&mut self) -> Option<Id> {
        let name = self.bare_name()?;
        self.text(if name.starts_with("_GLOBAL__N") { "(anonymous namespace)" } else { name })
    }

    /// A length and an identifier of this length.
    pub(super) fn bare_name(&mut self) -> Option<&'a str> {
        let len = self.index()?;
        let name = self.name.get(self.at..self.at.checked_add(len)?).filter(|name| !name.is_empty())?;
        self.at += len;
        Some(name)
    }

    fn abi_tags(&mut self, name: Id) -> Option<Id> {
        let mut name = name;
        while self.eat(b'B') {
            let tag = self.bare_name()?;
            name = self.add(Node::AbiTag(name, tag))?;
        }
        Some(name)
    }

    /// The class of the constructor or destructor that follows. An abbreviation of a standard class is expanded.
    fn constructed_class(&mut self, scope: Id) -> Option<Id> {
        match self.arena.node(scope) {
            Node::Standard(class) => self.add(Node::Expanded(class)),
            _ => Some(scope),
        }
    }

    fn constructor(&mut self, class: Id, named: Option<&mut Named>) -> Option<Id> {
        let is_destructor = self.look() == b'D';
        self.at += 1;
        let is_inherited = !is_destructor && self.eat(b'I');
        match (is_destructor, self.look()) {
            (false, b'1'..=b'5') | (true, b'0' | b'1' | b'2' | b'4' | b'5') => self.at += 1,
            _ => return None,
        }
        let mut named = named;
        if let Some(named) = named.as_deref_mut() {
            named.has_no_result = true;
        }
        // The base class distinguishes overloads. It is not printed.
        match (is_inherited, self.dialect) {
            (true, Dialect::Abi) => _ = self.a_name(named)?,
            (true, Dialect::Gnu) => _ = self.a_type()?,
            (false, _) => {}
        }
        self.add(Node::Constructor { class, is_destructor })
    }

    /// An operator's name: `operator+`, `operator int`, `operator""_x`.
    pub(super) fn operator_name(&mut self, named: Option<&mut Named>) -> Option<Id> {
        let code = [self.look(), self.look_at(1)];
        if let Some(operator) = Operator::of(code) {
            self.at += 2;
            if operator.kind == Kind::Conversion {
                return self.conversion_name(named);
            }
            return operator.is_name().then(|| self.text(operator.name)).flatten();
        }
        self.at += 2;
        match &code {
            b"li" => {
                let suffix = self.source_name()?;
                self.add(Node::Prefixed("operator\"\" ", suffix))
            }
            [b'v', b'0'..=b'9'] => {
                let name = self.source_name()?;
                self.add(Node::Prefixed("operator ", name))
            }
            _ => None,
        }
    }

    /// The type of a conversion function.
    fn conversion_name(&mut self, named: Option<&mut Named>) -> Option<Id> {
        let before = (self.allows_arguments, self.allows_forward);
        self.allows_arguments = false;
        self.allows_forward |= named.is_some();
        let to = self.a_type()?;
        (self.allows_arguments, self.allows_forward) = before;
        if let Some(named) = named {
            named.has_no_result = true;
        }
        self.add(Node::Prefixed("operator ", to))
    }

    /// A reference to an earlier component, or an abbreviation of a standard class.
    pub(super) fn substitution(&mut self) -> Option<Id> {
        self.expect(b'S')?;
        let class = match self.look() {
            b'a' => Standard::Allocator,
            b'b' => Standard::BasicString,
            b's' => Standard::String,
            b'i' => Standard::Istream,
            b'o' => Standard::Ostream,
            b'd' => Standard::Iostream,
            _ => {
                let number = self.sequence_number().map_or(Some(0), |number| number.checked_add(1))?;
                self.expect(b'_')?;
                return self.substitutions.get(number).copied();
            }
        };
        self.at += 1;
        let plain = self.add(Node::Standard(class))?;
        let tagged = self.abi_tags(plain)?;
        if tagged != plain {
            self.substitutions.push(tagged);
        }
        Some(tagged)
    }

    /// A base-36 number with the digits 0-9 and A-Z.
    pub(super) fn sequence_number(&mut self) -> Option<usize> {
        let mut number = None;
        loop {
            let digit = match self.look() {
                digit @ b'0'..=b'9' => digit - b'0',
                digit @ b'A'..=b'Z' => digit - b'A' + 10,
                _ => return number,
            };
            self.at += 1;
            // A number past the end of the table stays past the end.
            number = Some(number.unwrap_or(0_usize).saturating_mul(36).saturating_add(usize::from(digit)));
        }
    }
}
