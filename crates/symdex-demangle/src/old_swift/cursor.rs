//! The characters of an old name: literals, numbers, identifiers, substitutions.

use super::{Kind, Old, Substitution};

/// The maximum nesting depth of types and contexts. The depth of real names is below 30.
const MAX_DEPTH: u32 = 128;

/// The maximum number of bytes that all substitutions together can write. Without a limit, a few bytes of nested
/// substitutions can expand to gigabytes.
const MAX_SUBSTITUTED: usize = 16 << 10;

/// The letters of standard library types that are the same in both manglings.
const KNOWN_TYPES: &str = "abdfiVvPpqRrSu";

impl<'a> Old<'a> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.bytes().next()
    }

    /// Skips `prefix`. Returns `false` if the rest does not begin with it.
    pub(super) fn eat(&mut self, prefix: &str) -> bool {
        self.rest.strip_prefix(prefix).map(|rest| self.rest = rest).is_some()
    }

    pub(super) fn expect(&mut self, prefix: &str) -> Option<()> {
        self.eat(prefix).then_some(())
    }

    pub(super) fn eat_one_of(&mut self, prefixes: &[&'static str]) -> Option<&'static str> {
        prefixes.iter().copied().find(|prefix| self.eat(prefix))
    }

    pub(super) fn take(&mut self, size: usize) -> Option<&'a str> {
        let (taken, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(taken)
    }

    /// One or more decimal digits, as text.
    pub(super) fn digits(&mut self) -> Option<&'a str> {
        let end = self.rest.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(self.rest.len());
        if end == 0 { None } else { self.take(end) }
    }

    /// An index: `_` or `12_`. Both manglings write it in the same way.
    pub(super) fn index(&mut self) -> Option<String> {
        let digits = self.digits().unwrap_or_default();
        self.expect("_")?;
        Some(format!("{digits}_"))
    }

    /// `3foo`, `X4punycode`, and operators: `oi1p`.
    pub(super) fn identifier(&mut self) -> Option<String> {
        let encoded = if self.eat("X") { "00" } else { "" };
        let operator = if self.eat("o") { Some(self.eat_one_of(&["i", "p", "P"])?) } else { None };
        let digits = self.digits()?;
        let text = self.take(digits.parse().ok()?)?;
        // An encoded identifier can begin with a digit or an underscore. An underscore separates it from the length.
        let apart = if encoded.is_empty() { "" } else { "_" };
        let operator = operator.map_or_else(String::new, |fixity| format!("o{fixity}"));
        Some(format!("{encoded}{}{apart}{text}{operator}", digits.trim_start_matches('0')))
    }

    /// An identifier. A file (`P`) or a number (`L`) distinguishes it from other entities of the same name.
    pub(super) fn declared_name(&mut self) -> Option<String> {
        if self.eat("L") {
            let index = self.index()?;
            return Some(format!("{}L{index}", self.identifier()?));
        }
        if self.eat("P") {
            let file = self.identifier()?;
            return Some(format!("{}{file}LL", self.identifier()?));
        }
        self.identifier()
    }

    /// A substitution. Its `S` is already read.
    pub(super) fn substitution(&mut self) -> Option<Substitution> {
        let known = |kind, text: &str| Some(Substitution { kind, text: text.to_owned(), levels: 1 });
        if let Some(module) = self.eat_one_of(&["o", "C"]) {
            return known(Kind::Module, &format!("S{module}"));
        }
        if self.eat("s") {
            return known(Kind::Module, "s");
        }
        if self.eat("c") {
            return known(Kind::Nominal, "s13UnicodeScalarV");
        }
        if self.eat("Q") {
            return known(Kind::Nominal, "s27ImplicitlyUnwrappedOptionalO");
        }
        if self.rest.starts_with(|letter| KNOWN_TYPES.contains(letter)) {
            return known(Kind::Nominal, &format!("S{}", self.take(1)?));
        }
        let index = self.index()?;
        let index: usize = match index.trim_end_matches('_') {
            "" => 0,
            digits => digits.parse::<usize>().ok()?.checked_add(1)?,
        };
        let substitution = self.substitutions.get(index)?.clone();
        self.substituted += substitution.text.len();
        (self.substituted <= MAX_SUBSTITUTED).then_some(substitution)
    }

    /// Adds `text` to the substitutions.
    pub(super) fn remember(&mut self, kind: Kind, text: String, levels: usize) -> Substitution {
        let substitution = Substitution { kind, text, levels };
        self.substitutions.push(substitution.clone());
        substitution
    }

    /// Calls `read` one nesting level deeper. Returns `None` if the level exceeds `MAX_DEPTH`.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        let result = if self.depth <= MAX_DEPTH { read(self) } else { None };
        self.depth -= 1;
        result
    }
}
