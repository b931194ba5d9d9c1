//! Entities (functions, variables, accessors, nominal types) and their contexts.

use super::types::Declared;
use super::{Kind, Old, Substitution};

/// The context of a declaration: a module, a type, an extension or a function.
pub(super) struct Context {
    pub(super) text: String,
    /// See [`Substitution::levels`]. 0 if the context is not a nominal type.
    pub(super) levels: usize,
}

impl From<Substitution> for Context {
    fn from(substitution: Substitution) -> Self {
        let levels = if substitution.kind == Kind::Nominal { substitution.levels } else { 0 };
        Self { text: substitution.text, levels }
    }
}

impl Old<'_> {
    pub(super) fn entity(&mut self) -> Option<String> {
        self.nested(|old| {
            let operator = if old.eat("Z") { "Z" } else { "" };
            let entity = match old.eat_one_of(&["F", "v", "I", "i"]) {
                Some(kind) => old.member(kind)?,
                None => old.nominal()?.text,
            };
            Some(entity + operator)
        })
    }

    /// A function, variable, initializer or subscript. The letter of its kind is already read.
    fn member(&mut self, kind: &str) -> Option<String> {
        let context = self.context()?.text;
        if let Some(function) = self.eat_one_of(&["D", "d", "e", "E", "Z"]) {
            return Some(format!("{context}f{function}"));
        }
        if let Some(initializer) = self.eat_one_of(&["C", "c"]) {
            return Some(format!("{context}{}f{initializer}", self.a_type()?));
        }
        if let Some(closure) = self.eat_one_of(&["U", "u"]) {
            let index = self.index()?;
            return Some(format!("{context}{}f{closure}{index}", self.a_type()?));
        }
        if let Some(addressor) = self.eat_one_of(&["aO", "ao", "ap", "au", "lO", "lo", "lp", "lu"]) {
            return self.accessor(&context, addressor);
        }
        if let Some(accessor) = self.eat_one_of(&["g", "G", "s", "m", "w", "W", "r", "M"]) {
            return self.accessor(&context, accessor);
        }
        match kind {
            "I" if self.eat("A") => Some(format!("{context}fA{}", self.index()?)),
            "I" => self.eat("i").then(|| format!("{context}fi")),
            "F" => {
                let name = self.declared_name()?;
                Some(match self.declared_type()? {
                    Declared::Function(signature) => format!("{context}{name}{signature}F"),
                    Declared::Other(of) => format!("{context}{name}{of}vp"),
                })
            }
            _ => self.accessor(&context, "p"),
        }
    }

    /// An accessor of a variable or subscript, or the variable or subscript itself (`p`). The letter of its kind is
    /// already read. An entity with the name `subscript` is a subscript.
    fn accessor(&mut self, context: &str, accessor: &str) -> Option<String> {
        let name = self.declared_name()?;
        let of = self.a_type()?;
        Some(match name.strip_prefix("9subscript") {
            Some("") => format!("{context}{of}i{accessor}"),
            Some(file) if file.ends_with("LL") => {
                format!("{context}{of}{}Lli{accessor}", file.trim_end_matches("LL"))
            }
            _ => format!("{context}{name}{of}v{accessor}"),
        })
    }

    pub(super) fn context(&mut self) -> Option<Context> {
        self.nested(|old| {
            let none = |text| Some(Context { text, levels: 0 });
            if let Some(extension) = old.eat_one_of(&["E", "e"]) {
                let module = old.module()?;
                let signature = if extension == "e" { old.generic_signature()? } else { String::new() };
                return none(old.context()?.text + &module + &signature + "E");
            }
            if old.eat("S") {
                return Some(old.substitution()?.into());
            }
            match old.peek()? {
                b'G' => none(old.a_type()?),
                b'C' | b'V' | b'O' | b'P' => Some(old.nominal()?.into()),
                b'F' | b'I' | b'v' | b'Z' => none(old.entity()?),
                _ => none(old.module()?),
            }
        })
    }

    fn module(&mut self) -> Option<String> {
        if self.eat("s") {
            return Some("s".to_owned());
        }
        if self.eat("S") {
            let substitution = self.substitution()?;
            return (substitution.kind == Kind::Module).then_some(substitution.text);
        }
        let module = self.identifier()?;
        Some(self.remember(Kind::Module, module, 0).text)
    }

    /// A class, struct, enum or protocol by its name.
    pub(super) fn nominal(&mut self) -> Option<Substitution> {
        match self.eat_one_of(&["S", "C", "V", "O", "P"])? {
            "S" => self.substitution(),
            kind => self.declaration(kind),
        }
    }

    pub(super) fn protocol(&mut self) -> Option<String> {
        if !self.eat("S") {
            return Some(self.declaration("P")?.text);
        }
        let substitution = self.substitution()?;
        match substitution.kind {
            Kind::Protocol => Some(substitution.text),
            Kind::Module => self.protocol_in(&substitution.text),
            _ => None,
        }
    }

    /// Reads a name and returns the protocol with this name in the module `module`.
    pub(super) fn protocol_in(&mut self, module: &str) -> Option<String> {
        let text = format!("{module}{}P", self.declared_name()?);
        Some(self.remember(Kind::Protocol, text, 0).text)
    }

    /// The context and the name of a nominal type. `kind` is the letter of its kind.
    fn declaration(&mut self, kind: &str) -> Option<Substitution> {
        let context = self.context()?;
        let text = format!("{}{}{kind}", context.text, self.declared_name()?);
        let of = if kind == "P" { Kind::Protocol } else { Kind::Nominal };
        Some(self.remember(of, text, context.levels + 1))
    }
}
