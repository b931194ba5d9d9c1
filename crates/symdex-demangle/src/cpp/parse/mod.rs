//! Reads a mangled name of the Itanium C++ ABI into an [`Arena`].
//!
//! The parser does not backtrack: the next one to three characters select each production, and any error makes the
//! whole name invalid. So the number of steps is proportional to the length of the name. Each method reads one
//! production and returns `None` if the name is invalid.
//!
//! GCC deviates from the ABI in some productions, so the same characters can have two meanings. A name that is
//! invalid by the grammar of LLVM is read once more by that of GNU's demangler ([`Dialect`]).
//!
//! Recursion is bounded: every production that can contain itself counts towards [`MAX_DEPTH`].

mod expressions;
mod literals;
mod names;
mod special;
mod templates;
mod types;
mod unnamed;

use super::nodes::{Arena, Id, List, Node, Qualifiers, Reference};
use crate::limits::MAX_DEPTH;

/// The tree of `name` and its root. Returns `None` if `name` is not a mangled C++ name.
pub(super) fn parse(name: &str) -> Option<(Arena<'_>, Id)> {
    parse_as(name, Dialect::Abi).or_else(|| parse_as(name, Dialect::Gnu))
}

fn parse_as(name: &str, dialect: Dialect) -> Option<(Arena<'_>, Id)> {
    let mut parser = Parser::new(name, dialect);
    let root = parser.mangled_name()?;
    Some((parser.arena, root))
}

/// The number of productions that the parser enters for `name`, valid or not, in the dialect that needs more.
#[cfg(test)]
pub(super) fn productions(name: &str) -> usize {
    let productions = |dialect| {
        let mut parser = Parser::new(name, dialect);
        _ = parser.mangled_name();
        parser.productions
    };
    productions(Dialect::Abi).max(productions(Dialect::Gnu))
}

/// The grammar by which a name is read.
#[derive(Clone, Copy, PartialEq)]
enum Dialect {
    /// That of the ABI, as LLVM reads it.
    Abi,
    /// That of GNU's demangler, libiberty. The scope of an unresolved name (`sr`) and the base class of an inherited
    /// constructor (`CI1`) are types, and `I` begins an argument pack.
    Gnu,
}

struct Parser<'a> {
    name: &'a str,
    dialect: Dialect,
    at: usize,
    arena: Arena<'a>,
    /// The children of incomplete lists.
    pending: Vec<Id>,
    substitutions: Vec<Id>,
    depth: usize,
    #[cfg(test)]
    productions: usize,
    /// The lists of template parameters in scope, outermost first. `T_`, `T0_` and `TL0__` refer to them.
    levels: Vec<Level>,
    /// The arguments of the innermost template in the encoding's name. [`Level::Outer`] refers to them.
    outer: Vec<Id>,
    /// References to template parameters whose arguments follow later in the name.
    forward: Vec<Id>,
    /// The level of the lambda whose parameters are being read. Its undeclared template parameters are `auto`.
    lambda_level: Option<usize>,
    /// The number of invented names for each kind of template parameter.
    invented: [u32; 3],
    /// Set in a conversion function's type: template parameters can refer to arguments that follow.
    allows_forward: bool,
    /// Cleared in the type of a conversion (`cv`): template arguments after the type do not belong to it.
    allows_arguments: bool,
    /// Set in a constraint: the template parameters of all enclosing templates are in scope. Their arguments are not
    /// known.
    is_constraint: bool,
}

enum Level {
    /// The template arguments in [`Parser::outer`].
    Outer,
    /// The explicit parameters of a lambda or of a template template parameter.
    Own(Vec<Id>),
    /// The `auto` parameters of a lambda.
    Auto,
}

/// The properties of a function's name that decide how its encoding continues.
#[derive(Default)]
struct Named {
    /// Constructors, destructors and conversion functions have no result type, even if they are templates.
    has_no_result: bool,
    ends_with_arguments: bool,
    has_explicit_object: bool,
    qualifiers: Qualifiers,
    reference: Option<Reference>,
}

impl<'a> Parser<'a> {
    fn new(name: &'a str, dialect: Dialect) -> Self {
        Self {
            name,
            dialect,
            at: 0,
            arena: Arena::with_capacity(name.len() / 2),
            pending: Vec::with_capacity(16),
            substitutions: Vec::with_capacity(16),
            depth: 0,
            #[cfg(test)]
            productions: 0,
            levels: Vec::new(),
            outer: Vec::new(),
            forward: Vec::new(),
            lambda_level: None,
            invented: [0; 3],
            allows_forward: false,
            allows_arguments: true,
            is_constraint: false,
        }
    }

    /// The whole name: `_Z`, an encoding and an optional suffix, or the function of an Objective-C block.
    fn mangled_name(&mut self) -> Option<Id> {
        let underscores = self.name.find(|character| character != '_')?;
        self.at = underscores;
        self.expect(b'Z')?;
        let is_block = match underscores {
            1 | 2 => false,
            3 | 4 => true,
            _ => return None,
        };
        let mut root = self.encoding()?;
        if is_block {
            self.expect_text("_block_invoke")?;
            let needs_number = self.eat(b'_');
            if self.digits().is_empty() && needs_number {
                return None;
            }
            root = self.add(Node::Prefixed("invocation function for block in ", root))?;
        }
        let suffix = self.rest();
        if suffix.is_empty() {
            return Some(root);
        }
        suffix.starts_with('.').then_some(())?;
        if is_block { Some(root) } else { self.add(Node::Suffixed(root, suffix)) }
    }

    /// A function with its parameters, a variable, or a special name.
    fn encoding(&mut self) -> Option<Id> {
        self.enter()?;
        // The template parameters of an outer encoding are not in scope.
        let levels = std::mem::take(&mut self.levels);
        let outer = std::mem::take(&mut self.outer);
        let id = match self.look() {
            b'G' | b'T' => self.special_name(),
            _ => self.function_or_variable(),
        }?;
        (self.levels, self.outer) = (levels, outer);
        self.leave(id)
    }

    fn function_or_variable(&mut self) -> Option<Id> {
        let mut named = Named::default();
        let forward = self.forward.len();
        let name = self.a_name(Some(&mut named))?;
        self.resolve_forward(forward)?;
        if self.is_end_of_encoding() {
            return Some(name);
        }
        let attributes = if self.eat_text("Ua9enable_ifI") {
            let conditions = self.list_until_end(Self::template_argument)?;
            Some(self.add(Node::EnableIf(conditions))?)
        } else {
            None
        };
        let has_result = named.ends_with_arguments && !named.has_no_result;
        let result = if has_result { Some(self.a_type()?) } else { None };
        let parameters = self.parameters(named.has_explicit_object)?;
        let constraint = if self.eat(b'Q') { Some(self.constraint()?) } else { None };
        let Named { qualifiers, reference, .. } = named;
        self.add(Node::Encoding { result, name, parameters, qualifiers, reference, attributes, constraint })
    }

    /// The types of a function's parameters. `v` is an empty list. The list has no end mark.
    fn parameters(&mut self, has_explicit_object: bool) -> Option<List> {
        if self.eat(b'v') {
            return Some(List::default());
        }
        let start = self.pending.len();
        loop {
            let mut parameter = self.a_type()?;
            if has_explicit_object && self.pending.len() == start {
                parameter = self.add(Node::Prefixed("this ", parameter))?;
            }
            self.pending.push(parameter);
            if self.is_end_of_encoding() || self.look() == b'Q' {
                return self.finish_list(start);
            }
        }
    }

    fn is_end_of_encoding(&self) -> bool {
        self.at == self.name.len() || matches!(self.look(), b'E' | b'.' | b'_')
    }

    /// Resolves the forward references from number `start` on to template arguments.
    fn resolve_forward(&mut self, start: usize) -> Option<()> {
        while self.forward.len() > start {
            let forward = self.forward.pop()?;
            let Node::Forward { index, .. } = self.arena.node(forward) else { return None };
            let target = match self.levels.first()? {
                Level::Outer => *self.outer.get(usize::try_from(index).ok()?)?,
                Level::Own(_) | Level::Auto => return None,
            };
            self.arena.resolve(forward, target);
        }
        Some(())
    }

    /// Reads items up to and including an `E`.
    fn list_until_end(&mut self, item: fn(&mut Self) -> Option<Id>) -> Option<List> {
        let start = self.pending.len();
        while !self.eat(b'E') {
            let item = item(self)?;
            self.pending.push(item);
        }
        self.finish_list(start)
    }

    /// Makes a list of the pending children from number `start` on.
    fn finish_list(&mut self, start: usize) -> Option<List> {
        self.arena.add_list(self.pending.drain(start..))
    }

    fn add(&mut self, node: Node<'a>) -> Option<Id> {
        self.arena.add(node)
    }

    fn text(&mut self, text: &'a str) -> Option<Id> {
        self.add(Node::Text(text))
    }

    /// Enters one level of nesting. Only a successful method calls [`Self::leave`], because an error ends the parse.
    fn enter(&mut self) -> Option<()> {
        self.depth += 1;
        #[cfg(test)]
        {
            self.productions += 1;
        }
        (self.depth <= MAX_DEPTH).then_some(())
    }

    fn leave(&mut self, id: Id) -> Option<Id> {
        self.depth -= 1;
        Some(id)
    }

    fn rest(&self) -> &'a str {
        self.name.get(self.at..).unwrap_or_default()
    }

    /// The next byte, or 0 at the end.
    fn look(&self) -> u8 {
        self.look_at(0)
    }

    fn look_at(&self, distance: usize) -> u8 {
        self.name.as_bytes().get(self.at + distance).copied().unwrap_or_default()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.look() == byte && byte != 0;
        self.at += usize::from(is_next);
        is_next
    }

    fn eat_text(&mut self, text: &str) -> bool {
        let is_next =
            self.name.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(text.as_bytes()));
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.eat(byte).then_some(())
    }

    fn expect_text(&mut self, text: &str) -> Option<()> {
        self.eat_text(text).then_some(())
    }

    /// The digits that follow, if any.
    fn digits(&mut self) -> &'a str {
        let rest = self.name.as_bytes().get(self.at..).unwrap_or_default();
        let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let digits = self.name.get(self.at..self.at + len).unwrap_or_default();
        self.at += len;
        digits
    }

    /// At least one digit.
    fn number(&mut self) -> Option<&'a str> {
        Some(self.digits()).filter(|digits| !digits.is_empty())
    }

    /// A number. A negative number begins with `n`.
    fn signed_number(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.eat(b'n');
        self.number()?;
        self.name.get(start..self.at)
    }

    fn index(&mut self) -> Option<usize> {
        self.number()?.parse().ok()
    }

    /// `_` is 0, `0_` is 1, and so on.
    fn index_after(&mut self) -> Option<usize> {
        if self.eat(b'_') {
            return Some(0);
        }
        let index = self.index()?.checked_add(1)?;
        self.expect(b'_')?;
        Some(index)
    }

    fn cv_qualifiers(&mut self) -> Qualifiers {
        let is_restrict = self.eat(b'r');
        let is_volatile = self.eat(b'V');
        let is_const = self.eat(b'K');
        Qualifiers { is_const, is_volatile, is_restrict }
    }
}
