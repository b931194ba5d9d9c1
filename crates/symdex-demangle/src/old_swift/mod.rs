//! Rewrites names from before Swift 4 (`_TF...`) in the mangling of Swift 4.0 (`_T0...F`).
//!
//! symbolic-demangle reads only the manglings since Swift 4.0. The older mangling has the same parts in prefix order: a
//! letter, then its operands. This module reads a name once from left to right and writes it in postfix order.
//! symbolic-demangle then prints it. Both grammars are in the Swift sources, `docs/ABI/OldMangling.rst` and
//! `docs/ABI/Mangling.rst`.
//!
//! The rewritten name omits the parts that the simplified form does not print: the changes of a specialization to each
//! argument, the conformances of a specialization's types, and suffixes of a name.

mod cursor;
mod entities;
mod types;

/// Returns `name` in the mangling of Swift 4.0, or `None` if `name` does not have the old mangling.
pub(super) fn modernize(name: &str) -> Option<String> {
    let mut old = Old { rest: name, substitutions: Vec::new(), depth: 0, substituted: 0 };
    Some(format!("_T0{}", old.name()?))
}

/// The rest of an old name, and its substitutions. Each method reads one production of the grammar and returns it in
/// the new mangling, or `None` if the name is not valid.
struct Old<'a> {
    rest: &'a str,
    substitutions: Vec<Substitution>,
    depth: u32,
    substituted: usize,
}

/// A part of the name. Later parts can refer to it by number.
#[derive(Clone)]
struct Substitution {
    kind: Kind,
    text: String,
    /// The number of nominal types from the outermost to this one. Each can have a list of generic arguments.
    levels: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Module,
    Nominal,
    Protocol,
    /// The name of an associated type.
    Associated,
    /// An associated type of an archetype.
    Archetype,
}

impl Old<'_> {
    /// A whole name: `_T`, the kind of a derived function or table, and the entity.
    fn name(&mut self) -> Option<String> {
        self.expect("_T")?;
        let mut specializations = Vec::new();
        while self.eat("TS") {
            specializations.push(self.specialization()?);
            self.substitutions.clear();
            // Later compilers omit the underscore.
            self.eat("_");
            self.expect("T")?;
        }
        let attribute = self.eat_one_of(&["To", "TO", "TD", "Td"]);
        let mut name = self.global()? + attribute.unwrap_or_default();
        specializations.iter().rev().for_each(|specialization| name += specialization);
        Some(name)
    }

    fn global(&mut self) -> Option<String> {
        if self.eat("M") {
            return self.metadata();
        }
        if self.eat("PA") {
            let operator = if self.eat("o") { "Ta" } else { "TA" };
            if !self.rest.starts_with("__T") {
                return Some(operator.to_owned());
            }
            self.expect("_")?;
            return Some(self.nested(Self::name)? + operator);
        }
        if self.eat("t") {
            return self.a_type();
        }
        if self.eat("w") {
            let kind = self.take(2)?;
            return Some(self.a_type()? + "w" + kind);
        }
        match self.eat_one_of(&["W", "T"]) {
            Some("W") => self.witness(),
            Some(_) => self.thunk(),
            None => self.entity(),
        }
    }

    /// Metadata. Its `M` is already read.
    fn metadata(&mut self) -> Option<String> {
        if self.eat("p") {
            return Some(self.protocol()? + "Mp");
        }
        let kind = self.eat_one_of(&["P", "a", "L", "m", "n", "f"]);
        let of = self.a_type()?;
        Some(kind.map_or_else(|| format!("{of}N"), |kind| format!("{of}M{kind}")))
    }

    /// A table or an offset. Its `W` is already read.
    fn witness(&mut self) -> Option<String> {
        let kind = self.take(1)?;
        let of = match kind {
            "V" => self.a_type()?,
            "v" => {
                let directness = self.take(1)?;
                return Some(self.entity()? + "Wv" + directness);
            }
            "P" | "G" | "I" | "a" => self.conformance()?,
            "l" | "L" => self.a_type()? + &self.conformance()?,
            "t" => self.conformance()? + &self.declared_name()?,
            "T" => self.conformance()? + &self.declared_name()? + "_" + &self.protocol()?,
            _ => return None,
        };
        Some(of + "W" + kind)
    }

    /// A thunk. Its `T` is already read.
    fn thunk(&mut self) -> Option<String> {
        if self.eat("W") {
            return Some(self.conformance()? + &self.entity()? + "TW");
        }
        let kind = self.eat_one_of(&["R", "r"])?;
        let signature = if self.eat("G") { self.generic_signature()? } else { String::new() };
        let (from, to) = (self.a_type()?, self.a_type()?);
        Some(to + &from + &signature + "T" + kind)
    }

    /// A specialization of a function by types (`g`, `r`) or by arguments (`f`). Its `TS` is already read.
    fn specialization(&mut self) -> Option<String> {
        let kind = self.eat_one_of(&["g", "r", "f"])?;
        let serialized = if self.eat("q") { "q" } else { "" };
        let pass = self.take(1)?;
        let mut types = List::default();
        while !self.eat("_") {
            if kind == "f" {
                self.specialized_argument()?;
                continue;
            }
            types.push(&self.a_type()?);
            while !self.eat("_") {
                self.conformance()?;
            }
        }
        Some(match kind {
            "g" => format!("{}Tg{serialized}{pass}", types.text()),
            "r" => format!("{}TG{serialized}{pass}", types.text()),
            _ => format!("Tf{serialized}{pass}n_n"),
        })
    }

    /// Skips the changes of a specialization to one argument.
    fn specialized_argument(&mut self) -> Option<()> {
        if self.eat("cl") {
            self.identifier()?;
            while !self.eat("_") {
                self.a_type()?;
            }
            return Some(());
        }
        if self.eat("cp") {
            match self.eat_one_of(&["fr", "g", "i", "fl", "se0v", "se1v"])? {
                "i" | "fl" => self.rest = self.rest.trim_start_matches(|digit| digit != '_'),
                _ => _ = self.identifier()?,
            }
        } else if self.eat("n") || self.eat("k") {
            // The argument is unchanged, or a box that is promoted to the stack.
        } else {
            // Any combination of d(ead), g(uaranteed), o(wned), s(calar replaced) and i(nout to value).
            self.rest = self.rest.trim_start_matches(['d', 'g', 'o', 's', 'i']);
        }
        self.expect("_")
    }

    /// An optional generic signature of the type, then `type protocol module`.
    fn conformance(&mut self) -> Option<String> {
        let signature = if self.eat("u") { self.generic_signature()? } else { String::new() };
        Some(self.a_type()? + &self.protocol()? + &self.context()?.text + &signature)
    }
}

/// A list in the new mangling. An underscore marks the end of its first item.
#[derive(Default)]
struct List(String);

impl List {
    fn push(&mut self, item: &str) {
        let first = self.0.is_empty();
        self.0 += item;
        if first {
            self.0 += "_";
        }
    }

    fn text(self) -> String {
        if self.0.is_empty() { "y".to_owned() } else { self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The type of each function is a generic type whose context is the next function. If a type were read again after
    /// its signature, each level would double the time.
    #[test]
    fn nested_generic_signatures_are_read_once() {
        let level = "F1m1nuRxzC";
        assert!(modernize("_TF1m1nurFxSi").is_some());
        for count in [1, 10, 50, 1000] {
            let name = format!("_T{}SirSi", level.repeat(count));
            assert_eq!(modernize(&name), None, "{count}");
            let name = format!("{name}{}", "1crSi".repeat(count));
            _ = modernize(&name);
        }
    }
}
