//! Reads a mangled name of the Itanium C++ ABI into an [`Arena`].
//!
//! The parser goes forward only: each production is decided by the next one to three characters, and an error anywhere
//! is an error of the whole name. So the steps are proportional to the length of the name. Each method reads one
//! production and returns `None` if the name is not valid.
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
    let mut parser = Parser::new(name);
    let root = parser.mangled_name()?;
    Some((parser.arena, root))
}

/// How many productions are begun until `name` is read or given up.
#[cfg(test)]
pub(super) fn productions(name: &str) -> usize {
    let mut parser = Parser::new(name);
    _ = parser.mangled_name();
    parser.productions
}

struct Parser<'a> {
    name: &'a str,
    at: usize,
    arena: Arena<'a>,
    /// The children of lists that are not read to their ends.
    pending: Vec<Id>,
    substitutions: Vec<Id>,
    depth: usize,
    #[cfg(test)]
    productions: usize,
    /// The lists of template parameters that names `T_` refer to, outermost first.
    levels: Vec<Level>,
    /// The arguments of the innermost template that the encoding names: [`Level::Outer`].
    outer: Vec<Id>,
    /// Template parameters that were referred to before their arguments.
    forward: Vec<Id>,
    /// The level of a generic lambda whose parameters are being read; its unknown template parameters are `auto`.
    lambda_level: Option<usize>,
    /// How many names were invented for each kind of template parameter.
    invented: [u32; 3],
    /// In a conversion function's type, template parameters may refer to arguments that follow.
    allows_forward: bool,
    /// In a conversion function's type, template arguments belong to the function.
    allows_arguments: bool,
    /// In a constraint, the template parameters of all enclosing templates are in scope, which are not known.
    is_constraint: bool,
}

enum Level {
    /// [`Parser::outer`].
    Outer,
    /// The explicit parameters of a lambda or of a template template parameter.
    Own(Vec<Id>),
    /// The `auto` parameters of a lambda.
    Auto,
}

/// What the name of a function says about the encoding that follows it.
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
    fn new(name: &'a str) -> Self {
        Self {
            name,
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

    /// Everything: `_Z` and an encoding with an optional suffix, or the function of an Objective-C block.
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
        // The template parameters of this name are not those of the name around it.
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
        let attributes = match self.eat_text("Ua9enable_ifI") {
            true => {
                let conditions = self.list_until_end(Self::template_argument)?;
                Some(self.add(Node::EnableIf(conditions))?)
            }
            false => None,
        };
        let has_result = named.ends_with_arguments && !named.has_no_result;
        let result = if has_result { Some(self.a_type()?) } else { None };
        let parameters = self.parameters(named.has_explicit_object)?;
        let constraint = if self.eat(b'Q') { Some(self.constraint()?) } else { None };
        let Named { qualifiers, reference, .. } = named;
        self.add(Node::Encoding { result, name, parameters, qualifiers, reference, attributes, constraint })
    }

    /// The types of a function's parameters, without an end mark; `v` is none.
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

    /// The forward references since the number `start` get their arguments.
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

    /// Items up to an `E`, which is read, too.
    fn list_until_end(&mut self, item: fn(&mut Self) -> Option<Id>) -> Option<List> {
        let start = self.pending.len();
        while !self.eat(b'E') {
            let item = item(self)?;
            self.pending.push(item);
        }
        self.finish_list(start)
    }

    /// The list of what is pending since `start`.
    fn finish_list(&mut self, start: usize) -> Option<List> {
        self.arena.add_list(self.pending.drain(start..))
    }

    fn add(&mut self, node: Node<'a>) -> Option<Id> {
        self.arena.add(node)
    }

    fn text(&mut self, text: &'a str) -> Option<Id> {
        self.add(Node::Text(text))
    }

    /// One level deeper. On an error the whole name is given up, so that only success must call [`Self::leave`].
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

    /// The next byte; 0 at the end.
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

    /// A number, with `n` before it if it is negative.
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
